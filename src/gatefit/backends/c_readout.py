"""The readout in C: one function gives the scores of one class, everything else is built on it.

GroupSum    the outputs of a class are added bit-sliced, 64 samples at once: plane p holds bit p of every sum
Affine      the same sum over all outputs, then intercept + scale · sum in double, multiplied and added apart
Linear      bias first, then the outputs in order, in float: the order in which gatefit's readout rounds
"""

from typing import Final

import numpy as np
from jaxtyping import Bool

from gatefit.backends.c_text import float_literal, int64_literal, table, unsigned_table
from gatefit.circuit import simulate
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine, GroupSum, Linear
from gatefit.circuit.simulate import check_bits

SELF_TEST_DECLARATION: Final = """\
/* Replays the embedded vectors; returns how many of their answers differ from what they should be. */
int @m_self_test(void);
"""
_CLASSIFIER: Final = """\
/* The class of one sample, and of 64 * words samples: of equal scores the first wins. */
int @m_predict(const uint8_t *bits);
void @m_predict_batch(const uint64_t *x, size_t words, int32_t *classes);
const char *@m_class_name(int k);
"""
_REGRESSOR: Final = """\
/* The value of one sample; for batches use @m_scores_batch. */
double @m_value(const uint8_t *bits);
"""
_COUNT: Final = """
/* How many outputs number begin to end - 1 are one, for each sample. */
static void @m_count(const uint64_t *w, long begin, long end, int samples, int64_t *totals)
{
    uint64_t planes[@PLANES] = {0};
    uint64_t carry, plane;
    long i;
    int p, s;

    if (samples == 1) {
        for (i = begin, totals[0] = 0; i < end; i++)
            totals[0] += (int64_t)(@m_output_word(w, @INDEX) & 1);
        return;
    }
    for (i = begin; i < end; i++)
        for (p = 0, carry = @m_output_word(w, @INDEX); carry != 0 && p < @PLANES; p++) {
            plane = planes[p];
            planes[p] = plane ^ carry;
            carry &= plane;
        }
    for (s = 0; s < samples; s++)
        for (p = 0, totals[s] = 0; p < @PLANES; p++)
            totals[s] += (int64_t)((planes[p] >> s) & 1) << p;
}
"""
_GROUP_SUM: Final = """
static void @m_class_scores(const uint64_t *w, int k, int samples, int64_t *totals)
{
    int s;

    @m_count(w, (long)@m_group_start[k], (long)@m_group_start[k + 1], samples, totals);
    for (s = 0; s < samples; s++)
        totals[s] += @m_offset[k];
}
"""
_AFFINE: Final = """
static void @m_class_scores(const uint64_t *w, int k, int samples, double *totals)
{
    int64_t sums[64];
    int s;

    (void)k;
    @m_count(w, 0, @M_OUTPUTS, samples, sums);
    for (s = 0; s < samples; s++) {
        /* volatile: the product is rounded before the sum, whatever instructions the processor has. */
        volatile double product = @SCALE * (double)(@OFFSET + sums[s]);
        totals[s] = @INTERCEPT + product;
    }
}
"""
_LINEAR: Final = """
static void @m_class_scores(const uint64_t *w, int k, int samples, float *totals)
{
    const float *weights = @m_weight + (long)k * @M_OUTPUTS;
    uint64_t word;
    long i;
    int s;

    for (s = 0; s < samples; s++)
        totals[s] = @m_bias[k];
    for (i = 0; i < @M_OUTPUTS; i++)
        for (s = 0, word = @m_output_word(w, i); s < samples; s++)
            if ((word >> s) & 1)
                totals[s] += weights[i];
}
"""
_COMMON: Final = """
/* From 64 samples, and from one, to all words that the readout reads. */
static void @m_run(const uint64_t *x, size_t stride, uint64_t *w)
{
    long i;

    for (i = 0; i < @M_INPUTS; i++)
        w[i] = x[(size_t)i * stride];
    @m_evaluate(w);
}

static void @m_run_bits(const uint8_t *bits, uint64_t *w)
{
    long i;

    for (i = 0; i < @M_INPUTS; i++)
        w[i] = bits[i] != 0;
    @m_evaluate(w);
}

void @m_outputs(const uint64_t *x, size_t stride, uint64_t *y)
{
    @WORK
    long i;

    @m_run(x, stride, w);
    for (i = 0; i < @M_OUTPUTS; i++)
        y[i] = @m_output_word(w, i);
}

void @m_scores(const uint8_t *bits, @m_score *scores)
{
    @WORK
    int k;

    @m_run_bits(bits, w);
    for (k = 0; k < @M_CLASSES; k++)
        @m_class_scores(w, k, 1, scores + k);
}

void @m_scores_batch(const uint64_t *x, size_t words, @m_score *scores)
{
    @WORK
    @m_score totals[64];
    size_t v;
    int k, s;

    for (v = 0; v < words; v++) {
        @m_run(x + v, words, w);
        for (k = 0; k < @M_CLASSES; k++) {
            @m_class_scores(w, k, 64, totals);
            for (s = 0; s < 64; s++)
                scores[(64 * v + (size_t)s) * @M_CLASSES + (size_t)k] = totals[s];
        }
    }
}
"""
_PREDICT: Final = """
int @m_predict(const uint8_t *bits)
{
    @WORK
    @m_score best, score;
    int k, chosen = 0;

    @m_run_bits(bits, w);
    @m_class_scores(w, 0, 1, &best);
    for (k = 1; k < @M_CLASSES; k++) {
        @m_class_scores(w, k, 1, &score);
        if (score > best) {
            best = score;
            chosen = k;
        }
    }
    return chosen;
}

void @m_predict_batch(const uint64_t *x, size_t words, int32_t *classes)
{
    @WORK
    @m_score best[64], totals[64];
    size_t v;
    int k, s;

    for (v = 0; v < words; v++, classes += 64) {
        @m_run(x + v, words, w);
        @m_class_scores(w, 0, 64, best);
        for (s = 0; s < 64; s++)
            classes[s] = 0;
        for (k = 1; k < @M_CLASSES; k++) {
            @m_class_scores(w, k, 64, totals);
            for (s = 0; s < 64; s++)
                if (totals[s] > best[s]) {
                    best[s] = totals[s];
                    classes[s] = k;
                }
        }
    }
}
"""
_VALUE: Final = """
double @m_value(const uint8_t *bits)
{
    double value;

    @m_scores(bits, &value);
    return value;
}
"""
_SELF_TEST: Final = """
int @m_self_test(void)
{
    static uint64_t x[@M_INPUTS];
    static @m_score batch[64 * @M_CLASSES];
    static @m_score scores[@M_CLASSES];
    static uint8_t bits[@M_INPUTS];
    int failures = 0;
    long i, k, s, v;

    for (v = 0; v < @VECTORS; v += 64) {
        for (i = 0; i < @M_INPUTS; i++)
            x[i] = 0;
        for (s = 0; s < 64 && v + s < @VECTORS; s++)
            for (i = 0; i < @M_INPUTS; i++)
                x[i] |= (uint64_t)((@m_test_bits[(v + s) * @BYTES + i / 8] >> (i % 8)) & 1) << s;
        @m_scores_batch(x, 1, batch);
        for (s = 0; s < 64 && v + s < @VECTORS; s++) {
            for (i = 0; i < @M_INPUTS; i++)
                bits[i] = (uint8_t)((x[i] >> s) & 1);
            @m_scores(bits, scores);
            for (k = 0; k < @M_CLASSES; k++) {
                failures += scores[k] != @m_test_scores[(v + s) * @M_CLASSES + k];
                failures += batch[s * @M_CLASSES + k] != @m_test_scores[(v + s) * @M_CLASSES + k];
            }
@CLASS        }
    }
    return failures;
}
"""
_SELF_TEST_CLASS: Final = "            failures += @m_predict(bits) != (int)@m_test_class[v + s];\n"


def declarations(circuit: Circuit) -> str:
    """What the readout adds to the header."""
    return _REGRESSOR if isinstance(circuit.readout, Affine) else _CLASSIFIER


def score_type(circuit: Circuit) -> str:
    """The C type of a score."""
    return {GroupSum: "int64_t", Affine: "double", Linear: "float"}[type(circuit.readout)]


def definitions(circuit: Circuit, words: int, *, static: bool) -> str:
    """Tables and functions from output bits to scores; gates work on ``words``, each call's own unless ``static``."""
    readout = circuit.readout
    work = "uint64_t *const w = @m_work;" if static else f"uint64_t w[{words}];"
    common = (_COMMON + (_VALUE if isinstance(readout, Affine) else _PREDICT)).replace("@WORK", work)
    if static:
        common = f"\nstatic uint64_t @m_work[{words}];\n{common}"
    if isinstance(readout, Linear):
        weights = [float_literal(w, "float") for w in readout.weights.ravel().tolist()]
        bias = [float_literal(b, "float") for b in readout.bias.tolist()]
        return table("float", "@m_weight", weights) + table("float", "@m_bias", bias) + _LINEAR + common
    if isinstance(readout, Affine):
        planes = max(1, readout.outputs.bit_length())
        affine = _AFFINE.replace("@SCALE", float_literal(readout.scale)).replace(
            "@OFFSET", int64_literal(readout.offset)
        )
        affine = affine.replace("@INTERCEPT", float_literal(readout.intercept))
        return _COUNT.replace("@PLANES", str(planes)).replace("@INDEX", "i") + affine + common
    order = np.argsort(readout.groups, kind="stable")
    sizes = np.bincount(readout.groups, minlength=readout.classes)
    in_order = bool(np.array_equal(order, np.arange(order.size)))
    count = _COUNT.replace("@PLANES", str(max(1, int(sizes.max()).bit_length())))
    return (
        unsigned_table("@m_group_start", np.append(0, np.cumsum(sizes)))
        + table("int64_t", "@m_offset", [int64_literal(value) for value in readout.offsets.tolist()])
        + ("" if in_order else unsigned_table("@m_group_order", order))
        + count.replace("@INDEX", "i" if in_order else "@m_group_order[i]")
        + _GROUP_SUM
        + common
    )


def self_test(circuit: Circuit, vectors: int | Bool[np.ndarray, "vectors inputs"]) -> str:
    """The vectors, what ``simulate`` makes of them, and the function that replays them."""
    if isinstance(vectors, int):
        bits = np.random.default_rng(0).integers(0, 2, (vectors, circuit.inputs)).astype(bool)
    else:
        bits = check_bits(circuit, vectors)
    scores = simulate.scores(circuit, bits)
    finite = np.isfinite(scores).all(axis=1)  # a sum may overflow, and C has no literal for infinity
    bits, scores = bits[finite], scores[finite]
    readout = circuit.readout

    def literal(value: float) -> str:
        if isinstance(readout, GroupSum):
            return int64_literal(int(value))
        return float_literal(value, "float" if isinstance(readout, Linear) else "double")

    packed = np.packbits(bits, axis=1, bitorder="little")
    text = unsigned_table("@m_test_bits", packed.ravel())
    text += table(score_type(circuit), "@m_test_scores", [literal(value) for value in scores.ravel().tolist()])
    classifier = not isinstance(readout, Affine)
    if classifier:
        text += unsigned_table("@m_test_class", scores.argmax(axis=1))
    body = _SELF_TEST.replace("@CLASS", _SELF_TEST_CLASS if classifier else "")
    return text + body.replace("@VECTORS", str(len(bits))).replace("@BYTES", str(packed.shape[1]))

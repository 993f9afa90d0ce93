"""The fixed text of a microcontroller export; @m is the model's name, @M the same in capitals, @WORDS are filled in."""

from typing import Final

HEADER: Final = """\
#ifndef @M_MODEL_H
#define @M_MODEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

@SIZES
typedef @SCORE @m_score;

/* The @M_INPUTS input bits, a byte each, 0 or 1. Set all of them before each call: the memory is used again. */
uint8_t *@m_input(void);
@CALLS
/* How many embedded test vectors there are; vector i as input bits, its answer, and how many answers are wrong. */
#define @M_VECTORS @VECTORS
void @m_test_vector(int i);
int @m_self_test(void);

#ifdef __cplusplus
}
#endif

#endif /* @M_MODEL_H */
"""

CLASSIFIER_CALLS: Final = """\
/* The class of the input bits: of equal scores the first wins. */
int @m_predict(void);
/* The score of class k in the last prediction. */
@m_score @m_score_of(int k);
const char *@m_class_name(int k);
"""

REGRESSOR_CALLS: Final = """\
/* The value for the input bits. */
@m_score @m_predict(void);
"""

FEATURE_CALLS: Final = """\
/* The same for @M_FEATURES raw features. */
@RESULT @m_predict_features(const @FEATURE *v);
"""

MODEL: Final = """\
#include "@m_model.h"

/* On AVR, constants are copied to RAM unless they are marked, and then need instructions of their own. */
#ifdef __AVR__
#include <avr/pgmspace.h>
#define FLASH PROGMEM
#define READ_8(p) pgm_read_byte(p)
#define READ_16(p) pgm_read_word(p)
#define READ_32(p) pgm_read_dword(p)
#define READ_FLOAT(p) pgm_read_float(p)
#else
#define FLASH
#define READ_8(p) (*(p))
#define READ_16(p) (*(p))
#define READ_32(p) (*(p))
#define READ_FLOAT(p) (*(p))
#endif
@TABLES
static uint8_t w[@SLOTS];

uint8_t *@m_input(void)
{
    return w;
}

static void evaluate(void)
{
    const @CODE *c = code;
    @LENGTH n;
    long run;

    w[@M_INPUTS] = 0;
    for (run = 0; run < @RUNS; run++) {
        n = @READ_LENGTH(run_length + run);
        switch (READ_8(run_operation + run)) {
        case 0:
            for (; n != 0; n--, c += 3)
                w[@READ_CODE(c)] = w[@READ_CODE(c + 1)] & w[@READ_CODE(c + 2)];
            break;
        case 1:
            for (; n != 0; n--, c += 3)
                w[@READ_CODE(c)] = w[@READ_CODE(c + 1)] & (uint8_t)~w[@READ_CODE(c + 2)];
            break;
        case 2:
            for (; n != 0; n--, c += 3)
                w[@READ_CODE(c)] = w[@READ_CODE(c + 1)] | w[@READ_CODE(c + 2)];
            break;
        default:
            for (; n != 0; n--, c += 3)
                w[@READ_CODE(c)] = w[@READ_CODE(c + 1)] ^ w[@READ_CODE(c + 2)];
            break;
        }
    }
}

/* Output i: the lowest bit of its entry says that its complement was computed. */
static uint8_t output(long i)
{
    @OUTPUT entry = @READ_OUTPUT(outputs + i);

    return w[entry >> 1] ^ (uint8_t)(entry & 1);
}
"""

GROUP_SUM: Final = """
@m_score @m_score_of(int k)
{
    @m_score total = (@m_score)READ_32(offset + k);
    long i, end = (long)@READ_START(group_start + k + 1);

    for (i = (long)@READ_START(group_start + k); i < end; i++)
        total += output(i);
    return total;
}
"""

LINEAR: Final = """
@m_score @m_score_of(int k)
{
    const float *weights = weight + (long)k * @OUTPUTS;
    @m_score total = READ_FLOAT(bias + k);
    long i;

    for (i = 0; i < @OUTPUTS; i++)
        if (output(i))
            total += READ_FLOAT(weights + i);
    return total;
}
"""

PREDICT: Final = """
int @m_predict(void)
{
    @m_score best, score;
    int k, answer = 0;

    evaluate();
    best = @m_score_of(0);
    for (k = 1; k < @M_CLASSES; k++) {
        score = @m_score_of(k);
        if (score > best) {
            best = score;
            answer = k;
        }
    }
    return answer;
}

const char *@m_class_name(int k)
{
    static const char *const names[@M_CLASSES] = {@NAMES};

    return k >= 0 && k < @M_CLASSES ? names[k] : "";
}
"""

VALUE: Final = """
@m_score @m_predict(void)
{
    int32_t total = @OFFSET;
    long i;
    /* volatile: the product is rounded before the sum, whatever instructions the processor has. */
    volatile @m_score product;

    evaluate();
    for (i = 0; i < @OUTPUTS; i++)
        total += output(i);
    product = @SCALE * total;
    return @INTERCEPT + product;
}
"""

FEATURES: Final = """
@RESULT @m_predict_features(const @FEATURE *v)
{
    long i;

    for (i = 0; i < @M_INPUTS; i++) {
        const @FEATURE x = v[@READ_FEATURE(bit_feature + i)];
        const @BOUND bound = (@BOUND)@READ_BOUND(bit_bound + i);

@COMPARE
    }
    return @m_predict();
}
"""

COMPARE_ABOVE: Final = "        w[i] = x > bound;"
COMPARE_ANY: Final = """\
        switch (READ_8(bit_test + i)) {
        case 0:
            w[i] = x > bound;
            break;
        case 1:
            w[i] = x == bound;
            break;
        default:
            w[i] = x != x;
            break;
        }"""

TEST: Final = """
void @m_test_vector(int i)
{
    long bit;

    for (bit = 0; bit < @M_INPUTS; bit++)
        w[bit] = (READ_8(test_bits + (long)i * @BYTES + (bit >> 3)) >> (bit & 7)) & 1;
}

int @m_self_test(void)
{
    int i, wrong = 0;

    for (i = 0; i < @M_VECTORS; i++) {
        @m_test_vector(i);
        wrong += @m_predict() != (@RESULT)@READ_ANSWER(test_answer + i);
    }
    return wrong;
}
"""

SKETCH: Final = """\
// @TITLE: replays the embedded test vectors, and prints each answer with the microseconds it took.
// To use your own data, @HINT
#include "@m_model.h"

void setup() {
  Serial.begin(115200);
  delay(1000);
  Serial.print("self-test, wrong answers: ");
  Serial.println(@m_self_test());
}

void loop() {
  static int i = 0;
  @m_test_vector(i);
  const unsigned long begun = micros();
  const @RESULT answer = @m_predict();
  const unsigned long taken = micros() - begun;
  Serial.print("vector ");
  Serial.print(i);
  Serial.print(": ");
  Serial.print(@SHOWN);
  Serial.print(" in ");
  Serial.print(taken);
  Serial.println(" us");
  i = (i + 1) % @M_VECTORS;
  delay(1000);
}
"""

README: Final = """\
# @TITLE

A logic gate network as C for microcontrollers, written by gatefit.

| | |
|---|---|
| input bits | @M_INPUTS_NUMBER |
| gates | @GATES |
| tables in flash | @FLASH_BYTES bytes |
| working memory | @RAM_BYTES bytes of RAM |

Open `@m.ino` in the Arduino IDE, choose your board, and upload it: the serial monitor (115200 baud) shows the self-test
and the answers. Elsewhere, compile `@m_model.c` with any C99 compiler; it needs no library and allocates nothing. Calls
must not overlap: the working memory is static. Code and class names come on top of the tables; on AVR names are in RAM.

@USE
"""

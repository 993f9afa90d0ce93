"""``gatefit predict``: CSV columns as the encoder needs them."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest

from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine, GroupSum
from gatefit.datasets import load_dataset
from gatefit.encoders import Table, Thermometer
from gatefit.gates import Gate

FRAME = {
    "age": np.array([20.0, 30.0, 40.0, np.nan]),
    "code": ["007", "7", "007", "8"],
    "size": [1, 2, 3, 2],
    "member": [True, False, True, False],
}


def write(path, rows, newline="\n"):
    path.write_text("".join(",".join(map(str, row)) + newline for row in rows), encoding="utf-8")
    return path


def identity_circuit(encoder, names=()):
    """A circuit whose outputs are its input bits: every bit votes for a class of its own."""
    bits = encoder.bits
    return Circuit(
        inputs=bits,
        gates=np.full(bits, Gate.A),
        operands=np.stack([np.arange(bits)] * 2),
        outputs=np.arange(bits, 2 * bits),
        readout=GroupSum(np.arange(bits), np.zeros(bits, dtype=int)),
        input_names=encoder.names,
        class_names=names,
        encoder=encoder,
    )


@pytest.fixture
def table_model(tmp_path):
    """A circuit over a table of four kinds of columns that shows its bits as scores."""
    encoder = Table(thresholds=3, categorical=["size"]).fit(FRAME)
    path = tmp_path / "table.gate"
    identity_circuit(encoder).save(path)
    return path


def monks_csv(path, *, header=True, reverse=False, label=False):
    dataset = load_dataset("monks-1")
    columns = slice(None, None, -1) if reverse else slice(None)
    rows = [[int(bit) for bit in row[columns]] for row in dataset.x_test]
    names = list(dataset.feature_names[columns])
    if label:
        rows = [[y, *row] for y, row in zip(dataset.y_test, rows, strict=True)]
        names.insert(0, "label")
    return write(path, [names, *rows] if header else rows)


def scores_of(outcome):
    rows = list(csv.reader(io.StringIO(outcome.out)))
    return rows[0], np.array([[int(value) for value in row[1:]] for row in rows[1:]])


def test_one_class_a_line(gatefit, model, tmp_path):
    outcome = gatefit("predict", model, monks_csv(tmp_path / "x.csv"))
    assert outcome.out.splitlines() == Circuit.load(model).predict(load_dataset("monks-1").x_test).tolist()


@pytest.mark.parametrize(
    ("layout", "options"),
    [
        ({"reverse": True, "label": True}, []),
        ({"header": False}, ["--no-header"]),
        ({"reverse": True}, ["--bits"]),
        ({"header": False}, ["--bits", "--no-header"]),
    ],
)
def test_columns_are_found_by_name_or_position(gatefit, model, tmp_path, layout, options):
    expected = gatefit("predict", model, monks_csv(tmp_path / "plain.csv")).out
    assert gatefit("predict", model, monks_csv(tmp_path / "x.csv", **layout), *options).out == expected


def test_scores_and_out(gatefit, model, tmp_path):
    out = tmp_path / "predictions.csv"
    assert gatefit("predict", model, monks_csv(tmp_path / "x.csv"), "--scores", "--out", out).out == ""
    rows = list(csv.reader(io.StringIO(out.read_text())))
    assert rows[0] == ["prediction", "score of 0", "score of 1"]
    circuit, x = Circuit.load(model), load_dataset("monks-1").x_test
    assert [[int(v) for v in row[1:]] for row in rows[1:]] == circuit.scores(x).tolist()
    assert [row[0] for row in rows[1:]] == circuit.predict(x).tolist()


def test_json(gatefit, model, tmp_path):
    content = gatefit("predict", model, monks_csv(tmp_path / "x.csv"), "--json", "--scores").json
    assert content["samples"] == 432 == len(content["scores"])
    assert set(content["predictions"]) == {"0", "1"}


def test_cells_become_what_the_encoder_compares(gatefit, table_model, tmp_path):
    rows = [["member", "size", "code", "age"], ["true", "1", "007", "20"], ["0", "2.0", "7", "30.0"],
            ["TRUE", " 3", "007", "4e1"], ["False", "2", "8", ""]]  # fmt: skip
    _, scores = scores_of(gatefit("predict", table_model, write(tmp_path / "x.csv", rows), "--scores"))
    assert np.array_equal(scores.astype(bool), Circuit.load(table_model).encoder.transform(FRAME))


def test_unseen_categories_have_no_bit(gatefit, table_model, tmp_path):
    path = write(tmp_path / "x.csv", [["age", "code", "size", "member"], ["25", "new", "9", "1"]])
    header, scores = scores_of(gatefit("predict", table_model, path, "--scores"))
    names = Circuit.load(table_model).input_names
    true = {name for name, bit in zip(names, scores[0], strict=True) if bit}
    assert len(header) == len(names) + 1
    assert all(name.startswith(("age >", "member")) for name in true)
    assert "member" in true


def test_names_with_commas_quotes_and_newlines_stay_one_cell(gatefit, tmp_path):
    encoder = Table().fit({"a": [False, True], "b": [True, False]})
    names = ('yes, "really"', "no\nway")
    identity_circuit(encoder, names).save(tmp_path / "m.gate")
    path = write(tmp_path / "x.csv", [["a", "b"], [1, 0], [0, 1]], newline="\r\n")
    assert list(csv.reader(io.StringIO(gatefit("predict", tmp_path / "m.gate", path).out))) == [[n] for n in names]


def test_regression_gives_values(gatefit, tmp_path):
    Circuit(2, np.array([Gate.AND]), np.array([[0], [1]]), np.array([0, 2]), Affine(2, 0, 0.5, 1.0)).save(
        tmp_path / "m.gate"
    )
    path = write(tmp_path / "x.csv", [["x0", "x1"], [0, 1], [1, 0], [1, 1]])
    assert gatefit("predict", tmp_path / "m.gate", path).out.split() == ["1.0", "1.5", "2.0"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; it needs a header and one line a sample"),
        ("age,code,size\n20,007,1\n", "has no column member; the circuit's encoder needs 4 columns, found by name"),
        ("age,code,size,member\n20,007,1\n", "line 2: 3 cells, the first line has 4"),
        ("age,code,size,member\n20,007,1,1\nold,007,1,1\n", "line 3: column 'age' needs numbers, got 'old'"),
        ("age,code,size,member\n20,007,1,maybe\n", "line 2: column 'member' needs 0 or 1, got 'maybe'"),
        ("age,age,size,member\n20,007,1,1\n", "more than one column is called age"),
        ("20,7,1,1\n30,7,1,1\n", "the first line holds numbers, not names; add a header, or say --no-header"),
        ('age,code,size,member\n20,"007,1,1\n', "is not a CSV file in UTF-8"),
    ],
)
def test_bad_tables_are_refused_with_their_place(refused, table_model, tmp_path, text, message):
    path = tmp_path / "x.csv"
    path.write_text(text)
    told = refused("predict", table_model, path)
    assert message in told
    assert str(path) in told


def test_bytes_that_are_not_text_are_refused(refused, table_model, tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"age,code\n\xff\xfe\n")
    assert "is not a CSV file in UTF-8" in refused("predict", table_model, path)


def test_bits_must_be_bits_and_as_many_as_the_circuit_reads(refused, model, tmp_path):
    wide = write(tmp_path / "wide.csv", [[0] * 18])
    assert "has 18 columns, the circuit needs 17" in refused("predict", model, wide, "--bits", "--no-header")
    two = write(tmp_path / "two.csv", [[2] + [0] * 16])
    assert "needs bits (0 or 1), got '2'" in refused("predict", model, two, "--bits", "--no-header")


def test_existing_output_is_refused_unless_told(gatefit, refused, model, tmp_path):
    out, data = tmp_path / "out.csv", monks_csv(tmp_path / "x.csv")
    out.write_text("mine")
    assert "exists; choose another --out" in refused("predict", model, data, "--out", out)
    assert out.read_text() == "mine"
    assert gatefit("predict", model, data, "--out", out, "--overwrite").code == 0
    assert len(out.read_text().splitlines()) == 432


@pytest.mark.parametrize("word", ["NA", "N/A", "nan", "NULL", "None", "<NA>", "?", ""])
def test_words_for_missing_values(gatefit, table_model, tmp_path, word):
    rows = [["age", "code", "size", "member"], [20, "007", 1, "true"], [word, word, word, word]]
    _, scores = scores_of(gatefit("predict", table_model, write(tmp_path / "x.csv", rows), "--scores"))
    encoder = Circuit.load(table_model).encoder
    missing = {"age": [np.nan], "code": [None], "size": [None], "member": [None]}
    assert scores[1].tolist() == encoder.transform(missing)[0].astype(int).tolist()
    assert scores[1].sum() == 1  # "age missing": no other column had missing values


def test_a_category_that_looks_like_a_missing_value_stays_one(gatefit, tmp_path):
    encoder = Table().fit({"country": ["NA", "ZA", "NA", None], "x": [1, 2, 3, 4]})
    identity_circuit(encoder).save(tmp_path / "m.gate")
    file = write(tmp_path / "x.csv", [["country", "x"], ["NA", 0], ["n/a", 0]])
    _, scores = scores_of(gatefit("predict", tmp_path / "m.gate", file, "--scores"))
    names = list(encoder.names)
    assert scores[:, [names.index("country = NA"), names.index("country missing")]].tolist() == [[1, 0], [0, 1]]


def test_an_encoder_without_missing_values_says_so(refused, tmp_path):
    encoder = Thermometer(2).fit({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0]})
    identity_circuit(encoder).save(tmp_path / "m.gate")
    file = write(tmp_path / "x.csv", [["a", "b"], [1, 2], [], [2, "NA"]])
    message = refused("predict", tmp_path / "m.gate", file)
    assert message == (
        f"{file}, line 4: column 'b' is missing ('NA'), and the circuit's encoder (thermometer) takes no "
        f"missing values; fill it in, or train with a table encoder"
    )


@pytest.mark.parametrize("separator", [";", "\t", "|"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_other_separators_are_found(gatefit, table_model, tmp_path, separator, quote):
    rows = [["age", "code", "size", "member"], [20, "007", 1, "true"], [35, "8", 2, "false"]]
    commas = scores_of(gatefit("predict", table_model, write(tmp_path / "x.csv", rows), "--scores"))
    other = tmp_path / "y.csv"
    other.write_text("\n".join(separator.join(f"{quote}{cell}{quote}" for cell in row) for row in rows) + "\n")
    names, scores = scores_of(gatefit("predict", table_model, other, "--scores"))
    assert (names, scores.tolist()) == (commas[0], commas[1].tolist())


def test_decimal_commas_and_uneven_lines_are_told(refused, table_model, tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("age;code;size;member\n20,5;007;1;true\n")
    assert refused("predict", table_model, file).endswith("needs numbers, got '20,5'; write decimals with a point")
    file.write_text("age,code,size,member\n20,007,1,true,1\n")
    assert "line 2: 5 cells, the first line has 4 (separated by commas)" in refused("predict", table_model, file)


def test_json_has_the_labels_and_csv_the_names(gatefit, tmp_path):
    circuit = replace(identity_circuit(Table().fit({"a": [0, 1]})), readout=GroupSum([1], [0, 0]), labels=[False, True])
    replace(circuit, class_names=("no", "yes")).save(tmp_path / "m.gate")
    file = write(tmp_path / "x.csv", [["a"], [0], [1]])
    assert gatefit("predict", tmp_path / "m.gate", file).out == "no\nyes\n"
    assert gatefit("predict", tmp_path / "m.gate", file, "--json").json["predictions"] == [False, True]

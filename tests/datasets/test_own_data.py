"""Files of users: what is read of them, what is refused, and with which sentence."""

import datetime

import numpy as np
import pytest

from gatefit.datasets.delimited import Csv
from gatefit.datasets.files import DatasetError
from gatefit.datasets.own_data import prepare, target_values
from gatefit.datasets.own_files import content_digest, read_table
from gatefit.encoders import Table
from gatefit.encoders.frames import NamedColumns, take


def csv(path, names, rows, separator=","):
    lines = [separator.join(names), *(separator.join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def people(path, rows=40, separator=",", extra=lambda i: []):
    """Ages, a colour, a truth value and what is to be learned."""
    cells = [
        [20 + i, ("red", "green", "NA")[i % 3], ("true", "False")[i % 2], *extra(i), ("no", "yes")[i % 20 < 10]]
        for i in range(rows)
    ]
    extras = [f"extra{k}" for k in range(len(extra(0)))]
    return csv(path, ["age", "colour", "member", *extras, "buys"], cells, separator)


def refusal(path, target="buys", **options):
    with pytest.raises(DatasetError) as error:
        prepare(read_table(path, target=target), target, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_a_csv_file_is_read_by_what_its_cells_hold(tmp_path, separator):
    found = prepare(read_table(people(tmp_path / "people.csv", separator=separator)), "buys")
    assert [(c.name, c.holds, c.distinct, c.missing) for c in found.columns] == [
        ("age", "numbers", 40, 0),
        ("colour", "categories", 2, 13),
        ("member", "Booleans", 2, 0),
    ]
    assert (found.task, found.why) == ("classification", "words")
    assert found.class_counts() == [("no", 20), ("yes", 20)]
    assert found.x["age"].dtype == np.int64
    assert found.x["colour"][:3] == ["red", "green", None]
    assert found.x["member"].tolist()[:2] == [True, False]


def test_rows_without_a_target_are_dropped_and_said(tmp_path):
    path = csv(tmp_path / "x.csv", ["a", "y"], [(i, ("p", "q", "?")[i % 3]) for i in range(30)])
    found = prepare(read_table(path), "y")
    assert found.dropped == ((10, "no y"),)
    assert found.rows.tolist() == [i for i in range(30) if i % 3 < 2]
    assert found.x["a"].tolist() == found.rows.tolist()


@pytest.mark.parametrize(
    ("targets", "asked", "task"),
    [
        (["a", "b"], None, "classification"),
        (["true", "false"], None, "classification"),
        ([1, 2, 3], None, "classification"),
        ([1, 2, 3], "regression", "regression"),
        (list(range(30)), None, "regression"),
        (list(range(30)), "classification", "classification"),
        ([1.5, 2.5], None, "regression"),
    ],
)
def test_the_task_follows_from_the_target_unless_it_is_said(tmp_path, targets, asked, task):
    path = csv(tmp_path / "x.csv", ["a", "y"], [(i, targets[i % len(targets)]) for i in range(90)])
    assert prepare(read_table(path), "y", task=asked).task == task


def test_a_target_that_is_not_there_names_the_nearest(tmp_path):
    path = people(tmp_path / "people.csv")
    assert refusal(path, "Buyz").startswith(f"{path} has no column 'Buyz'; did you mean 'buys'? the columns are age, ")
    assert "say which column" in refusal(path, None)


def test_a_file_that_is_not_there_names_the_nearest(tmp_path):
    people(tmp_path / "people.csv")
    with pytest.raises(DatasetError, match=r"there is no file .*peopel\.csv; did you mean .*people\.csv\?"):
        read_table(tmp_path / "peopel.csv")


def test_a_column_with_one_value_makes_no_bits(tmp_path):
    found = prepare(read_table(people(tmp_path / "x.csv", extra=lambda i: ["same", "", 7])), "buys")
    assert [(c.name, c.holds, c.distinct) for c in found.columns[3:]] == [
        ("extra0", "categories", 1),
        ("extra1", "missing values only", 0),
        ("extra2", "numbers", 1),
    ]
    encoder = Table().fit(found.x)
    assert not {rule.feature for rule in encoder.rules} & {3, 4, 5}


def test_a_target_of_one_value_is_refused(tmp_path):
    path = csv(tmp_path / "x.csv", ["a", "y"], [(i, "p") for i in range(9)])
    assert refusal(path, "y") == f"{path}: the target 'y' is 'p' in every row; there is nothing to learn"
    assert "there is nothing to learn" in refusal(path.with_name("x.csv"), "y", task="classification")
    csv(path, ["a", "y"], [(i, 1.5) for i in range(9)])
    assert "nothing to learn" in refusal(path, "y")


def test_a_class_of_one_row_is_refused_with_its_line(tmp_path):
    path = csv(tmp_path / "x.csv", ["a", "y"], [(i, "odd" if i == 6 else "pq"[i % 2]) for i in range(9)])
    assert refusal(path, "y").startswith(f"{path}, line 8: class 'odd' of 'y' has one row only")


@pytest.mark.parametrize("written", ["2024-05-{:02}", "2024-05-{:02}T10:30", "{:02}.05.2024", "{}/5/24", "10:{:02}"])
def test_dates_are_refused_with_their_line(tmp_path, written):
    path = people(tmp_path / "x.csv", rows=20, extra=lambda i: [written.format(1 + i)])
    said = refusal(path)
    assert said.startswith(f"{path}, line 2: column 'extra0' holds dates or times (")
    assert "--column extra0=drop" in said
    assert prepare(read_table(path), "buys", choices={"extra0": "category"}).columns[3].distinct == 20


def test_free_text_is_refused_with_its_line(tmp_path):
    path = people(tmp_path / "x.csv", rows=60, extra=lambda i: [f"a remark of number {i} that goes on and on"])
    said = refusal(path)
    assert said.startswith(f"{path}, line 2: column 'extra0' holds free text or names: 60 different words in 60 rows")
    assert "category:100" in said
    found = prepare(read_table(path), "buys", choices={"extra0": "drop"})
    assert list(found.x) == ["age", "colour", "member"]
    assert found.columns[3].choice == "drop"


def test_very_many_categories_are_refused_and_fewer_are_kept(tmp_path):
    path = csv(tmp_path / "x.csv", ["id", "y"], [(f"k{i}", "pq"[i % 2]) for i in range(30_000)])
    assert "30,000 different words in 30,000 rows" in refusal(path, "y")
    assert "names or free text, not classes" in refusal(path, "id")
    csv(path, ["id", "y"], [(f"k{i % 400}", "pq"[i % 2]) for i in range(2_000)])
    found = prepare(read_table(path), "y")
    assert Table().fit(found.x).bits == 256


def test_a_stray_word_among_numbers_is_refused_with_its_line(tmp_path):
    path = csv(tmp_path / "x.csv", ["a", "y"], [("12,5x" if i == 5 else i, "pq"[i % 2]) for i in range(1)])
    rows = [("about 30" if i == 57 else i, "pq"[i % 2]) for i in range(100)]
    csv(path, ["a", "y"], rows)
    assert refusal(path, "y").startswith(f"{path}, line 59: column 'a' holds numbers, but here 'about 30'; correct it")
    few = [("3+" if i % 9 == 0 else i % 3, "pq"[i % 2]) for i in range(100)]
    csv(path, ["a", "y"], few)
    assert prepare(read_table(path), "y").columns[0].holds == "categories"


def test_infinite_numbers_are_refused_with_their_line(tmp_path):
    path = csv(tmp_path / "x.csv", ["a", "y"], [("inf" if i == 3 else i, "pq"[i % 2]) for i in range(30)])
    assert refusal(path, "y").startswith(f"{path}, line 5: column 'a' is infinite")


def test_a_line_with_other_cells_is_refused(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,y\n1,p\n2,q,r\n")
    assert refusal(path, "y") == f"{path}, line 3: 3 cells, the first line has 2 (separated by commas)"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.csv", b"PAR1....", "its content is a Parquet file; call it x.parquet"),
        ("x.csv", b"PK\x03\x04....xl/workbook.xml", "its content is an Excel workbook; save it as CSV in UTF-8"),
        ("x.csv", b"PK\x03\x04....", "its content is an .npz or zip archive; call it x.npz"),
        ("x.csv", b"\x89PNG\r\n", "its content is an image"),
        ("x.csv", b"a,b\n1,\x002\n", "its content is a binary file"),
        ("x.parquet", b"a,b\n1,2\n", "and its content is text; if it is a table, call it .csv"),
        ("x.npy", b"a,b\n1,2\n", "and its content is text"),
        ("x.npz", b"", "and its content is empty"),
        ("x.xlsx", b"PK\x03\x04", "save the sheet as CSV first"),
        ("x.csv.gz", b"\x1f\x8b", "unpack it first"),
        ("x.csv", b"", "is empty; it needs a header and one line a sample"),
        ("x.csv", b"a,y\n", "has no rows under its header"),
        ("x.csv", "ä,y\n1,2\n".encode("latin-1"), "is not a CSV file in UTF-8"),
        ("x.parquet", b"PAR1" + bytes(40), "cannot be read as Parquet"),
        ("x.npy", b"\x93NUMPY\x01\x00" + bytes(4), "is damaged"),
    ],
)
def test_a_file_that_is_not_what_its_suffix_says(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_bytes(content)
    assert said in refusal(path, "y")
    assert str(path) in refusal(path, "y")


def test_parquet_has_the_types_of_its_columns(tmp_path):
    polars = pytest.importorskip("polars")
    frame = {"n": [1, 2, None, 4] * 5, "c": ["a", "b", None, "a"] * 5, "y": ["p", "q"] * 10}
    path = tmp_path / "x.parquet"
    polars.DataFrame(frame).write_parquet(path)
    found = prepare(read_table(path), "y")
    assert [(c.holds, c.missing) for c in found.columns] == [("numbers", 5), ("categories", 5)]
    polars.DataFrame({**frame, "when": [datetime.date(2024, 1, 1)] * 20}).write_parquet(path)
    assert "column 'when' holds Date values, which have no encoding" in refusal(path, "y")
    assert prepare(read_table(path), "y", choices={"when": "drop"}).x.shape == (20, 2)


def test_parquet_without_a_reader_says_what_to_install(tmp_path, monkeypatch):
    import importlib.util
    import sys

    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1" + bytes(40))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *_: None)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(
        ImportError, match=r"needs polars, which is not installed; run: pip install 'gatefit\[parquet\]'"
    ):
        read_table(path)


def test_numpy_files(tmp_path):
    x = np.arange(60.0).reshape(20, 3)
    np.save(tmp_path / "x.npy", np.column_stack([x, np.arange(20) % 2]))
    found = prepare(read_table(tmp_path / "x.npy"), "-1")
    assert (found.target, found.task) == ("x3", "classification")
    assert np.array_equal(found.x, x)
    np.savez(tmp_path / "x.npz", data=x, kind=np.array(["p", "q"] * 10), id=np.arange(20))
    found = prepare(read_table(tmp_path / "x.npz", target="kind"), "kind")
    assert np.array_equal(found.x, x)
    assert found.class_counts() == [("p", 10), ("q", 10)]
    np.savez(tmp_path / "x.npz", a=np.arange(20), b=np.arange(20.0), y=np.arange(20) % 2)
    assert list(prepare(read_table(tmp_path / "x.npz", target="y"), "y").x) == ["a", "b"]
    images = np.zeros((20, 4, 5), dtype=np.uint8)
    images[:10, 1] = 200
    np.savez(tmp_path / "x.npz", x=images, y=np.arange(20) // 10)
    found = prepare(read_table(tmp_path / "x.npz", target="y"), "y")
    assert found.x.shape == (20, 20)
    assert found.table.image_shape == (4, 5, 1)


def test_numpy_files_that_cannot_be_used(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, x=np.zeros((4, 2)), y=np.zeros(5))
    assert "y has 5 values, x has 4 samples" in refusal(path, "y")
    assert "has no array 'z' of one value a sample; the columns are y; it holds x (4, 2), y (5,)" in refusal(path, "z")
    np.savez(path, x=np.array([{}, {}]), y=np.zeros(2))
    assert "holds Python objects, which only pickle can read" in refusal(path, "y")
    np.save(tmp_path / "x.npy", np.zeros((2, 2, 2, 2, 2)))
    assert "needs samples by features" in refusal(tmp_path / "x.npy", "0")


def picture(path, size=(6, 5), value=0, mode="L"):
    image = pytest.importorskip("PIL.Image")
    path.parent.mkdir(parents=True, exist_ok=True)
    image.new(mode, size, value).save(path)


def test_a_folder_of_images_with_a_folder_a_class(tmp_path):
    for i in range(4):
        picture(tmp_path / "cats" / f"{i}.png", value=10 * i)
        picture(tmp_path / "dogs" / "more" / f"{i}.png", value=200)
    (tmp_path / "dogs" / "notes.txt").write_text("good ones")
    table = read_table(tmp_path)
    found = prepare(table)
    assert (found.target, found.task) == ("class", "classification")
    assert found.class_counts() == [("cats", 4), ("dogs", 4)]
    assert found.x.shape == (8, 30)
    assert found.x[3, 0] == 30
    assert table.image_shape == (5, 6, 1)
    assert table.remarks == ("1 files left out: their names do not say that they are images",)
    picture(tmp_path / "dogs" / "red.png", value=(250, 0, 0), mode="RGB")
    assert prepare(read_table(tmp_path)).x.shape == (9, 90)
    before = content_digest(tmp_path)
    picture(tmp_path / "dogs" / "red.png", value=(251, 0, 0), mode="RGB")
    assert content_digest(tmp_path) != before


def test_images_that_cannot_be_used(tmp_path):
    picture(tmp_path / "a.png")
    assert "needs a folder for each class" in refusal(tmp_path, None)
    picture(tmp_path / "cats" / "1.png")
    picture(tmp_path / "dogs" / "1.png", size=(7, 5))
    said = refusal(tmp_path, None)
    assert said.startswith(f"{tmp_path / 'dogs' / '1.png'} has 7 x 5 pixels, {tmp_path / 'cats' / '1.png'} has 6 x 5")
    (tmp_path / "dogs" / "1.png").write_text("woof")
    assert f"{tmp_path / 'dogs' / '1.png'} is not an image that can be read" in refusal(tmp_path, None)
    (tmp_path / "dogs" / "1.png").unlink()
    assert refusal(tmp_path, None) == f"{tmp_path / 'dogs'} holds no images; put some into it, or remove the folder"


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"agee": "drop"}, "has no column 'agee'; did you mean 'age'?"),
        ({"buys": "drop"}, "is about the target"),
        ({"age": "squares"}, "a column can be thresholds, category, bits, drop, thresholds:N or category:N"),
        ({"age": "thresholds:none"}, "thresholds:N"),
        ({"age": "bits:2"}, "thresholds:N"),
        ({"age": "drop", "colour": "drop", "member": "drop"}, "has no column but the target 'buys' to learn from"),
    ],
)
def test_choices_that_cannot_be_made(tmp_path, choices, said):
    assert said in refusal(people(tmp_path / "x.csv"), choices=choices)


def test_a_file_without_header_counts_its_columns(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("".join(f"{'pq'[i % 2]},{i},{i % 5}\n" for i in range(20)))
    found = prepare(read_table(path, header=False), "0", choices={"x2": "category"})
    assert list(found.x) == ["x0", "x1"]
    assert found.choices == {"x1": "category"}
    assert found.target == "x0"
    with pytest.raises(DatasetError, match="count them from 0"):
        prepare(read_table(path, header=False), "7")


@pytest.mark.parametrize(
    ("labels", "cells", "numbers"),
    [
        (np.array(["1", "2"], dtype=object), ["1", "2", "3", "NA"], [0, 1, -1]),
        (np.array([1, 2]), ["1", "2.0", "x", ""], [0, 1, -1]),
        (np.array([False, True]), ["true", "FALSE", "maybe", "?"], [1, 0, -1]),
        (np.array(["NA", "b"], dtype=object), ["NA", "b", "null"], [0, 1]),
    ],
)
def test_targets_are_read_as_what_the_labels_are(tmp_path, labels, cells, numbers):
    path = csv(tmp_path / "x.csv", ["a", "y"], [(i, cell) for i, cell in enumerate(cells)])
    rest, rows, found = target_values(Csv(path), "y", labels)
    assert found.tolist() == numbers
    assert rest.names == ["a"]
    assert len(rows) == len(numbers)


def test_named_columns_are_a_small_data_frame():
    columns = NamedColumns({"a": np.arange(4), "b": ["p", None, "q", "p"]})
    some = take(columns, np.array([0, 2]))
    assert (some["a"].tolist(), some["b"], some.shape) == ([0, 2], ["p", "q"], (2, 2))
    assert take(columns, slice(1, 3))["b"] == [None, "q"]
    encoder = Table().fit(columns)
    assert encoder.feature_names == ("a", "b")
    assert np.array_equal(encoder.transform(some), encoder.transform(columns)[[0, 2]])
    with pytest.raises(ValueError, match="columns of one length"):
        NamedColumns({"a": [1], "b": [1, 2]})

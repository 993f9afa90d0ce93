"""Files of users as the features that a circuit's encoder reads.

    the encoder's rules say what a column holds      >  numbers      =  its categories      bit  true or false

No guessing: "007" stays text where the encoder knows the category "007", and is a number where it compares numbers. A
word for a missing value ("NA") is a missing value, unless the encoder knows it as a category. Files that are not text
(Parquet, npz, images) say themselves what their columns hold.
"""

from typing import TYPE_CHECKING, Any, Final

from gatefit.datasets.delimited import Csv, is_missing_word
from gatefit.datasets.files import DatasetError
from gatefit.datasets.raw_table import RawTable

if TYPE_CHECKING:
    import numpy as np

    from gatefit.circuit.ir import Circuit
    from gatefit.encoders import Encoder

__all__ = ["Csv", "read_bits", "read_features"]

_BITS: Final = {"0": False, "1": True, "false": False, "true": True, "0.0": False, "1.0": True}


def read_features(table: RawTable, encoder: "Encoder") -> dict[str, Any]:
    """The columns that ``encoder`` reads, by name, each converted to what its rules compare it with."""
    import numpy as np

    from gatefit.encoders.base import default_names

    names = encoder.feature_names
    columns = table.select(names, "the circuit's encoder", by_name=names != default_names(encoder.features))
    if not isinstance(table, Csv):
        return dict(zip(names, columns, strict=True))
    categories: list[dict[str, Any]] = [{} for _ in names]
    tests: list[set[str]] = [set() for _ in names]
    for rule in encoder.rules:
        tests[rule.feature].add(rule.test)
        if rule.test == "=":
            categories[rule.feature][str(rule.value)] = rule.value
    features: dict[str, Any] = {}
    for name, column, known, compared in zip(names, columns, categories, tests, strict=True):
        if not encoder.takes_missing:
            table.refuse_missing(column, name, encoder)
        if ">" in compared:
            numbers = table.convert(column, name, _number, "numbers")
            features[name] = np.array(numbers, dtype=np.float64)
        elif "bit" in compared:
            features[name] = table.convert(column, name, _bit, "0 or 1")
        elif known:
            features[name] = [_category(text.strip(), known) for text in column]
        else:
            features[name] = _numbers_or_text(column)
    return features


def read_bits(table: RawTable, circuit: "Circuit") -> "np.ndarray":
    """A file that holds the circuit's input bits themselves."""
    import numpy as np

    names = circuit.input_names or tuple(f"x{i}" for i in range(circuit.inputs))
    columns = table.select(names, "the circuit", by_name=bool(circuit.input_names))
    bits = np.empty((table.samples, len(names)), dtype=np.bool_)
    for i, (name, column) in enumerate(zip(names, columns, strict=True)):
        if isinstance(table, Csv):
            bits[:, i] = table.convert(column, name, _whole_bit, "bits (0 or 1)")
        else:
            bits[:, i] = _true_or_false(column, name, table)
    return bits


def _true_or_false(column: Any, name: str, table: RawTable) -> "np.ndarray":
    import numpy as np

    values = np.asarray(column)
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(~np.isin(values, (0, 1)))
    if wrong.size:
        row = int(wrong[0])
        raise DatasetError(f"{table.where(row)}: column {name!r} needs bits (0 or 1), got {values[row].item()!r}")
    return values.astype(np.bool_)


def _number(text: str) -> float:
    return float("nan") if is_missing_word(text) else float(text)


def _bit(text: str) -> bool | None:
    return None if is_missing_word(text) else _whole_bit(text)


def _whole_bit(text: str) -> bool:
    if text.lower() not in _BITS:
        raise ValueError(text)
    return _BITS[text.lower()]


def _category(text: str, known: dict[str, Any]) -> Any:
    """The category that ``text`` stands for; what is not known is kept, as text or as the number it is."""
    if text in known:
        return known[text]
    if is_missing_word(text):
        return None
    if all(isinstance(value, str) for value in known.values()):
        return text
    if text.lower() in _BITS and any(isinstance(value, bool) for value in known.values()):
        return _BITS[text.lower()]
    try:
        return float(text)
    except ValueError:
        return text


def _numbers_or_text(column: list[str]) -> list[Any]:
    try:
        return [_number(text.strip()) for text in column]
    except ValueError:
        return [None if is_missing_word(text.strip()) else text.strip() for text in column]

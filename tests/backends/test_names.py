"""Names from outside: whatever they are, they stay what they are, names."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatefit.backends.names import (
    C_KEYWORDS,
    VERILOG_KEYWORDS,
    bit_names,
    c_string,
    class_names,
    comment_text,
    given_names,
    identifiers,
    quoted,
    require_identifier,
)
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import GroupSum
from gatefit.encoders import Threshold

HOSTILE = st.text() | st.text(alphabet='*/\\?"\n\r\0 ab??/<>é\u202e', max_size=30)


@given(HOSTILE)
def test_comment_text_cannot_leave_a_comment(name):
    text = comment_text(name)
    assert re.fullmatch(r"[ -~]*", text)
    assert not re.search(r"\*|\\|\?\?", text)


def test_comment_text_keeps_what_is_harmless():
    assert comment_text('age > 37.5 "years" / decade?') == 'age > 37.5 "years" / decade?'
    assert comment_text("a*/b\nc\\") == "a<U+002A>/b<U+000A>c<U+005C>"
    assert comment_text("é\U0001f600") == "<U+00E9><U+1F600>"
    assert len(comment_text("a" * 10_000)) < 200


def decode(literal: str) -> bytes:
    """A C string literal read as a C compiler reads it."""
    assert re.fullmatch(r'"(?:[ !#-\[\]-~]|\\[0-7]{3})*"', literal)
    return re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), literal[1:-1].encode())


@given(HOSTILE)
def test_c_string_is_the_name_in_utf8(name):
    literal = c_string(name)
    assert "?" not in literal
    assert decode(literal) == name.encode("utf-8", errors="replace")


def test_c_string_is_cut_between_characters():
    assert len(decode(c_string("é" * 5000)).decode()) == 2000
    assert decode(c_string("\ud800")) == b"?"


@given(HOSTILE)
def test_quotes_of_a_drawing_are_closed_by_their_last_character_only(name):
    assert re.fullmatch(r'"(?:[^"\\\n]|\\.)*"', quoted(name))


@given(st.lists(HOSTILE, max_size=20))
def test_identifiers_are_valid_and_different(names):
    for keywords in (C_KEYWORDS, VERILOG_KEYWORDS):
        result = identifiers(names, keywords, taken=("clk", "x"))
        assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) for name in result)
        assert len({name.lower() for name in result} | {"clk", "x"}) == len(names) + 2
        assert not keywords & set(result)


def test_identifiers_resemble_their_names():
    names = ("age > 37.5", "age > 37.5", "Age < 37_5", "module", "3d", "", "x", "_a__b_", "always_FF")
    expected = ("age_37_5", "age_37_5_2", "Age_37_5_3", "x_module", "x_3d", "x_2", "x_3", "a_b", "x_always_FF")
    assert identifiers(names, VERILOG_KEYWORDS, taken=("x",)) == expected


def test_many_equal_names_take_linear_time():
    assert len(set(identifiers(["a"] * 50_000, C_KEYWORDS))) == 50_000


@pytest.mark.parametrize("name", ["", "1a", "a b", "_a", "a-b", "a;b", "int", "é", "a\n", "a" * 64])
def test_names_chosen_by_the_user_are_refused_rather_than_changed(name):
    with pytest.raises(ValueError, match="cannot name anything in C; use a letter"):
        require_identifier(name, C_KEYWORDS, "C")
    assert require_identifier("model_2", C_KEYWORDS, "C") == "model_2"


def test_names_of_a_circuit():
    fields = {"inputs": 2, "gates": [], "operands": np.empty((2, 0), int), "outputs": [0, 1]}
    plain = Circuit(**fields, readout=GroupSum([0, 1], [0, 0]))
    assert given_names(plain) == ()
    assert bit_names(plain) == ("x0", "x1")
    assert class_names(plain) == ("0", "1")
    encoder = Threshold(0.5).fit(np.zeros((1, 2)), feature_names=["a", "b"])
    encoded = Circuit(**fields, readout=GroupSum([0, 1], [0, 0]), encoder=encoder, class_names=("no", "yes"))
    assert bit_names(encoded) == ("a > 0.5", "b > 0.5")
    assert class_names(encoded) == ("no", "yes")
    named = Circuit(**fields, readout=GroupSum([0, 1], [0, 0]), encoder=encoder, input_names=("p", "q"))
    assert bit_names(named) == ("p", "q")

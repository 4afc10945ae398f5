"""Values that are small to send but expensive to process."""

import json
from decimal import Decimal
from typing import Literal, NamedTuple

import pytest

from promptkit import user
from promptkit.catalog.completion import rank
from promptkit.errors import ArgumentsError
from promptkit.types import choices
from promptkit.types.errors import MAX_ERRORS, ConversionError
from promptkit.types.parsing import reader_for
from tests.laws.test_hostile_arguments import CATALOG, TYPES, render_or_error

pytestmark = pytest.mark.timeout(20)

DIGITS = 10**10_000
MANY = 200_000


class TestDigits:
    @pytest.mark.parametrize(
        "value", [DIGITS, -DIGITS, [DIGITS], {"x": DIGITS}], ids=["plus", "minus", "list", "dict"]
    )
    @pytest.mark.parametrize("name", TYPES)
    def test_error_for_a_huge_number_is_short(self, name, value):
        """The error for a number with very many digits is short and readable."""
        result = render_or_error(name, value)

        if isinstance(result, ArgumentsError):
            assert len(str(result)) < 300
            assert "Exceeds the limit" not in str(result)

    def test_size_of_a_huge_number_is_in_bits(self):
        """The error gives the size of a huge number in bits, which needs no conversion to digits."""
        assert "is a whole number of 33,220 bits, not a list" in str(render_or_error("words", DIGITS))

    @pytest.mark.parametrize("value", ["1E+999999999", "1E-999999999", "-1E+4301"])
    def test_huge_decimal_is_rejected(self, value):
        """
        A decimal with too large an exponent is rejected, because writing it out, as f-strings can, would
        exhaust memory.
        """
        (error,) = render_or_error("Decimal", value).errors

        assert error.reason == "has more than 4,300 digits: send a number with fewer digits"

    @pytest.mark.parametrize("value", ["1E+4300", "1E-4300", "0E+999999999", "3.14"])
    def test_ordinary_decimal_is_accepted(self, value):
        """Decimals of ordinary size are read."""
        assert render_or_error("Decimal", value) == user("Decimal")


class TestErrors:
    @pytest.mark.parametrize(
        ("name", "make"),
        [
            ("numbers", lambda: "x," * MANY),
            ("numbers", lambda: json.dumps(["x"] * MANY)),
            ("words", lambda: json.dumps([True] * MANY)),
            ("sizes", lambda: json.dumps({f"k{i}": "x" for i in range(MANY)})),
            ("by_number", lambda: json.dumps({f"k{i}": "x" for i in range(MANY)})),
            ("either", lambda: json.dumps(["x"] * MANY)),
        ],
        ids=["separated", "list", "words that are flags", "values", "keys", "union"],
    )
    def test_number_of_reported_errors_is_limited(self, name, make):
        """
        Of very many errors only the first ones are reported; all of them would take minutes and megabytes.
        """
        with pytest.raises(ArgumentsError) as caught:
            CATALOG.render(name, {"value": make()})

        assert MAX_ERRORS <= len(caught.value.errors) <= 2 * MAX_ERRORS

    def test_number_of_reported_unknown_arguments_is_limited(self):
        """
        Of very many unknown arguments only the first are reported, because each is compared with all known
        names.
        """
        with pytest.raises(ArgumentsError) as caught:
            CATALOG.render("str", {"value": "x", **{f"v{i}": "x" for i in range(MANY)}})

        assert len(caught.value.errors) == MAX_ERRORS

    def test_argument_after_many_unknown_ones_is_read(self):
        """An argument that follows many unknown ones is not reported as missing."""
        with pytest.raises(ArgumentsError) as caught:
            CATALOG.render("str", {**{f"v{i}": "x" for i in range(2 * MAX_ERRORS)}, "value": "x"})

        assert {error.reason for error in caught.value.errors} == {"is not an argument of this prompt"}

    def test_path_of_an_error_does_not_repeat_a_long_key(self):
        """The paths of many errors do not each repeat one long key."""
        with pytest.raises(ConversionError) as caught:
            reader_for(dict[str, list[int]]).read({"k" * 1_000_000: ["x"] * MANY})

        assert max(len(part.path) for part in caught.value.parts) < 300

    @pytest.mark.parametrize("frames", range(8))
    def test_too_deep_nesting_is_one_error(self, frames):
        """Too deep nesting gives one error from promptkit, not from Python, wherever the stack overflows."""
        (error,) = call_below(frames, lambda: render_or_error("Tree", nested_tree(2000))).errors

        assert error.reason == "is nested too deeply"

    def test_no_suggestion_for_a_value_of_another_member(self, monkeypatch):
        """In a union, no suggestion is computed while another member may still accept the value."""
        monkeypatch.setattr(choices, "nearest", lambda *_: pytest.fail("a suggestion was computed"))

        assert reader_for(list[Literal["red", "green"] | int]).read("1, 2, red") == [1, 2, "red"]


def call_below(frames, function):
    """Call a function *frames* stack frames deeper."""
    return call_below(frames - 1, function) if frames else function()


def nested_tree(depth):
    """Return a tree that is *depth* levels deep."""
    tree = {"name": "leaf", "children": []}
    for _ in range(depth):
        tree = {"name": "branch", "children": [tree]}
    return tree


class TestPatterns:
    @pytest.mark.parametrize("end", ["x", "e", ".."], ids=["letter", "exponent", "points"])
    @pytest.mark.parametrize("annotation", [Decimal, dict[str, Decimal], list[list[Decimal]]], ids=str)
    @pytest.mark.timeout(5)
    def test_digits_with_an_invalid_end_are_rejected_quickly(self, annotation, end):
        """Digits with an invalid end are rejected without backtracking."""
        digits = "1" * 200_000 + end
        sent = {Decimal: digits, dict[str, Decimal]: {"a": digits}, list[list[Decimal]]: [[digits]]}

        with pytest.raises(ConversionError):
            reader_for(annotation).read(sent[annotation])

    @pytest.mark.parametrize("text", ["0.", "0.5", ".5", "5.", "5", "-5.25e3", "+1E-2"])
    def test_number_can_start_or_end_with_the_point(self, text):
        """A number can start or end with its decimal point."""
        assert reader_for(dict[str, Decimal]).read({"a": text}) == {"a": Decimal(text)}

    def test_zero_with_a_huge_exponent(self):
        """A zero with a huge exponent is read as plain zero, whose text is short."""
        zero = reader_for(Decimal).read("0E-999999999")

        assert f"{zero:f}" == "0"

    def test_too_many_decimal_places_are_rejected(self):
        """A number with very many decimal places is rejected."""
        with pytest.raises(ConversionError) as caught:
            reader_for(Decimal).read("0." + "1" * 10_000)

        assert caught.value.reason == "has more than 4,300 digits: send a number with fewer digits"

    @pytest.mark.parametrize(
        "typed", ["a b" * 100_000, "x" * 1_000_000, "ab " * 100_000 + "c"], ids=["words", "letters", "end"]
    )
    @pytest.mark.timeout(10)
    def test_long_values_are_ranked_quickly(self, typed):
        """Ranking very long completion values is fast."""
        assert rank([f"notes/{typed}", typed[::-1], typed, "abc"], typed)[0] == typed


class TestArrays:
    def test_all_errors_of_a_named_tuple_are_reported(self):
        """All errors of a named tuple are reported, each with its path."""
        with pytest.raises(ConversionError) as caught:
            reader_for(Row).read('["a", ["x", 1, "y"], 2]')

        assert [(part.path, part.expected) for part in caught.value.parts] == [
            (".number", "a whole number"),
            (".sizes[0]", "a number"),
            (".sizes[2]", "a number"),
            (".name", "text"),
        ]

    @pytest.mark.parametrize("sent", ["[]", "[1]", '[1, [], "a", 2]'], ids=repr)
    def test_array_of_another_shape_is_rejected(self, sent):
        """An array that is too short or too long is rejected."""
        with pytest.raises(ConversionError) as caught:
            reader_for(Row).read(sent)

        assert [part.expected for part in caught.value.parts] == ["a list of number, sizes, name"]

    def test_omitted_fields_have_defaults(self):
        """Omitted fields have their defaults."""
        assert reader_for(Row).read("[1, []]") == Row(1, set())


class Row(NamedTuple):
    number: int
    sizes: set[Decimal]
    name: str = ""

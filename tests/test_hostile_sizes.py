"""Values that are small to send and would be large to handle."""

import json

import pytest

from promptkit import user
from promptkit.errors import ArgumentErrors
from promptkit.misfits import ENOUGH
from tests.test_hostile_arguments import CATALOG, TYPES, rendered

pytestmark = pytest.mark.timeout(20)

DIGITS = 10**10_000
MANY = 200_000


class TestDigits:
    @pytest.mark.parametrize(
        "value", [DIGITS, -DIGITS, [DIGITS], {"x": DIGITS}], ids=["plus", "minus", "list", "dict"]
    )
    @pytest.mark.parametrize("name", TYPES)
    def test_a_number_that_python_does_not_write_is_told_by_its_size(self, name, value):
        """
        A fault about a number of very many digits is one that people can read.
        """
        found = rendered(name, value)

        if isinstance(found, ArgumentErrors):
            assert len(str(found)) < 300
            assert "Exceeds the limit" not in str(found)

    def test_its_size_is_in_bits(self):
        """
        Its digits cannot be counted without writing them.
        """
        assert "is a whole number of 33,220 bits, not text" in str(rendered("str", DIGITS))

    @pytest.mark.parametrize("value", ["1E+999999999", "1E-999999999", "-1E+4301"])
    def test_a_decimal_that_would_fill_the_memory_is_refused(self, value):
        """
        An author may write a number out, as f-strings with two places do, without any harm.
        """
        (fault,) = rendered("Decimal", value).faults

        assert fault.reason == "has more than 4,300 digits: send a number that people use"

    @pytest.mark.parametrize("value", ["1E+4300", "1E-4300", "0E+999999999", "3.14"])
    def test_a_decimal_of_any_use_is_read(self, value):
        """
        No number that somebody means is refused.
        """
        assert rendered("Decimal", value) == user("Decimal")


class TestFaults:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("numbers", "x," * MANY),
            ("numbers", json.dumps(["x"] * MANY)),
            ("words", json.dumps([1] * MANY)),
            ("sizes", json.dumps({f"k{i}": "x" for i in range(MANY)})),
            ("by_number", json.dumps({f"k{i}": "x" for i in range(MANY)})),
            ("either", json.dumps(["x"] * MANY)),
        ],
        ids=["separated", "list", "words that are numbers", "values", "keys", "union"],
    )
    def test_of_very_many_faults_the_first_are_told(self, name, value):
        """
        Nobody mends a hundred thousand things, and telling them all would take minutes and megabytes.
        """
        with pytest.raises(ArgumentErrors) as caught:
            CATALOG.render(name, {"value": value})

        assert ENOUGH <= len(caught.value.faults) <= 2 * ENOUGH

"""The requirements of the specification and the tests that are marked with them."""

import ast
import re
from pathlib import Path

import pytest

from tests.requirements import REQUIREMENTS

TESTS = Path(__file__).parents[1]
MARK = re.compile(r"pytest\.mark\.requirement\(([^)]+)\)")
BY_ID = {requirement.id: requirement for requirement in REQUIREMENTS}


@pytest.fixture(scope="module")
def marked():
    """Return the location of a test for each marked id."""
    return dict(marks())


def marks():
    """Yield each marked id with its location."""
    for file in sorted(TESTS.rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        for mark in MARK.finditer(source):
            location = f"{file.relative_to(TESTS)}:{source.count(chr(10), 0, mark.start()) + 1}"
            yield from ((name, location) for name in ast.literal_eval(f"[{mark[1]}]"))


def test_ids_are_unique():
    """Requirements have different ids."""
    assert len(BY_ID) == len(REQUIREMENTS)


def test_every_mark_names_a_requirement(marked):
    """Every mark is the id of a requirement."""
    assert {name: location for name, location in marked.items() if name not in BY_ID} == {}


def test_every_requirement_has_a_test(marked):
    """Every requirement has a test or a reason for its exemption."""
    tested = {requirement.id for requirement in REQUIREMENTS if not requirement.exemption}

    assert marked.keys() & BY_ID.keys() == tested

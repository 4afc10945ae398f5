"""The list of what the specification demands, and the tests that show it, kept in step both ways."""

import ast
from pathlib import Path

import pytest

from tests.requirements import REQUIREMENTS

TESTS = Path(__file__).parents[1]
BY_ID = {requirement.id: requirement for requirement in REQUIREMENTS}


@pytest.fixture(scope="module")
def shown():
    """Where a test is marked with an id, by the id."""
    return dict(marks())


def marks():
    """Each id that a test is marked with, and where."""
    for file in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.requirement":
                for argument in node.args:
                    yield argument.value, f"{file.relative_to(TESTS)}:{node.lineno}"


def test_ids_are_unique():
    """
    No two requirements have one id.
    """
    assert len(BY_ID) == len(REQUIREMENTS)


def test_every_mark_names_a_requirement(shown):
    """
    A test that is marked shows something that is on the list.
    """
    assert {name: place for name, place in shown.items() if name not in BY_ID} == {}


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.id)
def test_every_requirement_has_a_test(requirement, shown):
    """
    What the specification demands is shown by a test, or left out for a reason.
    """
    assert (requirement.id in shown) == (not requirement.left_out)

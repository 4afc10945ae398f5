"""The requirements of the specification and the tests that are marked with them."""

import ast
from pathlib import Path

import pytest

from tests.requirements import REQUIREMENTS

TESTS = Path(__file__).parents[1]
BY_ID = {requirement.id: requirement for requirement in REQUIREMENTS}


@pytest.fixture(scope="module")
def marked():
    """Return the location of a test for each marked id."""
    return dict(marks())


def marks():
    """Yield each marked id with its location."""
    for file in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.requirement":
                for argument in node.args:
                    yield argument.value, f"{file.relative_to(TESTS)}:{node.lineno}"


def test_ids_are_unique():
    """Requirements have different ids."""
    assert len(BY_ID) == len(REQUIREMENTS)


def test_every_mark_names_a_requirement(marked):
    """Every mark is the id of a requirement."""
    assert {name: location for name, location in marked.items() if name not in BY_ID} == {}


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.id)
def test_every_requirement_has_a_test(requirement, marked):
    """Every requirement has a test or a reason for its exemption."""
    assert (requirement.id in marked) == (not requirement.exemption)

"""
Claims about how heavy the package is, and about how that is counted.
"""

import ast
from textwrap import dedent

import pytest

from tests.weights import ADDED, AT_MOST, PACKAGES, at_most, lines_of_code, table, weights


@pytest.mark.parametrize("package", PACKAGES)
def test_no_package_becomes_heavier(package):
    """
    Each package has a row, and is within it.
    """
    lines, modules = weights()[package]

    assert lines <= at_most(package).lines, table()
    assert modules <= at_most(package).modules, table()


def test_rows_are_of_packages_that_exist():
    """
    A row goes with its package.
    """
    assert list(AT_MOST) == sorted(AT_MOST)
    assert {*AT_MOST, *(name for added in ADDED.values() for name in added)} == {*PACKAGES}


def test_lines_of_code():
    """
    Docstrings, comments and blank lines are none; each line of a string or an expression is one.
    """
    source = dedent(
        '''
        """A module."""

        # A comment.
        WORDS = """one
        two"""


        class Empty:
            """
            Documented.
            """

            def call(self):  # counts
                "Documented."
                return max(
                    1,
                )
        '''
    )

    assert lines_of_code(source, ast.parse(source)) == 7

"""Undefined names: the lint reports the names for which Python would raise NameError."""

import subprocess
import sys
from textwrap import indent

import pytest

from promptkit.errors.rules import Rule

HEAD = """
from os.path import *
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from decimal import Decimal
globals()["made"] = "x"
above = "x"
"""


@pytest.fixture
def find_undefined_names(collect_diagnostics):
    """A function that returns the undefined names in a source, each with its line and column."""

    def find_undefined_names(source):
        diagnostics = [
            diagnostic
            for diagnostic in collect_diagnostics(subject=source)
            if diagnostic.rule is Rule.UNDEFINED_NAME
        ]
        return [
            (diagnostic.message.split("'")[1], diagnostic.location.line, diagnostic.location.column)
            for diagnostic in diagnostics
        ]

    return find_undefined_names


#: Bodies of functions with the parameter `given`.
BODIES = [
    "return nowhere",
    "return above + below + made + given + __name__",
    "return join(given, given)",
    "return Decimal(given)",
    "value: Decimal = given\nreturn value",
    "value: 'Nowhere' = given\nreturn value",
    "def inner() -> 'Nowhere':\n    return given\nreturn inner()",
    "def inner():\n    return nowhere\nreturn inner()",
    "def inner():\n    return later\nlater = given\nreturn inner()",
    "return [name for name in given if nowhere]",
    "return [name for name in given if name]",
    "return {name: (lambda: nowhere)() for name in given}",
    "class Inner:\n    one = given\n    two = one\nreturn Inner.two",
    "class Inner:\n    one = nowhere\nreturn Inner",
    "class Inner:\n    one = given\n    def two(self):\n        return one\nreturn Inner().two()",
    "class Inner:\n    def two(self):\n        return __class__\nreturn Inner().two()",
    "global stored\nstored = given\nreturn stored",
    "return reads_global()",
    "try:\n    return nowhere\nexcept KeyError:\n    return given",
    "try:\n    return given\nfinally:\n    nowhere",
    "if (found := given):\n    return found",
    "match given:\n    case str(text):\n        return text",
    "with open(__file__) as file:\n    return file",
    "return f'{given!r:>{nowhere}}'",
    "for name in given:\n    pass\nreturn name",
    "if False:\n    return nowhere",
    "assert nowhere",
    "raise nowhere",
    "import os.path as path\nreturn path",
    "yield nowhere",
]


@pytest.mark.parametrize("body", BODIES)
def test_reported_names_raise_name_error(body, find_undefined_names):
    """A name is reported if it raises NameError when the function is called."""
    source = f"{HEAD}def subject(given):\n{indent(body, '    ')}\n"
    source += "below = 'y'\ndef reads_global():\n    global other\n    other = 'x'\n    return other\n"
    module = {"__name__": "subject", "__file__": __file__}
    exec(source, module)  # noqa: S102 (as an import does)

    reported = {name for name, *_ in find_undefined_names(source)}

    raised = set()
    try:
        result = module["subject"]("given")
        list(result) if hasattr(result, "send") else result  # a generator runs when it is consumed
    except NameError as error:
        raised = {error.name}
    assert reported == raised


@pytest.mark.skipif(sys.version_info < (3, 12), reason="functions take types since Python 3.12")
def test_type_parameters_are_defined(find_undefined_names):
    """Type parameters are defined in their function or class."""
    assert (
        find_undefined_names(
            "def subject[T](given):\n    return T\nclass A[K]:\n    def kind(self): return K\n"
        )
        == []
    )


def test_code_that_runs_at_import_is_not_checked(find_undefined_names):
    """Code that runs at import time (decorators, defaults and class bodies) is not checked."""
    source = """
        import functools as tools
        size = 3
        @tools.lru_cache(size)
        def subject(given=size):
            return given
        class Held:
            kept = size
        del size, tools
    """

    assert find_undefined_names(source) == []


def test_each_use_is_reported_once(find_undefined_names):
    """Each use is reported once, at the location of the name, even after a multi-byte character."""
    source = """
        def subject(given):
            try:
                if given:
                    return 'é' + nowhere
            finally:
                nowhere
    """

    assert find_undefined_names(source) == [("nowhere", 4, 26), ("nowhere", 6, 9)]


def test_assertions_are_checked_when_python_skips_them(tmp_path):
    """Assertions are checked under `python -O`, which does not execute them."""
    recipe = tmp_path / "recipe.py"
    recipe.write_text("def subject(given):\n    assert nowhere\n    return given\n", encoding="utf-8")
    command = [sys.executable, "-O", "-m", "promptkit", "check", str(recipe)]

    completed = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)

    assert "'nowhere' is not defined" in completed.stdout + completed.stderr

"""Names that nothing defines: what is found is what Python would raise."""

import ast
import builtins
import dis
import subprocess
import sys
from textwrap import dedent, indent

import pytest

from promptkit.compiler.lints.files import undefined_names

HEAD = """
from os.path import *
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from decimal import Decimal
globals()["made"] = "x"
above = "x"
"""

#: The bodies of functions of `given`.
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
    "try:\n    return nowhere\nexcept NameError:\n    return given",
    "try:\n    return nowhere\nexcept (KeyError, NameError):\n    return given",
    "try:\n    return nowhere\nexcept:\n    return given",
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
def test_it_finds_what_python_would_raise(body):
    """
    The names that are found in a function are those whose look-up fails when it is called.
    """
    source = f"{HEAD}def subject(given):\n{indent(body, '    ')}\n"
    source += "below = 'y'\ndef reads_global():\n    global other\n    other = 'x'\n    return other\n"
    module = {"__name__": "subject", "__file__": __file__}
    exec(source, module)  # noqa: S102 (as an import does)

    found = {name for name, *_ in undefined_names(ast.parse(source), module)}

    raised = set()
    try:
        made = module["subject"]("given")
        list(made) if hasattr(made, "send") else made  # a generator runs when it is read
    except NameError as error:
        raised = {error.name}
    assert found == raised


def test_each_place_is_told_once():
    """
    Line and column are those of the name, also where Python has code for several ways to it.
    """
    source = dedent("""
        def subject(given):
            try:
                if given:
                    return 'é' + nowhere
            finally:
                nowhere
    """)

    local = frozenset({"given"})
    assert list(undefined_names(ast.parse(source), ())) == [
        ("nowhere", 5, 26, local),
        ("nowhere", 7, 8, local),
    ]


def test_instructions_are_looked_at_only_where_a_name_is_not_known(monkeypatch):
    """
    Taking bytecode apart takes long, and most files need none of it.
    """
    looked_at = []
    get_instructions = dis.get_instructions
    monkeypatch.setattr(
        dis, "get_instructions", lambda code: looked_at.append(code.co_name) or get_instructions(code)
    )
    source = "def fine(a): return len(a) + above\ndef faulty(a): return nowhere\n"

    assert [name for name, *_ in undefined_names(ast.parse(source), ["above"])] == ["nowhere"]
    assert set(looked_at) == {"faulty"}


@pytest.mark.parametrize("body", BODIES)
def test_what_was_executed_shows_the_same(body, monkeypatch):
    """
    The code that an import has executed is not compiled again, and the same is found in it.
    """
    source = f"{HEAD}def subject(given):\n{indent(body, '    ')}\n"
    tree, code = ast.parse(source), compile(source, __file__, "exec", dont_inherit=True, optimize=0)
    found = list(undefined_names(tree, ["above", "join"]))
    monkeypatch.setattr(builtins, "compile", None)

    assert list(undefined_names(tree, ["above", "join"], code)) == found


def test_names_in_assertions_are_found_without_assertions(tmp_path):
    """
    ``python -O`` leaves assertions out of what is executed, and not out of what is checked.
    """
    recipe = tmp_path / "recipe.py"
    recipe.write_text("def subject(given):\n    assert nowhere\n    return given\n", encoding="utf-8")
    command = [sys.executable, "-O", "-m", "promptkit", "check", str(recipe)]

    checked = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)

    assert "nothing defines 'nowhere'" in checked.stdout + checked.stderr

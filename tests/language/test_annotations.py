import re

import pytest

from promptkit import Tool, prompt
from promptkit.compiler.compilation import compile
from promptkit.loader.loader import load


@pytest.mark.parametrize("name", ["read_only", "idempotent", "open_world", "destructive"])
def test_flag_that_is_not_a_bool_is_rejected(name):
    """A flag of `Tool` that is not a bool raises TypeError."""
    with pytest.raises(TypeError, match=f"^{name} must be True or False, not a str"):
        Tool(**{name: "yes"})


def test_read_only_tool_cannot_be_destructive():
    """A tool cannot be both read-only and destructive."""
    with pytest.raises(ValueError, match=re.escape("add read_only=False")):
        Tool(destructive=True)
    assert Tool(read_only=False, destructive=True).destructive


@pytest.mark.parametrize("value", ["no", {"read_only": True}, 1])
def test_option_rejects_other_values(value):
    """The option `tool` takes a `Tool` or False."""
    with pytest.raises(TypeError, match=r"^tool must be False or promptkit\.Tool\(\.\.\.\), not "):
        prompt(tool=value)(lambda: "x")


def test_invalid_tool_is_reported_with_its_line(recipes):
    """An invalid `Tool` is reported with its line and a fix."""
    head = "from promptkit import Tool, prompt\n\n@prompt(tool=Tool(destructive=True))\n"
    source = f"{head}def wipe():\n    return 'x'\n"
    folder = recipes(wipe=source)

    (diagnostic,) = compile(load(folder), lint=True).diagnostics

    assert (diagnostic.location.line, "add read_only=False" in diagnostic.message) == (3, True)
    assert load(folder).prompts == ()

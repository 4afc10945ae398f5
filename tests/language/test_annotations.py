import re

import pytest

from promptkit import Tool, prompt
from promptkit.loader.loader import load


@pytest.mark.parametrize("name", ["read_only", "idempotent", "open_world", "destructive"])
def test_what_is_said_is_yes_or_no(name):
    """A flag of `Tool` that is not a bool raises at once."""
    with pytest.raises(TypeError, match=f"^{name} takes True or False, not a str"):
        Tool(**{name: "yes"})


def test_what_changes_nothing_destroys_nothing():
    """A tool cannot be both read-only and destructive."""
    with pytest.raises(ValueError, match=re.escape("add read_only=False")):
        Tool(destructive=True)
    assert Tool(read_only=False, destructive=True).destructive


@pytest.mark.parametrize("said", ["no", {"read_only": True}, 1])
def test_the_option_takes_no_other_value(said):
    """The option `tool` takes a `Tool` or False."""
    with pytest.raises(TypeError, match=r"^tool takes False or promptkit\.Tool\(\.\.\.\), not "):
        prompt(tool=said)(lambda: "x")


def test_a_mistake_is_told_with_its_line(recipes, found):
    """An invalid `Tool` is reported with its line and a fix."""
    head = "from promptkit import Tool, prompt\n\n@prompt(tool=Tool(destructive=True))\n"
    text = f"{head}def wipe():\n    return 'x'\n"
    (diagnostic,) = found(wipe=text)

    assert (diagnostic.location.line, "add read_only=False" in diagnostic.message) == (3, True)
    assert load(recipes(wipe=text)).prompts == ()

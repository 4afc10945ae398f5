"""Recipes from other authors are read in linear time; quadratic work would take minutes for these."""

import pytest

from promptkit.cli import main
from promptkit.declarations.signature import read_descriptions, read_summary

pytestmark = pytest.mark.timeout(60)

SIZE = 200_000

#: Docstrings with many repetitions.
DOCSTRINGS = {
    "blank lines": "Say.\n" + "\n" * SIZE + "x",
    "lines of blanks": "Say.\n" + "  \n" * SIZE + "x",
    "lines of signs": "Say.\n" + "*-\n" * SIZE + "x",
    "a long line of signs": "Say.\n" + "*" * SIZE + "\nx",
    "a title before blanks": "Say.\n\nArgs" + " " * SIZE + "x\n",
    "a title before a colon and blanks": "Say.\n\nArgs:" + " " * SIZE + "x\n",
    "dashes": "Say.\n\nParameters\n" + "-" * SIZE + "x\n",
    "brackets": "Say.\n\nArgs:\n    x " + "(" * SIZE + "\n",
    "fields": "Say.\n\n:param " + "x " * SIZE + "\n",
}


@pytest.mark.parametrize("kind", DOCSTRINGS)
def test_docstrings(kind):
    """The summary and the descriptions are found, however often a docstring repeats a part."""
    text = DOCSTRINGS[kind]

    assert read_summary(text)
    assert "p" not in read_descriptions(text)


@pytest.mark.parametrize(
    "text",
    [
        "{x} word ",
        "{code_block(x)} ",
        "{x}\\n",
        "word\\n{code_block(x)}\\n",
    ],
)
def test_an_f_string_with_thousands_of_holes(text, recipes, capsys):
    """`check` takes linear time for an f-string with thousands of placeholders."""
    head = "from promptkit import prompt\nfrom promptkit.fragments import code_block\n\n@prompt\n"
    body = f'def greet(x: str):\n    """Say."""\n    return f"{text * 12_000}"\n'

    main(["check", str(recipes(greet=head + body))])

    assert "1 prompt can be served" in capsys.readouterr().out

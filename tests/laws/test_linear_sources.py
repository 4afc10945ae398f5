"""
Sources of recipes are read in linear time. Quadratic work would take minutes for the sources in these tests.
"""

import sys
from collections import Counter
from functools import partial

import pytest

from promptkit.compiler.compilation import compile
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
def test_docstrings_are_parsed(kind):
    """The summary and the descriptions are found, however often a docstring repeats a part."""
    text = DOCSTRINGS[kind]

    assert read_summary(text)
    assert "p" not in read_descriptions(text)


def count_calls(function, *arguments):
    """Return the number of calls that *function* makes, including calls of C functions."""
    counts, before = Counter(), sys.getprofile()
    sys.setprofile(lambda _frame, event, _arg: counts.update((event,)))
    try:
        function(*arguments)
    finally:
        sys.setprofile(before)
    return counts["call"] + counts["c_call"]


@pytest.mark.parametrize("text", ["{x} word ", "{code_block(x)} ", "word\\n{code_block(x)}\\n"])
def test_f_string_with_many_placeholders(text, recipes):
    """`check` takes linear time for an f-string with many placeholders."""
    head = "from promptkit import prompt\nfrom promptkit.fragments import code_block\n\n@prompt\n"
    body = 'def greet(x: str):\n    """Say."""\n    return f"{}"\n'
    folders = [
        str(recipes(f"holes{size}", greet=head + body.replace("{}", text * size))) for size in (50, 50, 800)
    ]

    # The first run also imports modules.
    _, few, many = (count_calls(partial(compile, lint=True), folder) for folder in folders)

    assert few * 2 < many < few * 20

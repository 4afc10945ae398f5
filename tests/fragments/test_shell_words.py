import os
import shlex
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit.fragments.invisible import escape_invisible
from promptkit.fragments.shell_words import command_line, quoted, quoted_path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows quotes otherwise")

WORDS = [
    "",
    "a b",
    "$(touch x)",
    "`touch x`",
    "a;b",
    "it's",
    "\x1b[2Ja\n",
    "a\tb",
    "\u202ea",
    "\udcff0",
    "!!",
    "~",
    "ä",
]


def parse_with_bash(command):
    result = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {command}"],  # noqa: S607 (found on the PATH)
        capture_output=True,
        check=True,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    return [os.fsdecode(word) for word in result.stdout.split(b"\0")[:-1]]


def test_bash_reads_each_word_as_one_word():
    """Bash reads each word as one word, in which invisible characters, tabs and line feeds are escapes."""
    command = command_line(WORDS)

    assert parse_with_bash(command) == [escape_invisible(word, one_line=True) for word in WORDS]
    assert escape_invisible(command, one_line=True) == command


@given(st.text(st.characters(codec="ascii")))
def test_a_visible_word_is_read_as_one_word(word):
    """A word of visible characters is read as one word."""
    if escape_invisible(word, one_line=True) == word:
        assert shlex.split(quoted(word)) == [word]


@pytest.mark.parametrize("path", ["-x", "--help", "-", "+1"])
def test_a_path_is_not_an_option(path):
    """A path that looks like an option is prefixed with `./`."""
    assert quoted_path(path) == f"./{path}"

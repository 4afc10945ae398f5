"""Commands that need no shell."""

import shutil
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit.clients.slash_commands.command import shell_reason, split_command


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("git status", ("git", "status")),
        ("git log --format='%h $x `y`' -5", ("git", "log", "--format=%h $x `y`", "-5")),
        ('git log --pretty="%h %ad"', ("git", "log", "--pretty=%h %ad")),
        ("git diff HEAD~1 HEAD^ -- a/b.md", ("git", "diff", "HEAD~1", "HEAD^", "--", "a/b.md")),
        ("  ls   -la  ", ("ls", "-la")),
        ("echo ''", ("echo", "")),
    ],
)
def test_split_words(command, words):
    """Quotes hold words together."""
    assert split_command(command) == words


@pytest.mark.parametrize(
    "command",
    [
        *(
            "a | b",
            "a > b",
            "a < b",
            "a & b",
            "a; b",
            "a && b",
            "a $b",
            "a `b`",
            "a $(b)",
            "a *",
            "a ?",
            "a [b]",
        ),
        *(
            "a {b,c}",
            "a ~",
            "a ~/b",
            "a #b",
            "a !b",
            'a "$b"',
            'a "`b`"',
            'a "b',
            "a 'b",
            "a \\b",
            "a\nb",
            "(a)",
        ),
        *("A=b", "A=b c", "cd a", "export A=b", "source a", "", " ", "'' a"),
    ],
)
def test_commands_that_need_a_shell(command):
    """Pipes, redirections, variables, patterns, several commands and shell builtins need a shell."""
    assert split_command(command) is None
    assert shell_reason(command)


@pytest.mark.skipif(sys.platform == "win32", reason="it asks a POSIX shell")
@given(st.text("ab '\"$`\\~*?[]{}|&;<>()#!=%@^.,:/-\n\té", min_size=1, max_size=12))
def test_words_match_those_of_a_shell(text):
    """A shell splits every accepted command into the same words."""
    words = split_command(f"printf {text}")
    if words is None:
        return
    shell = [str(shutil.which("sh")), "-c", f"set -- {text}\nprintf '%s\\0' \"$@\""]

    output = subprocess.run(shell, capture_output=True, check=True).stdout

    assert [*words[1:]] == (output.decode().split("\0")[:-1] if words[1:] else [])

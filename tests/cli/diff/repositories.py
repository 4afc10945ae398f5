"""A prompt and its changes, and git commands for the tests of `promptkit diff`."""

import os
import subprocess

BEFORE = """
from typing import Annotated, Literal
from promptkit import Arg, prompt

@prompt
def review(code: Annotated[str, Arg(examples=["x = 1"])], language: Literal["python", "rust"] = "python"):
    'Review it.'
    return f"Review this {language}.\\n\\n{code}"
"""
HARMLESS = BEFORE.replace("Review this", "Please review this")
BREAKING = BEFORE.replace('"python", "rust"', '"python"')

#: The output for a change that breaks callers.
BROKEN = """\
breaking: prompt 'review': argument 'language' no longer accepts all values that it accepted before
    -Literal['python', 'rust']
    +Literal['python']
1 breaking change since HEAD
"""
NEUTRAL = """\
harmless: prompt 'review': renders different text for code='x = 1'
     [user]
    -Review this python.
    +Please review this python.

     x = 1
1 harmless change since HEAD
"""

#: Ignore the user's and the system's git configuration.
GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def git(folder, *arguments):
    """Run git and return its standard output."""
    result = subprocess.run(
        ["git", "-C", folder, *arguments],  # noqa: S607 (wherever it is)
        env={**os.environ, **GIT},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return result.stdout.strip()


def edit(repository, source):
    """Rewrite the prompt."""
    (repository / "recipes" / "review.py").write_text(source, encoding="utf-8")


def commit(repository, source):
    """Rewrite the prompt and commit all files."""
    edit(repository, source)
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message=Two")

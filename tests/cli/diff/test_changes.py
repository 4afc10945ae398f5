"""The changes that `promptkit diff` reports, and which of them break callers."""

from itertools import count
from textwrap import dedent

import pytest

from promptkit import compiler
from promptkit.cli.diff_changes import BREAKING, Difference, changes_between
from promptkit.cli.diff_sides import build_answer
from promptkit.loader.loader import load

HEAD = """
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Literal
from msgspec import Meta
from promptkit import Arg, Icon, PromptError, prompt, resource, skill, user
"""


def ask(arguments="", body="'Hello.'", options="", doc="Say hello."):
    """Return the source of a prompt."""
    return f"@prompt({options})\ndef ask({arguments}):\n    '''{doc}'''\n    return {body}\n"


def read(body="'Hello.'", options="", uri="docs://a", doc="A text."):
    """Return the source of a resource."""
    return f"@resource({uri!r}{options})\ndef text() -> str:\n    '''{doc}'''\n    return {body}\n"


def teach(body="'Hello.'", options="", doc="How to say hello."):
    """Return the source of a skill."""
    return f"@skill({options})\ndef hello():\n    '''{doc}'''\n    return {body}\n"


ICON = "icons=[Icon('https://example.org/a.png')]"
POINT = "@dataclass\nclass P:\n    x: int\n{}"
#: Recursive records, whose schemas contain references.
TREES = "".join(
    f"@dataclass\nclass {name}:\n    below: 'list[{name}]'\n{more}" for name, more in [("P", ""), ("Q", "{}")]
)
EXAMPLE = "a: Annotated[str, Arg(examples=['x'])]"

#: The source before, the source after, and the kinds of the changes.
ROWS = {
    "nothing": (ask(), ask(), []),
    "the code alone": (ask(body="'Hel' 'lo.'"), ask(), []),
    "prompt removed": (ask() + read(), read(), ["prompt-removed"]),
    "prompt added": (read(), ask() + read(), ["prompt-added"]),
    "prompt renamed": (ask(), ask(options="name='greet'"), ["prompt-removed", "prompt-added"]),
    "prompt broken": (ask("a: str"), ask("a"), ["prompt-removed"]),
    "argument removed": (ask("a: str = ''"), ask(), ["argument-removed"]),
    "argument renamed": (
        ask("a: str = ''"),
        ask("b: str = ''"),
        ["argument-removed", "argument-added"],
    ),
    "argument added": (ask(), ask("a: str = ''"), ["argument-added"]),
    "argument of the environment added": (
        ask(),
        ask("a: Annotated[str, Arg(env='TEAM')] = ''"),
        ["argument-added"],
    ),
    "required argument added": (ask(), ask("a: str"), ["required-argument-added"]),
    "now required": (
        ask("a: str = ''"),
        ask("a: str"),
        ["argument-now-required", "argument-default"],
    ),
    "now optional": (
        ask("a: str"),
        ask("a: str = ''"),
        ["argument-now-optional", "argument-default"],
    ),
    "choice removed": (
        ask("a: Literal['x', 'y']"),
        ask("a: Literal['x']"),
        ["argument-narrowed"],
    ),
    "choice added": (ask("a: Literal['x']"), ask("a: Literal['x', 'y']"), ["argument-widened"]),
    "choices in another order": (
        ask("a: Literal['x', 'y']"),
        ask("a: Literal['y', 'x']"),
        ["argument-type"],
    ),
    "text to choices": (ask("a: str"), ask("a: Literal['x']"), ["argument-narrowed"]),
    "choices to text": (ask("a: Literal['x']"), ask("a: str"), ["argument-widened"]),
    "text to number": (ask("a: str"), ask("a: int"), ["argument-narrowed"]),
    "number to text": (ask("a: int"), ask("a: str"), ["argument-widened"]),
    "number with digits": (ask("a: int"), ask("a: float"), ["argument-narrowed"]),
    "number without digits": (ask("a: float"), ask("a: int"), ["argument-narrowed"]),
    "date to number": (ask("a: date"), ask("a: int"), ["argument-narrowed"]),
    "tighter bound": (
        ask("a: Annotated[int, Meta(ge=0)]"),
        ask("a: Annotated[int, Meta(ge=1)]"),
        ["argument-narrowed"],
    ),
    "looser bound": (
        ask("a: Annotated[int, Meta(le=9)]"),
        ask("a: Annotated[int, Meta(le=10)]"),
        ["argument-narrowed"],
    ),
    "pattern": (ask("a: str"), ask("a: Annotated[str, Meta(pattern='x')]"), ["argument-narrowed"]),
    "items narrowed": (ask("a: list[str]"), ask("a: list[int]"), ["argument-narrowed"]),
    "places changed": (ask("a: tuple[int, str]"), ask("a: tuple[str, int]"), ["argument-narrowed"]),
    "another type added": (ask("a: int"), ask("a: int | date"), ["argument-widened"]),
    "one type less": (ask("a: int | date"), ask("a: int"), ["argument-narrowed"]),
    "field added": (
        POINT.format("") + ask("a: P"),
        POINT.format("    y: int\n") + ask("a: P"),
        ["argument-narrowed"],
    ),
    "optional field added": (
        POINT.format("") + ask("a: P"),
        POINT.format("    y: int = 0\n") + ask("a: P"),
        ["argument-narrowed"],
    ),
    "a docstring and a default of a record": (
        POINT.format("    y: int = 0\n") + ask("a: list[P]"),
        POINT.format("    y: int = 1\n").replace("class P:\n", 'class P:\n    """Somewhere."""\n')
        + ask("a: list[P]"),
        ["argument-type"],
    ),
    "the record of another argument": (
        TREES.format("") + ask("a: P, b: Q"),
        TREES.format("    y: int\n") + ask("a: P, b: Q"),
        ["argument-narrowed"],
    ),
    "a part of the type added": (ask("a: float"), ask("a: float | int"), ["argument-widened"]),
    "optional field removed": (
        POINT.format("    y: int = 0\n") + ask("a: P"),
        POINT.format("") + ask("a: P"),
        ["argument-narrowed"],
    ),
    "default": (ask("a: int = 1"), ask("a: int = 2"), ["argument-default"]),
    "secret default": (
        ask("a: Annotated[int, Arg(secret=True)] = 1"),
        ask("a: Annotated[int, Arg(secret=True)] = 2"),
        [],
    ),
    "argument described": (
        ask("a: str"),
        ask("a: Annotated[str, Arg('A word')]"),
        ["argument-description"],
    ),
    "argument titled": (
        ask("a: str"),
        ask("a: Annotated[str, Arg(title='A')]"),
        ["argument-title"],
    ),
    "arguments in another order": (ask("a: str, b: str"), ask("b: str, a: str"), ["argument-order"]),
    "title": (ask(), ask(options="title='Hello'"), ["title"]),
    "description": (ask(), ask(doc="Greet."), ["description"]),
    "icon": (ask(), ask(options=ICON), ["icons"]),
    "meta": (ask(), ask(options="meta={'team': 'core'}"), ["meta"]),
    "rendering": (ask(), ask(body="'Hi.'"), ["rendering"]),
    "rendering of an example": (
        ask(EXAMPLE, "f'Hello {a}'"),
        ask(EXAMPLE, "f'Hi {a}'"),
        ["rendering"],
    ),
    "rendering without examples": (ask("a: str", "a"), ask("a: str", "a + a"), ["rendering"]),
    "rendering with an optional argument": (
        ask("a: str = ''", "f'Hello. {a}'"),
        ask("a: str = ''", "f'Hello. {a and 1}'"),
        ["rendering"],
    ),
    "rendering fails": (ask(EXAMPLE, "a"), ask(EXAMPLE, "a[1]"), ["rendering-fails"]),
    "rendering failed already": (ask(EXAMPLE, "a[1]"), ask(EXAMPLE, "a[2]"), []),
    "rendering fails no longer": (ask(EXAMPLE, "a[1]"), ask(EXAMPLE, "a"), ["rendering"]),
    "an example of yesterday": (
        ask(EXAMPLE, "a"),
        ask("a: Annotated[Literal['y'], Arg(examples=['y'])]", "a"),
        ["argument-narrowed"],
    ),
    "scopes needed": (ask(), ask(options="scopes=['a']"), ["scopes-needed"]),
    "scopes dropped": (
        read(options=", scopes=['a', 'b']"),
        read(options=", scopes=['b']"),
        ["scopes-dropped"],
    ),
    "other scopes": (
        ask(options="scopes=['a', 'b']"),
        ask(options="scopes=['c', 'b']"),
        ["scopes-needed", "scopes-dropped"],
    ),
    "resource removed": (ask() + read(), ask(), ["resource-removed"]),
    "resource added": (ask(), ask() + read(), ["resource-added"]),
    "resource moved": (read(), read(uri="docs://b"), ["resource-removed", "resource-added"]),
    "resource named": (read(), read(options=", name='other'"), ["resource-name"]),
    "resource described": (read(), read(doc="The text."), ["description"]),
    "MIME type": (read(), read(options=", mime_type='text/csv'"), ["mime-type"]),
    "skill removed": (teach() + ask(), ask(), ["skill-removed"]),
    "skill added": (ask(), teach() + ask(), ["skill-added"]),
    "skill changed": (teach(), teach("'Bye.'"), ["skill-file"]),
    "skill described": (teach(), teach(doc="How one says it."), ["skill-file"]),
    "files of a skill": (
        teach(options="files={'a': 'a', 'b': 'b', 'c': 'c'}"),
        teach(options="files={'a': 'a', 'b': 'x', 'd': 'd'}"),
        ["skill-file", "skill-file", "skill-file"],
    ),
    "skill needs scopes": (teach(), teach(options="scopes=['a']"), ["scopes-needed"]),
    "reading": (read(), read("'Hi.'"), ["reading"]),
    "reading fails": (read(), read("''[1]"), ["reading-fails"]),
}

numbers = count()


@pytest.fixture
def changes(recipes):
    """A function that returns the changes between two sources."""

    def compare(before, after):
        def catalog(source):
            return compiler.compile(load(recipes(f"side{next(numbers)}/recipes", a=HEAD + dedent(source))))

        old = build_answer(catalog(before))  # before the other module of this name is imported
        return changes_between(old, build_answer(catalog(after), old.calls))

    return compare


@pytest.mark.parametrize(("before", "after", "kinds"), ROWS.values(), ids=ROWS)
def test_changes_are_reported(before, after, kinds, changes):
    """Every change is reported, and nothing else."""
    assert sorted(change.kind for change in changes(before, after)) == sorted(kinds)


def test_breaking_changes_are_in_the_table():
    """The table contains every kind of change that breaks callers."""
    assert {kind for *_, kinds in ROWS.values() for kind in kinds} > BREAKING


class TestMessages:
    def test_types(self, changes):
        """Types are shown as `list` shows them, and as schemas if only their bounds differ."""
        (choices,) = changes(ask("a: Literal['x', 'y']"), ask("a: Literal['x']"))
        (bounds,) = changes(ask("a: Annotated[int, Meta(ge=0)]"), ask("a: Annotated[int, Meta(ge=1)]"))

        assert (
            str(choices) == "prompt 'ask': argument 'a' no longer accepts all values that it accepted before"
        )
        assert choices.diff == ["-Literal['x', 'y']", "+Literal['x']"]
        assert '-  "minimum": 0,' in bounds.diff

    def test_renderings(self, changes):
        """A changed rendering is shown with context lines and its example."""
        (change,) = changes(
            ask(EXAMPLE, "user(f'One {a}\\n\\nTwo\\n\\nThree')"),
            ask(EXAMPLE, "user(f'One {a}\\n\\nTwo\\n\\nFour')"),
        )

        assert str(change) == "prompt 'ask': renders different text for a='x'"
        assert change.diff == [" Two", " ", "-Three", "+Four"]

    def test_failures(self, changes):
        """A failure is shown with its error."""
        (change,) = changes(ask(EXAMPLE, "a"), ask(EXAMPLE, "a[1]"))

        assert str(change) == "prompt 'ask': fails for a='x': IndexError: string index out of range"

    @pytest.mark.parametrize("kind", ["prompt", "resource"])
    def test_rejected_defaults_do_not_break_callers(self, kind, changes):
        """
        A prompt or resource that rejects a call without arguments breaks no caller, and the reason is shown.
        """
        text = ask() if kind == "prompt" else read()
        rejecting = text.replace("return 'Hello.'", "raise PromptError('nothing is staged')")
        (change,) = changes(text, rejecting)

        assert not change.breaking
        assert change.diff[-1] == "+[not rendered] nothing is staged"
        assert changes(rejecting, rejecting) == []

    def test_unsampled_prompts_do_not_break_callers(self, changes):
        """A prompt that is no longer rendered because of `sample=False` breaks no caller."""
        (change,) = changes(ask(), ask(options="sample=False"))

        assert not change.breaking
        assert change.diff[-1] == "+[not rendered] sample=False"

    def test_secrets_are_hidden(self, changes):
        """Secrets are hidden in the example and in its rendering."""
        argument = "a: Annotated[str, Arg(secret=True, examples=['swordfish-9'])]"
        (change,) = changes(ask(argument, "f'One {a}'"), ask(argument, "f'Two {a}'"))

        assert str(change) == "prompt 'ask': renders different text for a=<secret>"
        assert change.diff == [" [user]", "-One <secret>", "+Two <secret>"]


def test_long_strings_are_not_matched():
    """The lines of very long strings are not matched, because that could take quadratic time."""
    old = [f"line {number}" for number in range(2_001)]
    change = Difference("rendering", "p", "x", "\n".join(old), "new")

    assert change.diff == ["@@", *(f"-{line}" for line in old), "+new"]

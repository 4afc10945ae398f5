"""The changes that `promptkit diff` reports, and which of them break callers."""

import time
from itertools import count
from textwrap import dedent

import pytest

from promptkit import compiler
from promptkit.cli.differences.changes import Difference, Kind, changes_between
from promptkit.cli.differences.sides import own_examples, side_of
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
    "prompt removed": (ask() + read(), read(), [Kind.PROMPT_REMOVED]),
    "prompt added": (read(), ask() + read(), [Kind.PROMPT_ADDED]),
    "prompt renamed": (ask(), ask(options="name='greet'"), [Kind.PROMPT_REMOVED, Kind.PROMPT_ADDED]),
    "prompt broken": (ask("a: str"), ask("a"), [Kind.PROMPT_REMOVED]),
    "argument removed": (ask("a: str = ''"), ask(), [Kind.ARGUMENT_REMOVED]),
    "argument renamed": (
        ask("a: str = ''"),
        ask("b: str = ''"),
        [Kind.ARGUMENT_REMOVED, Kind.ARGUMENT_ADDED],
    ),
    "argument added": (ask(), ask("a: str = ''"), [Kind.ARGUMENT_ADDED]),
    "argument of the environment added": (
        ask(),
        ask("a: Annotated[str, Arg(env='TEAM')] = ''"),
        [Kind.ARGUMENT_ADDED],
    ),
    "required argument added": (ask(), ask("a: str"), [Kind.REQUIRED_ARGUMENT_ADDED]),
    "now required": (
        ask("a: str = ''"),
        ask("a: str"),
        [Kind.ARGUMENT_NOW_REQUIRED, Kind.ARGUMENT_DEFAULT],
    ),
    "now optional": (
        ask("a: str"),
        ask("a: str = ''"),
        [Kind.ARGUMENT_NOW_OPTIONAL, Kind.ARGUMENT_DEFAULT],
    ),
    "choice removed": (
        ask("a: Literal['x', 'y']"),
        ask("a: Literal['x']"),
        [Kind.ARGUMENT_NARROWED],
    ),
    "choice added": (ask("a: Literal['x']"), ask("a: Literal['x', 'y']"), [Kind.ARGUMENT_WIDENED]),
    "choices in another order": (ask("a: Literal['x', 'y']"), ask("a: Literal['y', 'x']"), []),
    "text to choices": (ask("a: str"), ask("a: Literal['x']"), [Kind.ARGUMENT_NARROWED]),
    "choices to text": (ask("a: Literal['x']"), ask("a: str"), [Kind.ARGUMENT_WIDENED]),
    "text to number": (ask("a: str"), ask("a: int"), [Kind.ARGUMENT_NARROWED]),
    "number to text": (ask("a: int"), ask("a: str"), [Kind.ARGUMENT_WIDENED]),
    "number with digits": (ask("a: int"), ask("a: float"), [Kind.ARGUMENT_WIDENED]),
    "number without digits": (ask("a: float"), ask("a: int"), [Kind.ARGUMENT_NARROWED]),
    "date to number": (ask("a: date"), ask("a: int"), [Kind.ARGUMENT_NARROWED]),
    "tighter bound": (
        ask("a: Annotated[int, Meta(ge=0)]"),
        ask("a: Annotated[int, Meta(ge=1)]"),
        [Kind.ARGUMENT_NARROWED],
    ),
    "looser bound": (
        ask("a: Annotated[int, Meta(le=9)]"),
        ask("a: Annotated[int, Meta(le=10)]"),
        [Kind.ARGUMENT_NARROWED],
    ),
    "pattern": (ask("a: str"), ask("a: Annotated[str, Meta(pattern='x')]"), [Kind.ARGUMENT_NARROWED]),
    "items narrowed": (ask("a: list[str]"), ask("a: list[int]"), [Kind.ARGUMENT_NARROWED]),
    "places changed": (ask("a: tuple[int, str]"), ask("a: tuple[str, int]"), [Kind.ARGUMENT_NARROWED]),
    "another type besides": (ask("a: int"), ask("a: int | date"), [Kind.ARGUMENT_WIDENED]),
    "one type less": (ask("a: int | date"), ask("a: int"), [Kind.ARGUMENT_NARROWED]),
    "field added": (
        POINT.format("") + ask("a: P"),
        POINT.format("    y: int\n") + ask("a: P"),
        [Kind.ARGUMENT_NARROWED],
    ),
    "optional field added": (
        POINT.format("") + ask("a: P"),
        POINT.format("    y: int = 0\n") + ask("a: P"),
        [Kind.ARGUMENT_NARROWED],
    ),
    "a docstring and a default of a record": (
        POINT.format("    y: int = 0\n") + ask("a: list[P]"),
        POINT.format("    y: int = 1\n").replace("class P:\n", 'class P:\n    """Somewhere."""\n')
        + ask("a: list[P]"),
        [Kind.ARGUMENT_TYPE],
    ),
    "the record of another argument": (
        TREES.format("") + ask("a: P, b: Q"),
        TREES.format("    y: int\n") + ask("a: P, b: Q"),
        [Kind.ARGUMENT_NARROWED],
    ),
    "another type of the same values": (ask("a: float"), ask("a: float | int"), [Kind.ARGUMENT_TYPE]),
    "optional field removed": (
        POINT.format("    y: int = 0\n") + ask("a: P"),
        POINT.format("") + ask("a: P"),
        [Kind.ARGUMENT_NARROWED],
    ),
    "default": (ask("a: int = 1"), ask("a: int = 2"), [Kind.ARGUMENT_DEFAULT]),
    "secret default": (
        ask("a: Annotated[int, Arg(secret=True)] = 1"),
        ask("a: Annotated[int, Arg(secret=True)] = 2"),
        [],
    ),
    "argument described": (
        ask("a: str"),
        ask("a: Annotated[str, Arg('A word')]"),
        [Kind.ARGUMENT_DESCRIPTION],
    ),
    "argument titled": (
        ask("a: str"),
        ask("a: Annotated[str, Arg(title='A')]"),
        [Kind.ARGUMENT_TITLE],
    ),
    "arguments in another order": (ask("a: str, b: str"), ask("b: str, a: str"), [Kind.ARGUMENT_ORDER]),
    "title": (ask(), ask(options="title='Hello'"), [Kind.TITLE]),
    "description": (ask(), ask(doc="Greet."), [Kind.DESCRIPTION]),
    "icon": (ask(), ask(options=ICON), [Kind.ICONS]),
    "meta": (ask(), ask(options="meta={'team': 'core'}"), [Kind.META]),
    "rendering": (ask(), ask(body="'Hi.'"), [Kind.RENDERING]),
    "rendering of an example": (
        ask(EXAMPLE, "f'Hello {a}'"),
        ask(EXAMPLE, "f'Hi {a}'"),
        [Kind.RENDERING],
    ),
    "rendering that nobody has an example for": (ask("a: str", "a"), ask("a: str", "a + a"), []),
    "rendering fails": (ask(EXAMPLE, "a"), ask(EXAMPLE, "a[1]"), [Kind.RENDERING_FAILS]),
    "rendering failed already": (ask(EXAMPLE, "a[1]"), ask(EXAMPLE, "a[2]"), []),
    "rendering fails no longer": (ask(EXAMPLE, "a[1]"), ask(EXAMPLE, "a"), []),
    "an example of yesterday": (
        ask(EXAMPLE, "a"),
        ask("a: Annotated[Literal['y'], Arg(examples=['y'])]", "a"),
        [Kind.ARGUMENT_NARROWED],
    ),
    "scopes needed": (ask(), ask(options="scopes=['a']"), [Kind.SCOPES_NEEDED]),
    "scopes dropped": (
        read(options=", scopes=['a', 'b']"),
        read(options=", scopes=['b']"),
        [Kind.SCOPES_DROPPED],
    ),
    "resource removed": (ask() + read(), ask(), [Kind.RESOURCE_REMOVED]),
    "resource added": (ask(), ask() + read(), [Kind.RESOURCE_ADDED]),
    "resource moved": (read(), read(uri="docs://b"), [Kind.RESOURCE_REMOVED, Kind.RESOURCE_ADDED]),
    "resource named": (read(), read(options=", name='other'"), [Kind.RESOURCE_NAME]),
    "resource described": (read(), read(doc="The text."), [Kind.DESCRIPTION]),
    "MIME type": (read(), read(options=", mime_type='text/csv'"), [Kind.MIME_TYPE]),
    "skill removed": (teach() + ask(), ask(), [Kind.SKILL_REMOVED]),
    "skill added": (ask(), teach() + ask(), [Kind.SKILL_ADDED]),
    "skill changed": (teach(), teach("'Bye.'"), [Kind.SKILL_FILE]),
    "skill described": (teach(), teach(doc="How one says it."), [Kind.SKILL_FILE]),
    "files of a skill": (
        teach(options="files={'a': 'a', 'b': 'b', 'c': 'c'}"),
        teach(options="files={'a': 'a', 'b': 'x', 'd': 'd'}"),
        [Kind.SKILL_FILE, Kind.SKILL_FILE, Kind.SKILL_FILE],
    ),
    "skill needs scopes": (teach(), teach(options="scopes=['a']"), [Kind.SCOPES_NEEDED]),
    "reading": (read(), read("'Hi.'"), [Kind.READING]),
    "reading fails": (read(), read("''[1]"), [Kind.READING_FAILS]),
}

#: The kinds that break existing callers.
BREAKING = {
    Kind.PROMPT_REMOVED,
    Kind.ARGUMENT_REMOVED,
    Kind.REQUIRED_ARGUMENT_ADDED,
    Kind.ARGUMENT_NOW_REQUIRED,
    Kind.ARGUMENT_NARROWED,
    Kind.RENDERING_FAILS,
    Kind.SCOPES_NEEDED,
    Kind.RESOURCE_REMOVED,
    Kind.READING_FAILS,
    Kind.SKILL_REMOVED,
}

numbers = count()


@pytest.fixture
def changes(recipes):
    """A function that returns the changes between two sources."""

    def compare(before, after):
        def catalog(source):
            return compiler.compile(load(recipes(f"side{next(numbers)}/recipes", a=HEAD + dedent(source))))

        old = catalog(before)
        examples = own_examples(old)
        old_side = side_of(old, examples)  # before the other module of this name is imported
        return changes_between(old_side, side_of(catalog(after), examples))

    return compare


@pytest.mark.parametrize(("before", "after", "kinds"), ROWS.values(), ids=ROWS)
def test_changes_are_reported(before, after, kinds, changes):
    """Every change is reported, and nothing else."""
    assert sorted(change.kind.code for change in changes(before, after)) == sorted(
        kind.code for kind in kinds
    )


def test_table_is_complete():
    """The table contains every kind of change, and exactly the listed kinds break callers."""
    assert {kind for *_, kinds in ROWS.values() for kind in kinds} == set(Kind)
    assert {kind for kind in Kind if kind.breaking} == BREAKING


class TestMessages:
    def test_types(self, changes):
        """Types are shown as `list` shows them, and as schemas if only their bounds differ."""
        (choices,) = changes(ask("a: Literal['x', 'y']"), ask("a: Literal['x']"))
        (bounds,) = changes(ask("a: Annotated[int, Meta(ge=0)]"), ask("a: Annotated[int, Meta(ge=1)]"))

        assert str(choices) == "prompt 'ask': argument 'a' no longer takes all that it took"
        assert choices.diff == ["-Literal['x', 'y']", "+Literal['x']"]
        assert '-  "minimum": 0,' in bounds.diff

    def test_renderings(self, changes):
        """A changed rendering is shown with context lines and its example."""
        (change,) = changes(
            ask(EXAMPLE, "user(f'One {a}\\n\\nTwo\\n\\nThree')"),
            ask(EXAMPLE, "user(f'One {a}\\n\\nTwo\\n\\nFour')"),
        )

        assert str(change) == "prompt 'ask': renders another text for a='x'"
        assert change.diff == [" Two", " ", "-Three", "+Four"]

    def test_failures(self, changes):
        """A failure is shown with its error."""
        (change,) = changes(ask(EXAMPLE, "a"), ask(EXAMPLE, "a[1]"))

        assert str(change) == "prompt 'ask': fails for a='x': IndexError: string index out of range"

    @pytest.mark.parametrize("kind", ["prompt", "resource"])
    def test_rejected_defaults_do_not_break_callers(self, kind, changes):
        """A prompt that rejects its defaults breaks no caller, and the reason is shown."""
        text = ask() if kind == "prompt" else read()
        rejecting = text.replace("return 'Hello.'", "raise PromptError('nothing is staged')")
        (change,) = changes(text, rejecting)

        assert not change.kind.breaking
        assert change.diff[-1] == "+not rendered: nothing is staged"
        assert changes(rejecting, rejecting) == []

    def test_unsampled_prompts_do_not_break_callers(self, changes):
        """A prompt with `sample=False` is not rendered for its earlier examples."""
        (change,) = changes(ask(), ask(options="sample=False"))

        assert not change.kind.breaking
        assert change.diff[-1] == "+not rendered: sample=False"

    def test_secrets_are_hidden(self, changes):
        """Secrets are hidden in the example and in its rendering."""
        argument = "a: Annotated[str, Arg(secret=True, examples=['swordfish-9'])]"
        (change,) = changes(ask(argument, "f'One {a}'"), ask(argument, "f'Two {a}'"))

        assert str(change) == "prompt 'ask': renders another text for a=<secret>"
        assert change.diff == [" [user]", "-One <secret>", "+Two <secret>"]


class TestLongTexts:
    """The time for a diff is linear in its lines."""

    def test_linear_time(self):
        """A diff with swapped pairs of lines takes linear time."""

        def seconds(count):
            old = [f"line {number}" for number in range(count)]
            new = [old[number ^ 1] for number in range(count)]
            change = Difference(Kind.RENDERING, "p", "x", "\n".join(old), "\n".join(new))
            start = time.process_time()
            assert len(change.diff) > count
            return time.process_time() - start

        assert seconds(40_000) < 4 * seconds(20_000) + 0.5

    def test_common_lines_are_context(self):
        """Only the differing lines and their context are shown."""
        old = [f"line {number}" for number in range(20_000)]
        new = [*old[:10_000], "new", *old[10_001:]]
        change = Difference(Kind.RENDERING, "p", "x", "\n".join(old), "\n".join(new))

        assert change.diff == [
            " line 9998",
            " line 9999",
            "-line 10000",
            "+new",
            " line 10001",
            " line 10002",
        ]

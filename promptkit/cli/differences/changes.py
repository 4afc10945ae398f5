"""
What clients see differently between two states of a catalog, and whether that breaks callers.

Both states are plain data, as `promptkit.cli.differences.sides` makes it. Nothing is read or run here.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import unified_diff
from enum import Enum
from typing import Any, Final, TypeAlias

from msgspec import Struct

from promptkit.cli.differences.widening import WORDS, takes_all

__all__ = ["Difference", "Kind", "changes_between"]

#: One item of a list, as a client receives it.
Item: TypeAlias = Mapping[str, Any]

#: Where a prompt's schema stands.
_SCHEMA: Final = "promptkit/arguments"


class Kind(Enum):
    """What can change, and whether a caller that was fine before may fail now."""

    PROMPT_REMOVED = "prompt-removed", True
    PROMPT_ADDED = "prompt-added", False
    ARGUMENT_REMOVED = "argument-removed", True
    ARGUMENT_ADDED = "argument-added", False
    REQUIRED_ARGUMENT_ADDED = "required-argument-added", True
    ARGUMENT_NOW_REQUIRED = "argument-now-required", True
    ARGUMENT_NOW_OPTIONAL = "argument-now-optional", False
    ARGUMENT_NARROWED = "argument-narrowed", True
    ARGUMENT_WIDENED = "argument-widened", False
    ARGUMENT_TYPE = "argument-type", False
    ARGUMENT_ORDER = "argument-order", False
    ARGUMENT_DEFAULT = "argument-default", False
    ARGUMENT_TITLE = "argument-title", False
    ARGUMENT_DESCRIPTION = "argument-description", False
    TITLE = "title", False
    DESCRIPTION = "description", False
    ICONS = "icons", False
    META = "meta", False
    SCOPES_NEEDED = "scopes-needed", True
    SCOPES_DROPPED = "scopes-dropped", False
    RENDERING = "rendering", False
    RENDERING_FAILS = "rendering-fails", True
    RESOURCE_REMOVED = "resource-removed", True
    RESOURCE_ADDED = "resource-added", False
    RESOURCE_NAME = "resource-name", False
    MIME_TYPE = "mime-type", False
    READING = "reading", False
    READING_FAILS = "reading-fails", True

    def __init__(self, code: str, breaking: bool) -> None:  # noqa: FBT001 (as it stands in the table)
        self.code = code
        self.breaking = breaking


class Difference(Struct, frozen=True):
    """
    One thing that has changed.

    Args:
        kind:
            What.

        owner:
            Whose: ``prompt 'review'``.

        message:
            What a person is told of it, without the owner.

        before:
            What it was, as text; None if there is nothing to compare.

        after:
            What it is.
    """

    kind: Kind
    owner: str
    message: str
    before: str | None = None
    after: str | None = None

    @property
    def diff(self) -> list[str]:
        """The lines that differ, and those around them, as a unified diff without a head."""
        if self.before is None or self.after is None:
            return []
        found = list(unified_diff(self.before.splitlines(), self.after.splitlines(), lineterm="", n=2))[2:]
        # Where only one place differs, the numbers of its lines say nothing more.
        return found[1:] if sum(line.startswith("@@") for line in found) == 1 else found

    def __str__(self) -> str:
        return f"{self.owner}: {self.message}"

    def as_data(self) -> dict[str, Any]:
        """The change as JSON-compatible data."""
        return {
            "kind": self.kind.code,
            "breaking": self.kind.breaking,
            "of": self.owner,
            "message": self.message,
            "before": self.before,
            "after": self.after,
        }


def changes_between(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    """
    Return what has changed: of prompts, then of resources, by name.

    Args:
        old:
            The earlier side: its lists, and what was rendered and read for its examples.

        new:
            The later side, rendered and read for the same.
    """
    found: list[Difference] = []
    for kind in _LISTS:
        before, after = _by_key(old, kind), _by_key(new, kind)
        for key in sorted(before.keys() | after.keys()):
            found += kind.changes(key, before.get(key), after.get(key), (old, new))
    return found


class _List(Struct, frozen=True):
    """One of the lists: where it stands, what identifies an item, and how items are compared."""

    name: str
    key: str
    called: str
    removed: Kind
    added: Kind
    compare: Callable[[str, Item, Item], Iterator[Difference]]

    def changes(
        self, key: str, old: Item | None, new: Item | None, sides: tuple[Mapping[str, Any], Mapping[str, Any]]
    ) -> Iterable[Difference]:
        """What has changed of one item, which may be missing on one side."""
        owner = f"{self.called} {key!r}"
        if old is None:
            return [Difference(self.added, owner, "is new")]
        if new is None:
            return [Difference(self.removed, owner, "is gone")]
        listed = [*self.compare(owner, old, new), *_scopes(owner, old, new)]
        before, after = (side["shown"].get(f"{self.called} {key}", []) for side in sides)
        # Of an argument that is gone, say, every example says again what was said already.
        told = any(change.kind.breaking for change in listed)
        shown = _shown(self.called, owner, before, after)
        return [*listed, *(one for one in shown if not (told and one.kind.breaking))]


def _by_key(side: Mapping[str, Any], kind: _List) -> dict[str, Item]:
    return {item[kind.key]: item for item in side["lists"].get(kind.name, ())}


def _scopes(owner: str, old: Item, new: Item) -> Iterator[Difference]:
    """Which scopes callers need now, or need no more."""
    before, after = set(old.get("scopes", ())), set(new.get("scopes", ()))
    if more := sorted(after - before):
        yield Difference(Kind.SCOPES_NEEDED, owner, f"callers need more scopes: {' '.join(more)}")
    if fewer := sorted(before - after):
        yield Difference(Kind.SCOPES_DROPPED, owner, f"callers no longer need: {' '.join(fewer)}")


def _shown(called: str, owner: str, old: Iterable[Item], new: Iterable[Item]) -> Iterator[Difference]:
    """How examples are rendered, or read, differently."""
    verb, differs, fails = "says", Kind.RENDERING, Kind.RENDERING_FAILS
    if called != "prompt":
        verb, differs, fails = "holds", Kind.READING, Kind.READING_FAILS
    for before, after in zip(old, new, strict=False):
        if before["text"] is None or before["text"] == after["text"]:
            continue
        if after["text"] is None:
            yield Difference(fails, owner, f"fails for {after['for']}: {after['failure']}")
        else:
            message = f"{verb} something else for {after['for']}"
            yield Difference(differs, owner, message, before["text"], after["text"])


def _words(owner: str, old: Item, new: Item, table: Mapping[str, tuple[Kind, str]]) -> Iterator[Difference]:
    """What has changed of members that are words."""
    for member, (kind, name) in table.items():
        before, after = old.get(member), new.get(member)
        if before != after:
            yield Difference(kind, owner, f"{name} has changed", _as_text(before), _as_text(after))


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, indent=2, sort_keys=True)


def _prompt(owner: str, old: Item, new: Item) -> Iterator[Difference]:
    table = {
        "title": (Kind.TITLE, "the title"),
        "description": (Kind.DESCRIPTION, "the description"),
        "icons": (Kind.ICONS, "the list of icons"),
        "meta": (Kind.META, "_meta"),
    }
    yield from _words(owner, _with_meta(old), _with_meta(new), table)
    before, after = _arguments(old), _arguments(new)
    for name in dict.fromkeys((*before, *after)):
        yield from _argument(owner, name, before.get(name), after.get(name))
    if [name for name in before if name in after] != [name for name in after if name in before]:
        yield Difference(
            Kind.ARGUMENT_ORDER, owner, f"the arguments stand in another order: {', '.join(after)}"
        )


def _with_meta(prompt: Item) -> Item:
    """A prompt with what its author put into ``_meta``."""
    own = {key: value for key, value in prompt.get("_meta", {}).items() if key != _SCHEMA}
    return {**prompt, "meta": own or None}


class _ListedArgument(Struct, frozen=True):
    """An argument: its schema, what that refers to, and its type and words as its author writes them."""

    required: bool
    schema: Item
    root: Item
    type: str
    words: str | None

    @property
    def schema_text(self) -> str:
        """The schema of its type, with the definitions that it refers to, if it does."""
        found = {key: value for key, value in self.schema.items() if key not in WORDS}
        text = _as_text(found)
        if '"$ref"' not in text:
            return text
        return _as_text({**found, "$defs": self.root["$defs"]})


def _arguments(prompt: Item) -> dict[str, _ListedArgument]:
    root, types, words = prompt["schema"], prompt["types"], prompt["words"]
    properties = root["properties"]
    return {
        name: _ListedArgument(one["required"], properties[name], root, types[name], words[name])
        for one in prompt.get("arguments", ())
        for name in [one["name"]]
    }


def _argument(
    owner: str, name: str, old: _ListedArgument | None, new: _ListedArgument | None
) -> Iterator[Difference]:
    if old is None or new is None:
        yield _come_or_gone(owner, name, new)
        return
    if old.required and not new.required:
        yield Difference(Kind.ARGUMENT_NOW_OPTIONAL, owner, f"argument {name!r} is optional now")
    if new.required and not old.required:
        yield Difference(Kind.ARGUMENT_NOW_REQUIRED, owner, f"argument {name!r} is required now")
    yield from _type(owner, name, old, new)
    table = {
        "title": (Kind.ARGUMENT_TITLE, f"the title of argument {name!r}"),
        "description": (Kind.ARGUMENT_DESCRIPTION, f"the description of argument {name!r}"),
        "default": (Kind.ARGUMENT_DEFAULT, f"the default of argument {name!r}"),
    }
    yield from _words(owner, _said(old), _said(new), table)


def _said(argument: _ListedArgument) -> Item:
    """What is said of an argument. Its type adds to that, and is compared for itself."""
    return {**argument.schema, "description": argument.words}


def _come_or_gone(owner: str, name: str, new: _ListedArgument | None) -> Difference:
    if new is None:
        return Difference(Kind.ARGUMENT_REMOVED, owner, f"argument {name!r} is gone")
    if new.required:
        return Difference(Kind.REQUIRED_ARGUMENT_ADDED, owner, f"argument {name!r} is new, and required")
    return Difference(Kind.ARGUMENT_ADDED, owner, f"argument {name!r} is new, and optional")


def _type(owner: str, name: str, old: _ListedArgument, new: _ListedArgument) -> Iterator[Difference]:
    """Whether an argument takes more than before, or not all that it took."""
    kind, message = Kind.ARGUMENT_NARROWED, f"argument {name!r} no longer takes all that it took"
    if takes_all(old.schema, new.schema, old.root, new.root):
        kind, message = Kind.ARGUMENT_WIDENED, f"argument {name!r} takes more than before"
        if takes_all(new.schema, old.schema, new.root, old.root):
            if _ordered(old.schema_text) == _ordered(new.schema_text):
                return
            kind, message = (
                Kind.ARGUMENT_TYPE,
                f"argument {name!r} takes what it took, and is of another type",
            )
    if old.type != new.type:
        yield Difference(kind, owner, message, old.type, new.type)
    else:
        yield Difference(kind, owner, message, old.schema_text, new.schema_text)


def _ordered(schema: str) -> list[str]:
    """The lines of a schema in an order that does not depend on that of its choices."""
    return sorted(line.rstrip(",") for line in schema.splitlines())


def _resource(owner: str, old: Item, new: Item) -> Iterator[Difference]:
    table = {
        "name": (Kind.RESOURCE_NAME, "the name"),
        "title": (Kind.TITLE, "the title"),
        "description": (Kind.DESCRIPTION, "the description"),
        "mimeType": (Kind.MIME_TYPE, "the MIME type"),
    }
    yield from _words(owner, old, new, table)


_LISTS: Final = (
    _List("prompts", "name", "prompt", Kind.PROMPT_REMOVED, Kind.PROMPT_ADDED, _prompt),
    _List("resources", "uri", "resource", Kind.RESOURCE_REMOVED, Kind.RESOURCE_ADDED, _resource),
    _List(
        "resourceTemplates", "uriTemplate", "template", Kind.RESOURCE_REMOVED, Kind.RESOURCE_ADDED, _resource
    ),
)

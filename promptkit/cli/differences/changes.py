"""
What clients see differently between two states of a catalog, and whether that breaks callers.

Both states are plain data, as `promptkit.cli.differences.sides` makes it. Nothing is read or run here.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from enum import Enum
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from msgspec import Struct

from promptkit.catalog.prompts import SCHEMA
from promptkit.catalog.skills import SKILL_FILE

Schema: TypeAlias = Mapping[str, Any]

#: What is said of a value, and does not bound it.
WORDS: Final = frozenset({"title", "description", "examples", "default", "$comment"})

#: The types of JSON by those of Python.
_TYPES: Final = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}

_REFERENCE: Final = re.compile(r'"\$ref": "#/\$defs/([^"]*)"')


def takes_all(old: Schema, new: Schema, old_root: Schema, new_root: Schema) -> bool:
    """
    Return whether an argument takes every text that it took before.

    So it does if no choice and no alternative is gone. Any other change of a type counts as narrower. The
    empty text is left out: for all types but strings it means "not given".

    Args:
        old:
            The schema of its type before.

        new:
            The schema of its type now.

        old_root:
            Where the definitions are that *old* refers to.

        new_root:
            Where the definitions are that *new* refers to.
    """
    now = list(_alternatives(new, new_root))
    if now == [{"type": "string"}]:  # arguments are sent as text, and any text is one
        return True
    taken = {_text(one, new_root) for one in now}
    types = {one["type"] for one in now if one.keys() == {"type"}}
    return all(
        _text(one, old_root) in taken or not types.isdisjoint(_types_of(one))
        for one in _alternatives(old, old_root)
    )


def _alternatives(schema: Schema, root: Schema) -> Iterator[Schema]:
    """The choices and the types that a value may be of, without what does not bound it."""
    ahead, passed = [schema], set[str]()
    while ahead:
        one = ahead.pop()
        name = one.get("$ref", "").removeprefix("#/$defs/")
        if name in root.get("$defs", ()):
            if name not in passed:  # else it holds itself
                passed.add(name)
                ahead.append(root["$defs"][name])
        elif "anyOf" in one:
            ahead += one["anyOf"]
        elif "enum" in one:
            yield from ({"const": value} for value in one["enum"])
        else:
            yield _without_words(one)


def _without_words(schema: Any, key: str = "") -> Any:
    """The schema that is at *key* of another without what does not bound values, within it too."""
    if isinstance(schema, Mapping):
        if key == "properties":  # the keys are names of fields, such as "title"
            return {name: _without_words(one) for name, one in schema.items()}
        return {key: _without_words(one, key) for key, one in schema.items() if key not in WORDS}
    return [_without_words(one) for one in schema] if isinstance(schema, list) else schema


def _text(schema: Schema, root: Schema) -> str:
    bounds = _without_words(schema), {k: _without_words(v) for k, v in definitions_of(schema, root).items()}
    return json.dumps(bounds, sort_keys=True)


def definitions_of(schema: Schema, root: Schema) -> dict[str, Schema]:
    """Return the definitions of *root* that the schema refers to, also by others."""
    found, ahead = dict[str, Schema](), [schema]
    while ahead:
        names = set(_REFERENCE.findall(json.dumps(ahead.pop()))) - found.keys()
        new = {name: root["$defs"][name] for name in sorted(names) if name in root.get("$defs", ())}
        found |= new
        ahead += new.values()
    return found


def _types_of(schema: Schema) -> tuple[str, ...]:
    """The types of JSON that its values are of."""
    found = schema.get("type") or _TYPES.get(type(schema.get("const")), "")
    return ("integer", "number") if found == "integer" else (found,)


#: One item of a list, as a client receives it.
Item: TypeAlias = Mapping[str, Any]


#: How many equal lines are shown around those that differ.
_CONTEXT: Final = 2

#: How many lines are compared with as many others.
_MAX_LINES: Final = 2_000


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
    SKILL_REMOVED = "skill-removed", True
    SKILL_ADDED = "skill-added", False
    SKILL_FILE = "skill-file", False

    def __init__(self, code: str, breaking: bool) -> None:  # noqa: FBT001 (as it stands in the table)
        self.code = code
        self.breaking = breaking


#: Each list: its name, the key of its items, and what one is called.
_LISTS: Final = (
    ("prompts", "name", "prompt"),
    ("resources", "uri", "resource"),
    ("resourceTemplates", "uriTemplate", "template"),
    ("skills", "uri", "skill"),
)

#: What to say of an item that is gone, or new.
_GONE: Final = {"prompt": Kind.PROMPT_REMOVED, "skill": Kind.SKILL_REMOVED}
_NEW: Final = {"prompt": Kind.PROMPT_ADDED, "skill": Kind.SKILL_ADDED}

#: Members of items that are words.
_MEMBERS: Final = {
    "name": (Kind.RESOURCE_NAME, "the name"),
    "title": (Kind.TITLE, "the title"),
    "description": (Kind.DESCRIPTION, "the description"),
    "mimeType": (Kind.MIME_TYPE, "the MIME type"),
    "icons": (Kind.ICONS, "the list of icons"),
    "meta": (Kind.META, "_meta"),
}


class Difference(Struct, frozen=True):
    """
    One thing that has changed.

    Args:
        kind:
            What.

        owner:
            Whose: ``prompt 'review'``.

        message:
            What it is, for people, without the owner.

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
    def effect(self) -> str:
        """What it does to callers, in a word."""
        return "breaking" if self.kind.breaking else "harmless"

    @property
    def diff(self) -> list[str]:
        """The lines that differ, and those around them, as a unified diff without a head."""
        if self.before is None or self.after is None:
            return []
        found = _unified(self.before.splitlines(), self.after.splitlines())
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


def _unified(old: list[str], new: list[str]) -> list[str]:
    """
    Return a unified diff without a head.

    The time for it is quadratic, so of longer texts only the part that differs is compared; if that is long
    itself, all of it counts as other lines. Their hunks have no numbers.
    """
    if max(len(old), len(new)) <= _MAX_LINES:
        return list(unified_diff(old, new, lineterm="", n=_CONTEXT))[2:]
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    first = max(start - _CONTEXT, 0)
    old, new = (lines[first : len(lines) - max(end - _CONTEXT, 0)] for lines in (old, new))
    if max(len(old), len(new)) <= _MAX_LINES:
        diff = list(unified_diff(old, new, lineterm="", n=_CONTEXT))[2:]
        return ["@@" if line.startswith("@@") else line for line in diff]
    return ["@@", *(f"-{line}" for line in old), *(f"+{line}" for line in new)]


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """The number of lines that both begin with."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((number for number, (one, other) in pairs if one != other), min(len(old), len(new)))


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
    for name, key, noun in _LISTS:
        before, after = ({item[key]: item for item in _items(side["lists"], name)} for side in (old, new))
        for one in sorted(before.keys() | after.keys()):
            owner = f"{noun} {one!r}"
            listed = list(_listed(noun, owner, before.get(one), after.get(one)))
            texts = (side["shown"].get(owner, []) for side in (old, new))
            # Of an argument that is gone, say, every example says again what was said already.
            is_broken = any(change.kind.breaking for change in listed)
            shown = _shown(noun, owner, *texts)
            found += [*listed, *(change for change in shown if not (is_broken and change.kind.breaking))]
    return found


def _items(lists: Mapping[str, Any], name: str) -> Iterable[Item]:
    """The items of a list. The resources that skills begin with are compared as skills."""
    skills = {skill["uri"] for skill in lists.get("skills", ())} if name == "resources" else ()
    return (item for item in lists.get(name, ()) if item.get("uri") not in skills)


def _listed(noun: str, owner: str, old: Item | None, new: Item | None) -> Iterator[Difference]:
    """What has changed of one item of a list, which may be missing on one side."""
    if old is None or new is None:
        if new is None:
            yield Difference(_GONE.get(noun, Kind.RESOURCE_REMOVED), owner, "is gone")
        else:
            yield Difference(_NEW.get(noun, Kind.RESOURCE_ADDED), owner, "is new")
        return
    if noun == "skill":
        yield from _files(owner, old, new)
        yield from _scopes(owner, old, new)
        return
    yield from _words(owner, _with_meta(old), _with_meta(new), _MEMBERS)
    before, after = _arguments(old), _arguments(new)
    for name in dict.fromkeys((*before, *after)):
        yield from _argument(owner, name, before.get(name), after.get(name))
    if [name for name in before if name in after] != [name for name in after if name in before]:
        order = f"the arguments stand in another order: {', '.join(after)}"
        yield Difference(Kind.ARGUMENT_ORDER, owner, order)
    yield from _scopes(owner, old, new)


def _scopes(owner: str, old: Item, new: Item) -> Iterator[Difference]:
    """Which scopes callers need now, or need no more."""
    before, after = set(old.get("scopes", ())), set(new.get("scopes", ()))
    if more := sorted(after - before):
        yield Difference(Kind.SCOPES_NEEDED, owner, f"callers need more scopes: {' '.join(more)}")
    if fewer := sorted(before - after):
        yield Difference(Kind.SCOPES_DROPPED, owner, f"callers no longer need: {' '.join(fewer)}")


def _files(owner: str, old: Item, new: Item) -> Iterator[Difference]:
    """Which files of a skill have changed: a host forgets that somebody has approved the skill."""
    before, after = ({one["uri"]: one for one in item["resources"]} for item in (old, new))
    for uri in sorted(before.keys() | after.keys()):
        was, now = before.get(uri, {}), after.get(uri, {})
        if was.get("digest") == now.get("digest"):
            continue
        path = unquote(uri.removeprefix(new["uri"].removesuffix(SKILL_FILE)))
        how = "has changed" if was and now else "is gone" if was else "is new"
        message = f"{path} {how}, so that approvals of the skill are lost"
        yield Difference(Kind.SKILL_FILE, owner, message, was.get("text"), now.get("text"))


def _shown(noun: str, owner: str, old: Iterable[Item], new: Iterable[Item]) -> Iterator[Difference]:
    """How examples are rendered, or read, differently."""
    verb, differs, fails = "says", Kind.RENDERING, Kind.RENDERING_FAILS
    if noun != "prompt":
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


def _with_meta(item: Item) -> Item:
    """An item with what its author put into ``_meta``."""
    own = {key: value for key, value in item.get("_meta", {}).items() if key != SCHEMA}
    return {**item, "meta": own or None}


def _arguments(item: Item) -> dict[str, Item]:
    """The arguments of a prompt by name, each with the definitions that its schema may refer to."""
    return {one["name"]: {**one, "$defs": item["$defs"]} for one in item.get("arguments", ())}


def _argument(owner: str, name: str, old: Item | None, new: Item | None) -> Iterator[Difference]:
    called = f"argument {name!r}"
    if new is None:
        yield Difference(Kind.ARGUMENT_REMOVED, owner, f"{called} is gone")
        return
    is_required, word = new["required"], "required" if new["required"] else "optional"
    if old is None:
        kind = Kind.REQUIRED_ARGUMENT_ADDED if is_required else Kind.ARGUMENT_ADDED
        yield Difference(kind, owner, f"{called} is new, and {word}")
        return
    if old["required"] != is_required:
        kind = Kind.ARGUMENT_NOW_REQUIRED if is_required else Kind.ARGUMENT_NOW_OPTIONAL
        yield Difference(kind, owner, f"{called} is {word} now")
    yield from _type(owner, name, old, new)
    table = {
        "title": (Kind.ARGUMENT_TITLE, f"the title of {called}"),
        "description": (Kind.ARGUMENT_DESCRIPTION, f"the description of {called}"),
        "default": (Kind.ARGUMENT_DEFAULT, f"the default of {called}"),
    }
    # A type adds to the description, and is compared for itself.
    before, after = ({**one["schema"], "description": one["words"]} for one in (old, new))
    yield from _words(owner, before, after, table)


def _type(owner: str, name: str, old: Item, new: Item) -> Iterator[Difference]:
    """Whether an argument takes more than before, or not all that it took."""
    before, after = _schema_text(old), _schema_text(new)
    kind, message = Kind.ARGUMENT_NARROWED, "no longer takes all that it took"
    if takes_all(old["schema"], new["schema"], old, new):
        kind, message = Kind.ARGUMENT_WIDENED, "takes more than before"
        if takes_all(new["schema"], old["schema"], new, old):
            if _ordered(before) == _ordered(after):
                return
            kind, message = Kind.ARGUMENT_TYPE, "takes what it took, and is of another type"
    if old["type"] != new["type"]:
        before, after = old["type"], new["type"]
    yield Difference(kind, owner, f"argument {name!r} {message}", before, after)


def _schema_text(argument: Item) -> str:
    """The schema of its type, with the definitions that it refers to, if it does."""
    found = {key: value for key, value in argument["schema"].items() if key not in WORDS}
    definitions = definitions_of(found, argument)
    return _as_text({**found, "$defs": definitions} if definitions else found)


def _ordered(schema: str) -> list[str]:
    """The lines of a schema in an order that does not depend on that of its choices."""
    return sorted(line.rstrip(",") for line in schema.splitlines())

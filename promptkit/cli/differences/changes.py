"""
The changes between two states of a catalog that clients see, and whether they break callers.

Both states are plain data from `promptkit.cli.differences.sides`. This module reads and runs nothing.
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

#: Keywords of a schema that describe a value without restricting it.
ANNOTATIONS: Final = frozenset({"title", "description", "examples", "default", "$comment"})

#: JSON Schema types by Python type.
_TYPES: Final = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}

_REFERENCE: Final = re.compile(r'"\$ref": "#/\$defs/([^"]*)"')


def takes_all(old: Schema, new: Schema, old_root: Schema, new_root: Schema) -> bool:
    """
    Return whether an argument still accepts every text that it accepted before.

    This holds if all choices and alternatives remain. Any other change to a type counts as narrower. The
    empty text is ignored, because it means "not given" for all types but strings.

    Args:
        old:
            The old schema of its type.

        new:
            The new schema of its type.

        old_root:
            The schema with the definitions that *old* refers to.

        new_root:
            The schema with the definitions that *new* refers to.
    """
    alternatives = list(_alternatives(new, new_root))
    if alternatives == [{"type": "string"}]:  # arguments are sent as text, and every text is a string
        return True
    accepted = {_text(alternative, new_root) for alternative in alternatives}
    types = {alternative["type"] for alternative in alternatives if alternative.keys() == {"type"}}
    return all(
        _text(alternative, old_root) in accepted or not types.isdisjoint(_types_of(alternative))
        for alternative in _alternatives(old, old_root)
    )


def _alternatives(schema: Schema, root: Schema) -> Iterator[Schema]:
    """Yield the choices and types of a value, without annotations."""
    pending, visited = [schema], set[str]()
    while pending:
        current = pending.pop()
        name = current.get("$ref", "").removeprefix("#/$defs/")
        if name in root.get("$defs", ()):
            if name not in visited:  # otherwise it is recursive
                visited.add(name)
                pending.append(root["$defs"][name])
        elif "anyOf" in current:
            pending += current["anyOf"]
        elif "enum" in current:
            yield from ({"const": value} for value in current["enum"])
        else:
            yield _without_annotations(current)


def _without_annotations(schema: Any, key: str = "") -> Any:
    """Return the schema at *key* of another one, without annotations at any depth."""
    if isinstance(schema, Mapping):
        if key == "properties":  # the keys are names of fields, such as "title"
            return {name: _without_annotations(item) for name, item in schema.items()}
        return {
            key: _without_annotations(item, key) for key, item in schema.items() if key not in ANNOTATIONS
        }
    return [_without_annotations(item) for item in schema] if isinstance(schema, list) else schema


def _text(schema: Schema, root: Schema) -> str:
    bounds = (
        _without_annotations(schema),
        {k: _without_annotations(v) for k, v in definitions_of(schema, root).items()},
    )
    return json.dumps(bounds, sort_keys=True)


def definitions_of(schema: Schema, root: Schema) -> dict[str, Schema]:
    """Return the definitions of *root* that the schema refers to, directly or indirectly."""
    definitions, pending = dict[str, Schema](), [schema]
    while pending:
        names = set(_REFERENCE.findall(json.dumps(pending.pop()))) - definitions.keys()
        new = {name: root["$defs"][name] for name in sorted(names) if name in root.get("$defs", ())}
        definitions |= new
        pending += new.values()
    return definitions


def _types_of(schema: Schema) -> tuple[str, ...]:
    """Return the JSON types of a schema's values."""
    name = schema.get("type") or _TYPES.get(type(schema.get("const")), "")
    return ("integer", "number") if name == "integer" else (name,)


#: One item of a list, as a client receives it.
Item: TypeAlias = Mapping[str, Any]


#: Number of unchanged lines around changed ones.
_CONTEXT: Final = 2

#: Maximum number of lines of a full diff.
_MAX_LINES: Final = 2_000


class Kind(Enum):
    """The kinds of changes, and whether they can break a caller."""

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

    def __init__(self, code: str, breaking: bool) -> None:  # noqa: FBT001 (positional in the enumeration)
        self.code = code
        self.breaking = breaking


#: The lists: name, key of the items, and noun for an item.
_LISTS: Final = (
    ("prompts", "name", "prompt"),
    ("resources", "uri", "resource"),
    ("resourceTemplates", "uriTemplate", "template"),
    ("skills", "uri", "skill"),
)

#: The kinds of removed and added items.
_REMOVED: Final = {"prompt": Kind.PROMPT_REMOVED, "skill": Kind.SKILL_REMOVED}
_ADDED: Final = {"prompt": Kind.PROMPT_ADDED, "skill": Kind.SKILL_ADDED}

#: Descriptive members of items.
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
    One change.

    Args:
        kind:
            The kind of the change.

        owner:
            The changed item, such as ``prompt 'review'``.

        message:
            The message for the user, without the owner.

        before:
            The old value as text; None if there is no text to compare.

        after:
            The new value as text.
    """

    kind: Kind
    owner: str
    message: str
    before: str | None = None
    after: str | None = None

    @property
    def effect(self) -> str:
        """The effect on callers, in a word."""
        return "breaking" if self.kind.breaking else "harmless"

    @property
    def diff(self) -> list[str]:
        """A unified diff of the values without a header."""
        if self.before is None or self.after is None:
            return []
        lines = _unified(self.before.splitlines(), self.after.splitlines())
        # With only one hunk, its line numbers add no information.
        return lines[1:] if sum(line.startswith("@@") for line in lines) == 1 else lines

    def __str__(self) -> str:
        return f"{self.owner}: {self.message}"

    def as_data(self) -> dict[str, Any]:
        """Return the change as JSON-compatible data."""
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
    Return a unified diff without a header.

    Computing it needs quadratic time, so for longer texts only the part between the first and the last change
    is compared. If that part is too long as well, all its lines count as changed. These hunks have no line
    numbers.
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
    """Return the number of lines that both texts have in common at the start."""
    pairs = enumerate(zip(old, new, strict=False))
    return next(
        (number for number, (old_line, new_line) in pairs if old_line != new_line), min(len(old), len(new))
    )


def changes_between(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    """
    Return the changes to prompts and then to resources, by name.

    Args:
        old:
            The old side: its lists, and the texts of its examples.

        new:
            The new side, with the texts of the same examples.
    """
    changes: list[Difference] = []
    for name, key, noun in _LISTS:
        before, after = ({item[key]: item for item in _items(side["lists"], name)} for side in (old, new))
        for item_key in sorted(before.keys() | after.keys()):
            owner = f"{noun} {item_key!r}"
            list_changes = list(_list_changes(noun, owner, before.get(item_key), after.get(item_key)))
            texts = (side["shown"].get(owner, []) for side in (old, new))
            # After the removal of an argument, for instance, every example would repeat the message.
            is_broken = any(change.kind.breaking for change in list_changes)
            text_changes = _text_changes(noun, owner, *texts)
            changes += [
                *list_changes,
                *(change for change in text_changes if not (is_broken and change.kind.breaking)),
            ]
    return changes


def _items(lists: Mapping[str, Any], name: str) -> Iterable[Item]:
    """Return the items in a list, without the main files of skills, which are compared as skills."""
    skills = {skill["uri"] for skill in lists.get("skills", ())} if name == "resources" else ()
    return (item for item in lists.get(name, ()) if item.get("uri") not in skills)


def _list_changes(noun: str, owner: str, old: Item | None, new: Item | None) -> Iterator[Difference]:
    """Yield the changes to one list item, which can be missing on one side."""
    if old is None or new is None:
        if new is None:
            yield Difference(_REMOVED.get(noun, Kind.RESOURCE_REMOVED), owner, "is gone")
        else:
            yield Difference(_ADDED.get(noun, Kind.RESOURCE_ADDED), owner, "is new")
        return
    if noun == "skill":
        yield from _file_changes(owner, old, new)
        yield from _scope_changes(owner, old, new)
        return
    yield from _member_changes(owner, _with_meta(old), _with_meta(new), _MEMBERS)
    before, after = _arguments(old), _arguments(new)
    for name in dict.fromkeys((*before, *after)):
        yield from _argument_changes(owner, name, before.get(name), after.get(name))
    if [name for name in before if name in after] != [name for name in after if name in before]:
        order = f"the arguments are in another order: {', '.join(after)}"
        yield Difference(Kind.ARGUMENT_ORDER, owner, order)
    yield from _scope_changes(owner, old, new)


def _scope_changes(owner: str, old: Item, new: Item) -> Iterator[Difference]:
    """Yield the scopes that callers newly need or no longer need."""
    before, after = set(old.get("scopes", ())), set(new.get("scopes", ()))
    if more := sorted(after - before):
        yield Difference(Kind.SCOPES_NEEDED, owner, f"callers need more scopes: {' '.join(more)}")
    if fewer := sorted(before - after):
        yield Difference(Kind.SCOPES_DROPPED, owner, f"callers no longer need: {' '.join(fewer)}")


def _file_changes(owner: str, old: Item, new: Item) -> Iterator[Difference]:
    """Yield the changed files of a skill. Each change makes hosts drop the user's approval of the skill."""
    before, after = ({file["uri"]: file for file in item["resources"]} for item in (old, new))
    for uri in sorted(before.keys() | after.keys()):
        old_file, new_file = before.get(uri, {}), after.get(uri, {})
        if old_file.get("digest") == new_file.get("digest"):
            continue
        path = unquote(uri.removeprefix(new["uri"].removesuffix(SKILL_FILE)))
        how = "has changed" if old_file and new_file else "is gone" if old_file else "is new"
        message = f"{path} {how}, so hosts ask for approval of the skill again"
        yield Difference(Kind.SKILL_FILE, owner, message, old_file.get("text"), new_file.get("text"))


def _text_changes(noun: str, owner: str, old: Iterable[Item], new: Iterable[Item]) -> Iterator[Difference]:
    """Yield the changes in the renderings or contents of examples."""
    verb, differs, fails = "renders", Kind.RENDERING, Kind.RENDERING_FAILS
    if noun != "prompt":
        verb, differs, fails = "holds", Kind.READING, Kind.READING_FAILS
    for before, after in zip(old, new, strict=False):
        if before["text"] is None or before["text"] == after["text"]:
            continue
        if after["text"] is None:
            yield Difference(fails, owner, f"fails for {after['for']}: {after['failure']}")
        else:
            message = f"{verb} another text for {after['for']}"
            yield Difference(differs, owner, message, before["text"], after["text"])


def _member_changes(
    owner: str, old: Item, new: Item, table: Mapping[str, tuple[Kind, str]]
) -> Iterator[Difference]:
    """Yield the changes to descriptive members."""
    for member, (kind, name) in table.items():
        before, after = old.get(member), new.get(member)
        if before != after:
            yield Difference(kind, owner, f"{name} has changed", _as_text(before), _as_text(after))


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, indent=2, sort_keys=True)


def _with_meta(item: Item) -> Item:
    """Return an item with the part of ``_meta`` that its author declared."""
    declared = {key: value for key, value in item.get("_meta", {}).items() if key != SCHEMA}
    return {**item, "meta": declared or None}


def _arguments(item: Item) -> dict[str, Item]:
    """Return the arguments of a prompt by name, each with the definitions for its schema."""
    return {argument["name"]: {**argument, "$defs": item["$defs"]} for argument in item.get("arguments", ())}


def _argument_changes(owner: str, name: str, old: Item | None, new: Item | None) -> Iterator[Difference]:
    label = f"argument {name!r}"
    if new is None:
        yield Difference(Kind.ARGUMENT_REMOVED, owner, f"{label} is gone")
        return
    is_required, word = new["required"], "required" if new["required"] else "optional"
    if old is None:
        kind = Kind.REQUIRED_ARGUMENT_ADDED if is_required else Kind.ARGUMENT_ADDED
        yield Difference(kind, owner, f"{label} is new, and {word}")
        return
    if old["required"] != is_required:
        kind = Kind.ARGUMENT_NOW_REQUIRED if is_required else Kind.ARGUMENT_NOW_OPTIONAL
        yield Difference(kind, owner, f"{label} is {word} now")
    yield from _type_changes(owner, name, old, new)
    table = {
        "title": (Kind.ARGUMENT_TITLE, f"the title of {label}"),
        "description": (Kind.ARGUMENT_DESCRIPTION, f"the description of {label}"),
        "default": (Kind.ARGUMENT_DEFAULT, f"the default of {label}"),
    }
    # The description includes that of the type, which is compared separately.
    before, after = ({**argument["schema"], "description": argument["words"]} for argument in (old, new))
    yield from _member_changes(owner, before, after, table)


def _type_changes(owner: str, name: str, old: Item, new: Item) -> Iterator[Difference]:
    """Yield whether an argument accepts more values, or fewer."""
    before, after = _schema_text(old), _schema_text(new)
    kind, message = Kind.ARGUMENT_NARROWED, "no longer takes all that it took"
    if takes_all(old["schema"], new["schema"], old, new):
        kind, message = Kind.ARGUMENT_WIDENED, "takes more than before"
        if takes_all(new["schema"], old["schema"], new, old):
            if _sorted_lines(before) == _sorted_lines(after):
                return
            kind, message = Kind.ARGUMENT_TYPE, "accepts the same values, with another type"
    if old["type"] != new["type"]:
        before, after = old["type"], new["type"]
    yield Difference(kind, owner, f"argument {name!r} {message}", before, after)


def _schema_text(argument: Item) -> str:
    """Return the schema of an argument's type as text, with the definitions that it refers to."""
    schema = {key: value for key, value in argument["schema"].items() if key not in ANNOTATIONS}
    definitions = definitions_of(schema, argument)
    return _as_text({**schema, "$defs": definitions} if definitions else schema)


def _sorted_lines(schema: str) -> list[str]:
    """Return the lines of a schema in an order that does not depend on the order of its choices."""
    return sorted(line.rstrip(",") for line in schema.splitlines())

"""Whether an argument still takes every text that it took, by the JSON Schemas of its type."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

__all__ = ["WORDS", "definitions_of", "takes_all"]

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

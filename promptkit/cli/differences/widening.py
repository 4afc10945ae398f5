"""
Whether a type of today takes every value that a type of yesterday took, by their JSON Schemas.

It knows what `promptkit.catalog.json_schema` writes. What it does not know counts as narrower, and so does
what takes too long to compare.
"""

from collections.abc import Mapping
from math import inf
from typing import Any, Final, TypeAlias

__all__ = ["WORDS", "takes_all"]

Schema: TypeAlias = Mapping[str, Any]

#: A schema; True takes anything, False takes nothing.
_Rest: TypeAlias = Schema | bool

#: What is said of a value, and does not bound it.
WORDS: Final = frozenset({"title", "description", "examples", "default", "$comment"})

#: Bounds that a new schema may leave out or loosen: how they are compared, and what holds without them.
_AT_LEAST: Final = {
    **dict.fromkeys(("minimum", "exclusiveMinimum"), -inf),
    **dict.fromkeys(("minLength", "minItems", "minProperties"), 0),
}
_AT_MOST: Final = dict.fromkeys(
    ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), inf
)

#: Keywords of types without choices that are compared by rules of their own.
_OWN_RULES: Final = {"type", "items", "prefixItems", "properties", "required", "additionalProperties"}


#: How many pairs of schemas are compared for one argument: a few definitions that refer to each other twice
#: make more of them than can ever be compared.
_MAX_STEPS: Final = 20_000


class _Comparison:
    """Compares types, whose schemas refer to definitions."""

    def __init__(self, old: Schema, new: Schema) -> None:
        self._old = old
        self._new = new
        self._assumed: frozenset[tuple[Any, Any]] = frozenset()  # types that hold themselves
        self._left = _MAX_STEPS

    def widens(self, old: Schema, new: Schema) -> bool:
        """Whether *new* takes every JSON value that *old* takes."""
        self._left -= 1
        if self._left < 0:
            return False
        names = old.get("$ref"), new.get("$ref")
        if names in self._assumed:
            return True
        before = self._assumed
        if all(names):
            self._assumed = before | {names}
        found = self._widens(_resolved(old, self._old), _resolved(new, self._new))
        if not found:  # then nothing that was assumed for it holds
            self._assumed = before
        return found

    def _widens(self, old: Schema, new: Schema) -> bool:
        """The same of schemas without references."""
        if "anyOf" in old:
            return all(self.widens(one, new) for one in old["anyOf"])
        if "anyOf" in new:
            return any(self.widens(old, one) for one in new["anyOf"])
        if _values(old) is not None or _values(new) is not None:
            return _takes_values(_values(old), new)
        takes_shape = _keeps_type(old, new) and _keeps_bounds(old, new)
        return takes_shape and self._keeps_items(old, new) and self._keeps_members(old, new)

    def _keeps_items(self, old: Schema, new: Schema) -> bool:
        before, after = old.get("prefixItems", []), new.get("prefixItems", [])
        takes_first = len(before) == len(after) and all(map(self.widens, before, after))
        return takes_first and self._widens_rest(old.get("items", True), new.get("items", True))

    def _keeps_members(self, old: Schema, new: Schema) -> bool:
        before, after = old.get("properties", {}), new.get("properties", {})
        rest_before, rest_after = _rest(old), _rest(new)
        pairs = [(one, after.get(name, rest_after)) for name, one in before.items()]
        asks_no_more = set(new.get("required", ())) <= set(old.get("required", ()))
        return asks_no_more and all(self._widens_rest(*pair) for pair in (*pairs, (rest_before, rest_after)))

    def _widens_rest(self, old: _Rest, new: _Rest) -> bool:
        if old is False or new is True:
            return True
        return new is not False and self.widens({} if old is True else old, new)


def _rest(schema: Schema) -> _Rest:
    """The members that an object may have beside those that are listed: a record has none."""
    found: _Rest = schema.get("additionalProperties", "properties" not in schema)
    return found


def takes_all(old: Schema, new: Schema, old_root: Schema, new_root: Schema) -> bool:
    """
    Return whether an argument takes every text that it took before.

    The empty text is left out: for all types but strings it means "not given".

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
    bounds = _resolved(new, new_root)
    if bounds == {"type": "string"}:  # arguments are sent as text, and any text is one
        return True
    try:
        return _Comparison(old_root, new_root).widens(old, new)
    except RecursionError:  # it is nested more deeply than promptkit writes any
        return False


def _resolved(schema: Schema, root: Schema) -> dict[str, Any]:
    """A schema without a reference, and without what does not bound its values."""
    passed = set()
    while name := schema.get("$ref", "").removeprefix("#/$defs/"):
        if name in passed or name not in root["$defs"]:  # the schema of a foreign side may lead nowhere
            return {"$ref": name}
        passed.add(name)
        schema = root["$defs"][name]
    return {key: value for key, value in schema.items() if key not in WORDS}


def _values(schema: Schema) -> list[Any] | None:
    """All values that a schema takes, if it lists them."""
    if "const" in schema:
        return [schema["const"]]
    if schema.get("type") == "null":
        return [None]
    values: list[Any] | None = schema.get("enum")
    return values


#: The types of JSON by those of Python.
_TYPES: Final = {str: "string", bool: "boolean", int: "integer", float: "number"}


def _takes_values(old: list[Any] | None, new: Schema) -> bool:
    values = _values(new)
    if old is None:
        return values is None and not new  # only what is not bounded takes more than what it lists
    if values is not None:
        return all(any(one == other and type(one) is type(other) for other in values) for one in old)
    if new.keys() - {"type"}:
        return False
    return not new or all(_is_of(_TYPES.get(type(one), ""), new["type"]) for one in old)


def _is_of(old: str, new: str) -> bool:
    return old == new or (old, new) == ("integer", "number")


def _keeps_type(old: Schema, new: Schema) -> bool:
    return "type" not in new or ("type" in old and _is_of(old["type"], new["type"]))


def _keeps_bounds(old: Schema, new: Schema) -> bool:
    return all(_keeps(key, old, new) for key in new.keys() - _OWN_RULES)


def _keeps(key: str, old: Schema, new: Schema) -> bool:
    if key in _AT_LEAST:
        return bool(new[key] <= old.get(key, _AT_LEAST[key]))
    if key in _AT_MOST:
        return bool(new[key] >= old.get(key, _AT_MOST[key]))
    return key in old and bool(old[key] == new[key])

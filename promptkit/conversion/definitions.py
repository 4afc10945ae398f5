"""Definitions: the schemas that others refer to, and those that types bring along."""

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from promptkit.conversion.surrogates import Surrogate

__all__ = ["Definitions", "Schema", "schema_of_surrogate"]

Schema: TypeAlias = dict[str, Any]


class Definitions(Struct):
    """
    What ``$defs`` has: classes that hold themselves.

    With *places*, arrays say which item stands where. With *brief*, no words repeat what an outline shows.
    """

    schemas: dict[str, Schema]
    places: bool = False
    brief: bool = False
    _names: dict[Any, str] = {}

    def knows(self, kind: Any) -> bool:
        """Whether a class was referred to."""
        return kind in self._names

    def refer(self, kind: Any) -> Schema:
        """Return the reference to a class."""
        return {"$ref": f"#/$defs/{self.name(kind)}"}

    def name(self, kind: Any) -> str:
        """Return the name of a class that is referred to."""
        if kind not in self._names:
            name = re.sub(r"\W+", "_", getattr(kind, "__name__", str(kind)))
            while name in self._names.values():
                name += "_"
            self._names[kind] = name
        return self._names[kind]


def schema_of_surrogate(surrogate: Surrogate, definitions: Definitions) -> Schema:
    """The schema of a type that brings its own, with what that defines in the places that refer to it."""
    defined = surrogate.schema.get("$defs", {})
    owner = surrogate.schema.get("title", "")

    def placed(node: Any, around: frozenset[str]) -> Any:
        if isinstance(node, list):
            return [placed(part, around) for part in node]
        if not isinstance(node, Mapping):
            return node
        rest = {key: placed(part, around) for key, part in node.items() if key not in ("$defs", "$ref")}
        if rest.get("additionalProperties") is False:
            del rest["additionalProperties"]
        return {**referred(node["$ref"].rpartition("/")[2], around), **rest} if "$ref" in node else rest

    def referred(name: str, around: frozenset[str]) -> Schema:
        kind = f"{owner} {name}"
        if name in around or definitions.knows(kind):
            return definitions.refer(kind)
        schema: Schema = placed(defined[name], around | {name})
        if not definitions.knows(kind):
            return schema
        definitions.schemas[definitions.name(kind)] = schema
        return definitions.refer(kind)

    found: Schema = placed(surrogate.schema, frozenset())
    return found

"""Definitions: the schemas that others refer to, and those that types bring along."""

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from promptkit.types.proxies import Surrogate

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

    def refer(self, kind: Any, called: str = "") -> Schema:
        """Return the reference to a class, or to what is *called* so."""
        return {"$ref": f"#/$defs/{self.name(kind, called)}"}

    def name(self, kind: Any, called: str = "") -> str:
        """Return the name of what is referred to."""
        if kind not in self._names:
            name = re.sub(r"\W+", "_", called or getattr(kind, "__name__", str(kind)))
            while name in self._names.values():
                name += "_"
            self._names[kind] = name
        return self._names[kind]


def schema_of_surrogate(surrogate: Surrogate, definitions: Definitions) -> Schema:
    """The schema of a type that brings its own, with what that defines in the places that refer to it."""
    defined = surrogate.schema.get("$defs", {})

    def placed(node: Any, around: frozenset[str]) -> Any:
        if isinstance(node, list):
            return [placed(part, around) for part in node]
        if not isinstance(node, Mapping):
            return node
        found = {key: placed(part, around) for key, part in node.items()}
        if found.get("additionalProperties") is False:
            del found["additionalProperties"]
        # A member may be called like this, too.
        return found | referred(found.pop("$ref"), around) if isinstance(found.get("$ref"), str) else found

    def referred(reference: str, around: frozenset[str]) -> Schema:
        name = reference.rpartition("/")[2]
        kind = (surrogate.build, name)
        if name not in around and not definitions.knows(kind):
            schema: Schema = placed(defined[name], around | {name})
            if not definitions.knows(kind):
                return schema
            definitions.schemas[definitions.name(kind, name)] = schema
        return definitions.refer(kind, name)

    own = {key: part for key, part in surrogate.schema.items() if key != "$defs"}
    found: Schema = placed(own, frozenset())
    return found

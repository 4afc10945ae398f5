"""The form of an answer as vendors take it: the strict form of a JSON Schema."""

import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from msgspec import Struct

from promptkit.errors.exceptions import PromptkitError
from promptkit.types.schemas import answer_name, answer_schema

#: What every vendor knows of JSON Schema.
_COMMON: Final = frozenset(
    (
        *("type", "description", "enum", "format", "anyOf", "items"),
        *("properties", "required", "additionalProperties", "$defs"),
    )
)

_FORMATS: Final = frozenset(("date-time", "date", "time", "duration"))

#: The words of a schema that hold schemas: one, several in a list, or several by their names.
_ONE: Final = ("items",)
_SEVERAL: Final = ("anyOf",)
_NAMED: Final = ("properties", "$defs")


class UnsupportedAnswerError(PromptkitError, TypeError):
    """
    A vendor takes no answer of this type.

    The message names the part of the type, and says what to write in its place.
    """


class Strictness(Struct, frozen=True):
    """
    What one vendor takes of a schema. What it does not know, it refuses.

    Args:
        vendor:
            How errors call it.

        words:
            The words of JSON Schema that it knows. Others are left out: descriptions say the same.

        formats:
            The formats of text that it knows.

        takes_any_names:
            Whether an object may have members of any name.

        takes_recursion:
            Whether a class may hold itself.

        takes_any_root:
            Whether an answer may be anything but an object.

        requires_all:
            Whether every member of an object has to be there.
    """

    vendor: str
    words: frozenset[str]
    formats: frozenset[str]
    takes_any_names: bool = False
    takes_recursion: bool = True
    takes_any_root: bool = False
    requires_all: bool = True

    def schema(self, answer: Any) -> dict[str, Any]:
        """
        Return the schema of a type as this vendor takes it.

        Raises:
            UnsupportedAnswerError: If the vendor takes no such schema. It names the part of the type.

            TypeError: If promptkit does not read the type.
        """
        schema = answer_schema(answer)
        if not self.takes_any_root and schema.get("type") != "object":
            self._refuse(answer_name(answer), "is no object", "put it into a class, as its only member")
        return self._adapted(schema, answer_name(answer))

    def _adapted(self, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        if "$ref" in schema and not self.takes_recursion:
            self._refuse(path, "is of a class that holds itself", "name as many levels as there are")
        if "$ref" in schema:  # it takes no words beside it
            return {"$ref": schema["$ref"]}
        found = {word: value for word, value in schema.items() if word in self.words}
        if found.get("format") not in self.formats:
            found.pop("format", None)
        for word in _ONE:
            if word in found:
                found[word] = self._adapted(found[word], f"{path}[]")
        for word in _SEVERAL:
            if word in found:
                found[word] = [self._adapted(one, path) for one in found[word]]
        for word in _NAMED:
            if word in found:
                named = found[word].items()
                found[word] = {name: self._adapted(one, f"{path}.{name}") for name, one in named}
        return self._closed(found, path) if found.get("type") == "object" else found

    def _closed(self, schema: dict[str, Any], path: str) -> dict[str, Any]:
        """An object without other members than those that are named."""
        if "properties" not in schema:
            if self.takes_any_names:
                return schema
            self._refuse(path, "has members of any name", "make it a list of objects with a name and a value")
        required = list(schema["properties"]) if self.requires_all else schema.get("required", [])
        return {**schema, "required": required, "additionalProperties": False}

    def _refuse(self, path: str, fault: str, hint: str) -> NoReturn:
        msg = f"{self.vendor} takes no such answer: {path} {fault}; {hint}"
        raise UnsupportedAnswerError(msg)


def schema_name(answer: Any) -> str:
    """Return the name of a type as vendors take names: at most 64 letters, digits, ``_`` and ``-``."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", answer_name(answer)).strip("_")[:64] or "answer"


#: https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas
OPENAI: Final = Strictness(
    "OpenAI",
    _COMMON
    | {"pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    | {"minItems", "maxItems"},
    _FORMATS | {"ipv4", "ipv6", "uuid", "email", "hostname"},
)

#: https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations
ANTHROPIC: Final = Strictness(
    "Anthropic",
    _COMMON,
    _FORMATS | {"ipv4", "ipv6", "uuid", "email", "hostname", "uri"},
    takes_recursion=False,
    takes_any_root=True,
)

#: https://ai.google.dev/gemini-api/docs/structured-output#json-schema-support
GEMINI: Final = Strictness(
    "Gemini",
    _COMMON | {"minimum", "maximum", "minItems", "maxItems"},
    _FORMATS - {"duration"},
    takes_any_names=True,
    takes_any_root=True,
    requires_all=False,
)

"""
The JSON Schema of a prompt's arguments, in the dialect 2020-12.

Forms and tools are built from it. Clients still send the arguments of prompts as text, and only those of
tools as JSON.

See https://json-schema.org/draft/2020-12/schema.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from promptkit.catalog.arguments import Argument
from promptkit.language.annotations import NO_DEFAULT
from promptkit.types.descriptions import default_clause, described
from promptkit.types.error_messages import shortened
from promptkit.types.schemas import Definitions, type_schema, with_words
from promptkit.types.unstructuring import can_be_sent, json_of

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def schema_of(arguments: Iterable[Argument]) -> dict[str, Any]:
    """
    Return the JSON Schema of an object with *arguments* as its members.

    It sets neither ``additionalProperties`` to false, although prompts reject unknown arguments, nor
    ``$schema``, because some clients do not accept tools with these keywords.
    """
    arguments = list(arguments)
    definitions = Definitions({})
    properties = {argument.name: _property(argument, definitions) for argument in arguments}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required := [argument.name for argument in arguments if argument.required]:
        schema["required"] = required
    if definitions.schemas:
        schema["$defs"] = definitions.schemas
    return schema


def alternative_of(argument: Argument) -> dict[str, Any]:
    """Return the JSON Schema of an argument without null; ``{}`` if several alternatives remain."""
    schema, _ = type_schema(argument.annotation, Definitions({}))
    members = [member for member in schema.get("anyOf", [schema]) if member.get("type") != "null"]
    return members[0] if len(members) == 1 else {}


def _property(argument: Argument, definitions: Definitions) -> dict[str, Any]:
    schema, form = type_schema(argument.annotation, definitions)
    arg = argument.arg
    words = described(arg.description or schema.get("description"), _clauses(argument, form))
    examples = [json_of(example) for example in argument.examples]
    by_author = {"title": arg.title, "examples": examples}
    schema = with_words(schema, words) | {key: value for key, value in by_author.items() if value}
    # A form would send this default, and override the environment variable.
    for default in () if arg.env else _defaults(argument):
        schema["default"] = json_of(default)
    return schema


def _clauses(argument: Argument, form: str) -> Iterator[str]:
    """Yield constraints in words for models, because clients drop schema keywords that they do not know."""
    arg = argument.arg
    yield form
    if arg.timezone is not None:
        yield f"in {arg.timezone} unless it has an offset"
    if examples := ", ".join(map(_text, argument.examples)):
        yield f"for example {examples}"
    defaults = filter(lambda text: text not in ("", "[]", "{}"), map(_text, _defaults(argument)))
    yield default_clause(arg.env, defaults)


def _defaults(argument: Argument) -> list[Any]:
    """Return the function's default in a list, or an empty list if clients must not or cannot see it."""
    default = argument.default
    hidden = default is NO_DEFAULT or default is None or argument.arg.secret
    return [] if hidden or not can_be_sent(default) else [default]


def _text(value: Any) -> str:
    """Return a value as JSON on one line, and text without quotes."""
    json_value = json_of(value)
    text = json_value if isinstance(json_value, str) else msgspec.json.encode(json_value).decode()
    return shortened(" ".join(text.split()))

"""
Write promptkit/schemas: JSON Schemas with which editors complete settings. Run `python -m docs.schemas`.

They are built from the tables by which the code checks settings, and from the help of `serve`.
"""

import json
import sys
from argparse import Action
from typing import Any, Final

from docs.render_reference import ROOT
from promptkit.cli.options import options_of
from promptkit.clients.profiles import CLIENTS
from promptkit.declarations.markdown_prompts import ARGUMENT_KEYS, KEYS, TYPES
from promptkit.errors.rules import IGNORABLE
from promptkit.server.identity import ICON_SETTINGS, SETTINGS

FOLDER: Final = ROOT / "promptkit" / "schemas"

_DRAFT: Final = "http://json-schema.org/draft-07/schema#"

_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "array", "items": _TEXT}

#: A value as YAML parses it. promptkit takes it as it is written.
_SCALAR: Final = {"type": ["string", "number", "boolean", "null"]}


def _described(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, **schema}


def pyproject() -> dict[str, Any]:
    """Return the schema of the table ``[tool.promptkit]``."""
    icon = {
        "type": "object",
        "properties": dict.fromkeys(ICON_SETTINGS, _TEXT)
        | {"sizes": {"anyOf": [_TEXT, _TEXTS]}, "theme": {"enum": ["light", "dark"]}},
        "required": ["src"],
        "additionalProperties": False,
    }
    server: dict[str, dict[str, Any]] = {
        "name": _described("Name of the server. Default: the one in [project]", _TEXT),
        "version": _described("Version of the recipes. Default: the one in [project]", _TEXT),
        "title": _described("Name for users", _TEXT),
        "description": _described("What the server offers. Default: the one in [project]", _TEXT),
        "website": _described("Website about the prompts", {"type": "string", "format": "uri"}),
        "icons": _described(
            "URLs, or images of the project", {"type": "array", "items": {"anyOf": [_TEXT, icon]}}
        ),
        "instructions": _described(
            "Instructions for models: a text, or a file. Hosts cut them at 2,048 characters",
            {
                "anyOf": [
                    _TEXT,
                    {
                        "type": "object",
                        "properties": {"file": _TEXT},
                        "required": ["file"],
                        "additionalProperties": False,
                    },
                ]
            },
        ),
    }
    codes = sorted(rule.value for rule in IGNORABLE)
    titles = {rule.value: rule.title for rule in IGNORABLE}
    properties = {
        "target": _described(
            "The recipes: a folder, a file, a module, or a list of these",
            {"anyOf": [{**_TEXT, "minLength": 1}, {**_TEXTS, "minItems": 1}]},
        ),
        "targets": _described(
            "Further recipes by prefix",
            {"type": "object", "additionalProperties": {**_TEXT, "minLength": 1}},
        ),
        "markdown": _described("Patterns of further Markdown prompts, relative to the target", _TEXTS),
        "clients": _described(
            "The clients that check tests for", {"type": "array", "items": {"enum": sorted(CLIENTS)}}
        ),
        "ignore": _described(
            "Codes of diagnostics that are not reported",
            {
                "type": "array",
                "items": {"oneOf": [{"const": code, "description": titles[code]} for code in codes]},
            },
        ),
        "fail-on": _described(
            "The lowest severity that makes check exit with 1", {"enum": ["error", "warning"]}
        ),
        "elicit": _described("Whether clients ask for missing arguments", {"type": "boolean"}),
        "serve": _described(
            "Options of promptkit serve",
            {
                "type": "object",
                "properties": {name: _option(action) for name, action in options_of("serve").items()},
                "additionalProperties": False,
            },
        ),
        "server": _described(
            "What clients show", {"type": "object", "properties": server, "additionalProperties": False}
        ),
    }
    assert set(server) == set(SETTINGS)  # noqa: S101 (a test runs this)
    return {
        "$schema": _DRAFT,
        "title": "[tool.promptkit] in pyproject.toml",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def _option(action: Action) -> dict[str, Any]:
    """Return the schema of an option of `serve`."""
    if action.nargs == 0:
        schema: dict[str, Any] = {"type": "boolean"}
    elif isinstance(action.default, list):
        schema = {"anyOf": [_TEXT, _TEXTS]}
    else:
        kinds = ["string", "number", *(["boolean"] if action.nargs == "?" else [])]
        schema = {"type": kinds}
    return _described(str(action.help), schema)


def front_matter() -> dict[str, Any]:
    """Return the schema of the front matter of Markdown prompts. Keys of other tools are allowed."""
    argument_properties = {
        "description": _described("What to fill in", _SCALAR),
        "type": _described(
            "What kind of value it is. Default: str",
            {"anyOf": [{"enum": [*TYPES, *(f"list[{name}]" for name in TYPES)]}, _TEXT]},
        ),
        "choices": _described("The only values that are accepted", {"type": "array", "items": _SCALAR}),
        "default": _described("The value if the person gives none", {}),
        "required": _described("false: the person can omit it", {"type": "boolean"}),
        "examples": _described("Values that show what to fill in", {"type": "array"}),
        "complete": _described("Values that clients suggest", {"type": "array", "items": _SCALAR}),
        "secret": _described("true: the value does not appear in logs and errors", {"type": "boolean"}),
    }
    argument = {
        "anyOf": [
            _SCALAR,
            {"type": "object", "properties": argument_properties, "additionalProperties": False},
        ]
    }
    words = {"anyOf": [{"type": "array", "items": _SCALAR}, _TEXT]}
    hint = {"type": "boolean"}
    hints = dict.fromkeys(("read-only", "idempotent", "open-world", "destructive"), hint)
    properties: dict[str, Any] = {
        "name": _described("The name for clients. Default: the path of the file", _SCALAR),
        "title": _described("A display name", _SCALAR),
        "description": _described("What the prompt does. Default: the first heading or paragraph", _SCALAR),
        "version": _described("Its version, for programs", _SCALAR),
        "deprecated": _described("The replacement, such as: use review", _SCALAR),
        "tags": _described("Tags, for programs", words),
        "scopes": _described("The scopes that callers need", words),
        "icons": _described("Addresses of icons", words),
        "timeout": _described("The time limit, in seconds", {"type": ["number", "string"]}),
        "elicit": _described(
            "true: the client asks for missing arguments; always: and for optional ones",
            {"enum": [True, False, "always"]},
        ),
        "tool": _described(
            "false: models cannot call the prompt as a tool; or hints",
            {
                "anyOf": [
                    {"type": "boolean"},
                    {"type": "object", "properties": hints, "additionalProperties": False},
                ]
            },
        ),
        "arguments": _described(
            "What a person fills in: descriptions, or keys, by name",
            {
                "anyOf": [
                    {"type": "object", "additionalProperties": argument},
                    {"type": "array", "items": _SCALAR},
                    _TEXT,
                ]
            },
        ),
        "cases": _described(
            "Examples: a value for each argument, by the name of the case",
            {"type": "object", "additionalProperties": {"type": ["object", "null"]}},
        ),
        "argument-hint": _described("Names of arguments in order, such as [issue] [priority]", words),
    }
    assert set(properties) == set(KEYS)  # noqa: S101 (a test runs this)
    assert set(argument_properties) == set(ARGUMENT_KEYS)  # noqa: S101
    return {
        "$schema": _DRAFT,
        "title": "Front matter of a Markdown prompt of promptkit",
        "type": "object",
        "properties": properties,
    }


#: The schema of each file.
SCHEMAS: Final = {"pyproject.json": pyproject, "front-matter.json": front_matter}


def main() -> int:
    """Write the files, and return the exit code."""
    for name, schema in SCHEMAS.items():
        (FOLDER / name).write_text(json.dumps(schema(), indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

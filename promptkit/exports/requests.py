"""
Whole requests to OpenAI, Anthropic and Gemini, as keyword arguments of their SDKs' calls.

The schemas of answers are in the strict subset of JSON Schema that each vendor supports.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, NoReturn

from msgspec import Struct

from promptkit.errors.exceptions import PromptkitError
from promptkit.exports.vendor_messages import anthropic_parts, gemini_contents, openai_chat, openai_responses
from promptkit.language.messages import Workflow, make_workflow
from promptkit.types.schemas import answer_name, answer_schema

#: Keywords of JSON Schema that every vendor supports.
_COMMON: Final = frozenset(
    (
        *("type", "description", "enum", "format", "anyOf", "items"),
        *("properties", "required", "additionalProperties", "$defs"),
    )
)

_FORMATS: Final = frozenset(("date-time", "date", "time", "duration"))


class UnsupportedAnswerError(PromptkitError, TypeError):
    """
    A vendor does not support an answer type.

    The message names the unsupported part of the type, and suggests a replacement.
    """


class Strictness(Struct, frozen=True):
    """
    The subset of JSON Schema that a vendor supports; the vendor rejects everything else.

    Args:
        vendor:
            The vendor's name in error messages.

        keywords:
            The supported keywords. Other keywords are removed, and descriptions repeat their meaning.

        formats:
            The supported string formats.

        supports_any_names:
            Whether an object can have members with arbitrary names.

        supports_recursion:
            Whether a class can contain itself.

        supports_any_root:
            Whether an answer can have a type other than object.

        all_required:
            Whether all members of an object must be required.
    """

    vendor: str
    keywords: frozenset[str]
    formats: frozenset[str]
    supports_any_names: bool = False
    supports_recursion: bool = True
    supports_any_root: bool = False
    all_required: bool = True

    def schema(self, answer: Any) -> dict[str, Any]:
        """
        Return the schema of a type in the vendor's subset.

        Raises:
            UnsupportedAnswerError: If the vendor does not support the type; the message names the unsupported
                part.

            TypeError: If promptkit does not support the type.
        """
        schema = answer_schema(answer)
        if not self.supports_any_root and schema.get("type") != "object":
            self._reject(answer_name(answer), "is not an object", "wrap it in a class with one field")
        return self._adapt(schema, answer_name(answer))

    def _adapt(self, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        if "$ref" in schema and not self.supports_recursion:
            self._reject(path, "refers to itself", "declare a fixed number of levels")
        if "$ref" in schema:  # no other keywords are allowed next to it
            return {"$ref": schema["$ref"]}
        adapted = {keyword: value for keyword, value in schema.items() if keyword in self.keywords}
        if adapted.get("format") not in self.formats:
            adapted.pop("format", None)
        if "items" in adapted:
            adapted["items"] = self._adapt(adapted["items"], f"{path}[]")
        if "anyOf" in adapted:
            adapted["anyOf"] = [self._adapt(item, path) for item in adapted["anyOf"]]
        for keyword in ("properties", "$defs"):
            if keyword in adapted:
                members = adapted[keyword].items()
                adapted[keyword] = {name: self._adapt(item, f"{path}.{name}") for name, item in members}
        return self._close_object(adapted, path) if adapted.get("type") == "object" else adapted

    def _close_object(self, schema: dict[str, Any], path: str) -> dict[str, Any]:
        """Return an object schema without additional properties."""
        if "properties" not in schema:
            if self.supports_any_names:
                return schema
            self._reject(path, "has arbitrary keys", "use a list of objects with a name and a value")
        required = list(schema["properties"]) if self.all_required else schema.get("required", [])
        return {**schema, "required": required, "additionalProperties": False}

    def _reject(self, path: str, problem: str, hint: str) -> NoReturn:
        msg = f"{self.vendor} does not support the answer type: {path} {problem}; {hint}"
        raise UnsupportedAnswerError(msg)


def schema_name(answer: Any) -> str:
    """Return the name of a type as vendors require it: at most 64 letters, digits, ``_`` and ``-``."""
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
    supports_recursion=False,
    supports_any_root=True,
)

#: https://ai.google.dev/gemini-api/docs/structured-output#json-schema-support
GEMINI: Final = Strictness(
    "Gemini",
    _COMMON | {"minimum", "maximum", "minItems", "maxItems"},
    _FORMATS - {"duration"},
    supports_any_names=True,
    supports_any_root=True,
    all_required=False,
)


def openai_chat_request(
    workflow: Workflow,
    *,
    answer: Any = None,
    lossy: bool = False,
    system_role: Literal["developer", "system"] = "developer",
    **fields: Any,
) -> dict[str, Any]:
    """
    Return the arguments of ``client.chat.completions.create(**...)``.

    Args:
        workflow:
            The rendering of a prompt.

        answer:
            The type of the answer. The default is the prompt's answer type.

        lossy:
            Whether to replace content that OpenAI does not support with a text description.

        system_role:
            The role of the system part. Many OpenAI-compatible servers support only ``"system"``.

        **fields:
            Other fields of the request, such as ``model``. They override the generated fields.

    Returns:
        The messages, the response format if there is an answer type, and *fields*.

    Raises:
        ExportError: If there is content that OpenAI does not support, unless *lossy*.

        UnsupportedAnswerError: If OpenAI does not support the answer type. The message names the unsupported
            part of the type. The error is a TypeError.

    See Also:
        https://platform.openai.com/docs/api-reference/chat/create
    """
    request: dict[str, Any] = {"messages": openai_chat(workflow, lossy=lossy, system_role=system_role)}
    if (answer_type := _answer(workflow, answer)) is not None:
        request["response_format"] = {"type": "json_schema", "json_schema": _named_schema(answer_type)}
    return {**request, **fields}


def openai_responses_request(
    workflow: Workflow, *, answer: Any = None, lossy: bool = False, **fields: Any
) -> dict[str, Any]:
    """
    Return the arguments of ``client.responses.create(**...)``.

    Args:
        workflow:
            The rendering of a prompt.

        answer:
            The type of the answer. The default is the prompt's answer type.

        lossy:
            Whether to replace content that OpenAI does not support with a text description.

        **fields:
            Other fields of the request, such as ``model``. They override the generated fields; a ``text``
            dictionary is merged with the generated one.

    Returns:
        The input, any instructions and response format, and *fields*.

    Raises:
        ExportError: If there is content that OpenAI does not support, unless *lossy*.

        UnsupportedAnswerError: If OpenAI does not support the answer type. The message names the unsupported
            part of the type. The error is a TypeError.

    See Also:
        https://platform.openai.com/docs/api-reference/responses/create
    """
    request: dict[str, Any] = {"input": openai_responses(_remove_system(workflow), lossy=lossy)}
    if workflow.system is not None:
        request["instructions"] = workflow.system.text
    if (answer_type := _answer(workflow, answer)) is not None:
        schema = {"type": "json_schema", **_named_schema(answer_type)}
        request["text"] = {"format": schema, **fields.pop("text", {})}
    return {**request, **fields}


def anthropic_request(
    workflow: Workflow, *, answer: Any = None, lossy: bool = False, **fields: Any
) -> dict[str, Any]:
    """
    Return the arguments of ``client.messages.create(**...)``.

    Args:
        workflow:
            The rendering of a prompt.

        answer:
            The type of the answer. The default is the prompt's answer type.

        lossy:
            Whether to replace content that Anthropic does not support with a text description.

        **fields:
            Other fields of the request, such as ``model`` and ``max_tokens``, both of which Anthropic
            requires. They override the generated fields; an ``output_config`` dictionary is merged with the
            generated one.

    Returns:
        The messages, any system part and output format, and *fields*.

    Raises:
        ExportError: If there is content that Anthropic does not support, unless *lossy*.

        UnsupportedAnswerError: If Anthropic does not support the answer type. The message names the
            unsupported part of the type. The error is a TypeError.

    See Also:
        https://docs.anthropic.com/en/api/messages
    """
    system, messages = anthropic_parts(workflow, lossy=lossy)
    request: dict[str, Any] = {"messages": messages}
    if system:
        request["system"] = system
    if (answer_type := _answer(workflow, answer)) is not None:
        schema = {"type": "json_schema", "schema": ANTHROPIC.schema(answer_type)}
        request["output_config"] = {"format": schema, **fields.pop("output_config", {})}
    return {**request, **fields}


def gemini_request(
    workflow: Workflow, *, answer: Any = None, lossy: bool = False, **fields: Any
) -> dict[str, Any]:
    """
    Return the arguments of ``client.models.generate_content(**...)``.

    Args:
        workflow:
            The rendering of a prompt.

        answer:
            The type of the answer. The default is the prompt's answer type.

        lossy:
            Whether to replace content that Gemini does not support with a text description.

        **fields:
            Other fields of the request, such as ``model``. A ``config`` dictionary is merged with the
            generated one.

    Returns:
        The contents, a ``config`` with any system part and response schema, and *fields*.

    Raises:
        ExportError: If there is content that Gemini does not support, unless *lossy*.

        UnsupportedAnswerError: If Gemini does not support the answer type. The message names the unsupported
            part of the type. The error is a TypeError.

    See Also:
        https://ai.google.dev/api/generate-content
    """
    config: dict[str, Any] = {}
    if workflow.system is not None:
        config["system_instruction"] = workflow.system.text
    if (answer_type := _answer(workflow, answer)) is not None:
        config["response_mime_type"] = "application/json"
        config["response_json_schema"] = GEMINI.schema(answer_type)
    config |= fields.pop("config", {})
    request = {"contents": gemini_contents(_remove_system(workflow), lossy=lossy)}
    return {**request, **({"config": config} if config else {}), **fields}


def _remove_system(workflow: Workflow) -> Workflow:
    """Return the workflow without its system part, which has another field in the request."""
    return make_workflow(workflow.messages, cache_points=workflow.cache_points)


def _answer(workflow: Workflow, answer: Any) -> Any:
    return workflow.answer if answer is None else answer


def _named_schema(answer: Any) -> dict[str, Any]:
    """Return the named schema of an answer, as both OpenAI APIs expect it."""
    return {"name": schema_name(answer), "schema": OPENAI.schema(answer), "strict": True}

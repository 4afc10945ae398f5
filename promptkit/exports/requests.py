"""
Whole requests to OpenAI, Anthropic and Gemini, as keyword arguments for the functions of their SDKs.

The schemas of answer types use only the subset of JSON Schema that the vendor supports.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, NoReturn

from msgspec import Struct

from promptkit.errors.exceptions import PromptkitError
from promptkit.exports.vendor_messages import anthropic_parts, gemini_contents, openai_chat, openai_responses
from promptkit.language.messages import Workflow, make_workflow
from promptkit.types.schemas import answer_name, answer_schema

#: The keywords of JSON Schema that every vendor supports.
_COMMON: Final = frozenset(
    (
        *("type", "description", "enum", "format", "anyOf", "items"),
        *("properties", "required", "additionalProperties", "$defs"),
    )
)

#: The string formats that most vendors support.
_FORMATS: Final = frozenset(("date-time", "date", "time", "duration"))


class UnsupportedAnswerError(PromptkitError, TypeError):
    """
    A vendor does not support an answer type.

    The message names the unsupported part of the type, and how to replace it.
    """


class SchemaSubset(Struct, frozen=True):
    """
    The subset of JSON Schema that a vendor supports. The vendor rejects all other schemas.

    Args:
        vendor:
            The vendor's name for error messages.

        keywords:
            The supported keywords. All other keywords are removed; the descriptions in a schema repeat their
            meaning.

        formats:
            The supported string formats.

        supports_any_names:
            Whether an object can have properties with arbitrary names.

        supports_recursion:
            Whether a type can refer to itself.

        supports_any_root:
            Whether the type of the whole answer can be something other than an object.

        all_required:
            Whether every property of an object must be required.
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
        Return the JSON Schema of an answer type, restricted to the vendor's subset.

        Raises:
            UnsupportedAnswerError: If the vendor does not support the type. The message names the unsupported
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
        if "$ref" in schema:  # other keywords are not allowed next to it
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
        """Return the schema of an object with the restriction that it cannot have additional properties."""
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
    """Return the name of a type in the form that vendors require: up to 64 letters, digits, ``_``, ``-``."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", answer_name(answer)).strip("_")[:64] or "answer"


#: https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas
OPENAI: Final = SchemaSubset(
    "OpenAI",
    _COMMON
    | {"pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    | {"minItems", "maxItems"},
    _FORMATS | {"ipv4", "ipv6", "uuid", "email", "hostname"},
)

#: https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations
ANTHROPIC: Final = SchemaSubset(
    "Anthropic",
    _COMMON,
    _FORMATS | {"ipv4", "ipv6", "uuid", "email", "hostname", "uri"},
    supports_recursion=False,
    supports_any_root=True,
)

#: https://ai.google.dev/gemini-api/docs/structured-output#json-schema-support
GEMINI: Final = SchemaSubset(
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
    Return the keyword arguments for ``client.chat.completions.create(**...)``.

    Args:
        workflow:
            The rendering of a prompt.

        answer:
            The answer type. The default is the answer type of the prompt.

        lossy:
            Whether to replace content that OpenAI does not support with a text description.

        system_role:
            The role of the system part. Many OpenAI-compatible servers support only ``"system"``.

        **fields:
            Additional fields of the request, such as ``model``. They override the generated fields.

    Returns:
        The messages, the response format if there is an answer type, and *fields*.

    Raises:
        ExportError: If the rendering has content that OpenAI does not support, and *lossy* is False.

        UnsupportedAnswerError: If OpenAI does not support the answer type. The message names the unsupported
            part of the type. The error is also a `TypeError`.

    See Also:
        https://platform.openai.com/docs/api-reference/chat/create
    """
    request: dict[str, Any] = {"messages": openai_chat(workflow, lossy=lossy, system_role=system_role)}
    if (answer_type := _answer_type(workflow, answer)) is not None:
        request["response_format"] = {"type": "json_schema", "json_schema": _named_schema(answer_type)}
    return {**request, **fields}


def openai_responses_request(
    workflow: Workflow, *, answer: Any = None, lossy: bool = False, **fields: Any
) -> dict[str, Any]:
    """
    Return the keyword arguments for ``client.responses.create(**...)``.

    Args:
        workflow:
            The rendering of a prompt.

        answer:
            The answer type. The default is the answer type of the prompt.

        lossy:
            Whether to replace content that OpenAI does not support with a text description.

        **fields:
            Additional fields of the request, such as ``model``. They override the generated fields; a
            ``text`` dictionary is merged with the generated one.

    Returns:
        The input, the instructions if there is a system part, the response format if there is an answer type,
        and *fields*.

    Raises:
        ExportError: If the rendering has content that OpenAI does not support, and *lossy* is False.

        UnsupportedAnswerError: If OpenAI does not support the answer type. The message names the unsupported
            part of the type. The error is also a `TypeError`.

    See Also:
        https://platform.openai.com/docs/api-reference/responses/create
    """
    request: dict[str, Any] = {"input": openai_responses(_remove_system(workflow), lossy=lossy)}
    if workflow.system is not None:
        request["instructions"] = workflow.system.text
    if (answer_type := _answer_type(workflow, answer)) is not None:
        schema = {"type": "json_schema", **_named_schema(answer_type)}
        request["text"] = {"format": schema, **fields.pop("text", {})}
    return {**request, **fields}


def anthropic_request(
    workflow: Workflow, *, answer: Any = None, lossy: bool = False, **fields: Any
) -> dict[str, Any]:
    """
    Return the keyword arguments for ``client.messages.create(**...)``.

    Args:
        workflow:
            The rendering of a prompt.

        answer:
            The answer type. The default is the answer type of the prompt.

        lossy:
            Whether to replace content that Anthropic does not support with a text description.

        **fields:
            Additional fields of the request, such as ``model`` and ``max_tokens``, both of which Anthropic
            requires. They override the generated fields; an ``output_config`` dictionary is merged with the
            generated one.

    Returns:
        The messages, the system part if there is one, the output format if there is an answer type, and
        *fields*.

    Raises:
        ExportError: If the rendering has content that Anthropic does not support, and *lossy* is False.

        UnsupportedAnswerError: If Anthropic does not support the answer type. The message names the
            unsupported part of the type. The error is also a `TypeError`.

    See Also:
        https://docs.anthropic.com/en/api/messages
    """
    system, messages = anthropic_parts(workflow, lossy=lossy)
    request: dict[str, Any] = {"messages": messages}
    if system:
        request["system"] = system
    if (answer_type := _answer_type(workflow, answer)) is not None:
        schema = {"type": "json_schema", "schema": ANTHROPIC.schema(answer_type)}
        request["output_config"] = {"format": schema, **fields.pop("output_config", {})}
    return {**request, **fields}


def gemini_request(
    workflow: Workflow, *, answer: Any = None, lossy: bool = False, **fields: Any
) -> dict[str, Any]:
    """
    Return the keyword arguments for ``client.models.generate_content(**...)``.

    Args:
        workflow:
            The rendering of a prompt.

        answer:
            The answer type. The default is the answer type of the prompt.

        lossy:
            Whether to replace content that Gemini does not support with a text description.

        **fields:
            Additional fields of the request, such as ``model``. A ``config`` dictionary is merged with the
            generated one.

    Returns:
        The contents, *fields*, and a ``config`` with the system part and the schema of the answer, if there
        are any.

    Raises:
        ExportError: If the rendering has content that Gemini does not support, and *lossy* is False.

        UnsupportedAnswerError: If Gemini does not support the answer type. The message names the unsupported
            part of the type. The error is also a `TypeError`.

    See Also:
        https://ai.google.dev/api/generate-content
    """
    config: dict[str, Any] = {}
    if workflow.system is not None:
        config["system_instruction"] = workflow.system.text
    if (answer_type := _answer_type(workflow, answer)) is not None:
        config["response_mime_type"] = "application/json"
        config["response_json_schema"] = GEMINI.schema(answer_type)
    config |= fields.pop("config", {})
    request = {"contents": gemini_contents(_remove_system(workflow), lossy=lossy)}
    return {**request, **({"config": config} if config else {}), **fields}


def _remove_system(workflow: Workflow) -> Workflow:
    """Return the workflow without its system part, which belongs in a separate field of the request."""
    return make_workflow(workflow.messages, cache_points=workflow.cache_points)


def _answer_type(workflow: Workflow, answer: Any) -> Any:
    return workflow.answer if answer is None else answer


def _named_schema(answer: Any) -> dict[str, Any]:
    """Return the schema of an answer type with a name, in the form that both OpenAI APIs expect."""
    return {"name": schema_name(answer), "schema": OPENAI.schema(answer), "strict": True}

"""Whole requests to OpenAI, Anthropic and Gemini, as keyword arguments of their SDKs' calls."""

from typing import Any, Literal

from promptkit.exports.answers import ANTHROPIC, GEMINI, OPENAI, schema_name
from promptkit.exports.messages import anthropic_parts, gemini_contents, openai_chat, openai_responses
from promptkit.language.messages import Workflow, make_workflow


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
            The type of the answer. The default is that of the prompt.

        lossy:
            Whether to replace content that OpenAI does not support with a text description.

        system_role:
            The role of the system part. Many servers that are compatible with OpenAI's support only
            ``"system"``.

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
            The type of the answer. The default is that of the prompt.

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
    request: dict[str, Any] = {"input": openai_responses(_turns(workflow), lossy=lossy)}
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
            The type of the answer. The default is that of the prompt.

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
            The type of the answer. The default is that of the prompt.

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
    request = {"contents": gemini_contents(_turns(workflow), lossy=lossy)}
    return {**request, **({"config": config} if config else {}), **fields}


def _turns(workflow: Workflow) -> Workflow:
    """Return the workflow without its system part, which has another field in the request."""
    return make_workflow(workflow.messages, cache_points=workflow.cache_points)


def _answer(workflow: Workflow, answer: Any) -> Any:
    return workflow.answer if answer is None else answer


def _named_schema(answer: Any) -> dict[str, Any]:
    """Return the named schema of an answer, as both OpenAI APIs expect it."""
    return {"name": schema_name(answer), "schema": OPENAI.schema(answer), "strict": True}

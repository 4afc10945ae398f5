"""Whole requests to OpenAI, Anthropic and Gemini: the arguments of the call of each SDK."""

from typing import Any, Literal

from promptkit.exports.answers import ANTHROPIC, GEMINI, OPENAI, schema_name
from promptkit.exports.messages import anthropic_parts, gemini_contents, openai_chat, openai_responses
from promptkit.language.messages import Workflow, workflow_of


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
            What a prompt rendered to.

        answer:
            The type of the answer; that of the prompt if left out.

        lossy:
            Whether what OpenAI does not take becomes text that says what it was.

        system_role:
            The role of the system part. Many servers that are compatible with OpenAI's know only
            ``"system"``.

        **fields:
            What else is sent, such as ``model``. They come before what is made here.

    Returns:
        The messages, the form of the answer if there is one, and *fields*.

    Raises:
        ExportError: If there is anything that OpenAI does not take, unless *lossy*.

        UnsupportedAnswerError: If OpenAI takes no such answer; it names the part of the type. It is a
            TypeError.

    See Also:
        https://platform.openai.com/docs/api-reference/chat/create
    """
    request: dict[str, Any] = {"messages": openai_chat(workflow, lossy=lossy, system_role=system_role)}
    if (wanted := _answer(workflow, answer)) is not None:
        request["response_format"] = {"type": "json_schema", "json_schema": _named_schema(wanted)}
    return {**request, **fields}


def openai_responses_request(
    workflow: Workflow, *, answer: Any = None, lossy: bool = False, **fields: Any
) -> dict[str, Any]:
    """
    Return the arguments of ``client.responses.create(**...)``.

    Args:
        workflow:
            What a prompt rendered to.

        answer:
            The type of the answer; that of the prompt if left out.

        lossy:
            Whether what OpenAI does not take becomes text that says what it was.

        **fields:
            What else is sent, such as ``model``. They come before what is made here.

    Returns:
        The input, the instructions and the form of the answer if there are any, and *fields*.

    Raises:
        ExportError: If there is anything that OpenAI does not take, unless *lossy*.

     UnsupportedAnswerError: If OpenAI takes no such answer; it names the part of the type. It is a TypeError.

    See Also:
        https://platform.openai.com/docs/api-reference/responses/create
    """
    request: dict[str, Any] = {"input": openai_responses(_turns(workflow), lossy=lossy)}
    if workflow.system is not None:
        request["instructions"] = workflow.system.text
    if (wanted := _answer(workflow, answer)) is not None:
        request["text"] = {"format": {"type": "json_schema", **_named_schema(wanted)}}
    return {**request, **fields}


def anthropic_request(
    workflow: Workflow, *, answer: Any = None, lossy: bool = False, **fields: Any
) -> dict[str, Any]:
    """
    Return the arguments of ``client.messages.create(**...)``.

    Args:
        workflow:
            What a prompt rendered to.

        answer:
            The type of the answer; that of the prompt if left out.

        lossy:
            Whether what Anthropic does not take becomes text that says what it was.

        **fields:
            What else is sent, such as ``model`` and ``max_tokens``, both of which Anthropic wants. They
            come before what is made here.

    Returns:
        The messages, the system part and the form of the answer if there are any, and *fields*.

    Raises:
        ExportError: If there is anything that Anthropic does not take, unless *lossy*.

        UnsupportedAnswerError: If Anthropic takes no such answer; it names the part of the type.

    See Also:
        https://docs.anthropic.com/en/api/messages
    """
    head, messages = anthropic_parts(workflow, lossy=lossy)
    request: dict[str, Any] = {"messages": messages}
    if head:
        request["system"] = head
    if (wanted := _answer(workflow, answer)) is not None:
        request["output_config"] = {"format": {"type": "json_schema", "schema": ANTHROPIC.schema(wanted)}}
    return {**request, **fields}


def gemini_request(
    workflow: Workflow, *, answer: Any = None, lossy: bool = False, **fields: Any
) -> dict[str, Any]:
    """
    Return the arguments of ``client.models.generate_content(**...)``.

    Args:
        workflow:
            What a prompt rendered to.

        answer:
            The type of the answer; that of the prompt if left out.

        lossy:
            Whether what Gemini does not take becomes text that says what it was.

        **fields:
            What else is sent, such as ``model``. A dictionary for ``config`` is added to what is made here.

    Returns:
        The contents, the ``config`` with the system part and the form of the answer if there are any, and
        *fields*.

    Raises:
        ExportError: If there is anything that Gemini does not take, unless *lossy*.

     UnsupportedAnswerError: If Gemini takes no such answer; it names the part of the type. It is a TypeError.

    See Also:
        https://ai.google.dev/api/generate-content
    """
    config: dict[str, Any] = {}
    if workflow.system is not None:
        config["system_instruction"] = workflow.system.text
    if (wanted := _answer(workflow, answer)) is not None:
        config["response_mime_type"] = "application/json"
        config["response_json_schema"] = GEMINI.schema(wanted)
    config |= fields.pop("config", {})
    request = {"contents": gemini_contents(_turns(workflow), lossy=lossy)}
    return {**request, **({"config": config} if config else {}), **fields}


def _turns(workflow: Workflow) -> Workflow:
    """The workflow without its system part, which stands elsewhere in the request."""
    return workflow_of(workflow.messages, cache_points=workflow.cache_points)


def _answer(workflow: Workflow, answer: Any) -> Any:
    return workflow.answer if answer is None else answer


def _named_schema(answer: Any) -> dict[str, Any]:
    """The form of an answer, as both of OpenAI's interfaces take it."""
    return {"name": schema_name(answer), "schema": OPENAI.schema(answer), "strict": True}

"""Langfuse: prompts as arguments for Langfuse's prompt management."""

from collections.abc import Mapping
from typing import Any

from promptkit.bridges.braces import build_braced_template
from promptkit.declarations.prompts import Prompt
from promptkit.exports.requests import openai_chat_request
from promptkit.language.messages import make_workflow

__all__ = ["template"]


def template(
    prompt: Prompt[..., Any], values: Mapping[str, Any] | None = None, *, lossy: bool = False
) -> dict[str, Any]:
    """
    Return the keyword arguments for ``Langfuse().create_prompt(**...)``.

    Each argument of type `str` becomes a placeholder, ``{{name}}``, unless *values* contains it.

    Args:
        prompt:
            The prompt.

        values:
            Fixed values, keyed by argument name, in the form that clients send; a value of None means the
            argument's default.

        lossy:
            Whether to accept a template that matches the rendering for plain words, but not for every string.

    Returns:
        The name, the text or the messages, and the type; the tags, if the prompt has any; and, if it has an
        answer type, a ``config`` with OpenAI's response format.

    Raises:
        TemplateError: If the prompt cannot be converted to a template. The message shows a value for which
            the template would differ from the rendering.

        ArgumentsError: If one of *values* is invalid.

        UnsupportedAnswerError: If OpenAI does not support the answer type.

    See Also:
        https://langfuse.com/docs/prompt-management
    """
    content = build_braced_template(prompt, values, "Langfuse", lossy=lossy)
    kind = "text" if isinstance(content, str) else "chat"
    arguments: dict[str, Any] = {"name": prompt.options.name, "prompt": content, "type": kind}
    if prompt.compiled.tags:
        arguments["tags"] = list(prompt.compiled.tags)
    if (answer := prompt.options.answer) is not None:
        request = openai_chat_request(make_workflow((), answer=answer))
        arguments["config"] = {"response_format": request["response_format"]}
    return arguments

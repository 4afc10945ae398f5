"""Langfuse: a prompt of ours as a prompt of its store."""

from collections.abc import Mapping
from typing import Any

from promptkit.bridges.braces import braced
from promptkit.declarations.prompts import Prompt
from promptkit.exports.requests import openai_chat_request
from promptkit.language.messages import workflow_of

__all__ = ["template"]


def template(
    prompt: Prompt[..., Any], values: Mapping[str, Any] | None = None, *, lossy: bool = False
) -> dict[str, Any]:
    """
    Return the arguments of ``Langfuse().create_prompt(**...)``.

    Each argument that takes text is a hole, ``{{name}}``, unless it has a value.

    Args:
        prompt:
            The prompt.

        values:
            Values that are filled in now, by argument, as a client sends them; None stands for the default.

        lossy:
            Whether to take a template that is right for plain words, but not for every text.

    Returns:
        The name, the text or the messages, the type and the tags; and the ``config`` with the form of the
        answer, as OpenAI takes it, if there is one.

    Raises:
        TemplateError: If no template says what the prompt says. The error names a text for which it fails.

        ArgumentsError: If one of *values* is wrong.

        UnsupportedAnswerError: If OpenAI takes no such answer.

    See Also:
        https://langfuse.com/docs/prompt-management
    """
    said = braced(prompt, values, "Langfuse", lossy=lossy)
    kind = "text" if isinstance(said, str) else "chat"
    made: dict[str, Any] = {"name": prompt.options.name, "prompt": said, "type": kind}
    if prompt.compiled.tags:
        made["tags"] = list(prompt.compiled.tags)
    if (answer := prompt.options.answer) is not None:
        request = openai_chat_request(workflow_of((), answer=answer))
        made["config"] = {"response_format": request["response_format"]}
    return made

"""MLflow: prompts as arguments for MLflow's prompt registry."""

from collections.abc import Mapping
from typing import Any, Final

from promptkit.bridges.braces import build_braced_template
from promptkit.declarations.prompts import Prompt

__all__ = ["template"]

#: Syntax that MLflow interprets: placeholders, and Jinja2 tags, which select Jinja2 for the whole text.
_RESERVED: Final = ("{{", "{%")


def template(
    prompt: Prompt[..., Any], values: Mapping[str, Any] | None = None, *, lossy: bool = False
) -> dict[str, Any]:
    """
    Return the keyword arguments for ``mlflow.genai.register_prompt(**...)``.

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
        The name and the template; and, if the prompt has an answer type, its JSON Schema as
        ``response_format``.

    Raises:
        TemplateError: If the prompt cannot be converted to a template. The message shows a value for which
            the template would differ from the rendering.

        ArgumentsError: If one of *values* is invalid.

    See Also:
        https://mlflow.org/docs/latest/genai/prompt-registry
    """
    text = build_braced_template(prompt, values, "MLflow", _RESERVED, lossy=lossy)
    arguments: dict[str, Any] = {"name": prompt.options.name, "template": text}
    if (schema := prompt.compiled.answer_schema) is not None:
        arguments["response_format"] = schema
    return arguments

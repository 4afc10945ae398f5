"""MLflow: prompts as arguments for MLflow's prompt registry."""

from collections.abc import Mapping
from typing import Any, Final

from promptkit.bridges.braces import build_braced_template
from promptkit.declarations.prompts import Prompt

__all__ = ["template"]

#: Syntax that MLflow interprets: a placeholder, and a Jinja2 tag, which selects Jinja2 for the whole text.
_RESERVED: Final = ("{{", "{%")


def template(
    prompt: Prompt[..., Any], values: Mapping[str, Any] | None = None, *, lossy: bool = False
) -> dict[str, Any]:
    """
    Return the arguments of ``mlflow.genai.register_prompt(**...)``.

    Each argument of type `str` becomes a placeholder, ``{{name}}``, unless *values* contains it.

    Args:
        prompt:
            The prompt.

        values:
            Fixed values by argument name, as a client sends them; None means the default.

        lossy:
            Whether to accept a template that matches renderings for plain words, but not for every string.

    Returns:
        The name, the template, and the JSON Schema of the answer, if there is one.

    Raises:
        TemplateError: If the prompt cannot be a template. The message shows a value for which the template
            would differ.

        ArgumentsError: If one of *values* is invalid.

    See Also:
        https://mlflow.org/docs/latest/genai/prompt-registry
    """
    text = build_braced_template(prompt, values, "MLflow", _RESERVED, lossy=lossy)
    arguments: dict[str, Any] = {"name": prompt.options.name, "template": text}
    if (schema := prompt.compiled.answer_schema) is not None:
        arguments["response_format"] = schema
    return arguments

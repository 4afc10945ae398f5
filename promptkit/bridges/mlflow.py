"""MLflow: a prompt of ours in its registry."""

from collections.abc import Mapping
from typing import Any, Final

from promptkit.bridges.braces import braced
from promptkit.declarations.prompts import Prompt

__all__ = ["template"]

#: What it reads as its own: a hole, and a tag of Jinja2, which makes the whole text a template of that.
_MISREAD: Final = ("{{", "{%")


def template(
    prompt: Prompt[..., Any], values: Mapping[str, Any] | None = None, *, lossy: bool = False
) -> dict[str, Any]:
    """
    Return the arguments of ``mlflow.genai.register_prompt(**...)``.

    Each argument that takes text is a hole, ``{{name}}``, unless it has a value.

    Args:
        prompt:
            The prompt.

        values:
            Values that are filled in now, by argument, as a client sends them; None stands for the default.

        lossy:
            Whether to take a template that is right for plain words, but not for every text.

    Returns:
        The name, the template, and the JSON Schema of the answer, if there is one.

    Raises:
        TemplateError: If no template says what the prompt says. The error names a text for which it fails.

        ArgumentsError: If one of *values* is wrong.

    See Also:
        https://mlflow.org/docs/latest/genai/prompt-registry
    """
    said = braced(prompt, values, "MLflow", _MISREAD, lossy=lossy)
    made: dict[str, Any] = {"name": prompt.options.name, "template": said}
    if (schema := prompt.compiled.answer_schema) is not None:
        made["response_format"] = schema
    return made

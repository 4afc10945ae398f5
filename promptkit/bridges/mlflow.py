"""MLflow: a prompt of ours in its registry."""

from collections.abc import Mapping
from typing import Any, Final

from promptkit.bridges.braces import braced
from promptkit.compiler.prompts import Prompt

__all__ = ["template"]

#: It takes a text with one of the last two for a template of Jinja2.
_MISREAD: Final = ("{{", "{%", "%}")


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
            What is the same always, by argument, as a client sends it; None stands for the default.

        lossy:
            Whether a template will do that says the same for plain words, and not for every text.

    Returns:
        The name, the template, and the JSON Schema of the answer, if there is one.

    Raises:
        UnfitTemplate: If no template says what the prompt says. It tells for what text.

        ArgumentErrors: If one of *values* is wrong.

    See Also:
        https://mlflow.org/docs/latest/genai/prompt-registry
    """
    said = braced(prompt, values, "MLflow", _MISREAD, lossy=lossy)
    made: dict[str, Any] = {"name": prompt.options.name, "template": said}
    if (schema := prompt.compiled.answer_schema) is not None:
        made["response_format"] = schema
    return made

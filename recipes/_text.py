"""Validation and parsing of text arguments, shared by several recipes."""

import re
from typing import Final, Literal, TypeAlias

from promptkit import PromptError

#: The choices for a `language` argument.
Language: TypeAlias = Literal[
    "python", "typescript", "javascript", "java", "kotlin", "go", "rust", "c", "c++", "c#", "swift",
    "ruby", "php", "sql", "shell", "diff",
]  # fmt: skip

#: Matches a model name of one to three words. Longer text is rejected, because it could contain instructions.
_MODEL_NAME: Final = re.compile(r"[A-Za-z0-9][\w.:/@+-]*(?: [\w.:/@+-]+){0,2}")


def require_text(text: str, label: str) -> str:
    """Return *text*. Raise PromptError if it is blank, because some clients send empty fields."""
    if not text.strip():
        msg = f"The {label} is empty: enter it and try again."
        raise PromptError(msg)
    return text


def split_items(text: str) -> list[str]:
    """Split *text* at commas and line breaks, and return the distinct items in order."""
    items = (item.strip() for item in re.split(r"[,\n]", text))
    return list(dict.fromkeys(item for item in items if item))


def parse_model_names(text: str) -> list[str]:
    """Return the distinct model names in *text*. Raise PromptError if there are fewer than two."""
    models = split_items(text)
    for model in models:
        if not _MODEL_NAME.fullmatch(model):
            hint = "separate the names with commas, for example 'gpt-5, sonnet-4'"
            msg = f"{model!r} is not a model name: {hint}."
            raise PromptError(msg)
    if len(models) < 2:
        msg = "Name at least two different models, separated by commas, for example 'gpt-5, sonnet-4'."
        raise PromptError(msg)
    return models

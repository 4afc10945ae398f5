"""What several recipes do with the text that people enter."""

import re
from typing import Final, Literal, TypeAlias

from promptkit import PromptError

#: The languages that a recipe offers to choose from.
Language: TypeAlias = Literal[
    "python", "typescript", "javascript", "java", "kotlin", "go", "rust", "c", "c++", "c#", "swift",
    "ruby", "php", "sql", "shell", "diff",
]  # fmt: skip

#: Models have names like these. A sentence, which might be an instruction, is none.
_MODEL: Final = re.compile(r"[A-Za-z0-9][\w.:/@+-]*(?: [\w.:/@+-]+){0,2}")


def given(text: str, what: str) -> str:
    """Return *text*; if it is blank, as some clients send an empty field, say that *what* is missing."""
    if not text.strip():
        msg = f"There is no {what}: enter it and try again."
        raise PromptError(msg)
    return text


def items(text: str) -> list[str]:
    """Return what commas or line ends separate in *text*, each item once."""
    found = (item.strip() for item in re.split(r"[,\n]", text))
    return list(dict.fromkeys(item for item in found if item))


def models_in(text: str) -> list[str]:
    """Return the names of models in *text*, of which there have to be two or more."""
    models = items(text)
    for model in models:
        if not _MODEL.fullmatch(model):
            msg = f"{model!r} is no model's name: separate the names by commas, as in 'gpt-5, sonnet-4'."
            raise PromptError(msg)
    if len(models) < 2:
        msg = "Name at least two different models, separated by commas, as in 'gpt-5, sonnet-4'."
        raise PromptError(msg)
    return models

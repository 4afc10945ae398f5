"""What an imported command is called: its prompt, its parameters, and its files, so that these are served."""

import re
from collections.abc import Iterable
from keyword import iskeyword
from typing import Final
from unicodedata import combining, normalize

from promptkit.loader.discovery import is_recipe, may_enter

#: Names that recipes use.
_TAKEN: Final = frozenset(
    {"Annotated", "Arg", "EmbeddedResource", "Text", "None", "prompt", "run", "str", "user", "words"}
    | {"dict", "enumerate", "workspace"}
)
_LONGEST: Final = 64

#: What makes a folder a skill, in which no recipes are looked for, if a file is called so.
_SKILL: Final = "skill"


def identifier(text: str) -> str | None:
    """Return an identifier of Python that reads as a text; None if nothing in it can be written so."""
    slug = re.sub(r"[^A-Za-z0-9]+", "_", _plain(text)).strip("_").lower()[:_LONGEST]
    if not slug:
        return None
    if slug[0].isdigit():
        slug = f"n{slug}"
    return f"{slug}_" if iskeyword(slug) or slug in _TAKEN else slug


def prompt_name(name: str) -> str:
    """Return the name of the prompt for a command, whose folders stand before a ``/``."""
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", _plain(name)).strip("-")[:_LONGEST].strip("-")
    return slug or "command"


def file_stem(name: str) -> str:
    """Return what the files of a command are called, without an ending."""
    stem = identifier(name) or "command"
    for one in (stem, f"{stem}_command", f"command_{stem}", f"command_{stem}_command"):
        if is_recipe(f"{one}.py") and one != _SKILL:
            return one
    return "command"


def folder_name(name: str) -> str:
    """Return what a folder of commands is called."""
    folder = identifier(name) or "commands"
    return folder if may_enter(folder) else f"{folder}_commands"


class FreeNames:
    """
    Names that differ from each other, in whatever case.

    Args:
        joint:
            What is between a name and the number that is added to it.

        taken:
            Names that are taken from the beginning.
    """

    def __init__(self, joint: str, taken: Iterable[str] = ()) -> None:
        self._joint = joint
        self._taken = {name.casefold() for name in taken}
        self._numbers = dict[str, int]()  # by name: all lower numbers are taken

    def find(self, name: str) -> str:
        """Return a name that is not taken: *name* itself, or with a number."""
        number = self._numbers.get(name, 1)
        while (found := f"{name}{self._joint}{number}" if number > 1 else name).casefold() in self._taken:
            number += 1
        self._numbers[name] = number
        return found

    def take(self, name: str) -> str:
        """Return *name*, which is taken from now on."""
        self._taken.add(name.casefold())
        return name


def _plain(text: str) -> str:
    """A text without accents."""
    return "".join(letter for letter in normalize("NFKD", text) if not combining(letter))

"""promptkit's folders of recipes: one for each number of prompts, as an author would have written them."""

import shutil
from collections.abc import Sequence
from pathlib import Path

SOURCE = Path(__file__).parent / "servers" / "recipes"
NAMED = 6  # prompts that the source has
EACH = 5  # prompts of a file, where there are many files

HEAD = '''\
"""As many prompts as make a list long."""

from typing import Literal

from promptkit import prompt

Language = Literal["python", "rust", "go"]
'''
PROMPT = '''

@prompt
def generated_{number:05}(code: str, language: Language = "python", depth: int = 1) -> str:
    """Review code in a language."""
    return f"Review this {{language}} code, {{depth}} deep.\\n\\n{{code}}"
'''


#: Of the folders with many files: a file that is saved again and again, and the prompt in it.
SAVED, SAVED_PROMPT = "generated_00000.py", "generated_00000"


def folder(parent: Path, count: int) -> Path:
    """
    Return where in *parent* the recipes of *count* prompts lie.
    """
    return parent / f"recipes-{count}"


def write(parent: Path, counts: Sequence[int]) -> None:
    """
    Write a folder of recipes into *parent* for each of *counts*.

    They have a folder each, and no environment variable that says how many there are: what promptkit keeps of
    one run for the next is kept by target, and is not of use where something else is read.
    """
    for count in counts:
        target = folder(parent, count)
        target.mkdir()
        shutil.copyfile(SOURCE / "prompts.py", target / "prompts.py")
        prompts = (PROMPT.format(number=number) for number in range(count - NAMED))
        (target / "generated.py").write_text("".join((HEAD, *prompts)), encoding="utf-8")


def folder_of_files(parent: Path, files: int) -> Path:
    """
    Return where in *parent* the recipes lie that are in so many files.
    """
    return parent / f"recipes-in-{files}-files"


def write_files(parent: Path, counts: Sequence[int]) -> None:
    """
    Write a folder of recipes into *parent* for each number of files. All files but one have `EACH` prompts.
    """
    for count in counts:
        target = folder_of_files(parent, count)
        target.mkdir()
        shutil.copyfile(SOURCE / "prompts.py", target / "prompts.py")
        for file in range(count - 1):
            prompts = (PROMPT.format(number=number) for number in range(file * EACH, (file + 1) * EACH))
            (target / f"generated_{file:05}.py").write_text("".join((HEAD, *prompts)), encoding="utf-8")


def save(parent: Path, files: int, edit: int) -> None:
    """
    Save a file among *files*, so that its prompts say the number of the edit.
    """
    place = folder_of_files(parent, files) / SAVED
    prompts = (PROMPT.format(number=number) for number in range(EACH))
    text = "".join((HEAD, *prompts)).replace("Review this", f"Review {edit}, this")
    place.write_text(text, encoding="utf-8")

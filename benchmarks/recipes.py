"""Folders of recipes for promptkit, as an author would write them, with different numbers of prompts."""

import compileall
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

SOURCE = Path(__file__).parent / "servers" / "recipes"
NAMED = 5  # prompts in the source
EACH = 5  # prompts in each of many files

HEAD = '''\
"""Prompts that make the list long."""

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


#: Recipe files, keyed by name. Importing the first file takes 10 s, and the prompt in the second never
#: returns.
SLOW, LOOP = "a_slow_import.py", "loop.py"
EXTRA = {
    SLOW: """\
from time import monotonic

end = monotonic() + 10
while monotonic() < end:
    pass
""",
    LOOP: """\
from promptkit import prompt


@prompt
def loop() -> str:
    while True:
        pass
""",
}

#: The file that is saved repeatedly in a folder with many files, and the name of its prompt.
SAVED, SAVED_PROMPT = "generated_00000.py", "generated_00000"


def folder(parent: Path, count: int) -> Path:
    """
    Return the folder in *parent* for recipes with *count* prompts.
    """
    return parent / f"recipes-{count}"


def write(parent: Path, counts: Sequence[int]) -> None:
    """
    Write a folder of recipes into *parent* for each of *counts*.

    The folders also contain bytecode, as after a first start.
    """
    for count in counts:
        prompts = (PROMPT.format(number=number) for number in range(count - NAMED))
        _write_folder(folder(parent, count), {"generated.py": "".join((HEAD, *prompts))})


def folder_with(parent: Path, file: str) -> Path:
    """
    Return the folder in *parent* for recipes with one of the files in `EXTRA`.
    """
    return parent / f"recipes-with-{file}"


def write_extra(parent: Path) -> None:
    """
    Write a folder of recipes into *parent* for each of the files in `EXTRA`.
    """
    for file, text in EXTRA.items():
        _write_folder(folder_with(parent, file), {file: text})


def _write_folder(target: Path, files: Mapping[str, str]) -> None:
    """Write the prompts to measure, additional files, and the bytecode of all files."""
    target.mkdir()
    shutil.copyfile(SOURCE / "prompts.py", target / "prompts.py")
    for name, text in files.items():
        (target / name).write_text(text, encoding="utf-8")
    compileall.compile_dir(target, quiet=2)


def folder_of_files(parent: Path, files: int) -> Path:
    """
    Return the folder in *parent* for recipes in *files* files.
    """
    return parent / f"recipes-in-{files}-files"


def write_files(parent: Path, counts: Iterable[int]) -> None:
    """
    Write a folder of recipes into *parent* for each of *counts*, the numbers of files.

    All files except one contain `EACH` prompts.
    """
    for count in counts:
        files = {f"generated_{file:05}.py": _file(file) for file in range(count - 1)}
        _write_folder(folder_of_files(parent, count), files)


def _file(number: int) -> str:
    """Return the source of one of many files."""
    numbers = range(number * EACH, (number + 1) * EACH)
    return "".join((HEAD, *(PROMPT.format(number=each) for each in numbers)))


def save(parent: Path, files: int, edit: int) -> None:
    """
    Save one file in the folder with *files* files, with the number of the edit in its prompt's text.
    """
    path = folder_of_files(parent, files) / SAVED
    text = _file(0).replace("Review this", f"Review {edit}, this")
    path.write_text(text, encoding="utf-8")

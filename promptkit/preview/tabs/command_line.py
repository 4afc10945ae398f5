"""The tab *command line*: the command that prints the same."""

from typing import Final

from promptkit.catalog.arguments import Arguments
from promptkit.fragments.shell_words import quoted, quoted_path
from promptkit.preview.controls import is_upload
from promptkit.preview.rendering import Rendering
from promptkit.preview.tabs.content import Block, TabContent
from promptkit.preview.uploads import Upload

__all__ = ["content", "variable"]

#: Characters of a value that stands in the command itself. Systems take 128 KiB.
_MAX_VALUE: Final = 32_000


def content(rendering: Rendering, target: str, _choice: str) -> TabContent:
    """
    Return the command, quoted for a shell as Linux and macOS have it.
    """
    prompt = rendering.prompt
    words = ["promptkit", "render", quoted_path(target), quoted(prompt.name)]
    notes = []
    # A link may bring any names: those that the prompt does not have are left out.
    for name in filter(prompt.arguments.by_name.__contains__, rendering.given):
        word, note = _argument(prompt.arguments, name, rendering.given[name], rendering.uploads.get(name))
        words.append(word)
        notes += [note] if note else []
    command = rendering.redactor.redacted(" ".join(words))
    return TabContent("command-line", (), (Block("Run this", command, "shell"),), tuple(notes))


def variable(name: str) -> str:
    """
    Return the environment variable that stands for the value of a secret argument.
    """
    return name.upper()


def _argument(arguments: Arguments, name: str, value: str, upload: Upload | None) -> tuple[str, str | None]:
    """One argument, and what is to be known of it."""
    argument = arguments.by_name[name]
    if argument.arg.secret:
        note = f"The value of {name} is a secret, and left out: set the variable {variable(name)} to it."
        return f'{name}="${variable(name)}"', note
    if upload is not None and upload.files:
        return _uploaded(name, upload)
    if "\0" in value or len(value) > _MAX_VALUE or is_upload(argument):
        file = f"{name}.bin" if is_upload(argument) else f"{name}.txt"
        return (
            f"{name}=@{file}",
            f"The value of {name} is read from {file}: save there what you uploaded or typed.",
        )
    return quoted(f"{name}={'@' * value.startswith('@')}{value}", one_line=False), None


def _uploaded(name: str, upload: Upload) -> tuple[str, str]:
    """An argument that is read from the file that was uploaded."""
    file = upload.files[0]
    note = f"The value of {name} is read from {file}: run this beside it."
    if len(upload.files) > 1:
        note = f"The value of {name} is made of {len(upload.files)} files, and a command line takes one."
    # "@@" and "@-" have a meaning of their own.
    return quoted(f"{name}=@{'./' * file.startswith(('@', '-'))}{file}"), note

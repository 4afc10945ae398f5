"""``promptkit import``: commands and prompt files of other clients as recipes."""

import errno
import os
import stat
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple

from promptkit.cli import Exit
from promptkit.cli.diagnostics import counted, fail
from promptkit.cli.output import Output
from promptkit.clients.slash_commands.claude import read_claude_command
from promptkit.clients.slash_commands.command import (
    CommandSyntaxError,
    FreeNames,
    SlashCommand,
    brief,
    file_stem,
    folder_name,
    prompt_name,
)
from promptkit.clients.slash_commands.frontmatter import one_line
from promptkit.clients.slash_commands.gemini import read_gemini_command
from promptkit.clients.slash_commands.recipe_source import generate_recipe
from promptkit.clients.slash_commands.vscode import read_vscode_prompt
from promptkit.errors.suggestions import near_file
from promptkit.files.folder import Folder

#: How files of each format end, and what reads one.
_READERS: Final[dict[str, tuple[str, Callable[[str, str], SlashCommand]]]] = {
    "claude-commands": (".md", read_claude_command),
    "gemini-commands": (".toml", read_gemini_command),
    "vscode-prompts": (".prompt.md", read_vscode_prompt),
}


#: A larger file is not a command.
_MAX_BYTES: Final = 1 << 20

_LINK: Final = "it is a link, and links are not followed: import its target instead"


class _Source(NamedTuple):
    """
    A file to import.

    Args:
        path:
            Its path in messages.

        name:
            The name of its command: its path in the folder that was named, without its ending.

        read:
            Returns its bytes, or raises OSError.
    """

    path: str
    name: str
    read: Callable[[], bytes]


def run(options: Namespace, output: Output) -> int:
    """Write a recipe for each file, and report what of it is not carried."""
    ending, read = _READERS[options.client_format]
    sources = list[_Source]()
    for path in options.paths:
        found = _find(path, ending)
        if found is None:
            return fail(f"there is no file or folder {path!r}{near_file(path)}", Exit.USAGE)
        sources += found
    if not sources:
        return fail(f"there are no files *{ending} in {', '.join(map(repr, options.paths))}", Exit.USAGE)
    writer = _RecipeWriter(Folder.named(options.out))
    for source in sources:
        output.print_lines(writer.write(source, read), one_line=True)
    output.print_lines(writer.summary())
    return Exit.FAULTY if writer.lossy or writer.refused else Exit.FINE


def _find(path: str, ending: str) -> list[_Source] | None:
    """Return the files of a format at a path, which is one of them or a folder; None if it does not exist."""
    path = os.path.normpath(path)
    folder = Folder.named(path, is_portable=False)
    try:
        if folder.exists():
            return list(_walk(folder, ending))
    except NotADirectoryError:
        pass  # it is a file, as read below
    except OSError as error:
        return [_refused(path, error)]
    above, name = os.path.split(path)
    folder = Folder.named(above or os.curdir, is_portable=False)
    try:
        status = folder.status(name)
    except OSError as error:
        return [_refused(path, error)]
    if status is None:
        return None
    if stat.S_ISLNK(status.st_mode):
        return [_refused(path, OSError(errno.ELOOP, _LINK))]
    return [_Source(path, name.removesuffix(ending), lambda: folder.read(name, _MAX_BYTES))]


def _walk(folder: Folder, ending: str) -> Iterator[_Source]:
    """Yield the files of a format below a folder, and the links and folders that are not looked into."""
    unreadable = list[_Source]()

    def note(path: str, error: OSError) -> None:
        unreadable.append(_refused(folder.display_path(path), error))

    for path, status in sorted(folder.walk(note), key=lambda entry: entry[0].split("/")):
        display_path, name = folder.display_path(path), path.rpartition("/")[2]
        if stat.S_ISLNK(status.st_mode):
            yield _refused(display_path, OSError(errno.ELOOP, _LINK))
        elif name.endswith(ending) and name != ending:
            yield _Source(display_path, path.removesuffix(ending), partial(folder.read, path, _MAX_BYTES))
    yield from unreadable


def _refused(path: str, error: OSError) -> _Source:
    """Return a source that cannot be read."""

    def read() -> bytes:
        raise error

    return _Source(path, "", read)


class _RecipeWriter:
    """Writes recipes into a folder, and counts them."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._places = FreeNames("_")
        self._prompts = FreeNames("-")
        self.imported = self.lossy = self.refused = 0

    def write(self, source: _Source, read: Callable[[str, str], SlashCommand]) -> list[str]:
        """Write the recipe of a file, and return the lines that report it, or why it is not imported."""
        place = _line_beginning(source.path)
        try:
            _check_name(source.name)
            text = source.read().decode("utf-8-sig").replace("\r\n", "\n")
            command = read(source.name, text)
            files = self._write(command)
        except Exception as error:  # noqa: BLE001 (whatever is wrong with one file, the others are imported)
            self.refused += 1
            return [f"{place}:{getattr(error, 'line', 1)}: not imported: {_reason(error, source)}"]
        self.imported += 1
        self.lossy += bool(command.losses)
        wrote = f"{place}: wrote {' and '.join(files)}"
        return [wrote, *(f"{place}:{loss.line}: {loss.what}" for loss in command.losses)]

    def _write(self, command: SlashCommand) -> list[str]:
        """Write the files of a command, and return their paths."""
        *folders, name = command.name.split("/")
        above = [folder_name(folder) for folder in folders]
        path = self._places.take(self._places.find("/".join([*above, file_stem(name)])))
        prompt = self._prompts.find(prompt_name(command.name))
        stem = path.rpartition("/")[2]
        markdown, python = generate_recipe(command, prompt, stem)
        compile(
            python, f"{stem}.py", "exec", dont_inherit=True
        )  # a recipe that does not parse is not written
        files = {f"{path}.py": python.encode(), f"{path}.md": markdown.encode()}
        self._folder.write_new(files)
        self._prompts.take(prompt)
        return [self._folder.display_path(file) for file in files]

    def summary(self) -> Iterator[str]:
        """Yield how many there were."""
        yield f"imported {counted(self.imported, 'command')}, {self.imported - self.lossy} of them whole"
        if self.refused:
            yield f"did not import {counted(self.refused, 'file')}"


def _line_beginning(path: str) -> str:
    """Return a path that can begin a line: GitHub runs lines that begin as its workflow commands do."""
    return f"./{path}" if path.lstrip().startswith(("::", "##[")) else path


def _check_name(name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        msg = "its name is not UTF-8: rename it"
        raise CommandSyntaxError(msg) from None


def _reason(error: Exception, source: _Source) -> str:
    match error:
        case CommandSyntaxError():
            return str(error)
        case UnicodeDecodeError():
            return f"it is no UTF-8 at byte {error.start + 1:,}"
        case FileExistsError() | NotADirectoryError():
            return f"{error.filename!r} is in the way: move it, or name another folder with -o"
        case OSError():
            is_own = not error.filename or f"/{source.path}".endswith(f"/{error.filename}")
            return str(error.strerror) if is_own else f"{error.filename}: {error.strerror}"
    return f"it cannot be read ({type(error).__name__}: {brief(one_line(str(error)))})"

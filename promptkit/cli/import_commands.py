"""``promptkit import``: write recipes from clients' slash commands and prompt files."""

import os
import stat
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

from promptkit.cli import Exit
from promptkit.cli.diagnostics import fail, format_count
from promptkit.cli.output import Output
from promptkit.clients.slash_commands.claude import read_claude_command
from promptkit.clients.slash_commands.command import (
    CommandSyntaxError,
    SlashCommand,
    UniqueNames,
    make_excerpt,
    markdown_path,
    one_line,
    python_path,
)
from promptkit.clients.slash_commands.gemini import read_gemini_command
from promptkit.clients.slash_commands.recipe_source import generate_markdown, generate_python, needs_python
from promptkit.clients.slash_commands.vscode import read_vscode_prompt
from promptkit.declarations.options import name_slug
from promptkit.files.folder import Folder
from promptkit.loader.discovery import MARKDOWN_ENDING

#: The file suffix of each format, and the function that parses its files.
_PARSERS: Final[dict[str, tuple[str, Callable[[str, str], SlashCommand]]]] = {
    "claude-commands": (".md", read_claude_command),
    "gemini-commands": (".toml", read_gemini_command),
    "vscode-prompts": (".prompt.md", read_vscode_prompt),
}

#: Maximum size of a file in bytes. Larger files are rejected.
_MAX_BYTES: Final = 1 << 20


class _Source(NamedTuple):
    """
    A file to import.

    Args:
        path:
            The path to show in messages.

        name:
            The name of the command, which is the path within the given folder, without the suffix.

        read:
            A function that returns the content of the file, or raises OSError.
    """

    path: str
    name: str
    read: Callable[[], bytes]


def run(options: Namespace, output: Output) -> int:
    """Write a recipe for each file, and report the files and features that could not be converted."""
    ending, parse = _PARSERS[options.client_format]
    sources = list[_Source]()
    for path in options.paths:
        path_sources = _find_sources(path, ending)
        if path_sources is None:
            return fail(f"there is no file or folder {path!r}", Exit.USAGE)
        sources += path_sources
    if not sources:
        return fail(f"there are no *{ending} files in {', '.join(map(repr, options.paths))}", Exit.USAGE)
    writer = _RecipeWriter(Folder.named(options.out))
    for source in sources:
        output.print_lines(writer.write(source, parse), one_line=True)
    output.print_lines(writer.summary())
    return Exit.FAILED if writer.lossy or writer.rejected else Exit.OK


def _find_sources(path: str, ending: str) -> list[_Source] | None:
    """Return the files of a format at *path*, which is a file or a folder; None if it does not exist."""
    path = os.path.normpath(path)
    folder = Folder.named(path, is_portable=False)
    try:
        if folder.exists():
            return list(_walk_sources(folder, ending))
    except NotADirectoryError:
        pass  # a file, handled below
    except OSError as error:
        return [_Source(path, "", partial(_raise, error))]
    parent, name = os.path.split(path)
    folder = Folder.named(parent or os.curdir, is_portable=False)
    with suppress(OSError):
        if folder.lstat(name) is None:
            return None
    return [_Source(path, name.removesuffix(ending), partial(folder.read, name, _MAX_BYTES))]


def _walk_sources(folder: Folder, ending: str) -> Iterator[_Source]:
    """
    Yield the files of a format in a folder tree.

    Links and unreadable folders are yielded as well, because the error raised by reading them is reported.
    """
    unreadable: dict[str, OSError] = {}
    files = folder.walk(on_error=unreadable.__setitem__)
    for path, status in sorted(files, key=lambda file: file[0].split("/")):
        display_path, name = folder.display_path(path), path.rpartition("/")[2]
        # Symbolic links are not followed, so reading them fails.
        if stat.S_ISLNK(status.st_mode) or (name.endswith(ending) and name != ending):
            yield _Source(display_path, path.removesuffix(ending), partial(folder.read, path, _MAX_BYTES))
    for path, error in unreadable.items():
        yield _Source(folder.display_path(path), "", partial(_raise, error))


def _raise(error: OSError) -> bytes:
    raise error


class _RecipeWriter:
    """Writes recipes, and counts the imported and the rejected files."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._paths = UniqueNames("_")
        self._prompt_names = UniqueNames("-")
        self.imported = self.lossy = self.rejected = 0

    def write(self, source: _Source, parse: Callable[[str, str], SlashCommand]) -> list[str]:
        """Write the recipe for a file. Return lines that report the recipe, or why the file was rejected."""
        path = source.path
        try:
            source.name.encode()
            text = source.read().decode("utf-8-sig").replace("\r\n", "\n")
            command = parse(source.name, text)
            files = self._write(command)
        except Exception as error:  # noqa: BLE001 (one bad file does not stop the import of the others)
            self.rejected += 1
            return [f"{path}:{getattr(error, 'line', 1)}: not imported: {_explain_rejection(error, source)}"]
        self.imported += 1
        self.lossy += bool(command.losses)
        wrote = f"{path}: wrote {' and '.join(files)}"
        return [wrote, *(f"{path}:{loss.line}: {loss.description}" for loss in command.losses)]

    def _write(self, command: SlashCommand) -> list[str]:
        """Write the recipe for a command, and return the paths of its files."""
        is_python = needs_python(command)
        find_path = python_path if is_python else markdown_path
        path = self._paths.reserve(find_path(command.name))
        prompt = self._prompt_names.reserve(name_slug(command.name) or "command")
        if is_python:
            stem = path.rpartition("/")[2]
            text, python = generate_python(command, prompt, stem)
            # Raise before writing a recipe that does not parse.
            compile(python, f"{stem}.py", "exec", dont_inherit=True)
            files = {f"{path}.py": python, f"{path}.md": text}
        else:
            name = None if name_slug(path) == prompt else prompt
            files = {f"{path}{MARKDOWN_ENDING}": generate_markdown(command, name)}
        self._folder.write_new({file: content.encode() for file, content in files.items()})
        return [self._folder.display_path(file) for file in files]

    def summary(self) -> Iterator[str]:
        """Yield lines that say how many files were imported and how many were rejected."""
        in_part = f" ({self.lossy} only in part)" if self.lossy else ""
        yield f"imported {format_count(self.imported, 'command')}{in_part}"
        if self.rejected:
            yield f"did not import {format_count(self.rejected, 'file')}"


def _explain_rejection(error: Exception, source: _Source) -> str:
    match error:
        case CommandSyntaxError():
            return str(error)
        case FileExistsError() | NotADirectoryError():
            return f"{error.filename!r} is in the way: move it, or choose another folder with -o"
        case OSError():
            is_own = not error.filename or f"/{source.path}".endswith(f"/{error.filename}")
            return str(error.strerror) if is_own else f"{error.filename}: {error.strerror}"
    return f"it cannot be read ({type(error).__name__}: {make_excerpt(one_line(str(error)))})"

"""``promptkit import``: commands and prompt files of other clients as recipes."""

from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from promptkit.cli import Exit
from promptkit.cli.diagnostics import counted, fail
from promptkit.cli.output import Output
from promptkit.cli.slash_commands.claude import read_claude_command
from promptkit.cli.slash_commands.gemini import read_gemini_command
from promptkit.cli.slash_commands.names import file_stem, folder_name, free, prompt_name
from promptkit.cli.slash_commands.parsed import SlashCommand, UnreadableCommand
from promptkit.cli.slash_commands.recipes import written
from promptkit.cli.slash_commands.vscode import read_vscode_prompt
from promptkit.errors.near_names import near_file
from promptkit.files.new import write_new

__all__ = ["run"]

#: How files of each format end, and what reads one.
_READERS: Final[dict[str, tuple[str, Callable[[str, str], SlashCommand]]]] = {
    "claude-commands": (".md", read_claude_command),
    "gemini-commands": (".toml", read_gemini_command),
    "vscode-prompts": (".prompt.md", read_vscode_prompt),
}


class _Found(NamedTuple):
    """A file, and the name of its command: its path in the folder that was named, without its ending."""

    path: Path
    name: str


def run(options: Namespace, output: Output) -> int:
    """Write a recipe for each file, and say what of it has no place in one."""
    ending, read = _READERS[options.client_format]
    for path in map(Path, options.paths):
        if not path.exists():
            return fail(f"there is no file or folder {str(path)!r}{near_file(str(path))}", Exit.USAGE)
    found = [one for path in options.paths for one in _found(Path(path), ending)]
    if not found:
        return fail(f"there are no files *{ending} in {', '.join(map(repr, options.paths))}", Exit.USAGE)
    writer = _RecipeWriter(Path(options.out))
    for one in found:
        output.print_lines(writer.write(one, read), one_line=True)
    output.print_lines(writer.summary())
    return Exit.FAULTY if writer.lossy or writer.refused else Exit.FINE


def _found(path: Path, ending: str) -> Iterator[_Found]:
    """The files of a format at a path, which is one of them, or a folder of them."""
    if path.is_dir():
        files = (file for file in path.rglob(f"*{ending}") if file.is_file() and file.name != ending)
        for file in sorted(files, key=lambda one: one.relative_to(path).parts):
            yield _Found(file, file.relative_to(path).as_posix().removesuffix(ending))
    else:
        yield _Found(path, path.name.removesuffix(ending))


class _RecipeWriter:
    """What writes recipes into a folder, and counts them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._places: set[str] = set()
        self._prompts: set[str] = set()
        self.imported = self.lossy = self.refused = 0

    def write(self, found: _Found, read: Callable[[str, str], SlashCommand]) -> Iterator[str]:
        """Write the recipe of a file, and yield what is said of it."""
        try:
            text = found.path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
            command = read(found.name, text)
            files, prompt = self._files(command)
            write_new(files)
        except (UnreadableCommand, UnicodeDecodeError, OSError) as error:
            self.refused += 1
            yield f"{found.path}:{getattr(error, 'line', 1)}: not imported: {_reason(error)}"
            return
        self._prompts.add(prompt.casefold())
        self.imported += 1
        self.lossy += bool(command.losses)
        yield f"{found.path}: wrote {' and '.join(map(str, files))}"
        for loss in command.losses:
            yield f"{found.path}:{loss.line}: {loss.what}"

    def _files(self, command: SlashCommand) -> tuple[dict[Path, str], str]:
        """What is written for a command, by its path; and what the prompt is called."""
        *folders, name = command.name.split("/")
        folder = self._folder.joinpath(*map(folder_name, folders))
        place = free(str(folder / file_stem(name)), "_", self._places)
        self._places.add(place.casefold())
        path = Path(place)
        prompt = free(prompt_name(command.name), "-", self._prompts)
        markdown, python = written(command, prompt, path.name)
        return {path.with_suffix(".py"): python, path.with_suffix(".md"): markdown}, prompt

    def summary(self) -> Iterator[str]:
        """Yield how many there were."""
        yield f"imported {counted(self.imported, 'command')}, {self.imported - self.lossy} of them whole"
        if self.refused:
            yield f"did not import {counted(self.refused, 'file')}"


def _reason(error: Exception) -> str:
    if isinstance(error, FileExistsError):
        return f"{error.filename!r} is in the way: move it, or name another folder with -o"
    if isinstance(error, UnicodeDecodeError):
        return f"it is no UTF-8 at byte {error.start + 1:,}"
    return f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)

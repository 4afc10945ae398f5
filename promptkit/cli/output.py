"""
A command's own output, separate from the output of authors' code.

Standard output moves to a private descriptor before recipes are imported. Everything that authors' code
prints after that, from Python, C, a child process or a thread, goes to standard error.
"""

import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO, StringIO, UnsupportedOperation
from typing import TYPE_CHECKING, Any, Final, TextIO

from promptkit.fragments.invisible import escape_invisible
from promptkit.standard_error import stderr_stream

if TYPE_CHECKING:
    from rich.console import Console

#: The minimum width in columns. A narrower terminal wraps the lines itself.
_MIN_WIDTH: Final = 20

# Workflow commands of GitHub Actions are lines in a job's log that change the job. The runner looks for them
# in all output of a step: ``::add-mask::x`` at the start of a line, after any spaces, and ``##[add-mask]x``
# anywhere in a line. Text from other sources must not be executed as a command.
_LINE_ENDS: Final = r"\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029"

#: A code that sets a terminal's colours.
_COLOUR: Final = r"\x1b\[[0-9;]*m"

#: The start of a line, with everything that the runner skips there: spaces, colours, and characters that its
#: string comparison ignores.
_LINE_START: Final = rf"(?<![^{_LINE_ENDS}])((?:{_COLOUR}|[^\w!-@\[-`{{-~{_LINE_ENDS}])*)"

#: The first character of a command. The rest may contain colours.
_COMMAND: Final = re.compile(
    rf"{_LINE_START}:(?=(?:{_COLOUR})*:[^{_LINE_ENDS}]*:(?:{_COLOUR})*:)|#(?=(?:{_COLOUR})*#(?:{_COLOUR})*\[)"
)


def is_in_workflow() -> bool:
    """Return whether this process runs in GitHub Actions, whose runner parses the output."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def escape_commands(text: str) -> str:
    r"""
    Return *text* with one character of each workflow command replaced by an escape, ``\u003a`` or ``\u0023``.

    Escaped JSON remains the same data. Outside a workflow, *text* is returned unchanged.
    """
    if not is_in_workflow():
        return text
    return _COMMAND.sub(lambda match: r"\u0023" if match[0] == "#" else rf"{match[1]}\u003a", text)


class OutputError(Exception):
    """Standard output cannot be written to. The message comes from the operating system."""


class Output(StringIO):
    """
    The buffered output of a command.

    Args:
        stream:
            A text stream, or a file on a private descriptor.

        encoding:
            The encoding of the stream. Characters that it cannot encode are escaped.
    """

    def __init__(self, stream: TextIO | FileIO, encoding: str) -> None:
        super().__init__(newline=os.linesep if isinstance(stream, FileIO) else "\n")
        self._stream = stream
        self._encoding = encoding
        self._commands: set[str] = set()

    def isatty(self) -> bool:
        """Return whether standard output is a terminal."""
        return self._stream.isatty()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # an in-memory buffer has no encoding
        """The encoding of standard output."""
        return self._encoding

    @property
    def width(self) -> int | None:
        """The terminal's width in columns; None if this is not a terminal."""
        return width_of(self._stream) if self.isatty() else None

    def print_content(self, text: str) -> None:
        """Print the text of a prompt. On a terminal, escape its control characters."""
        print(escape_invisible(text) if self.isatty() else text, file=self)

    def print_lines(self, lines: Iterable[str], *, one_line: bool = False) -> None:
        """Print lines with control characters escaped. With *one_line*, escape line feeds as well."""
        for line in lines:
            print(escape_invisible(line, one_line=one_line), file=self)

    def print_command(self, line: str) -> None:
        """Print a workflow command. In a workflow, commands in any other text are escaped."""
        self._commands.add(line)
        print(line, file=self)

    def print_json(self, data: Any) -> None:
        """Print *data* as JSON, with escapes for invisible characters."""
        import json

        def escape(match: re.Match[str]) -> str:
            return match[0] if escape_invisible(match[0]) == match[0] else json.dumps(match[0])[1:-1]

        is_unicode = self._encoding.lower().replace("-", "").startswith("utf")
        text = json.dumps(data, indent=2, ensure_ascii=not is_unicode)
        print(re.sub("[^\n -~]+", escape, text), file=self)

    def send(self) -> None:
        """
        Write the buffered output.

        Raises:
            OutputError: If standard output cannot be written to.
        """
        data = self._escaped_text().encode(self._encoding, "backslashreplace")
        self.seek(0)
        self.truncate()
        try:
            if isinstance(self._stream, FileIO):
                remaining = memoryview(data)
                while remaining:
                    remaining = remaining[self._stream.write(remaining) or 0 :]
            else:
                self._stream.write(data.decode(self._encoding))
                self._stream.flush()
        except OSError as error:
            raise OutputError(error.strerror or str(error)) from error

    def _escaped_text(self) -> str:
        text = self.getvalue()
        if not is_in_workflow() or self._is_file():
            return text
        # Prompts, names and files can contain commands, which the runner would execute.
        parts = re.split("(\r?\n)", text)
        return "".join(part if part in self._commands else escape_commands(part) for part in parts)

    def _is_file(self) -> bool:
        return isinstance(self._stream, FileIO) and stat.S_ISREG(os.fstat(self._stream.fileno()).st_mode)


def width_of(stream: TextIO | FileIO) -> int:
    """Return the width of a terminal in columns. The environment variable ``COLUMNS`` overrides it."""
    try:
        columns = int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size(stream.fileno()).columns
    except (ValueError, OSError):  # not a terminal, or COLUMNS is not a number
        columns = 0
    return max(columns or 80, _MIN_WIDTH)


def make_console(stream: TextIO, width: int | None) -> "Console":
    """
    Return a console that prints in colour if *stream* is a terminal.

    ``NO_COLOR`` and ``FORCE_COLOR`` override that, see https://no-color.org and https://force-color.org.
    """
    from rich.console import Console

    plain = bool(os.environ.get("NO_COLOR"))  # rich itself would still print bold and dim
    return Console(file=stream, color_system=None if plain else "auto", highlight=False, width=width)


@contextmanager
def capture_output(*, restore: bool) -> Iterator[Output]:
    """
    Reserve standard output for the output of a command, and write this output at the end.

    Args:
        restore:
            Whether to restore standard output afterwards. Pass False if the process exits afterwards, because
            authors' code can still print in exit handlers, and that output belongs on standard error.

    Raises:
        OutputError: If standard output cannot be written to.
    """
    stderr_stream()  # opens standard error if it was closed
    original, private = sys.stdout, os.dup(1)
    if hasattr(os, "set_blocking"):  # on other systems, descriptors always block
        os.set_blocking(private, True)
    with FileIO(private, "wb") as file:
        _flush(original)
        os.dup2(2, 1)
        if _is_descriptor_1(original):
            output = Output(file, getattr(original, "encoding", "utf-8"))
            # Not sys.stderr, because a recipe can close sys.stdout, and errors need standard error.
            sys.stdout = open(1, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115 (it stays open)
        else:  # replaced by other code in this process, such as pytest
            output = Output(original, "utf-8")
            sys.stdout = sys.stderr
        try:
            yield output
            output.send()
        finally:
            _flush(getattr(sys, "stdout", None))
            if restore:
                _flush(original)
                os.dup2(private, 1)
                sys.stdout = original


def _is_descriptor_1(stream: TextIO | None) -> bool:
    """Return whether a stream is missing or writes to descriptor 1."""
    try:
        return stream is None or stream.fileno() == 1
    except (UnsupportedOperation, AttributeError, ValueError):
        return False


def _flush(stream: TextIO | None) -> None:
    with suppress(Exception):  # a recipe can close or replace the stream
        if stream is not None:
            stream.flush()

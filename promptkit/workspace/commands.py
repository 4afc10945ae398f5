"""Commands that a prompt runs in the workspace to use their output as text."""

import os
import signal
from collections.abc import Callable, Iterable
from operator import index
from threading import Event
from typing import Final, TypeAlias

from promptkit.errors.exceptions import PromptError, shortened
from promptkit.fragments.invisible import escape_invisible
from promptkit.fragments.shell_words import command_line
from promptkit.fragments.text import truncate
from promptkit.language.context import is_cancelled
from promptkit.workspace.execution import Outcome, execute
from promptkit.workspace.paths import workspace

#: A word of a command. If it is None, it is skipped.
Word: TypeAlias = str | os.PathLike[str] | None

#: The maximum size of one character in UTF-8, in bytes.
_CHARACTER_BYTES: Final = 4


def run(*command: Word, limit: int = 20_000, timeout: float = 10.0, check: bool = True) -> str:
    """
    Run a command in the workspace, and return its output.

    The command does not run in a shell, so each argument is exactly one word, no matter which characters it
    contains. The command has no input and no terminal. It is terminated when it exceeds the limit or the
    timeout, or when the request is cancelled. When it exits for any reason, its child processes are
    terminated as well. In an ``async def`` prompt, await `run_async` instead.

    Args:
        *command:
            The program and its arguments, as text or paths. Arguments that are None are skipped.

        limit:
            The maximum number of characters to return, which must be at least 1. If the output is longer, the
            command is terminated, and a line such as ``[... cut after 19,968 characters ...]`` replaces the
            rest.

        timeout:
            The maximum run time, in seconds.

        check:
            Whether an exit code other than 0 is an error.

    Returns:
        The standard output, without line endings at its end. Bytes that are not valid UTF-8 are replaced.

    Raises:
        PromptError: If there is no workspace, or if the command cannot be run, times out or fails. If the
            command fails or times out, the message contains the command and the first line of its standard
            error.

        TypeError: If no program is given, or a word is neither text nor a path.

        ValueError: If *limit* or *timeout* is not positive.
    """
    return _run(command, limit, timeout, check, is_cancelled)


async def run_async(
    *command: Word,
    limit: int = 20_000,
    timeout: float = 10.0,  # noqa: ASYNC109 (as in `run`, it also terminates the command)
    check: bool = True,
) -> str:
    """
    Run a command in the workspace without blocking the event loop, and return its output.

    Args:
        *command:
            See `run`.

        limit:
            See `run`.

        timeout:
            See `run`.

        check:
            See `run`.

    Returns:
        The standard output, as returned by `run`.

    Raises:
        PromptError: For the same reasons as in `run`.

        TypeError: For the same reasons as in `run`.

        ValueError: For the same reasons as in `run`.
    """
    import asyncio  # most prompts do not need it

    cancelled = Event()
    try:
        return await asyncio.to_thread(_run, command, limit, timeout, check, cancelled.is_set)
    finally:  # also on cancellation
        cancelled.set()


def _run(
    command: Iterable[Word],
    limit: int,
    timeout: float,
    check: bool,  # noqa: FBT001 (passed on)
    should_stop: Callable[[], bool],
) -> str:
    words = _words(command)
    if index(limit) < 1 or not timeout > 0:
        msg = f"run(limit={limit!r}, timeout={timeout!r}): limit and timeout must be greater than 0"
        raise ValueError(msg)
    command_text = shortened(command_line(words))
    max_bytes = _CHARACTER_BYTES * limit
    try:
        outcome = execute(words, workspace(), limit=max_bytes, timeout=timeout, should_stop=should_stop)
    except FileNotFoundError:
        msg = f"cannot run {command_text}: the program {shortened(words[0])!r} is not on the server's machine"
        raise PromptError(msg) from None
    except OSError as error:
        msg = f"cannot run {command_text}: {error.strerror}"
        raise PromptError(msg) from None
    except ValueError:
        msg = f"cannot run {command_text}: a word contains a null character or an unpaired surrogate"
        raise PromptError(msg) from None
    if (failure := _describe_failure(outcome, timeout, check=check)) is not None:
        msg = f"{command_text} {failure}{_first_error_line(outcome)}"
        raise PromptError(msg)
    return _truncate_output(outcome.output.decode(errors="replace").rstrip("\r\n"), limit)


def _words(command: Iterable[Word]) -> list[str]:
    """Return the words of a command as text. Raises TypeError for a word that is neither text nor a path."""
    words = [os.fspath(word) for word in command if word is not None]
    if not words:
        msg = "run(...) needs a program: pass each word as an argument, for example run('git', 'status')"
        raise TypeError(msg)
    return words


def _describe_failure(outcome: Outcome, timeout: float, *, check: bool) -> str | None:
    """Describe how a command failed; return None if it succeeded."""
    if outcome.stopped == "timeout":
        return f"took longer than {timeout:g} s and was terminated"
    if not check or not outcome.code or outcome.stopped is not None:
        return None
    if outcome.code < 0:
        return f"was terminated by a signal ({signal.strsignal(-outcome.code) or -outcome.code})"
    return f"exited with code {outcome.code}"


def _first_error_line(outcome: Outcome) -> str:
    """Return a colon and the first line of a command's standard error; ``""`` if that is blank."""
    lines = map(str.strip, outcome.error.decode(errors="replace").splitlines())
    first = shortened(next(filter(None, lines), ""))
    return f": {escape_invisible(first, one_line=True)}" if first else ""


def _truncate_output(text: str, limit: int) -> str:
    """Truncate *text* to *limit* characters, including a last line that counts the characters before it."""
    if len(text) <= limit:
        return text
    # Replace the note that `truncate` adds, because the number in it counts only the output that was read.
    start, _, _ = truncate(text, limit).text.rpartition("\n")
    return f"{start}\n[... cut after {len(start):,} {'character' if len(start) == 1 else 'characters'} ...]"

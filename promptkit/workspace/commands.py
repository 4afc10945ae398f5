"""Commands: programs that a prompt runs in the workspace, and whose output it sends."""

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
from promptkit.language.cancellation import is_cancelled
from promptkit.workspace.execution import Outcome, execute
from promptkit.workspace.paths import workspace

#: What a command is made of.
Word: TypeAlias = str | os.PathLike[str] | None

#: No character of UTF-8 has more bytes, so with one more than this many for each, there are too many.
_CHARACTER_BYTES: Final = 4


def run(*command: Word, limit: int = 20_000, timeout: float = 10.0, check: bool = True) -> str:
    """
    Run a command in the workspace, and return what it prints.

    No shell reads it: each argument is one word, whatever it holds. It gets no input and no terminal. What
    it has started itself is ended with it: at the limit, when its time is over, when the request is
    cancelled, and when it is done. An ``async def`` prompt awaits `run_async` in its place.

    Args:
        *command:
            The program and its words, as text or paths. None is left out.

        limit:
            How many characters to return at most, 1 or more. If there are more, the command is ended, and
            a line such as ``[... cut after 19,968 characters ...]`` takes the place of the rest.

        timeout:
            How long it may take, in seconds.

        check:
            Whether an exit code other than 0 is an error.

    Returns:
        Its standard output, without line ends behind it. Bytes that are no UTF-8 are replaced.

    Raises:
        PromptError: If there is no workspace, if the command cannot be run, takes too long, or fails. It
            says so with the command, and with the first line of its standard error.

        TypeError: If there is no program, or a word is neither text nor a path.

        ValueError: If *limit* or *timeout* is not positive.
    """
    return _run(command, limit, timeout, check, is_cancelled)


async def run_async(
    *command: Word,
    limit: int = 20_000,
    timeout: float = 10.0,  # noqa: ASYNC109 (as `run` has it: the command is told to end)
    check: bool = True,
) -> str:
    """
    Run a command in the workspace while other prompts go on, and return what it prints.

    Args:
        *command:
            As for `run`.

        limit:
            As for `run`.

        timeout:
            As for `run`.

        check:
            As for `run`.

    Returns:
        What `run` returns.

    Raises:
        PromptError: As `run` does.

        TypeError: As `run` does.

        ValueError: As `run` does.
    """
    import asyncio  # most prompts do not need it

    unwanted = Event()
    try:
        return await asyncio.to_thread(_run, command, limit, timeout, check, unwanted.is_set)
    finally:  # also if this is cancelled
        unwanted.set()


def _run(
    command: Iterable[Word],
    limit: int,
    timeout: float,
    check: bool,  # noqa: FBT001 (it is passed on)
    is_unwanted: Callable[[], bool],
) -> str:
    words = _words(command)
    if index(limit) < 1 or not timeout > 0:
        msg = f"run(limit={limit!r}, timeout={timeout!r}): both have to be above 0"
        raise ValueError(msg)
    shown = shortened(command_line(words))
    most = _CHARACTER_BYTES * limit
    try:
        outcome = execute(words, workspace(), limit=most, timeout=timeout, is_unwanted=is_unwanted)
    except FileNotFoundError:
        msg = f"cannot run {shown}: there is no program {shortened(words[0])!r} where the server runs"
        raise PromptError(msg) from None
    except OSError as error:
        msg = f"cannot run {shown}: {error.strerror}"
        raise PromptError(msg) from None
    if (fault := _fault(outcome, timeout, check=check)) is not None:
        msg = f"{shown} {fault}{_said(outcome)}"
        raise PromptError(msg)
    return _cut(outcome.output.decode(errors="replace").rstrip("\r\n"), limit)


def _words(command: Iterable[Word]) -> list[str]:
    """The words of a command as text. Raises TypeError if one is neither text nor a path."""
    words: list[str] = []
    for position, word in enumerate(command, 1):
        if word is None:
            continue
        text = os.fspath(word) if isinstance(word, str | os.PathLike) else None
        if not isinstance(text, str):
            kind = type(word).__name__
            msg = f"run(...): word {position}: expected text or a path, not {kind}; make it a str first"
            raise TypeError(msg)
        words.append(_passed(text))
    if not words:
        msg = "run(...) names no program: write its words one by one, as in run('git', 'status')"
        raise TypeError(msg)
    return words


def _passed(word: str) -> str:
    """A word that a program can be given. Raises PromptError for others: callers may send anything."""
    try:
        is_fine = b"\0" not in os.fsencode(word)
    except UnicodeEncodeError:
        is_fine = False
    if not is_fine:
        shown = escape_invisible(shortened(word), one_line=True)
        msg = f"no program can be given '{shown}': it has a null character, or half of a character"
        raise PromptError(msg)
    return word


def _fault(outcome: Outcome, timeout: float, *, check: bool) -> str | None:
    """What is wrong with the way in which a command has ended; None if nothing is."""
    if outcome.stopped == "timeout":
        return f"took longer than {timeout:g} s, and was ended"
    if not check or not outcome.code or outcome.stopped is not None:
        return None
    if outcome.code < 0:
        return f"was ended by a signal ({signal.strsignal(-outcome.code) or -outcome.code})"
    return f"ended with code {outcome.code}"


def _said(outcome: Outcome) -> str:
    """The first line that a command has written to standard error, behind a colon."""
    lines = map(str.strip, outcome.error.decode(errors="replace").splitlines())
    first = shortened(next(filter(None, lines), ""))
    return f": {escape_invisible(first, one_line=True)}" if first else ""


def _cut(text: str, limit: int) -> str:
    """At most *limit* characters of a text, and a line that says so if there are more."""
    if len(text) <= limit:
        return text
    kept, _, _ = truncate(text, limit).text.rpartition("\n")  # the last line counts what was never read
    return f"{kept}\n[... cut after {len(kept):,} {'character' if len(kept) == 1 else 'characters'} ...]"

"""
The command line: one module for each command, imported when it is called.

Exit codes are those of `Exit`, for every command.
"""

import _thread
import gc
import os
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import IntEnum
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Final

from promptkit.cli.options import parse

if TYPE_CHECKING:
    from promptkit.cli.output import Output

__all__ = ["Exit", "main"]

#: How long threads that recipes have left running are waited for at the end, in seconds.
_GRACE: Final = 1.0


class Exit(IntEnum):
    """
    What a command tells the shell.
    """

    FINE = 0
    FAULTY = 1
    USAGE = 2
    INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """
    Run one command.

    Args:
        argv:
            What stands after the program's name; that of the process if left out. Then the
            process has nothing else to do: its standard output is not given back.

    Returns:
        The exit code, one of `Exit`.

    Raises:
        SystemExit: If *argv* asks for help, or cannot be understood.
    """
    if argv is not None:
        return _run(argv, restore=True)
    try:
        code = _run(sys.argv[1:], restore=False)
    except SystemExit as end:
        raise SystemExit(_printed(int(end.code or 0))) from None
    code = _printed(code)
    _end_within(_GRACE, code)
    return code


def _run(argv: Sequence[str], *, restore: bool) -> int:
    """
    Run the command that *argv* names, and say what keeps it from its work.
    """
    try:
        options = parse(argv)
        run: Callable[..., int] = _import(f"promptkit.cli.{options.command}").run
        if options.command != "serve":  # which has a wire instead of an output
            run = partial(_with_output, run, restore=restore)
        return _with_target(run, options)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED


def _import(name: str) -> ModuleType:
    """
    Import a module as a whole. An interrupt waits for that: extensions may crash in the middle of it.
    """
    pressed: list[int] = []
    before = None
    with suppress(ValueError):  # this is not the main thread
        before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    gc.disable()  # nothing that imports make becomes garbage, and looking for it takes time
    try:
        return import_module(name)
    finally:
        gc.enable()
        if before is not None:
            signal.signal(signal.SIGINT, before)
        if pressed:
            raise KeyboardInterrupt


def _with_target(run: Callable[[Namespace], int], options: Namespace) -> int:
    from promptkit.errors.exceptions import LoadError

    try:
        return int(run(options))
    except (LoadError, OSError) as error:
        gone = _current_folder_is_gone()
        if not (gone or isinstance(error, LoadError)):
            raise
        from promptkit.cli.diagnostics import print_error

        reason = "the current folder is gone: change to one that exists"
        print_error(f"cannot load {options.target!r}: {reason}" if gone else str(error))
        return Exit.USAGE


def _current_folder_is_gone() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 (pathlib takes long to import)
    except OSError:
        return True
    return False


def _with_output(run: "Callable[[Namespace, Output], int]", options: Namespace, *, restore: bool) -> int:
    from promptkit.cli.output import OutputError, own_output

    try:
        with own_output(restore=restore) as output:
            return run(options, output)
    except OutputError as error:
        if not error.unread:  # else `promptkit list | head` has seen enough
            _say_unwritable(error.reason)
        return Exit.FAULTY


def _printed(code: int) -> int:
    """
    Return *code* unless what was printed cannot be written, which the interpreter would find out.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name, None)
        try:
            if stream is not None:
                stream.flush()
        except Exception as error:  # noqa: BLE001 (an author may have replaced it)
            setattr(sys, name, None)
            if name == "stdout" and isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
                _say_unwritable(error.strerror)
                code = code or Exit.FAULTY
    return code


def _say_unwritable(reason: str | None) -> None:
    from promptkit.errors.standard_error import say

    say(f"cannot write to standard output: {reason}")


def _end_within(seconds: float, code: int) -> None:
    """
    See to it that the process ends, whatever threads recipes have left running.

    Daemons, too, may be waited for: the interpreter does so for those of an executor.
    """
    threading = sys.modules.get("threading")
    if threading is None or threading.active_count() == 1:
        return

    def end() -> None:
        time.sleep(seconds)
        os._exit(code)

    # A `Thread` waits for its start, which an interrupt may leave in disorder.
    _thread.start_new_thread(end, ())

"""The ``promptkit`` command line. Each command is a module, imported only when the command runs."""

import atexit
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final, NoReturn

from promptkit.errors.distribution import install_command, other_package_hint
from promptkit.errors.exceptions import ConfigurationError, LoadError
from promptkit.standard_error import say

if TYPE_CHECKING:
    from argparse import Namespace

    from promptkit.cli.output import Output

__all__ = ["Exit", "main"]

#: The module of each command that does not have the same name as its module.
_MODULES: Final = {"import": "import_commands", "uninstall": "install"}

#: The extra that each of these commands needs.
_EXTRAS: Final = {"dev": "preview", "package": "package"}


class Exit:
    """The exit codes of all commands."""

    OK: Final = 0
    FAILED: Final = 1
    USAGE: Final = 2
    INTERRUPTED: Final = 130


def main(argv: Sequence[str] | None = None) -> int:
    """
    Run one command.

    Args:
        argv:
            The command-line arguments, without the program's name. By default, use the process's own
            arguments, and exit the process.

    Returns:
        The exit code, one of `Exit`.

    Raises:
        SystemExit: If *argv* requests help, or is invalid.
    """
    if argv is not None:
        return _run(argv, restore=True)
    if "_ARGCOMPLETE" in os.environ:  # the shell requests completions
        _complete_and_exit()
    try:
        code = _run(sys.argv[1:], restore=False)
    except SystemExit as error:
        code = int(error.code or 0)
    return _flush_and_exit(code)


def _run(argv: Sequence[str], *, restore: bool) -> int:
    try:
        gc.disable()  # imports create no garbage, and modules stay loaded
        try:
            with _defer_interrupts():
                options = import_module("promptkit.cli.options").parse(argv)
                is_agent_server = options.command == "dev" and options.mcp
                speaks_mcp = options.command == "serve" or is_agent_server
                if not speaks_mcp:  # a server checks its descriptors itself
                    _open_standard_descriptors()
                module = "dev_tools" if is_agent_server else _MODULES.get(options.command, options.command)
                run: Callable[..., int] = import_module(f"promptkit.cli.{module}").run
        finally:
            if not restore:
                gc.freeze()
            gc.enable()
        if not speaks_mcp:  # a server keeps standard output for the protocol
            run = partial(_run_with_output, run, restore=restore)
        return _run_with_configuration(run, options, argv)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except ImportError as error:
        name = (error.name or "").partition(".")[0]
        # Another package has installed files into this one.
        if name == "promptkit" and (reason := other_package_hint()) is not None:
            say(reason)
            return Exit.USAGE
        if name != "promptkit" and argv[0] in _EXTRAS:
            say(f"{argv[0]} needs {name}: {install_command(_EXTRAS[argv[0]])}")
            return Exit.USAGE
        raise


def _open_standard_descriptors() -> None:
    """Open closed standard descriptors, so that files opened later do not get their numbers."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # Standard output is opened for reading, so that writing to it still fails and is reported.
            null = os.open(os.devnull, os.O_WRONLY if descriptor == 2 else os.O_RDONLY)
            os.set_inheritable(null, True)  # noqa: FBT003 (no keyword is accepted)


def _complete_and_exit() -> NoReturn:
    with suppress(ModuleNotFoundError):  # argcomplete is an extra; nothing can be printed during completion
        from promptkit.cli.shell_completion import complete_and_exit

        complete_and_exit()
    raise SystemExit(Exit.FAILED)


@contextmanager
def _defer_interrupts() -> Iterator[None]:
    """Defer Ctrl-C while modules are imported, because half-imported extensions can crash."""
    if sys.platform == "win32":
        yield
        return
    previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)


def _run_with_configuration(
    run: "Callable[[Namespace], int]", options: "Namespace", argv: Sequence[str]
) -> int:
    try:
        # `serve` needs no configuration if the command line has a target; `new` and `import` never need it.
        if options.command not in ("import", "new") and (
            options.command != "serve" or not options.has_targets
        ):
            options = import_module("promptkit.cli.options").configure(options, argv)
        return int(run(options))
    except (LoadError, ConfigurationError) as error:
        reason = str(error)
        if isinstance(error, LoadError) and options.target_note:
            reason += f" ({options.target_note})"
        from promptkit.cli.diagnostics import print_error

        print_error(reason)
        return Exit.USAGE


def _run_with_output(
    run: "Callable[[Namespace, Output], int]", options: "Namespace", *, restore: bool
) -> int:
    from promptkit.cli.output import OutputError, capture_output

    try:
        with capture_output(restore=restore) as output:
            return run(options, output)
    except OutputError as error:
        if not isinstance(error.__cause__, BrokenPipeError):  # as in `promptkit list | head`
            say(f"cannot write to standard output: {error}")
        return Exit.FAILED


def _flush_and_exit(code: int) -> NoReturn:
    """Flush the streams and exit the process, even if recipes left threads running."""
    for name in ("stdout", "stderr"):
        try:
            getattr(sys, name).flush()
        except Exception as error:  # noqa: BLE001 (a recipe can replace the stream)
            setattr(sys, name, None)  # the interpreter would flush the stream again
            if name == "stdout" and isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
                say(f"cannot write to standard output: {error.strerror}")
                code = code or Exit.FAILED
    if threading.active_count() == 1:
        raise SystemExit(code)  # also flushes the buffers of C libraries
    atexit._run_exitfuncs()  # noqa: SLF001 (there is no public way to run them without waiting for threads)
    os._exit(code)

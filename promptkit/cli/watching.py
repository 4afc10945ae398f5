"""Showing something again whenever a recipe, or a file beside it, changes."""

from collections.abc import Callable, Collection
from functools import partial
from queue import Empty, SimpleQueue
from typing import Final

from promptkit.catalog.catalog import Catalog
from promptkit.cli import Exit
from promptkit.cli.loading import report_faults
from promptkit.cli.output import Output
from promptkit.compiler.reloading import Reloader
from promptkit.errors.diagnostics import Rule

__all__ = ["watch"]

#: Where Ctrl-C cannot interrupt a wait, it takes effect after so long, in seconds.
_LONGEST_WAIT_S: Final = 1.0

#: Moves to the corner of a terminal, and clears it.
_CLEAR: Final = "\x1b[H\x1b[2J"


def watch(target: str, show: Callable[[Catalog], int], output: Output, ignore: Collection[Rule] = ()) -> int:
    """
    Show what *target* has now, and again after each change, until Ctrl-C.

    Args:
        target:
            A folder, a file, a module or module:object.

        show:
            Prints something of a catalog. If it is wrong usage at once, and no fault may be why, nothing
            is watched.

        output:
            Where it prints; a terminal is cleared before.

        ignore:
            The rules that are not reported.

    Returns:
        The exit code of wrong usage.

    Raises:
        LoadError: If there is nothing at the target.

        OutputError: If standard output cannot be written to.

        KeyboardInterrupt: On Ctrl-C.
    """
    # Faults are printed here and not where they are found, so that clearing does not hide them.
    work: SimpleQueue[Callable[[], object]] = SimpleQueue()
    report = partial(report_faults, ignore=ignore)

    def show_again(catalog: Catalog) -> None:
        print(_CLEAR if output.isatty() else "", end="" if output.isatty() else "\n", file=output)
        show(catalog)

    reloader = Reloader(target, lambda catalog: work.put(partial(report, catalog)))
    catalog = reloader.load()
    report(catalog)
    if show(catalog) is Exit.USAGE and catalog.healthy:
        return Exit.USAGE
    output.send()
    reloader.start(lambda catalog: work.put(partial(show_again, catalog)))
    while True:
        try:
            work.get(timeout=_LONGEST_WAIT_S)()
        except Empty:
            continue
        output.send()

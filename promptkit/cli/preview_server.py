"""Serves the pages of ``promptkit dev``, and opens a browser."""

import os
import secrets
import signal
import sys
import webbrowser
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from html import escape
from threading import Thread
from typing import Final

from msgspec import Struct

from promptkit.catalog.catalog import Catalog
from promptkit.cli import Exit
from promptkit.cli.diagnostics import print_error
from promptkit.cli.differences.renderings import SinceCommit
from promptkit.cli.loading import report_faults
from promptkit.cli.output import Output
from promptkit.compiler.reloading import Reloader
from promptkit.files.scratch import scratch_file
from promptkit.lints.linter import Checks, lint_file
from promptkit.lints.prompts import with_lints
from promptkit.preview.access import TOKEN
from promptkit.preview.application import application
from promptkit.preview.live import Live
from promptkit.standard_error import say
from promptkit.transports.http.connection_limits import ConnectionLimits
from promptkit.transports.http.settings import ASGIApplication, Receive, Scope, Send
from promptkit.transports.http.sockets import Listener
from promptkit.transports.http.worker import HttpWorker

#: How long requests may take to end after Ctrl-C, in seconds.
_GRACE_S: Final = 1.0

#: More than any browser opens.
_LIMITS: Final = ConnectionLimits(connections=256)

#: Leads a browser to the first address, which tells no other page where it comes from.
_REDIRECT: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={address}">
<title>promptkit</title>
<a href="{address}">Open the preview</a>
"""


def serve(options: Namespace, listener: Listener, output: Output) -> int:
    """
    Print the address of the page, open it, and serve it until a signal.

    Args:
        options:
            The options of `dev`.

        listener:
            Where to serve it.

        output:
            Takes the address.

    Returns:
        The exit code.

    Raises:
        LoadError: If there is nothing at the target.

        OutputError: If standard output cannot be written to.

        KeyboardInterrupt: On Ctrl-C.
    """
    checks = Checks(options.configuration.clients, options.configuration.ignore)

    def report(faulty: Catalog) -> None:
        checked = _checked(checks, faulty)
        report_faults(checked)
        live.report(checked)

    reloader = Reloader(options.targets, report, lint=lint_file, cases=True)
    catalog = _checked(checks, reloader.load())
    report_faults(catalog)
    live = Live(catalog)
    token, (host, port) = secrets.token_urlsafe(24), listener.of(0).getsockname()
    hosts = [f"{name}:{port}" for name in (host, "localhost")]
    pages = application(
        live,
        options.targets,
        token,
        hosts,
        comparison=SinceCommit(options.targets),
        editor=options.editor,
    )
    address = f"http://{host}:{port}/?{TOKEN}={token}"

    def ready() -> None:
        reloader.start(lambda new: live.publish(_checked(checks, new)))
        if options.opens and _has_screen():
            _open(address, ends)
        print(address, file=output)
        output.send()

    with ExitStack() as ends:
        ends.callback(live.close)
        worker = HttpWorker(_Pages(pages, ends), [listener.of(0)], limits=_LIMITS, grace=_GRACE_S)
        worker.run(ready)
    if worker.signal == signal.SIGINT:
        raise KeyboardInterrupt
    return Exit.FAULTY if worker.cannot_accept else Exit.FINE


class _Pages(Struct):
    """The pages, as a worker serves them."""

    application: ASGIApplication
    ends: ExitStack
    draining: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.application(scope, receive, send)

    def close(self, grace: float) -> None:  # noqa: ARG002 (what is rendered does not hold up the end)
        # A signal may end the process as soon as the last request is answered.
        self.ends.close()


def _has_screen() -> bool:
    """Whether a browser would open in a window: one in this terminal would hide what is printed."""
    names = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    return sys.platform in ("win32", "darwin") or any(map(os.environ.get, names))


def _open(address: str, ends: ExitStack) -> None:
    """Open a file that leads to an address, and have it removed in the end."""
    try:
        url = ends.enter_context(redirect_file(address))
    except OSError as error:
        print_error(f"no browser is opened, as no temporary file can be written: {error}")
        return
    Thread(target=_open_browser, args=(url,), daemon=True).start()


def _open_browser(url: str) -> None:
    try:
        webbrowser.open(url)
    except (webbrowser.Error, OSError) as error:
        say(f"no browser can be opened: {error}")


@contextmanager
def redirect_file(address: str) -> Iterator[str]:
    """
    Yield the URL of a file that leads to *address*, and that only its owner can read.

    Everybody on a machine may see the arguments of programs, and a browser is given this URL as one.

    Raises:
        OSError: If there is no place for temporary files.
    """
    with scratch_file(_REDIRECT.format(address=escape(address)), "promptkit-", ".html") as file:
        yield file.as_uri()


def _checked(checks: Checks, catalog: Catalog) -> Catalog:
    """The catalog with all that is found in it, as `check` says it, and without what is ignored."""
    return catalog.with_diagnostics(checks.kept(checks.of_catalog(with_lints(catalog))))

"""``promptkit dev``: a local page that shows prompts while you edit them. It needs the extra ``preview``."""

import os
import secrets
import signal
import sys
import webbrowser
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from html import escape
from pathlib import Path
from threading import Thread
from typing import Final

from msgspec import Struct

from promptkit.catalog.catalog import Catalog
from promptkit.cli import Exit
from promptkit.cli.diagnostics import fail
from promptkit.cli.diff_changes import CommitComparison
from promptkit.cli.loading import open_named_server, report_catalog_errors
from promptkit.cli.output import Output
from promptkit.compiler.reloading import Reloader
from promptkit.files.folder import Folder
from promptkit.files.scratch import scratch_folder
from promptkit.lints.linter import Checks, lint_file
from promptkit.lints.prompts import with_lints
from promptkit.preview.access import TOKEN
from promptkit.preview.live import LiveCatalog
from promptkit.preview.routes import create_application
from promptkit.server.identity import find_server_info
from promptkit.transports.http.connection import ConnectionLimits
from promptkit.transports.http.settings import ASGIApplication, Receive, Scope, Send
from promptkit.transports.http.sockets import Listener, ListenError, listen_tcp
from promptkit.transports.http.worker import HttpWorker

#: The default port, so that the address of the page stays the same. If it is in use, a free port is chosen.
_PORT: Final = 8137

_HOST: Final = "127.0.0.1"

#: The time that running requests have to finish after Ctrl-C, in seconds.
_GRACE_S: Final = 1.0

#: More connections than any browser opens.
_LIMITS: Final = ConnectionLimits(connections=256)

#: A page that redirects a browser to the address, without a Referer header that would leak the token.
_REDIRECT: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={address}">
<title>promptkit</title>
<a href="{address}">Open the preview</a>
"""


def run(options: Namespace, output: Output) -> int:
    """
    Print the address of the page, open it in a browser, and serve it until a signal arrives.

    Raises:
        LoadError: If the recipes cannot be loaded.

        OutputError: If standard output cannot be written to.

        KeyboardInterrupt: On Ctrl-C.
    """
    try:
        listener = _listen(options.port)
    except ListenError as error:
        return fail(str(error), Exit.USAGE)
    with closing(listener):
        if options.servers:
            return _preview_server(options, listener, output)
        return _preview_recipes(options, listener, output)


def _listen(port: int | None) -> Listener:
    """Listen on *port*. By default, listen on `_PORT`, or on a free port if `_PORT` is in use."""
    try:
        return listen_tcp(_HOST, _PORT if port is None else port)[0]
    except ListenError:
        if port is not None:
            raise
        return listen_tcp(_HOST, 0)[0]


def _preview_recipes(options: Namespace, listener: Listener, output: Output) -> int:
    """Serve the pages, and reload the recipes when they change."""
    checks = Checks(options.configuration.clients, options.configuration.ignore)

    def report(invalid: Catalog) -> None:
        checked = _add_diagnostics(checks, invalid)
        report_catalog_errors(checked)
        live.report(checked)

    def start() -> None:
        reloader.start(lambda reloaded: live.publish(_add_diagnostics(checks, reloaded)))

    reloader = Reloader(options.targets, report, lint=lint_file, cases=True, elicit=options.elicit)
    catalog = _add_diagnostics(checks, reloader.load())
    report_catalog_errors(catalog)
    live = LiveCatalog(catalog, find_server_info(options.targets))
    return _serve_pages(options, listener, output, live, start)


def _preview_server(options: Namespace, listener: Listener, output: Output) -> int:
    """Serve pages about another MCP server. Its lists are only read once."""
    checks = Checks(options.configuration.clients, options.configuration.ignore)
    with open_named_server(options, lint=True) as server:
        diagnostics = checks.without_ignored(checks.lint_catalog(server.catalog))
        live = LiveCatalog(server.catalog.with_diagnostics(diagnostics))
        return _serve_pages(options, listener, output, live)


def _serve_pages(
    options: Namespace,
    listener: Listener,
    output: Output,
    live: LiveCatalog,
    start: Callable[[], object] = bool,
) -> int:
    token, (host, port) = secrets.token_urlsafe(24), listener.socket_for(0).getsockname()
    hosts = [f"{name}:{port}" for name in (host, "localhost")]
    pages = create_application(
        live,
        options.targets,
        token,
        hosts,
        comparison=None if options.servers else CommitComparison(options.targets),
        editor=options.editor,
    )
    address = f"http://{host}:{port}/?{TOKEN}={token}"

    def ready() -> None:
        start()
        if options.opens and _has_screen():
            _open_browser(address, cleanup)
        print(address, file=output)
        output.send()

    with ExitStack() as cleanup:
        cleanup.callback(live.close)
        worker = HttpWorker(_Pages(pages, cleanup), [listener.socket_for(0)], limits=_LIMITS, grace=_GRACE_S)
        worker.run(ready)
    if worker.signal == signal.SIGINT:
        raise KeyboardInterrupt
    return Exit.FAILED if worker.cannot_accept else Exit.OK


class _Pages(Struct):
    """The application that serves the pages, with the members that a worker expects."""

    application: ASGIApplication
    cleanup: ExitStack
    draining: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.application(scope, receive, send)

    def close(self, grace: float) -> None:  # noqa: ARG002 (running renderings do not delay the exit)
        # A signal can terminate the process as soon as the last response is sent.
        self.cleanup.close()


def _has_screen() -> bool:
    """Return whether a browser would open in its own window, rather than take over the terminal."""
    names = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    return sys.platform in ("win32", "darwin") or any(map(os.environ.get, names))


def _open_browser(address: str, cleanup: ExitStack) -> None:
    """Open a browser at a temporary file that redirects to *address*. *cleanup* removes the file."""
    url = cleanup.enter_context(redirect_file(address))
    Thread(target=webbrowser.open, args=(url,), daemon=True).start()


@contextmanager
def redirect_file(address: str) -> Iterator[str]:
    """
    Yield the URL of a file that redirects to *address*, and that only its owner can read.

    The browser is started with this URL instead of *address*, which contains the token, because all users of
    a machine can see the command lines of running programs.

    Raises:
        OSError: If no temporary file can be written.
    """
    with scratch_folder("promptkit-") as folder:
        html = _REDIRECT.format(address=escape(address))
        Folder(folder).write("preview.html", html.encode(), mode=0o600)
        yield Path(folder, "preview.html").as_uri()


def _add_diagnostics(checks: Checks, catalog: Catalog) -> Catalog:
    """Return the catalog with the diagnostics that `check` reports, except those of ignored rules."""
    return catalog.with_diagnostics(checks.without_ignored(checks.lint_catalog(with_lints(catalog))))

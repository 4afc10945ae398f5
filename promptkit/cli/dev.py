"""``promptkit dev``: a page on this machine that shows what prompts say, while one writes them."""

import secrets
from argparse import Namespace
from contextlib import ExitStack
from importlib import import_module
from threading import Thread
from typing import Final

from promptkit.catalog.catalog import Catalog
from promptkit.cli import Exit
from promptkit.cli.diagnostics import print_error
from promptkit.cli.loading import report_faults
from promptkit.cli.output import Output
from promptkit.compiler.checks import Checks, configured_checks
from promptkit.compiler.lints.prompts import with_lints
from promptkit.compiler.reloading import Reloader
from promptkit.errors.distribution import install_command
from promptkit.transports.http.listeners import CannotListen, Listener, listen_tcp

__all__ = ["run"]

#: The extra `preview`.
_EXTRA: Final = ("httptools", "jinja2", "markdown_it", "python_multipart", "starlette")

#: Where the page is unless one says otherwise, so that its address stays the same; another if it is taken.
_PORT: Final = 8137

_HOST: Final = "127.0.0.1"


def run(options: Namespace, output: Output) -> int:
    """
    Print the address of the page, open it, and serve it until Ctrl-C.

    Raises:
        LoadError: If there is nothing at the target.

        OutputError: If standard output cannot be written to.

        KeyboardInterrupt: On Ctrl-C.
    """
    try:
        for name in _EXTRA:
            import_module(name)
    except ModuleNotFoundError as error:
        print_error(f"dev needs {error.name}: {install_command('preview')}")
        return Exit.USAGE
    try:
        listener = _listen(options.port)
    except CannotListen as error:
        print_error(str(error))
        return Exit.USAGE
    try:
        return _serve(options, listener, output)
    finally:
        listener.close()


def _listen(port: int | None) -> Listener:
    """Listen at the port that is wanted, else at the usual one, else at any. Raises CannotListen."""
    if port is not None:
        return listen_tcp(_HOST, port)[0]
    try:
        return listen_tcp(_HOST, _PORT)[0]
    except CannotListen:
        return listen_tcp(_HOST, 0)[0]


def _serve(options: Namespace, listener: Listener, output: Output) -> int:
    from promptkit.preview.application import application
    from promptkit.preview.guard import TOKEN
    from promptkit.preview.live import Live
    from promptkit.preview.opening import has_screen
    from promptkit.preview.serving import serve

    checks = configured_checks(options.configuration)

    def report(faulty: Catalog) -> None:
        checked = _checked(checks, faulty)
        report_faults(checked)
        live.report(checked)

    reloader = Reloader(options.target, report, lint=True)
    catalog = _checked(checks, reloader.load())
    report_faults(catalog)
    live = Live(catalog)
    token, (host, port) = secrets.token_urlsafe(24), listener.of(0).getsockname()
    pages = application(live, options.target, token, [f"{name}:{port}" for name in (host, "localhost")])
    address = f"http://{host}:{port}/?{TOKEN}={token}"

    def ready() -> None:
        reloader.start(lambda new: live.publish(_checked(checks, new)))
        if options.opens and has_screen():
            _open(address, ends)
        print(address, file=output)
        output.send()

    with ExitStack() as ends:
        ends.callback(live.close)
        # Before the process ends: a signal may end it as soon as the last request is answered.
        was_told = serve(pages, listener.of(0), ready=ready, close=ends.close)
    return Exit.FINE if was_told else Exit.FAULTY


def _open(address: str, ends: ExitStack) -> None:
    """Open a file that leads to an address, and have it removed in the end."""
    from promptkit.preview.opening import open_browser, redirect_file

    try:
        url = ends.enter_context(redirect_file(address))
    except OSError as error:
        print_error(f"no browser is opened, as no temporary file can be written: {error}")
        return
    Thread(target=open_browser, args=(url,), daemon=True).start()


def _checked(checks: Checks, catalog: Catalog) -> Catalog:
    """The catalog with all that is found in it, as `check` says it, and without what is ignored."""
    return catalog.with_diagnostics(checks.kept(checks.of_catalog(with_lints(catalog))))

"""``promptkit dev``: a local page that shows prompts while you edit them."""

from argparse import Namespace
from contextlib import closing
from importlib import import_module
from typing import Final

from promptkit.cli import Exit
from promptkit.cli.diagnostics import fail
from promptkit.cli.output import Output
from promptkit.errors.distribution import install_command
from promptkit.transports.http.sockets import Listener, ListenError, listen_tcp

#: The modules that the extra `preview` installs.
_EXTRA: Final = (
    *("httptools", "jinja2", "markdown_it", "pygments", "python_multipart", "starlette", "time_machine"),
)

#: The default port of the page, so that its address stays the same. If it is in use, a free one is chosen.
_PORT: Final = 8137

_HOST: Final = "127.0.0.1"


def run(options: Namespace, output: Output) -> int:
    """
    Print the address of the page, open it, and serve it until Ctrl-C.

    Raises:
        LoadError: If the recipes cannot be loaded.

        OutputError: If standard output cannot be written to.

        KeyboardInterrupt: On Ctrl-C.
    """
    try:
        for name in _EXTRA:
            import_module(name)
    except ModuleNotFoundError as error:
        return fail(f"dev needs {error.name}: {install_command('preview')}", Exit.USAGE)
    try:
        listener = _listen(options.port)
    except ListenError as error:
        return fail(str(error), Exit.USAGE)
    with closing(listener):
        from promptkit.cli import preview_server  # it needs the extra

        return preview_server.serve(options, listener, output)


def _listen(port: int | None) -> Listener:
    """Listen on *port*; by default on `_PORT`, or on a free port if that is in use."""
    try:
        return listen_tcp(_HOST, _PORT if port is None else port)[0]
    except ListenError:
        if port is not None:
            raise
        return listen_tcp(_HOST, 0)[0]

"""What counts the requests of a server over HTTP, and tells others. It is made before the server forks."""

from argparse import Namespace
from typing import TYPE_CHECKING

from promptkit.errors.distribution import install_command
from promptkit.standard_error import say

if TYPE_CHECKING:
    from promptkit.server.metrics import Metrics
    from promptkit.server.telemetry import Telemetry

__all__ = ["metrics_of", "telemetry_of"]


def metrics_of(options: Namespace) -> "Metrics | None":
    """
    Return what counts for Prometheus, before recipes may do so.

    Raises:
        ValueError: If there is no folder for its files.
    """
    if not options.metrics:
        return None
    from promptkit.server.metrics import Metrics  # it needs the extra

    try:
        return Metrics(options.workers)
    except OSError as error:
        msg = f"--metrics needs a folder for its files, which TMPDIR may name: {error.strerror or error}"
        raise ValueError(msg) from None


def telemetry_of(options: Namespace) -> "Telemetry | None":
    """
    Return what tells OpenTelemetry of requests.

    Raises:
        ValueError: If its API is not installed.
    """
    if not options.otel:
        return None
    try:
        from promptkit.server.telemetry import TCP, Telemetry, is_recorded
    except ModuleNotFoundError as error:
        msg = f"--otel needs {error.name}: {install_command('otel')}"
        raise ValueError(msg) from None
    if not is_recorded():
        say("--otel tells nobody: set up an SDK, as opentelemetry-instrument does before it starts promptkit")
    return Telemetry(TCP)

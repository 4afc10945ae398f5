"""``promptkit complete``: show what a client would be offered while somebody types an argument."""

from argparse import Namespace
from functools import partial

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.completion import Completion
from promptkit.cli import Exit
from promptkit.cli.deadline import call_within_limit, time_limit
from promptkit.cli.diagnostics import print_error, print_text, report_diagnostics
from promptkit.cli.loading import load_catalog
from promptkit.cli.output import Output
from promptkit.cli.words import is_uri
from promptkit.errors.diagnostics import Diagnostic, Severity
from promptkit.errors.exceptions import (
    ArgumentErrors,
    PromptError,
    ResultError,
    UnknownPrompt,
    UnknownResource,
)
from promptkit.errors.tracebacks import format_exception

__all__ = ["run"]


def run(options: Namespace, output: Output) -> int:
    """
    Print the values that are offered, best first, one on a line; or the JSON that a client receives.

    Raises:
        LoadError: If there is nothing at the target.
    """
    catalog = load_catalog(options.target, options.ignore)
    complete = catalog.complete_resource if is_uri(options.name) else catalog.complete
    outcome = call_within_limit(partial(complete, options.name, options.argument, options.typed))
    if not isinstance(outcome, Completion):
        return _report(options, catalog, outcome)
    if options.json:
        output.print_json(_result(outcome))
    else:
        for value in outcome.values:
            output.print_content(value)
    return Exit.FINE


def _report(options: Namespace, catalog: Catalog, error: BaseException | None) -> Exit:
    """Print why nothing can be offered: there is no such argument, or the author's function failed."""
    if isinstance(error, UnknownPrompt | UnknownResource | ArgumentErrors):
        report_diagnostics(filter(_is_error, catalog.diagnostics))  # it may be what is not served
        print_error(str(error))
        return Exit.USAGE
    if error is None:
        print_error(f"completing {options.argument!r} took longer than {time_limit():g} s")
    elif isinstance(error, PromptError | ResultError):
        print_error(str(error))
    else:
        print_text(format_exception(error))
    return Exit.FAULTY


def _is_error(diagnostic: Diagnostic) -> bool:
    return diagnostic.severity is Severity.ERROR


def _result(completion: Completion) -> object:
    """The result for a client of the newest revision with a handshake."""
    import msgspec

    from promptkit.protocol.lowering import lowering_for
    from promptkit.protocol.revisions import LATEST_HANDSHAKE

    return msgspec.json.decode(lowering_for(LATEST_HANDSHAKE).completion(completion))

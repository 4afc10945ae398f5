"""``promptkit complete``: show what a client would be offered while somebody types an argument."""

from argparse import Namespace
from functools import partial

from promptkit.catalog.arguments import Arguments
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.completion import Completion
from promptkit.catalog.redaction import Redactor
from promptkit.cli import Exit
from promptkit.cli.calls import call_within_limit, report_failure
from promptkit.cli.diagnostics import fail, report_diagnostics
from promptkit.cli.key_values import (
    ArgumentSyntaxError,
    current_folder,
    read_arguments,
    unread_secrets,
    with_known,
)
from promptkit.cli.loading import load_catalog
from promptkit.cli.not_found import told_unknown
from promptkit.cli.options import is_uri
from promptkit.cli.output import Output
from promptkit.cli.output_formats import LOWERING, as_json
from promptkit.errors.exceptions import ArgumentsError, UnknownPromptError, UnknownResourceError


def run(options: Namespace, output: Output) -> int:
    """
    Print the values that are offered, best first, one on a line; or the JSON that a client receives.

    The values of secret arguments are hidden in both, and in errors.

    Raises:
        LoadError: If there is nothing at the target.
    """
    folder = current_folder()  # a recipe may change it
    catalog = load_catalog(options.targets, options.ignore)
    try:
        arguments = _arguments(catalog, options.name)
    except (UnknownPromptError, UnknownResourceError) as error:
        report_diagnostics(catalog.errors)  # it may be what is not served
        return fail(told_unknown(error, options), Exit.USAGE)
    try:
        arguments.completer(options.argument)
        chosen = read_arguments(arguments, options.arguments, folder)
        typed = _typed(options, chosen)
        for name in chosen:
            arguments.completer(name)
    except (ArgumentSyntaxError, ArgumentsError) as error:
        told = with_known(error, arguments) if isinstance(error, ArgumentsError) else error
        return fail(unread_secrets(arguments, options.arguments).redacted(str(told)), Exit.USAGE)
    outcome = call_within_limit(partial(catalog.complete, options.name, options.argument, typed, chosen))
    redactor = Redactor.of(arguments, chosen)
    if not isinstance(outcome, Completion):
        return report_failure(f"completing {options.argument!r}", outcome, redactor)
    return _print(outcome, redactor, output, is_json=options.json)


def _arguments(catalog: Catalog, name: str) -> Arguments:
    """The arguments of a prompt, or the variables of a template. Raises if there is none of that name."""
    if is_uri(name):
        return catalog.template(name).arguments
    uris = [resource.uri_template for resource in catalog.resources if resource.name == name]
    if uris and name not in catalog:
        raise UnknownPromptError(name, uris[0])  # people know it by the name that `list` shows
    return catalog[name].arguments


def _typed(options: Namespace, chosen: dict[str, str]) -> str:
    """What was typed so far: a word of its own, or the value of the argument among those that are chosen."""
    typed: str | None = options.typed
    if options.argument not in chosen:
        return typed or ""
    if typed is not None:
        msg = f"{options.argument!r} is given twice"
        raise ArgumentSyntaxError(msg)
    return chosen.pop(options.argument)


def _print(offered: Completion, redactor: Redactor, output: Output, *, is_json: bool) -> int:
    if not is_json:
        for value in offered.values:
            output.print_content(redactor.redacted(value))
        return Exit.FINE
    try:
        output.print_json(as_json(LOWERING.completion(offered), redactor))
    except ValueError as error:  # half of a surrogate pair, which UTF-8 cannot encode
        return fail(f"a value cannot be sent: {error}", Exit.FAULTY)
    return Exit.FINE

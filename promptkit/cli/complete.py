"""``promptkit complete``: show the completions that a client would receive for an argument."""

from argparse import Namespace
from functools import partial
from pathlib import Path

from promptkit.catalog.arguments import Arguments
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.completion import Completion
from promptkit.catalog.redaction import Redactor
from promptkit.cli import Exit
from promptkit.cli.calls import LOWERING, call_within_limit, decode_redacted, report_failure
from promptkit.cli.diagnostics import fail, report_diagnostics
from promptkit.cli.key_values import (
    ArgumentSyntaxError,
    add_known_arguments,
    read_arguments,
    redactor_for_words,
)
from promptkit.cli.loading import format_unknown, load_catalog
from promptkit.cli.options import is_uri
from promptkit.cli.output import Output
from promptkit.errors.exceptions import ArgumentsError, UnknownPromptError, UnknownResourceError


def run(options: Namespace, output: Output) -> int:
    """
    Print the completions, one per line and best first, or the JSON that a client receives.

    The values of secret arguments are hidden in the output and in errors.

    Raises:
        LoadError: If the recipes cannot be loaded.
    """
    folder = Path.cwd()  # before a recipe can change the current folder
    catalog = load_catalog(options.targets, options.ignore)
    try:
        arguments = _find_arguments(catalog, options.name)
    except (UnknownPromptError, UnknownResourceError) as error:
        report_diagnostics(catalog.errors)  # these errors can explain why the name is unknown
        return fail(format_unknown(error, options), Exit.USAGE)
    try:
        arguments.completer(options.argument)
        chosen = read_arguments(arguments, options.arguments, folder)
        for name in chosen:
            arguments.completer(name)
    except (ArgumentSyntaxError, ArgumentsError) as error:
        reported = add_known_arguments(error, arguments) if isinstance(error, ArgumentsError) else error
        return fail(redactor_for_words(arguments, options.arguments).redacted(str(reported)), Exit.USAGE)
    if options.argument in chosen:
        return fail(
            f"{options.argument!r} is the argument to complete: write its text without KEY=", Exit.USAGE
        )
    typed = options.typed or ""
    outcome = call_within_limit(partial(catalog.complete, options.name, options.argument, typed, chosen))
    redactor = Redactor.of(arguments, chosen)
    if not isinstance(outcome, Completion):
        return report_failure(f"completing {options.argument!r}", outcome, redactor)
    return _print(outcome, redactor, output, is_json=options.json)


def _find_arguments(catalog: Catalog, name: str) -> Arguments:
    """Return the arguments of a prompt, or the variables of a template."""
    if is_uri(name):
        return catalog.template(name).arguments
    uris = [resource.uri_template for resource in catalog.resources if resource.name == name]
    if uris and name not in catalog:
        raise UnknownPromptError(name, uris[0])  # `list` shows this name, so suggest the URI
    return catalog[name].arguments


def _print(completion: Completion, redactor: Redactor, output: Output, *, is_json: bool) -> int:
    if not is_json:
        for value in completion.values:
            output.print_content(redactor.redacted(value))
        return Exit.OK
    try:
        output.print_json(decode_redacted(LOWERING.completion(completion), redactor))
    except ValueError as error:  # half of a surrogate pair, which UTF-8 cannot encode
        return fail(f"a completion cannot be sent: {error}", Exit.FAILED)
    return Exit.OK

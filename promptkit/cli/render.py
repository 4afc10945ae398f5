"""``promptkit render``: render one prompt and show it."""

import os
from argparse import Namespace
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

from promptkit import compiler
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.cli import Exit
from promptkit.cli.arguments import ArgumentSyntaxError, read_arguments, unread_secrets
from promptkit.cli.deadline import render_within_limit, time_limit
from promptkit.cli.diagnostics import print_error, print_text, report_diagnostics
from promptkit.cli.loading import load_recipes
from promptkit.cli.output import Output
from promptkit.compiler.loading.loader import Recipes
from promptkit.errors.diagnostics import Diagnostic, Rule
from promptkit.errors.exceptions import (
    ArgumentErrors,
    LoadError,
    PromptError,
    ResultError,
    UnknownPrompt,
    nearest,
)
from promptkit.errors.tracebacks import format_exception
from promptkit.language.messages import Workflow

__all__ = ["run"]

#: Members of a result whose values are defined by the protocol, and hold no secrets.
_PROTOCOL_MEMBERS: Final = ("type", "role", "mimeType")


def run(options: Namespace, output: Output) -> int:
    """
    Print a prompt as a transcript, or as the JSON that a client receives.

    The values of secret arguments are hidden in both, and in errors.

    Raises:
        LoadError: If there is nothing at the target.
    """
    folder = _current_folder()  # a recipe may change it
    recipes = _load(options)
    catalog = compiler.compile(recipes)
    if options.name not in catalog:
        return _explain_absence(options, recipes, catalog.diagnostics)
    prompt = catalog[options.name]
    try:
        arguments = read_arguments(prompt, options.arguments, folder)
    except ArgumentSyntaxError as error:
        print_error(unread_secrets(prompt, options.arguments).redacted(str(error)))
        return Exit.USAGE
    return _render(prompt, arguments, output, as_json=options.json)


def _render(prompt: CompiledPrompt, arguments: Mapping[str, str], output: Output, *, as_json: bool) -> Exit:
    redactor = Redactor.of(prompt.arguments, arguments)
    outcome = render_within_limit(prompt, arguments)
    if not isinstance(outcome, Workflow):
        _report_failure(prompt, outcome, redactor)
        return Exit.FAULTY
    if not as_json:
        output.print_content(redactor.redacted(str(outcome)))
        return Exit.FINE
    try:
        output.print_json(_result(prompt, outcome, redactor))
    except ValueError as error:  # a lone surrogate, which UTF-8 cannot encode
        print_error(redactor.redacted(f"prompt {prompt.name!r} has text that cannot be sent: {error}"))
        return Exit.FAULTY
    return Exit.FINE


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except OSError:  # it was deleted: only absolute paths can be read
        return Path()


def _load(options: Namespace) -> Recipes:
    """Load the recipes. If TARGET may be a mistyped argument, the error says so."""
    try:
        return load_recipes(options.target)
    except LoadError as error:
        if not options.has_target:
            raise
        reason = f"{error.reason} (the first of two words is TARGET; arguments are written KEY=VALUE)"
        raise LoadError(error.target, reason) from None


def _explain_absence(options: Namespace, recipes: Recipes, diagnostics: Collection[Diagnostic]) -> Exit:
    """Print why the prompt cannot be rendered: its faults, or that it does not exist."""
    faults = _faults_of(options.name, recipes, diagnostics)
    if faults:
        report_diagnostics(faults)
        print_error(f"prompt {options.name!r} cannot be rendered")
        return Exit.FAULTY
    if not options.has_target and os.path.exists(options.name):  # noqa: PTH110 (it may not be a path at all)
        options.refuse(f"name a prompt in it, as in: promptkit render {options.name} NAME")
    print_error(_unknown_prompt(options, recipes, diagnostics))
    return Exit.USAGE


def _unknown_prompt(options: Namespace, recipes: Recipes, diagnostics: Collection[Diagnostic]) -> str:
    names = [prompt.options.name for prompt in recipes.prompts]
    meant = nearest(options.name, names)
    message = str(UnknownPrompt(options.name, meant))
    broken = sum(diagnostic.rule is Rule.IMPORT_FAILED for diagnostic in diagnostics)
    if broken:
        which = "a recipe" if broken == 1 else f"{broken} recipes"
        return f"{message} ({which} cannot be imported: see promptkit check)"
    if not names:
        return f"{message}: there is no prompt in {options.target!r}"
    if meant is None:
        target = f" {options.target}" if options.has_target else ""
        return f"{message}: promptkit list{target} shows those that exist"
    return message


def _faults_of(name: str, recipes: Recipes, diagnostics: Collection[Diagnostic]) -> list[Diagnostic]:
    """The faults of the prompt called *name*, or of a file that seems to define it."""
    prompts = [prompt for prompt in recipes.prompts if prompt.options.name == name]
    own = {diagnostic for prompt in prompts for diagnostic in prompt.compile()[1]}
    places = {prompt.location for prompt in prompts}
    return [
        diagnostic
        for diagnostic in diagnostics
        if diagnostic in own
        or (diagnostic.rule is Rule.DUPLICATE_NAME and diagnostic.location in places)
        or (not prompts and diagnostic.rule is Rule.IMPORT_FAILED and _mentions(diagnostic, name))
    ]


def _mentions(diagnostic: Diagnostic, name: str) -> bool:
    """Whether a file that cannot be imported seems to define the prompt called *name*."""
    import re

    file = Path(diagnostic.location.file)
    word = re.escape(name)
    try:
        source = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    defined = rf"""^\s*(?:async\s+)?def\s+{word}\b|\bname\s*=\s*["']{word}["']"""
    return file.stem == name or re.search(defined, source, re.MULTILINE) is not None


def _report_failure(prompt: CompiledPrompt, error: BaseException | None, redactor: Redactor) -> None:
    if error is None:
        print_error(f"prompt {prompt.name!r} took longer than its limit of {time_limit(prompt):g} s")
    elif isinstance(error, ArgumentErrors | PromptError | ResultError):
        print_error(redactor.redacted(str(error)))
    else:
        print_text(redactor.redacted(format_exception(error)))


def _result(prompt: CompiledPrompt, workflow: Workflow, redactor: Redactor) -> Any:
    """The result that a client of the latest handshake revision receives, without secrets."""
    import msgspec

    from promptkit.protocol.lowering import lowering_for
    from promptkit.protocol.revisions import LATEST_HANDSHAKE

    result = msgspec.json.decode(lowering_for(LATEST_HANDSHAKE).result(prompt, workflow))
    return _redacted(result, redactor)


def _redacted(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, dict):
        return {
            key: item if key in _PROTOCOL_MEMBERS else _redacted(item, redactor)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_redacted(item, redactor) for item in value]
    return redactor.redacted(value) if isinstance(value, str) else value

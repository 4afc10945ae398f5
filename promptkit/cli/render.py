"""``promptkit render``: render one prompt and show it."""

import os
from argparse import Namespace
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from promptkit import compiler
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.cli import Exit
from promptkit.cli.arguments import ArgumentSyntaxError, read_arguments, unread_secrets
from promptkit.cli.deadline import render_within_limit, time_limit
from promptkit.cli.diagnostics import complain_of, print_error, print_text
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

#: The members of a result whose values are the protocol's words.
_KINDS: Final = ("type", "role", "mimeType")


def run(options: Namespace, output: Output) -> int:
    """
    Print a prompt as a transcript, or as the JSON that a client receives.

    Neither holds the value of an argument that is a secret, and no error does.

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
    hidden = Redactor.of(prompt.arguments, arguments)
    outcome = render_within_limit(prompt, arguments)
    if not isinstance(outcome, Workflow):
        _say_failed(prompt, outcome, hidden)
        return Exit.FAULTY
    if not options.json:
        output.print_content(hidden.redacted(str(outcome)))
        return Exit.FINE
    try:
        output.print_json(_result(prompt, outcome, hidden))
    except ValueError as error:  # half of a surrogate pair, which JSON has no bytes for
        print_error(hidden.redacted(f"prompt {prompt.name!r} says what cannot be sent: {error}"))
        return Exit.FAULTY
    return Exit.FINE


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except OSError:  # it is gone: absolute paths are all that can be read
        return Path()


def _load(options: Namespace) -> Recipes:
    """
    Return the recipes at the target; say, if there are none, how the words were understood.

    Raises:
        LoadError: If there are none.
    """
    try:
        return load_recipes(options.target)
    except LoadError as error:
        if not options.has_target:
            raise
        reason = f"{error.reason} (the first of two words is TARGET; arguments are written KEY=VALUE)"
        raise LoadError(error.target, reason) from None


def _explain_absence(options: Namespace, recipes: Recipes, diagnostics: Collection[Diagnostic]) -> Exit:
    """
    Say why no prompt of that name can be rendered: what is wrong with it, or that there is none.
    """
    faults = _faults_of(options.name, recipes, diagnostics)
    if faults:
        complain_of(faults)
        print_error(f"prompt {options.name!r} cannot be rendered")
        return Exit.FAULTY
    if not options.has_target and os.path.exists(options.name):  # noqa: PTH110 (it may be no path at all)
        options.refuse(f"name a prompt of it, as in: promptkit render {options.name} NAME")
    names = [prompt.options.name for prompt in recipes.prompts]
    meant = nearest(options.name, names)
    message = str(UnknownPrompt(options.name, meant))
    broken = sum(diagnostic.rule is Rule.IMPORT_FAILED for diagnostic in diagnostics)
    if broken:
        which = "a recipe" if broken == 1 else f"{broken} recipes"
        message += f" ({which} cannot be imported: see promptkit check)"
    elif not names:
        message += f": there is no prompt in {options.target!r}"
    elif meant is None:
        target = f" {options.target}" if options.has_target else ""
        message += f": promptkit list{target} shows those that exist"
    print_error(message)
    return Exit.USAGE


def _faults_of(name: str, recipes: Recipes, diagnostics: Collection[Diagnostic]) -> list[Diagnostic]:
    """
    Return what is wrong with the prompt called *name*, or with the file that seems to define it.
    """
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
    """
    Return whether a file that cannot be imported looks as if it defined the prompt called *name*.
    """
    import re

    file = Path(diagnostic.location.file)
    word = re.escape(name)
    try:
        source = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    defined = rf"""^\s*(?:async\s+)?def\s+{word}\b|\bname\s*=\s*["']{word}["']"""
    return file.stem == name or re.search(defined, source, re.MULTILINE) is not None


def _say_failed(prompt: CompiledPrompt, error: BaseException | None, hidden: Redactor) -> None:
    """
    Say why there is nothing to show: in our words or the author's, or with a traceback.
    """
    if error is None:
        print_error(f"prompt {prompt.name!r} took longer than its {time_limit(prompt):g} s")
    elif isinstance(error, ArgumentErrors | PromptError | ResultError):
        print_error(hidden.redacted(str(error)))
    else:
        print_text(hidden.redacted(format_exception(error)))


def _result(prompt: CompiledPrompt, workflow: Workflow, hidden: Redactor) -> Any:
    """
    Return what the newest client of a handshake receives, but for what is hidden.
    """
    import msgspec

    from promptkit.protocol.lowering import lowering_for
    from promptkit.protocol.revisions import LATEST_HANDSHAKE

    return _without(hidden, msgspec.json.decode(lowering_for(LATEST_HANDSHAKE).result(prompt, workflow)))


def _without(hidden: Redactor, value: Any) -> Any:
    """
    Return decoded JSON without what is hidden. Keys, and what tells kinds apart, are no secrets.
    """
    if isinstance(value, dict):
        return {key: item if key in _KINDS else _without(hidden, item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without(hidden, item) for item in value]
    return hidden.redacted(value) if isinstance(value, str) else value

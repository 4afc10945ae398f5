"""Explanations for names that do not exist, and for prompts that cannot be rendered."""

import os
import re
from argparse import Namespace
from collections.abc import Collection
from pathlib import Path
from typing import Any

from promptkit.cli import Exit
from promptkit.cli.diagnostics import counted, fail, report_diagnostics
from promptkit.errors.diagnostics import Diagnostic
from promptkit.errors.exceptions import UnknownPromptError, UnknownResourceError
from promptkit.errors.rules import Rule
from promptkit.errors.sources import text_of
from promptkit.errors.suggestions import nearest
from promptkit.loader.recipes import Recipes
from promptkit.loader.targets import split_target


def explain_absence(options: Namespace, recipes: Recipes, diagnostics: Collection[Diagnostic]) -> int:
    """
    Print why a prompt or a skill cannot be rendered, and return the exit code.

    Args:
        options:
            The command, the name, and the targets.

        recipes:
            The recipes at the targets.

        diagnostics:
            Their diagnostics.
    """
    related = _related_diagnostics(options.name, recipes, diagnostics)
    if related:
        report_diagnostics(related)
        is_skill = any(skill.name == options.name for file in recipes.by_file for skill in file.skills)
        kind = "skill" if is_skill else "prompt"
        return fail(f"{kind} {options.name!r} cannot be rendered", Exit.FAULTY)
    path, _ = split_target(options.name)
    if not options.has_targets and os.path.exists(path):  # noqa: PTH110 (it can be any text)
        options.refuse(f"name a prompt in it, as in: promptkit {options.command} {options.name} NAME")
    return fail(_unknown_prompt(options, recipes, diagnostics), Exit.USAGE)


def format_unknown(error: UnknownPromptError | UnknownResourceError, options: Namespace) -> str:
    """Return the message of an error, with a pointer to `promptkit list` unless it has a hint."""
    if error.nearest is not None or getattr(error, "reason", None) is not None:
        return str(error)
    target = f" {' '.join(options.targets)}" if options.has_targets else ""
    return f"{error}: promptkit list{target} shows all names"


def _unknown_prompt(options: Namespace, recipes: Recipes, diagnostics: Collection[Diagnostic]) -> str:
    names = [prompt.options.name for prompt in recipes.prompts]
    names += [skill.name for file in recipes.by_file for skill in file.skills]
    uris = [resource.uri_template for resource in recipes.resources if resource.name == options.name]
    suggestion = uris[0] if uris else nearest(options.name, names)
    message = str(unknown := UnknownPromptError(options.name, suggestion))
    broken = sum(diagnostic.rule is Rule.IMPORT_FAILED for diagnostic in diagnostics)
    if broken:
        return f"{message} ({counted(broken, 'recipe')} cannot be imported: see promptkit check)"
    if not names and not uris:
        return f"{message}: there is no prompt in {' '.join(options.targets)!r}"
    return format_unknown(unknown, options)


def _related_diagnostics(
    name: str, recipes: Recipes, diagnostics: Collection[Diagnostic]
) -> list[Diagnostic]:
    """Return the diagnostics of the prompt or skill called *name*, or of a file that seems to define it."""
    prompts: list[Any] = [prompt for prompt in recipes.prompts if prompt.options.name == name]
    prompts += [skill for file in recipes.by_file for skill in file.skills if skill.name == name]
    own = {diagnostic for prompt in prompts for diagnostic in prompt.compile()[1]}
    locations = {prompt.location for prompt in prompts}
    return [
        diagnostic
        for diagnostic in diagnostics
        if diagnostic in own
        or (
            diagnostic.rule in (Rule.DUPLICATE_NAME, Rule.DUPLICATE_SKILL)
            and diagnostic.location in locations
        )
        or (not prompts and diagnostic.rule is Rule.IMPORT_FAILED and _mentions(diagnostic, name))
    ]


def _mentions(diagnostic: Diagnostic, name: str) -> bool:
    """Return whether a file that cannot be imported seems to define *name*."""
    source = text_of(diagnostic.location.file)
    word = re.escape(name)
    defined = rf"""^\s*(?:async\s+)?def\s+{word}\b|\bname\s*=\s*["']{word}["']"""
    return Path(diagnostic.location.file).stem == name or re.search(defined, source, re.MULTILINE) is not None

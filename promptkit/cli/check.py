"""``promptkit check``: report every problem in the recipes."""

import gc
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import NO_SAMPLE, CompiledPrompt
from promptkit.cli import Exit
from promptkit.cli.calls import NEEDS_EXAMPLES, render_examples
from promptkit.cli.diagnostics import (
    counted,
    fail,
    print_annotation,
    print_annotations,
    print_diagnostics,
)
from promptkit.cli.loading import load_catalog
from promptkit.cli.output import Output
from promptkit.cli.stability import unstable_skills
from promptkit.errors.diagnostics import Diagnostic, Severity
from promptkit.errors.distribution import other_package
from promptkit.lints.linter import Checks
from promptkit.transports.secret_files import InvalidSecretsError, TokenFile, read_key_file

if TYPE_CHECKING:
    from promptkit.cli.common_prefix import CommonPrefix


class CheckNotes(Struct):
    """
    What a check reports apart from diagnostics.

    Args:
        skipped:
            Why prompts and resources were not rendered, by their names.

        prefixes:
            The common prefix of each prompt's renderings; None without ``--cache``.

        refused:
            Why a server would reject the token file or the key file.
    """

    skipped: Mapping[str, str] = {}
    prefixes: "Mapping[str, CommonPrefix | str] | None" = None
    refused: Sequence[str] = ()


def run(options: Namespace, output: Output) -> int:
    """
    Print every diagnostic with its location and hint, as text, JSON or GitHub annotations.

    With ``--cache``, also print the common prefix of each prompt's renderings; with ``--token-file`` and
    ``--state-keys``, why a server would reject these files.

    Raises:
        LoadError: If the recipes cannot be loaded.
    """
    measure: Callable[[CompiledPrompt], CommonPrefix | str] | None = None
    if options.cache:
        try:
            from promptkit.cli.common_prefix import common_prefix as measure
        except ModuleNotFoundError as error:
            return fail(str(error), Exit.USAGE)
    notes = CheckNotes(refused=list(_secret_file_errors(options)))
    checks = Checks(tuple(options.client) or options.configuration.clients, options.configuration.ignore)
    catalog = _load_linted(options.targets)
    catalog = catalog.with_diagnostics(checks.without_ignored(_diagnose(options, catalog, checks, notes)))
    if measure is not None:
        notes.prefixes = {prompt.name: measure(prompt) for prompt in catalog.prompts}
    if options.format == "json":
        output.print_json(_data(options, catalog, notes))
    else:
        _print(options, catalog, _format_notes(notes), output)
    fails_on = Severity(options.fail_on or options.configuration.fail_on)
    is_fine = catalog.healthy if fails_on is Severity.ERROR else not catalog.diagnostics
    return Exit.FINE if is_fine and not notes.refused else Exit.FAULTY


def _diagnose(options: Namespace, catalog: Catalog, checks: Checks, notes: CheckNotes) -> list[Diagnostic]:
    """Return all diagnostics, and record in *notes* which items were not rendered."""
    diagnostics = [*checks.of_catalog(catalog)]
    if catalog.skills:
        diagnostics += unstable_skills(catalog, options.targets)
    if options.render:
        rendered, notes.skipped = render_examples(
            catalog, partial(checks.of_rendering, known=tuple(diagnostics))
        )
        diagnostics += rendered
    return diagnostics


def _load_linted(targets: Sequence[str]) -> Catalog:
    gc.disable()  # imports and syntax trees create no garbage, and collections take time
    try:
        return load_catalog(targets, lint=True)
    finally:
        gc.freeze()  # the catalog stays until the end, so the collector can ignore it
        gc.enable()


def _secret_file_errors(options: Namespace) -> Iterator[str]:
    """Yield why a server would reject the given token file and key file."""
    for file, read in ((options.token_file, TokenFile), (options.state_keys, read_key_file)):
        try:
            if file is not None:
                read(file)
        except InvalidSecretsError as error:
            yield str(error)


def _data(options: Namespace, catalog: Catalog, notes: CheckNotes) -> dict[str, Any]:
    data: dict[str, Any] = {
        "prompts": list(catalog),
        "resources": [resource.uri_template for resource in catalog.resources],
        "skills": [skill.uri_template for skill in catalog.skills],
        "diagnostics": [diagnostic.as_data() for diagnostic in catalog.diagnostics],
    }
    if options.render:
        data["not_rendered"] = notes.skipped
    if (prefixes := notes.prefixes) is not None:
        data["common_prefixes"] = {
            name: prefix if isinstance(prefix, str) else prefix.as_data() for name, prefix in prefixes.items()
        }
    if options.token_file is not None or options.state_keys is not None:
        data["refused"] = notes.refused
    return data


def _format_notes(notes: CheckNotes) -> Iterator[tuple[str, str]]:
    """Yield the notes as text, each with its level for GitHub."""
    if (other := other_package()) is not None:
        yield "warning", other
    if skipped := notes.skipped:
        phrases = {NEEDS_EXAMPLES: "because they need examples", NO_SAMPLE: f"because they have {NO_SAMPLE}"}
        for reason, phrase in phrases.items():
            if names := [name for name, skip_reason in skipped.items() if skip_reason == reason]:
                yield "notice", f"not rendered, {phrase}: {', '.join(names)}"
        for name, reason in skipped.items():
            if reason not in phrases:
                yield "notice", f"not rendered for its defaults: {name}: {reason}"
    for name, prefix in (notes.prefixes or {}).items():
        yield "notice", f"not measured: {name}: {prefix}" if isinstance(prefix, str) else f"{name}: {prefix}"
    yield from (("error", f"no server starts with {reason}") for reason in notes.refused)


def _print(
    options: Namespace, catalog: Catalog, formatted_notes: Iterable[tuple[str, str]], output: Output
) -> None:
    if options.format == "github":
        print_annotations(catalog.diagnostics, output)
        for level, text in formatted_notes:
            print_annotation(level, text, output)
    else:
        print_diagnostics(catalog.diagnostics, output)
        output.print_lines([_summary(catalog), *(text for _, text in formatted_notes)])


def _summary(catalog: Catalog) -> str:
    kinds = {"prompt": catalog.prompts, "resource": catalog.resources, "skill": catalog.skills}
    served = [counted(len(items), kind) for kind, items in kinds.items() if items] or ["0 prompts"]
    *first, last = served
    severities = Counter(diagnostic.severity for diagnostic in catalog.diagnostics)
    counts = [counted(severities[severity], severity.value) for severity in Severity if severities[severity]]
    all_served = f"{', '.join(first)} and {last}" if first else last
    return ", ".join([f"{all_served} can be served", *counts])

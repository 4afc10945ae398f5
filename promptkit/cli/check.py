"""``promptkit check``: report every fault in the recipes."""

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
from promptkit.transports.auth.token_file import TokenFile
from promptkit.transports.secret_files import InvalidSecretsError, read_key_file

if TYPE_CHECKING:
    from promptkit.cli.common_prefix import CommonPrefix


class Beside(Struct):
    """
    What is said beside the diagnostics.

    Args:
        skipped:
            Why prompts and resources were not rendered, by their names.

        prefixes:
            What the renderings of each prompt begin with; None if nothing asks for it.

        refused:
            Why a server does not take files of tokens or keys.
    """

    skipped: Mapping[str, str] = {}
    prefixes: "Mapping[str, CommonPrefix | str] | None" = None
    refused: Sequence[str] = ()


def run(options: Namespace, output: Output) -> int:
    """
    Print every fault with its place and its hint, as text, as JSON, or as GitHub's annotations.

    With ``--cache``, also print what all renderings of each prompt begin with; with ``--token-file`` and
    ``--state-keys``, why a server would not take these files.

    Raises:
        LoadError: If there is nothing at the target.
    """
    measure: Callable[[CompiledPrompt], CommonPrefix | str] | None = None
    if options.cache:
        try:
            from promptkit.cli.common_prefix import common_prefix as measure
        except ModuleNotFoundError as error:
            return fail(str(error), Exit.USAGE)
    beside = Beside(refused=list(_why_refused(options)))
    checks = Checks(tuple(options.client) or options.configuration.clients, options.configuration.ignore)
    catalog = _linted(options.targets)
    catalog = catalog.with_diagnostics(checks.without_ignored(_findings(options, catalog, checks, beside)))
    if measure is not None:
        beside.prefixes = {prompt.name: measure(prompt) for prompt in catalog.prompts}
    if options.format == "json":
        output.print_json(_data(options, catalog, beside))
    else:
        _print(options, catalog, _notes(beside), output)
    fails_on = Severity(options.fail_on or options.configuration.fail_on)
    is_fine = catalog.healthy if fails_on is Severity.ERROR else not catalog.diagnostics
    return Exit.FINE if is_fine and not beside.refused else Exit.FAULTY


def _findings(options: Namespace, catalog: Catalog, checks: Checks, beside: Beside) -> list[Diagnostic]:
    """All that is wrong; what else is found is put *beside* it."""
    found = [*checks.of_catalog(catalog)]
    if catalog.skills:
        found += unstable_skills(catalog, options.targets)
    if options.render:
        rendered, beside.skipped = render_examples(catalog, partial(checks.of_rendering, known=tuple(found)))
        found += rendered
    return found


def _linted(targets: Sequence[str]) -> Catalog:
    gc.disable()  # imports and syntax trees leave no garbage, and looking for it takes time
    try:
        return load_catalog(targets, lint=True)
    finally:
        gc.freeze()  # the catalog stays until the end, so the collector need not look at it either
        gc.enable()


def _why_refused(options: Namespace) -> Iterator[str]:
    """Why a server would not take the files of tokens and keys that are named."""
    if options.token_file is None and options.state_keys is None:
        return

    for file, read in ((options.token_file, TokenFile), (options.state_keys, read_key_file)):
        try:
            if file is not None:
                read(file)
        except InvalidSecretsError as error:
            yield str(error)


def _data(options: Namespace, catalog: Catalog, beside: Beside) -> dict[str, Any]:
    data: dict[str, Any] = {
        "prompts": list(catalog),
        "resources": [resource.uri_template for resource in catalog.resources],
        "skills": [skill.uri_template for skill in catalog.skills],
        "diagnostics": [diagnostic.as_data() for diagnostic in catalog.diagnostics],
    }
    if options.render:
        data["not_rendered"] = beside.skipped
    if (prefixes := beside.prefixes) is not None:
        data["common_prefixes"] = {
            name: found if isinstance(found, str) else found.as_data() for name, found in prefixes.items()
        }
    if options.token_file is not None or options.state_keys is not None:
        data["refused"] = beside.refused
    return data


def _notes(beside: Beside) -> Iterator[tuple[str, str]]:
    """What is said beside the diagnostics, each with how serious GitHub is to take it."""
    if (other := other_package()) is not None:
        yield "warning", other
    if skipped := beside.skipped:
        whys = {NEEDS_EXAMPLES: "as they need examples", NO_SAMPLE: f"as they have {NO_SAMPLE}"}
        for reason, why in whys.items():
            if names := [name for name, found in skipped.items() if found == reason]:
                yield "notice", f"not rendered, {why}: {', '.join(names)}"
        for name, reason in skipped.items():
            if reason not in whys:
                yield "notice", f"not rendered for its defaults: {name}: {reason}"
    for name, found in (beside.prefixes or {}).items():
        yield "notice", f"not measured: {name}: {found}" if isinstance(found, str) else f"{name}: {found}"
    yield from (("error", f"no server starts with {reason}") for reason in beside.refused)


def _print(options: Namespace, catalog: Catalog, notes: Iterable[tuple[str, str]], output: Output) -> None:
    if options.format == "github":
        print_annotations(catalog.diagnostics, output)
        for level, text in notes:
            print_annotation(level, text, output)
    else:
        print_diagnostics(catalog.diagnostics, output)
        output.print_lines([_summary(catalog), *(text for _, text in notes)])


def _summary(catalog: Catalog) -> str:
    kinds = {"prompt": catalog.prompts, "resource": catalog.resources, "skill": catalog.skills}
    served = [counted(len(found), kind) for kind, found in kinds.items() if found] or ["0 prompts"]
    *others, last = served
    severities = Counter(diagnostic.severity for diagnostic in catalog.diagnostics)
    found = [counted(severities[one], one.value) for one in Severity if severities[one]]
    all_served = f"{', '.join(others)} and {last}" if others else last
    return ", ".join([f"{all_served} can be served", *found])

"""``promptkit check``: report every problem in the recipes."""

import json
import os
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import NO_SAMPLE, CompiledPrompt
from promptkit.catalog.skills import SKILL_FILE
from promptkit.cli import Exit
from promptkit.cli.calls import NEEDS_EXAMPLES, Call, Item, owner_of, render_examples
from promptkit.cli.diagnostics import (
    format_count,
    print_annotation,
    print_annotations,
    print_diagnostics,
)
from promptkit.cli.loading import load_catalog, open_named_server, run_promptkit
from promptkit.cli.output import Output
from promptkit.errors.diagnostics import Diagnostic, Location, Owner, Severity
from promptkit.errors.distribution import other_package_hint
from promptkit.errors.rules import Rule
from promptkit.fragments.budget import estimate_tokens
from promptkit.language.files import FilledTextFile
from promptkit.language.messages import Workflow
from promptkit.lints.linter import Checks
from promptkit.lints.prompts import lint_instructions
from promptkit.lints.skills import LISTING_TOKENS, lint_listing
from promptkit.server.identity import find_project_file, find_server_info
from promptkit.transports.auth.token_file_verifier import TokenFile
from promptkit.transports.secret_files import InvalidSecretsError
from promptkit.transports.state_keys import read_key_file

#: The environment variables of two processes in which the order of sets and the current date differ. Their
#: time zones are 26 hours apart.
_ENVIRONMENTS: Final = ({"PYTHONHASHSEED": "1", "TZ": "EAST-14"}, {"PYTHONHASHSEED": "2", "TZ": "WEST+12"})

_SIZE_HINT: Final = "shorten it, or give its parts a budget with promptkit.fragments.fit(...)"

_UNSTABLE_HINT: Final = (
    "remove text that can differ each time, such as dates, random words and the order of sets: "
    "hosts ask users to approve a skill again after any change"
)


def run(options: Namespace, output: Output) -> int:
    """
    Print every diagnostic with its location and hint, as text, JSON or GitHub annotations.

    With ``--render`` or ``--max-tokens``, also print the diagnostics of renderings. With ``--token-file`` and
    ``--state-keys``, also print why a server would reject these files.

    Raises:
        LoadError: If the recipes cannot be loaded.
    """
    if options.servers:
        is_rendering = options.render or options.max_tokens is not None
        with open_named_server(options, lint=True, sample=is_rendering) as server:
            return _check(server.catalog, options, output, [tool.name for tool in server.listing.tools])
    return _check(load_catalog(options.targets, lint=True, elicit=options.elicit), options, output)


def _check(catalog: Catalog, options: Namespace, output: Output, tools: Sequence[str] | None = None) -> int:
    """
    Print the diagnostics of recipes or of an MCP server, and return the exit code.

    *tools* are the names of the server's tools; None for recipes.
    """
    secret_file_errors = list(_find_secret_file_errors(options))
    checks = Checks(tuple(options.client) or options.configuration.clients, options.configuration.ignore)
    diagnostics = [*checks.lint_catalog(catalog)]
    diagnostics += lint_listing(catalog, options.max_tokens or LISTING_TOKENS)
    notes: dict[str, Any] = {} if tools is None else {"tools": tools}
    if tools is None:
        diagnostics += _find_unstable_skills(catalog, options.targets)
        notes["not_described"] = [prompt.name for prompt in catalog.prompts if not prompt.description]
        if instructions := find_server_info(options.targets).instructions:
            file = find_project_file(options.targets[0]) or ""
            diagnostics += lint_instructions(instructions, Location(file))
    if options.render or options.max_tokens is not None:
        known = tuple(diagnostics)

        def check_rendering(
            prompt: CompiledPrompt, workflow: Workflow, texts: Sequence[FilledTextFile], call: Call
        ) -> Iterator[Diagnostic]:
            yield from checks.lint_rendering(prompt, workflow, texts, known)
            if options.max_tokens is not None:
                yield from _check_size(workflow, call, options.max_tokens)

        rendered, notes["not_rendered"] = render_examples(catalog, check_rendering)
        diagnostics += rendered
    catalog = catalog.with_diagnostics(checks.without_ignored(diagnostics))
    if options.token_file is not None or options.state_keys is not None:
        notes["refused"] = secret_file_errors
    if options.format == "json":
        output.print_json({**_catalog_data(catalog), **notes})
    else:
        if not catalog.healthy:  # errors are more important
            notes.pop("not_described", None)
        _print(catalog, notes, output, is_github=options.format == "github")
    fails_on = Severity(options.fail_on or options.configuration.fail_on)
    is_healthy = catalog.healthy if fails_on is Severity.ERROR else not catalog.diagnostics
    return Exit.OK if is_healthy and not secret_file_errors else Exit.FAILED


def _check_size(workflow: Workflow, call: Call, limit: int) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a rendering has more than *limit* tokens, which are estimated as in `dev`."""
    size = sum(estimate_tokens(text) for message in workflow.shown for text in message.content.texts)
    if size > limit:
        message = f"it has about {size:,} tokens for {call.label}, more than the limit of {limit:,}"
        location = "def" if call.case is None else call.case.location
        yield owner_of(call.item).diagnostic(Rule.TOO_MANY_TOKENS, message, _SIZE_HINT, location)


def _find_secret_file_errors(options: Namespace) -> Iterator[str]:
    """Yield the reasons why a server would reject the given token file or key file."""
    for file, read in ((options.token_file, TokenFile), (options.state_keys, read_key_file)):
        try:
            if file is not None:
                read(file)
        except InvalidSecretsError as error:
            yield str(error)


def _catalog_data(catalog: Catalog) -> dict[str, Any]:
    return {
        "prompts": list(catalog),
        "resources": [resource.uri_template for resource in catalog.resources],
        "skills": [skill.uri_template for skill in catalog.skills],
        "diagnostics": [diagnostic.as_data() for diagnostic in catalog.diagnostics],
    }


def _format_notes(notes: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each note as its level for GitHub and its text."""
    if (other := other_package_hint()) is not None:
        yield "warning", other
    if not_described := notes.get("not_described"):
        yield "notice", f"no docstring or description for clients to show: {', '.join(not_described)}"
    phrases = {NEEDS_EXAMPLES: "because they need examples", NO_SAMPLE: f"because they have {NO_SAMPLE}"}
    not_rendered = notes.get("not_rendered", {})
    for reason, phrase in phrases.items():
        if names := [name for name, skip_reason in not_rendered.items() if skip_reason == reason]:
            yield "notice", f"not rendered {phrase}: {', '.join(names)}"
    for name, reason in not_rendered.items():
        if reason not in phrases:
            yield "notice", f"not rendered with default or generated arguments: {name}: {reason}"
    yield from (("error", f"a server would not start: {reason}") for reason in notes.get("refused", ()))


def _print(catalog: Catalog, notes: Mapping[str, Any], output: Output, *, is_github: bool) -> None:
    if is_github:
        print_annotations(catalog.diagnostics, output)
        for level, text in _format_notes(notes):
            print_annotation(level, text, output)
    else:
        print_diagnostics(catalog.diagnostics, output)
        output.print_lines(
            [_format_summary(catalog, notes.get("tools")), *(text for _, text in _format_notes(notes))]
        )


#: The errors with which a prompt or a resource is still listed for clients, but fails when it is rendered.
_RENDERING_ERRORS: Final = (
    *(Rule.NO_MESSAGE, Rule.UNSENDABLE_VALUE, Rule.MISSING_TEXT, Rule.UNKNOWN_PLACEHOLDER),
    *(Rule.MISPLACED_MARK, Rule.EXAMPLE_FAILS, Rule.RESOURCE_FAILS),
)


def _exclude_failing(items: Iterable[Item], diagnostics: Iterable[Diagnostic]) -> list[Item]:
    """Return the items, except those with an error that makes their rendering fail."""
    failing = {diagnostic.owner for diagnostic in diagnostics if diagnostic.rule in _RENDERING_ERRORS}
    return [item for item in items if owner_of(item) not in failing]


def _format_summary(catalog: Catalog, tools: Sequence[str] | None) -> str:
    kinds: dict[str, Sequence[object]] = {
        "prompt": _exclude_failing(catalog.prompts, catalog.diagnostics),
        "resource": _exclude_failing(catalog.resources, catalog.diagnostics),
        "skill": catalog.skills,
        "tool": tools or (),
    }
    nothing = (
        "0 skills"
        if catalog.errors and all(error.rule.value.startswith("PK6") for error in catalog.errors)
        else "0 prompts"
    )
    served = [format_count(len(items), kind) for kind, items in kinds.items() if items] or [nothing]
    *first, last = served
    severities = Counter(diagnostic.severity for diagnostic in catalog.diagnostics)
    counts = [format_count(count, severity.value) for severity in Severity if (count := severities[severity])]
    all_served = f"{', '.join(first)} and {last}" if first else last
    return ", ".join([f"{all_served} {'can be served' if tools is None else 'checked'}", *counts])


def _find_unstable_skills(catalog: Catalog, targets: Sequence[str]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each file that differs between two processes, in skills written in Python."""
    skills = [skill for skill in catalog.skills if not skill.location.file.endswith(SKILL_FILE)]
    if not skills:
        return
    first, second = (_build_skill_digests(targets, {**os.environ, **start}) for start in _ENVIRONMENTS)
    for skill in skills:
        for file in skill.files:
            uri = skill.uri_of(file.path)
            # A skill that cannot be built again is missing from the digests.
            if uri not in first or first[uri] != second.get(uri):
                message = f"{file.path!r} differs between two starts of the server"
                owner = Owner(f"skill {skill.name!r}", skill.location)
                yield owner.diagnostic(Rule.UNSTABLE_SKILL, message, _UNSTABLE_HINT)


def _build_skill_digests(targets: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Build the skills in another process, and return the digests of their files by URI."""
    listed = run_promptkit("list", "--json", *targets, env=environment).stdout
    skills = json.loads(listed or "{}").get("skills", ())
    return {file["uri"]: file["digest"] for skill in skills for file in skill["resources"]}

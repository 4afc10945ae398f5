"""``promptkit check``: report every problem in the recipes."""

import json
import os
import subprocess
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from promptkit.catalog.cases import sendable
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import NO_SAMPLE, CompiledPrompt
from promptkit.catalog.skills import SKILL_FILE
from promptkit.cli import Exit
from promptkit.cli.calls import NEEDS_EXAMPLES, Call, Item, failure_reason, owner_of, render_examples
from promptkit.cli.diagnostics import (
    counted,
    fail,
    print_annotation,
    print_annotations,
    print_diagnostics,
)
from promptkit.cli.loading import load_catalog
from promptkit.cli.output import Output
from promptkit.cli.servers import open_named_server
from promptkit.errors.diagnostics import Diagnostic, Location, Owner, Severity
from promptkit.errors.distribution import install_command, other_package
from promptkit.errors.rules import Rule
from promptkit.fragments.budget import estimate_tokens
from promptkit.language.files import TextRead
from promptkit.language.messages import Workflow
from promptkit.lints.linter import Checks
from promptkit.lints.prompts import lint_instructions
from promptkit.lints.skills import LISTING_TOKENS, lint_listing
from promptkit.server.direct_calls import CallTimeoutError
from promptkit.server.identity import find_project_file, find_server_info
from promptkit.transports.auth.token_file import TokenFile
from promptkit.transports.secret_files import InvalidSecretsError, read_key_file

#: The lengths of the prefix and of the shortest rendering, and the number of different renderings; or the
#: reason why a prompt is not measured.
_Prefix: TypeAlias = dict[str, int] | str

#: How many arguments are generated for each prompt with ``--cache``.
_GENERATED: Final = 24

#: Environments in which the order of sets differs, and the date, because the time zones are 26 hours apart.
_STARTS: Final = ({"PYTHONHASHSEED": "1", "TZ": "EAST-14"}, {"PYTHONHASHSEED": "2", "TZ": "WEST+12"})

_SIZE_HINT: Final = "shorten it, or give its parts a budget with promptkit.fragments.fit(...)"

_UNSTABLE_HINT: Final = (
    "remove text that changes by itself, such as dates, random words and the order of sets: "
    "hosts ask users to approve a skill again after any change"
)


def run(options: Namespace, output: Output) -> int:
    """
    Print every diagnostic with its location and hint, as text, JSON or GitHub annotations.

    With ``--render`` or ``--max-tokens``, that includes the diagnostics of renderings. With ``--cache``, also
    print the common prefix of each prompt's renderings; with ``--token-file`` and ``--state-keys``, why a
    server would reject these files.

    Raises:
        LoadError: If the recipes cannot be loaded.
    """
    if options.cache and find_spec("hypothesis") is None:
        return fail(f"check --cache needs hypothesis: {install_command('testing')}", Exit.USAGE)
    if options.servers:
        is_rendering = options.render or options.max_tokens is not None or options.cache
        with open_named_server(options, lint=True, sample=is_rendering) as server:
            return _check(server.catalog, options, output, [tool.name for tool in server.listing.tools])
    return _check(load_catalog(options.targets, lint=True, elicit=options.elicit), options, output)


def _check(catalog: Catalog, options: Namespace, output: Output, tools: Sequence[str] | None = None) -> int:
    """Print the diagnostics of a catalog; with the names of its *tools*, of a server of another program."""
    secret_file_errors = list(_secret_file_errors(options))
    checks = Checks(tuple(options.client) or options.configuration.clients, options.configuration.ignore)
    diagnostics = [*checks.of_catalog(catalog)]
    diagnostics += lint_listing(catalog, options.max_tokens or LISTING_TOKENS)
    notes: dict[str, Any] = {} if tools is None else {"tools": tools}
    if tools is None:  # for a server, there are diagnostics
        diagnostics += _unstable_skills(catalog, options.targets)
        notes["not_described"] = [prompt.name for prompt in catalog.prompts if not prompt.description]
        if instructions := find_server_info(options.targets).instructions:
            file = find_project_file(options.targets[0]) or ""
            diagnostics += lint_instructions(instructions, Location(file))
    if options.render or options.max_tokens is not None:
        known = tuple(diagnostics)

        def check_rendering(
            prompt: CompiledPrompt, workflow: Workflow, texts: Sequence[TextRead], call: Call
        ) -> Iterator[Diagnostic]:
            yield from checks.of_rendering(prompt, workflow, texts, known)
            if options.max_tokens is not None:
                yield from _check_size(workflow, call, options.max_tokens)

        rendered, notes["not_rendered"] = render_examples(catalog, check_rendering)
        diagnostics += rendered
    catalog = catalog.with_diagnostics(checks.without_ignored(diagnostics))
    if options.cache:
        notes["common_prefixes"] = {prompt.name: _common_prefix(prompt) for prompt in catalog.prompts}
    if options.token_file is not None or options.state_keys is not None:
        notes["refused"] = secret_file_errors
    if options.format == "json":
        output.print_json({**_data(catalog), **notes})
    else:
        notes.pop("tools", None)
        if not catalog.healthy:  # errors are more important
            notes.pop("not_described", None)
        _print(catalog, _format_notes(**notes), output, tools, is_github=options.format == "github")
    fails_on = Severity(options.fail_on or options.configuration.fail_on)
    is_healthy = catalog.healthy if fails_on is Severity.ERROR else not catalog.diagnostics
    return Exit.OK if is_healthy and not secret_file_errors else Exit.FAILED


def _check_size(workflow: Workflow, call: Call, limit: int) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a rendering has more tokens than *limit*, as `dev` estimates them."""
    size = sum(estimate_tokens(text) for message in workflow.shown for text in message.content.texts)
    if size > limit:
        message = f"about {size:,} tokens for {call.label}, more than {limit:,}"
        location = "def" if call.case is None else call.case.location
        yield owner_of(call.item).diagnostic(Rule.TOO_MANY_TOKENS, message, _SIZE_HINT, location)


def _secret_file_errors(options: Namespace) -> Iterator[str]:
    """Yield why a server would reject the given token file and key file."""
    for file, read in ((options.token_file, TokenFile), (options.state_keys, read_key_file)):
        try:
            if file is not None:
                read(file)
        except InvalidSecretsError as error:
            yield str(error)


def _data(catalog: Catalog) -> dict[str, Any]:
    return {
        "prompts": list(catalog),
        "resources": [resource.uri_template for resource in catalog.resources],
        "skills": [skill.uri_template for skill in catalog.skills],
        "diagnostics": [diagnostic.as_data() for diagnostic in catalog.diagnostics],
    }


def _format_notes(
    not_described: Sequence[str] = (),
    not_rendered: Mapping[str, str] = MappingProxyType({}),
    common_prefixes: Mapping[str, _Prefix] = MappingProxyType({}),
    refused: Iterable[str] = (),
) -> Iterator[tuple[str, str]]:
    """
    Yield notes as text, each with its level for GitHub.

    Args:
        not_described:
            The names of the prompts without a description.

        not_rendered:
            Why prompts and resources were not rendered, by their names.

        common_prefixes:
            The common prefix of each prompt's renderings.

        refused:
            Why a server would reject the token file or the key file.
    """
    if (other := other_package()) is not None:
        yield "warning", other
    if not_described:
        yield "notice", f"without a docstring or description, which clients show: {', '.join(not_described)}"
    phrases = {NEEDS_EXAMPLES: "because they need examples", NO_SAMPLE: f"because they have {NO_SAMPLE}"}
    for reason, phrase in phrases.items():
        if names := [name for name, skip_reason in not_rendered.items() if skip_reason == reason]:
            yield "notice", f"not rendered {phrase}: {', '.join(names)}"
    for name, reason in not_rendered.items():
        if reason not in phrases:
            yield "notice", f"not rendered with default or generated arguments: {name}: {reason}"
    for name, prefix in common_prefixes.items():
        yield (
            "notice",
            f"not measured: {name}: {prefix}" if isinstance(prefix, str) else _describe(name, prefix),
        )
    yield from (("error", f"a server would not start with {reason}") for reason in refused)


def _describe(name: str, prefix: Mapping[str, int]) -> str:
    """Return a measured prefix as a sentence."""
    if prefix["renderings"] == 1:
        return f"{name}: all tried renderings have the same {prefix['length']:,} characters"
    same = f"the same {prefix['length']:,} characters, of {prefix['shortest']:,} or more"
    return f"{name}: {prefix['renderings']} renderings start with {same}"


def _print(
    catalog: Catalog,
    formatted_notes: Iterable[tuple[str, str]],
    output: Output,
    tools: Sequence[str] | None,
    *,
    is_github: bool,
) -> None:
    if is_github:
        print_annotations(catalog.diagnostics, output)
        for level, text in formatted_notes:
            print_annotation(level, text, output)
    else:
        print_diagnostics(catalog.diagnostics, output)
        output.print_lines([_summary(catalog, tools), *(text for _, text in formatted_notes)])


#: The errors of prompts and resources that are listed for clients, but fail when they are rendered.
_FAILS: Final = (
    *(Rule.NO_MESSAGE, Rule.UNSENDABLE_VALUE, Rule.MISSING_TEXT, Rule.UNKNOWN_PLACEHOLDER),
    *(Rule.MISPLACED_MARK, Rule.EXAMPLE_FAILS, Rule.RESOURCE_FAILS),
)


def _without_failing(items: Iterable[Item], diagnostics: Iterable[Diagnostic]) -> list[Item]:
    """Return the items without those that have an error because of which they fail when they are rendered."""
    failing = {diagnostic.owner for diagnostic in diagnostics if diagnostic.rule in _FAILS}
    return [item for item in items if owner_of(item) not in failing]


def _summary(catalog: Catalog, tools: Sequence[str] | None) -> str:
    kinds: dict[str, Sequence[object]] = {
        "prompt": _without_failing(catalog.prompts, catalog.diagnostics),
        "resource": _without_failing(catalog.resources, catalog.diagnostics),
        "skill": catalog.skills,
        "tool": tools or (),
    }
    nothing = (
        "0 skills"
        if catalog.errors and all(error.rule.value.startswith("PK6") for error in catalog.errors)
        else "0 prompts"
    )
    served = [counted(len(items), kind) for kind, items in kinds.items() if items] or [nothing]
    *first, last = served
    severities = Counter(diagnostic.severity for diagnostic in catalog.diagnostics)
    counts = [counted(severities[severity], severity.value) for severity in Severity if severities[severity]]
    all_served = f"{', '.join(first)} and {last}" if first else last
    return ", ".join([f"{all_served} {'can be served' if tools is None else 'checked'}", *counts])


def _common_prefix(prompt: CompiledPrompt) -> _Prefix:
    """
    Measure the common prefix of a prompt's renderings, because vendors cache the start of a request.

    Raises:
        KeyboardInterrupt: On Ctrl-C.
    """
    if not prompt.sample:
        return NO_SAMPLE
    try:
        sent = _arguments_to_try(prompt)
    except Exception as error:  # noqa: BLE001 (it runs code from authors' types)
        return f"cannot generate values for its arguments: {failure_reason(error)}"
    renderings, failure = set[str](), ""
    for arguments in (sent[0], *sent):  # the first twice, because its renderings can differ
        call = Call(prompt, arguments)
        outcome = call.outcome()
        if isinstance(outcome, CallTimeoutError):  # other arguments can also hang
            return f"it {outcome}"
        if isinstance(outcome, BaseException):
            failure = failure or call.redactor.redacted(f"for {call.label}: {failure_reason(outcome)}")
        else:
            renderings.add(str(outcome))
    if not renderings:
        return f"it failed to render with all {len(sent)} sets of arguments; {failure}"
    prefix = os.path.commonprefix([*renderings])  # noqa: RUF071 (it compares characters, not paths)
    return {"length": len(prefix), "shortest": min(map(len, renderings)), "renderings": len(renderings)}


def _arguments_to_try(prompt: CompiledPrompt) -> list[Mapping[str, Any]]:
    """Return the arguments of cases and examples, and generated ones, which are the same at each run."""
    if "hypothesis" not in sys.modules:  # keeps hypothesis from writing to the current folder
        os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", os.devnull)
    from hypothesis import HealthCheck, Phase, given, settings

    from promptkit.testing.strategies import wire_arguments  # it needs the extra testing

    sent: list[Mapping[str, Any]] = [
        texts for case, texts in sendable(prompt.saved()) if case.refusal is None
    ]
    sent += prompt.arguments.example_texts

    @settings(
        max_examples=_GENERATED,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(wire_arguments(prompt))
    def collect(arguments: Mapping[str, Any]) -> None:
        sent.append(arguments)

    collect()
    return sent


def _unstable_skills(catalog: Catalog, targets: Sequence[str]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each file of a skill written in Python that differs between two starts."""
    skills = [skill for skill in catalog.skills if not skill.location.file.endswith(SKILL_FILE)]
    if not skills:
        return
    first, second = (_skill_digests(targets, {**os.environ, **start}) for start in _STARTS)
    for skill in skills:
        for file in skill.files:
            uri = skill.uri_of(file.path)
            # a skill that cannot be made again is missing from the digests
            if uri not in first or first[uri] != second.get(uri):
                message = f"{file.path!r} differs between two starts"
                owner = Owner(f"skill {skill.name!r}", skill.location)
                yield owner.diagnostic(Rule.UNSTABLE_SKILL, message, _UNSTABLE_HINT)


def _skill_digests(targets: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Build the skills in another process, and return the digests of their files by URI."""
    listing = [sys.executable, "-P", "-m", "promptkit", "list", "--json", *targets]
    listed = subprocess.run(listing, env=environment, capture_output=True, check=False).stdout  # noqa: S603 (promptkit itself)
    skills = json.loads(listed or "{}").get("skills", ())
    return {file["uri"]: file["digest"] for skill in skills for file in skill["resources"]}

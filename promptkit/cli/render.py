"""``promptkit render``: render one prompt, or read one resource, and show it."""

import os
import re
from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, TypeAlias

from promptkit import compiler
from promptkit.catalog.cases import is_refused
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.resources import CompiledResource
from promptkit.cli import Exit
from promptkit.cli.calls import Call, Item, report_failure, saved_calls
from promptkit.cli.command_options import VENDORS
from promptkit.cli.diagnostics import fail, print_error
from promptkit.cli.key_values import (
    ArgumentSyntaxError,
    list_known_arguments,
    read_arguments,
    read_typed,
    unread_secrets,
)
from promptkit.cli.loading import (
    explain_absence,
    format_unknown,
    load_recipes,
    reject_target,
    report_catalog_errors,
)
from promptkit.cli.options import is_uri
from promptkit.cli.output import Output
from promptkit.cli.output_formats import (
    as_json,
    as_markdown,
    as_promptfoo,
    encoded,
    exported_as_json,
    promptfoo_arguments,
    request_as_json,
    user_text,
    write_media,
)
from promptkit.cli.servers import open_named_server
from promptkit.compiler.reloading import Reloader
from promptkit.errors.distribution import install_command
from promptkit.errors.exceptions import ArgumentsError, UnknownPromptError, UnknownResourceError
from promptkit.errors.suggestions import nearest
from promptkit.exports import ExportError, UnsupportedAnswerError
from promptkit.language.documents import EmbeddedResource
from promptkit.language.messages import Workflow
from promptkit.language.turns import user

if TYPE_CHECKING:  # most recipes have no skills
    from promptkit.catalog.skills import CompiledSkill

#: The longest single wait in seconds. Where Ctrl-C cannot interrupt a wait, it takes effect afterwards.
_LONGEST_WAIT_S: Final = 1.0

#: Moves the cursor to the corner of a terminal, and clears the screen.
_CLEAR: Final = "\x1b[H\x1b[2J"

_Result: TypeAlias = Workflow | EmbeddedResource


def run(options: Namespace, output: Output) -> int:
    """
    Print a prompt, or a resource by its URI, as a transcript, Markdown, JSON or a vendor's JSON.

    The values of secret arguments are hidden in all of them, and in errors.

    Raises:
        LoadError: If the recipes cannot be loaded.
    """
    request = _Request(options, Path.cwd(), output)  # before a recipe can change the folder
    if options.model and not options.request:
        options.error("--model requires --request")
    if is_uri(options.name) and options.arguments:
        reject_target(options)
        options.error("a URI takes no arguments: put their values into the URI")
    if _has_case_option(options) and (options.arguments or options.promptfoo is not None):
        options.error("a case has its own arguments: omit the arguments or the case")
    if options.cases and (options.request or options.format not in {"transcript", "markdown"}):
        options.error("--cases supports only transcripts and Markdown: choose one case with --case")
    if options.typed is not None and options.arguments:
        options.error("--typed reads the arguments from standard input")
    if options.servers:
        if options.watch:
            options.error("--watch waits for changed files, which a server does not have")
        with open_named_server(options) as server:
            return request.show(server.catalog)
    if options.watch:
        return _watch(options, request.show, output)
    recipes = load_recipes(options.targets, cases=_has_case_option(options))
    catalog = compiler.compile(recipes)
    if not _is_served(options.name, catalog) and not is_uri(options.name):
        return explain_absence(options, recipes, catalog.diagnostics)
    return request.show(catalog)


class _Request:
    """The prompt or resource to show, with arguments that are read, or asked for, only once."""

    def __init__(self, options: Namespace, folder: Path, output: Output) -> None:
        self._options = options
        self._folder = folder
        self._output = output
        self._arguments: Mapping[str, str] | None = None

    def show(self, catalog: Catalog) -> int:
        """Print the prompt or the resource of a catalog, or why it cannot be shown."""
        name = self._options.name
        try:
            skill = next(
                (skill for skill in catalog.skills if name in (skill.name, skill.uri_template)), None
            )
            if skill is not None and name not in catalog:
                return self._show_skill(catalog, skill)
            if _has_case_option(self._options):
                template = catalog.find_template(name) or (is_uri(name) and catalog.resource(name)[0])
                return self._show_cases(template or catalog[name])
            if name in catalog:
                if self._arguments is None:
                    self._arguments = self._read_or_ask(catalog, catalog[name])
                return self._show_call(Call(catalog[name], self._arguments))
            return self._show_call(Call(catalog.resource(name)[0], name))
        except ArgumentSyntaxError as error:
            secrets = unread_secrets(catalog[name].arguments, self._options.arguments)
            return fail(secrets.redacted(str(error)), Exit.USAGE)
        except (UnknownPromptError, UnknownResourceError) as error:
            reject_target(self._options)
            unknown = error if is_uri(name) else UnknownPromptError(name, nearest(name, catalog))
            return fail(format_unknown(unknown, self._options), Exit.USAGE)

    def _show_skill(self, catalog: Catalog, skill: "CompiledSkill") -> int:
        """Print the main file of a skill."""
        if self._options.arguments or _has_case_option(self._options):
            self._options.error(f"{skill.name!r} is a skill, which takes no arguments and has no cases")
        uri = skill.uri_template
        return self._show_call(Call(catalog.resource(uri)[0], uri))

    def _show_cases(self, item: Item) -> int:
        """Print one case, or all cases with their names as headings."""
        case_name, calls = self._options.case, saved_calls(item)
        selected = [call for call in calls if case_name is None or call.case_name == case_name]
        if not selected:
            names = [call.case_name for call in calls]
            similar = None if case_name is None else nearest(case_name, names)
            hint = (
                f"did you mean {similar!r}?" if similar else f"it has {', '.join(map(repr, names)) or 'none'}"
            )
            subject = f"{item.arguments.kind} {item.name!r}"
            return fail(f"{subject} has no case{f' {case_name!r}' if case_name else ''}: {hint}", Exit.USAGE)
        if case_name is not None:
            return self._show_call(selected[0])
        codes = []
        for number, call in enumerate(selected):
            self._output.print_lines([*([""] if number else []), f"# {call.case_name}", ""])
            codes.append(self._show_call(call))
        return max(codes)

    def _show_call(self, call: Call) -> int:
        """Print the result of a call, or why it failed."""
        outcome, subject = call.outcome(), f"{call.item.arguments.kind} {call.item.name!r}"
        if call.case is not None and (mismatch := call.case.mismatch(outcome)) is not None:
            return fail(call.redactor.redacted(f"{subject}: {call.label} {mismatch}"), Exit.FAILED)
        if call.case is not None and is_refused(outcome):
            self._output.print_content(call.redactor.redacted(f"[refused] {outcome}"))
            return Exit.OK
        if isinstance(outcome, ArgumentsError):
            outcome = list_known_arguments(outcome, call.item.arguments)
        if isinstance(outcome, BaseException):
            return report_failure(subject, outcome, call.redactor)
        return self._print(call, outcome)

    def _read_or_ask(self, catalog: Catalog, prompt: CompiledPrompt) -> Mapping[str, str]:
        """Read the arguments of the command line, and ask for missing ones on a terminal."""
        if self._options.typed is not None:
            return read_typed(prompt.arguments, self._options.typed)
        arguments = read_arguments(prompt.arguments, self._options.arguments, self._folder)
        if self._options.promptfoo is not None:
            return arguments | promptfoo_arguments(self._options.promptfoo, prompt.arguments)
        missing = prompt.arguments.required - arguments.keys()
        if not missing or not self._options.asks or not (os.isatty(0) and os.isatty(2)):
            return arguments
        try:
            from promptkit.cli.interactive import ask
        except ModuleNotFoundError:
            print_error(f"to enter missing arguments interactively, run: {install_command('cli')}")
            return arguments
        return ask(catalog, prompt, arguments, self._folder)

    def _print(self, call: Call, result: _Result) -> int:
        """Write media to files, if requested, and print the result in the chosen format."""
        try:
            files = self._write_media(call.item.name, result)
            self._print_form(call, result, files)
        except OSError as error:
            file = error.filename or self._options.out
            return fail(f"cannot write to {file!r}: {error.strerror}", Exit.USAGE)
        except ExportError as error:
            return fail(f"{error.reason} (--lossy replaces unsupported content with text)", Exit.FAILED)
        except UnsupportedAnswerError as error:
            return fail(str(error), Exit.FAILED)
        except ValueError as error:  # half of a surrogate pair, which UTF-8 cannot encode
            reason = f"{call.item.arguments.kind} {call.item.name!r} has text that cannot be sent: {error}"
            return fail(call.redactor.redacted(reason), Exit.FAILED)
        return Exit.OK

    def _print_form(self, call: Call, result: _Result, files: Mapping[int, Path]) -> None:
        form, redactor, lossy = self._options.format, call.redactor, self._options.lossy
        if self._options.typed is not None:
            self._output.print_content(redactor.redacted(user_text(result, lossy=lossy)))
        elif (vendor := self._options.request) is not None:
            fields = {"model": self._options.model} if self._options.model else {}
            self._output.print_json(request_as_json(vendor, result, redactor, lossy=lossy, fields=fields))
        elif self._options.promptfoo is not None:
            workflow = result if isinstance(result, Workflow) else user(result)
            self._output.write(f"{as_promptfoo(workflow, self._output.encoding, lossy=lossy)}\n")
        elif form in VENDORS:
            self._output.print_json(exported_as_json(form, result, redactor, lossy=lossy))
        elif form == "json":
            self._output.print_json(as_json(encoded(call.item, result), redactor))
        else:
            text = as_markdown(result, files) if form == "markdown" else _as_text(call.item, result)
            self._output.print_content(redactor.redacted(text))

    def _write_media(self, name: str, result: _Result) -> Mapping[int, Path]:
        if self._options.out is None:
            return {}
        contents = [message.content for message in result] if isinstance(result, Workflow) else [result]
        # The name of a resource can be any text.
        stem = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "resource"
        files = write_media(contents, Path(self._options.out), stem)
        for file in files.values():
            print_error(f"wrote {file}")
        return files


def _as_text(item: Item, result: _Result) -> str:
    """Return the transcript; for a file of a skill only its text, so that it can be redirected to a file."""
    match item, result:
        case CompiledResource(is_fixed=True), EmbeddedResource(text=str(text)):
            return text
    return str(result)


def _is_served(name: str, catalog: Catalog) -> bool:
    """Return whether the catalog has a prompt or a skill of that name."""
    return name in catalog or any(skill.name == name for skill in catalog.skills)


def _has_case_option(options: Namespace) -> bool:
    return options.cases or options.case is not None


def _watch(options: Namespace, show: Callable[[Catalog], int], output: Output) -> int:
    """Show the result again after each change, until Ctrl-C; return only on incorrect usage at the start."""
    # Diagnostics are printed on this thread, so that clearing the screen does not hide them.
    work: SimpleQueue[Callable[[], object]] = SimpleQueue()
    report = partial(report_catalog_errors, ignore=options.ignore)

    def show_again(catalog: Catalog) -> None:
        output.write(_CLEAR if output.isatty() else "\n")
        show(catalog)

    cases = _has_case_option(options)
    reloader = Reloader(options.targets, lambda catalog: work.put(partial(report, catalog)), cases=cases)
    catalog = reloader.load()
    report(catalog)
    if show(catalog) == Exit.USAGE and catalog.healthy:
        return Exit.USAGE
    output.send()
    reloader.start(lambda catalog: work.put(partial(show_again, catalog)))
    while True:
        with suppress(Empty):
            work.get(timeout=_LONGEST_WAIT_S)()
            output.send()

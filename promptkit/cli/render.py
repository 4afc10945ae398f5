"""``promptkit render``: render one prompt, or read one resource, and show it."""

import json
import os
import re
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from promptkit import compiler, exports
from promptkit.catalog.arguments import Arguments
from promptkit.catalog.cases import is_refused
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.catalog.resources import CompiledResource
from promptkit.cli import Exit
from promptkit.cli.calls import Call, Item, decode_redacted, encode_result, report_failure, saved_calls
from promptkit.cli.diagnostics import fail, print_error
from promptkit.cli.key_values import (
    ArgumentSyntaxError,
    add_known_arguments,
    read_arguments,
    read_typed_arguments,
    redactor_for_words,
)
from promptkit.cli.loading import (
    explain_absence,
    format_unknown,
    load_recipes,
    open_named_server,
    reject_target,
)
from promptkit.cli.options import is_uri
from promptkit.cli.output import Output
from promptkit.cli.parsers import VENDORS
from promptkit.errors.exceptions import ArgumentsError, UnknownPromptError, UnknownResourceError
from promptkit.errors.suggestions import nearest
from promptkit.files.folder import Folder
from promptkit.fragments.markdown import code_block
from promptkit.language.content import Content
from promptkit.language.documents import EmbeddedResource
from promptkit.language.media import Image, Media
from promptkit.language.messages import Workflow, make_workflow
from promptkit.language.text import Text
from promptkit.language.turns import user

if TYPE_CHECKING:  # most recipes have no skills
    from promptkit.catalog.skills import CompiledSkill

_Result: TypeAlias = Workflow | EmbeddedResource


def run(options: Namespace, output: Output) -> int:
    """
    Print a prompt, or the resource at a URI, as a transcript, Markdown, JSON or a vendor's JSON.

    The values of secret arguments are hidden in each of these formats, and in errors.

    Raises:
        LoadError: If the recipes cannot be loaded.
    """
    request = _Request(options, Path.cwd(), output)  # before a recipe can change the current folder
    if options.model and not options.request:
        options.error("--model requires --request")
    if is_uri(options.name) and options.arguments:
        reject_target(options)
        options.error("a URI does not take arguments: put the values into the URI")
    if _has_case_option(options) and (options.arguments or options.promptfoo is not None):
        options.error("a case has its own arguments: omit the arguments or the case")
    if options.cases and (options.request or options.format not in {"transcript", "markdown"}):
        options.error("--cases supports only transcripts and Markdown: choose one case with --case")
    if options.typed is not None and options.arguments:
        options.error("--typed reads the arguments from standard input: omit the others")
    if options.servers:
        with open_named_server(options) as server:
            return request.show(server.catalog)
    recipes = load_recipes(options.targets, cases=_has_case_option(options))
    catalog = compiler.compile(recipes)
    if not _is_served(options.name, catalog) and not is_uri(options.name):
        return explain_absence(options, recipes, catalog.diagnostics)
    return request.show(catalog)


class _Request:
    """The prompt or resource to show, with the options and the base folder for paths in arguments."""

    def __init__(self, options: Namespace, folder: Path, output: Output) -> None:
        self._options = options
        self._folder = folder
        self._output = output

    def show(self, catalog: Catalog) -> int:
        """Find the prompt or resource in a catalog, and print it, or the reason why it cannot be shown."""
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
                return self._show_call(Call(catalog[name], self._read_arguments(catalog[name])))
            return self._show_call(Call(catalog.resource(name)[0], name))
        except ArgumentSyntaxError as error:
            secrets = redactor_for_words(catalog[name].arguments, self._options.arguments)
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
                f"did you mean {similar!r}?"
                if similar
                else f"choose one of {', '.join(map(repr, names))}"
                if names
                else "save a case first"
            )
            subject = f"{item.arguments.kind} {item.name!r}"
            return fail(f"{subject} has no case{f' {case_name!r}' if case_name else 's'}: {hint}", Exit.USAGE)
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
            outcome = add_known_arguments(outcome, call.item.arguments)
        if isinstance(outcome, BaseException):
            return report_failure(subject, outcome, call.redactor)
        return self._print(call, outcome)

    def _read_arguments(self, prompt: CompiledPrompt) -> Mapping[str, str]:
        """Return the arguments from the command line, from promptfoo, or typed after a slash command."""
        if self._options.typed is not None:
            return read_typed_arguments(prompt.arguments, self._options.typed)
        arguments = read_arguments(prompt.arguments, self._options.arguments, self._folder)
        if self._options.promptfoo is not None:
            return arguments | _promptfoo_arguments(self._options.promptfoo, prompt.arguments)
        return arguments

    def _print(self, call: Call, result: _Result) -> int:
        """Print the result in the chosen format, after writing its media to files if requested."""
        try:
            files = self._write_media(call.item.name, result)
            self._print_in_format(call, result, files)
        except OSError as error:
            file = error.filename or self._options.out
            return fail(f"cannot write to {file!r}: {error.strerror}", Exit.USAGE)
        except exports.ExportError as error:
            return fail(f"{error.reason} (--lossy replaces unsupported content with text)", Exit.FAILED)
        except exports.UnsupportedAnswerError as error:
            return fail(str(error), Exit.FAILED)
        except ValueError as error:  # half of a surrogate pair, which UTF-8 cannot encode
            reason = (
                f"{call.item.arguments.kind} {call.item.name!r} contains text that cannot be sent: {error}"
            )
            return fail(call.redactor.redacted(reason), Exit.FAILED)
        return Exit.OK

    def _print_in_format(self, call: Call, result: _Result, files: Mapping[int, Path]) -> None:
        form, redactor, lossy = self._options.format, call.redactor, self._options.lossy
        if self._options.typed is not None:
            self._output.print_content(redactor.redacted(_user_text(result, lossy=lossy)))
        elif (vendor := self._options.request) is not None:
            fields = {"model": self._options.model} if self._options.model else {}
            self._output.print_json(
                _vendor_data(exports.REQUEST_FUNCTIONS[vendor], result, redactor, lossy=lossy, **fields)
            )
        elif self._options.promptfoo is not None:
            text = _format_promptfoo(_to_workflow(result), self._output.encoding, lossy=lossy)
            self._output.write(f"{text}\n")
        elif form in VENDORS:
            self._output.print_json(
                _vendor_data(exports.MESSAGE_FUNCTIONS[form], result, redactor, lossy=lossy)
            )
        elif form == "json":
            self._output.print_json(decode_redacted(encode_result(call.item, result), redactor))
        else:
            text = _format_markdown(result, files) if form == "markdown" else _format_text(call.item, result)
            self._output.print_content(redactor.redacted(text))

    def _write_media(self, name: str, result: _Result) -> Mapping[int, Path]:
        if self._options.out is None:
            return {}
        contents = [message.content for message in result] if isinstance(result, Workflow) else [result]
        # The name of a resource can be any text.
        stem = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "resource"
        files = _write_media(contents, Path(self._options.out), stem)
        for file in files.values():
            print_error(f"wrote {file}")
        return files


def _format_text(item: Item, result: _Result) -> str:
    """Return a result's transcript; for a file in a skill, only its text, so that users can save it."""
    match item, result:
        case CompiledResource(is_fixed=True), EmbeddedResource(text=str(text)):
            return text
    return str(result)


def _is_served(name: str, catalog: Catalog) -> bool:
    """Return whether the catalog has a prompt or a skill with this name."""
    return name in catalog or any(skill.name == name for skill in catalog.skills)


def _has_case_option(options: Namespace) -> bool:
    return options.cases or options.case is not None


def _format_markdown(result: _Result, files: Mapping[int, Path]) -> str:
    """
    Return Markdown, with a heading and the content of each message.

    Args:
        result:
            The rendering, or the document.

        files:
            The files to which media were written, keyed by the position of the message.
    """
    if isinstance(result, EmbeddedResource):
        return _format_content(result, files.get(0))
    # The positions in *files* do not count the system part.
    turns = enumerate(result.shown, len(result) - len(result.shown))
    return "\n\n".join(
        f"## {turn.role}\n\n{_format_content(turn.content, files.get(i))}" for i, turn in turns
    )


def _format_content(content: Content, file: Path | None) -> str:
    if isinstance(content, EmbeddedResource) and content.text is not None:
        return f"`{content.uri}`\n\n{code_block(content.text)}"
    if isinstance(content, Media | EmbeddedResource):
        description = str(content)
        if file is None:
            return f"`{description}`"
        mark = "!" if isinstance(content, Image) else ""
        return f"{mark}[{description.strip('<>')}](<{file.as_posix()}>)"
    return str(content)


def _user_text(result: _Result, *, lossy: bool) -> str:
    """
    Return the text of the user's messages, for a slash command.

    Args:
        result:
            The rendering, or the document.

        lossy:
            Whether to include all other content as text, with the role of each message.

    Raises:
        ExportError: If there is any other content, unless *lossy* is true.
    """
    if lossy or isinstance(result, EmbeddedResource):
        return str(result)
    hint = "a slash command can contain only user text"
    unsupported = [
        exports.UnsupportedPart(number, turn.role, type(turn.content).__name__, hint)
        for number, turn in enumerate(result.shown, 1 + len(result) - len(result.shown))
        if turn.role != "user" or not isinstance(turn.content, Text)
    ]
    if unsupported:
        vendor = "a slash command"
        raise exports.ExportError(vendor, tuple(unsupported))
    return result.text


def _vendor_data(
    convert: Callable[..., Any], result: _Result, redactor: Redactor, *, lossy: bool, **fields: str
) -> Any:
    """
    Return messages or a whole request for a vendor's SDK, without secrets and with bytes in base64.

    Args:
        convert:
            One of `promptkit.exports.MESSAGE_FUNCTIONS` or `promptkit.exports.REQUEST_FUNCTIONS`.

        result:
            The rendering, or a document, which becomes a user turn.

        redactor:
            Hides secrets.

        lossy:
            Whether to convert content that the vendor does not support to text.

        **fields:
            Further fields of the request.

    Raises:
        ExportError: If the vendor does not support some of the content, unless *lossy* is true.

        UnsupportedAnswerError: If the vendor does not support the type of the answer.
    """
    return redactor.redacted_json(msgspec.to_builtins(convert(_to_workflow(result), lossy=lossy, **fields)))


def _to_workflow(result: _Result) -> Workflow:
    return result if isinstance(result, Workflow) else user(result)


def _write_media(contents: Iterable[Content], folder: Path, name: str) -> Mapping[int, Path]:
    """
    Write media to files, and replace the files of the previous run.

    Links and pipes at the paths of these files are never replaced. A relative *folder* must not be a link.

    Args:
        contents:
            The content of each message.

        folder:
            The folder to write to. It is created if it does not exist.

        name:
            The start of each file's name.

    Returns:
        The files, keyed by the position of their content.

    Raises:
        OSError: If a file cannot be written, for example because there is a link at its path.
    """
    output_folder, written = Folder.named(folder), dict[int, Path]()
    for position, content in enumerate(contents):
        if not isinstance(content, Media | EmbeddedResource):
            continue
        data = content.data if isinstance(content, Media) else content.blob
        if data is not None:
            output_folder.create()
            file = folder / f"{name}-{len(written) + 1}{_suffix_for(content.mime_type or '')}"
            try:
                output_folder.write(file.name, data)
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(file)) from None
            written[position] = file
    return written


def _suffix_for(mime_type: str) -> str:
    from mimetypes import guess_extension

    import filetype  # type: ignore[import-untyped]

    kind = None
    if mime_type.startswith(("image/", "audio/")):  # filetype has older names for some, such as audio/x-wav
        kind = filetype.get_type(mime_type) or filetype.get_type(mime_type.replace("/", "/x-"))
    return f".{kind.extension}" if kind else guess_extension(mime_type, strict=False) or ".bin"


#: The syntax of Nunjucks, the template engine with which promptfoo renders each prompt again.
_TEMPLATE: Final = re.compile(r"\{(?=[{%#])|#\}")

#: Text that promptfoo changes or parses as messages, although it is not JSON.
_ALTERED_TEXT: Final = re.compile(r"\A(?:[\[{\s\ufeff]|- role:)|\{[{%#]|#\}|\x1b|[\s\ufeff]\Z")

#: The values of an environment variable that promptfoo treats as true.
_TRUE: Final = {"1", "true", "yes", "yup", "yeppers"}


def _promptfoo_arguments(context: str, arguments: Arguments) -> dict[str, Any]:
    """
    Return the variables of a promptfoo test case that are arguments of the prompt.

    All other variables are ignored, because they may be meant for assertions.

    Args:
        context:
            The JSON that promptfoo appends to the command.

        arguments:
            The arguments of the prompt.

    Raises:
        ArgumentSyntaxError: If *context* is not JSON of this form.
    """
    try:
        variables = json.loads(context)["vars"].items()
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        msg = "--promptfoo needs the JSON that promptfoo appends to the command: put the option last"
        raise ArgumentSyntaxError(msg) from None
    return {name: value for name, value in variables if name in arguments.by_name}


def _format_promptfoo(workflow: Workflow, encoding: str, *, lossy: bool) -> str:
    """
    Return the prompt for promptfoo: its text, or the JSON of messages in OpenAI's format.

    promptfoo strips text, parses text that looks like JSON, and renders text that looks like a template.
    Such text is returned as a message in JSON, with escapes, so that models receive it unchanged.

    Args:
        workflow:
            The rendering.

        encoding:
            The encoding of standard output; promptfoo reads UTF-8.

        lossy:
            Whether to convert content that OpenAI does not support to a description.

    Raises:
        ExportError: If OpenAI does not support some of the content, unless *lossy* is true.
    """
    # Some vendors reject cache markers.
    uncached = make_workflow(workflow.messages, workflow.system)
    messages = exports.openai_chat(uncached, lossy=lossy, system_role="system")
    match messages:
        case [{"role": "user", "content": str(content)}] if _is_unchanged(content, encoding):
            return content
    text = json.dumps(messages)
    if os.environ.get("PROMPTFOO_DISABLE_TEMPLATING", "").lower() in _TRUE:
        return text
    # Matches are always inside strings, because `json.dumps` never writes two braces in a row as syntax.
    return _TEMPLATE.sub(lambda match: f"{{{{ '{match[0]}' }}}}", text)


def _is_unchanged(text: str, encoding: str) -> bool:
    """Return whether promptfoo leaves text unchanged."""
    if _ALTERED_TEXT.search(text) or not (text.isascii() or encoding.lower().startswith("utf")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return True
    return False

"""Formats of commands' output: Markdown, JSON without secrets, media files, and text for promptfoo."""

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from promptkit.catalog.arguments import Arguments
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.catalog.resources import CompiledResource
from promptkit.cli.key_values import ArgumentSyntaxError
from promptkit.errors.suggestions import nearest
from promptkit.exports import FORMS, REQUESTS, ExportError, UnsupportedPart, openai_chat
from promptkit.files.folder import Folder
from promptkit.fragments.markdown import code_block
from promptkit.language.content import Content
from promptkit.language.documents import EmbeddedResource
from promptkit.language.media import Image, Media
from promptkit.language.messages import Workflow, make_workflow
from promptkit.language.text import Text
from promptkit.language.turns import user
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.revisions import LATEST_HANDSHAKE

#: Encodes results for a client of the latest handshake revision.
LOWERING: Final = lowering_for(LATEST_HANDSHAKE)


def as_markdown(result: Workflow | EmbeddedResource, files: Mapping[int, Path]) -> str:
    """
    Return Markdown, with a heading and the content of each message.

    Args:
        result:
            The rendering, or the document.

        files:
            The files that media were written to, by the position of the message.
    """
    if isinstance(result, EmbeddedResource):
        return _content(result, files.get(0))
    # Files are keyed by the position of the message, and a system part is not a message.
    turns = enumerate(result.shown, len(result) - len(result.shown))
    return "\n\n".join(f"## {turn.role}\n\n{_content(turn.content, files.get(i))}" for i, turn in turns)


def _content(content: Content, file: Path | None) -> str:
    if isinstance(content, EmbeddedResource) and content.text is not None:
        return f"`{content.uri}`\n\n{code_block(content.text)}"
    if isinstance(content, Media | EmbeddedResource):
        description = str(content)
        if file is None:
            return f"`{description}`"
        mark = "!" if isinstance(content, Image) else ""
        return f"{mark}[{description.strip('<>')}](<{file.as_posix()}>)"
    return str(content)


def user_text(result: Workflow | EmbeddedResource, *, lossy: bool) -> str:
    """
    Return the text of the user's messages, for a slash command.

    Args:
        result:
            The rendering, or the document.

        lossy:
            Whether to convert other content to text, with the roles.

    Raises:
        ExportError: If there is other content, unless *lossy*.
    """
    if lossy or isinstance(result, EmbeddedResource):
        return str(result)
    hint = "a slash command can contain only user text"
    unsupported = [
        UnsupportedPart(number, turn.role, type(turn.content).__name__, hint)
        for number, turn in enumerate(result.shown, 1 + len(result) - len(result.shown))
        if turn.role != "user" or not isinstance(turn.content, Text)
    ]
    if unsupported:
        vendor = "a slash command"
        raise ExportError(vendor, tuple(unsupported))
    return result.text


def encoded(item: CompiledPrompt | CompiledResource, result: Any) -> bytes:
    """
    Return the encoded result for a client of the latest handshake revision.

    Args:
        item:
            The prompt or the resource.

        result:
            Its rendering, or the document.

    Raises:
        ValueError: If a text contains an unpaired surrogate, which UTF-8 cannot encode.
    """
    return LOWERING.result(item, result) if isinstance(item, CompiledPrompt) else LOWERING.contents(result)


def as_json(result: bytes, redactor: Redactor) -> Any:
    """Return an encoded result as JSON-compatible data without secrets."""
    return redactor.redacted_json(msgspec.json.decode(result))


def exported_as_json(
    form: str, result: Workflow | EmbeddedResource, redactor: Redactor, *, lossy: bool
) -> Any:
    """
    Return the messages for the SDK of a vendor, without secrets. Bytes are base64, as in the vendor's JSON.

    Args:
        form:
            One of `promptkit.exports.FORMS`.

        result:
            The rendering, or a document, which becomes a user turn.

        redactor:
            Hides secrets.

        lossy:
            Whether to convert content that the vendor does not support to text.

    Raises:
        ExportError: If the vendor does not support some content, unless *lossy*.
    """
    return redactor.redacted_json(msgspec.to_builtins(FORMS[form](_turns(result), lossy=lossy)))


def request_as_json(
    vendor: str,
    result: Workflow | EmbeddedResource,
    redactor: Redactor,
    *,
    lossy: bool,
    fields: Mapping[str, str],
) -> Any:
    """
    Return a whole request to a vendor, with its messages as from `exported_as_json`, and with *fields*.

    Raises:
        ExportError: If the vendor does not support some content, unless *lossy*.

        UnsupportedAnswerError: If the vendor does not support the type of the answer.
    """
    request = REQUESTS[vendor](_turns(result), lossy=lossy, **fields)
    return redactor.redacted_json(msgspec.to_builtins(request))


def _turns(result: Workflow | EmbeddedResource) -> Workflow:
    return result if isinstance(result, Workflow) else user(result)


def write_media(contents: Iterable[Content], folder: Path, name: str) -> Mapping[int, Path]:
    """
    Write media to files, and replace the files of the previous run.

    Links and pipes at these paths are kept, and a link in place of a relative *folder* is not followed.

    Args:
        contents:
            The content of each message.

        folder:
            Where to write. It is created if it does not exist.

        name:
            The start of each file's name.

    Returns:
        The files, by the position of their content.

    Raises:
        OSError: If a file cannot be written.
    """
    output_folder, written = Folder.named(folder), dict[int, Path]()
    for position, content in enumerate(contents):
        if not isinstance(content, Media | EmbeddedResource):
            continue
        data = content.data if isinstance(content, Media) else content.blob
        if data is not None:
            output_folder.create()
            file = folder / f"{name}-{len(written) + 1}{_suffix(content.mime_type or '')}"
            try:
                output_folder.write(file.name, data)
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(file)) from None
            written[position] = file
    return written


def _suffix(mime_type: str) -> str:
    from mimetypes import guess_extension

    import filetype  # type: ignore[import-untyped]

    kind = None
    if mime_type.startswith(("image/", "audio/")):  # filetype has older names for some, such as audio/x-wav
        kind = filetype.get_type(mime_type) or filetype.get_type(mime_type.replace("/", "/x-"))
    return f".{kind.extension}" if kind else guess_extension(mime_type, strict=False) or ".bin"


#: Syntax of Nunjucks, with which promptfoo renders each prompt again.
_TEMPLATE: Final = re.compile(r"\{(?=[{%#])|#\}")

#: Text, other than JSON, that promptfoo changes or parses as messages.
_ALTERED_TEXT: Final = re.compile(r"\A(?:[\[{\s\ufeff]|- role:)|\{[{%#]|#\}|\x1b|[\s\ufeff]\Z")

_TRUE: Final = {"1", "true", "yes", "yup", "yeppers"}


def promptfoo_arguments(context: str, arguments: Arguments) -> dict[str, Any]:
    """
    Return the arguments in the variables of a promptfoo test case.

    Other variables are ignored, because assertions can use them, unless they look like misspelled arguments.

    Args:
        context:
            The JSON that promptfoo appends to the command.

        arguments:
            The arguments of the prompt.

    Raises:
        ArgumentSyntaxError: If *context* is not this JSON.
    """
    try:
        variables = json.loads(context)["vars"]
        names = variables.keys()
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        msg = "--promptfoo needs the JSON that promptfoo appends to the command: put the option last"
        raise ArgumentSyntaxError(msg) from None
    missing = arguments.by_name.keys() - names

    def is_relevant(name: str) -> bool:  # promptfoo's own variables start with __
        return name in arguments.by_name or not (name.startswith("__") or nearest(name, missing) is None)

    return {name: value for name, value in variables.items() if is_relevant(name)}


def as_promptfoo(workflow: Workflow, encoding: str, *, lossy: bool) -> str:
    """
    Return the prompt for promptfoo: its text, or the JSON of messages in OpenAI's format.

    promptfoo strips text, parses text that looks like JSON, and fills in text that looks like a template.
    Such text becomes a message in JSON, with escapes, so that models get it unchanged.

    Args:
        workflow:
            The rendering.

        encoding:
            The encoding of standard output; promptfoo reads UTF-8.

        lossy:
            Whether to convert content that OpenAI does not support to a description.

    Raises:
        ExportError: If OpenAI does not support some content, unless *lossy*.
    """
    # Some vendors reject cache markers.
    uncached = make_workflow(workflow.messages, workflow.system)
    messages = openai_chat(uncached, lossy=lossy, system_role="system")
    match messages:
        case [{"role": "user", "content": str(content)}] if _is_unchanged(content, encoding):
            return content
    text = json.dumps(messages)
    if os.environ.get("PROMPTFOO_DISABLE_TEMPLATING", "").lower() in _TRUE:
        return text
    # The syntax of JSON has none of these, because `json.dumps` never writes two braces in a row.
    return _TEMPLATE.sub(lambda match: f"{{{{ '{match[0]}' }}}}", text)


def _is_unchanged(text: str, encoding: str) -> bool:
    """Return whether promptfoo leaves a text unchanged."""
    if _ALTERED_TEXT.search(text) or not (text.isascii() or encoding.lower().startswith("utf")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return True
    return False

"""The forms in which commands show what a client receives: Markdown and JSON, without secrets, and files."""

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
from promptkit.language.messages import Workflow, workflow_of
from promptkit.language.text import Text
from promptkit.language.turns import user
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.revisions import LATEST_HANDSHAKE

#: Writes what a client of the newest revision with a handshake receives.
LOWERING: Final = lowering_for(LATEST_HANDSHAKE)


def as_markdown(shown: Workflow | EmbeddedResource, files: Mapping[int, Path]) -> str:
    """
    Return Markdown: a heading for each message, and below it the content.

    Args:
        shown:
            What was rendered or read.

        files:
            The files that media were written to, by the position of the message.
    """
    if isinstance(shown, EmbeddedResource):
        return _content(shown, files.get(0))
    # Files are known by the position of the message, and a system part is none.
    turns = enumerate(shown.shown, len(shown) - len(shown.shown))
    return "\n\n".join(f"## {turn.role}\n\n{_content(turn.content, files.get(i))}" for i, turn in turns)


def _content(content: Content, file: Path | None) -> str:
    if isinstance(content, EmbeddedResource) and content.text is not None:
        return f"`{content.uri}`\n\n{code_block(content.text)}"
    if isinstance(content, Media | EmbeddedResource):
        shown = str(content)
        if file is None:
            return f"`{shown}`"
        mark = "!" if isinstance(content, Image) else ""
        return f"{mark}[{shown.strip('<>')}](<{file.as_posix()}>)"
    return str(content)


def text_alone(shown: Workflow | EmbeddedResource, *, lossy: bool) -> str:
    """
    Return what a user says, as text: what becomes of a slash command.

    Args:
        shown:
            What was rendered.

        lossy:
            Whether what else there is becomes text, with the roles.

    Raises:
        ExportError: If there is anything else, unless *lossy*.
    """
    if lossy or isinstance(shown, EmbeddedResource):
        return str(shown)
    hint = "a slash command is the text of a user"
    unfit = [
        UnsupportedPart(number, turn.role, type(turn.content).__name__, hint)
        for number, turn in enumerate(shown.shown, 1 + len(shown) - len(shown.shown))
        if turn.role != "user" or not isinstance(turn.content, Text)
    ]
    if unfit:
        vendor = "a slash command"
        raise ExportError(vendor, tuple(unfit))
    return shown.text


def encoded(item: CompiledPrompt | CompiledResource, shown: Any) -> bytes:
    """
    Return the result for a client of the newest revision with a handshake.

    Args:
        item:
            The prompt or the resource.

        shown:
            What was rendered or read.

    Raises:
        ValueError: If a text holds half of a surrogate pair, which UTF-8 cannot encode.
    """
    return LOWERING.result(item, shown) if isinstance(item, CompiledPrompt) else LOWERING.contents(shown)


def as_json(result: bytes, redactor: Redactor) -> Any:
    """Return a result without secrets."""
    return redactor.redacted_json(msgspec.json.decode(result))


def exported_as_json(
    form: str, shown: Workflow | EmbeddedResource, redactor: Redactor, *, lossy: bool
) -> Any:
    """
    Return what the SDK of a vendor takes, without secrets. Bytes are base64, as in the vendor's own JSON.

    Args:
        form:
            One of `promptkit.exports.FORMS`.

        shown:
            What was rendered, or a document, which becomes a turn of the user.

        redactor:
            Hides secrets.

        lossy:
            Whether what the vendor does not take becomes text.

    Raises:
        ExportError: If there is anything that the vendor does not take, unless *lossy*.
    """
    return redactor.redacted_json(msgspec.to_builtins(FORMS[form](_turns(shown), lossy=lossy)))


def request_as_json(
    vendor: str,
    shown: Workflow | EmbeddedResource,
    redactor: Redactor,
    *,
    lossy: bool,
    fields: Mapping[str, str],
) -> Any:
    """
    Return a whole request to a vendor, as `exported_as_json` does its messages; *fields* are sent, too.

    Raises:
        ExportError: If there is anything that the vendor does not take, unless *lossy*.

        UnsupportedAnswerError: If the vendor takes no such answer.
    """
    request = REQUESTS[vendor](_turns(shown), lossy=lossy, **fields)
    return redactor.redacted_json(msgspec.to_builtins(request))


def _turns(shown: Workflow | EmbeddedResource) -> Workflow:
    return shown if isinstance(shown, Workflow) else user(shown)


def write_media(contents: Iterable[Content], folder: Path, name: str) -> Mapping[int, Path]:
    """
    Write what is bytes to files, in place of those of the last time.

    Links and pipes that lie there stay, and a link in place of a relative *folder* is not followed.

    Args:
        contents:
            The content of each message.

        folder:
            Where to write. It is made if it does not exist.

        name:
            What the names of the files begin with.

    Returns:
        The files, by the position of their content.

    Raises:
        OSError: If a file cannot be written.
    """
    place, written = Folder.named(folder), dict[int, Path]()
    for position, content in enumerate(contents):
        if not isinstance(content, Media | EmbeddedResource):
            continue
        data = content.data if isinstance(content, Media) else content.blob
        if data is not None:
            place.create()
            file = folder / f"{name}-{len(written) + 1}{_suffix(content.mime_type or '')}"
            try:
                place.write(file.name, data)
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(file)) from None
            written[position] = file
    return written


def _suffix(mime_type: str) -> str:
    from mimetypes import guess_extension

    import filetype  # type: ignore[import-untyped]

    kind = None
    if mime_type.startswith(("image/", "audio/")):  # some are known by an older name, as audio/x-wav
        kind = filetype.get_type(mime_type) or filetype.get_type(mime_type.replace("/", "/x-"))
    return f".{kind.extension}" if kind else guess_extension(mime_type, strict=False) or ".bin"


#: What Nunjucks reads, with which promptfoo reads each prompt again.
_TEMPLATE: Final = re.compile(r"\{(?=[{%#])|#\}")

#: Text that promptfoo changes, or takes for messages, besides what is JSON.
_TAKEN: Final = re.compile(r"\A(?:[\[{\s\ufeff]|- role:)|\{[{%#]|#\}|\x1b|[\s\ufeff]\Z")

_TRUE: Final = {"1", "true", "yes", "yup", "yeppers"}


def variables(context: str, arguments: Arguments) -> dict[str, Any]:
    """
    Return the arguments of a test case: a variable is the argument of its name.

    Others are left alone, as assertions may be about them; but not those that seem to be misspelt.

    Args:
        context:
            The JSON that promptfoo appends to the command.

        arguments:
            What the prompt takes.

    Raises:
        ArgumentSyntaxError: If it is no such JSON.
    """
    try:
        found = json.loads(context)["vars"]
        names = found.keys()
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        msg = "--promptfoo takes the JSON that promptfoo appends to a command: write it last"
        raise ArgumentSyntaxError(msg) from None
    open_ones = arguments.by_name.keys() - names

    def is_meant(name: str) -> bool:
        return name in arguments.by_name or not (name.startswith("__") or nearest(name, open_ones) is None)

    return {name: value for name, value in found.items() if is_meant(name)}  # promptfoo's own begin with __


def printed(workflow: Workflow, encoding: str, *, lossy: bool) -> str:
    """
    Return what promptfoo takes for the prompt: its text, or the JSON of messages as OpenAI has them.

    promptfoo strips text, reads what looks like JSON, and fills in what looks like a template: such text is
    a message in JSON, with escapes, so that models get what the prompt says.

    Args:
        workflow:
            What was rendered.

        encoding:
            That of standard output; promptfoo reads UTF-8.

        lossy:
            Whether what OpenAI does not take becomes text that says what it was.

    Raises:
        ExportError: If there is anything that OpenAI does not take, unless *lossy*.
    """
    said = workflow_of(workflow.messages, workflow.system)  # without marks of a cache, which not all take
    messages = openai_chat(said, lossy=lossy, system_role="system")
    match messages:
        case [{"role": "user", "content": str(text)}] if _stays(text, encoding):
            return text
    written = json.dumps(messages)
    if os.environ.get("PROMPTFOO_DISABLE_TEMPLATING", "").lower() in _TRUE:
        return written
    # JSON itself has none of these, as no two of its braces stand side by side.
    return _TEMPLATE.sub(lambda found: f"{{{{ '{found[0]}' }}}}", written)


def _stays(text: str, encoding: str) -> bool:
    """Whether promptfoo takes a text as it is."""
    if _TAKEN.search(text) or not (text.isascii() or encoding.lower().startswith("utf")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return True
    return False

"""``promptkit render``: render one prompt and show it."""

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, get_args

from promptkit.catalog import CompiledPrompt
from promptkit.cli import Exit
from promptkit.cli.recipes import authors_code, complain, load_catalog
from promptkit.errors import ArgumentErrors, PromptError, UnknownPrompt
from promptkit.messages import Workflow
from promptkit.redaction import Redactor
from promptkit.tracebacks import format_exception

__all__ = ["run"]

#: The members of a result whose values are the protocol's words.
_KINDS: Final = ("type", "role", "mimeType")


def run(options: Namespace) -> int:
    """
    Print a prompt as a transcript, or as the JSON that a client receives.

    Neither holds the value of an argument that is a secret, and no error does.

    Raises:
        LoadError: If there is nothing at the target.
    """
    catalog = load_catalog(options.target)
    try:
        prompt = catalog[options.name]
    except UnknownPrompt as error:
        complain(catalog)
        print(f"promptkit: {error}", file=sys.stderr)
        return Exit.USAGE
    try:
        arguments = _arguments(prompt, options.arguments)
    except (ValueError, OSError) as error:
        print(f"promptkit: {_unread(prompt, options.arguments).redacted(str(error))}", file=sys.stderr)
        return Exit.USAGE
    hidden = Redactor.of(prompt.arguments, arguments)
    try:
        with authors_code():
            workflow = prompt.render(arguments)
    except (ArgumentErrors, PromptError) as error:
        print(f"promptkit: {hidden.redacted(str(error))}", file=sys.stderr)
        return Exit.FAULTY
    except (Exception, SystemExit) as error:  # noqa: BLE001 (the author wants to see whatever it was)
        print(hidden.redacted(format_exception(error)), end="", file=sys.stderr)
        return Exit.FAULTY
    print(_json(prompt, workflow, hidden) if options.json else hidden.redacted(str(workflow)))
    return Exit.FINE


def _arguments(prompt: CompiledPrompt, words: Sequence[str]) -> dict[str, str]:
    """
    Return ``key=value`` words as a client would send them.

    Raises:
        ValueError: If a word has no ``=``, a key comes twice, or a file is no text.

        OSError: If a file that is named cannot be read.
    """
    takes_secrets = any(argument.arg.secret for argument in prompt.arguments.ordered)
    arguments = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            shown = "a word without '='" if takes_secrets else repr(word)
            msg = f"{shown} is no argument: write KEY=VALUE, or KEY=@FILE"
            raise ValueError(msg)
        if key in arguments:
            msg = f"{key!r} is given twice"
            raise ValueError(msg)
        arguments[key] = _value(prompt, key, value)
    return arguments


def _unread(prompt: CompiledPrompt, words: Sequence[str]) -> Redactor:
    """
    Return what hides secrets that could not be read: one that begins with ``@`` is taken for a file.
    """
    pairs = (word.partition("=") for word in words)
    return Redactor.of(prompt.arguments, {key: value.removeprefix("@") for key, _, value in pairs})


def _value(prompt: CompiledPrompt, key: str, value: str) -> str:
    """
    Return what stands behind ``=``, or what the file that it names holds.
    """
    if value.startswith("@@"):
        return value[1:]
    return _read(prompt, key, Path(value[1:])) if value.startswith("@") else value


def _read(prompt: CompiledPrompt, key: str, file: Path) -> str:
    """
    Return the content of *file* as a client would send it: as text, or as base64 for bytes.
    """
    argument = prompt.arguments.by_name.get(key)
    if argument is not None and bytes in (argument.annotation, *get_args(argument.annotation)):
        from pybase64 import b64encode_as_string

        return b64encode_as_string(file.read_bytes())
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        msg = f"{key!r} takes text, and {str(file)!r} is no UTF-8"
        raise ValueError(msg) from None


def _json(prompt: CompiledPrompt, workflow: Workflow, hidden: Redactor) -> str:
    """
    Return what the newest client of a handshake receives, but for what is hidden.
    """
    import msgspec

    from promptkit.protocol.lowering import lowering_for
    from promptkit.protocol.revisions import LATEST_HANDSHAKE

    result = msgspec.json.decode(lowering_for(LATEST_HANDSHAKE).result(prompt, workflow))
    return msgspec.json.format(msgspec.json.encode(_without(hidden, result)), indent=2).decode()


def _without(hidden: Redactor, value: Any) -> Any:
    """
    Return decoded JSON without what is hidden. Keys, and what tells kinds apart, are no secrets.
    """
    if isinstance(value, dict):
        return {key: item if key in _KINDS else _without(hidden, item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without(hidden, item) for item in value]
    return hidden.redacted(value) if isinstance(value, str) else value

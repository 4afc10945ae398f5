"""``promptkit render``: render one prompt and show it."""

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from promptkit.catalog import CompiledPrompt
from promptkit.cli import Exit
from promptkit.cli.recipes import authors_code, complain, load_catalog
from promptkit.errors import ArgumentErrors, PromptError, UnknownPrompt
from promptkit.messages import Workflow

__all__ = ["run"]


def run(options: Namespace) -> int:
    """
    Print a prompt as a transcript, or as the JSON that a client receives.

    Raises:
        LoadError: If there is nothing at the target.
    """
    catalog = load_catalog(options.target)
    try:
        prompt = catalog[options.name]
        arguments = _arguments(prompt, options.arguments)
    except UnknownPrompt as error:
        complain(catalog)
        print(f"promptkit: {error}", file=sys.stderr)
        return Exit.USAGE
    except (ValueError, OSError) as error:
        print(f"promptkit: {error}", file=sys.stderr)
        return Exit.USAGE
    try:
        with authors_code():
            workflow = prompt.render(arguments)
    except (ArgumentErrors, PromptError) as error:
        print(f"promptkit: {error}", file=sys.stderr)
        return Exit.FAULTY
    except (Exception, SystemExit):  # noqa: BLE001 (the author wants to see whatever it was)
        import traceback

        traceback.print_exc()
        return Exit.FAULTY
    print(_json(prompt, workflow) if options.json else workflow)
    return Exit.FINE


def _arguments(prompt: CompiledPrompt, words: Sequence[str]) -> dict[str, str]:
    """
    Return ``key=value`` words as a client would send them.

    Raises:
        ValueError: If a word has no ``=``, a key comes twice, or a file is no text.

        OSError: If a file that is named cannot be read.
    """
    arguments = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            msg = f"{word!r} is no argument: write KEY=VALUE, or KEY=@FILE"
            raise ValueError(msg)
        if key in arguments:
            msg = f"{key!r} is given twice"
            raise ValueError(msg)
        arguments[key] = _value(prompt, key, value)
    return arguments


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


def _json(prompt: CompiledPrompt, workflow: Workflow) -> str:
    """
    Return what the newest client of a handshake receives.
    """
    import msgspec

    from promptkit.protocol.lowering import lowering_for
    from promptkit.protocol.revisions import LATEST_HANDSHAKE

    result = lowering_for(LATEST_HANDSHAKE).result(prompt, workflow)
    return msgspec.json.format(result, indent=2).decode()

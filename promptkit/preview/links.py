"""Links: the address of a page with the values of its form."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from promptkit.catalog.arguments import Arguments
from promptkit.preview.control import typeable
from promptkit.preview.controls import is_upload

__all__ = ["query_of"]

#: Characters of a value that a link still holds.
_MAX_LINKED: Final = 4_000


def query_of(arguments: Arguments, given: Mapping[str, str]) -> str:
    """
    Return the query of a link that shows the same page.

    Secrets are left out, and so are uploads and long texts, which no address holds.

    Args:
        arguments:
            The arguments of a prompt.

        given:
            The values, as a client sends them.
    """
    linked = [(name, value) for name, value in given.items() if _is_linked(arguments, name, value)]
    return urlencode([_linked(name, value) for name, value in linked])


def _is_linked(arguments: Arguments, name: str, value: str) -> bool:
    argument = arguments.by_name.get(name)
    is_left_out = argument is not None and (argument.arg.secret or is_upload(argument))
    return not is_left_out and len(value) <= _MAX_LINKED


def _linked(name: str, value: str) -> tuple[str, str]:
    if not value:
        return f"{name}.empty", "on"
    if typeable(value):
        return name, value
    return f"{name}.base64", b64encode(value.encode(errors="surrogatepass")).decode()

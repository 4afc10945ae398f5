"""Forms: the arguments of a prompt as fields, and what a form or an address holds as wire values."""

from collections.abc import Iterable, Mapping
from urllib.parse import urlencode

import attrs
from starlette.datastructures import FormData, QueryParams

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.errors.exceptions import Fault

__all__ = ["Field", "fields_of", "query_of", "read"]


@attrs.frozen
class Field:
    """
    One argument as a control.

    Args:
        argument:
            The argument.

        value:
            What was typed.

        faults:
            What is wrong with it.
    """

    argument: Argument
    value: str
    faults: tuple[Fault, ...]


def fields_of(
    arguments: Arguments, given: Mapping[str, str], faults: Iterable[Fault] = ()
) -> tuple[Field, ...]:
    """Return the fields of a form, with what was typed and what is wrong with it."""
    found = tuple(faults)
    return tuple(
        Field(one, given.get(one.name, ""), tuple(fault for fault in found if fault.argument == one.name))
        for one in arguments.ordered
    )


def read(arguments: Arguments, form: FormData | QueryParams) -> dict[str, str]:
    """Return what a form or an address holds, as a client would send it."""
    return {
        name: text
        for name in arguments.by_name
        if isinstance(text := form.get(name), str) and (text or arguments.by_name[name].blank_is_value)
    }


def query_of(arguments: Arguments, given: Mapping[str, str]) -> str:
    """Return what an address holds; secrets are left out."""
    shown = {name: text for name, text in given.items() if name not in arguments.secret}
    return urlencode(shown, errors="replace")

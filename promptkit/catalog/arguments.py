"""
Arguments: what clients are told of a prompt's parameters, and how what they send is read.
"""

from collections.abc import Iterator, Mapping
from reprlib import Repr
from typing import Any, Final

import attrs
from msgspec import Struct

from promptkit.catalog.completion import Completer
from promptkit.conversion.errors import ABSENT, MAX_FAULTS, ConversionError
from promptkit.conversion.kinds import is_constrained, plain
from promptkit.conversion.parsing import Read
from promptkit.conversion.scalars import Reader
from promptkit.errors.exceptions import ArgumentErrors, Fault, nearest
from promptkit.language.arg import NO_DEFAULT, Arg

__all__ = ["Argument", "Arguments", "short", "shortened"]


#: What JSON calls otherwise than Python.
_JSON_NAMES: Final = {None: "null", True: "true", False: "false"}


class _Short(Repr):
    """
    Shows a value in a few words, whatever its size.
    """

    def repr_int(self, x: int, level: int) -> str:
        """
        Return a whole number; Python refuses to write one of very many digits.
        """
        if x.bit_length() > 200:
            return f"a whole number of {x.bit_length():,} bits"
        return super().repr_int(x, level)


short: Final = _Short()
short.maxstring = 60


class Argument(Struct, frozen=True):
    """
    One argument of a compiled prompt: what clients see of it, and how it is read.

    Args:
        name:
            The parameter's name.

        annotation:
            The parameter's type.

        default:
            What counts if it is not given; `NO_DEFAULT` if it has to be.

        reader:
            How its values are read.

        title:
            What people call it, if the author says.

        description:
            What to enter, for people.

        arg:
            All that the author says of it.

        completer:
            What to offer while someone types a value, if there is anything to offer.
    """

    name: str
    annotation: Any
    default: Any
    reader: Reader
    title: str | None
    description: str | None
    arg: Arg
    completer: Completer | None = None

    @property
    def required(self) -> bool:
        """
        Whether it has to be given.
        """
        return self.default is NO_DEFAULT

    @property
    def blank_is_value(self) -> bool:
        """
        Whether ``""`` is a value.

        Clients send empty form fields as ``""``, so for a parameter that is no string it
        means "not given".
        """
        return plain(self.annotation) is str or (
            is_constrained(self.annotation) and plain(self.annotation.__origin__) is str
        )

    def faults(self, value: Any, error: ConversionError) -> Iterator[Fault]:
        """
        Return what is wrong with each part of *value*. A secret is not repeated.
        """
        for part in error.parts:
            expected = part.expected or self.reader.expected
            yield Fault(
                self.name,
                _reason(part, value, expected, secret=self.arg.secret),
                expected if part.reason is None else None,
                None if self.arg.secret else part.nearest,
                "" if self.arg.secret else part.path,  # a path may hold keys, which the client chose
                None if self.arg.secret or part.got is ABSENT else shortened(_got(part, value)),
                () if part.path else self.reader.values,
            )


def shortened(value: Any) -> str:
    """
    Return *value* for machines, not longer than people would read.
    """
    if not isinstance(value, str):
        return short.repr(value)
    return value if len(value) <= short.maxstring else f"{value[: short.maxstring]}..."


def _got(part: ConversionError, value: Any) -> Any:
    """
    Return the part of *value* that is at fault.
    """
    return value if part.got is None and not part.path else part.got


def _reason(part: ConversionError, value: Any, expected: str, *, secret: bool) -> str:
    """
    Return what is wrong with a part of *value*, to be read after its name.
    """
    if part.got is ABSENT:
        return "is missing"
    if part.reason is not None:
        return "is refused" if secret else part.reason
    got = _got(part, value)
    shown = _JSON_NAMES[got] if got is None or isinstance(got, bool) else short.repr(got)
    return f"is not {expected}" if secret else f"is {shown}, not {expected}"


@attrs.frozen
class Arguments:
    """
    The arguments of one prompt, or the variables of one resource, in the order of its signature.
    """

    prompt: str
    ordered: tuple[Argument, ...]
    kind: str = "prompt"
    by_name: Mapping[str, Argument] = attrs.field(init=False, eq=False, repr=False)
    secret: frozenset[str] = attrs.field(init=False, eq=False, repr=False)
    _readers: Mapping[str, Read] = attrs.field(init=False, eq=False, repr=False)
    _required: tuple[str, ...] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "by_name", {argument.name: argument for argument in self.ordered})
        secret = frozenset(argument.name for argument in self.ordered if argument.arg.secret)
        object.__setattr__(self, "secret", secret)
        readers = {argument.name: argument.reader.read for argument in self.ordered}
        object.__setattr__(self, "_readers", readers)
        required = tuple(argument.name for argument in self.ordered if argument.required)
        object.__setattr__(self, "_required", required)

    @property
    def required(self) -> frozenset[str]:
        """
        The names of those that have to be given.
        """
        return frozenset(self._required)

    def read(self, given: Mapping[str, Any] | None) -> dict[str, Any]:
        """
        Return the keyword arguments that *given* stands for.

        Args:
            given:
                What a client sent, by argument name: strings, or other JSON values where
                the type has them. None is the same as nothing.

        Raises:
            ArgumentErrors: With every argument that is missing, unknown or does not fit.
        """
        values: dict[str, Any] = {}
        faults: list[Fault] = []
        readers = self._readers
        unknown = 0
        for name, value in (given or {}).items():
            if name not in readers:
                unknown += 1
                if unknown <= MAX_FAULTS:
                    faults.append(self._unknown(name))
            elif value or self._is_given(name, value):
                try:
                    values[name] = readers[name](value)
                except ConversionError as error:
                    faults += self.by_name[name].faults(value, error)
        for name in self._required:
            if name not in values and all(fault.argument != name for fault in faults):
                faults.append(Fault(name, "is missing", self.by_name[name].reader.expected))
        if faults:
            raise ArgumentErrors(self.prompt, tuple(faults), self.kind)
        return values

    def check_values(self, given: Mapping[str, Any], most: int) -> None:
        """
        Check that no text in *given* holds more than *most* values, before it is read: each takes memory.

        Raises:
            ArgumentErrors: With every argument that does.
        """
        reason = f"holds more than {most:,} values: send fewer of them"
        texts = {name: given[name] for name in self.by_name.keys() & given.keys()}
        faults = tuple(
            Fault(name, reason)
            for name, text in texts.items()
            if isinstance(text, str)
            and len(text) > most
            and (exceeds := self.by_name[name].reader.exceeds) is not None
            and exceeds(text, most)
        )
        if faults:
            raise ArgumentErrors(self.prompt, faults, self.kind)

    def _is_given(self, name: str, value: Any) -> bool:
        """
        Return whether *value* counts; ``""`` and null mostly say that nothing was given.
        """
        return value is not None and (value != "" or self.by_name[name].blank_is_value)

    def completer(self, name: str) -> Completer | None:
        """
        Return what completes the argument called *name*. Raises `ArgumentErrors` if there is none.
        """
        if name not in self.by_name:
            raise ArgumentErrors(self.prompt, (self._unknown(name),), self.kind)
        return self.by_name[name].completer

    def _unknown(self, name: str) -> Fault:
        """
        Return the fault of an argument that there is not.
        """
        names = [argument.name for argument in self.ordered]
        expected = f"one of {', '.join(names)}" if names else "no arguments"
        return Fault(name, f"is no argument of this {self.kind}", expected, nearest(name, names))

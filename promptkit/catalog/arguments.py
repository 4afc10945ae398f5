"""Arguments: how a prompt's parameters are shown to clients, and how the values they send are read."""

import os
from collections.abc import Container, Iterator, Mapping, Sequence
from reprlib import Repr
from typing import TYPE_CHECKING, Any, Final, get_args

from msgspec import Struct, structs

from promptkit.errors.exceptions import ArgumentsError, InvalidArgument
from promptkit.errors.suggestions import nearest
from promptkit.language.annotations import NO_DEFAULT, Arg
from promptkit.types.errors import ABSENT, MAX_FAULTS, ConversionError
from promptkit.types.kinds import is_bytes, is_constrained, is_list, plain
from promptkit.types.scalar_parsing import Read, holds_more
from promptkit.types.scalars import Reader
from promptkit.types.unstructuring import can_be_sent, text_of

if TYPE_CHECKING:
    from promptkit.catalog.completion import Completer  # many arguments have none

#: How errors show these values: as JSON, which clients know, not as Python.
_JSON_NAMES: Final = {None: "null", True: "true", False: "false"}


class _Short(Repr):
    """A `Repr` that also takes integers of any size."""

    def repr_int(self, x: int, level: int) -> str:
        # Python raises ValueError for an integer of too many digits.
        if x.bit_length() > 200:
            return f"a whole number of {x.bit_length():,} bits"
        return super().repr_int(x, level)


#: Shortens values for error messages.
short: Final = _Short()
short.maxstring = 60


class Argument(Struct, frozen=True):
    """
    One argument of a compiled prompt: how clients see it, and how its values are read.

    Args:
        name:
            The parameter's name.

        annotation:
            The parameter's type.

        default:
            The function's own default; `NO_DEFAULT` if it has none.

        reader:
            Reads its values.

        title:
            A name for people, if the author gave one.

        description:
            Tells people what to enter.

        arg:
            What the author declared with `Arg`.

        completer:
            Completes its values, if the author or the type provides completions.
    """

    name: str
    annotation: Any
    default: Any
    reader: Reader
    title: str | None
    description: str | None
    arg: Arg
    completer: "Completer | None" = None

    @property
    def has_default(self) -> bool:
        """Whether the function itself has a default, whatever the environment holds."""
        return self.default is not NO_DEFAULT

    @property
    def required(self) -> bool:
        """Whether clients have to send it: it has no default, and names no environment variable."""
        return self.default is NO_DEFAULT and self.arg.env is None

    @property
    def examples(self) -> list[Any]:
        """The examples of its author that a client could send."""
        return list(filter(can_be_sent, self.arg.examples))

    @property
    def default_text(self) -> str | None:
        """The default that stands in the environment at this moment, as a client would send it."""
        text = os.environ.get(self.arg.env) if self.arg.env else None
        if not (text or self.blank_is_value):
            return None
        # A variable may hold any bytes; what is no text is replaced, as in a client's text.
        return text and text.encode(errors="replace").decode()

    @property
    def blank_is_value(self) -> bool:
        """
        Whether ``""`` is a value.

        Clients send empty form fields as ``""``, which means "not given" for all types but strings.
        """
        return takes_blank(self.annotation)

    @property
    def takes_bytes(self) -> bool:
        """Whether people give its value as a file, or as several."""
        core = plain(self.annotation, core=True)
        return is_bytes(core) or (is_list(core) and is_bytes(plain(get_args(core)[0], core=True)))

    def faults(self, value: Any, error: ConversionError) -> Iterator[InvalidArgument]:
        """One fault for each wrong part of *value*. The value of a secret is not repeated."""
        for part in error.parts:
            expected = part.expected or self.reader.expected
            yield InvalidArgument(
                self.name,
                _reason(part, value, expected, secret=self.arg.secret),
                expected if part.reason is None else None,
                None if self.arg.secret else part.nearest,
                "" if self.arg.secret else part.path,  # a path may hold keys that the client sent
                None if self.arg.secret or part.got is ABSENT else shortened(_got(part, value)),
                () if part.path else self.reader.values,
            )


def takes_blank(annotation: Any) -> bool:
    """Return whether ``""`` is a value of a type; of others, clients send it for what is not given."""
    return plain(annotation) is str or (is_constrained(annotation) and plain(annotation.__origin__) is str)


def shortened(value: Any) -> str:
    """*value* as text for an error's data, cut to a readable length."""
    if not isinstance(value, str):
        return short.repr(value)
    return value if len(value) <= short.maxstring else f"{value[: short.maxstring]}..."


def _got(part: ConversionError, value: Any) -> Any:
    return value if part.got is None and not part.path else part.got


def _reason(part: ConversionError, value: Any, expected: str, *, secret: bool) -> str:
    """What an error says after the argument's name, such as ``is missing``."""
    if part.got is ABSENT:
        return "is missing"
    if part.reason is not None and not secret:
        return part.reason
    if part.reason is not None and part.expected is None:
        return "is refused"
    got = _got(part, value)
    shown = _JSON_NAMES[got] if got is None or isinstance(got, bool) else short.repr(got)
    return f"is not {expected}" if secret else f"is {shown}, not {expected}"


class Arguments(Struct, frozen=True):
    """
    The arguments of one prompt, or the variables of one resource.

    Args:
        owner:
            The name of the prompt or resource, for errors.

        ordered:
            The arguments, in the order of the signature.

        kind:
            What *owner* is: ``prompt`` or ``resource``.
    """

    owner: str
    ordered: tuple[Argument, ...]
    kind: str = "prompt"
    by_name: Mapping[str, Argument] = {}
    secret: frozenset[str] = frozenset()
    _readers: Mapping[str, Read] = {}
    _required: tuple[str, ...] = ()
    _in_environment: tuple[Argument, ...] = ()

    def __post_init__(self) -> None:
        ordered = self.ordered
        for field, value in (
            ("by_name", {argument.name: argument for argument in ordered}),
            ("secret", frozenset(argument.name for argument in ordered if argument.arg.secret)),
            ("_readers", {argument.name: argument.reader.read for argument in ordered}),
            ("_required", tuple(argument.name for argument in ordered if argument.required)),
            ("_in_environment", tuple(argument for argument in ordered if argument.arg.env)),
        ):
            structs.force_setattr(self, field, value)

    @property
    def required(self) -> frozenset[str]:
        """The names of all arguments that clients have to send."""
        return frozenset(self._required)

    @property
    def examples(self) -> Sequence[Mapping[str, Any]]:
        """
        The values by name that enter the examples; none if an argument has neither a default nor an example.

        The first has what is required alone. Then there are as many as the argument with the most examples
        has: the first with the first example of each argument, the second with the second ones, and the first
        again where there are no more. An optional argument without examples is left out.
        """
        examples = {argument.name: argument.examples for argument in self.ordered}
        # Whether the environment has a value differs from one machine to the next.
        needed = [argument.name for argument in self.ordered if not argument.has_default]
        if not all(examples[name] for name in needed):
            return ()
        given = {name: values for name, values in examples.items() if values}
        rounds = range(max(map(len, given.values()), default=0))
        found = [
            {name: values[number] if number < len(values) else values[0] for name, values in given.items()}
            for number in rounds
        ]
        least = {name: examples[name][0] for name in needed}
        return least, *(values for values in found if values != least)

    @property
    def example_texts(self) -> tuple[dict[str, str], ...]:
        """The same, as a client sends it."""
        return tuple({name: text_of(value) for name, value in given.items()} for given in self.examples)

    def read(self, given: Mapping[str, Any] | None, known: Mapping[str, Any] = {}) -> dict[str, Any]:
        """
        Convert a client's values to keyword arguments for the author's function.

        Args:
            given:
                The values by argument name: strings, or other JSON values where the type allows
                them. None means no values.

            known:
                Values that have been read already.

        Raises:
            ArgumentsError: If any argument is missing, unknown or wrong; it lists them all.
        """
        values: dict[str, Any] = dict(known) if known else {}
        faults: list[InvalidArgument] = []
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
                faults.append(InvalidArgument(name, "is missing", self.by_name[name].reader.expected))
        if self._in_environment:
            self._read_environment(values, faults)
        if faults:
            raise ArgumentsError(self.owner, tuple(faults), self.kind)
        return values

    def environment_values(self, given: Container[str]) -> dict[str, Any]:
        """
        Return the values that the environment has at this moment for arguments that are not *given*.

        Raises:
            ArgumentsError: With every variable that has a wrong value, or that is not set while its
                argument has no other default.
        """
        values: dict[str, Any] = {}
        faults: list[InvalidArgument] = []
        self._read_environment(values, faults, given)
        if faults:
            raise ArgumentsError(self.owner, tuple(faults), self.kind)
        return values

    def _read_environment(
        self, values: dict[str, Any], faults: list[InvalidArgument], given: Container[str] = ()
    ) -> None:
        """Add to *values*, or to *faults*, what the environment has for arguments that are in neither."""
        told = {fault.argument for fault in faults}
        for argument in self._in_environment:
            name, variable, text = argument.name, argument.arg.env, argument.default_text
            if name in values or name in told or name in given:
                continue
            if text is not None:
                try:
                    values[name] = self._readers[name](text)
                except ConversionError as error:
                    faults += (
                        structs.replace(fault, reason=f"is read from ${variable} and {fault.reason}")
                        for fault in argument.faults(text, error)
                    )
            elif argument.default is NO_DEFAULT:
                reason = f"is missing, and the environment variable {variable} is not set"
                faults.append(InvalidArgument(name, reason, argument.reader.expected))

    def check_values(self, given: Mapping[str, Any], max_values: int) -> None:
        """
        Refuse texts that hold too many values, before parsing them takes memory.

        Raises:
            ArgumentsError: If any argument holds more than *max_values*; it lists them all.
        """
        reason = f"holds more than {max_values:,} values: send fewer of them"
        texts = {name: given[name] for name in self.by_name if name in given}
        faults = tuple(
            InvalidArgument(name, reason)
            for name, text in texts.items()
            if isinstance(text, str)
            and len(text) > max_values
            and self.by_name[name].reader.is_several
            and holds_more(text, max_values)
        )
        if faults:
            raise ArgumentsError(self.owner, faults, self.kind)

    def _is_given(self, name: str, value: Any) -> bool:
        return value is not None and (value != "" or self.by_name[name].blank_is_value)

    def completer(self, name: str) -> "Completer | None":
        """The completer of an argument, if it has one. Raises `ArgumentsError` for an unknown name."""
        if name not in self.by_name:
            raise ArgumentsError(self.owner, (self._unknown(name),), self.kind)
        return self.by_name[name].completer

    def _unknown(self, name: str) -> InvalidArgument:
        names = [argument.name for argument in self.ordered]
        expected = f"one of {', '.join(names)}" if names else "no arguments"
        return InvalidArgument(
            name, f"is not an argument of this {self.kind}", expected, nearest(name, names)
        )

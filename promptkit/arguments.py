"""
Arguments: what clients are told of a prompt's parameters, and how what they send is read.
"""

from collections.abc import Iterator, Mapping
from datetime import date, time
from decimal import Decimal
from enum import Enum
from reprlib import Repr
from typing import Any, Final, get_args

import attrs
from msgspec import Struct

from promptkit.completion import Completer
from promptkit.diagnostics import Report, Rule
from promptkit.errors import ArgumentErrors, Fault, nearest
from promptkit.misfits import ABSENT, ENOUGH, Misfit
from promptkit.readers import Reader, is_constrained, is_literal, is_union, plain, reader_of
from promptkit.scalars import Read
from promptkit.signature import NO_DEFAULT, Arg, Parameter, Signature
from promptkit.writing import text_of

__all__ = ["Argument", "Arguments", "compile_arguments", "fits", "type_name"]

#: What people separate by commas.
_PLAIN: Final = (str, int, float, Decimal, date, time, Enum)

#: Types of defaults that hold no date and no time.
_TIMELESS: Final = (str, int, float, bytes, Enum, type(None))

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


_short: Final = _Short()
_short.maxstring = 60


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

    def faults(self, value: Any, misfit: Misfit) -> Iterator[Fault]:
        """
        Return what is wrong with each part of *value*. A secret is not repeated.
        """
        for part in misfit.parts:
            expected = part.expected or self.reader.expected
            yield Fault(
                self.name,
                _reason(part, value, expected, secret=self.arg.secret),
                expected if part.reason is None else None,
                None if self.arg.secret else part.nearest,
                "" if self.arg.secret else part.path,  # a path may hold keys, which the client chose
                None if self.arg.secret or part.got is ABSENT else _shortened(_got(part, value)),
                () if part.path else self.reader.values,
            )


def _shortened(value: Any) -> str:
    """
    Return *value* for machines, not longer than people would read.
    """
    if not isinstance(value, str):
        return _short.repr(value)
    return value if len(value) <= _short.maxstring else f"{value[: _short.maxstring]}..."


def _got(part: Misfit, value: Any) -> Any:
    """
    Return the part of *value* that is at fault.
    """
    return value if part.got is None and not part.path else part.got


def _reason(part: Misfit, value: Any, expected: str, *, secret: bool) -> str:
    """
    Return what is wrong with a part of *value*, to be read after its name.
    """
    if part.got is ABSENT:
        return "is missing"
    if part.reason is not None:
        return "is refused" if secret else part.reason
    got = _got(part, value)
    shown = _JSON_NAMES[got] if got is None or isinstance(got, bool) else _short.repr(got)
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
                if unknown <= ENOUGH:
                    faults.append(self._unknown(name))
            elif value or self._is_given(name, value):
                try:
                    values[name] = readers[name](value)
                except Misfit as misfit:
                    faults += self.by_name[name].faults(value, misfit)
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


def compile_arguments(name: str, signature: Signature, report: Report, *, kind: str = "prompt") -> Arguments:
    """
    Choose how each parameter is read and what clients are told about it.

    Args:
        name:
            What the prompt is called, or the resource.

        signature:
            What its function may be asked.

        report:
            Receives every type that is not supported and every default that does not fit.

        kind:
            What it is: a prompt or a resource.
    """
    found = (_compile_argument(parameter, report) for parameter in signature.parameters)
    return Arguments(name, tuple(argument for argument in found if argument is not None), kind)


def _compile_argument(parameter: Parameter, report: Report) -> Argument | None:
    """
    Return one parameter as an argument, or None if its type is not supported.
    """
    annotation = parameter.annotation
    if parameter.arg.timezone is not None:
        from promptkit.time_zones import in_zone

        annotation = in_zone(parameter, report)
    reader = reader_of(annotation)
    if reader is None:
        report.add(
            Rule.UNSUPPORTED_TYPE,
            f"no client can fill parameter {parameter.name!r} of type {type_name(parameter.annotation)}",
            _IN_ANNOTATED
            if isinstance(parameter.annotation, Arg)
            else "use a type that text or JSON can write, or teach this one with promptkit.register_type",
            parameter.name,
        )
        return None
    if not parameter.required and not fits(parameter.default, parameter.annotation):
        report.add(
            Rule.DEFAULT_MISFIT,
            f"parameter {parameter.name!r} has {_default(parameter)}, "
            f"which is not {type_name(parameter.annotation)}",
            _default_remedy(parameter),
            parameter.name,
        )
    elif not parameter.required and _may_hold_time(parameter.default):
        from promptkit.time_zones import check_default

        check_default(parameter, annotation, report)
    return Argument(
        name=parameter.name,
        annotation=annotation,
        default=parameter.default,
        reader=reader,
        title=parameter.arg.title,
        description=_description(parameter, reader),
        arg=parameter.arg,
        completer=_completer(parameter, reader, report),
    )


def _may_hold_time(default: Any) -> bool:
    """Return whether a default is worth importing `promptkit.time_zones` for."""
    items = default if isinstance(default, list | tuple | set | frozenset) else (default,)
    return not all(isinstance(item, _TIMELESS) for item in items)


def _completer(parameter: Parameter, reader: Reader, report: Report) -> Completer | None:
    """
    Return what to offer for one parameter: what its author says, or else what its type implies.

    Nothing is offered for a secret.
    """
    source = reader.values if parameter.arg.complete is None else parameter.arg.complete
    if parameter.arg.secret:
        if parameter.arg.complete is not None:
            _refuse_completion(parameter, "it is a secret", "leave out complete=, or secret=True", report)
        return None
    if isinstance(source, tuple) and not source:
        return None
    try:
        return Completer(source)
    except Exception as error:  # noqa: BLE001 (an author's values may raise anything when they are read)
        fault, colon, remedy = str(error).partition(": ")
        remedy = remedy if colon else "give complete= a list of values, or a function of what was typed"
        _refuse_completion(parameter, fault or type(error).__name__, remedy, report)
        return None


def _refuse_completion(parameter: Parameter, fault: str, remedy: str, report: Report) -> None:
    """
    Report that what the author offers for a parameter cannot be offered.
    """
    message = f"parameter {parameter.name!r} cannot be completed: {fault}"
    report.add(Rule.BAD_COMPLETION, message, remedy, parameter.name)


#: Where people who know other frameworks do not put it.
_IN_ANNOTATED: Final = "write it inside of the annotation, as in Annotated[str, Arg('...')]"


def _default_remedy(parameter: Parameter) -> str:
    """
    Return what to do about a default that does not fit.
    """
    if isinstance(parameter.default, Arg):
        return _IN_ANNOTATED
    if parameter.default is None:
        return f"write '{type_name(parameter.annotation)} | None', or give another default"
    return "correct the default, or widen the annotation"


def _default(parameter: Parameter) -> str:
    """
    Return a parameter's default as an error names it. A secret is not repeated.
    """
    return "a default" if parameter.arg.secret else f"the default {_short.repr(parameter.default)}"


def type_name(annotation: Any) -> str:
    """
    Return a type as the author would write it.
    """
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")


def _description(parameter: Parameter, reader: Reader) -> str | None:
    """
    Return what clients show: the author's words, then what the type implies, in brackets.
    """
    arg = parameter.arg
    clauses = [reader.hint]
    if arg.examples:
        clauses.append(f"for example {', '.join(map(_shown, arg.examples))}")
    if not (parameter.required or arg.secret) and _says_something(parameter.default):
        clauses.append(f"default {_shown(parameter.default)}")
    implied = "; ".join(filter(None, clauses))
    if not arg.description:
        return implied or None
    return f"{arg.description} ({implied})" if implied else arg.description


def _says_something(default: Any) -> bool:
    """
    Return whether people want to know of *default*: it is neither None nor empty.
    """
    return default is not None and (not hasattr(default, "__len__") or len(default) > 0)


def _shown(value: Any) -> str:
    """
    Return a default or an example as people would enter it.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | set | frozenset) and all(isinstance(item, _PLAIN) for item in value):
        return ", ".join(map(_shown, value))
    try:
        return _shortened(" ".join(text_of(value).split()))
    except TypeError:  # of a default that does not fit its type
        return _short.repr(value)


def fits(value: Any, annotation: Any) -> bool:
    """
    Return whether *value* is of the type that *annotation* says.

    The common cases are told apart here; typeguard, which takes longer to import than
    serving does to start, decides the others.
    """
    if type(value) is annotation:
        return True
    if is_literal(annotation) and any(type(value) is type(v) and value == v for v in get_args(annotation)):
        return True
    if is_union(annotation) and any(type(value) is member for member in get_args(annotation)):
        return True
    from typeguard import CollectionCheckStrategy, TypeCheckError, check_type

    try:
        check_type(value, annotation, collection_check_strategy=CollectionCheckStrategy.ALL_ITEMS)
    except TypeCheckError:
        return False
    return True

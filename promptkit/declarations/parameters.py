"""How each parameter of a prompt or resource is read, and what clients are told about it."""

import inspect
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, get_args, get_origin

from promptkit.catalog.arguments import Argument, Arguments, short, shortened, takes_blank
from promptkit.catalog.completion import Completer
from promptkit.declarations.options import check_sendable
from promptkit.declarations.signature import Parameter, Signature, read_signature
from promptkit.declarations.time_zones import check_default, in_zone
from promptkit.declarations.unusable_types import (
    hint_for_unreadable,
    no_type,
    refused_bounds,
    unreadable_part,
)
from promptkit.errors.diagnostics import Location, Report
from promptkit.errors.rules import Rule
from promptkit.language.annotations import Arg
from promptkit.language.context import Context
from promptkit.language.validation import describe
from promptkit.types.descriptions import default_clause, described
from promptkit.types.functions import FORWARD
from promptkit.types.kinds import fits, is_list, is_literal, plain, type_name
from promptkit.types.readers import reader_of
from promptkit.types.scalars import Reader, scalar_of_value
from promptkit.types.unstructuring import is_row, text_of, typed_text


def compile_arguments(name: str, signature: Signature, report: Report, *, kind: str = "prompt") -> Arguments:
    """
    Choose how each parameter is read and what clients are told about it.

    Args:
        name:
            The name of the prompt or resource.

        signature:
            The signature of its function.

        report:
            Receives every type that is not supported and every default that does not fit.

        kind:
            ``"prompt"`` or ``"resource"``.
    """
    found = (_compile_argument(parameter, report, kind) for parameter in signature.parameters)
    return Arguments(name, tuple(argument for argument in found if argument is not None), kind)


def _compile_argument(parameter: Parameter, report: Report, kind: str) -> Argument | None:
    """Return one parameter as an argument, or None if its type is not supported."""
    annotation = parameter.annotation
    if parameter.arg.env is not None:
        _check_variable(parameter, report, kind)
    if parameter.arg.timezone is not None:
        annotation = in_zone(parameter, report)
    reader = reader_of(annotation)
    if reader is None:
        _report_type(parameter, report)
        return None
    if not parameter.required:
        _check_default(parameter, annotation, report)
    description = _description(parameter, reader)
    told = f"parameter {parameter.name!r}: what clients are told of it"
    check_sendable((parameter.arg.title, description), told, report, parameter.name)
    return Argument(
        name=parameter.name,
        annotation=annotation,
        default=parameter.default,
        reader=reader,
        title=parameter.arg.title,
        description=description,
        arg=parameter.arg,
        completer=_completer(parameter, reader, report),
    )


def _check_variable(parameter: Parameter, report: Report, kind: str) -> None:
    """Report an environment variable that cannot be looked up, and one for a resource."""
    named = f"parameter {parameter.name!r} has env={parameter.arg.env!r}"
    if kind == "resource":
        fault = f"{named}, but a URI has to say all that its document depends on"
        report.add(Rule.BAD_VARIABLE, fault, "leave env= out, or read it in the function", parameter.name)
    elif not parameter.arg.env or {"=", "$", "\0"}.intersection(parameter.arg.env):
        fault = f"{named}, which cannot be the name of an environment variable"
        hint = "give its name alone, without $ and value, as in env='TEAM'"
        report.add(Rule.BAD_VARIABLE, fault, hint, parameter.name)


def _report_type(parameter: Parameter, report: Report) -> None:
    name, annotation = parameter.name, parameter.annotation
    part, place = unreadable_part(annotation, name)
    inside = "" if place == name else f": {place} is of type {type_name(part)}"
    fault = f"no client can fill parameter {name!r} of type {type_name(annotation)}{inside}"
    hint = _IN_ANNOTATED if isinstance(annotation, Arg) else hint_for_unreadable(part)
    if (bounds := refused_bounds(part)) is not None:
        names, hint = bounds
        kind, where = type_name(part.__origin__), "" if place == name else f" at {place}"
        fault = f"parameter {name!r} has bounds{where} that {kind} does not take: {names}"
    elif (found := no_type(part, is_part=place != name)) is not None:
        what, hint = found
        said = f"has {what} at {place}" if place != name else f"is annotated with {what}"
        fault = f"parameter {name!r} {said}, which is no type"
    report.add(Rule.UNSUPPORTED_TYPE, fault, hint, name)


def _check_default(parameter: Parameter, annotation: Any, report: Report) -> None:
    if not fits(parameter.default, parameter.annotation):
        message = (
            f"parameter {parameter.name!r} has {_default(parameter)}, "
            f"which is not {type_name(parameter.annotation)}"
        )
        report.add(Rule.DEFAULT_MISFIT, message, _default_hint(parameter), parameter.name)
    elif _may_have_offset(parameter.default):
        check_default(parameter, annotation, report)


def _may_have_offset(default: Any) -> bool:
    """Tell whether to check a default with `promptkit.declarations.time_zones`, which is slow to import."""
    items = default if isinstance(default, list | tuple | set | frozenset) else (default,)
    return not all(item is None or isinstance(item, Enum) or _has_no_offset(item) for item in items)


def _has_no_offset(value: Any) -> bool:
    scalar = scalar_of_value(value)
    return scalar is not None and not scalar.may_have_offset


def _completer(parameter: Parameter, reader: Reader, report: Report) -> "Completer | None":
    """Return the author's completions, or else those of the type. A secret is never completed."""
    items = _reader_of_items(parameter.annotation, reader)
    source = (items or reader).values if parameter.arg.complete is None else parameter.arg.complete
    if parameter.arg.secret:
        if parameter.arg.complete is not None:
            _refuse_completion(parameter, "it is a secret", "leave out complete=, or secret=True", report)
        return None
    if isinstance(source, tuple) and not source:
        return None

    try:
        return Completer(source, is_list=items is not None)
    except Exception as error:  # noqa: BLE001 (an author's values may raise anything when they are read)
        fault, colon, hint = str(error).partition(": ")
        if not (isinstance(error, TypeError) and colon):
            fault = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            hint = "give complete= a list of values, or a function of what was typed"
        _refuse_completion(parameter, fault, hint, report)
        return None


def _reader_of_items(annotation: Any, reader: Reader) -> Reader | None:
    """Return the reader of the items of a list that people type one after another; None for other types."""
    core = plain(annotation, core=True)
    return reader_of(get_args(core)[0]) if is_list(core) and not reader.is_json else None


def _refuse_completion(parameter: Parameter, fault: str, hint: str, report: Report) -> None:
    message = f"parameter {parameter.name!r} cannot be completed: {fault}"
    report.add(Rule.BAD_COMPLETION, message, hint, parameter.name)


#: For people who write an `Arg` as the annotation or the default, as in other frameworks.
_IN_ANNOTATED: Final = "write it inside the annotation, as in Annotated[str, Arg('...')]"


def _default_hint(parameter: Parameter) -> str:
    if isinstance(parameter.default, Arg):
        return _IN_ANNOTATED
    if parameter.default is None:
        return f"write '{type_name(parameter.annotation)} | None', or give another default"
    core, kind = plain(parameter.annotation, core=True), type(parameter.default)
    if is_list(core) and kind in (list, tuple, set, frozenset):
        item = type_name(get_args(core)[0])
        meant = f"tuple[{item}, ...]" if kind is tuple else f"{kind.__name__}[{item}]"
        return f"write '{meant}', or give a default that is a {type_name(get_origin(core))}"
    return "correct the default, or widen the annotation"


def _default(parameter: Parameter) -> str:
    # Errors must not repeat a secret.
    return "a default" if parameter.arg.secret else f"the default {short.repr(parameter.default)}"


def _description(parameter: Parameter, reader: Reader) -> str | None:
    """Return what clients show: the author's words, then what the type implies, in brackets."""
    arg = parameter.arg
    examples = f"for example {', '.join(map(_shown, arg.examples))}" if arg.examples else ""
    is_told = not (parameter.required or arg.secret) and _says_something(parameter.default)
    default = default_clause(arg.env, [_shown(parameter.default)] if is_told else ())
    return described(arg.description, (reader.hint, examples, default)) or None


def _says_something(default: Any) -> bool:
    """Tell whether a default is worth showing: it is neither None nor empty."""
    try:
        return default is not None and len(default) > 0
    except TypeError:  # a number, or a class, which is a wrong default
        return True


def _shown(value: Any) -> str:
    """Return a default or an example as people would enter it, in one line, and in short."""
    try:
        if is_row(value):
            return ", ".join(map(_shown, value))
        return shortened(" ".join(typed_text(value).split()))
    except TypeError:  # a wrong default may be of any type
        return short.repr(value)


class DirectArguments:
    """
    What Python code gives a prompt that it calls: checked, and completed, before the function is called.

    Args:
        owner:
            The name of the prompt.

        function:
            Its function.

        names:
            Local names that its annotations may use.

        location:
            Where it is defined.
    """

    def __init__(
        self, owner: str, function: Callable[..., Any], names: Mapping[str, Any], location: Location
    ) -> None:
        ignored = Report("", location)  # compiling the prompt reports the same
        self._owner = owner
        self._binder = inspect.signature(function, **FORWARD)
        self._signature = read_signature(function, names, ignored)
        in_environment = tuple(found for found in self._signature.parameters if found.arg.env)
        self._in_environment = compile_arguments(owner, Signature(in_environment), ignored)

    def checked(self, args: tuple[Any, ...], kwargs: Any) -> Any:
        """
        Return the keyword arguments, with those of the environment and an empty `Context`.

        Raises:
            TypeError: If an argument is not of its parameter's type.

            ArgumentsError: If one is left out whose environment variable has a wrong value or is not set.
        """
        try:
            given = self._binder.bind_partial(*args, **kwargs).arguments
        except TypeError:
            return kwargs  # the call itself will raise Python's own error
        for parameter in self._signature.parameters:
            if parameter.name in given and not fits(given[parameter.name], parameter.annotation):
                raise self._misfit(parameter, given[parameter.name])
        context = self._signature.context
        kwargs = {**self._in_environment.environment_values(given), **kwargs}
        if context is None:
            return kwargs

        if not isinstance(given.get(context, Context()), Context | None):
            raise self._misfit(Parameter(context, Context), given[context])
        return kwargs if context in given else {**kwargs, context: Context()}

    def sent(self, args: tuple[Any, ...], kwargs: Any) -> dict[str, str]:
        """
        Return what a client sends for the same call. What is missing is left to be found out then.

        Raises:
            TypeError: If an argument is not of its parameter's type, there is no such parameter, or a client
                has no way to send it.
        """
        given = self._binder.bind_partial(*args, **kwargs).arguments
        self.checked(args, kwargs)
        texts = {}
        for parameter in self._signature.parameters:
            name, value = parameter.name, given.get(parameter.name, parameter.default)
            if value is parameter.default:
                continue
            text = None if value is None else text_of(value)
            if text is None or (not text and not takes_blank(parameter.annotation)):
                msg = f"parameter {name!r} is {value!r}, which no client can send: it means the default"
                raise TypeError(msg)
            texts[name] = text
        return texts

    def _misfit(self, parameter: Parameter, value: object) -> TypeError:
        expected = type_name(parameter.annotation)
        if any(map(is_literal, (parameter.annotation, *get_args(parameter.annotation)))):
            reader = reader_of(parameter.annotation)
            expected = reader.expected if reader else expected
        shown = f"{type(value).__name__} value" if parameter.arg.secret else describe(value)
        return TypeError(
            f"prompt {self._owner!r}: parameter {parameter.name!r} takes {expected}, not {shown}"
        )

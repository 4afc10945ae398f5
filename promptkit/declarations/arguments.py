"""The arguments of a prompt or resource: a reader and metadata for each parameter of its function."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

from promptkit.catalog.arguments import Argument, Arguments, takes_blank
from promptkit.catalog.completion import Completer
from promptkit.declarations.options import check_sendable
from promptkit.declarations.signature import Parameter, Signature, read_signature
from promptkit.declarations.unusable_types import (
    describe_non_type,
    find_unsupported_constraint,
    hint_for_unreadable_type,
    unreadable_part,
)
from promptkit.errors.diagnostics import Location, Report
from promptkit.errors.rules import Rule
from promptkit.language.annotations import Arg
from promptkit.language.context import Context
from promptkit.language.validation import describe
from promptkit.types.conversion_reasons import short, shortened
from promptkit.types.descriptions import default_clause, example_clause, join_description
from promptkit.types.functions import FORWARD_REFERENCES
from promptkit.types.kinds import has_type, is_list, is_literal, type_name, unwrap_type
from promptkit.types.parsing import reader_for
from promptkit.types.scalar_types import Reader
from promptkit.types.unstructuring import is_inline_list, text_as_entered, text_of


def compile_arguments(name: str, signature: Signature, report: Report, *, kind: str = "prompt") -> Arguments:
    """
    Return the arguments of a prompt or resource, with a reader and metadata for each.

    Args:
        name:
            The name of the prompt or resource.

        signature:
            The signature of its function.

        report:
            Receives a diagnostic for every problem, such as an invalid default. Parameters of an unsupported
            type are omitted from the result.

        kind:
            ``"prompt"`` or ``"resource"``.
    """
    arguments = (_compile_argument(parameter, report, kind) for parameter in signature.parameters)
    return Arguments(name, tuple(argument for argument in arguments if argument is not None), kind)


def _compile_argument(parameter: Parameter, report: Report, kind: str) -> Argument | None:
    """Return the argument for a parameter, or None if its type is not supported."""
    annotation = parameter.annotation
    if parameter.arg.env is not None:
        _check_variable(parameter, report, kind)
    reader = reader_for(annotation)
    if reader is None:
        _report_type(parameter, report)
        return None
    if not parameter.required:
        _check_default(parameter, report)
    description = _format_description(parameter, reader)
    subject = f"parameter {parameter.name!r}: the description for clients"
    check_sendable((parameter.arg.title, description), subject, report, parameter.name)
    return Argument(
        name=parameter.name,
        annotation=annotation,
        default=parameter.default,
        reader=reader,
        title=parameter.arg.title,
        description=description,
        arg=parameter.arg,
        completer=_make_completer(parameter, reader, report),
    )


def _check_variable(parameter: Parameter, report: Report, kind: str) -> None:
    """Report an invalid environment variable name, and any environment variable of a resource."""
    subject = f"parameter {parameter.name!r} has env={parameter.arg.env!r}"
    if kind == "resource":
        message = f"{subject}, but a resource can depend only on its URI"
        report.add(
            Rule.BAD_VARIABLE, message, "remove env=, or read the variable in the function", parameter.name
        )
    elif not parameter.arg.env or {"=", "$", "\0"}.intersection(parameter.arg.env):
        message = f"{subject}, which cannot be the name of an environment variable"
        hint = "give only its name, without '$' or a value, for example env='TEAM'"
        report.add(Rule.BAD_VARIABLE, message, hint, parameter.name)


def _report_type(parameter: Parameter, report: Report) -> None:
    name, annotation = parameter.name, parameter.annotation
    part, path = unreadable_part(annotation, name)
    detail = "" if path == name else f": {path} is of type {type_name(part)}"
    message = f"no client can fill parameter {name!r} of type {type_name(annotation)}{detail}"
    hint = _IN_ANNOTATED if isinstance(annotation, Arg) else hint_for_unreadable_type(part)
    if (unsupported := find_unsupported_constraint(part)) is not None:
        constraint, hint = unsupported
        kind, location = type_name(part.__origin__), "" if path == name else f" at {path}"
        message = f"parameter {name!r} has a constraint{location} that {kind} does not support: {constraint}"
    elif (non_type := describe_non_type(part)) is not None:
        description, hint = non_type
        problem = f"has {description} at {path}" if path != name else f"is annotated with {description}"
        message = f"parameter {name!r} {problem}, which is not a type"
    report.add(Rule.UNSUPPORTED_TYPE, message, hint, name)


def _check_default(parameter: Parameter, report: Report) -> None:
    if not has_type(parameter.default, parameter.annotation):
        message = (
            f"parameter {parameter.name!r} has {_format_default(parameter)}, "
            f"which is not of type {type_name(parameter.annotation)}"
        )
        report.add(Rule.INVALID_DEFAULT, message, _default_hint(parameter), parameter.name)


def _make_completer(parameter: Parameter, reader: Reader, report: Report) -> Completer | None:
    """Return a completer for the author's or the type's values; None for a secret, or if there are none."""
    items = _item_reader(parameter.annotation, reader)
    source = (items or reader).values if parameter.arg.complete is None else parameter.arg.complete
    if parameter.arg.secret:
        if parameter.arg.complete is not None:
            _report_completion(parameter, "it is a secret", "remove complete= or secret=True", report)
        return None
    if isinstance(source, tuple) and not source:
        return None

    try:
        return Completer(source, is_list=items is not None)
    except Exception as error:  # noqa: BLE001 (reading an author's values may raise anything)
        reason, colon, hint = str(error).partition(": ")
        if not (isinstance(error, TypeError) and colon):
            reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            hint = "pass complete= a list of values, or a function that takes the typed text"
        _report_completion(parameter, reason, hint, report)
        return None


def _item_reader(annotation: Any, reader: Reader) -> Reader | None:
    """Return the reader for a list's items if users type them one by one; None for any other type."""
    core = unwrap_type(annotation, core=True)
    return reader_for(get_args(core)[0]) if is_list(core) and not reader.is_json else None


def _report_completion(parameter: Parameter, reason: str, hint: str, report: Report) -> None:
    message = f"parameter {parameter.name!r} cannot be completed: {reason}"
    report.add(Rule.BAD_COMPLETION, message, hint, parameter.name)


#: Hint for authors who write an `Arg` as the annotation or the default, as in other frameworks.
_IN_ANNOTATED: Final = "write it inside the annotation, for example Annotated[str, Arg('...')]"


def _default_hint(parameter: Parameter) -> str:
    if isinstance(parameter.default, Arg):
        return _IN_ANNOTATED
    if parameter.default is None:
        return f"write '{type_name(parameter.annotation)} | None', or give another default"
    return "correct the default, or widen the annotation"


def _format_default(parameter: Parameter) -> str:
    # Error messages must not repeat a secret.
    return "a default" if parameter.arg.secret else f"the default {short.repr(parameter.default)}"


def _format_description(parameter: Parameter, reader: Reader) -> str | None:
    """Return the description for clients: the author's text and details in parentheses, or None."""
    arg = parameter.arg
    examples = example_clause(map(_format_value, arg.examples))
    shows_default = not (parameter.required or arg.secret) and _is_worth_showing(parameter.default)
    default = default_clause(arg.env, [_format_value(parameter.default)] if shows_default else ())
    return join_description(arg.description, (reader.hint, examples, default)) or None


def _is_worth_showing(default: Any) -> bool:
    """Return whether a default is neither None nor empty."""
    try:
        return default is not None and len(default) > 0
    except TypeError:  # a number, or a class, which is an invalid default
        return True


def _format_value(value: Any) -> str:
    """Return a default or an example as users would enter it, shortened to one line."""
    try:
        if is_inline_list(value):
            return ", ".join(map(_format_value, value))
        return shortened(" ".join(text_as_entered(value).split()))
    except TypeError:  # an invalid default may have any type
        return short.repr(value)


def _null_text(annotation: Any) -> str | None:
    """Return the text for null if the type's reader converts it to None; otherwise, return None."""
    reader, text = reader_for(annotation), text_of(None)
    return text if reader is not None and reader.read(text) is None else None


class DirectArguments:
    """
    Checks the arguments of direct calls from Python code, and fills in omitted arguments.

    Args:
        owner:
            The prompt's name, for error messages.

        function:
            The prompt's function.

        names:
            Local names that the function's annotations can use.

        location:
            The location of the function's definition.
    """

    def __init__(
        self, owner: str, function: Callable[..., Any], names: Mapping[str, Any], location: Location
    ) -> None:
        ignored = Report("", location)  # compiling the prompt reports the same problems
        self._owner = owner
        self._binder = inspect.signature(function, **FORWARD_REFERENCES)
        self._signature = read_signature(function, names, ignored)
        in_environment = tuple(parameter for parameter in self._signature.parameters if parameter.arg.env)
        self._in_environment = compile_arguments(owner, Signature(in_environment), ignored)

    def checked(self, args: tuple[Any, ...], kwargs: Any) -> Any:
        """
        Check the arguments of a call, and return its keyword arguments with omitted arguments filled in.

        Arguments are filled in from environment variables, and a `Context` parameter with an empty `Context`.

        Raises:
            TypeError: If an argument does not have its parameter's type.

            ArgumentsError: If an argument is omitted, and its environment variable is invalid or not set.
        """
        try:
            bound = self._binder.bind_partial(*args, **kwargs).arguments
        except TypeError:
            return kwargs  # the call itself will raise Python's own error
        for parameter in self._signature.parameters:
            if parameter.name in bound and not has_type(bound[parameter.name], parameter.annotation):
                raise self._type_error(parameter, bound[parameter.name])
        context = self._signature.context
        kwargs = {**self._in_environment.environment_values(bound), **kwargs}
        if context is None:
            return kwargs

        if not isinstance(bound.get(context, Context()), Context | None):
            raise self._type_error(Parameter(context, Context), bound[context])
        return kwargs if context in bound else {**kwargs, context: Context()}

    def to_wire(self, args: tuple[Any, ...], kwargs: Any) -> dict[str, str]:
        """
        Return the text that a client would send for each argument of a call.

        Arguments whose value is the default are omitted, and missing arguments are not reported.

        Raises:
            TypeError: If an argument does not have its parameter's type or has no parameter, or if no client
                can send the argument.
        """
        bound = self._binder.bind_partial(*args, **kwargs).arguments
        self.checked(args, kwargs)
        texts = {}
        for parameter in self._signature.parameters:
            name, value = parameter.name, bound.get(parameter.name, parameter.default)
            if value is parameter.default:
                continue
            text = _null_text(parameter.annotation) if value is None else text_of(value)
            if text is None or (not text and not takes_blank(parameter.annotation)):
                msg = (
                    f"parameter {name!r} is {value!r}, which no client can send: the prompt would use the "
                    "default instead"
                )
                raise TypeError(msg)
            texts[name] = text
        return texts

    def _type_error(self, parameter: Parameter, value: object) -> TypeError:
        expected = type_name(parameter.annotation)
        if any(map(is_literal, (parameter.annotation, *get_args(parameter.annotation)))):
            reader = reader_for(parameter.annotation)
            expected = reader.expected if reader else expected
        actual = f"{type(value).__name__} value" if parameter.arg.secret else describe(value)
        return TypeError(
            f"prompt {self._owner!r}: parameter {parameter.name!r} takes {expected}, not {actual}"
        )

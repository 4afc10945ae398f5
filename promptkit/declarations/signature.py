"""The signature of an author's function: parameters and their types, with descriptions from its docstring."""

import functools
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs
import msgspec
from msgspec import Struct

from promptkit.declarations.name_hints import import_statement_for, operand_hint, undefined_name_hint
from promptkit.errors.diagnostics import Report
from promptkit.errors.rules import Rule
from promptkit.language.annotations import NO_DEFAULT, Arg
from promptkit.language.context import Context
from promptkit.language.validation import describe
from promptkit.types.functions import FORWARD_REFERENCES, annotations_of, evaluate_annotation, metadata_of
from promptkit.types.kinds import is_union

#: The `Arg` for parameters that do not declare one.
_EMPTY_ARG: Final = Arg()


class Parameter(Struct, frozen=True):
    """
    One parameter that a client can fill.

    Args:
        name:
            The parameter's name.

        annotation:
            The parameter's type, without the parts of ``Annotated`` that promptkit consumes. Constraints in
            `msgspec.Meta` stay part of it.

        default:
            The parameter's default, or `NO_DEFAULT`.

        arg:
            The author's `Arg` from ``Annotated``. If it has no description, the docstring's is added.
    """

    name: str
    annotation: Any
    default: Any = NO_DEFAULT
    arg: Arg = _EMPTY_ARG

    @property
    def required(self) -> bool:
        """Whether the parameter has no default."""
        return self.default is NO_DEFAULT


class Signature(Struct, frozen=True):
    """
    The parameters of an author's function, as clients fill them.

    Args:
        parameters:
            The parameters, in the function's order.

        context:
            The name of the parameter that receives the `Context`, if any.

        summary:
            The docstring's summary, on one line.
    """

    parameters: tuple[Parameter, ...] = ()
    context: str | None = None
    summary: str | None = None


def read_signature(
    function: Callable[..., Any], names: Mapping[str, Any], report: Report, *, untyped: bool = False
) -> Signature:
    """
    Read the parameters that clients can fill, the `Context` parameter and the docstring's summary.

    Args:
        function:
            The author's function.

        names:
            The local names where it is defined, for annotations that are strings.

        report:
            Receives a diagnostic for every parameter that cannot be served. Such parameters are omitted from
            the result.

        untyped:
            Whether annotations are optional. A parameter without an annotation then accepts text, or a value
            of its default's type.
    """
    hints = read_type_hints(function, names, report)
    descriptions = read_descriptions(function.__doc__)
    parameters: list[Parameter] = []
    context = None
    for declared in inspect.signature(function, **FORWARD_REFERENCES).parameters.values():
        parameter = _with_annotation(declared) if untyped else declared
        # Parameters that a decorator added to the signature have no entry in the annotations.
        hint = hints.get(parameter.name, parameter.annotation)
        annotation, arg = _split_annotated(hint)
        if _is_context(annotation):
            if context is not None:
                message = f"parameter {parameter.name!r} is a Context, and so is {context!r}"
                report.add(
                    Rule.SECOND_CONTEXT,
                    message,
                    "keep one of them; both would receive the same Context",
                    parameter.name,
                )
            context = context or parameter.name
        elif _is_servable(parameter, report) and not isinstance(hint, str | typing.ForwardRef):
            # An annotation that is still text could not be resolved, which is already reported.
            _report_misused_arg(parameter.name, hint, report)
            if arg.description is None and parameter.name in descriptions:
                arg = attrs.evolve(arg, description=descriptions[parameter.name])
            parameters.append(Parameter(parameter.name, annotation, parameter.default, arg))
    return Signature(tuple(parameters), context, read_summary(function.__doc__))


def _with_annotation(parameter: inspect.Parameter) -> inspect.Parameter:
    """
    Return the parameter, annotated with `str` or ``str | type(default)`` if it has no annotation.
    """
    if parameter.annotation is not parameter.empty:
        return parameter
    required = parameter.default is parameter.empty
    return parameter.replace(annotation=str if required else str | type(parameter.default))


def _is_servable(parameter: inspect.Parameter, report: Report) -> bool:
    name = parameter.name
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        message = f"parameter {str(parameter).split(':')[0]!r} has no fixed name"
        hint = "name each parameter; clients fill them one by one"
        report.add(Rule.VARIADIC_PARAMETER, message, hint, name)
    elif parameter.kind is parameter.POSITIONAL_ONLY:
        message = f"parameter {name!r} is positional-only"
        hint = "remove the '/' from the signature; clients fill parameters by name"
        report.add(Rule.POSITIONAL_ONLY, message, hint, name)
    elif parameter.annotation is parameter.empty:
        hint = f"write its type, for example '{name}: str'"
        if name in ("self", "cls"):
            hint = "move the function out of its class, or decorate a bound method: prompt(instance.method)"
        report.add(Rule.MISSING_ANNOTATION, f"parameter {name!r} has no annotation", hint, name)
    else:
        return True
    return False


#: Names that are common in annotations, to suggest for misspelt ones.
_COMMON_NAMES: Final = (
    *("str", "int", "float", "bool", "bytes", "list", "dict"),
    *("Annotated", "Literal", "Optional"),
)


def _unresolved_hint(error: Exception, function: Callable[..., Any]) -> str:
    if (hint := operand_hint(error)) is not None:
        return hint
    name = error.name if isinstance(error, NameError) else None
    statement = import_statement_for(name) if name else None
    if statement is not None:
        return f"import it, outside of `if TYPE_CHECKING:`: {statement}"
    class_names = [
        key for key, value in getattr(function, "__globals__", {}).items() if isinstance(value, type)
    ]
    suggestion = undefined_name_hint(name, [*class_names, *_COMMON_NAMES]) if name else None
    return suggestion or "define or import the name in the recipe, outside `if TYPE_CHECKING:`"


def read_type_hints(function: Callable[..., Any], names: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """
    Return the types of the parameters by name, including the metadata in ``Annotated``.

    Args:
        function:
            The author's function.

        names:
            The local names where it is defined.

        report:
            Receives a diagnostic for every annotation that cannot be evaluated. Such annotations are omitted
            from the result.
    """
    function = inspect.unwrap(function)
    hints = {}
    for name, annotation in annotations_of(function).items():
        if name == "return":
            continue
        try:
            hints[name] = evaluate_annotation(annotation, function, names)
        except Exception as error:  # noqa: BLE001 (evaluating an annotation can run any code)
            message = f"the annotation of parameter {name!r} cannot be resolved: {error}"
            hint = _unresolved_hint(error, function)
            report.add(Rule.UNRESOLVED_ANNOTATION, message, hint, name)
    return hints


def _split_annotated(annotation: Any) -> tuple[Any, Arg]:
    """Return an annotation's type and its `Arg`. ``Annotated`` can be around or inside an optional type."""
    if typing.get_origin(annotation) is typing.Annotated:
        bare, constraints, arg = annotation.__origin__, [], _EMPTY_ARG
        for item in annotation.__metadata__:
            if isinstance(item, msgspec.Meta):
                constraints.append(item)
            elif isinstance(item, str):
                arg = attrs.evolve(arg, description=item)
            elif isinstance(item, Arg):
                arg = item if item.description else attrs.evolve(item, description=arg.description)
        return (typing.Annotated[(bare, *constraints)] if constraints else bare), arg
    if is_union(annotation):
        parts = [_split_annotated(member) for member in typing.get_args(annotation)]
        args = [arg for _, arg in parts if arg != _EMPTY_ARG]
        if len(args) == 1:
            return typing.Union[tuple(member for member, _ in parts)], args[0]  # noqa: UP007 (built dynamically)
    return annotation, _EMPTY_ARG


def _report_misused_arg(name: str, annotation: Any, report: Report) -> None:
    """Report an `Arg` that is not called, and a second `Arg` for one parameter."""
    notes = metadata_of(annotation)
    if any(note is Arg for note in notes):
        message = f"parameter {name!r} has an uncalled Arg in its annotation"
        hint = "call it: Arg('what to enter')"
        report.add(Rule.BARE_ARG, message, hint, name)
    if sum(isinstance(note, Arg) for note in notes) > 1:
        message = f"parameter {name!r} has more than one Arg(...)"
        hint = "use one Arg; to give an alias another description, add a plain string to it"
        report.add(Rule.SECOND_ARG, message, hint, name)


def _is_context(annotation: Any) -> bool:
    members = typing.get_args(annotation) if is_union(annotation) else [annotation]
    return Context in members


def local_names(function: Callable[..., Any], names: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a copy of *names*, the names around *function*, if *function* is nested; otherwise ``{}``."""
    return dict(names) if "<locals>" in function.__qualname__ else {}


def as_function(decorated: Any) -> Callable[..., Any]:
    """
    Return a function for the object that `@prompt` decorates.

    The bound arguments of a bound method or a `functools.partial` are passed on; clients cannot fill them.

    Raises:
        TypeError: If the object is not a function, a bound method, or a partial of one.
    """
    inner: Any = decorated
    while isinstance(inner, functools.partial | types.MethodType):
        inner = inner.func if isinstance(inner, functools.partial) else inner.__func__
    if isinstance(inner, classmethod) or not inspect.isfunction(inspect.unwrap(inner)):
        msg = f"@prompt takes a function, not {describe(decorated)}: {_hint_for_undecoratable(decorated)}"
        raise TypeError(msg)
    return inner if inner is decorated else _forwarding_function(decorated, inner)


def _hint_for_undecoratable(decorated: Any) -> str:
    """Return a hint for an object that `@prompt` cannot decorate."""
    if isinstance(decorated, str):
        return f"write @prompt(name={decorated!r})"
    if isinstance(decorated, classmethod):
        return "move the function out of its class, or decorate the bound method after the class"
    if callable(decorated):
        return "write a function that calls it, and decorate that"
    return "decorate a function"


def _forwarding_function(decorated: Callable[..., Any], inner: Callable[..., Any]) -> Callable[..., Any]:
    """
    Return a function that calls *decorated*, a bound method or a partial of *inner*.

    The returned function has only the parameters that are not bound.
    """

    @functools.wraps(inner)
    def forward(*args: Any, **kwargs: Any) -> Any:
        return decorated(*args, **kwargs)

    signature = inspect.signature(decorated, **FORWARD_REFERENCES)
    fixed = getattr(decorated, "keywords", {})
    parameters = [parameter for name, parameter in signature.parameters.items() if name not in fixed]
    forward.__dict__["__signature__"] = signature.replace(parameters=parameters)
    return forward


#: Code flags of generators and coroutines.
_NOT_PLAIN: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def require_plain_function(function: Callable[..., Any], decorator: str, result: str) -> types.FunctionType:
    """
    Return the undecorated function. Raises TypeError if it is a generator function or asynchronous.
    """
    unwrapped = inspect.unwrap(function)
    if not inspect.isfunction(unwrapped) or unwrapped.__code__.co_flags & _NOT_PLAIN:
        msg = f"{decorator} takes a plain function that returns {result}, not {describe(function)}"
        raise TypeError(msg)
    return unwrapped


# The patterns are compiled on first use, because compiling them takes as long as importing a module.

#: Whitespace within one line. With ``\s*``, a run of blank lines would take quadratic time.
_WHITESPACE: Final = r"[^\S\n]*"

#: Start of a docstring's section on parameters. If there is none, the slow parser is not imported.
_PARAMETERS: Final = (
    rf"^{_WHITESPACE}(?:[:@](?:param|arg|argument|parameter|key)\b"
    rf"|(?:Args|Arguments|Params|Parameters|Keyword Args){_WHITESPACE}(?::{_WHITESPACE})?$)"
)

#: Titles of the sections that end a docstring's prose, in Google and NumPy style.
_TITLES: Final = (
    "Args|Arguments|Params|Parameters|Keyword Args|Other Parameters|Returns?|Yields?|Raises|Warns"
    "|Examples?|Notes?|Warnings?|See Also|References|Attributes|Todo"
)

_FIELDS: Final = "param|arg|argument|parameter|key|type|returns?|rtype|raises?|except|yields?"

_SECTION: Final = (
    rf"^{_WHITESPACE}(?:[:@](?:{_FIELDS})\b"
    rf"|(?:{_TITLES}){_WHITESPACE}:{_WHITESPACE}$|(?:{_TITLES})\n{_WHITESPACE}-{{3,}}{_WHITESPACE}$)"
)


def _may_have_sections(text: str | None) -> bool:
    """Return whether a docstring may have more than a summary."""
    return not {"\n", ":", "@"}.isdisjoint(text or "")


def read_summary(text: str | None) -> str | None:
    """Return the first paragraph of a docstring, on one line."""
    text = inspect.cleandoc(text or "")
    section = re.search(_SECTION, text, re.MULTILINE) if _may_have_sections(text) else None
    prose = text[: section.start()] if section else text
    return " ".join(prose.partition("\n\n")[0].split()) or None


def read_descriptions(text: str | None) -> dict[str, str]:
    """Return the description of each parameter from a docstring in Google, NumPy or Sphinx style."""
    if not text or not _may_have_sections(text) or not re.search(_PARAMETERS, text, re.MULTILINE):
        return {}
    from docstring_parser import parse

    try:
        parsed = parse(text)
    except Exception:  # noqa: BLE001 (it raises various errors for text that only looks like a section)
        return {}
    return {
        name.strip().lstrip("*"): " ".join(parameter.description.split())
        for parameter in parsed.params
        if parameter.description and "attribute" not in parameter.args
        for name in parameter.arg_name.split(",")
    }

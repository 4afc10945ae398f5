"""What an author's function says of itself: its parameters, their types and descriptions, and its names."""

import functools
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, Final, TypeVar

import attrs
import msgspec
from msgspec import Struct

from promptkit.declarations.name_hints import import_of, operand_hint, undefined_name
from promptkit.errors.diagnostics import Report
from promptkit.errors.rules import Rule
from promptkit.language.annotations import NO_DEFAULT, Arg
from promptkit.language.validation import describe
from promptkit.types.functions import FORWARD, annotations_of, notes_of, resolved
from promptkit.types.kinds import is_union

# Patterns are compiled when a docstring may have sections, as that takes as long as to import a module.

#: Blanks of one line: from each of many blank lines, ``\s*`` would go through all that follow.
_BLANKS: Final = r"[^\S\n]*"

#: Where a docstring describes parameters. Without a match, the parser (slow to import) is not needed.
_PARAMETERS: Final = (
    rf"^{_BLANKS}(?:[:@](?:param|arg|argument|parameter|key)\b"
    rf"|(?:Args|Arguments|Params|Parameters|Keyword Args){_BLANKS}(?::{_BLANKS})?$)"
)

#: Where a docstring's prose ends: at any section, in Google, NumPy or Sphinx style.
_TITLES: Final = (
    "Args|Arguments|Params|Parameters|Keyword Args|Other Parameters|Returns?|Yields?|Raises|Warns"
    "|Examples?|Notes?|Warnings?|See Also|References|Attributes|Todo"
)

_FIELDS: Final = "param|arg|argument|parameter|key|type|returns?|rtype|raises?|except|yields?"

_SECTION: Final = (
    rf"^{_BLANKS}(?:[:@](?:{_FIELDS})\b"
    rf"|(?:{_TITLES}){_BLANKS}:{_BLANKS}$|(?:{_TITLES})\n{_BLANKS}-{{3,}}{_BLANKS}$)"
)


def _may_have_sections(text: str | None) -> bool:
    """Whether a docstring may say more than a summary."""
    return not {"\n", ":", "@"}.isdisjoint(text or "")


def read_summary(text: str | None) -> str | None:
    """Return a docstring's summary, which is its first paragraph, on one line."""
    text = inspect.cleandoc(text or "")
    section = re.search(_SECTION, text, re.MULTILINE) if _may_have_sections(text) else None
    prose = text[: section.start()] if section else text
    return " ".join(prose.partition("\n\n")[0].split()) or None


def read_descriptions(text: str | None) -> dict[str, str]:
    """Return what a docstring in Google, NumPy or Sphinx style says about each parameter."""
    return {name: said for name, said in _parameters_in(text).items() if said}


def _parameters_in(text: str | None) -> dict[str, str]:
    """What a docstring says about each parameter that it names, ``""`` for a type alone."""
    if not text or not _may_have_sections(text) or not re.search(_PARAMETERS, text, re.MULTILINE):
        return {}
    from docstring_parser import parse

    try:
        parsed = parse(text)
    except Exception:  # noqa: BLE001 (it raises various errors for text that only looks like a section)
        return {}
    return {
        name.strip().lstrip("*"): " ".join((p.description or "").split())
        for p in parsed.params
        if "attribute" not in p.args
        for name in p.arg_name.split(",")
    }


T = TypeVar("T")

#: The `Arg` of a parameter that its author says nothing about.
_NOTHING: Final = Arg()


class Parameter(Struct, frozen=True):
    """
    One parameter that a client may fill.

    Args:
        name:
            Its name.

        annotation:
            Its type, without the parts of ``Annotated`` that promptkit reads. Constraints of
            `msgspec.Meta` stay on it.

        default:
            Its default, or `NO_DEFAULT`.

        arg:
            What the author says about it, in ``Annotated`` or else in the docstring.
    """

    name: str
    annotation: Any
    default: Any = NO_DEFAULT
    arg: Arg = _NOTHING

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is NO_DEFAULT


class Signature(Struct, frozen=True):
    """
    The parameters of an author's function, as clients fill them.

    Args:
        parameters:
            In the order of the function's own signature.

        context:
            The name of the parameter that receives the `Context`, if there is one.

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
    Read the parameters that clients can fill.

    Args:
        function:
            The author's function.

        names:
            The local names around its definition, for annotations that are strings.

        report:
            Receives every parameter that cannot be served. It is left out of the result.

        untyped:
            Whether a parameter may go without an annotation: it takes text, or the type of its default.
    """
    hints = read_hints(function, names, report)
    descriptions = read_descriptions(function.__doc__)
    parameters: list[Parameter] = []
    context = None
    for found in inspect.signature(function, **FORWARD).parameters.values():
        parameter = _typed(found) if untyped else found
        # What a decorator has put into the signature is not among the annotations.
        hint = hints.get(parameter.name, parameter.annotation)
        annotation, arg = _split_annotated(hint)
        if _is_context(annotation):
            if context is not None:
                fault = f"parameter {parameter.name!r} is a Context, and so is {context!r}"
                report.add(
                    Rule.SECOND_CONTEXT, fault, "keep one of them; both would be the same", parameter.name
                )
            context = context or parameter.name
        elif _is_servable(parameter, report) and not isinstance(hint, str | typing.ForwardRef):
            # What is still text could not be resolved, which has been reported.
            _check_notes(parameter.name, hint, report)
            if arg.description is None and parameter.name in descriptions:
                arg = attrs.evolve(arg, description=descriptions[parameter.name])
            parameters.append(Parameter(parameter.name, annotation, parameter.default, arg))
    return Signature(tuple(parameters), context, read_summary(function.__doc__))


def _typed(parameter: inspect.Parameter) -> inspect.Parameter:
    """A parameter with a type: text, or also that of its default, if it has none."""
    if parameter.annotation is not parameter.empty:
        return parameter
    required = parameter.default is parameter.empty
    return parameter.replace(annotation=str if required else str | type(parameter.default))


def _is_servable(parameter: inspect.Parameter, report: Report) -> bool:
    name = parameter.name
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        fault = f"parameter {str(parameter).split(':')[0]!r} has no fixed name"
        hint = "name each parameter; clients fill them one by one"
        report.add(Rule.VARIADIC_PARAMETER, fault, hint, name)
    elif parameter.kind is parameter.POSITIONAL_ONLY:
        fault = f"parameter {name!r} is positional-only"
        hint = "remove the '/' from the signature; clients fill parameters by name"
        report.add(Rule.POSITIONAL_ONLY, fault, hint, name)
    elif parameter.annotation is parameter.empty:
        hint = f"write its type, as in '{name}: str'"
        if name in ("self", "cls"):
            hint = "move the function out of its class; prompts are functions, not methods"
        report.add(Rule.MISSING_ANNOTATION, f"parameter {name!r} has no annotation", hint, name)
    else:
        return True
    return False


#: Names that often stand in annotations.
_COMMON_NAMES: Final = (
    *("str", "int", "float", "bool", "bytes", "list", "dict"),
    *("Annotated", "Literal", "Optional"),
)


def _unresolved_hint(error: Exception, function: Callable[..., Any]) -> str:
    if (hint := operand_hint(error)) is not None:
        return hint
    name = error.name if isinstance(error, NameError) else None
    found = import_of(name) if name else None
    if found is not None:
        return f"import it, outside of `if TYPE_CHECKING:`: {found}"
    kinds = [
        known for known, value in getattr(function, "__globals__", {}).items() if isinstance(value, type)
    ]
    meant = undefined_name(name, [*kinds, *_COMMON_NAMES]) if name else None
    return meant or "define or import what it names in the recipe, outside of `if TYPE_CHECKING:`"


def read_hints(function: Callable[..., Any], names: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """
    Return the types of the parameters, with what stands beside them in ``Annotated``.

    Args:
        function:
            The author's function.

        names:
            The local names around its definition.

        report:
            Receives every annotation that cannot be evaluated. It is left out of the result.
    """
    function = inspect.unwrap(function)
    hints = {}
    for name, annotation in annotations_of(function).items():
        if name == "return":
            continue
        try:
            hints[name] = resolved(annotation, function, names)
        except Exception as error:  # noqa: BLE001 (evaluating an annotation runs any code)
            fault = f"the annotation of parameter {name!r} cannot be resolved: {error}"
            hint = _unresolved_hint(error, function)
            report.add(Rule.UNRESOLVED_ANNOTATION, fault, hint, name)
    return hints


def _split_annotated(annotation: Any) -> tuple[Any, Arg]:
    """Split a type from what ``Annotated`` tells promptkit, around an optional type or inside of it."""
    if typing.get_origin(annotation) is typing.Annotated:
        bare, constraints, arg = annotation.__origin__, [], _NOTHING
        for note in annotation.__metadata__:
            if isinstance(note, msgspec.Meta):
                constraints.append(note)
            elif isinstance(note, str):
                arg = attrs.evolve(arg, description=note)
            elif isinstance(note, Arg):
                arg = note if note.description else attrs.evolve(note, description=arg.description)
        return (typing.Annotated[(bare, *constraints)] if constraints else bare), arg
    if is_union(annotation):
        split = [_split_annotated(member) for member in typing.get_args(annotation)]
        args = [arg for _, arg in split if arg != _NOTHING]
        if len(args) == 1:
            return typing.Union[tuple(member for member, _ in split)], args[0]  # noqa: UP007 (made of parts)
    return annotation, _NOTHING


def _check_notes(name: str, annotation: Any, report: Report) -> None:
    """Report an `Arg` that is not called, and two for one parameter."""
    notes = notes_of(annotation)
    if any(note is Arg for note in notes):
        fault = f"parameter {name!r} has Arg in its annotation without calling it"
        hint = "call it: Arg('what to enter')"
        report.add(Rule.BARE_ARG, fault, hint, name)
    if sum(isinstance(note, Arg) for note in notes) > 1:
        fault = f"parameter {name!r} has two Arg(...)"
        hint = "say it all in one; to describe an alias anew, put a plain string beside it"
        report.add(Rule.SECOND_ARG, fault, hint, name)


def _is_context(annotation: Any) -> bool:
    members = typing.get_args(annotation) if is_union(annotation) else [annotation]
    # Who names the class has loaded it, which takes a while. Most prompts do without.
    module = sys.modules.get("promptkit.language.context")
    return module is not None and module.Context in members


class cached_property(functools.cached_property[T]):  # noqa: N801 (it stands for the other)
    """
    As `functools.cached_property`, without the lock of Python 3.11, for what runs code of authors.

    Under that, while the annotations of one prompt hang, no other prompt could be compiled.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        super().__init__(compute)
        self.lock = nullcontext()


def copied_attributes(function: Callable[..., Any]) -> dict[str, Any]:
    """
    Return what `functools.update_wrapper` would copy from *function*.

    `update_wrapper` itself cannot write to a frozen object.
    """
    names: tuple[str, ...] = functools.WRAPPER_ASSIGNMENTS
    copied = {name: getattr(function, name) for name in names if hasattr(function, name)}
    return {**copied, "__wrapped__": function}


def is_local(function: Callable[..., Any]) -> bool:
    """Whether *function* is defined in another function, whose local names its annotations may use."""
    return "<locals>" in function.__qualname__


def code_of(function: Callable[..., Any]) -> types.CodeType:
    """Return the code of what `@prompt` decorates. Raises TypeError if that is no function."""
    unwrapped = inspect.unwrap(function)
    if not callable(function) or not inspect.isfunction(unwrapped):
        name = f": write @prompt(name={function!r})" if isinstance(function, str) else ""
        msg = f"@prompt takes a function, not {describe(function)}{name}"
        raise TypeError(msg)
    return unwrapped.__code__

"""`@resource`: what prompts embed or link, declared as a function of the variables in a URI."""

import inspect
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, Generic, ParamSpec, TypeVar

import attrs

from promptkit.content import EmbeddedResource, ResourceLink
from promptkit.diagnostics import Diagnostic, Location, Report, Rule
from promptkit.errors import CompileError
from promptkit.messages import describe
from promptkit.signature import copied_attributes, read_summary
from promptkit.writing import text_of

__all__ = ["Resource", "resource"]

P = ParamSpec("P")
R = TypeVar("R", str, bytes)

#: What marks the code of a generator or a coroutine.
_NOT_PLAIN: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR

#: One variable in an expression, and a whole template (RFC 6570, section 2). The library that
#: expands templates takes whatever it is given, so what is none has to be found here.
_VARIABLE: Final = r"(?:\w|%[0-9A-Fa-f]{2})(?:\.?(?:\w|%[0-9A-Fa-f]{2}))*(?::[1-9][0-9]{0,3}|\*)?"
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_TEMPLATE: Final = re.compile(
    _SCHEME.pattern
    + r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2}"
    + rf"|\{{[+#./;?&]?{_VARIABLE}(?:,{_VARIABLE})*\}})+",
    re.ASCII,
)


@attrs.frozen(slots=False, eq=False, repr=False)
class Resource(Generic[P, R]):
    """
    A document, or a family of them, that an author's function produces.

    Calling it calls the function.
    """

    function: Callable[P, R]
    uri_template: str
    name: str
    title: str | None
    description: str | None
    mime_type: str | None

    def __attrs_post_init__(self) -> None:
        vars(self).update(copied_attributes(self.function))

    def __repr__(self) -> str:
        return f"<resource {self.uri_template!r} at {self.location}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """
        Call the author's function.
        """
        return self.function(*args, **kwargs)

    @property
    def location(self) -> Location:
        """
        Where the author defined it.
        """
        code = inspect.unwrap(self.function).__code__
        return Location(code.co_filename, code.co_firstlineno)

    def uri(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """
        Return the URI for the function's arguments; None and what is left out stay out of it.

        Raises:
            CompileError: If the template and the function's parameters do not agree.

            TypeError: If the arguments do not fit the function's parameters.
        """
        if diagnostics := self.diagnostics:
            raise CompileError(diagnostics)
        given = inspect.signature(self.function).bind(*args, **kwargs).arguments
        from uritemplate import expand

        return expand(self.uri_template, {name: _as_text(value) for name, value in given.items()})

    def embed(self, *args: P.args, **kwargs: P.kwargs) -> EmbeddedResource:
        """
        Call the author's function and return what it says as content.

        Raises:
            CompileError: If the template and the function's parameters do not agree.

            TypeError: If the function returns neither `str` nor `bytes`.

            Exception: Whatever the function raises.
        """
        uri = self.uri(*args, **kwargs)
        result = self.function(*args, **kwargs)
        if isinstance(result, str):
            return EmbeddedResource(uri, text=result, mime_type=self.mime_type)
        if isinstance(result, bytes):
            return EmbeddedResource(uri, blob=result, mime_type=self.mime_type)
        msg = f"resource {self.name!r} ({self.location}) returned {describe(result)}: return str or bytes"
        raise TypeError(msg)

    def link(self, *args: P.args, **kwargs: P.kwargs) -> ResourceLink:
        """
        Return a link to the document. The author's function is not called.

        Raises:
            CompileError: If the template and the function's parameters do not agree.
        """
        return ResourceLink(
            self.uri(*args, **kwargs),
            name=self.name,
            title=self.title,
            description=self.description,
            mime_type=self.mime_type,
        )

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """
        Everything that is wrong with it.
        """
        from uritemplate import variables

        report = Report(f"resource {self.name!r}", self.location)
        if not _TEMPLATE.fullmatch(self.uri_template):
            fault, remedy = "has no scheme", "begin it as a URI begins"
            if _SCHEME.match(self.uri_template):
                fault, remedy = "is malformed", "use what a URI may hold, and variables in braces"
            report.add(
                Rule.BAD_TEMPLATE,
                f"the template {self.uri_template!r} {fault}",
                f"{remedy}, as in 'logs://recent{{?timeframe}}'",
            )
        parameters = inspect.signature(self.function).parameters
        try:
            names = set(variables(self.uri_template))
        except ValueError:  # it is so malformed that it has none
            return tuple(report.found)
        for name in sorted(names - parameters.keys()):
            report.add(
                Rule.TEMPLATE_MISMATCH,
                f"the template's variable {name!r} is no parameter of the function",
                f"add a parameter {name!r}, or take it out of the template",
            )
        for name, parameter in parameters.items():
            if name not in names:
                report.add(
                    Rule.TEMPLATE_MISMATCH,
                    f"parameter {str(parameter)!r} is not in the template {self.uri_template!r}",
                    f"add '{{?{name}}}' to the template, so that the URI names the document",
                )
        return tuple(report.found)


def _as_text(value: Any) -> Any:
    """
    Return *value* as a URI spells it: text, or a list or mapping of it, without what is None.
    """
    if isinstance(value, set | frozenset):
        return sorted(map(str, map(_as_text, value)))
    if isinstance(value, list | tuple):
        return [_as_text(item) for item in value if item is not None]
    if isinstance(value, Mapping):
        return {str(key): _as_text(item) for key, item in value.items() if item is not None}
    return None if value is None else text_of(value)


def resource(
    uri_template: str,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    mime_type: str | None = None,
) -> Callable[[Callable[P, R]], Resource[P, R]]:
    """
    Declare what prompts embed or link.

    Args:
        uri_template:
            A URI, or a template of RFC 6570 whose variables are the function's parameters:
            ``logs://recent{?timeframe}``.

        name:
            What it is called; the function's name if left out.

        title:
            What people see.

        description:
            What it is; the docstring's summary if left out.

        mime_type:
            Its type; that of bytes is read from them if left out.

    Returns:
        A decorator for a plain function that returns `str` or `bytes`.

    Raises:
        TypeError: If what is decorated is no plain function.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/resources
    """
    if not isinstance(uri_template, str):
        msg = (
            f"@resource takes a URI template, as in @resource('logs://recent'), not {describe(uri_template)}"
        )
        raise TypeError(msg)

    def decorate(function: Callable[P, R]) -> Resource[P, R]:
        unwrapped = inspect.unwrap(function)
        if not inspect.isfunction(unwrapped) or unwrapped.__code__.co_flags & _NOT_PLAIN:
            msg = f"@resource takes a plain function that returns str or bytes, not {describe(function)}"
            raise TypeError(msg)
        return Resource(
            function,
            uri_template,
            name or function.__name__,
            title,
            description or read_summary(function.__doc__),
            mime_type,
        )

    return decorate

"""
`@resource`: documents that prompts can embed or link to, declared as functions of the variables in a URI.
"""

import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, Literal, NoReturn, ParamSpec, TypeVar, Unpack
from urllib.parse import quote

import attrs

from promptkit.catalog.resources import CompiledResource, content_of
from promptkit.catalog.uri_templates import URI_PUNCTUATION, URITemplate, expand_template, is_template
from promptkit.declarations.arguments import compile_arguments
from promptkit.declarations.base import Declared, cached_property
from promptkit.declarations.options import check_scopes, check_sendable, convert_icons
from promptkit.declarations.signature import local_names, read_signature, read_summary, require_plain_function
from promptkit.errors.diagnostics import Diagnostic, Report, Severity
from promptkit.errors.exceptions import CompileError, shortened
from promptkit.errors.rules import Rule
from promptkit.files.reading import file_stamp
from promptkit.language.content import Annotations, Content
from promptkit.language.documents import EmbeddedResource, ResourceLink
from promptkit.language.files import source_folder
from promptkit.language.media import Icon
from promptkit.language.validation import checked_size, describe, optional_text
from promptkit.types.functions import FORWARD_REFERENCES

P = ParamSpec("P")
R = TypeVar("R", str, bytes)

#: The end of hints for invalid templates.
_EXAMPLE: Final = "for example 'logs://recent{?timeframe}'"

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@attrs.frozen(slots=False, eq=False, repr=False)
class Resource(Declared[P, str], Generic[P, R]):
    """
    A document, or a family of documents, produced by an author's function.

    Calling the resource calls the function.
    """

    kind: ClassVar[Literal["resource"]] = "resource"

    function: Callable[P, R]
    uri_template: str
    name: str = attrs.field(validator=optional_text)
    title: str | None = attrs.field(validator=optional_text)
    description: str | None = attrs.field(validator=optional_text)
    mime_type: str | None = attrs.field(validator=optional_text)
    scopes: Collection[str]
    names: Mapping[str, Any]
    stamp: Callable[[], object] | None
    icons: tuple[Icon, ...]
    annotations: Content | None
    size: int | None

    def __repr__(self) -> str:
        return f"<resource {self.uri_template!r} at {self.location}>"

    def __format__(self, spec: str) -> NoReturn:
        msg = (
            f"resource {self.name!r} itself cannot be used in an f-string: call it for its text, "
            "pass .embed(...) or .link(...) to user(...), or insert its .uri(...)"
        )
        raise TypeError(msg)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the author's function."""
        result: R = self._wrapped_function(*args, **kwargs)
        return result

    def uri(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """
        Return the URI for the function's arguments. Arguments that are None or omitted do not appear in it.

        Args:
            *args:
                Positional arguments of the function.

            **kwargs:
                Keyword arguments of the function.

        Raises:
            CompileError: If the template and the function's parameters do not match.

            TypeError: If the arguments do not match the function's parameters.
        """
        return expand_template(self.uri_template, self._variables(*args, **kwargs))

    def embed(self, *args: P.args, **kwargs: P.kwargs) -> EmbeddedResource:
        """
        Call the author's function and return its result as content.

        Args:
            *args:
                Positional arguments of the function.

            **kwargs:
                Keyword arguments of the function.

        Raises:
            CompileError: If the template and the function's parameters do not match.

            TypeError: If the function returns neither `str` nor `bytes`.

            Exception: Any exception that the function raises.
        """
        uri = self.uri(*args, **kwargs)
        return content_of(self, uri, self._wrapped_function(*args, **kwargs))

    def link(self, *args: P.args, **kwargs: P.kwargs) -> ResourceLink:
        """
        Return a link to the document, without calling the author's function.

        The values of variables are appended to the name and title, as in ``logs: 1h``, to distinguish links
        made from the same template.

        Args:
            *args:
                Positional arguments of the function.

            **kwargs:
                Keyword arguments of the function.

        Raises:
            CompileError: If the template and the function's parameters do not match.

            TypeError: If the arguments do not match the function's parameters.
        """
        variables, metadata = self._variables(*args, **kwargs), self._metadata
        if values := _format_variables(variables):
            metadata |= {key: f"{metadata[key]}: {values}" for key in ("name", "title") if metadata[key]}
        return ResourceLink(expand_template(self.uri_template, variables), **metadata)

    def to_wire(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """Return the URI that a client sends for these arguments."""
        return self.uri(*args, **kwargs)

    def _variables(self, *args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
        """Return the URI's variables for a call. Raises any error that `uri` raises."""
        if self.uri_errors:
            raise CompileError(self.uri_errors)
        return inspect.signature(self.function, **FORWARD_REFERENCES).bind(*args, **kwargs).arguments

    @property
    def _metadata(self) -> dict[str, Any]:
        """The metadata that is sent to clients."""
        return {name: getattr(self, name) for name in ("name", "title", "description", "mime_type")}

    @cached_property
    def uri_errors(self) -> tuple[Diagnostic, ...]:
        """
        Errors in the template, and mismatches between its variables and the function's parameters.

        If there are any errors, the resource has no URI.
        """
        report = Report(f"resource {self.name!r}", self.location)
        self._check_template(report)
        self._check_agreement(report)
        return tuple(report.diagnostics)

    def compile(self) -> tuple[CompiledResource | None, tuple[Diagnostic, ...]]:
        """
        Return the compiled resource (None if it has errors) and all diagnostics.

        A parameter without an annotation accepts text, or a value of its default's type.
        """
        report = Report(f"resource {self.name!r}", self.location)
        report.diagnostics.extend(self.uri_errors)
        check_sendable(self._metadata.values(), "its name, title, description or MIME type", report)
        check_scopes(self.scopes, report)
        signature = read_signature(self.function, self.names, report, untyped=True)
        arguments = compile_arguments(self.name, signature, report, kind="resource")
        if any(diagnostic.severity is Severity.ERROR for diagnostic in report.diagnostics):
            return None, tuple(report.diagnostics)
        compiled = CompiledResource(
            uri_template=self.uri_template,
            **self._metadata,
            arguments=arguments,
            template=URITemplate(self.uri_template),
            function=self._wrapped_function,
            location=self.location,
            scopes=frozenset(self.scopes),
            saved=self.saved,
            stamp=self.stamp,
            icons=self.icons,
            annotations=self.annotations,
            size=self.size,
        )
        return compiled, tuple(report.diagnostics)

    def _check_template(self, report: Report) -> None:
        scheme = _SCHEME.match(self.uri_template)
        if scheme is None:
            problem, hint = "has no scheme", f"start it with a scheme, {_EXAMPLE}"
        elif not is_template(self.uri_template[scheme.end() :]):
            problem, hint = "is malformed", f"use a URI's characters, and variables in braces, {_EXAMPLE}"
            escaped = quote(self.uri_template, safe=URI_PUNCTUATION + "{}", errors="surrogatepass")
            if is_template(escaped[scheme.end() :]):
                hint = f"escape characters that a URI cannot contain: {escaped!r}"
        else:
            return
        report.add(Rule.BAD_TEMPLATE, f"the template {self.uri_template!r} {problem}", hint)

    def _check_agreement(self, report: Report) -> None:
        """Report template variables without a parameter, and parameters without a variable."""
        from uritemplate import variables

        parameters = inspect.signature(self.function, **FORWARD_REFERENCES).parameters
        try:
            names = set(variables(self.uri_template))
        except ValueError:  # malformed, which is already reported
            return
        for name in sorted(names - parameters.keys()):
            message = f"the template's variable {name!r} is not a parameter of the function"
            hint = f"add a parameter {name!r}, or remove it from the template"
            report.add(Rule.TEMPLATE_MISMATCH, message, hint)
        for name, parameter in parameters.items():
            if name not in names:
                message = f"parameter {str(parameter)!r} is not in the template {self.uri_template!r}"
                hint = f"add '{{?{name}}}' to the template, so that the URI identifies the document"
                report.add(Rule.TEMPLATE_MISMATCH, message, hint)


def _format_variables(variables: Mapping[str, Any]) -> str:
    """Format variable values as they appear in a URI, but on one line and without escapes."""
    from urllib.parse import unquote

    spelt = (unquote(expand_template(f"{{{name}}}", {name: value})) for name, value in variables.items())
    return shortened(" ".join(", ".join(filter(None, spelt)).split()))


def resource(  # noqa: PLR0913 (each is an option for authors)
    uri_template: str,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    mime_type: str | None = None,
    scopes: Collection[str] = (),
    watch: str | Path | Sequence[str | Path] | Callable[[], object] | None = None,
    icons: Iterable[Icon | str] = (),
    size: int | None = None,
    **annotations: Unpack[Annotations],
) -> Callable[[Callable[P, R]], Resource[P, R]]:
    """
    Declare a document that prompts can embed or link to, or a family of such documents.

    Args:
        uri_template:
            A URI, or an RFC 6570 template whose variables are the function's parameters:
            ``logs://recent{?timeframe}``.

        name:
            The resource's name. Defaults to the function's name.

        title:
            A display name.

        description:
            A description. Defaults to the docstring's summary.

        mime_type:
            The MIME type. By default, the type of bytes is detected from their content.

        scopes:
            Scopes that a caller needs; all are required. For other callers, the resource does not exist.

        watch:
            The files or folders that the content comes from, relative to the recipe's folder; or a function
            without parameters whose result, such as a version number, is different after a change. Once a
            client has subscribed to the resource, the server checks for changes every second and notifies
            subscribers.

        icons:
            Icons, or URIs of icons.

        size:
            The size of the content in bytes, so that hosts can estimate how much of the context it uses.
            Resources with variables cannot have a size.

        **annotations:
            The same annotations as for `Content`: *audience*, *priority* and *last_modified*. They appear in
            the list of resources. Content that a prompt embeds has separate annotations.

    Returns:
        A decorator for a plain function that returns `str` or `bytes`.

    Raises:
        TypeError: If *uri_template* is not a string, *watch* is not a path, several paths or a function,
            *size* is not a whole number, another argument has the wrong type, or the decorated object is
            not a plain function.

        ValueError: If an annotation is invalid, or *size* is negative or given for a template with variables.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/resources
    """
    if not isinstance(uri_template, str):
        example = "@resource('logs://recent')"
        msg = f"@resource takes a URI template, for example {example}, not {describe(uri_template)}"
        raise TypeError(msg)

    names = sys._getframe(1).f_locals  # noqa: SLF001 (annotations may use local names)
    stamp = _make_stamp_function(watch, source_folder(1))
    for option in annotations.keys() - Annotations.__annotations__.keys():
        msg = f"resource() got an unexpected keyword argument {option!r}"
        raise TypeError(msg)
    shown_icons, annotated = convert_icons(icons), Content(**annotations) if annotations else None
    if checked_size(size) is not None and "{" in uri_template:
        msg = f"size cannot be set for the template {uri_template!r}: remove it"
        raise ValueError(msg)

    def decorate(function: Callable[P, R]) -> Resource[P, R]:
        require_plain_function(function, "@resource", "str or bytes")
        return Resource(
            function,
            uri_template,
            name or function.__name__,
            title,
            description or read_summary(function.__doc__),
            mime_type,
            scopes,
            local_names(function, names),
            stamp,
            shown_icons,
            annotated,
            size,
        )

    return decorate


def _make_stamp_function(watch: Any, folder: Path) -> Callable[[], object] | None:
    """Return a function whose result changes when the watched content does; None if nothing is watched."""
    if watch is None or callable(watch):
        return watch  # type: ignore[no-any-return]
    paths = [watch] if isinstance(watch, str | Path) else watch
    if not isinstance(paths, Sequence) or not all(isinstance(path, str | Path) for path in paths):
        msg = f"watch must be a path, a list of paths or a function, not {describe(watch)}"
        raise TypeError(msg)
    files = [str(folder / path) for path in paths]
    return lambda: [file_stamp(file) for file in files]

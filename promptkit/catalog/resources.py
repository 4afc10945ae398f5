"""Compiled resources, which match URIs and return the documents at them."""

import re
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Final

from msgspec import Struct

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.catalog.cases import Case
from promptkit.catalog.uri_templates import URI_PUNCTUATION, URITemplate, Value, expand_template
from promptkit.errors.diagnostics import Location
from promptkit.errors.exceptions import ArgumentsError, InvalidArgument, ResultError
from promptkit.language.content import Content
from promptkit.language.documents import EmbeddedResource
from promptkit.language.media import Icon
from promptkit.language.text import Text
from promptkit.language.validation import describe
from promptkit.types.errors import ConversionError

#: Control characters, which typed or copied URIs never contain.
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")

#: A path without any of these stays inside its folder.
_MAY_LEAVE_FOLDER: Final = re.compile(r"\.\.|[/\\:\0]")

#: Separators of paths in a string that might be a list of paths.
_BETWEEN_PATHS: Final = re.compile(r'[,"\n]')

#: Continuations of the hint "return str or bytes", by the invalid type of a returned value.
_HINTS: Final[Mapping[type, str]] = {
    type(None): " ('' for an empty document), or raise PromptError if it does not exist",
    Text: ", such as its .text",
}


class CompiledResource(Struct, frozen=True):
    """
    One resource as it is served: at one URI, or at all URIs that match a template.

    Args:
        uri_template:
            The resource's URI, or the template for its URIs.

        name:
            The resource's name.

        title:
            The display name, if the author declared one.

        description:
            The author's description.

        mime_type:
            The MIME type, if the author declared one.

        arguments:
            The variables of the template.

        template:
            The parsed template.

        function:
            The author's function, which returns `str` or `bytes`.

        location:
            Where the author defined the resource.

        scopes:
            The scopes that a caller needs; all are required. The resource is hidden from other callers.

        saved:
            Returns the cases that the author has saved.

        is_fixed:
            Whether the content stays the same for the lifetime of the catalog.

        stamp:
            A function whose result changes when the content does, if the author declared one.

        icons:
            The resource's icons.

        annotations:
            An object that holds the audience, the priority and the time of the last change, if the author
            declared any of these.

        size:
            The size of the content in bytes, if the author declared it.
    """

    uri_template: str
    name: str
    title: str | None
    description: str | None
    mime_type: str | None
    arguments: Arguments
    template: URITemplate
    function: Callable[..., Any]
    location: Location
    scopes: frozenset[str] = frozenset()
    saved: Callable[[], tuple[Case, ...]] = tuple
    is_fixed: bool = False
    stamp: Callable[[], object] | None = None
    icons: tuple[Icon, ...] = ()
    annotations: Content | None = None
    size: int | None = None

    @property
    def is_template(self) -> bool:
        """Whether the resource's URI has variables."""
        return bool(self.template.names)

    @property
    def example_uris(self) -> tuple[str, ...]:
        """The URIs of the example calls; only the resource's URI if it has no variables."""
        return tuple(expand_template(self.uri_template, values) for values in self.arguments.examples)

    def match(self, uri: str) -> dict[str, Value] | None:
        """
        Return the values of the template's variables in *uri*, or None if *uri* does not match.

        The values are not yet converted to their types. Spaces and non-ASCII letters need not be escaped.
        URIs with control characters do not match.
        """
        return None if _CONTROL.search(uri) else self.template.match(uri)

    def bind(self, variables: Mapping[str, Value]) -> dict[str, Any]:
        """
        Return the keyword arguments for the author's function.

        Args:
            variables:
                The variables that `match` returned.

        Raises:
            ArgumentsError: If any variable is missing, unknown or invalid; the error lists them all. In
                ``file:`` URIs, paths that lead out of their folder are invalid.

        See Also:
            https://modelcontextprotocol.io/specification/2026-07-28/server/resources#security-considerations
        """
        by_name = self.arguments.by_name
        if self.uri_template.lower().startswith("file:") and (errors := tuple(self._path_errors(variables))):
            raise ArgumentsError(self.name, errors, self.arguments.kind)
        sent = {name: _choose_form(by_name.get(name), value) for name, value in variables.items()}
        return self.arguments.read(sent)

    def read(self, uri: str, variables: Mapping[str, Value]) -> EmbeddedResource:
        """
        Read the resource at *uri*.

        Args:
            uri:
                The requested URI.

            variables:
                The variables that `match` returned for it.

        Raises:
            ArgumentsError: If any variable is missing, unknown or invalid. The error lists them all.

            Exception: Any exception that `content` raises.
        """
        return self.content(uri, self.bind(variables))

    def content(self, uri: str, values: Mapping[str, Any]) -> EmbeddedResource:
        """
        Call the author's function, and return its result as the content at *uri*.

        Args:
            uri:
                The requested URI. Characters that are invalid in URIs are escaped.

            values:
                The keyword arguments that `bind` returned for the variables of the URI.

        Raises:
            ResultError: If the function returned neither `str` nor `bytes`.

            ValueError: If the function returned empty bytes.

            Exception: Any exception from the function.
        """
        from urllib.parse import quote

        return content_of(self, quote(uri, safe=URI_PUNCTUATION), self.function(**values))

    def _path_errors(self, variables: Mapping[str, Value]) -> Iterator[InvalidArgument]:
        for name, value in variables.items():
            argument = self.arguments.by_name.get(name)
            if argument is not None and not all(map(_stays_in_folder, _texts(value))):
                yield from argument.errors_of(value, ConversionError("a plain relative path without '..'"))


def content_of(resource: Any, uri: str, result: Any) -> EmbeddedResource:
    """
    Convert the value that a resource's function returned to content.

    Args:
        resource:
            The resource, compiled or not. Only its name, its MIME type and its location are used.

        uri:
            The URI of the content.

        result:
            The returned value.

    Raises:
        ResultError: If *result* is neither `str` nor `bytes`.

        ValueError: If *result* is empty bytes.
    """
    if isinstance(result, str):
        return EmbeddedResource(uri, text=result, mime_type=resource.mime_type)
    if isinstance(result, bytes):
        return EmbeddedResource(uri, blob=result, mime_type=resource.mime_type)
    if isinstance(result, Coroutine):
        result.close()  # otherwise Python warns that it was never awaited
    subject = f"resource {resource.name!r} ({resource.location})"
    msg = f"{subject} returned {describe(result)}: return str or bytes{_HINTS.get(type(result), '')}"
    raise ResultError(msg)


def _texts(value: Value) -> list[str]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, list) else [value]


def _stays_in_folder(text: str) -> bool:
    """Return whether *text*, a path or a list of paths, stays inside its folder."""
    if not _MAY_LEAVE_FOLDER.search(text):
        return True
    # Check both kinds of paths on every platform: a harmless name on one platform can be a drive on another.
    kinds = (PurePosixPath, PureWindowsPath)
    paths = [kind(path.strip()) for path in _BETWEEN_PATHS.split(text) for kind in kinds]
    return not ("\0" in text or "\\" in text or any(".." in path.parts or path.anchor for path in paths))


def _choose_form(argument: Argument | None, value: Value) -> Any:
    # A URI does not show whether ``1,2`` is a list or text, or whether ``5`` is a list with one item. The
    # first form that the parameter's type can convert is used.
    if argument is None or value == "":
        return value  # empty means "not given", except for strings
    for form in _possible_forms(value):
        try:
            argument.reader.read(form)
        except ConversionError:
            continue
        return form
    return ",".join(value) if isinstance(value, list) else value


def _possible_forms(value: Value) -> Iterator[Any]:
    # Lists come first, so that an item can contain a comma.
    if isinstance(value, dict):
        yield value
        return
    items = [value] if isinstance(value, str) else value
    yield items
    yield ",".join(items)
    yield f"[{','.join(items)}]"  # values that are JSON
    if len(items) % 2 == 0:
        yield dict(zip(items[::2], items[1::2], strict=True))

"""Documents: resources as they are served, found by URI and read."""

import re
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Final, Protocol

from msgspec import Struct

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.catalog.uri_expressions import Value
from promptkit.catalog.uri_positions import ScannedURI
from promptkit.catalog.uri_templates import Template
from promptkit.conversion.errors import ConversionError
from promptkit.errors.diagnostics import Location
from promptkit.errors.exceptions import ArgumentErrors, Fault, ResultError
from promptkit.language.content import EmbeddedResource, Text
from promptkit.language.unsendable import describe

__all__ = ["CompiledResource", "content_of"]

#: What a URI holds as it is, beside letters, digits and ``_.-~`` (RFC 3986, section 2).
_KEPT: Final = "%:/?#[]@!$&'()*+,;="

#: Without any of these, text leads nowhere but into a folder.
_MAY_LEAD_OUT: Final = re.compile(r"\.\.|[/\\:\0]")

#: What parts the paths in a text that may be a list of them.
_BETWEEN_PATHS: Final = re.compile(r'[,"\n]')


#: What else is to be said of what is returned in place of a document.
_HINTS: Final[Mapping[type, str]] = {
    type(None): ", '' for a document that is empty; raise PromptError if there is none",
    Text: ", such as its .text",
}


class CompiledResource(Struct, frozen=True):
    """
    One resource as it is served: a document, or one for each set of variables.

    Args:
        uri_template:
            Its URI, or the template of its URIs.

        name:
            What it is called.

        title:
            What people see, if the author gave one.

        description:
            What it is, in the author's words.

        mime_type:
            Its type, if the author said.

        arguments:
            The variables of the template.

        template:
            The template, to read URIs with.

        function:
            The author's function, which returns `str` or `bytes`.

        location:
            Where the author defined it.
    """

    uri_template: str
    name: str
    title: str | None
    description: str | None
    mime_type: str | None
    arguments: Arguments
    template: Template
    function: Callable[..., Any]
    location: Location

    @property
    def is_template(self) -> bool:
        """
        Whether its URI has variables.
        """
        return bool(self.template.names)

    def match(self, uri: str) -> dict[str, Value] | None:
        """
        Return the variables in *uri*, as they are spelt there, or None if it is no URI of this.

        Clients leave spaces and letters of all scripts as they are, but no control characters.
        """
        return self.find(ScannedURI(uri))

    def find(self, uri: ScannedURI) -> dict[str, Value] | None:
        """
        Return what `match` does, for a URI that is held against more than one resource.
        """
        return None if uri.has_control else self.template.find(uri)

    def bind(self, variables: Mapping[str, Value]) -> dict[str, Any]:
        """
        Return the keyword arguments for the author's function.

        Args:
            variables:
                What `match` found.

        Raises:
            ArgumentErrors: With every variable that is missing, unknown or does not fit. In the
                URI of a file no variable fits that could lead out of a folder.

        See Also:
            https://modelcontextprotocol.io/specification/2026-07-28/server/resources#security-considerations
        """
        by_name = self.arguments.by_name
        if self.uri_template.lower().startswith("file:") and (faults := tuple(self._astray(variables))):
            raise ArgumentErrors(self.name, faults, self.arguments.kind)
        return self.arguments.read(
            {
                name: _as_sent(by_name[name], value) if name in by_name else value
                for name, value in variables.items()
            }
        )

    def read(self, uri: str, variables: Mapping[str, Value]) -> EmbeddedResource:
        """
        Return what stands at *uri*.

        Args:
            uri:
                What a client asked for.

            variables:
                What `match` found in it.

        Raises:
            ArgumentErrors: With every variable that is missing, unknown or does not fit.

            Exception: As `content` does.
        """
        return self.content(uri, self.bind(variables))

    def content(self, uri: str, values: Mapping[str, Any]) -> EmbeddedResource:
        """
        Call the author's function and return what it says, under *uri*.

        What a URI cannot hold, and a client left in it, is escaped.

        Args:
            uri:
                What a client asked for.

            values:
                What `bind` made of its variables.

        Raises:
            TypeError: If the function returned neither `str` nor `bytes`.

            ValueError: If it returned no bytes at all.

            Exception: Whatever the function raises.
        """
        from urllib.parse import quote

        return content_of(self, quote(uri, safe=_KEPT), self.function(**values))

    def _astray(self, variables: Mapping[str, Value]) -> Iterator[Fault]:
        """
        Yield the fault of each variable that could lead out of a folder.
        """
        for name, value in variables.items():
            argument = self.arguments.by_name.get(name)
            if argument is not None and not all(map(_is_below, _texts(value))):
                yield from argument.faults(value, ConversionError("a plain relative path without '..'"))


class Named(Protocol):
    """
    What `content_of` has to know of a resource.
    """

    @property
    def name(self) -> str: ...
    @property
    def mime_type(self) -> str | None: ...
    @property
    def location(self) -> Location: ...


def content_of(resource: Named, uri: str, result: Any) -> EmbeddedResource:
    """
    Return what the function of *resource* returned as content.

    Raises:
        ResultError: If it is neither `str` nor `bytes`.

        ValueError: If it is no bytes at all.
    """
    if isinstance(result, str):
        return EmbeddedResource(uri, text=result, mime_type=resource.mime_type)
    if isinstance(result, bytes):
        return EmbeddedResource(uri, blob=result, mime_type=resource.mime_type)
    if isinstance(result, Coroutine):
        result.close()  # else Python would warn that nobody awaited it
    place = f"resource {resource.name!r} ({resource.location})"
    msg = f"{place} returned {describe(result)}: return str or bytes{_HINTS.get(type(result), '')}"
    raise ResultError(msg)


def _texts(value: Value) -> list[str]:
    """
    Return every text in the value of a variable.
    """
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, list) else [value]


def _is_below(text: str) -> bool:
    """
    Return whether *text* leads nowhere but down, also if it is read as a list of paths.
    """
    if not _MAY_LEAD_OUT.search(text):
        return True
    # Both families on every platform: what is harmless on one may be a drive on another.
    kinds = (PurePosixPath, PureWindowsPath)
    paths = [kind(path.strip()) for path in _BETWEEN_PATHS.split(text) for kind in kinds]
    return not ("\0" in text or "\\" in text or any(".." in path.parts or path.anchor for path in paths))


def _as_sent(argument: Argument, value: Value) -> Any:
    """
    Return the value of a variable in the form that its parameter is read from.

    A URI does not say whether ``1,2`` is a list or text, or ``5`` a list of one: the type does.
    """
    if value == "":
        return value  # "not given", unless it is text
    for form in _forms(value):
        try:
            argument.reader.read(form)
        except ConversionError:
            continue
        return form
    return ",".join(value) if isinstance(value, list) else value


def _forms(value: Value) -> Iterator[Any]:
    """
    Yield what *value* may stand for: lists first, so that an item may hold a comma.
    """
    if isinstance(value, dict):
        yield value
        return
    items = [value] if isinstance(value, str) else value
    yield items
    yield ",".join(items)
    yield f"[{','.join(items)}]"  # values that are written as JSON
    if len(items) % 2 == 0:
        yield dict(zip(items[::2], items[1::2], strict=True))

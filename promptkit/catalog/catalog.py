"""
The catalog: compiled prompts and resources, immutable, sorted, ready to render and read.

It knows nothing of the wire, and the wire nothing of the compiler: they meet here.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import attrs

from promptkit.catalog.completion import Completion
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.resources import CompiledResource
from promptkit.catalog.uri_expressions import Value
from promptkit.catalog.uri_positions import MAX_URI_LENGTH, ScannedURI
from promptkit.errors.diagnostics import Diagnostic, Severity
from promptkit.errors.exceptions import UnknownPrompt, UnknownResource, nearest
from promptkit.language.content import EmbeddedResource
from promptkit.language.messages import Workflow

__all__ = ["Catalog"]


def _sorted(prompts: Iterable[CompiledPrompt]) -> tuple[CompiledPrompt, ...]:
    """
    Return *prompts* in the order in which every client sees them.
    """
    return tuple(sorted(prompts, key=lambda prompt: prompt.name))


def _by_template(resources: Iterable[CompiledResource]) -> tuple[CompiledResource, ...]:
    """
    Return *resources* in the order in which every client sees them, and in which they are tried.
    """
    return tuple(sorted(resources, key=lambda resource: resource.uri_template))


@attrs.frozen
class Catalog(Mapping[str, CompiledPrompt]):
    """
    Everything that is served, prompts by name and resources by URI, and what could not be.

    Args:
        prompts:
            The compiled prompts; kept sorted by name.

        diagnostics:
            What the compiler found, errors and warnings.

        resources:
            The compiled resources; kept sorted by URI template.
    """

    prompts: tuple[CompiledPrompt, ...] = attrs.field(default=(), converter=_sorted)
    diagnostics: tuple[Diagnostic, ...] = ()
    resources: tuple[CompiledResource, ...] = attrs.field(default=(), converter=_by_template)
    _by_name: Mapping[str, CompiledPrompt] = attrs.field(init=False, eq=False, repr=False)
    _by_uri: Mapping[str, CompiledResource] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        by_name = {prompt.name: prompt for prompt in self.prompts}
        object.__setattr__(self, "_by_name", MappingProxyType(by_name))
        by_uri = {resource.uri_template: resource for resource in self.resources}
        object.__setattr__(self, "_by_uri", MappingProxyType(by_uri))

    def __getitem__(self, name: str) -> CompiledPrompt:
        """
        Return the prompt called *name*. Raises `UnknownPrompt` if there is none.
        """
        try:
            return self._by_name[name]
        except KeyError:
            raise UnknownPrompt(name, nearest(name, self._by_name)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self.prompts)

    def render(self, name: str, arguments: Mapping[str, Any] | None = None) -> Workflow:
        """
        Render the prompt called *name* for what a client sends.

        Raises:
            UnknownPrompt: If there is none.

            Exception: As `CompiledPrompt.render` does.
        """
        return self[name].render(arguments)

    def complete(
        self, name: str, argument: str, typed: str, chosen: Mapping[str, str] | None = None
    ) -> Completion:
        """
        Return what to offer while someone types the value of an argument.

        Args:
            name:
                The prompt.

            argument:
                The argument; nothing is offered for one that has no completer.

            typed:
                What was typed so far.

            chosen:
                The arguments that were chosen already.

        Raises:
            UnknownPrompt: If there is no such prompt.

            ArgumentErrors: If the prompt has no such argument.

            RuntimeError: If the completer is asynchronous and an event loop runs already.

            Exception: Whatever the author's completer raises.
        """
        completer = self[name].arguments.completer(argument)
        return Completion() if completer is None else completer.complete(typed, chosen)

    def resource(self, uri: str) -> tuple[CompiledResource, Mapping[str, Value]]:
        """
        Return what stands at *uri*, and the values of its variables as they are spelt there.

        A document of that very URI comes first, then the first template that fits.

        Raises:
            UnknownResource: If there is none.
        """
        found = self._by_uri.get(uri)
        if found is not None and not found.is_template:
            return found, {}
        if len(uri) > MAX_URI_LENGTH:
            raise UnknownResource(uri, reason=f"a URI has at most {MAX_URI_LENGTH:,} characters")
        scanned = ScannedURI(uri)
        for resource in self.resources:
            if resource.is_template and (variables := resource.find(scanned)) is not None:
                return resource, variables
        raise UnknownResource(uri, nearest(uri, self._by_uri))

    def template(self, uri_template: str) -> CompiledResource:
        """
        Return the resource that was declared with *uri_template*.

        Raises:
            UnknownResource: If there is none.
        """
        try:
            return self._by_uri[uri_template]
        except KeyError:
            raise UnknownResource(uri_template, nearest(uri_template, self._by_uri)) from None

    def read(self, uri: str) -> EmbeddedResource:
        """
        Return what a client that reads *uri* is sent.

        Raises:
            UnknownResource: If there is none.

            Exception: As `CompiledResource.read` does.
        """
        resource, variables = self.resource(uri)
        return resource.read(uri, variables)

    def complete_resource(
        self, uri_template: str, variable: str, typed: str, chosen: Mapping[str, str] | None = None
    ) -> Completion:
        """
        Return what to offer while someone types the value of a variable.

        Args:
            uri_template:
                The template; nothing is offered for the URI of a single document.

            variable:
                The variable; nothing is offered for one that has no completer.

            typed:
                What was typed so far.

            chosen:
                The variables that were chosen already.

        Raises:
            UnknownResource: If there is no such resource.

            ArgumentErrors: If the template has no such variable.

            Exception: As `complete` does.
        """
        resource = self.template(uri_template)
        completer = resource.arguments.completer(variable) if resource.is_template else None
        return Completion() if completer is None else completer.complete(typed, chosen)

    @property
    def healthy(self) -> bool:
        """
        Whether everything that was found can be served.
        """
        return not any(diagnostic.severity is Severity.ERROR for diagnostic in self.diagnostics)

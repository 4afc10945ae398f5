"""
The catalog: compiled prompts and resources, immutable, sorted, ready to render and read.

It knows nothing of the wire, and the wire nothing of the compiler: they meet here.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import attrs
from msgspec import Struct

from promptkit.arguments import Arguments
from promptkit.completion import Completion
from promptkit.content import EmbeddedResource
from promptkit.context import Context
from promptkit.diagnostics import Diagnostic, Location, Severity
from promptkit.documents import CompiledResource
from promptkit.errors import UnknownPrompt, UnknownResource, nearest
from promptkit.icons import Icon
from promptkit.messages import Workflow
from promptkit.rendering import Renderer
from promptkit.schemas import schema_of
from promptkit.uri_expressions import Value
from promptkit.uri_positions import LONGEST_URI, ScannedURI

__all__ = ["Catalog", "CompiledPrompt", "CompiledResource"]


class CompiledPrompt(Struct, frozen=True):
    """
    One prompt as it is served.

    Args:
        name:
            What clients ask for.

        title:
            What people see, if the author gave one.

        description:
            What it is for, in the author's words.

        icons:
            Pictures that a client may show beside it.

        meta:
            What goes into its ``_meta``.

        arguments:
            What it may be asked.

        context:
            The name of the parameter that receives the `Context`, if there is one.

        renderer:
            The author's function.

        timeout:
            How long one rendering may take, in seconds, if the author set a limit.

        cache:
            How long a reply may be served again for the same arguments, in seconds.

        elicit:
            Whether the user is asked for required arguments that are missing.
    """

    name: str
    title: str | None
    description: str | None
    icons: tuple[Icon, ...]
    meta: Mapping[str, Any]
    arguments: Arguments
    context: str | None
    renderer: Renderer
    timeout: float | None = None
    cache: float | None = None
    elicit: bool = False

    @property
    def location(self) -> Location:
        """
        Where the author defined it.
        """
        return self.renderer.location

    @property
    def schema(self) -> dict[str, Any]:
        """
        The JSON Schema of its arguments.
        """
        return schema_of(self.arguments.ordered)

    def bind(self, given: Mapping[str, Any] | None, context: Context | None = None) -> dict[str, Any]:
        """
        Return the keyword arguments for the author's function.

        Args:
            given:
                What a client sent, by argument name.

            context:
                The request that is answered.

        Raises:
            ArgumentErrors: With every argument that is missing, unknown or does not fit.
        """
        values = self.arguments.read(given)
        if self.context is not None:
            values[self.context] = context or Context()
        return values

    def render(self, given: Mapping[str, Any] | None = None, context: Context | None = None) -> Workflow:
        """
        Render for what a client sends.

        Args:
            given:
                Values by argument name, as the text that a client sends.

            context:
                The request that is answered.

        Raises:
            ArgumentErrors: With every argument that is missing, unknown or does not fit.

            TypeError: If the function returned what no message can hold.

            RuntimeError: If the function is asynchronous and an event loop runs already.

            Exception: Whatever the author's function raises.
        """
        return self.renderer.render(**self.bind(given, context))

    async def render_async(
        self,
        given: Mapping[str, Any] | None = None,
        context: Context | None = None,
    ) -> Workflow:
        """
        Render for what a client sends, on the running event loop.

        Raises:
            Exception: As `render` does.
        """
        return await self.renderer.render_async(**self.bind(given, context))


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
        if len(uri) > LONGEST_URI:
            raise UnknownResource(uri, reason=f"a URI has at most {LONGEST_URI:,} characters")
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

"""One compiled prompt."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from promptkit.catalog.arguments import Arguments
from promptkit.catalog.rendering import Renderer
from promptkit.errors.diagnostics import Location
from promptkit.language.messages import Workflow

if TYPE_CHECKING:
    from promptkit.language.context import Context
    from promptkit.language.media import Icon
    from promptkit.language.tool import Tool

__all__ = ["TAGS", "CompiledPrompt"]

#: Where `_meta` has the words that authors group prompts by.
TAGS: Final = "promptkit/tags"


class CompiledPrompt(Struct, frozen=True):
    """
    One prompt as it is served.

    Args:
        name:
            The name that clients ask for.

        title:
            The name that people see, if the author gave one.

        description:
            The author's description.

        icons:
            Icons that a client may show.

        meta:
            Its ``_meta``.

        arguments:
            Its arguments, in the order of the signature.

        context:
            The name of the parameter that receives a `Context`, if there is one.

        renderer:
            Calls the author's function.

        timeout:
            How long one rendering may take, in seconds, if the author set a limit.

        cache:
            How long a reply may be reused for the same arguments, in seconds.

        elicit:
            Whether the user is asked for required arguments that are missing.

        tool:
            What its author says of it as a tool; False if it is none.

        scopes:
            What a caller has to have, all of it: for others it does not exist.
    """

    name: str
    title: str | None
    description: str | None
    icons: "tuple[Icon, ...]"
    meta: Mapping[str, Any]
    arguments: Arguments
    context: str | None
    renderer: Renderer
    timeout: float | None = None
    cache: float | None = None
    elicit: bool = False
    tool: "Tool | bool | None" = None
    scopes: frozenset[str] = frozenset()

    @property
    def location(self) -> Location:
        """Where the author defined it."""
        return self.renderer.location

    @property
    def tags(self) -> tuple[str, ...]:
        """The words that its author groups it by."""
        tags = self.meta.get(TAGS, ())
        return tuple(map(str, tags)) if isinstance(tags, list | tuple) else ()

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        from promptkit.catalog.json_schema import schema_of  # only lists and forms show it

        return schema_of(self.arguments.ordered)

    def bind(self, given: Mapping[str, Any] | None, context: "Context | None" = None) -> dict[str, Any]:
        """
        Return the keyword arguments for the author's function.

        Args:
            given:
                The values that a client sent, by argument name.

            context:
                The context of the request.

        Raises:
            ArgumentErrors: With every argument that is missing, unknown or has a wrong value.
        """
        values = self.arguments.read(given)
        if self.context is not None:
            from promptkit.language.context import Context  # most prompts do without

            values[self.context] = context or Context()
        return values

    def render(self, given: Mapping[str, Any] | None = None, context: "Context | None" = None) -> Workflow:
        """
        Render with the arguments of a client.

        Args:
            given:
                The values that a client sent, by argument name.

            context:
                The context of the request.

        Raises:
            ArgumentErrors: With every argument that is missing, unknown or has a wrong value.

            ResultError: If a value that the function returned cannot become a message.

            RuntimeError: If the function is asynchronous and an event loop runs already.

            Exception: Whatever the author's function raises.
        """
        return self.renderer.render(**self.bind(given, context))

    async def render_async(
        self,
        given: Mapping[str, Any] | None = None,
        context: "Context | None" = None,
    ) -> Workflow:
        """
        Render with the arguments of a client, on the running event loop.

        Raises:
            Exception: As `render` does.
        """
        return await self.renderer.render_async(**self.bind(given, context))

"""Lookup: which prompt or resource a request is about, and what it gives for the arguments."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from promptkit.catalog import redaction
from promptkit.catalog.arguments import Arguments
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.tools import GET
from promptkit.errors.exceptions import UnknownPromptError
from promptkit.protocol import wire
from promptkit.protocol.events import Request
from promptkit.server.snapshot import Snapshot

if TYPE_CHECKING:  # most recipes have none
    from promptkit.catalog.resources import CompiledResource
    from promptkit.catalog.skills import CompiledSkill


class RequestTarget(Struct, frozen=True):
    """
    What a request is about.

    Args:
        kind:
            ``"prompt"`` or ``"resource"``.

        asked:
            What the client calls it: a name, or a URI, which may hold the values of arguments.

        found:
            The prompt or resource; None if it does not exist.

        given:
            What it is given, by name, as the client sends it.
    """

    kind: str
    asked: str
    found: "CompiledPrompt | CompiledResource | None"
    given: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"RequestTarget({self.kind!r}, {self.asked!r})"  # what it is given may be secret

    @property
    def name(self) -> str | None:
        """What its author calls it; None if it does not exist."""
        return None if self.found is None else name_of(self.found)

    @property
    def secrets(self) -> frozenset[str]:
        """The names of its secret arguments."""
        return frozenset() if self.found is None else self.found.arguments.secret


def name_of(item: "CompiledPrompt | CompiledResource | CompiledSkill") -> str:
    """Return the name of a prompt, the URI template of a resource, or the URI of a skill."""
    return item.name if isinstance(item, CompiledPrompt) else item.uri_template


def target_of(request: Request, catalog: Catalog) -> RequestTarget | None:
    """Return what *request* is about; None if that is no single prompt or resource."""
    params = request.params
    if isinstance(params, wire.GetPromptParams):
        return RequestTarget("prompt", params.name, _prompt(catalog, params.name), params.arguments or {})
    if isinstance(params, wire.ResourceParams):
        resource, variables = catalog.find_resource(params.uri) or (None, {})
        return RequestTarget("resource", params.uri, resource, variables)
    if not isinstance(params, wire.CompleteParams):
        return None
    given, ref = chosen_arguments(params), params.ref
    if isinstance(ref, wire.PromptReference):
        return RequestTarget("prompt", ref.name, _prompt(catalog, ref.name), given)
    return RequestTarget("resource", ref.uri, catalog.find_template(ref.uri), given)


def _prompt(catalog: Catalog, name: str) -> CompiledPrompt | None:
    try:
        return catalog[name]  # which waits for no other prompt while recipes are imported
    except UnknownPromptError:
        return None


def unmet_scopes(request: Request, whole: Snapshot, view: Snapshot) -> frozenset[str]:
    """
    Return the scopes of what a request is about, if it is in *whole*, and not in the *view* of its sender.
    """
    found = _item(request, whole)
    if found is None or _item(request, view) is not None:
        return frozenset()
    return found.scopes


def _item(request: Request, snapshot: Snapshot) -> "CompiledPrompt | CompiledResource | None":
    """What a request asks for; None if there is no such thing."""
    if request.method == "tools/call":
        return _tool(request.params, snapshot)
    if isinstance(request.params, wire.ResourceParams) and request.method != "resources/read":
        return None
    target = target_of(request, snapshot.catalog)
    return None if target is None else target.found


def _tool(params: wire.GetPromptParams, snapshot: Snapshot) -> CompiledPrompt | None:
    """The prompt that a call is about, which may be the one that a tool is to get."""
    name: Any = params.name
    if snapshot.tools.is_search:
        name = (params.arguments or {}).get("name") if name == GET else None
    prompt = snapshot.catalog.find_prompt(name) if isinstance(name, str) else None
    return None if prompt is None or prompt.tool is False else prompt


def chosen_arguments(params: wire.CompleteParams) -> dict[str, str]:
    """Return the arguments that a person has chosen so far, and the one that is being typed."""
    chosen = params.context.arguments if params.context else {}
    return {**chosen, params.argument.name: params.argument.value}


def read_hidden(
    arguments: Arguments, given: Mapping[str, Any] | None, read: Callable[[Any], dict[str, Any]]
) -> dict[str, Any]:
    """Return what *read* makes of the values that a client has given; `hide` those that are secret."""
    if not arguments.secret:
        return read(given)
    hide(arguments, given)
    values = read(given)
    hide(arguments, values, read=True)
    return values


def hide(arguments: Arguments, values: Mapping[str, Any] | None, *, read: bool = False) -> None:
    """
    Hide the secrets among *values* in everything that is printed from now on, while serving.

    The author's code sees them next, and may leave threads or objects behind that print them.
    """
    redaction.hide(arguments, values, read=read)

"""Lookup: which prompt or resource a request is about, and what it gives for the arguments."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from promptkit.catalog.arguments import Arguments
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.errors.exceptions import UnknownPrompt, UnknownResource
from promptkit.protocol import wire
from promptkit.protocol.events import Request
from promptkit.server.snapshot import Snapshot
from promptkit.standard_error import is_redirected

if TYPE_CHECKING:  # most recipes have none
    from promptkit.catalog.resources import CompiledResource

__all__ = ["RequestTarget", "chosen_arguments", "hide", "scopes_of", "target_of"]


class RequestTarget(Struct, frozen=True):
    """
    What a request is about.

    Args:
        kind:
            ``"prompt"`` or ``"resource"``.

        asked:
            What the client calls it: a name, or a URI, which may hold the values of arguments.

        name:
            What its author calls it: its name, or its URI template; None if it does not exist.

        arguments:
            What it may be given; None if it does not exist.

        given:
            What it is given, by name, as the client sends it.
    """

    kind: str
    asked: str
    name: str | None = None
    arguments: Arguments | None = None
    given: Mapping[str, Any] = {}

    def __repr__(self) -> str:
        return f"RequestTarget({self.kind!r}, {self.asked!r})"  # what it is given may be secret

    @property
    def secrets(self) -> frozenset[str]:
        """The names of its secret arguments."""
        return self.arguments.secret if self.arguments else frozenset()


def target_of(request: Request, catalog: Catalog) -> RequestTarget | None:
    """Return what *request* is about; None if that is no single prompt or resource."""
    params = request.params
    if isinstance(params, wire.GetPromptParams):
        return _prompt(catalog, params.name, params.arguments or {})
    if isinstance(params, wire.ResourceParams):
        return _resource(catalog, params.uri)
    if not isinstance(params, wire.CompleteParams):
        return None
    given = chosen_arguments(params)
    if isinstance(params.ref, wire.PromptReference):
        return _prompt(catalog, params.ref.name, given)
    return _template(catalog, params.ref.uri, given)


def scopes_of(request: Request, whole: Snapshot, view: Snapshot) -> frozenset[str]:
    """
    Return the scopes of what a request is about, if it is in *whole*, and not in the *view* of its sender.
    """
    found = _item(request, whole)
    if found is None or _item(request, view) is not None:
        return frozenset()
    return found.scopes


def _item(request: Request, snapshot: Snapshot) -> "CompiledPrompt | CompiledResource | None":
    """What a request is about; None if there is no such thing."""
    params, catalog = request.params, snapshot.catalog
    if isinstance(params, wire.GetPromptParams):
        return _tool(params, snapshot) if request.method == "tools/call" else catalog.find_prompt(params.name)
    if isinstance(params, wire.ResourceParams) and request.method == "resources/read":
        found = catalog.find_resource(params.uri)
        return None if found is None else found[0]
    if isinstance(params, wire.CompleteParams):
        ref = params.ref
        if isinstance(ref, wire.PromptReference):
            return catalog.find_prompt(ref.name)
        return catalog.find_template(ref.uri)
    return None


def _tool(params: wire.GetPromptParams, snapshot: Snapshot) -> CompiledPrompt | None:
    """The prompt that a call is about, which may be the one that a tool is to get."""
    from promptkit.catalog.tools import GET  # few servers offer tools

    name: Any = params.name
    if snapshot.tools.is_search:
        name = (params.arguments or {}).get("name") if name == GET else None
    prompt = snapshot.catalog.find_prompt(name) if isinstance(name, str) else None
    return None if prompt is None or prompt.tool is False else prompt


def chosen_arguments(params: wire.CompleteParams) -> dict[str, str]:
    """Return the arguments that a person has chosen so far, and the one that is being typed."""
    chosen = params.context.arguments if params.context else {}
    return {**chosen, params.argument.name: params.argument.value}


def _prompt(catalog: Catalog, name: str, given: Mapping[str, Any]) -> RequestTarget:
    try:
        return RequestTarget("prompt", name, name, catalog[name].arguments, given)
    except UnknownPrompt:
        return RequestTarget("prompt", name, given=given)


def _resource(catalog: Catalog, uri: str) -> RequestTarget:
    try:
        resource, variables = catalog.resource(uri)
    except UnknownResource:
        return RequestTarget("resource", uri)
    return RequestTarget("resource", uri, resource.uri_template, resource.arguments, variables)


def _template(catalog: Catalog, uri_template: str, given: Mapping[str, Any]) -> RequestTarget:
    try:
        arguments = catalog.template(uri_template).arguments
    except UnknownResource:
        return RequestTarget("resource", uri_template, given=given)
    return RequestTarget("resource", uri_template, uri_template, arguments, given)


def hide(arguments: Arguments, values: Mapping[str, Any] | None, *, read: bool = False) -> None:
    """
    Hide the secrets among *values* in everything that is printed from now on, while serving.

    The author's code sees them next, and may leave threads or objects behind that print them.
    """
    if is_redirected():
        from promptkit.catalog import redaction  # few prompts take secrets

        redaction.hide(arguments, values, read=read)

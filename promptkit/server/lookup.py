"""Lookup of the prompt or resource that a request is about, and calls to authors' functions."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, TypeVarTuple

from msgspec import Struct

from promptkit.catalog import redaction
from promptkit.catalog.arguments import Arguments
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.resources import CompiledResource
from promptkit.catalog.skills import CompiledSkill
from promptkit.catalog.tools import GET
from promptkit.errors.exceptions import ArgumentsError, UnknownPromptError, UnknownResourceError
from promptkit.protocol import wire
from promptkit.protocol.capabilities import METHODS
from promptkit.protocol.events import Request
from promptkit.server.snapshot import Snapshot

Args = TypeVarTuple("Args")
T = TypeVar("T")

#: The errors that an author's function raises if it makes an invalid call to another prompt or resource.
_NESTED_ERRORS: Final = (ArgumentsError, UnknownPromptError, UnknownResourceError)


class RequestTarget(Struct, frozen=True):
    """
    The prompt or resource that a request is about.

    Args:
        kind:
            ``"prompt"`` or ``"resource"``.

        identifier:
            The name or URI in the request. A URI can contain argument values.

        item:
            The prompt or resource; None if it does not exist.

        arguments:
            The arguments in the request, keyed by name.
    """

    kind: str
    identifier: str
    item: CompiledPrompt | CompiledResource | None
    arguments: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"RequestTarget({self.kind!r}, {self.identifier!r})"  # arguments may be secret

    @property
    def name(self) -> str | None:
        """The name of the prompt or the URI template of the resource; None if it does not exist."""
        return None if self.item is None else name_of(self.item)

    @property
    def secrets(self) -> frozenset[str]:
        """The names of the secret arguments."""
        return frozenset() if self.item is None else self.item.arguments.secret


def name_of(item: CompiledPrompt | CompiledResource | CompiledSkill) -> str:
    """Return the name of a prompt, the URI template of a resource, or the URI of a skill."""
    return item.name if isinstance(item, CompiledPrompt) else item.uri_template


def method_or_fallback(request: Request, fallback: str) -> str:
    """Return a request's method, or *fallback* if it is unknown. Clients can send any number of those."""
    return request.method if request.method in METHODS else fallback


def find_target(request: Request, catalog: Catalog) -> RequestTarget | None:
    """
    Return the prompt or resource that *request* is about, or None if it is about neither.
    """
    params = request.params
    if isinstance(params, wire.GetPromptParams):
        return RequestTarget("prompt", params.name, _get_prompt(catalog, params.name), params.arguments or {})
    if isinstance(params, wire.ResourceParams):
        resource, variables = catalog.find_resource(params.uri) or (None, {})
        return RequestTarget("resource", params.uri, resource, variables)
    if not isinstance(params, wire.CompleteParams):
        return None
    arguments, ref = completion_arguments(params), params.ref
    if isinstance(ref, wire.PromptReference):
        return RequestTarget("prompt", ref.name, _get_prompt(catalog, ref.name), arguments)
    return RequestTarget("resource", ref.uri, catalog.find_template(ref.uri), arguments)


def _get_prompt(catalog: Catalog, name: str) -> CompiledPrompt | None:
    try:
        return catalog[name]  # while recipes are imported, this does not wait for other prompts
    except UnknownPromptError:
        return None


def find_missing_scopes(request: Request, full: Snapshot, view: Snapshot) -> frozenset[str]:
    """
    Return the scopes that the requested item requires, if *full* contains the item, but *view* does not.

    Otherwise, the result is empty. *full* contains all items, and *view* those that the caller can see.
    """
    item = _find_item(request, full)
    if item is None or _find_item(request, view) is not None:
        return frozenset()
    return item.scopes


def _find_item(request: Request, snapshot: Snapshot) -> CompiledPrompt | CompiledResource | None:
    """Return the item that a request asks for, or None if it does not exist."""
    if request.method == "tools/call":
        return _find_called_prompt(request.params, snapshot)
    if isinstance(request.params, wire.ResourceParams) and request.method != "resources/read":
        return None
    target = find_target(request, snapshot.catalog)
    return None if target is None else target.item


def _find_called_prompt(params: wire.GetPromptParams, snapshot: Snapshot) -> CompiledPrompt | None:
    """Return the prompt that a tool call renders, directly or through the tool that gets prompts by name."""
    name: Any = params.name
    if snapshot.tools.is_search_only:
        name = (params.arguments or {}).get("name") if name == GET else None
    prompt = snapshot.catalog.find_prompt(name) if isinstance(name, str) else None
    return None if prompt is None or prompt.tool is False else prompt


def completion_arguments(params: wire.CompleteParams) -> dict[str, str]:
    """Return the values chosen for other arguments, and the text of the argument to complete, by name."""
    return {**params.chosen, params.argument.name: params.argument.value}


def read_and_redact_secrets(
    arguments: Arguments, sent: Mapping[str, Any] | None, read: Callable[[Any], dict[str, Any]]
) -> dict[str, Any]:
    """
    Return the values that *read* returns for the arguments that a client has sent.

    While serving, redact the secrets among them in everything that the process prints from now on, because
    the author's code may start threads or create objects that print these secrets later.
    """
    if not arguments.secret:
        return read(sent)
    redaction.hide(arguments, sent)
    values = read(sent)
    redaction.hide(arguments, values, are_converted=True)
    return values


def call_author(function: Callable[[*Args], T], *args: *Args) -> T:
    """
    Call an author's *function*.

    A prompt that calls another prompt with invalid arguments has a bug. The client's own request is valid, so
    the client must not get the error about these arguments.

    Raises:
        RuntimeError: If the function makes an invalid call to another prompt or resource.

        Exception: Any other exception that the function raises.
    """
    try:
        return function(*args)
    except _NESTED_ERRORS as error:
        msg = "the function made an invalid call to another prompt or resource"
        raise RuntimeError(msg) from error

"""Subjects: which prompt or resource a request is about, and what it gives for its arguments."""

from collections.abc import Mapping
from typing import Any

import attrs

from promptkit.catalog.arguments import Arguments
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.completion import Completer
from promptkit.catalog.resources import CompiledResource
from promptkit.errors.exceptions import UnknownPrompt, UnknownResource, shortened
from promptkit.errors.standard_error import is_redirected
from promptkit.protocol import wire
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import InvalidParams, ResourceNotFound

__all__ = ["RequestTarget", "completer_of", "hide", "resource_of", "target_of"]


@attrs.frozen
class RequestTarget:
    """
    What a request is about.

    Args:
        kind:
            ``"prompt"`` or ``"resource"``.

        asked:
            What the client calls it: a name, or a URI, which may hold the values of arguments.

        name:
            What its author calls it: its name, or its URI template; None if there is no such thing.

        arguments:
            What it may be given; None if there is no such thing.

        given:
            What it is given, by name, as the client sends it.

        resource:
            The resource that was found, for `resource_of` not to look for it again.
    """

    kind: str
    asked: str
    name: str | None = None
    arguments: Arguments | None = None
    given: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    resource: CompiledResource | None = attrs.field(default=None, repr=False)

    @property
    def secrets(self) -> frozenset[str]:
        """
        The names of those of its arguments that are secret.
        """
        return self.arguments.secret if self.arguments else frozenset()


def target_of(request: Request, catalog: Catalog) -> RequestTarget | None:
    """
    Return what *request* is about; None if that is no single prompt or resource.

    Args:
        request:
            What was asked.

        catalog:
            What it is answered from.
    """
    params = request.params
    if isinstance(params, wire.GetPromptParams):
        return _prompt(catalog, params.name, params.arguments or {})
    if isinstance(params, wire.ResourceParams):
        return _resource(catalog, params.uri)
    if not isinstance(params, wire.CompleteParams):
        return None
    chosen = params.context.arguments if params.context else {}
    given = {**chosen, params.argument.name: params.argument.value}
    if isinstance(params.ref, wire.PromptReference):
        return _prompt(catalog, params.ref.name, given)
    return _template(catalog, params.ref.uri, given)


def _prompt(catalog: Catalog, name: str, given: Mapping[str, Any]) -> RequestTarget:
    """
    Return the prompt that a client calls *name*.
    """
    try:
        return RequestTarget("prompt", name, name, catalog[name].arguments, given)
    except UnknownPrompt:
        return RequestTarget("prompt", name, given=given)


def _resource(catalog: Catalog, uri: str) -> RequestTarget:
    """
    Return the resource at *uri*, and the variables in it.
    """
    try:
        resource, variables = catalog.resource(uri)
    except UnknownResource:
        return RequestTarget("resource", uri)
    return RequestTarget("resource", uri, resource.uri_template, resource.arguments, variables, resource)


def _template(catalog: Catalog, uri_template: str, given: Mapping[str, Any]) -> RequestTarget:
    """
    Return the resource that was declared with *uri_template*.
    """
    try:
        return RequestTarget(
            "resource", uri_template, uri_template, catalog.template(uri_template).arguments, given
        )
    except UnknownResource:
        return RequestTarget("resource", uri_template, given=given)


def completer_of(catalog: Catalog, request: Request, params: wire.CompleteParams) -> Completer | None:
    """
    Return what completes what is being typed; None if nothing does. Notes what *request* is about.

    Raises:
        UnknownPrompt: If there is no such prompt.

        InvalidParams: If there is no such resource.

        ArgumentErrors: If the prompt, or the template, has no such argument.
    """
    ref = params.ref
    if isinstance(ref, wire.PromptReference):
        prompt = request.about = catalog[ref.name]
        arguments = prompt.arguments
    else:
        try:
            resource = request.about = catalog.template(ref.uri)
        except UnknownResource as error:
            raise InvalidParams(str(error), {"uri": shortened(ref.uri)}) from None
        if not resource.is_template:
            return None
        arguments = resource.arguments
    if arguments.secret:
        chosen = params.context.arguments if params.context else {}
        hide(arguments, {**chosen, params.argument.name: params.argument.value})
    return arguments.completer(params.argument.name)


def resource_of(
    catalog: Catalog, request: Request, params: wire.ResourceParams, target: RequestTarget | None = None
) -> tuple[CompiledResource, dict[str, Any]]:
    """
    Return the resource of a URI, and the values of its variables. Notes what *request* is about.

    Args:
        catalog:
            What the request is answered from.

        request:
            What was asked.

        params:
            Its parameters.

        target:
            What `target_of` has found already, so that the URI is matched once.

    Raises:
        ResourceNotFound: If there is none, and the revision has a code for that.

        InvalidParams: If there is none, and it has not.

        ArgumentErrors: If a variable does not fit.
    """
    if target is not None and target.resource is not None:
        return target.resource, target.resource.bind(target.given)
    try:
        resource, variables = catalog.resource(params.uri)
    except UnknownResource as error:
        kind = ResourceNotFound if request.revision.resource_not_found else InvalidParams
        raise kind(str(error), {"uri": shortened(params.uri)}) from None
    request.about = resource
    if not resource.arguments.secret:
        return resource, resource.bind(variables)
    hide(resource.arguments, variables)
    values = resource.bind(variables)
    hide(resource.arguments, values, read=True)
    return resource, values


def hide(arguments: Arguments, values: Mapping[str, Any] | None, *, read: bool = False) -> None:
    """
    Have the secrets among *values* hidden in what is printed while serving, by whoever prints it.

    An author's code may see them from now on, and leave threads or objects behind that print them.
    """
    if is_redirected():
        from promptkit.catalog import redaction  # few prompts take secrets

        redaction.hide(arguments, values, read=read)

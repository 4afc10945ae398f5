"""
Prompts over HTTP: an ASGI application for uvicorn, granian or hypercorn, or to be mounted in another one.

See https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from promptkit.cli.loading import report_faults
from promptkit.compiler.reloading import Reloader
from promptkit.language.annotations import parse_scopes
from promptkit.loader.targets import targets_of
from promptkit.protocol.limits import PAGE_SIZE, Limits
from promptkit.protocol.principals import Principal, TokenVerifier, VerifierUnavailableError
from promptkit.transports.auth.authorizer import protect
from promptkit.transports.http.application import Application
from promptkit.transports.http.settings import BODY_BYTES, Settings, public_names
from promptkit.transports.secret_files import own_key, state_keys

__all__ = ["Application", "Principal", "TokenVerifier", "VerifierUnavailableError", "app"]


def app(  # noqa: PLR0913 (each is an option of serve, too)
    target: str | Path | Iterable[str | Path] = "recipes",
    *,
    name: str = "promptkit",
    hosts: Iterable[str] = (),
    origins: Iterable[str] = (),
    keys: Iterable[bytes] | None = None,
    public_url: str | None = None,
    issuer: str | None = None,
    token_file: str | Path | None = None,
    verifier: TokenVerifier | None = None,
    required_scopes: Iterable[str] = (),
    scopes: Iterable[str] = (),
    watch: bool = True,
    page_size: int = PAGE_SIZE,
    tools: bool | Literal["search"] = False,
    body_limit: int = BODY_BYTES,
    limits: Limits = Limits(),  # noqa: B008 (it cannot be changed)
    otel: bool = False,
) -> Application:
    """
    Return an ASGI application that serves recipes at ``/mcp``.

    It loads the recipes at once, and starts threads with its first request, so a server may fork between the
    two. It needs no lifespan. Mounted in another application, it answers at the path of the mount, too.
    Prompts have a workspace only if the variable PROMPTKIT_WORKSPACE names one.

    A server that is to end waits for its open streams, and a stream of events is open for as long as its
    client likes. So bound that wait: uvicorn's option is ``--timeout-graceful-shutdown SECONDS``.

    Args:
        target:
            A folder of recipes, a file, a module, or ``module:object``; or several of these.

        name:
            The server's name, which clients show. It is also whom tokens are for: replicas have one name.

        hosts:
            The names by which clients call the server, such as ``prompts.example``, with or without a port.
            Those of this machine are always allowed; ``*`` allows every name.

        origins:
            The origins of pages that may send requests, such as ``https://chat.example``.

        keys:
            The keys that tokens are sealed with, 32 bytes each or more: the first seals, all open. By
            default those of the variable PROMPTKIT_STATE_KEYS; without it, a key that this user's servers of
            this target have on this machine.

        public_url:
            The URL that clients use. It allows its host and its origin, and an issuer's tokens are for it.

        issuer:
            The URL of who issues tokens: each request needs one, and clients are told where to get it.
            Without a *verifier*, they are JSON Web Tokens for the public URL, which takes the extra ``auth``.

        token_file:
            A file of tokens instead, as ``promptkit serve --token-file`` reads it.

        verifier:
            What verifies tokens of any other kind.

        required_scopes:
            The scopes that each token has to have.

        scopes:
            What everybody may do, where no token says it: for prompts and resources that need scopes.

        watch:
            Whether changed recipes are served without a restart.

        page_size:
            How many prompts or resources a page of a list holds.

        tools:
            Whether each prompt is offered as a tool, too. ``"search"`` offers two tools in their place, which
            find prompts and get one.

        body_limit:
            The longest body of a request, in bytes.

        limits:
            How much else a client may ask for.

        otel:
            Whether each request is reported to OpenTelemetry, which needs the extra ``otel``.

    Raises:
        LoadError: If there is nothing at the target.

        ValueError: If an origin, URL or scope is not one, if a key or token is too short or cannot be read,
            or if there are scopes beside tokens.

        ModuleNotFoundError: If there is an issuer, but not the extra ``auth``; or *otel*, and
            the API of OpenTelemetry is not installed.
    """
    os.environ.setdefault("PROMPTKIT_WORKSPACE", "")  # where a server is started says nothing of its callers
    targets = targets_of(target)
    reloader = Reloader(targets, report_faults)
    catalog = reloader.load()
    report_faults(catalog)
    watches = watch and reloader.watches
    public_hosts, public_origins = public_names(public_url)
    required, authorizer, telemetry = tuple(required_scopes), None, None
    if issuer is not None or token_file is not None or verifier is not None or required:
        authorizer = protect(
            resource=public_url, issuer=issuer, token_file=token_file, verifier=verifier, scopes=required
        )
    if otel:
        from promptkit.server.telemetry import TCP, Telemetry  # its imports take as long as all others

        telemetry = Telemetry(TCP)
    sealing = state_keys(None) if keys is None else tuple(keys)
    settings = Settings(
        name=name,
        hosts=(*hosts, *public_hosts),
        origins=(*origins, *public_origins),
        keys=sealing,
        own_key=None if sealing else own_key(targets),
        changes=watches,
        page_size=page_size,
        tools=tools,
        body_limit=body_limit,
        limits=limits,
        authorizer=authorizer,
        scopes=parse_scopes(scopes),
        telemetry=telemetry,
        faulty=lambda: reloader.faulty,
    )
    return Application(catalog, settings, reloader.start) if watches else Application(catalog, settings)

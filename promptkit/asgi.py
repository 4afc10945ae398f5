"""
Prompts over HTTP, as an ASGI application for uvicorn, granian or hypercorn, or mounted in another one.

See https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http.
"""

import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Literal

from promptkit.catalog.skill_access import SkillForm
from promptkit.cli.loading import report_catalog_errors
from promptkit.compiler.reloading import Reloader
from promptkit.language.annotations import parse_scopes
from promptkit.loader.targets import targets_of
from promptkit.protocol.limits import Limits
from promptkit.protocol.pagination import PAGE_SIZE
from promptkit.protocol.principals import Principal, TokenVerifier, VerifierUnavailableError
from promptkit.transports.auth.authorizer import create_authorizer
from promptkit.transports.http.application import Application
from promptkit.transports.http.settings import BODY_BYTES, Settings, public_names
from promptkit.transports.secret_files import own_key, state_keys

__all__ = ["Application", "Principal", "TokenVerifier", "VerifierUnavailableError", "app"]


def app(  # noqa: PLR0913 (each is also an option of `serve`)
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
    skills_as: Collection[SkillForm] = (),
    body_limit: int = BODY_BYTES,
    limits: Limits = Limits(),  # noqa: B008 (immutable)
    otel: bool = False,
) -> Application:
    """
    Return an ASGI application that serves recipes at ``/mcp``.

    The recipes are loaded by this call. Threads start with the first request, so that a server can fork in
    between. The application does not need lifespan events. Mounted in another application, it also answers at
    the path of the mount. Prompts have a workspace only if the variable PROMPTKIT_WORKSPACE names one.

    On shutdown, a server waits for its open streams, and clients can keep an event stream open indefinitely.
    Limit that wait: with uvicorn, by ``--timeout-graceful-shutdown SECONDS``.

    Args:
        target:
            A folder of recipes, a file, a module, or ``module:object``; or several of these, each with or
            without ``PREFIX=``.

        name:
            The server's name, which clients show. It is also part of the sealed tokens, so all replicas need
            the same name.

        hosts:
            Host names under which clients reach the server, such as ``prompts.example``, with or without a
            port. The names of this machine are always allowed; ``*`` allows every name.

        origins:
            Origins of web pages that can send requests, such as ``https://chat.example``.

        keys:
            Keys of at least 32 bytes that seal tokens: the first key seals tokens, and every key opens them.
            Defaults to the variable PROMPTKIT_STATE_KEYS. Without it, servers of the same target share a key
            per user and machine.

        public_url:
            The URL that clients use. Its host and its origin are allowed, and it is the audience of the
            issuer's tokens.

        issuer:
            The URL of the issuer of tokens. Each request then needs a token, and clients are shown where to
            get one. Without a *verifier*, tokens are JSON Web Tokens for the public URL. Verifying them needs
            the extra ``auth``.

        token_file:
            A token file, used instead of an issuer, in the format of ``promptkit serve --token-file``.

        verifier:
            Verifies tokens of any other kind.

        required_scopes:
            Scopes that each token must have.

        scopes:
            Scopes of every caller, for prompts and resources that need scopes on a server without tokens.

        watch:
            Whether to reload changed recipes without a restart.

        page_size:
            Number of prompts or resources per page of a list.

        tools:
            Whether to offer each prompt as a tool as well. ``"search"`` offers two tools instead: one finds
            prompts, the other gets a prompt.

        skills_as:
            How to offer skills to clients without the skills extension: ``("tools", "prompts")`` or one of
            them.

        body_limit:
            Maximum size of a request's body, in bytes.

        limits:
            Further limits on what a client can request.

        otel:
            Whether to report each request to OpenTelemetry. This needs the extra ``otel``.

    Raises:
        LoadError: If the target does not exist.

        ValueError: If an origin, a URL or a scope is invalid, if a key or a token is too short or cannot be
            read, or if *scopes* are combined with tokens.

        ModuleNotFoundError: If there is an issuer without the extra ``auth``, or *otel* is true without the
            API of OpenTelemetry.
    """
    os.environ.setdefault("PROMPTKIT_WORKSPACE", "")  # the working directory is not the callers' workspace
    targets = targets_of(target)
    reloader = Reloader(targets, report_catalog_errors)
    catalog = reloader.load()
    report_catalog_errors(catalog)
    should_watch = watch and reloader.watches
    public_hosts, public_origins = public_names(public_url)
    authorizer = create_authorizer(
        resource=public_url,
        issuer=issuer,
        token_file=token_file,
        verifier=verifier,
        scopes=tuple(required_scopes),
    )
    telemetry = None
    if otel:
        from promptkit.server.telemetry import TCP, Telemetry  # imports slowly

        telemetry = Telemetry(TCP)
    sealing_keys = state_keys(None) if keys is None else tuple(keys)
    settings = Settings(
        name=name,
        hosts=(*hosts, *public_hosts),
        origins=(*origins, *public_origins),
        keys=sealing_keys,
        own_key=None if sealing_keys else own_key(targets),
        changes=should_watch,
        page_size=page_size,
        tools=tools,
        skills_as=frozenset(skills_as),
        body_limit=body_limit,
        limits=limits,
        authorizer=authorizer,
        scopes=parse_scopes(scopes),
        telemetry=telemetry,
        count_invalid=lambda: reloader.invalid,
    )
    return Application(catalog, settings, reloader.start) if should_watch else Application(catalog, settings)

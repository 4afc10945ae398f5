"""
An ASGI application that serves prompts over HTTP.

It runs on uvicorn, granian or hypercorn, and can be mounted in another ASGI application. See
https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http.
"""

import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Literal

from promptkit.catalog.skill_access import SkillForm
from promptkit.cli.loading import report_catalog_errors
from promptkit.compiler.reloading import Reloader
from promptkit.declarations.options import convert_icons
from promptkit.language.annotations import parse_scopes
from promptkit.language.media import Icon
from promptkit.loader.targets import targets_of
from promptkit.protocol.limits import Limits
from promptkit.protocol.pagination import PAGE_SIZE
from promptkit.protocol.principals import Principal, TokenVerifier, VerifierUnavailableError
from promptkit.server.identity import find_server_info, read_instructions
from promptkit.transports.auth.authorizer import create_authorizer
from promptkit.transports.http.application import Application
from promptkit.transports.http.settings import BODY_BYTES, Settings, public_hosts_and_origins
from promptkit.transports.state_keys import own_key, state_keys

__all__ = ["Application", "Principal", "TokenVerifier", "VerifierUnavailableError", "app"]


def app(  # noqa: PLR0913 (each is also an option of `serve`)
    target: str | Path | Iterable[str | Path] = "recipes",
    *,
    name: str | None = None,
    version: str | None = None,
    title: str | None = None,
    website: str | None = None,
    icons: Iterable[Icon | str] = (),
    instructions: str | Path | None = None,
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

    This call loads the recipes. Threads start only with the first request, so the ASGI server can fork before
    then. The application does not need lifespan events. When it is mounted in another application, it answers
    at the path of the mount as well as at ``/mcp`` below that path. Prompts have a workspace only if the
    environment variable PROMPTKIT_WORKSPACE names one.

    On shutdown, an ASGI server waits until all streams are closed, but clients can keep an event stream open
    indefinitely. To limit that wait, pass ``--timeout-graceful-shutdown SECONDS`` to uvicorn.

    Args:
        target:
            A folder of recipes, a file, a module, or ``module:object``; or several of these. Each can start
            with ``PREFIX=``.

        name:
            The server's name, which clients show. Defaults to the name in ``[tool.promptkit.server]`` or
            ``[project]`` in the pyproject.toml of the target's project. Sealed tokens are valid only for
            servers with the same name, so all replicas need the same name.

        version:
            The version of the recipes. Defaults to the version of the project, or of the installed
            distribution.

        title:
            The server's display name. This and the next three parameters default to the values in the
            project's pyproject.toml.

        website:
            The URL of a website about the prompts.

        icons:
            The server's icons, as `Icon` values or URIs.

        instructions:
            Instructions for the model that uses the server, or the `Path` of a text file that contains them.

        hosts:
            Host names at which clients reach the server, such as ``prompts.example``, with or without a
            port. Loopback names such as ``localhost`` are always allowed; ``*`` allows every name.

        origins:
            Origins of web pages that are allowed to send requests, such as ``https://chat.example``.

        keys:
            Keys of at least 32 bytes. The first key seals tokens, and each key can open the tokens that it
            has sealed. Defaults to the keys in the environment variable PROMPTKIT_STATE_KEYS. If it is not
            set, servers that the same user runs for the same target on the same machine share a key.

        public_url:
            The URL at which clients reach the server. Its host and its origin are allowed, and it is the
            audience of the issuer's tokens.

        issuer:
            The URL of the token issuer. Each request then needs a token, and the server tells clients where
            to get it. If *verifier* is None, tokens are JSON Web Tokens for the public URL. Verifying them
            requires the extra ``auth``.

        token_file:
            A token file to use instead of an issuer, in the format of ``promptkit serve --token-file``.

        verifier:
            A verifier for any other kind of token.

        required_scopes:
            Scopes that every token must have.

        scopes:
            Scopes that a server without tokens grants to every caller, for prompts and resources that require
            scopes.

        watch:
            Whether to reload changed recipes without a restart.

        page_size:
            The number of prompts or resources per page of a list.

        tools:
            Whether to offer each prompt as a tool as well. ``"search"`` offers two tools instead: one finds
            prompts, the other gets a prompt.

        skills_as:
            How to offer skills to clients without the skills extension: ``("tools", "prompts")`` or one of
            them.

        body_limit:
            The maximum size of a request's body, in bytes.

        limits:
            Further limits on what a client can request.

        otel:
            Whether to report each request to OpenTelemetry. This requires the extra ``otel``.

    Raises:
        LoadError: If the target does not exist.

        ConfigurationError: If the project's ``pyproject.toml`` is invalid.

        ValueError: If an origin, a URL, an icon or a scope is invalid, if a key, a token or the instructions
            cannot be read, if a key or a token is too short, or if *scopes* are combined with tokens.

        ModuleNotFoundError: If *issuer* is given but the extra ``auth`` is not installed, or if *otel* is
            true but the OpenTelemetry API is not installed.
    """
    os.environ.setdefault("PROMPTKIT_WORKSPACE", "")  # the working directory is not the callers' workspace
    targets = targets_of(target)
    reloader = Reloader(targets, report_catalog_errors)
    catalog = reloader.load()
    report_catalog_errors(catalog)
    should_watch = watch and reloader.has_watched_files
    public_hosts, public_origins = public_hosts_and_origins(public_url)
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
        identity=find_server_info(
            targets,
            name=name,
            version=version,
            title=title,
            website=website,
            icons=convert_icons(icons),
            instructions=read_instructions(instructions) if isinstance(instructions, Path) else instructions,
        ),
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

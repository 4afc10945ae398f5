"""Settings for HTTP servers, and ASGI type aliases."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from promptkit.catalog.skill_access import SkillForm
from promptkit.protocol.capabilities import ServerInfo, ToolMode
from promptkit.protocol.key_ring import Keys
from promptkit.protocol.limits import Limits
from promptkit.protocol.pagination import PAGE_SIZE
from promptkit.server.identity import UNKNOWN

if TYPE_CHECKING:
    from promptkit.server.metrics import Metrics
    from promptkit.server.telemetry import Telemetry
    from promptkit.transports.auth.authorizer import Authorizer

#: Default maximum size of a body, in bytes. The official servers have the same limit.
BODY_BYTES: Final = 4 * 1024 * 1024


class Settings(Struct, frozen=True, kw_only=True):
    """
    Settings for serving recipes over HTTP.

    Args:
        identity:
            The server's identity, which clients show. Tokens sealed by servers with a different name are
            rejected.

        hosts:
            Host names that clients can use in addition to those of this machine, or ``*`` to allow any.

        origins:
            Origins of web pages that are allowed to send requests.

        keys:
            The keys that seal tokens, shared by all replicas; or a function that returns them.

        own_key:
            The key that seals tokens if *keys* is empty; a random key by default.

        changes:
            Whether the catalog can be replaced later.

        audit:
            The audit log, a file to which one line is written for each request. None disables the log.

        telemetry:
            Reports requests to OpenTelemetry. None disables telemetry.

        metrics:
            Counts requests for Prometheus and answers its scrapes. None disables metrics.

        count_invalid:
            Returns the number of recipe files with errors.

        page_size:
            Number of items per page of a list.

        tools:
            Whether to offer prompts as tools.

        skills_as:
            How to offer skills to clients without the skills extension.

        body_limit:
            Maximum size of a request's body, in bytes.

        limits:
            Further limits on what a client can request.

        authorizer:
            Finds the principal of each request. None if requests do not need tokens.

        scopes:
            The scopes of all clients. Allowed only without an authorizer.

    Raises:
        ValueError: If there are both scopes and an authorizer.
    """

    identity: ServerInfo = UNKNOWN
    hosts: Iterable[str] = ()
    origins: Iterable[str] = ()
    keys: Keys = ()
    own_key: bytes | None = None
    changes: bool = True
    audit: str | None = None
    telemetry: "Telemetry | None" = None
    metrics: "Metrics | None" = None
    count_invalid: Callable[[], int] = int
    page_size: int = PAGE_SIZE
    tools: ToolMode = False
    skills_as: frozenset[SkillForm] = frozenset()
    body_limit: int = BODY_BYTES
    limits: Limits = Limits()
    authorizer: "Authorizer | None" = None
    scopes: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.scopes and self.authorizer is not None:
            msg = "scopes= is only for servers without tokens: omit it, because tokens have their own scopes"
            raise ValueError(msg)


def public_hosts_and_origins(url: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """
    Return the hosts and the origins to allow for a server's public URL; both are empty if it is None.

    Raises:
        ValueError: If *url* is not the URL of a server.
    """
    if url is None:
        return (), ()
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        msg = f"the public URL {url!r} is not a valid server URL: expected something like https://prompts.example/mcp"
        raise ValueError(msg)
    return (parts.netloc,), (f"{parts.scheme}://{parts.netloc}",)


Scope: TypeAlias = MutableMapping[str, Any]
Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]
ASGIApplication: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

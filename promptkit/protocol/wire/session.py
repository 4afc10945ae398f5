"""What the connection itself sends: the base of all results, the handshake, and notifications."""

from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType, field

from promptkit.protocol.wire.requests import SUBSCRIPTION_ID, SubscriptionFilter

__all__ = [
    "ChangeParams",
    "DiscoverResult",
    "Implementation",
    "InitializeResult",
    "NotificationMeta",
    "ProgressParams",
    "Result",
]


class Result(Struct, rename="camel", kw_only=True):
    """
    The members that every result may have.
    """

    result_type: str | UnsetType = UNSET
    ttl_ms: int | UnsetType = UNSET
    cache_scope: str | UnsetType = UNSET
    meta: Raw | UnsetType = field(default=UNSET, name="_meta")


class Implementation(Struct):
    """
    The server's name and version.
    """

    name: str
    version: str


class InitializeResult(Result, rename="camel"):
    """
    The answer to ``initialize``.
    """

    protocol_version: str
    capabilities: dict[str, Any]
    server_info: Implementation
    instructions: str | UnsetType = UNSET


class DiscoverResult(Result, rename="camel"):
    """
    The answer to ``server/discover``, for clients without a session.
    """

    supported_versions: list[str]
    capabilities: dict[str, Any]
    instructions: str | UnsetType = UNSET


class NotificationMeta(Struct):
    """
    The subscription that a notification belongs to.
    """

    subscription_id: int | str = field(name=SUBSCRIPTION_ID)


class ChangeParams(Struct):
    """
    The params of a notification that something changed.
    """

    uri: str | UnsetType = UNSET
    notifications: SubscriptionFilter | UnsetType = UNSET
    meta: NotificationMeta | UnsetType = field(default=UNSET, name="_meta")


class ProgressParams(Struct, rename="camel"):
    """
    The params of ``notifications/progress``: how far the work on a request has come.
    """

    progress_token: int | str
    progress: float
    total: float | UnsetType = UNSET
    message: str | UnsetType = UNSET

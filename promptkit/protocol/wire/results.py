"""The base of all results, and those of the handshake."""

from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType, field

__all__ = ["DiscoverResult", "Implementation", "InitializeResult", "Result"]


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

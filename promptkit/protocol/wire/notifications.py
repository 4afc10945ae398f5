"""What clients ask of single resources and of changes, and the notifications that they are sent."""

from msgspec import UNSET, Struct, UnsetType, field

from promptkit.protocol.wire.requests import SUBSCRIPTION_ID, Params

__all__ = [
    "ChangeParams",
    "ListenParams",
    "NotificationMeta",
    "ProgressParams",
    "ResourceParams",
    "SubscriptionFilter",
]


class ResourceParams(Params):
    """
    The params of the methods about one resource.
    """

    uri: str


class SubscriptionFilter(Struct, rename="camel"):
    """
    Which changes to notify the client of. Unknown kinds are ignored.
    """

    prompts_list_changed: bool | UnsetType = UNSET
    resources_list_changed: bool | UnsetType = UNSET
    resource_subscriptions: list[str] | UnsetType = UNSET
    tools_list_changed: bool | UnsetType = UNSET


class ListenParams(Params):
    """
    The params of ``subscriptions/listen``.
    """

    notifications: SubscriptionFilter


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

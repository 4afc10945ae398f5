"""What clients send while a person types an argument."""

from msgspec import Struct, field

from promptkit.protocol.wire.requests import Params

__all__ = ["ArgumentPrefix", "CompleteParams", "CompletionContext", "PromptReference", "ResourceReference"]


class PromptReference(Struct, tag_field="type", tag="ref/prompt"):
    """
    The prompt that an argument to complete belongs to.
    """

    name: str


class ResourceReference(Struct, tag_field="type", tag="ref/resource"):
    """
    The resource template that a variable to complete belongs to.
    """

    uri: str


class ArgumentPrefix(Struct):
    """
    The argument to complete, and what was typed so far.
    """

    name: str
    value: str


class CompletionContext(Struct):
    """
    The arguments that have been chosen already.
    """

    arguments: dict[str, str] = field(default_factory=dict)


class CompleteParams(Params):
    """
    The params of ``completion/complete``.
    """

    ref: PromptReference | ResourceReference
    argument: ArgumentPrefix
    context: CompletionContext | None = None

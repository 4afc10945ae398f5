"""What an author declares of a prompt as a tool."""

import attrs

from promptkit.language.validation import check_flag


def _flag(_: object, attribute: "attrs.Attribute[bool]", value: object) -> None:
    check_flag(attribute.name, value)


@attrs.frozen(kw_only=True)
class Tool:
    """
    What clients may expect of a prompt that they call as a tool. By default it only makes text.

    Args:
        read_only:
            Whether a call changes nothing.

        idempotent:
            Whether a second call with the same arguments has no further effect.

        open_world:
            Whether it uses things outside of the recipes, such as the web.

        destructive:
            Whether what it changes may be lost. Only a tool that is not *read_only* can be.

    Raises:
        TypeError: If one of them is neither True nor False.

        ValueError: If it is both destructive and read-only.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/schema#toolannotations
    """

    read_only: bool = attrs.field(default=True, validator=_flag)
    idempotent: bool = attrs.field(default=True, validator=_flag)
    open_world: bool = attrs.field(default=False, validator=_flag)
    destructive: bool = attrs.field(default=False, validator=_flag)

    def __attrs_post_init__(self) -> None:
        if self.read_only and self.destructive:
            msg = "a tool that changes nothing cannot be destructive: add read_only=False"
            raise ValueError(msg)

"""`Tool`, the annotations of a prompt that clients can call as a tool."""

import attrs

from promptkit.language.validation import check_flag


def _flag(_: object, attribute: "attrs.Attribute[bool]", value: object) -> None:
    check_flag(attribute.name, value)


@attrs.frozen(kw_only=True)
class Tool:
    """
    The annotations of a prompt as a tool. By default, a call only renders text.

    Args:
        read_only:
            Whether a call has no side effects.

        idempotent:
            Whether a second call with the same arguments has no further effect.

        open_world:
            Whether a call uses anything outside the recipes, such as the web.

        destructive:
            Whether a call can destroy data. This requires ``read_only=False``.

    Raises:
        TypeError: If an argument is neither True nor False.

        ValueError: If both *destructive* and *read_only* are True.

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

"""Two resources and a resource template."""

from typing import Annotated

from promptkit import Arg, resource

from ._samples import PNG


@resource("shelf://notice", mime_type="text/plain")
def notice() -> str:
    """What hangs at the door."""
    return "Closed on Monday."


@resource("shelf://cover")
def cover() -> bytes:
    """The picture on the cover."""
    return PNG


@resource("shelf://books/{title}", mime_type="text/plain")
def book(title: Annotated[str, Arg(complete=["Emma", "Erewhon", "Dune"])]) -> str:
    """One book."""
    return f"{title}, from the first page to the last."

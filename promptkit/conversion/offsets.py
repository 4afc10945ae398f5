"""Offsets from UTC: those that `Arg(timezone=...)` adds, and those that do not fit a type."""

from datetime import datetime, time, tzinfo
from typing import Any, Final

import msgspec
from msgspec import Struct

__all__ = ["HAS_OFFSET", "NO_OFFSET", "InZone", "located", "offset_fault", "zone_of"]

NO_OFFSET: Final = "has no offset"
HAS_OFFSET: Final = "has an offset"


class InZone(Struct, frozen=True):
    """In ``Annotated``: a `datetime` without an offset is local time in *zone*."""

    zone: tzinfo


def zone_of(annotation: Any) -> tzinfo | None:
    """Return the zone of the `InZone` in an annotation, if there is one."""
    notes = (note for note in getattr(annotation, "__metadata__", ()) if isinstance(note, InZone))
    return next((note.zone for note in notes), None)


def located(value: datetime, zone: tzinfo) -> datetime:
    """Return *value*, in *zone* if it has no offset."""
    return value.replace(tzinfo=zone) if value.tzinfo is None else value


def offset_fault(value: Any, annotation: Any, *, seconds: str = "") -> str | None:
    """
    Return what is wrong with the offset of a time that its type refuses; None if something else is wrong.

    Args:
        value:
            The time, or what a client wrote for it.

        annotation:
            Its type, which may require an offset, or refuse one.

        seconds:
            The seconds in the example, where they are required.
    """
    kind = getattr(annotation, "__origin__", None)
    asked = [note.tz for note in getattr(annotation, "__metadata__", ()) if isinstance(note, msgspec.Meta)]
    if kind not in (datetime, time) or not {True, False}.intersection(asked):
        return None
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return None
    example = f"{'2026-01-31T' if kind is datetime else ''}12:00{seconds}"
    if True in asked:
        return f"{NO_OFFSET}: add an offset, as in {example}+01:00"
    return f"{HAS_OFFSET}: leave it out, as in {example}"

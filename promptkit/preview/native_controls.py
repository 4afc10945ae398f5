"""The inputs that browsers have for numbers, dates and times; each takes only what HTML says it does."""

import math
import re
from collections.abc import Mapping
from datetime import datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

import msgspec

from promptkit.catalog.arguments import Argument
from promptkit.catalog.json_schema import alternative_of
from promptkit.conversion.annotations import notes_of
from promptkit.conversion.errors import ConversionError
from promptkit.conversion.kinds import plain
from promptkit.conversion.scalars import SCALARS
from promptkit.preview.control import Control, value_of

__all__ = ["date_control", "moment_control", "number_control"]

#: What HTML takes for a number.
_NUMBER: Final = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def number_control(argument: Argument, given: str) -> Control | None:
    """
    Return the input of a number, with its bounds; None for what it does not take.
    """
    value = given.strip()
    if not _is_number(value):
        written = value_of(argument, given)
        value = "" if written is None else str(written)
    if given and not _is_number(value):
        return None
    schema = alternative_of(argument)
    return Control("line", value, {"type": "number", **_bounds(schema)})


def _is_number(text: str) -> bool:
    # Browsers drop a number that is too large for them.
    return _NUMBER.fullmatch(text) is not None and math.isfinite(float(text))


def _bounds(schema: Mapping[str, Any]) -> dict[str, str]:
    """The attributes for the bounds of a number. Browsers count steps from the lower bound."""
    whole = schema.get("type") == "integer"
    step = Decimal(str(schema.get("multipleOf", 1 if whole else 0)))
    least, most = _lowest(schema, whole=whole), _highest(schema, whole=whole)
    if step and least is not None:
        least = math.ceil(least / step) * step
    bounds = {"min": least, "max": most, "step": step or "any"}
    return {name: str(bound) for name, bound in bounds.items() if bound is not None}


def _lowest(schema: Mapping[str, Any], *, whole: bool) -> Decimal | None:
    if "exclusiveMinimum" in schema:
        return Decimal(str(schema["exclusiveMinimum"])) + whole
    return Decimal(str(schema["minimum"])) if "minimum" in schema else None


def _highest(schema: Mapping[str, Any], *, whole: bool) -> Decimal | None:
    if "exclusiveMaximum" in schema:
        return Decimal(str(schema["exclusiveMaximum"])) - whole
    return Decimal(str(schema["maximum"])) if "maximum" in schema else None


def date_control(argument: Argument, given: str) -> Control | None:
    """
    Return the input of a date; None for what is no date.
    """
    found = value_of(argument, given) if given else None
    if given and found is None:
        return None
    return Control("line", found.isoformat() if found else "", {"type": "date"})


def moment_control(argument: Argument, given: str) -> Control | None:
    """
    Return the input of a date and time, or of a time of day, with a field of its own for the offset.

    It holds milliseconds, and offsets in minutes: for anything else, None is returned.
    """
    core = plain(argument.annotation, core=True)
    kind = "time" if core is time else "datetime-local"
    asked = {note.tz for note in notes_of(argument.annotation) if isinstance(note, msgspec.Meta)}
    may_have_offset = True in asked or (core is datetime and False not in asked)
    if not given:
        return Control("moment", "", {"type": kind, "step": "any"}, offset="" if may_have_offset else None)
    try:
        # As it is written: the reader of the argument may add a zone.
        found: datetime | time = SCALARS[core].read(given)
    except ConversionError:
        return None
    offset = _offset(found)
    if found.microsecond % 1000 or offset is None:
        return None
    local = found.replace(tzinfo=None).isoformat(timespec="milliseconds" if found.microsecond else "auto")
    shown = offset if offset or may_have_offset else None
    return Control("moment", local, {"type": kind, "step": "any"}, offset=shown)


def _offset(moment: datetime | time) -> str | None:
    """The offset of a moment as text; None if it has parts of a minute."""
    offset = moment.utcoffset()
    if offset is None:
        return ""
    if offset % timedelta(minutes=1):
        return None
    sign, minutes = ("-" if offset < timedelta() else "+"), abs(offset) // timedelta(minutes=1)
    return f"{sign}{minutes // 60:02}:{minutes % 60:02}"

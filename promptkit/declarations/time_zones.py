"""
Time zones: what `Arg(timezone=...)` names, and which dates and times of a type are in that zone.

A value without an offset is local time in the zone. When clocks change, a local time that is skipped or that
happens twice gets the offset from before the change (PEP 495).
"""

from datetime import UTC, datetime, tzinfo
from typing import Annotated, Any, Final, Union, get_args, get_origin

import msgspec

from promptkit.declarations.signature import Parameter
from promptkit.errors.diagnostics import Report
from promptkit.errors.distribution import pip
from promptkit.errors.rules import Rule
from promptkit.errors.suggestions import nearest
from promptkit.types.constraints import HAS_OFFSET, NO_OFFSET, InZone
from promptkit.types.errors import ConversionError
from promptkit.types.kinds import is_literal, is_union, plain
from promptkit.types.readers import reader_of
from promptkit.types.unstructuring import json_of

_REMEDY: Final = (
    "leave timezone= out, or take a datetime; a record's field asks for an offset with msgspec.Meta(tz=True)"
)

#: What may be wrong with the offset of a default, and what to do about it.
_MISFITS: Final = {
    NO_OFFSET: "give it one, as in datetime(2026, 1, 31, 12, tzinfo=UTC)",
    HAS_OFFSET: "leave out its tzinfo",
}

_AWARE: Final = msgspec.Meta(tz=True)


def in_zone(parameter: Parameter, report: Report) -> Any:
    """
    Return the type of a parameter, with its naive dates and times read in the ``timezone`` of its `Arg`.

    Args:
        parameter:
            A parameter whose `Arg` has a ``timezone``.

        report:
            Receives a zone that cannot be found, and a zone for a type that has no use for it.
    """
    zone = _zone(parameter, report)
    if zone is None:
        return parameter.annotation
    found = _with_note(parameter.annotation, InZone(zone))
    if found == parameter.annotation:
        _report(parameter, "has a timezone= and takes no datetime that may have an offset", _REMEDY, report)
    return found


def _zone(parameter: Parameter, report: Report) -> tzinfo | None:
    """Return the zone that the author names. One that cannot be found is reported."""
    named = parameter.arg.timezone
    if isinstance(named, tzinfo):
        return named
    if not isinstance(named, str):
        said = f"has the timezone {named!r}, which is not a time zone"
        _report(parameter, said, "give the name of a zone, as in 'Europe/Berlin', or a ZoneInfo", report)
        return None
    if named == "UTC":
        return UTC  # it needs no data
    import zoneinfo

    try:
        return zoneinfo.ZoneInfo(named)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        known = sorted(zoneinfo.available_timezones())
    what, hint = "which does not exist", "write a name such as 'UTC' or 'Europe/Berlin'"
    if (near := nearest(named, known)) is not None:
        hint = f"did you mean {near!r}?"
    if not known:
        what, hint = "and this system has no data of time zones", f"{pip()} tzdata"
    _report(parameter, f"has the timezone {named!r}, {what}", hint, report)
    return None


def _report(parameter: Parameter, fault: str, hint: str, report: Report) -> None:
    report.add(Rule.BAD_TIMEZONE, f"parameter {parameter.name!r} {fault}", hint, parameter.name)


def _with_note(annotation: Any, note: Any) -> Any:
    """Return a type with *note* at each datetime in it, except those that must be naive."""
    annotation = plain(annotation)
    if annotation is datetime:
        return Annotated[datetime, note]
    if get_origin(annotation) is Annotated:
        return _with_another_note(annotation, note)
    arguments = get_args(annotation)
    if not arguments or is_literal(annotation):
        return annotation
    noted = tuple(_with_note(argument, note) for argument in arguments)
    if noted == arguments:
        return annotation
    origin: Any = Union if is_union(annotation) else get_origin(annotation)
    return origin[noted]


def _with_another_note(annotation: Any, note: Any) -> Any:
    """Do the same for ``Annotated``: *note* stands in place of one that requires an offset."""
    notes = annotation.__metadata__
    if plain(annotation.__origin__) is not datetime:
        return Annotated[(_with_note(annotation.__origin__, note), *notes)]
    asked = {said: said.tz for said in notes if isinstance(said, msgspec.Meta)}
    if False in asked.values():
        return annotation
    return Annotated[(datetime, *(said for said in notes if asked.get(said) is None), note)]


def check_default(parameter: Parameter, annotation: Any, report: Report) -> None:
    """
    Report a default that is naive where all other values are aware, or the reverse.

    Args:
        parameter:
            A parameter with a default that fits its type.

        annotation:
            The type that is read, with its time zone.

        report:
            Receives the fault.
    """
    default = parameter.default
    asked = _with_note(parameter.annotation, _AWARE) if annotation != parameter.annotation else annotation
    try:
        if (reader := reader_of(asked)) is not None:
            reader.read(json_of(default))
    except TypeError:  # of a type, or a value, that JSON does not have
        return
    except ConversionError as error:
        for said, hint in _MISFITS.items():
            if any((part.reason or "").startswith(said) for part in error.parts):
                message = f"parameter {parameter.name!r} has a default that {said}"
                report.add(Rule.DEFAULT_MISFIT, message, hint, parameter.name)

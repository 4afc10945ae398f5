"""
Time zones: resolves `Arg(timezone=...)`, and applies it to the dates and times of a type.

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

_NO_USE_HINT: Final = (
    "leave timezone= out, or take a datetime; a record's field asks for an offset with msgspec.Meta(tz=True)"
)

#: Hints for errors in the offset of a default.
_OFFSET_HINTS: Final = {
    NO_OFFSET: "give it one, as in datetime(2026, 1, 31, 12, tzinfo=UTC)",
    HAS_OFFSET: "leave out its tzinfo",
}

_AWARE: Final = msgspec.Meta(tz=True)


def in_zone(parameter: Parameter, report: Report) -> Any:
    """
    Return a parameter's type, with its naive dates and times interpreted in the ``timezone`` of its `Arg`.

    Args:
        parameter:
            A parameter whose `Arg` has a ``timezone``.

        report:
            Receives a diagnostic for a zone that does not exist, and for a type without dates or times.
    """
    zone = _zone(parameter, report)
    if zone is None:
        return parameter.annotation
    annotation = _with_note(parameter.annotation, InZone(zone))
    if annotation == parameter.annotation:
        _report(
            parameter, "has a timezone= and takes no datetime that may have an offset", _NO_USE_HINT, report
        )
    return annotation


def _zone(parameter: Parameter, report: Report) -> tzinfo | None:
    """Return the zone that the author names. An unknown zone is reported."""
    zone = parameter.arg.timezone
    if isinstance(zone, tzinfo):
        return zone
    if not isinstance(zone, str):
        problem = f"has the timezone {zone!r}, which is not a time zone"
        _report(parameter, problem, "give the name of a zone, as in 'Europe/Berlin', or a ZoneInfo", report)
        return None
    if zone == "UTC":
        return UTC  # needs no time zone data
    import zoneinfo

    try:
        return zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        known = sorted(zoneinfo.available_timezones())
    problem, hint = "which does not exist", "write a name such as 'UTC' or 'Europe/Berlin'"
    if (near := nearest(zone, known)) is not None:
        hint = f"did you mean {near!r}?"
    if not known:
        problem, hint = "and this system has no data of time zones", f"{pip()} tzdata"
    _report(parameter, f"has the timezone {zone!r}, {problem}", hint, report)
    return None


def _report(parameter: Parameter, problem: str, hint: str, report: Report) -> None:
    report.add(Rule.BAD_TIMEZONE, f"parameter {parameter.name!r} {problem}", hint, parameter.name)


def _with_note(annotation: Any, note: Any) -> Any:
    """Return a type with *note* at each datetime in it that can have an offset."""
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
    """Do the same for ``Annotated``: *note* replaces any note that requires an offset."""
    notes = annotation.__metadata__
    if plain(annotation.__origin__) is not datetime:
        return Annotated[(_with_note(annotation.__origin__, note), *notes)]
    requirements = {item: item.tz for item in notes if isinstance(item, msgspec.Meta)}
    if False in requirements.values():
        return annotation
    return Annotated[(datetime, *(item for item in notes if requirements.get(item) is None), note)]


def check_default(parameter: Parameter, annotation: Any, report: Report) -> None:
    """
    Report a default that is naive where all other values are aware, or the reverse.

    Args:
        parameter:
            A parameter with a default of its type.

        annotation:
            The parameter's type, with its time zone.

        report:
            Receives the diagnostic.
    """
    default = parameter.default
    required = _with_note(parameter.annotation, _AWARE) if annotation != parameter.annotation else annotation
    try:
        if (reader := reader_of(required)) is not None:
            reader.read(json_of(default))
    except TypeError:  # JSON does not have this type or value
        return
    except ConversionError as error:
        for problem, hint in _OFFSET_HINTS.items():
            if any((part.reason or "").startswith(problem) for part in error.parts):
                message = f"parameter {parameter.name!r} has a default that {problem}"
                report.add(Rule.DEFAULT_MISFIT, message, hint, parameter.name)

"""Dates and times: parsed as written, in the author's time zone, or with the offset that a type requires."""

import datetime as dt
import zoneinfo
from dataclasses import dataclass
from typing import Annotated, Any, NewType
from zoneinfo import ZoneInfo

import jsonschema
import pytest
from msgspec import Meta

from promptkit import Arg, ArgumentsError, prompt
from promptkit.compiler.compilation import compile
from promptkit.errors.distribution import pip
from promptkit.loader.recipes import Recipes
from promptkit.types.unstructuring import text_of

Aware = Annotated[dt.datetime, Meta(tz=True)]
Naive = Annotated[dt.datetime, Meta(tz=False)]
AwareTime = Annotated[dt.time, Meta(tz=True)]
Moment = NewType("Moment", dt.datetime)

NOON = dt.datetime(2026, 1, 31, 12)  # noqa: DTZ001 (naive on purpose)
BERLIN = ZoneInfo("Europe/Berlin")
EAST = dt.timezone(dt.timedelta(hours=1))


@dataclass
class Meeting:
    start: Aware
    lunch: Naive | None = None


def made(annotation: Any, *default: Any) -> Any:
    """Return a prompt with one parameter of this type."""

    def meet(value=None) -> str:
        return str(value)

    meet.__annotations__["value"] = annotation
    meet.__defaults__ = default
    return prompt(meet)


def read(annotation: Any, sent: Any) -> Any:
    """Return the value parsed from what a client sends."""
    return made(annotation).compiled.arguments.read({"value": sent})["value"]


def findings(annotation: Any, *default: Any) -> list[tuple[str, str, str]]:
    """Return the code, message and hint of each diagnostic."""
    found = compile(Recipes(prompts=(made(annotation, *default),))).diagnostics
    return [(each.rule.value, each.message, each.hint) for each in found]


class TestAsWritten:
    @pytest.mark.parametrize(
        ("sent", "value"),
        [
            ("2026-01-31T12:00", NOON),
            ("2026-01-31T12:00+01:00", NOON.replace(tzinfo=EAST)),
            ("2026-01-31T12:00Z", NOON.replace(tzinfo=dt.UTC)),
        ],
        ids=["naive", "offset", "UTC"],
    )
    def test_a_datetime_is_read_as_it_is_written(self, sent, value):
        """A datetime is parsed as written, with or without an offset."""
        found = read(dt.datetime, sent)

        assert (found, found.utcoffset()) == (value, value.utcoffset())

    def test_its_description_says_so(self):
        """The description says that an offset is optional."""
        (argument,) = made(dt.datetime).compiled.arguments.ordered

        assert argument.description == (
            "a date and time, as in 2026-01-31T12:00, "
            "read as it is written, with an offset (+01:00) or without"
        )


DATETIME = (
    "leave timezone= out, or take a datetime; a record's field asks for an offset with msgspec.Meta(tz=True)"
)
NO_DATA = "has the timezone 'Europe/Berlin', and this system has no data of time zones"


class TestZone:
    @pytest.mark.parametrize(
        ("zone", "offset"),
        [("UTC", 0), ("Europe/Berlin", 1), (BERLIN, 1), (dt.UTC, 0), (EAST, 1)],
        ids=["UTC", "name", "ZoneInfo", "datetime.UTC", "timezone"],
    )
    def test_a_naive_value_becomes_aware(self, zone, offset):
        """A value without an offset is a time in the author's zone."""
        found = read(Annotated[dt.datetime, Arg(timezone=zone)], "2026-01-31T12:00")

        assert found.replace(tzinfo=None) == NOON
        assert found.utcoffset() == dt.timedelta(hours=offset)

    @pytest.mark.parametrize(
        ("annotation", "sent", "value"),
        [
            (dt.datetime, "2026-01-31", NOON.replace(hour=0, tzinfo=BERLIN)),
            (dt.datetime, "2026-01-31T12:00+05:00", NOON.replace(hour=8, tzinfo=BERLIN)),
            (dt.datetime | None, "2026-01-31T12:00", NOON.replace(tzinfo=BERLIN)),
            (str | dt.datetime, "2026-01-31T12:00", NOON.replace(tzinfo=BERLIN)),
            (Moment, "2026-01-31T12:00", NOON.replace(tzinfo=BERLIN)),
            (Aware, "2026-01-31T12:00", NOON.replace(tzinfo=BERLIN)),
            (list[dt.datetime], "2026-01-31T12:00, 2026-01-31T11:00Z", [NOON.replace(tzinfo=BERLIN)] * 2),
            (list[Aware], ["2026-01-31T12:00"], [NOON.replace(tzinfo=BERLIN)]),
            (set[dt.datetime], "2026-01-31T12:00", {NOON.replace(tzinfo=BERLIN)}),
            (tuple[dt.datetime, int], '["2026-01-31T12:00:00", 1]', (NOON.replace(tzinfo=BERLIN), 1)),
            (dict[str, dt.datetime], '{"a": "2026-01-31T12:00:00"}', {"a": NOON.replace(tzinfo=BERLIN)}),
            (dict[dt.datetime, int], '{"2026-01-31T12:00:00": 1}', {NOON.replace(tzinfo=BERLIN): 1}),
            (list[list[Aware]], '[["2026-01-31T12:00:00"]]', [[NOON.replace(tzinfo=BERLIN)]]),
        ],
        ids=str,
    )
    def test_wherever_a_datetime_stands(self, annotation, sent, value):
        """The zone applies within lists, dicts, keys and unions; an explicit offset takes precedence."""
        found = read(Annotated[annotation, Arg(timezone="Europe/Berlin")], sent)

        assert found == value

    @pytest.mark.parametrize(
        ("sent", "utc"),
        [("2026-03-29T02:30", "01:30"), ("2026-10-25T02:30", "00:30")],
        ids=["skipped", "twice"],
    )
    def test_what_the_clocks_skip_or_show_twice_has_the_offset_before(self, sent, utc):
        """A time that a clock change skips or repeats has the offset from before the change."""
        found = read(Annotated[dt.datetime, Arg(timezone=BERLIN)], sent)

        assert f"{found.astimezone(dt.UTC):%H:%M}" == utc

    def test_its_description_names_the_zone(self):
        """The description names the time zone."""
        annotation = Annotated[dt.datetime, Arg("When it begins", timezone="Europe/Berlin")]
        (argument,) = made(annotation).compiled.arguments.ordered

        assert argument.description == (
            "When it begins (a date and time, as in 2026-01-31T12:00, "
            "in Europe/Berlin unless it has an offset)"
        )

    def test_its_schema_asks_for_no_offset(self):
        """The schema does not require an offset, even if the type allows only aware values."""
        schema = made(Annotated[Aware, Arg(timezone="UTC")]).compiled.schema["properties"]["value"]

        assert "format" not in schema
        jsonschema.validate("2026-01-31T12:00:00", schema)
        jsonschema.validate("2026-01-31T12:00:00+01:00", schema)

    def test_what_is_written_is_read(self):
        """Encoding an aware value and parsing it again gives the same moment."""
        value = dt.datetime(2026, 7, 31, 12, tzinfo=BERLIN)

        assert read(Annotated[dt.datetime, Arg(timezone="UTC")], text_of(value)) == value

    @pytest.mark.parametrize(
        ("annotation", "fault", "hint"),
        [
            (
                Annotated[dt.datetime, Arg(timezone="europe/berln")],
                "has the timezone 'europe/berln', which does not exist",
                "did you mean 'Europe/Berlin'?",
            ),
            (
                Annotated[dt.datetime, Arg(timezone="../../etc/passwd")],
                "has the timezone '../../etc/passwd', which does not exist",
                "write a name such as 'UTC' or 'Europe/Berlin'",
            ),
            (
                Annotated[dt.datetime, Arg(timezone=1)],
                "has the timezone 1, which is not a time zone",
                "give the name of a zone, as in 'Europe/Berlin', or a ZoneInfo",
            ),
            *(
                (
                    Annotated[kind, Arg(timezone="UTC")],
                    "has a timezone= and takes no datetime that may have an offset",
                    DATETIME,
                )
                for kind in (str, dt.time, dt.date, list[str], Naive, Meeting)
            ),
        ],
        ids=["misspelt", "path", "number", "text", "time", "date", "list", "naive", "record"],
    )
    def test_a_zone_that_serves_nothing_is_found_at_compile_time(self, annotation, fault, hint):
        """An invalid or unused zone is reported at compile time with a hint."""
        assert findings(annotation) == [("PK320", f"prompt 'meet': parameter 'value' {fault}", hint)]

    @pytest.mark.parametrize("folder", ["Europe", "", "\0", "x" * 5000], ids=ascii)
    def test_what_no_file_of_zones_is_called_is_no_crash(self, folder):
        """Folders of the zone database and impossible file names are unknown zones."""
        ((code, _, _),) = findings(Annotated[dt.datetime, Arg(timezone=folder)])

        assert code == "PK320"

    def test_a_system_without_zones_says_how_to_get_them(self, monkeypatch):
        """On a system without zone data, such as Windows, the hint is to install it; UTC works without."""

        def missing(name: str) -> None:
            raise zoneinfo.ZoneInfoNotFoundError(name)

        monkeypatch.setattr(zoneinfo, "ZoneInfo", missing)
        monkeypatch.setattr(zoneinfo, "available_timezones", set)

        assert findings(Annotated[dt.datetime, Arg(timezone="Europe/Berlin")]) == [
            ("PK320", f"prompt 'meet': parameter 'value' {NO_DATA}", f"{pip()} tzdata")
        ]
        assert findings(Annotated[dt.datetime, Arg(timezone="UTC")]) == []


ADD = "has no offset: add an offset, as in 2026-01-31T12:00"
DROP = "has an offset: leave it out, as in 2026-01-31T12:00"
START = '{"start": "2026-01-31T12:00:00"}'
LUNCH = '{"start": "2026-01-31T12:00:00Z", "lunch": "2026-01-31T12:00:00Z"}'


class TestAskedFor:
    @pytest.mark.parametrize(
        ("annotation", "sent", "fault"),
        [
            (Aware, "2026-01-31T12:00", f"'value' {ADD}+01:00"),
            (Aware, "2026-01-31", f"'value' {ADD}+01:00"),
            (Aware | None, "2026-01-31T12:00", f"'value' {ADD}+01:00"),
            (Aware | int, "2026-01-31T12:00", f"'value' {ADD}+01:00"),
            (list[Aware], "2026-01-31T12:00Z, 2026-01-31T12:00", f"'value[1]' {ADD}+01:00"),
            (list[list[Aware]], '[["2026-01-31T12:00:00"]]', f"'value[0][0]' {ADD}:00+01:00"),
            (dict[str, Aware], '{"a": "2026-01-31T12:00:00"}', f"\"value['a']\" {ADD}:00+01:00"),
            (
                dict[Aware, int],
                '{"2026-01-31T12:00:00": 1}',
                f"\"value['2026-01-31T12:00:00']\" {ADD}:00+01:00",
            ),
            (Meeting, START, f"'value.start' {ADD}:00+01:00"),
            (Meeting, LUNCH, f"'value.lunch' {DROP}:00"),
            (Naive, "2026-01-31T12:00Z", f"'value' {DROP}"),
            (AwareTime, "12:00", "'value' has no offset: add an offset, as in 12:00+01:00"),
            (
                Aware,
                "noon",
                "'value' is 'noon', not a date and time with an offset, as in 2026-01-31T12:00:00+01:00",
            ),
            (AwareTime, "x", "'value' is 'x', not a time of day with an offset, as in 12:00:00+01:00"),
        ],
        ids=str,
    )
    def test_another_value_is_refused_with_a_hint(self, annotation, sent, fault):
        """A wrong or missing offset is reported with its path and a corrected example."""
        with pytest.raises(ArgumentsError) as refused:
            read(annotation, sent)

        assert str(refused.value) == f"prompt 'meet': {fault}"

    @pytest.mark.parametrize(
        ("annotation", "example"),
        [(Aware, "2026-01-31T12:00+01:00"), (Naive, "2026-01-31T12:00"), (AwareTime, "12:00+01:00")],
        ids=["aware", "naive", "time"],
    )
    def test_the_remedy_helps(self, annotation, example):
        """The example in the error message is accepted."""
        assert read(annotation, example) == read(annotation.__origin__, example)

    def test_its_schema_says_so(self):
        """A schema validator rejects the same values as promptkit."""
        aware, naive = (made(kind).compiled.schema["properties"]["value"] for kind in (Aware, Naive))

        assert aware["format"] == "date-time"
        jsonschema.validate("2026-01-31T12:00:00", naive)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate("2026-01-31T12:00:00Z", naive)

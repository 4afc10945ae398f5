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


def make_prompt(annotation: Any, *default: Any) -> Any:
    """Return a prompt with one parameter of this type."""

    def meet(value=None) -> str:
        return str(value)

    meet.__annotations__["value"] = annotation
    meet.__defaults__ = default
    return prompt(meet)


def parse(annotation: Any, sent: Any) -> Any:
    """Return the value parsed from what a client sends."""
    return make_prompt(annotation).compiled.arguments.read({"value": sent})["value"]


def collect_diagnostics(annotation: Any, *default: Any) -> list[tuple[str, str, str]]:
    """Return the code, message and hint of each diagnostic."""
    diagnostics = compile(Recipes(prompts=(make_prompt(annotation, *default),))).diagnostics
    return [(diagnostic.rule.value, diagnostic.message, diagnostic.hint) for diagnostic in diagnostics]


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
    def test_a_datetime_is_parsed_as_written(self, sent, value):
        """A datetime is parsed as written, with or without an offset."""
        parsed = parse(dt.datetime, sent)

        assert (parsed, parsed.utcoffset()) == (value, value.utcoffset())

    def test_the_description_says_that_an_offset_is_optional(self):
        """The description says that an offset is optional."""
        (argument,) = make_prompt(dt.datetime).compiled.arguments.ordered

        assert argument.description == (
            "a date and time, as in 2026-01-31T12:00, with an offset (+01:00) or without"
        )


DATETIME = (
    "remove timezone=, or use a datetime; for a record's field, require an offset with msgspec.Meta(tz=True)"
)
NO_DATA = "has the timezone 'Europe/Berlin', and this system has no time zone data"


class TestZone:
    @pytest.mark.parametrize(
        ("zone", "offset"),
        [("UTC", 0), ("Europe/Berlin", 1), (BERLIN, 1), (dt.UTC, 0), (EAST, 1)],
        ids=["UTC", "name", "ZoneInfo", "datetime.UTC", "timezone"],
    )
    def test_a_naive_value_becomes_aware(self, zone, offset):
        """A value without an offset is a time in the author's zone."""
        parsed = parse(Annotated[dt.datetime, Arg(timezone=zone)], "2026-01-31T12:00")

        assert parsed.replace(tzinfo=None) == NOON
        assert parsed.utcoffset() == dt.timedelta(hours=offset)

    @pytest.mark.parametrize(
        ("annotation", "sent", "value"),
        [
            (dt.datetime, "2026-01-31", NOON.replace(hour=0, tzinfo=BERLIN)),
            (dt.datetime, "2026-01-31T12:00+05:00", NOON.replace(hour=8, tzinfo=BERLIN)),
            (dt.datetime | None, "2026-01-31T12:00", NOON.replace(tzinfo=BERLIN)),
            (str | dt.datetime, "2026-01-31T12:00:00+01:00", NOON.replace(tzinfo=BERLIN)),
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
    def test_the_zone_applies_wherever_a_datetime_is(self, annotation, sent, value):
        """The zone applies within lists, dicts, keys and unions; an explicit offset takes precedence."""
        parsed = parse(Annotated[annotation, Arg(timezone="Europe/Berlin")], sent)

        assert parsed == value

    @pytest.mark.parametrize(
        ("sent", "utc"),
        [("2026-03-29T02:30", "01:30"), ("2026-10-25T02:30", "00:30")],
        ids=["skipped", "twice"],
    )
    def test_a_skipped_or_repeated_time_has_the_earlier_offset(self, sent, utc):
        """A time that a clock change skips or repeats has the offset from before the change."""
        parsed = parse(Annotated[dt.datetime, Arg(timezone=BERLIN)], sent)

        assert f"{parsed.astimezone(dt.UTC):%H:%M}" == utc

    def test_the_description_names_the_zone(self):
        """The description names the time zone."""
        annotation = Annotated[dt.datetime, Arg("When it begins", timezone="Europe/Berlin")]
        (argument,) = make_prompt(annotation).compiled.arguments.ordered

        assert argument.description == (
            "When it begins (a date and time, as in 2026-01-31T12:00, "
            "in Europe/Berlin unless it has an offset)"
        )

    def test_the_schema_requires_no_offset(self):
        """The schema does not require an offset, even if the type allows only aware values."""
        schema = make_prompt(Annotated[Aware, Arg(timezone="UTC")]).compiled.schema["properties"]["value"]

        assert "format" not in schema
        jsonschema.validate("2026-01-31T12:00:00", schema)
        jsonschema.validate("2026-01-31T12:00:00+01:00", schema)

    def test_an_encoded_value_is_parsed_back(self):
        """Encoding an aware value and parsing it again gives the same moment."""
        value = dt.datetime(2026, 7, 31, 12, tzinfo=BERLIN)

        assert parse(Annotated[dt.datetime, Arg(timezone="UTC")], text_of(value)) == value

    @pytest.mark.parametrize(
        ("annotation", "message", "hint"),
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
                    "has timezone=, but its type has no datetime that can have an offset",
                    DATETIME,
                )
                for kind in (str, dt.time, dt.date, list[str], Naive, Meeting)
            ),
        ],
        ids=["misspelt", "path", "number", "text", "time", "date", "list", "naive", "record"],
    )
    def test_an_invalid_or_unused_zone_is_reported(self, annotation, message, hint):
        """An invalid or unused zone is reported at compile time with a hint."""
        assert collect_diagnostics(annotation) == [
            ("PK320", f"prompt 'meet': parameter 'value' {message}", hint)
        ]

    @pytest.mark.parametrize("name", ["Europe", "", "\0", "x" * 5000], ids=ascii)
    def test_impossible_zone_names_are_reported(self, name):
        """Folders of the zone database and impossible file names are unknown zones."""
        ((code, _, _),) = collect_diagnostics(Annotated[dt.datetime, Arg(timezone=name)])

        assert code == "PK320"

    def test_the_hint_is_to_install_missing_zone_data(self, monkeypatch):
        """On a system without zone data, such as Windows, the hint is to install it; UTC does not need it."""

        def missing(name: str) -> None:
            raise zoneinfo.ZoneInfoNotFoundError(name)

        monkeypatch.setattr(zoneinfo, "ZoneInfo", missing)
        monkeypatch.setattr(zoneinfo, "available_timezones", set)

        assert collect_diagnostics(Annotated[dt.datetime, Arg(timezone="Europe/Berlin")]) == [
            ("PK320", f"prompt 'meet': parameter 'value' {NO_DATA}", f"{pip()} tzdata")
        ]
        assert collect_diagnostics(Annotated[dt.datetime, Arg(timezone="UTC")]) == []


ADD = "has no offset: add an offset, as in 2026-01-31T12:00"
DROP = "has an offset: omit it, as in 2026-01-31T12:00"
START = '{"start": "2026-01-31T12:00:00"}'
LUNCH = '{"start": "2026-01-31T12:00:00Z", "lunch": "2026-01-31T12:00:00Z"}'


class TestRequiredOffset:
    @pytest.mark.parametrize(
        ("annotation", "sent", "message"),
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
    def test_a_wrong_offset_is_rejected_with_a_hint(self, annotation, sent, message):
        """A wrong or missing offset is reported with its path and a corrected example."""
        with pytest.raises(ArgumentsError) as caught:
            parse(annotation, sent)

        assert str(caught.value) == f"prompt 'meet': {message}"

    @pytest.mark.parametrize(
        ("annotation", "example"),
        [(Aware, "2026-01-31T12:00+01:00"), (Naive, "2026-01-31T12:00"), (AwareTime, "12:00+01:00")],
        ids=["aware", "naive", "time"],
    )
    def test_the_suggested_value_is_accepted(self, annotation, example):
        """The example in the error message is accepted."""
        assert parse(annotation, example) == parse(annotation.__origin__, example)

    def test_the_schema_rejects_the_same_values(self):
        """A schema validator rejects the same values as promptkit."""
        aware, naive = (make_prompt(kind).compiled.schema["properties"]["value"] for kind in (Aware, Naive))

        assert aware["format"] == "date-time"
        jsonschema.validate("2026-01-31T12:00:00", naive)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate("2026-01-31T12:00:00Z", naive)

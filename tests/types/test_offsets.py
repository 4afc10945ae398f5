"""Dates and times: parsed as written, or with the offset that a type requires."""

import datetime as dt
from dataclasses import dataclass
from typing import Annotated, Any, NewType
from zoneinfo import ZoneInfo

import jsonschema
import pytest
from msgspec import Meta

from promptkit import ArgumentsError, prompt
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes

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
            "a date and time such as 2026-01-31T12:00, with or without an offset (+01:00)"
        )


ADD = "has no offset: add an offset, for example 2026-01-31T12:00"
DROP = "has an offset: omit it, for example 2026-01-31T12:00"
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
            (AwareTime, "12:00", "'value' has no offset: add an offset, for example 12:00+01:00"),
            (
                Aware,
                "noon",
                "'value' is 'noon', not a date and time with an offset, such as 2026-01-31T12:00:00+01:00",
            ),
            (AwareTime, "x", "'value' is 'x', not a time of day with an offset, such as 12:00:00+01:00"),
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

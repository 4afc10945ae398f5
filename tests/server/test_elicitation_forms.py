import datetime as dt
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, Optional
from uuid import UUID

import jsonschema
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec import Meta, structs

from promptkit import Arg, ArgumentsError, prompt, register_type
from promptkit.protocol.jsonrpc import InvalidParams
from promptkit.protocol.revisions import REVISIONS
from promptkit.server import elicitation_forms
from promptkit.server.elicitation import askable
from tests.sample_types import Corner, Level, Point, Tone
from tests.wire import _schema as published
from tests.wire import validate


class Address(str):
    """An address for e-mail."""

    __slots__ = ()


class Shade:
    """A type whose author's schema promises more than its text."""

    def __init__(self, name: str) -> None:
        self.name = name


register_type(Address, Address, expected="an address", schema={"type": "string", "format": "email"})
register_type(Shade, Shade, expected="a shade", schema={"type": "array", "items": {"enum": ["grey"]}})

UserId = NewType("UserId", int)
Words = NewType("Words", str)
Slug = Annotated[str, Meta(pattern="^[a-z]+$", min_length=2, max_length=9)]
Email = Annotated[str, Meta(extra_json_schema={"format": "email"}, max_length=80)]
Link = Annotated[str, Meta(extra_json_schema={"format": "uri"})]
Few = Annotated[list[Literal["b", "a"]], Meta(min_length=1, max_length=2)]
TEXT = {"type": "string"}
ENTERED = {"type": "string", "minLength": 1}

#: A type, and the field for it.
FIELDS = [
    (str, TEXT),
    (Words, TEXT),
    (Optional[str], ENTERED),  # noqa: UP045 (people write it)
    (Annotated[str, Meta(min_length=2)], {"type": "string", "minLength": 2}),
    (Slug, {"type": "string", "minLength": 2, "maxLength": 9}),
    (Slug | None, {"type": "string", "minLength": 2, "maxLength": 9}),
    (Email, {"type": "string", "maxLength": 80, "format": "email"}),
    (Link, {"type": "string", "format": "uri"}),
    (Address, {"type": "string", "format": "email"}),
    (Shade, ENTERED),
    (dt.date, {"type": "string", "format": "date"}),
    (dt.date | None, {"type": "string", "format": "date"}),
    (dt.datetime, {"type": "string", "format": "date-time"}),
    (Annotated[dt.datetime, Meta(tz=True)], {"type": "string", "format": "date-time"}),
    (Annotated[dt.datetime, Meta(tz=False)], ENTERED),
    (dt.time, ENTERED),
    (dt.timedelta, ENTERED),
    (UUID, ENTERED),
    (Path, ENTERED),
    (bytes, ENTERED),
    (Annotated[bytes, Meta(min_length=6, max_length=9)], ENTERED),
    (Decimal, ENTERED),
    (int, {"type": "integer"}),
    (UserId, {"type": "integer"}),
    (int | None, {"type": "integer"}),
    (Annotated[int, Meta(ge=1, le=9)], {"type": "integer", "minimum": 1, "maximum": 9}),
    (Annotated[int, Meta(gt=1, lt=9)] | None, {"type": "integer", "minimum": 2, "maximum": 8}),
    (Annotated[int, Meta(multiple_of=5)], ENTERED),
    (float, {"type": "number"}),
    (Annotated[float, Meta(ge=0, le=0.5)], {"type": "number", "minimum": 0, "maximum": 0.5}),
    (Annotated[float, Meta(gt=0, lt=1)], {"type": "number", "minimum": 5e-324, "maximum": 1 - 2**-53}),
    (bool, {"type": "boolean"}),
    (bool | None, {"type": "boolean"}),
    (Literal["b", "a", 3], {"type": "string", "enum": ["b", "a", "3"]}),
    (Literal[1, "1", True, ""], {"type": "string", "enum": ["1", "yes"]}),
    (Literal["b", "a", None], {"type": "string", "enum": ["b", "a"]}),  # noqa: PYI061 (people write it)
    (Tone, {"type": "string", "enum": ["warm", "Cold"]}),
    (Tone | None, {"type": "string", "enum": ["warm", "Cold"]}),
    (Annotated[Tone, Meta(title="Tone")], {"type": "string", "enum": ["warm", "Cold"]}),
    (Level, {"type": "string", "enum": ["1", "2"]}),
    (Corner, {"type": "string", "enum": ["LEFT", "RIGHT"]}),
    (Tone | Literal["auto"], {"type": "string", "enum": ["warm", "Cold", "auto"]}),
    (bool | Literal["auto"], {"type": "string", "enum": ["yes", "no", "auto"]}),
    (int | Literal["auto"], ENTERED),
    (int | str, ENTERED),
    (list[str], ENTERED),
    (list[bool], ENTERED),
    (list[int | Literal["auto"]], ENTERED),
    (tuple[int, str], ENTERED),
    (list[tuple[Literal["a"], ...]], ENTERED),
    (dict[str, int], ENTERED),
    (Annotated[dict[str, Annotated[int, Meta(extra={})]], Meta(min_length=1)], ENTERED),
    (Point, ENTERED),
]

#: The same for those that several choices answer.
SEVERAL = [
    (list[Tone], {"items": {"type": "string", "enum": ["warm", "Cold"]}}),
    (list[Tone] | None, {"items": {"type": "string", "enum": ["warm", "Cold"]}}),
    # Letters of its own: `typing` takes two unions for one whose choices differ in their order alone.
    (list[Literal["d", "c"] | None], {"items": {"type": "string", "enum": ["d", "c"]}}),
    (set[Level], {"items": {"type": "string", "enum": ["1", "2"]}}),
    (frozenset[Corner], {"items": {"type": "string", "enum": ["LEFT", "RIGHT"]}}),
    (tuple[Literal["a"], ...], {"items": {"type": "string", "enum": ["a"]}}),
    (Few, {"items": {"type": "string", "enum": ["b", "a"]}, "minItems": 1, "maxItems": 2}),
]
ASKED = [annotation for annotation, _ in FIELDS + SEVERAL]

ASKING = [revision for revision in REVISIONS.values() if revision.elicitation]


def taking(annotation, arg=None, **options):
    """A compiled prompt with one required parameter of a type, which asks for it."""

    def typed(value) -> str:
        return str(value)

    typed.__annotations__["value"] = annotation if arg is None else Annotated[annotation, arg]
    return prompt(elicit=True, **options)(typed).compiled


def argument(annotation):
    """The argument of a type."""
    return taking(annotation).arguments.by_name["value"]


def field(annotation, arg=None, *, multi_select=True) -> dict:
    """The field for one type."""
    asked = taking(annotation, arg).arguments.ordered
    return elicitation_forms.requested_schema(asked, multi_select=multi_select)["properties"]["value"]


def bare(schema: dict) -> dict:
    """A field without its title and description."""
    return {key: value for key, value in schema.items() if key not in {"title", "description"}}


class TestFields:
    @pytest.mark.parametrize("multi_select", [True, False], ids=["several", "single"])
    @pytest.mark.parametrize(("annotation", "expected"), FIELDS, ids=str)
    def test_a_type_has_a_field(self, annotation, expected, multi_select):
        """
        Each type becomes the field that holds its values best, with the bounds that forms know.
        """
        assert bare(field(annotation, multi_select=multi_select)) == expected

    @pytest.mark.parametrize(("annotation", "expected"), SEVERAL, ids=str)
    def test_several_choices(self, annotation, expected):
        """
        A list of choices is a field to choose several in, where forms have one, and else text.
        """
        assert field(annotation) == {"type": "array"} | expected
        assert bare(field(annotation, multi_select=False)) == ENTERED

    def test_every_field_is_required(self):
        """
        The form is an object with a field for each argument, in their order, and asks for all.
        """

        @prompt
        def review(diff: str, depth: int, tone: Tone = Tone.WARM) -> str:
            return diff

        assert elicitation_forms.requested_schema(review.compiled.arguments.ordered, multi_select=True) == {
            "type": "object",
            "properties": {
                "diff": {"type": "string"},
                "depth": {"type": "integer", "description": "a whole number"},
                "tone": {"type": "string", "enum": ["warm", "Cold"]},
            },
            "required": ["diff", "depth", "tone"],
        }

    @pytest.mark.parametrize(
        ("annotation", "description"),
        [
            (str, "What it is (for example a)"),
            (int, "What it is (a whole number; for example a)"),
            (
                Slug,
                (
                    "What it is (text of at least 2 and at most 9 characters that matches ^[a-z]+$; "
                    "for example a)"
                ),
            ),
            (dt.timedelta, "What it is (a duration, as in 1h 30m; for example a)"),
            (
                Annotated[int, Meta(multiple_of=5)],
                "What it is (a whole number that is a multiple of 5; for example a)",
            ),
            (Point, 'What it is (JSON, for example {"x":1}; for example a)'),
            (bool, "What it is"),
            (Tone, "What it is"),
            (list[Tone], "What it is"),
        ],
        ids=str,
    )
    def test_what_is_said_of_a_field(self, annotation, description):
        """
        A field has the argument's title and description, and how to write a value.
        """
        made = field(annotation, Arg("What it is", title="Value", examples=["a"]))

        assert (made["title"], made["description"]) == ("Value", description)

    def test_several_choices_as_text_say_how_they_are_written(self):
        """
        Where nothing can be chosen the choices are in the description.
        """
        made = field(list[Tone], multi_select=False)

        assert made["description"] == "several, separated by commas; each one of warm, Cold"

    def test_nothing_is_made_up(self):
        """
        An argument without a title and a description gives a field without them.
        """
        assert field(str) == {"type": "string"}
        assert field(Tone).keys() == {"type", "enum"}


class TestPublishedSchemas:
    @pytest.mark.requirement("elicitation/flat-schema", "elicitation/form")
    @pytest.mark.parametrize("revision", ASKING, ids=lambda revision: revision.date)
    def test_a_form_is_one_of_the_revision(self, revision):
        """
        A form with a field of every kind is what the revision's schema defines.
        """
        several = revision.elicitation_modes
        every = [structs.replace(argument(each), name=f"field{i}", title="A") for i, each in enumerate(ASKED)]

        params = elicitation_forms.elicitation(taking(str), every, modes=several)

        request = {"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params}
        validate(request, revision.date, "ElicitRequest")
        assert len(params["requestedSchema"]["properties"]) == len(ASKED)

    @pytest.mark.parametrize("revision", ASKING, ids=lambda revision: revision.date)
    def test_a_field_has_no_members_of_its_own(self, revision):
        """
        The published definitions are open; no field has a member that they do not name.
        """
        schema = published(revision.date)
        kinds = [d for name, d in schema.get("$defs", schema.get("definitions")).items() if "Schema" in name]
        named = {kind: set() for kind in ("string", "number", "integer", "boolean", "array")}
        for kind in (kind for kind in kinds if "type" in kind.get("properties", {})):
            types = kind["properties"]["type"]
            for of in types.get("enum", [types.get("const")]):
                named[of] |= kind["properties"].keys()

        fields = [field(annotation, multi_select=revision.elicitation_modes) for annotation in ASKED]

        assert [made for made in fields if not made.keys() <= named[made["type"]]] == []

    @pytest.mark.requirement("elicitation/flat-schema")
    @pytest.mark.parametrize("revision", ASKING, ids=lambda revision: revision.date)
    def test_no_field_is_nested(self, revision):
        """
        A field is text, a number, yes or no, or, where forms offer several choices, a list of
        those; whatever is nested in an argument is asked for as text.
        """
        several = revision.elicitation_modes
        fields = [field(annotation, multi_select=several) for annotation in ASKED]

        plain = {"string", "number", "integer", "boolean"}
        lists = [made for made in fields if made["type"] not in plain]
        assert {made["type"] for made in lists} == ({"array"} if several else set())
        assert [made for made in lists if made["items"].keys() != {"type", "enum"}] == []
        assert [made for made in fields if made.keys() & {"properties", "anyOf", "oneOf", "$ref"}] == []

    @pytest.mark.requirement("elicitation/plain-words")
    @pytest.mark.parametrize("revision", ASKING, ids=lambda revision: revision.date)
    def test_no_address_is_added(self, revision):
        """
        The texts of a form and of its fields hold no URL.
        """
        several = revision.elicitation_modes
        every = [structs.replace(argument(each), name=f"field{i}") for i, each in enumerate(ASKED)]

        asked = json.dumps(elicitation_forms.elicitation(taking(str), every, modes=several))

        assert re.findall(r"[a-z]+://|www\.", asked) == []

    def test_it_fits_into_a_result_that_asks(self):
        """
        The params are those of a request among the ``inputRequests`` of a result.
        """
        asked = taking(Few)
        params = elicitation_forms.elicitation(asked, asked.arguments.ordered, modes=True)
        inputs = {"arguments": {"method": "elicitation/create", "params": params}}

        validate(
            {"resultType": "input_required", "inputRequests": inputs}, ASKING[-1].date, "InputRequiredResult"
        )

    def test_modes(self):
        """
        Only where a revision has modes does the question say that it is a form.
        """
        asked = taking(int, title="Count")
        older = elicitation_forms.elicitation(asked, asked.arguments.ordered, modes=False)
        newer = elicitation_forms.elicitation(asked, asked.arguments.ordered, modes=True)

        assert older == {
            "message": "The prompt 'Count' needs value.",
            "requestedSchema": elicitation_forms.requested_schema(
                asked.arguments.ordered, multi_select=False
            ),
        }
        assert newer == {"mode": "form", **older}


#: What people may enter where a field says in words how it is written.
WRITTEN = [
    (Optional[str], ["a", " "]),  # noqa: UP045 (people write it)
    (Slug, ["ab", "abcdefghi"]),
    (Slug | None, ["ab"]),
    (Email, ["ann@example.com"]),
    (Link, ["https://example.com/a"]),
    (Address, ["ann@example.com"]),
    (Shade, ["grey"]),
    (Annotated[dt.datetime, Meta(tz=False)], ["2026-01-31T12:00", "2026-01-31 12:00:00"]),
    (dt.time, ["12:00", "12:00:01.5"]),
    (dt.timedelta, ["1h 30m", "PT90S"]),
    (UUID, ["12345678-1234-5678-1234-567812345678"]),
    (Path, ["notes/today.md"]),
    (bytes, ["aGk=", "data:,hi"]),
    (Annotated[bytes, Meta(min_length=6, max_length=9)], ["aGVsbG8h", "data:text/plain;base64,aGVsbG8h"]),
    (Decimal, ["2.50", "1E+3", "12345678901234567890.5"]),
    (Annotated[int, Meta(multiple_of=5)], ["10", "-5"]),
    (int | Literal["auto"], ["5", "auto"]),
    (int | str, ["5", "five"]),
    (list[str], ["a, b", "a\nb", '["a"]']),
    (list[bool], ["yes, no"]),
    (list[int | Literal["auto"]], ["1, auto"]),
    (list[Tone], ["warm, cold", "warm"]),
    (Few, ["a, b"]),
    (tuple[int, str], ['[1, "a"]']),
    (dict[str, int], ['{"a": 1}']),
    (Point, ['{"x": 1}']),
]

#: What a validator makes of a field's format.
FORMATS = {
    "date": st.dates().map(dt.date.isoformat),
    "date-time": st.datetimes(
        timezones=st.sampled_from([dt.UTC, dt.timezone(dt.timedelta(hours=-9, minutes=-30))])
    ).map(dt.datetime.isoformat),
}


def chosen_or_bounded(schema) -> bool:
    """Whether a field says to machines all that there is to say."""
    return schema["type"] != "string" or "enum" in schema or schema.get("format") in FORMATS


def entered(schema) -> st.SearchStrategy[Any]:
    """Whatever a field may hold."""
    low, high = schema.get("minimum"), schema.get("maximum")
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema["type"] == "array":
        limits = {"min_size": schema.get("minItems", 0), "max_size": schema.get("maxItems")}
        return st.lists(entered(schema["items"]), unique=True, **limits)
    if schema["type"] == "integer":
        return st.integers(low, high) | st.integers(low or -9, high or 9).map(float)
    if schema["type"] == "number":
        return st.floats(low, high, allow_nan=False, allow_infinity=False) | st.integers(-9, 9)
    return st.booleans() if schema["type"] == "boolean" else FORMATS[schema["format"]]


def is_valid(value, schema) -> bool:
    """Whether a client lets *value* pass."""
    checker = jsonschema.FormatChecker(["date", "date-time", "email"])
    return jsonschema.Draft202012Validator(schema, format_checker=checker).is_valid(value)


class TestReading:
    @pytest.mark.parametrize(
        "annotation", [each for each in ASKED if chosen_or_bounded(field(each))], ids=str
    )
    @settings(deadline=None, max_examples=60)
    @given(st.data())
    def test_what_a_field_may_hold_is_read(self, annotation, data):
        """
        Every choice, number and date that a field allows is a value of its argument.
        """
        schema = field(annotation)
        value = data.draw(entered(schema))
        assume(is_valid(value, schema))

        assert taking(annotation).arguments.read({"value": value}).keys() == {"value"}

    @pytest.mark.parametrize("bound", [0, 1, -1.5, 1e300, -1e-300])
    def test_a_bound_that_must_not_be_reached_is_exact(self, bound):
        """
        A field's bound is the very next number, so that it neither allows nor forbids too much.
        """
        above = field(Annotated[float, Meta(gt=bound)])
        below = field(Annotated[float, Meta(lt=bound)])

        assert not is_valid(bound, above)
        assert not is_valid(bound, below)
        assert taking(Annotated[float, Meta(gt=bound)]).arguments.read({"value": above["minimum"]})
        assert taking(Annotated[float, Meta(lt=bound)]).arguments.read({"value": below["maximum"]})

    @given(st.text(max_size=12))
    def test_any_text_that_a_field_lets_pass_is_read(self, text):
        """
        Text of the length that a field asks for is a value of its argument.
        """
        annotation = Annotated[str, Meta(min_length=2, max_length=9)]
        assume(is_valid(text, field(annotation)))

        assert taking(annotation).arguments.read({"value": text}) == {"value": text}

    @pytest.mark.parametrize(
        ("annotation", "text"),
        [(annotation, text) for annotation, texts in WRITTEN for text in texts],
        ids=str,
    )
    def test_what_people_write_passes_and_is_read(self, annotation, text):
        """
        A field lets pass what its argument reads, however it is written.
        """
        assert is_valid(text, field(annotation, multi_select=False))
        assert taking(annotation).arguments.read({"value": text}).keys() == {"value"}

    @pytest.mark.parametrize(
        "annotation", [each for each in ASKED if not argument(each).blank_is_value], ids=str
    )
    def test_a_field_left_empty_is_not_sent(self, annotation):
        """
        Where "" means nothing the client refuses it, so the question is not asked again.
        """
        assert not is_valid("", field(annotation, multi_select=False))


@prompt(title="Review a change", elicit=True)
def review(
    diff: Annotated[str, Arg("What changed", title="Diff")],
    depth: int,
    point: Point,
    pin: Annotated[int, Arg(secret=True)],
    tone: Tone = Tone.WARM,
) -> str:
    return diff


GIVEN = {"diff": "a", "depth": "1", "point": '{"x": 1}', "pin": "7"}


def asked_for(given, made=review) -> list[str]:
    """The names of the arguments that a form would ask for."""
    with pytest.raises(ArgumentsError) as caught:
        made.compiled.arguments.read(given)
    return [argument.name for argument in askable(made.compiled, caught.value)]


def without(*names, **changed) -> dict:
    """What a client sends, without some of it."""
    return {name: text for name, text in {**GIVEN, **changed}.items() if name not in names}


class TestAskable:
    @pytest.mark.parametrize(
        ("given", "names"),
        [
            (without("diff"), ["diff"]),
            (without("depth", "diff"), ["diff", "depth"]),
            (without(depth=""), ["depth"]),
            (without(depth=None), ["depth"]),
            (without("point"), ["point"]),
        ],
        ids=["text", "two", "empty", "null", "parts"],
    )
    def test_what_is_missing_is_asked_for(self, given, names):
        """
        Required arguments that are missing are asked for, in the signature's order.
        """
        assert names == asked_for(given)

    @pytest.mark.parametrize(
        "given",
        [
            without("diff", depth="many"),
            without("diff", more="x"),
            without("diff", point="{}"),
            without(point="{}"),
            without(depth="many"),
            without("diff", tone="blue"),
            without("pin"),
            without("diff", "pin"),
            without(pin="x"),
            without("diff", pin="x"),
        ],
        ids=str,
    )
    def test_nothing_is_asked_for_if_more_is_wrong(self, given):
        """
        An invalid, unknown or secret argument is an error as ever.
        """
        assert asked_for(given) == []

    def test_a_prompt_that_does_not_ask(self):
        """
        Nothing is asked for unless the author says so.
        """

        @prompt
        def quiet(diff: str) -> str:
            return diff

        assert asked_for({}, quiet) == []

    def test_no_faults(self):
        """
        Where nothing is wrong there is nothing to ask for.
        """
        assert askable(review.compiled, ArgumentsError("review", ())) == ()


@pytest.mark.parametrize(
    ("count", "needed"), [(1, "Diff"), (2, "Diff and depth"), (3, "Diff, depth and point")]
)
def test_the_question_names_the_prompt_and_what_it_needs(count, needed):
    """
    People read one sentence, with titles where there are any.
    """
    arguments = review.compiled.arguments.ordered[:count]

    assert (
        elicitation_forms.message(review.compiled, arguments)
        == f"The prompt 'Review a change' needs {needed}."
    )


def test_a_question_of_a_prompt_without_a_title():
    """
    Without a title the prompt goes by its name.
    """
    made = taking(int)

    assert elicitation_forms.message(made, made.arguments.ordered) == "The prompt 'typed' needs value."


class TestAnswers:
    @pytest.mark.parametrize(
        ("response", "expected"),
        [
            ({"action": "accept", "content": {"a": "x", "b": 2}}, {"a": "x", "b": 2}),
            ({"action": "accept", "content": {"a": ["x", "y"]}}, {"a": ["x", "y"]}),
            ({"action": "accept", "content": {"a": True, "c": "unasked"}}, {"a": True}),
            ({"action": "accept", "content": {}}, {}),
            ({"action": "accept", "content": None}, {}),
            ({"action": "accept"}, {}),
            ({"action": "accept", "content": {"b": 0.5}, "_meta": {"k": 1}}, {"b": 0.5}),
            ({"action": "decline"}, None),
            ({"action": "cancel"}, None),
            ({"action": "decline", "content": {"a": "x"}}, None),
        ],
        ids=str,
    )
    def test_what_was_entered(self, response, expected):
        """
        What was accepted and asked for comes back, None where the form was turned down.
        """
        assert elicitation_forms.answers(response, {"a", "b"}) == expected

    @pytest.mark.parametrize(
        ("response", "says"),
        [
            (None, "Expected `object`, got `null`"),
            ([], "Expected `object`, got `array`"),
            ("accept", "Expected `object`, got `str`"),
            ({}, "Object missing required field `action`"),
            ({"action": "ok"}, "Invalid enum value 'ok' - at `$.action`"),
            ({"action": None}, "Expected `str`, got `null` - at `$.action`"),
            ({"action": "accept", "content": []}, "Expected `object | null`, got `array` - at `$.content`"),
        ],
        ids=str,
    )
    def test_a_malformed_answer(self, response, says):
        """
        It is refused, and the error says where it is wrong.
        """
        with pytest.raises(InvalidParams) as refused:
            elicitation_forms.answers(response, {"a"})

        assert str(refused.value) == f"the answer to a form is invalid: {says}"

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["action", "content", "a"]), inner, max_size=3)
            ),
            max_leaves=6,
        )
    )
    def test_any_json_is_an_answer_or_is_refused(self, response):
        """
        Whatever a client sends is read or refused in words, never with another exception.
        """
        try:
            found = elicitation_forms.answers(response, {"a"})
        except InvalidParams:
            return

        assert found is None or found.keys() <= {"a"}

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
from promptkit.server.elicitation import (
    askable_arguments,
    elicitation_params,
    form_message,
    read_answer,
    requested_schema,
)
from tests.sample_types import Corner, Level, Point, Tone
from tests.wire import published_schema, validate


class Address(str):
    """An email address."""

    __slots__ = ()


class Shade:
    """A type whose schema does not describe its text form."""

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

#: Types and their fields.
FIELDS = [
    (str, TEXT),
    (Words, TEXT),
    (Optional[str], ENTERED),  # noqa: UP045 (people write it)
    (Annotated[str, Meta(min_length=2)], {"type": "string", "minLength": 2}),
    (list[Annotated[int, {"unit": "px"}]], ENTERED),  # with metadata that cannot be hashed
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
    (Level, {"type": "string", "enum": ["LOW", "HIGH"]}),
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

#: Types with several choices and their fields.
SEVERAL = [
    (list[Tone], {"items": {"type": "string", "enum": ["warm", "Cold"]}}),
    (list[Tone] | None, {"items": {"type": "string", "enum": ["warm", "Cold"]}}),
    # Different letters: `typing` treats unions that differ only in their order as equal.
    (list[Literal["d", "c"] | None], {"items": {"type": "string", "enum": ["d", "c"]}}),
    (set[Level], {"items": {"type": "string", "enum": ["LOW", "HIGH"]}}),
    (frozenset[Corner], {"items": {"type": "string", "enum": ["LEFT", "RIGHT"]}}),
    (tuple[Literal["a"], ...], {"items": {"type": "string", "enum": ["a"]}}),
    (Few, {"items": {"type": "string", "enum": ["b", "a"]}, "minItems": 1, "maxItems": 2}),
]
ANNOTATIONS = [annotation for annotation, _ in FIELDS + SEVERAL]

ASKING = [revision for revision in REVISIONS.values() if revision.elicitation]


def prompt_with(annotation, arg=None, **options):
    """Return a compiled prompt that asks for its one required parameter of a type."""

    def typed(value) -> str:
        return str(value)

    typed.__annotations__["value"] = annotation if arg is None else Annotated[annotation, arg]
    return prompt(elicit=True, **options)(typed).compiled


def argument(annotation):
    """Return the compiled argument of a prompt for a type."""
    return prompt_with(annotation).arguments.by_name["value"]


def field(annotation, arg=None, *, has_modes=True) -> dict:
    """Return the form field for a type."""
    arguments = prompt_with(annotation, arg).arguments.ordered
    return requested_schema(arguments, has_modes=has_modes)["properties"]["value"]


def strip_texts(schema: dict) -> dict:
    """Return a field without its title and description."""
    return {key: value for key, value in schema.items() if key not in {"title", "description"}}


class TestFields:
    @pytest.mark.parametrize("has_modes", [True, False], ids=["several", "single"])
    @pytest.mark.parametrize(("annotation", "expected"), FIELDS, ids=str)
    def test_field_of_a_type(self, annotation, expected, has_modes):
        """Each type has the field that fits its values best, with the bounds that forms support."""
        assert strip_texts(field(annotation, has_modes=has_modes)) == expected

    @pytest.mark.parametrize(("annotation", "expected"), SEVERAL, ids=str)
    def test_multiple_choice(self, annotation, expected):
        """A list of choices is a multiple-choice field where forms support it, and a text field otherwise."""
        assert field(annotation) == {"type": "array"} | expected
        assert strip_texts(field(annotation, has_modes=False)) == ENTERED

    def test_fields_of_required_arguments_are_required(self):
        """The form is an object with a field for each argument, in order, with the argument's default."""

        @prompt
        def review(diff: str, depth: int, tone: Tone = Tone.WARM) -> str:
            return diff

        assert requested_schema(review.compiled.arguments.ordered, has_modes=True) == {
            "type": "object",
            "properties": {
                "diff": {"type": "string"},
                "depth": {"type": "integer", "description": "a whole number"},
                "tone": {"type": "string", "enum": ["warm", "Cold"], "default": "warm"},
            },
            "required": ["diff", "depth"],
        }

    def test_defaults(self):
        """The default of a field is the string that was sent, or the default of an optional argument."""

        @prompt
        def count(
            name: str, *, deep: bool = True, number: int = 3, ratio: float = 0.5, of: str | None = None
        ):
            return name

        arguments = count.compiled.arguments.ordered
        sent = {"name": "one", "number": "many"}

        newer = requested_schema(arguments, has_modes=True, values=sent)["properties"]
        older = requested_schema(arguments, has_modes=False, values=sent)["properties"]

        assert {name: each.get("default") for name, each in newer.items()} == {
            "name": "one",
            "deep": True,
            "number": 3,
            "ratio": 0.5,
            "of": None,
        }
        assert not any("default" in each for each in older.values())

    @pytest.mark.parametrize(
        ("annotation", "description"),
        [
            (str, "The value (for example a)"),
            (int, "The value (a whole number; for example a)"),
            (
                Slug,
                (
                    "The value (text of at least 2 and at most 9 characters that matches ^[a-z]+$; "
                    "for example a)"
                ),
            ),
            (dt.timedelta, "The value (a duration such as 1h 30m; for example a)"),
            (
                Annotated[int, Meta(multiple_of=5)],
                "The value (a whole number that is a multiple of 5; for example a)",
            ),
            (Point, 'The value (JSON, for example {"x":1}; for example a)'),
            (bool, "The value"),
            (Tone, "The value"),
            (list[Tone], "The value"),
        ],
        ids=str,
    )
    def test_title_and_description(self, annotation, description):
        """A field has the argument's title and description, and the format of its value."""
        schema = field(annotation, Arg("The value", title="Value", examples=["a"]))

        assert (schema["title"], schema["description"]) == ("Value", description)

    def test_text_field_describes_multiple_choices(self):
        """A text field for several choices lists them in its description."""
        schema = field(list[Tone], has_modes=False)

        assert schema["description"] == "several, separated by commas; each one of warm, Cold"

    def test_no_title_and_description(self):
        """An argument without a title and a description has a field without them."""
        assert field(str) == {"type": "string"}
        assert field(Tone).keys() == {"type", "enum"}


class TestPublishedSchemas:
    @pytest.mark.requirement("elicitation/flat-schema", "elicitation/form")
    @pytest.mark.parametrize("revision", ASKING, ids=lambda revision: revision.date)
    def test_form_is_valid(self, revision):
        """A form with a field of every kind is valid in the revision's schema."""
        several = revision.elicitation_modes
        arguments = [
            structs.replace(argument(each), name=f"field{i}", title="A") for i, each in enumerate(ANNOTATIONS)
        ]

        params = elicitation_params(prompt_with(str), arguments, modes=several)

        request = {"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params}
        validate(request, revision.date, "ElicitRequest")
        assert len(params["requestedSchema"]["properties"]) == len(ANNOTATIONS)

    @pytest.mark.parametrize("revision", ASKING, ids=lambda revision: revision.date)
    def test_fields_have_only_published_members(self, revision):
        """The published definitions allow additional properties, but no field has any."""
        schema = published_schema(revision.date)
        kinds = [d for name, d in schema.get("$defs", schema.get("definitions")).items() if "Schema" in name]
        named = {kind: set() for kind in ("string", "number", "integer", "boolean", "array")}
        for kind in (kind for kind in kinds if "type" in kind.get("properties", {})):
            types = kind["properties"]["type"]
            for type_name in types.get("enum", [types.get("const")]):
                named[type_name] |= kind["properties"].keys()

        fields = [field(annotation, has_modes=revision.elicitation_modes) for annotation in ANNOTATIONS]

        assert [schema for schema in fields if not schema.keys() <= named[schema["type"]]] == []

    @pytest.mark.requirement("elicitation/flat-schema")
    @pytest.mark.parametrize("revision", ASKING, ids=lambda revision: revision.date)
    def test_fields_are_flat(self, revision):
        """A field is text, a number, a boolean or a multiple choice; nested values are text fields."""
        several = revision.elicitation_modes
        fields = [field(annotation, has_modes=several) for annotation in ANNOTATIONS]

        plain = {"string", "number", "integer", "boolean"}
        lists = [schema for schema in fields if schema["type"] not in plain]
        assert {schema["type"] for schema in lists} == ({"array"} if several else set())
        assert [schema for schema in lists if schema["items"].keys() != {"type", "enum"}] == []
        assert [schema for schema in fields if schema.keys() & {"properties", "anyOf", "oneOf", "$ref"}] == []

    @pytest.mark.requirement("elicitation/plain-words")
    @pytest.mark.parametrize("revision", ASKING, ids=lambda revision: revision.date)
    def test_forms_contain_no_url(self, revision):
        """The message of a form and the text of its fields contain no URL."""
        several = revision.elicitation_modes
        arguments = [structs.replace(argument(each), name=f"field{i}") for i, each in enumerate(ANNOTATIONS)]

        form = json.dumps(elicitation_params(prompt_with(str), arguments, modes=several))

        assert re.findall(r"[a-z]+://|www\.", form) == []

    def test_params_fit_an_input_request(self):
        """The params are valid in the `inputRequests` of a result."""
        compiled = prompt_with(Few)
        params = elicitation_params(compiled, compiled.arguments.ordered, modes=True)
        inputs = {"arguments": {"method": "elicitation/create", "params": params}}

        validate(
            {"resultType": "input_required", "inputRequests": inputs}, ASKING[-1].date, "InputRequiredResult"
        )

    def test_mode(self):
        """The params contain the mode only in revisions that have modes."""
        compiled = prompt_with(int, title="Count")
        older = elicitation_params(compiled, compiled.arguments.ordered, modes=False)
        newer = elicitation_params(compiled, compiled.arguments.ordered, modes=True)

        assert older == {
            "message": "The prompt 'Count' needs value.",
            "requestedSchema": requested_schema(compiled.arguments.ordered, has_modes=False),
        }
        assert newer == {"mode": "form", **older}


#: Valid texts for the fields whose format is described in words.
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

#: Valid values by format.
FORMATS = {
    "date": st.dates().map(dt.date.isoformat),
    "date-time": st.datetimes(
        timezones=st.sampled_from([dt.UTC, dt.timezone(dt.timedelta(hours=-9, minutes=-30))])
    ).map(dt.datetime.isoformat),
}


def is_fully_described(schema) -> bool:
    """Whether the schema of a field describes its values completely."""
    return schema["type"] != "string" or "enum" in schema or schema.get("format") in FORMATS


def valid_values(schema) -> st.SearchStrategy[Any]:
    """Return a strategy for the values that a field allows."""
    low, high = schema.get("minimum"), schema.get("maximum")
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema["type"] == "array":
        limits = {"min_size": schema.get("minItems", 0), "max_size": schema.get("maxItems")}
        return st.lists(valid_values(schema["items"]), unique=True, **limits)
    if schema["type"] == "integer":
        return st.integers(low, high) | st.integers(low or -9, high or 9).map(float)
    if schema["type"] == "number":
        return st.floats(low, high, allow_nan=False, allow_infinity=False) | st.integers(-9, 9)
    return st.booleans() if schema["type"] == "boolean" else FORMATS[schema["format"]]


def is_valid(value, schema) -> bool:
    """Whether a client accepts *value* in a field."""
    checker = jsonschema.FormatChecker(["date", "date-time", "email"])
    return jsonschema.Draft202012Validator(schema, format_checker=checker).is_valid(value)


class TestParsing:
    @pytest.mark.parametrize(
        "annotation", [each for each in ANNOTATIONS if is_fully_described(field(each))], ids=str
    )
    @settings(deadline=None, max_examples=20)
    @given(st.data())
    def test_allowed_values_are_accepted(self, annotation, data):
        """Every choice, number and date that a field allows is a valid argument."""
        schema = field(annotation)
        value = data.draw(valid_values(schema))
        assume(is_valid(value, schema))

        assert prompt_with(annotation).arguments.read({"value": value}).keys() == {"value"}

    @pytest.mark.parametrize("bound", [0, 1, -1.5, 1e300, -1e-300])
    def test_exclusive_bound_is_exact(self, bound):
        """The inclusive bound of a field is the next representable number."""
        above = field(Annotated[float, Meta(gt=bound)])
        below = field(Annotated[float, Meta(lt=bound)])

        assert not is_valid(bound, above)
        assert not is_valid(bound, below)
        assert prompt_with(Annotated[float, Meta(gt=bound)]).arguments.read({"value": above["minimum"]})
        assert prompt_with(Annotated[float, Meta(lt=bound)]).arguments.read({"value": below["maximum"]})

    @given(st.text(max_size=12))
    def test_text_of_a_valid_length_is_accepted(self, text):
        """Text of the length that a field requires is a valid argument."""
        annotation = Annotated[str, Meta(min_length=2, max_length=9)]
        assume(is_valid(text, field(annotation)))

        assert prompt_with(annotation).arguments.read({"value": text}) == {"value": text}

    @pytest.mark.parametrize(
        ("annotation", "text"),
        [(annotation, text) for annotation, texts in WRITTEN for text in texts],
        ids=str,
    )
    def test_written_values_are_accepted(self, annotation, text):
        """A text field accepts the values that its argument parses, in each notation."""
        assert is_valid(text, field(annotation, has_modes=False))
        assert prompt_with(annotation).arguments.read({"value": text}).keys() == {"value"}

    @pytest.mark.parametrize(
        "annotation", [each for each in ANNOTATIONS if not argument(each).blank_is_value], ids=str
    )
    def test_empty_field_is_invalid(self, annotation):
        """Where "" means missing, the client rejects it, so that the question is not asked again."""
        assert not is_valid("", field(annotation, has_modes=False))


@prompt(title="Review a change", elicit=True)
def review(
    diff: Annotated[str, Arg("What changed", title="Diff")],
    depth: int,
    point: Point,
    pin: Annotated[int, Arg(secret=True)],
    tone: Tone = Tone.WARM,
) -> str:
    return diff


ARGUMENTS = {"diff": "a", "depth": "1", "point": '{"x": 1}', "pin": "7"}


def requested_names(arguments, declared=review) -> list[str]:
    """Return the names of the arguments that a form would request."""
    with pytest.raises(ArgumentsError) as caught:
        declared.compiled.arguments.read(arguments)
    return [argument.name for argument in askable_arguments(declared.compiled, caught.value)]


def arguments_without(*names, **changed) -> dict:
    """Return valid arguments except *names*, with *changed* values."""
    return {name: text for name, text in {**ARGUMENTS, **changed}.items() if name not in names}


class TestAskable:
    @pytest.mark.parametrize(
        ("arguments", "names"),
        [
            (arguments_without("diff"), ["diff"]),
            (arguments_without("depth", "diff"), ["diff", "depth"]),
            (arguments_without(depth=""), ["depth"]),
            (arguments_without(depth=None), ["depth"]),
            (arguments_without("point"), ["point"]),
            (arguments_without("diff", depth="many"), ["diff", "depth"]),
            (arguments_without(depth="many"), ["depth"]),
            (arguments_without("diff", tone="blue"), ["diff", "tone"]),
        ],
        ids=["text", "two", "empty", "null", "parts", "missing and invalid", "invalid", "optional"],
    )
    def test_missing_and_invalid_arguments_are_requested(self, arguments, names):
        """Missing and invalid arguments are requested in the signature's order."""
        assert names == requested_names(arguments)

    @pytest.mark.parametrize(
        "arguments",
        [
            arguments_without("diff", more="x"),
            arguments_without("diff", point="{}"),
            arguments_without(point="{}"),
            arguments_without("pin"),
            arguments_without("diff", "pin"),
            arguments_without(pin="x"),
            arguments_without("diff", pin="x"),
        ],
        ids=str,
    )
    def test_other_errors_prevent_a_form(self, arguments):
        """Unknown and secret arguments, and errors in a JSON value, are reported without a form."""
        assert requested_names(arguments) == []

    def test_elicit(self):
        """Arguments are requested by default, and never with `elicit=False`."""

        @prompt
        def open_prompt(diff: str) -> str:
            return diff

        @prompt(elicit=False)
        def quiet(diff: str) -> str:
            return diff

        assert requested_names({}, open_prompt) == ["diff"]
        assert requested_names({}, quiet) == []

    def test_no_errors(self):
        """Without errors there is nothing to request."""
        assert askable_arguments(review.compiled, ArgumentsError("review", ())) == ()


@pytest.mark.parametrize(
    ("count", "needed"), [(1, "Diff"), (2, "Diff and depth"), (3, "Diff, depth and point")]
)
def test_message_names_the_prompt_and_the_arguments(count, needed):
    """The message is one sentence, with titles where there are any."""
    arguments = review.compiled.arguments.ordered[:count]

    assert form_message(review.compiled, arguments) == f"The prompt 'Review a change' needs {needed}."


def test_message_names_what_is_invalid():
    """The message names the invalid arguments, and does not repeat the missing ones."""
    with pytest.raises(ArgumentsError) as caught:
        review.compiled.arguments.read(arguments_without("diff", depth="many"))

    message = form_message(review.compiled, review.compiled.arguments.ordered[:2], errors=caught.value)

    assert message == (
        "The prompt 'Review a change' needs Diff and depth. 'depth' is 'many', not a whole number."
    )


def test_message_of_a_prompt_without_a_title():
    """Without a title, the message has the name of the prompt."""
    compiled = prompt_with(int)

    assert form_message(compiled, compiled.arguments.ordered) == "The prompt 'typed' needs value."


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
    def test_accepted_values(self, response, expected):
        """The requested values of an accepted form are returned, and None for a declined form."""
        assert read_answer(response, {"a", "b"}) == expected

    @pytest.mark.parametrize(
        ("response", "message"),
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
    def test_malformed_answer(self, response, message):
        """A malformed answer is rejected, and the error names the location."""
        with pytest.raises(InvalidParams) as error:
            read_answer(response, {"a"})

        assert str(error.value) == f"the answer to a form is invalid: {message}"

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
    def test_arbitrary_json(self, response):
        """Any JSON value is either accepted or rejected with InvalidParams."""
        try:
            values = read_answer(response, {"a"})
        except InvalidParams:
            return

        assert values is None or values.keys() <= {"a"}

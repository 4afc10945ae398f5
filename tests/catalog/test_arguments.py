import enum
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from promptkit.catalog.arguments import Argument, Arguments, schema_of
from promptkit.declarations.arguments import compile_arguments
from promptkit.declarations.signature import Parameter, Signature
from promptkit.errors import ArgumentsError, InvalidArgument
from promptkit.errors.diagnostics import Location, Report
from promptkit.errors.rules import Rule
from promptkit.language.annotations import NO_DEFAULT, Arg
from promptkit.types.kinds import has_type, type_name
from promptkit.types.parsing import reader_for
from tests.ids import stable_repr
from tests.sample_types import Point

LOCATION = Location("recipe.py", 7)

CORRECTION_HINT = "correct the default, or widen the annotation"


class Tone(enum.Enum):
    WARM = "#f80"
    COLD = "#08f"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 10


def build(*parameters):
    """Return the arguments for valid parameters."""
    report = Report("prompt 'review'", LOCATION)
    arguments = compile_arguments("review", Signature(parameters), report)
    assert report.diagnostics == []
    return arguments


def argument(annotation, default=NO_DEFAULT, arg=Arg()) -> Argument:  # noqa: B008 (Arg is frozen)
    """Return one argument of the given type."""
    return build(Parameter("a", annotation, default, arg)).ordered[0]


REVIEW = build(
    Parameter("diff", str),
    Parameter("language", Literal["python", "rust", "go"], "python"),
    Parameter("depth", int, 1),
    Parameter("strict", bool, default=False),
    Parameter("token", str | None, None, Arg(secret=True)),
    Parameter("pin", int | None, None, Arg(secret=True)),
)

SEVERITIES = build(Parameter("severity", Literal["sev1", "sev2", "sev3", "sev4"]))


class TestRead:
    def test_strings_are_converted(self):
        """Strings from a client are converted to the parameters' types."""
        sent = {"diff": "+a", "language": "Rust", "depth": "3", "strict": "yes"}

        assert REVIEW.read(sent) == {"diff": "+a", "language": "rust", "depth": 3, "strict": True}

    def test_json_values_are_accepted(self):
        """Numbers and booleans from a client are accepted."""
        assert REVIEW.read({"diff": "", "depth": 3, "strict": True}) == {
            "diff": "",
            "depth": 3,
            "strict": True,
        }

    def test_defaults_are_not_passed(self):
        """Defaults are not passed, so that the function's own signature applies them."""
        assert REVIEW.read({"diff": "+a"}) == {"diff": "+a"}

    @pytest.mark.parametrize("arguments", [None, {}], ids=["null", "empty"])
    def test_absent_and_empty_arguments_are_equivalent(self, arguments):
        """Absent, null and empty arguments are equivalent."""
        assert build(Parameter("depth", int, 1)).read(arguments) == {}
        with pytest.raises(ArgumentsError, match=r"^prompt 'review': 'diff' is missing$"):
            REVIEW.read(arguments)

    @pytest.mark.parametrize("empty", ["", None], ids=["empty", "null"])
    @pytest.mark.parametrize("name", ["language", "depth", "strict", "pin"])
    def test_empty_optional_field_means_the_default(self, name, empty):
        """An empty string for an optional field means the default, because forms send empty fields."""
        assert REVIEW.read({"diff": "+a", name: empty}) == {"diff": "+a"}

    def test_empty_required_field_is_missing(self):
        """An empty required field is reported as missing, not as invalid."""
        arguments = build(Parameter("depth", int), Parameter("language", Literal["python", "rust"]))

        with pytest.raises(ArgumentsError) as caught:
            arguments.read({"depth": "", "language": ""})

        assert caught.value.errors == (
            InvalidArgument("depth", "is missing", "a whole number"),
            InvalidArgument("language", "is missing", "one of python, rust"),
        )

    def test_empty_string_is_a_value_of_a_string_parameter(self):
        """For a string parameter, the empty string is a value."""
        assert REVIEW.read({"diff": ""}) == {"diff": ""}
        assert REVIEW.read({"diff": "  "}) == {"diff": "  "}

    def test_null_is_not_a_value(self):
        """Null is not a value, even for a string parameter."""
        with pytest.raises(ArgumentsError, match="'diff' is missing"):
            REVIEW.read({"diff": None})

    @pytest.mark.parametrize(
        ("sent", "expected", "message"),
        [
            (
                {"depth": "many"},
                InvalidArgument("depth", "is 'many', not a whole number", "a whole number"),
                "'depth' is 'many', not a whole number",
            ),
            (
                {"language": "pyhton"},
                InvalidArgument(
                    "language",
                    "is 'pyhton', not one of python, rust, go",
                    "one of python, rust, go",
                    "python",
                ),
                "'language' is 'pyhton', not one of python, rust, go (did you mean 'python'?)",
            ),
            ({"strict": "maybe"}, InvalidArgument("strict", "is 'maybe', not yes or no", "yes or no"), None),
            ({"depth": [1]}, InvalidArgument("depth", "is [1], not a whole number", "a whole number"), None),
            (
                {"lang": "go"},
                InvalidArgument(
                    "lang",
                    "is not an argument of this prompt",
                    "one of diff, language, depth, strict, token, pin",
                    "language",
                ),
                "'lang' is not an argument of this prompt (did you mean 'language'?)",
            ),
            (
                {"zzz": ""},
                InvalidArgument(
                    "zzz",
                    "is not an argument of this prompt",
                    "one of diff, language, depth, strict, token, pin",
                ),
                "'zzz' is not an argument of this prompt",
            ),
            (
                {"pin": "hunter2"},
                InvalidArgument("pin", "is not a whole number", "a whole number"),
                "'pin' is not a whole number",
            ),
            ({"token": 7.5}, InvalidArgument("token", "is not text", "text"), "'token' is not text"),
        ],
        ids=[
            "number",
            "choice",
            "boolean",
            "JSON",
            "similar name",
            "strange name",
            "secret",
            "secret of another type",
        ],
    )
    def test_error_names_the_expected_and_the_nearest_value(self, sent, expected, message):
        """An error has a readable message, and the expected and the nearest value as fields."""
        with pytest.raises(ArgumentsError) as caught:
            REVIEW.read({"diff": "+a", **sent})

        (error,) = caught.value.errors
        assert structs.replace(error, got=None, allowed=()) == expected
        assert str(caught.value) == f"prompt 'review': {message or str(expected)}"

    def test_error_has_the_received_value_and_the_choices(self):
        """An error has the received value, shortened, and the allowed choices, but no secret value."""
        with pytest.raises(ArgumentsError) as caught:
            REVIEW.read({"diff": "+a", "language": "pyhton", "depth": "9" * 99 + "x", "pin": "hunter2"})

        language, depth, pin = caught.value.errors
        assert (language.got, language.allowed) == ("pyhton", ("python", "rust", "go"))
        assert len(depth.got) < 70
        assert pin.got is None

    def test_error_for_a_prompt_without_arguments(self):
        """For a prompt without arguments, the error does not list any."""
        with pytest.raises(ArgumentsError) as caught:
            build().read({"x": "1"})

        assert caught.value.errors == (
            InvalidArgument("x", "is not an argument of this prompt", "no arguments"),
        )

    def test_long_value_is_shortened(self):
        """A long invalid value is shortened in the error."""
        with pytest.raises(ArgumentsError) as caught:
            REVIEW.read({"diff": "", "depth": "x" * 100_000})

        assert len(str(caught.value)) < 150

    def test_error_does_not_contain_a_secret(self):
        """The message, fields, cause and context of an error do not contain the value of a secret."""
        secret = build(Parameter("key", Literal["hunter2", "hunter3"], arg=Arg(secret=True)))

        for arguments, sent in [(REVIEW, {"pin": "swordfish", "diff": ""}), (secret, {"key": "hunter22"})]:
            with pytest.raises(ArgumentsError) as caught:
                arguments.read(sent)
            (error,) = caught.value.errors

            value = next(iter(sent.values()))
            assert value not in repr(caught.value)
            assert value not in str(caught.value)
            assert error.nearest is None
            assert caught.value.__cause__ is None
            assert caught.value.__context__ is None


#: How an argument can be sent, by name: its value, and whether that is an error.
STATES = {
    "absent": (None, False),
    "good": ("3", False),
    "number": (3, False),
    "bad": ("three", True),
    "list": ([3], True),
}


class TestAllErrors:
    @settings(deadline=None)
    @given(
        required=st.lists(st.sampled_from([*STATES, "empty", "null"]), max_size=5),
        optional=st.lists(st.sampled_from([*STATES, "empty", "null"]), max_size=5),
        unknown=st.sets(st.text(max_size=4).map(lambda name: f"x{name}"), max_size=4),
    )
    def test_every_error_is_reported_once(self, required, optional, unknown):
        """Every error is reported exactly once in any combination, and no valid argument is reported."""
        states = {f"r{i}": state for i, state in enumerate(required)}
        states |= {f"o{i}": state for i, state in enumerate(optional)}
        arguments = build(*(Parameter(name, int, NO_DEFAULT if name[0] == "r" else 0) for name in states))
        values = {"empty": "", "null": None, **{state: value for state, (value, _) in STATES.items()}}
        sent = {name: values[state] for name, state in states.items() if state != "absent"}
        sent |= dict.fromkeys(unknown, "1")

        invalid = {name for name, state in states.items() if state in ("bad", "list")} | unknown
        missing = {
            name for name, state in states.items() if name[0] == "r" and state in ("absent", "empty", "null")
        }
        valid = {name: 3 for name, state in states.items() if state in ("good", "number")}

        if not invalid | missing:
            assert arguments.read(sent) == valid
            return
        with pytest.raises(ArgumentsError) as caught:
            arguments.read(sent)

        assert sorted(error.argument for error in caught.value.errors) == sorted(invalid | missing)
        assert {error.argument for error in caught.value.errors if error.reason == "is missing"} == missing

    def test_message_lists_all_errors(self):
        """The message lists invalid arguments first, in the order sent, and then the missing ones."""
        with pytest.raises(ArgumentsError) as caught:
            REVIEW.read({"depth": "x", "tokn": "hunter2", "language": "c"})

        assert str(caught.value) == (
            "prompt 'review': 'depth' is 'x', not a whole number; "
            "'tokn' is not an argument of this prompt (did you mean 'token'?); "
            "'language' is 'c', not one of python, rust, go; "
            "'diff' is missing"
        )

    @settings(deadline=None)
    @given(
        st.dictionaries(
            st.sampled_from([argument.name for argument in REVIEW.ordered]) | st.text(max_size=5),
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats()
            | st.text()
            | st.lists(st.text(max_size=3)),
        )
    )
    def test_no_arguments_raise_another_exception(self, sent):
        """No JSON arguments raise anything other than ArgumentsError."""
        try:
            values = REVIEW.read(sent)
        except ArgumentsError as error:
            assert error.errors  # noqa: PT017 (not every mapping is rejected)
        else:
            assert values.keys() <= sent.keys()


def test_equally_near_choices_are_not_suggested():
    """If all choices are equally near, none is suggested."""
    with pytest.raises(ArgumentsError) as caught:
        SEVERITIES.read({"severity": "sev9"})

    assert str(caught.value) == "prompt 'review': 'severity' is 'sev9', not one of sev1, sev2, sev3, sev4"


class TestDescription:
    @pytest.mark.parametrize(
        ("annotation", "default", "arg", "description"),
        [
            (str, NO_DEFAULT, Arg(), None),
            (str, NO_DEFAULT, Arg("The code"), "The code"),
            (str, "x", Arg("The code"), "The code (default x)"),
            (str, "", Arg("The code"), "The code"),
            (str | None, None, Arg("The code"), "The code"),
            (int, NO_DEFAULT, Arg(), "a whole number"),
            (int, 0, Arg(), "a whole number; default 0"),
            (float, 0.5, Arg("How warm"), "How warm (a number; default 0.5)"),
            (bool, True, Arg(), "yes or no; default yes"),
            (bool, False, Arg(), "yes or no; default no"),
            (
                Literal["python", "rust"],
                "python",
                Arg("Language"),
                "Language (one of python, rust; default python)",
            ),
            (Tone, Tone.COLD, Arg(), "one of #f80, #08f; default #08f"),
            (Level, Level.HIGH, Arg(), "one of LOW, HIGH; default HIGH"),
            (int | None, None, Arg(), "a whole number"),
            (str, NO_DEFAULT, Arg("Who", examples=["Ada", "Alan"]), "Who (for example Ada, Alan)"),
            (int, 3, Arg(examples=[1, 2]), "a whole number; for example 1, 2; default 3"),
            (bool, NO_DEFAULT, Arg(examples=[True]), "yes or no; for example yes"),
            (bytes, NO_DEFAULT, Arg("File"), "File (base64 or a data: URI)"),
        ],
        ids=str,
    )
    def test_constraints_follow_the_authors_description(self, annotation, default, arg, description):
        """
        The author's description is followed by the type's constraints in brackets, in words and not as JSON.
        """
        assert argument(annotation, default, arg).description == description

    @pytest.mark.parametrize(
        ("annotation", "default"),
        [
            (str, "a b"),
            (int, -3),
            (float, 1e-9),
            (bool, True),
            (bool, False),
            (Literal["a", "b"], "b"),
            (Literal[1, 2], 2),
            (Tone, Tone.COLD),
            (Level, Level.HIGH),
            (Literal[Tone.WARM, Tone.COLD], Tone.COLD),
            (Tone | None, Tone.WARM),
            (Literal[True, "auto"], True),
            (timedelta, timedelta(minutes=30)),
            (timedelta, -timedelta(days=1, seconds=1.5)),
            (date, date(2026, 1, 31)),
            (datetime, datetime(2026, 1, 31, 12, tzinfo=UTC)),
            (time, time(9, 30)),
            (Decimal, Decimal("2.50")),
            (UUID, UUID(int=5)),
            (Path, Path("notes/today.md")),
            (bytes, b"hello"),
            (list[str], ["a", "b"]),
            (list[str], ["a, b", "c"]),
            (list[str], [" a", ""]),
            (list[str], ["[a", "b"]),
            (list[bool], [True, False]),
            (tuple[int, ...], (1, 2)),
            (tuple[int, str], (1, "a")),
            (dict[str, date], {"a": date(2026, 1, 31)}),
            (Point, Point(1, 0.5)),
        ],
        ids=str,
    )
    def test_default_in_the_description_can_be_sent(self, annotation, default):
        """A client that sends the default as shown in the description gets the default."""
        default_text = argument(annotation, default).description.rpartition("default ")[2]

        assert reader_for(annotation).read(default_text) == default

    @pytest.mark.parametrize("annotation", [str, Literal["hunter2", "swordfish"]], ids=["text", "choice"])
    def test_default_of_a_secret_is_hidden(self, annotation):
        """The default of a secret is not in the description."""
        description = argument(annotation, "hunter2", Arg("The key", secret=True)).description

        assert "default hunter2" not in description

    @pytest.mark.parametrize("default", ["x" * 5000, "one\n\n    two\n"], ids=["long", "lines"])
    def test_long_default_is_shortened(self, default):
        """A long or multi-line default is shortened to one line."""
        description = argument(str, default, Arg("The template")).description

        assert len(description) < 200
        assert "\n" not in description

    def test_title(self):
        """The title is the author's, or None."""
        assert argument(str, arg=Arg(title="The code")).title == "The code"
        assert argument(str).title is None


class TestCompile:
    def test_arguments_are_in_the_order_of_the_signature(self):
        """Arguments keep the order of the signature; required ones are not moved to the front."""
        arguments = build(Parameter("b", str, ""), Parameter("a", str), Parameter("c", int, 1))

        assert [argument.name for argument in arguments.ordered] == ["b", "a", "c"]
        assert [argument.required for argument in arguments.ordered] == [False, True, False]
        assert arguments.required == {"a"}

    @pytest.mark.parametrize(
        ("annotation", "name", "hint"),
        [
            (object, "object", "write the intended type, such as str for any text"),
            (Any, "Any", "write the intended type, such as str for any text"),
            (complex, "complex", "use a type that "),
            (type[int], "type[int]", "use a type that "),
        ],
        ids=str,
    )
    def test_unsupported_type_is_reported(self, annotation, name, hint):
        """A type that no client can fill is reported under the name that the author wrote."""
        report = Report("prompt 'review'", LOCATION)

        arguments = compile_arguments("review", Signature((Parameter("a", annotation),)), report)

        (diagnostic,) = report.diagnostics
        assert diagnostic.rule is Rule.UNSUPPORTED_TYPE
        assert diagnostic.message == f"prompt 'review': no client can fill parameter 'a' of type {name}"
        assert diagnostic.hint.startswith(hint)
        assert arguments.ordered == ()

    @pytest.mark.parametrize(
        ("annotation", "default", "message", "hint"),
        [
            (int, "3", "the default '3', which is not of type int", CORRECTION_HINT),
            (
                str,
                None,
                "the default None, which is not of type str",
                "write 'str | None', or give another default",
            ),
            (
                Literal["a", "b"],
                "c",
                "the default 'c', which is not of type Literal['a', 'b']",
                CORRECTION_HINT,
            ),
            (Tone, "#f80", "the default '#f80', which is not of type Tone", CORRECTION_HINT),
            (int | None, "", "the default '', which is not of type int | None", CORRECTION_HINT),
            (
                list[str],
                (),
                "the default (), which is not of type list[str]",
                "correct the default, or widen the annotation",
            ),
            (
                tuple[int, ...],
                [1],
                "the default [1], which is not of type tuple[int, ...]",
                "correct the default, or widen the annotation",
            ),
            (
                Sequence[str],
                {"a"},
                "the default {'a'}, which is not ",
                "correct the default, or widen the annotation",
            ),
            (
                str,
                Arg("The code"),
                "the default Arg(",
                "write it inside the annotation, for example Annotated[str, Arg('...')]",
            ),
        ],
        ids=["int", "None", "Literal", "Enum", "optional", "list", "tuple", "sequence", "Arg"],
    )
    def test_invalid_default_is_reported(self, annotation, default, message, hint):
        """An invalid default is reported, because it would only fail when the argument is omitted."""
        report = Report("prompt 'review'", LOCATION)

        compile_arguments("review", Signature((Parameter("a", annotation, default),)), report)

        (diagnostic,) = report.diagnostics
        assert diagnostic.rule is Rule.INVALID_DEFAULT
        assert diagnostic.message.startswith(f"prompt 'review': parameter 'a' has {message}")
        assert diagnostic.hint == hint

    def test_invalid_default_of_a_secret_is_not_shown(self):
        """A secret's invalid default is not in the diagnostic, because diagnostics are logged."""
        report = Report("prompt 'review'", LOCATION)

        compile_arguments("review", Signature((Parameter("a", int, "hunter2", Arg(secret=True)),)), report)

        (diagnostic,) = report.diagnostics
        assert "hunter2" not in diagnostic.message

    @pytest.mark.parametrize(
        ("annotation", "default", "arg"),
        [
            (str, NO_DEFAULT, Arg("Half: \ud800")),
            (str, NO_DEFAULT, Arg(title="\ud800")),
            (str, NO_DEFAULT, Arg(examples=["\ud800"])),
            (str, "\ud800", Arg()),
            (list[str], ["\ud800"], Arg()),
            (Literal["a", "\ud800"], NO_DEFAULT, Arg()),
        ],
        ids=["description", "title", "example", "default", "default in a list", "choice"],
    )
    def test_text_that_cannot_be_encoded_is_reported(self, annotation, default, arg):
        """Text that cannot be encoded is reported, because it would break the whole list of prompts."""
        report = Report("prompt 'review'", LOCATION)

        compile_arguments("review", Signature((Parameter("a", annotation, default, arg),)), report)

        (diagnostic,) = report.diagnostics
        assert (diagnostic.rule, diagnostic.hint) == (
            Rule.BAD_METADATA,
            "remove the unpaired surrogate",
        )
        assert diagnostic.message.startswith(
            "prompt 'review': parameter 'a': the description for clients cannot be sent: 'utf-8' codec can't"
        )

    @pytest.mark.parametrize(
        ("annotation", "default", "arg"),
        [
            (int, NO_DEFAULT, Arg(examples=[object()])),
            (dict[str, Any], {"a": object()}, Arg()),
            (str, "a" * 300 + "\ud800", Arg()),
        ],
        ids=["example", "default", "after the shown part"],
    )
    def test_unrepresentable_values_are_omitted_from_the_schema(self, annotation, default, arg):
        """A default or example that JSON cannot represent is omitted from the schema."""
        (schema,) = schema_of(build(Parameter("a", annotation, default, arg)).ordered)["properties"].values()

        assert {"examples", "default"}.isdisjoint(schema)

    def test_every_invalid_parameter_is_reported(self):
        """One invalid parameter does not hide another."""
        report = Report("prompt 'review'", LOCATION)
        parameters = Parameter("a", object), Parameter("b", int, "x"), Parameter("c", Any)

        compile_arguments("review", Signature(parameters), report)

        assert [diagnostic.rule for diagnostic in report.diagnostics] == [
            Rule.UNSUPPORTED_TYPE,
            Rule.INVALID_DEFAULT,
            Rule.UNSUPPORTED_TYPE,
        ]

    def test_equal_parameters_produce_equal_arguments(self):
        """Equal parameters produce equal arguments."""
        assert build(Parameter("a", int, 1)) == build(Parameter("a", int, 1))
        assert isinstance(REVIEW, Arguments)


class TestFits:
    @pytest.mark.parametrize(
        ("value", "annotation"),
        [
            (1, int),
            (1, float),
            (1.5, float),
            ("a", str),
            (None, str | None),
            ("a", str | None),
            ("a", Literal["a", "b"]),
            (Tone.WARM, Tone),
            (Tone.WARM, Literal[Tone.WARM]),
            (["a"], list[str]),
            ([], list[str]),
            ({"a": 1}, dict[str, int]),
            ((1, "a"), tuple[int, str]),
            (object(), Any),
            ("a", Annotated[str, "note"]),
        ],
        ids=stable_repr,
    )
    def test_value_of_the_type_is_accepted(self, value, annotation):
        """A value is accepted where type checkers accept it, so an int is also a float."""
        assert has_type(value, annotation)

    @pytest.mark.parametrize(
        ("value", "annotation"),
        [
            ("1", int),
            (1.5, int),
            ("1", float),
            (1, str),
            (None, str),
            (1, str | None),
            ("c", Literal["a", "b"]),
            (1, Literal[True]),
            (True, Literal[1]),
            ("#f80", Tone),
            (["a", 1], list[str]),
            ([*["a"] * 100, 1], list[str]),
            ({"a": "b"}, dict[str, int]),
            ((1, 2), tuple[int, str]),
            (b"a", str),
            ("a", bytes),
            (Decimal(1), float),
        ],
        ids=lambda value: str(value)[-40:],
    )
    def test_value_of_another_type_is_rejected(self, value, annotation):
        """A value of another type is rejected, even if it is only one item of a collection."""
        assert not has_type(value, annotation)


@pytest.mark.parametrize(
    ("annotation", "name"),
    [
        (str, "str"),
        (Tone, "Tone"),
        (str | None, "str | None"),
        (list[str], "list[str]"),
        (dict[str, list[int]], "dict[str, list[int]]"),
        (Literal["a", 1], "Literal['a', 1]"),
        (Any, "Any"),
    ],
    ids=str,
)
def test_type_name_has_no_module(annotation, name):
    """A type's name does not include its module."""
    assert type_name(annotation) == name

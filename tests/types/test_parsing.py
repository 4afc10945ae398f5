import enum
import json
import math
import pickle
from base64 import b64encode
from contextlib import suppress
from dataclasses import InitVar, dataclass
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Literal, Optional, Union

import attrs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptkit.types import scalar_parsers
from promptkit.types.errors import ConversionError
from promptkit.types.kinds import is_enum, is_literal, is_union
from promptkit.types.parsing import reader_for
from tests.ids import stable_repr
from tests.sample_types import Point


class Tone(Enum):
    WARM = "#f80"
    COLD = "#08f"
    HOT = "#f80"  # noqa: PIE796 (an alias on purpose)


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 10


class Word(enum.StrEnum):
    YES = "yes"
    NO = "no"


class Pair(Enum):
    LEFT = (1, 0)
    RIGHT = (0, 1)


class Crossed(Enum):
    A = "B"
    B = "A"


#: One type of each kind.
TYPES = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "bytes": bytes,
    "Enum": Tone,
    "IntEnum": Level,
    "StrEnum": Word,
    "Enum of tuples": Pair,
    "Literal": Literal["python", "rust", "Go"],
    "Literal of numbers": Literal[1, 2, True],
    "Literal of members": Literal[Tone.WARM, Level.LOW],
    "Literal with None": Literal["a", None],  # noqa: PYI061 (people write it)
    "optional int": int | None,
    "list of text": list[str],
    "list of numbers": list[int],
    "list of choices": list[Literal["a", "b"]],
    "optional list": list[bytes] | None,
    "optional Literal": Optional[Literal["a", "b"]],  # noqa: UP045 (people write it)
}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def read(annotation, value):
    return reader_for(annotation).read(value)


@pytest.fixture(params=TYPES)
def annotation(request):
    """One of the types."""
    return TYPES[request.param]


class TestLaws:
    @settings(deadline=None, max_examples=8 * settings().max_examples)
    @given(
        kind=st.sampled_from(list(TYPES)),
        value=st.text()
        | st.sampled_from(["data:", "data:;base64,", "data:,a", "=", "1e999", "\ud800", "٣", "²"])
        | JSON,
    )
    def test_anything_is_a_value_or_a_conversion_error(self, kind, value):
        """Any text or other JSON value is converted, or raises ConversionError."""
        with suppress(ConversionError):
            read(TYPES[kind], value)

    @given(st.integers())
    def test_an_integer_survives(self, value):
        """An integer survives `str` and JSON."""
        assert read(int, str(value)) == value
        assert read(int, value) == value

    @given(st.floats(allow_nan=False, allow_infinity=False))
    def test_a_float_survives(self, value):
        """A float survives `str` and JSON exactly."""
        assert read(float, str(value)) == value
        assert read(float, value) == value

    @given(st.booleans())
    def test_a_boolean_survives(self, value):
        """A boolean survives `str` and JSON."""
        assert read(bool, str(value)) is value
        assert read(bool, str(value).lower()) is value
        assert read(bool, value) is value

    @settings(deadline=None)
    @given(st.binary(), st.sampled_from(["{}", "data:;base64,{}", "data:image/png;base64,{}"]))
    def test_bytes_survive(self, value, form):
        """Bytes survive base64 and data: URIs."""
        assert read(bytes, form.format(b64encode(value).decode())) == value

    @given(st.text())
    def test_text_is_not_changed(self, value):
        """Text is not changed, stripped or interpreted."""
        assert read(str, value) == value

    @pytest.mark.parametrize(
        ("kind", "member"),
        [(kind, member) for kind in (Tone, Level, Word, Pair) for member in kind],
        ids=str,
    )
    def test_a_member_survives(self, kind, member):
        """A member is accepted by name, by plain value and as shown."""
        assert read(kind, member.name) is member
        assert read(kind, member.name.lower()) is member
        if kind is not Pair:
            assert read(kind, str(member.value)) is member
            assert read(kind, member.value) is member

    def test_completions_can_be_read(self, annotation):
        """Every completion can be read, and no two give the same value."""
        reader = reader_for(annotation)
        values = [reader.read(text) for text in reader.values]

        assert len({(type(value), value) for value in values}) == len(values)

    def test_the_error_message_lists_the_values(self, annotation):
        """If a type has several values, the error message lists them."""
        reader = reader_for(annotation)

        if len(reader.values) > 1 and annotation is not bool:
            assert reader.expected == reader.hint == f"one of {', '.join(reader.values)}"


class TestScalars:
    @pytest.mark.parametrize(
        ("text", "value"),
        [("5", 5), (" 5\n", 5), ("+5", 5), ("-5", -5), ("007", 7), (5, 5), (5.0, 5)],
        ids=stable_repr,
    )
    def test_integers_are_read_in_usual_notations(self, text, value):
        """Integers can have surrounding spaces, a sign, leading zeros and, in JSON, a zero fraction."""
        assert read(int, text) == value
        assert type(read(int, text)) is int

    @pytest.mark.parametrize(
        "text",
        [
            "",
            " ",
            "5.5",
            "five",
            "0x10",
            "1e3",
            "1,000",
            "--5",
            "9" * 5000,
            5.5,
            True,
            math.inf,
            math.nan,
            None,
            [5],
        ],
        ids=lambda text: repr(text)[:12],
    )
    def test_other_notations_of_integers_are_rejected(self, text):
        """Fractions, other notations and booleans are not integers."""
        with pytest.raises(ConversionError):
            read(int, text)

    @pytest.mark.parametrize(
        ("text", "value"),
        [("1.5", 1.5), (" 1e3 ", 1000.0), (".5", 0.5), ("5", 5.0), (5, 5.0), (1.5, 1.5)],
        ids=stable_repr,
    )
    def test_floats_are_read_in_usual_notations(self, text, value):
        """Floats can have a fraction and an exponent."""
        assert read(float, text) == value
        assert type(read(float, text)) is float

    @pytest.mark.parametrize(
        "text",
        ["", "1,5", "inf", "-Infinity", "nan", "1e999", 10**400, math.nan, True, None, [1.5]],
        ids=lambda t: repr(t)[:12],
    )
    def test_infinity_and_nan_are_rejected(self, text):
        """Infinity and NaN are rejected, because JSON cannot represent them."""
        with pytest.raises(ConversionError):
            read(float, text)

    @pytest.mark.parametrize("text", ["true", "True", "TRUE", "yes", "Yes", "on", "1", " true "])
    def test_spellings_of_true(self, text):
        """All usual spellings of true are accepted, in any case."""
        assert read(bool, text) is True

    @pytest.mark.parametrize("text", ["false", "False", "no", "NO", "off", "0", "\tno"])
    def test_spellings_of_false(self, text):
        """All usual spellings of false are accepted, in any case."""
        assert read(bool, text) is False

    @pytest.mark.parametrize("text", ["", "maybe", "y", "2", "nope", 1, 0, None, []], ids=stable_repr)
    def test_other_booleans_are_rejected(self, text):
        """Other values are not converted by truthiness."""
        with pytest.raises(ConversionError):
            read(bool, text)

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("aGk=", b"hi"),
            ("aG\r\nk=\n", b"hi"),
            ("data:;base64,aGk=", b"hi"),
            ("data:text/plain;charset=utf-8;base64,aGk=", b"hi"),
            ("DATA:text/plain;BASE64,aGk=", b"hi"),
            ("data:;base64,", b""),
            ("data:,hi%20there", b"hi there"),
            ("data:text/plain,hi", b"hi"),
        ],
        ids=["base64", "wrapped", "URI", "typed URI", "upper case", "empty URI", "escaped URI", "plain URI"],
    )
    def test_bytes_are_base64_or_a_data_uri(self, text, value):
        """Bytes can be base64, with line breaks, or a data: URI as in RFC 2397."""
        assert read(bytes, text) == value

    @pytest.mark.parametrize(
        "text",
        ["aGk", "a", "***", "é", "data:;base64", "data:", "http://example.com/a", b"aGk=", 3, None],
        ids=stable_repr,
    )
    def test_invalid_base64_is_rejected(self, text):
        """Invalid base64 is neither skipped nor padded, and URLs are not fetched."""
        with pytest.raises(ConversionError):
            read(bytes, text)

    @pytest.mark.parametrize("value", [3.0, 1.1, True, None, ["a"], {"a": 1}], ids=stable_repr)
    def test_other_values_are_not_text(self, value):
        """Other JSON values are not converted to text."""
        with pytest.raises(ConversionError):
            read(str, value)

    @pytest.mark.parametrize(
        ("annotation", "value", "expected"),
        [
            (str, 42, "42"),
            (str, 0, "0"),
            (str, -(10**30), "-1" + "0" * 30),
            (str | None, 42, "42"),
            (Annotated[str, msgspec.Meta(max_length=2)], 42, "42"),
            (list[str], [1, "b"], ["1", "b"]),
            (int | str, 42, 42),
            (bool | str, 1, "1"),
        ],
        ids=stable_repr,
    )
    def test_whole_number_as_text(self, annotation, value, expected):
        """A whole number is converted to text if the type accepts no number."""
        assert read(annotation, value) == expected

    def test_very_long_number_is_not_text(self):
        """A number with more digits than Python converts is rejected."""
        with pytest.raises(ConversionError) as caught:
            read(str, 10**5000)

        assert caught.value.reason == "has more than 4,300 digits: send a number with fewer digits"


class TestChoices:
    @pytest.mark.parametrize("text", ["python", "PYTHON", "  Python\n"])
    def test_case_and_space_do_not_matter(self, text):
        """Case and surrounding spaces are ignored in choices."""
        assert read(Literal["python", "rust"], text) == "python"

    def test_choices_that_differ_in_case_are_distinct(self):
        """Choices that differ only in case stay distinct."""
        either = Literal["a", "A"]

        assert (read(either, "a"), read(either, "A")) == ("a", "A")

    @pytest.mark.parametrize(
        ("text", "value"), [("1", 1), (1, 1), ("true", True), (True, True), ("one", "one")], ids=stable_repr
    )
    def test_choices_keep_their_types(self, text, value):
        """Numbers and booleans keep their type as choices."""
        choice = read(Literal[1, True, "one"], text)

        assert (type(choice), choice) == (type(value), value)

    def test_a_choice_of_the_sent_type_takes_precedence(self):
        """A choice of the type that was sent takes precedence, such as a number for a number."""
        for either in (Literal["1", 1], Literal[1, "1"]):
            assert isinstance(read(either, "1"), str)
            assert isinstance(read(either, 1), int)

    def test_a_value_takes_precedence_over_a_name(self):
        """A value takes precedence over a member's name, because the value is what users see."""
        assert read(Crossed, "A") is Crossed.B
        assert read(Crossed, "B") is Crossed.A

    def test_aliases_are_read_and_not_shown(self):
        """Aliases of members are accepted but not offered."""
        assert read(Tone, "hot") is Tone.WARM
        assert reader_for(Tone).values == ("#f80", "#08f")

    def test_members_in_a_literal_are_read_as_in_their_enum(self):
        """Members in a Literal are read like members of their enumeration."""
        warm = Literal[Tone.WARM]

        assert read(warm, "warm") is Tone.WARM
        assert read(warm, "#f80") is Tone.WARM
        assert reader_for(warm).values == reader_for(Tone).values[:1]

    def test_booleans_among_choices(self):
        """Booleans in a Literal can be written like a boolean."""
        choice = Literal["auto", True, False]

        assert [read(choice, text) for text in ("auto", "yes", "no", "true", True)] == [
            *("auto", True, False),
            *(True, True),
        ]

    def test_none_is_not_a_choice(self):
        """None in a Literal is not offered or accepted."""
        choice = Literal["a", None]  # noqa: PYI061 (people write it)

        assert reader_for(choice).values == ("a",)
        with pytest.raises(ConversionError):
            read(choice, "None")

    @pytest.mark.parametrize(
        ("annotation", "text", "nearest"),
        [
            (Literal["python", "rust"], "pyhton", "python"),
            (Literal["python", "rust"], "cobol", None),
            (Literal["python", "rust"], "", None),
            (Pair, "lfet", "LEFT"),
            (Tone, "wram", "#f80"),
            (Level, "hihg", "HIGH"),
        ],
        ids=["typo", "strange", "empty", "member", "name of a member", "name of a number"],
    )
    def test_a_misspelt_choice_finds_the_nearest_one(self, annotation, text, nearest):
        """The nearest choice is suggested as users see it."""
        with pytest.raises(ConversionError) as caught:
            read(annotation, text)

        assert caught.value.nearest == nearest

    @pytest.mark.parametrize("value", [None, ["python"], {"python": 1}, 3], ids=stable_repr)
    def test_values_of_another_type_are_not_choices(self, value):
        """JSON values of another type are rejected."""
        with pytest.raises(ConversionError):
            read(Literal["python", "rust"], value)


class TestLists:
    @pytest.mark.parametrize(
        "sent",
        [
            "1,2,3",
            "1, 2, 3",
            " 1 ,2,, 3,",
            "1\n2\n3\n",
            "1\r\n\r\n2\r\n3",
            "[1, 2, 3]",
            ' ["1", 2, "3"]',
            [1, 2, 3],
            ["1", 2.0, 3],
        ],
        ids=stable_repr,
    )
    def test_items_are_read_in_usual_notations(self, sent):
        """Items are separated by commas or newlines, or are a JSON array, as text or as JSON."""
        assert read(list[int], sent) == [1, 2, 3]

    @pytest.mark.parametrize("sent", ["[]", ",", " \n ", []], ids=stable_repr)
    def test_a_list_can_be_empty(self, sent):
        """A list can be empty, and blank items are dropped."""
        assert read(list[str], sent) == []

    def test_a_data_uri_is_one_item(self):
        """The comma in a data: URI does not separate items."""
        assert read(list[bytes], "data:;base64,aGk=") == [b"hi"]
        assert read(list[bytes], "data:;base64,aGk=\naG8=") == [b"hi", b"ho"]

    def test_lines_can_contain_commas(self):
        """In a list with newlines, commas do not separate items."""
        assert read(list[str], "be brief, please\nbe kind") == ["be brief, please", "be kind"]

    @pytest.mark.parametrize(
        "sent",
        ["1,x", "[1, 2", "[1, null]", "[[1]]", '{"a": 1}', 1, None, {"a": 1}, True, ["x"], [None]],
        ids=stable_repr,
    )
    def test_invalid_lists_are_rejected(self, sent):
        """Invalid items and values that are not lists are rejected."""
        with pytest.raises(ConversionError):
            read(list[int], sent)

    @settings(deadline=None)
    @given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
    def test_any_list_of_text_survives_json(self, items):
        """Any list of text survives JSON."""
        assert read(list[str], json.dumps(items)) == items
        assert read(list[str], items) == items

    @settings(deadline=None)
    @given(st.lists(st.integers() | st.booleans().map(int)), st.sampled_from([",", ", ", "\n"]))
    def test_numbers_can_have_any_separator(self, items, separator):
        """Lists of numbers can use any separator."""
        assert read(list[int], separator.join(map(str, items))) == items

    @pytest.mark.parametrize("annotation", [list[complex], list[object], list[type]], ids=str)
    def test_a_list_of_an_unsupported_type_has_no_reader(self, annotation):
        """A list of an unsupported type has no reader."""
        assert reader_for(annotation) is None

    def test_a_misspelt_item_finds_the_nearest_choice(self):
        """A misspelt item gets a suggestion, with its path."""
        with pytest.raises(ConversionError) as caught:
            read(list[Literal["python", "rust"]], "rust, pyhton")

        (part,) = caught.value.parts
        assert (part.nearest, part.path, part.got) == ("python", "[1]", "pyhton")


class TestExpected:
    @pytest.mark.parametrize(
        ("annotation", "expected", "hint", "values"),
        [
            (str, "text", "", ()),
            (int, "a whole number", "a whole number", ()),
            (float, "a number", "a number", ()),
            (bool, "yes or no", "yes or no", ("yes", "no")),
            (bytes, "base64 or a data: URI", "base64 or a data: URI", ()),
            (Literal["a", "b"], "one of a, b", "one of a, b", ("a", "b")),
            (Level, "one of LOW, HIGH", "one of LOW, HIGH", ("LOW", "HIGH")),
            (Pair, "one of LEFT, RIGHT", "one of LEFT, RIGHT", ("LEFT", "RIGHT")),
            (int | None, "a whole number", "a whole number", ()),
            (list[str], "a list", "several, separated by commas", ()),
            (
                list[Literal["a", "b"]],
                "a list, each one of a, b",
                "several, separated by commas; each one of a, b",
                (),
            ),
        ],
        ids=[
            "str",
            "int",
            "float",
            "bool",
            "bytes",
            "Literal",
            "IntEnum",
            "Enum of tuples",
            "optional",
            "list",
            "list of choices",
        ],
    )
    def test_a_type_is_described_in_a_few_words(self, annotation, expected, hint, values):
        """A type is described in a few words, not by its Python name or as JSON."""
        reader = reader_for(annotation)

        assert (reader.expected, reader.hint, reader.values) == (expected, hint, values)

    def test_choices_in_json_are_in_the_authors_order(self):
        """Choices keep the author's order in the description of a type and in errors of its parts."""
        reader = reader_for(tuple[Literal[3, 1, 2], bool])

        with pytest.raises(ConversionError) as caught:
            reader.read("[4, true]")

        assert reader.expected == "a list of 2 items: one of 3, 1, 2, true or false"
        assert [part.expected for part in caught.value.parts] == ["one of 3, 1, 2"]


class TestReaderOf:
    @pytest.mark.parametrize(
        "annotation",
        [Optional[int], Union[int, None], int | None, Union[None, int]],  # noqa: UP007, UP045 (people write them)
        ids=str,
    )
    def test_every_spelling_of_optional_is_the_same(self, annotation):
        """All spellings of an optional type have equal readers."""
        assert reader_for(annotation) == reader_for(int | None)

    @pytest.mark.parametrize(
        "annotation",
        [object, Any, type, None, "str", complex, int | complex, Enum("Empty", []), lambda: None],
        ids=stable_repr,
    )
    def test_unsupported_types_have_no_reader(self, annotation):
        """Unsupported types have no reader."""
        assert reader_for(annotation) is None

    def test_a_choice_of_one(self):
        """A Literal with one value is described by that value."""
        assert reader_for(Literal["a"]).expected == "'a'"


@pytest.mark.parametrize(
    ("predicate", "matching", "other"),
    [
        (is_enum, Tone, Annotated[Tone, 1]),
        (is_enum, Level, Literal[Tone.WARM]),
        (is_literal, Literal["a"], "a"),
        (is_union, int | None, int),
        (is_union, Optional[int], list[int]),  # noqa: UP045
    ],
    ids=["enum", "int enum", "literal", "union", "optional"],
)
def test_the_kind_of_a_type_is_recognised(predicate, matching, other):
    """The kind of a type does not depend on its spelling."""
    assert predicate(matching)
    assert not predicate(other)


def test_a_conversion_error_can_be_pickled():
    """A ConversionError keeps its suggestion when pickled."""
    assert pickle.loads(pickle.dumps(ConversionError(nearest="rust"))).nearest == "rust"  # noqa: S301 (our own pickle)


class TestAnnotationsOnly:
    @pytest.mark.parametrize(
        ("annotation", "expected"),
        [
            (Annotated[int, msgspec.Meta(description="x")], "a whole number"),
            (
                Annotated[list[int], msgspec.Meta(title="x", min_length=2)],
                "a list of at least 2 items, each a whole number",
            ),
            (
                list[Annotated[int, msgspec.Meta(title="x", ge=1)]],
                "a list, each a whole number of at least 1",
            ),
            (
                Annotated[datetime, msgspec.Meta(tz=False)],
                "a date and time without an offset, such as 2026-01-31T12:00:00",
            ),
        ],
        ids=str,
    )
    def test_titles_do_not_change_the_description(self, annotation, expected):
        """Titles and descriptions in Meta do not change the description of a type."""
        assert reader_for(annotation).expected == expected

    def test_constraints_next_to_a_title_are_checked(self):
        """Constraints next to a title are checked."""
        with pytest.raises(ConversionError):
            reader_for(Annotated[list[int], msgspec.Meta(title="x", min_length=2)]).read([1])


class TestEscapes:
    @given(
        st.lists(st.sampled_from(["%41", "%", "%4", "%%", "%zz", "a", "\u00e9"]), max_size=40).map("".join)
    )
    def test_decoding_in_pieces_gives_the_same_result(self, text):
        """Decoding percent escapes in pieces gives the same result as decoding the whole."""
        from urllib.parse import unquote_to_bytes

        pattern = scalar_parsers._PIECE
        with pytest.MonkeyPatch.context() as patch:
            for size in ("1", "2", "3"):
                patch.setattr(scalar_parsers, "_PIECE", pattern.replace("16384", size))
                assert scalar_parsers._unescape(text) == unquote_to_bytes(text)

    def test_a_long_data_uri(self):
        """A data: URI that is too long to be decoded in one piece is decoded."""
        assert reader_for(bytes).read("data:," + "%41" * 20_000) == b"A" * 20_000


@attrs.define
class Doubled:
    number: int
    twice: int = attrs.Factory(lambda self: 2 * self.number, takes_self=True)


class Row(msgspec.Struct, array_like=True):
    number: int


@dataclass
class Late:
    now: InitVar[int]


@dataclass
class Mixed:
    either: Point | Doubled


def test_a_default_can_depend_on_other_members():
    """The class itself computes a default that depends on the object."""
    assert reader_for(Doubled).read('{"number": 2}') == Doubled(2, 4)


@pytest.mark.parametrize("annotation", [Row, list[Row], dict[str, Row]], ids=str)
def test_classes_that_json_objects_cannot_fill_are_not_supported(annotation):
    """A struct that is written as a list has no reader."""
    assert reader_for(annotation) is None


def test_a_union_of_classes_can_be_anywhere():
    """A union of classes is supported inside other types as well, although msgspec does not support it."""
    assert reader_for(Mixed).read('{"either": {"number": 2}}') == Mixed(Doubled(2, 4))

import json
import sys
from enum import Enum, Flag, IntEnum, auto
from types import ModuleType
from typing import Annotated, Literal

import attrs
import jsonschema
import pytest

from promptkit import Arg, prompt
from promptkit.fragments import answer_format
from promptkit.server.elicitation import requested_schema
from promptkit.testing import Client
from promptkit.types.enum_sources import meanings_of
from promptkit.types.parsing import reader_for
from promptkit.types.schemas import answer_schema
from promptkit.types.structuring import structurer
from promptkit.types.unstructuring import json_of, text_of


class Tone(Enum):
    """How to write."""

    STRICT = "strict"
    """Rejects every warning."""
    WARM = "warm"
    """
    Explains each warning,
    with an example.
    """
    PLAIN = "plain"

    @property
    def is_plain(self):
        """Not a member."""
        return self is Tone.PLAIN


class Priority(Enum):
    LOW = auto()
    """Some day"""
    HIGH = auto()
    URGENT = HIGH


class Status(IntEnum):
    OK = 200
    MISSING = 404


class Ratio(Enum):
    HALF = 0.5
    FULL = 1.0


class Access(Flag):
    READ = 1
    WRITE = 2


@attrs.frozen
class Task:
    priority: Priority
    by_status: dict[Status, int] = attrs.Factory(dict)


@prompt(elicit=True)
def advise(
    tone: Annotated[Tone, Arg("How to write")], priority: Priority = Priority.LOW, task: Task | None = None
):
    """Give advice."""
    return f"{tone.name} {priority.name} {task}"


TONES = "one of strict (Rejects every warning), warm (Explains each warning, with an example), plain"


class TestMeanings:
    def test_a_string_literal_below_a_member_is_its_meaning(self):
        """Only literals directly below a member count. They are on one line, without the final period."""
        assert meanings_of(Tone) == {
            "STRICT": "Rejects every warning",
            "WARM": "Explains each warning, with an example",
        }
        assert meanings_of(Status) == {}

    def test_a_class_in_a_function_has_meanings(self):
        """The source of a class is found wherever it is defined."""

        class Tone(Enum):
            LOUD = "loud"
            """Shouts."""

        assert meanings_of(Tone) == {"LOUD": "Shouts"}

    def test_a_class_without_source_has_none(self):
        """An enumeration that is created by a call has no meanings."""
        assert meanings_of(Enum("Tone", ["STRICT", "OTHER"])) == {}
        assert meanings_of(Enum("(", ["STRICT"])) == {}

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("", ""),
            ("class Tone(Enum):\n    OTHER = 1\n    'Another class.'\n\n", ""),
            ("", '"""\nclass Tone is a word\n"""\n'),
            ("if True:\n  class Tone(Enum):\n    QUIET = 1\n", "\n\ndef tail(: # broken"),
        ],
        ids=["alone", "earlier class", "in a string", "changed"],
    )
    def test_the_class_is_found_in_its_file(self, before, after, tmp_path, monkeypatch):
        """Similar classes and strings before the class, or later in a changed file, have no effect."""
        path = tmp_path / "tones.py"
        code = f"from enum import Enum\n\n{before}class Tone(Enum):\n    LOUD = 1\n    'Shouts.'\n"
        module = ModuleType("tones")
        module.__file__ = str(path)
        exec(code, vars(module))  # noqa: S102 (this code)
        path.write_text(code + after, encoding="utf-8")
        monkeypatch.setitem(sys.modules, "tones", module)

        assert meanings_of(module.Tone) == {"LOUD": "Shouts"}

    def test_the_listing_describes_the_choices(self):
        """The description that clients list has the meaning after each choice."""
        tone, priority, _ = Client(advise).list_prompts()[0].arguments

        assert tone.description == f"How to write ({TONES})"
        assert priority.description == "one of LOW (Some day), HIGH; default LOW"

    def test_the_schema_of_a_tool_describes_the_choices(self):
        """The schema lists the choices, and its description has their meanings."""
        schema = Client(advise, tools=True).list_tools()[0].input_schema["properties"]

        assert schema["tone"] == {
            "type": "string",
            "enum": ["strict", "warm", "plain"],
            "description": f"How to write ({TONES})",
        }
        assert schema["priority"]["enum"] == ["LOW", "HIGH"]
        assert schema["priority"]["default"] == "LOW"

    def test_a_form_describes_the_choices(self):
        """The form that asks for a missing argument has the meanings as the titles of the choices."""
        arguments = advise.compiled.arguments.ordered[:1]
        newer, older = (
            requested_schema(arguments, has_modes=has_modes)["properties"]["tone"]
            for has_modes in (True, False)
        )

        assert [choice["const"] for choice in newer["oneOf"]] == older["enum"] == ["strict", "warm", "plain"]
        assert [choice["title"] for choice in newer["oneOf"]] == older["enumNames"]
        assert older["enumNames"][0].startswith("strict: ")
        assert newer["description"] == older["description"] == "How to write"
        assert Client(advise, answers={"tone": "strict"}).get_prompt("advise").text == "STRICT LOW None"

    def test_errors_name_the_choices_only(self):
        """An error lists the choices without their meanings."""
        assert reader_for(Tone).expected == "one of strict, warm, plain"

    def test_an_answer_format_has_the_meanings_as_comments(self):
        """Comments describe the choices of members and of the answer itself."""

        @attrs.frozen
        class Answer:
            tones: list[Tone]
            status: Status

        head = "Answer with JSON in this form, and nothing else:\n"

        assert str(answer_format(Answer)) == head + (
            f"{{\n  // {TONES}\n"
            '  tones: ["strict" or "warm" or "plain", ...],\n  status: "OK" or "MISSING",\n}'
        )
        assert str(answer_format(Priority)) == f'{head}// one of LOW (Some day), HIGH\n"LOW" or "HIGH"'


NUMBERED = [*Priority, *Status, *Ratio]


class TestNames:
    def test_completion_offers_names(self):
        """The names of members whose values are numbers are completed."""
        assert Client(advise).complete("advise", "priority", "").values == ("LOW", "HIGH")

    @pytest.mark.parametrize("member", NUMBERED, ids=str)
    def test_a_member_is_written_as_its_name(self, member):
        """The name of a member is both its text and its JSON, and both are read back."""
        assert text_of(member) == json_of(member)
        assert reader_for(type(member)).read(text_of(member)) == member
        assert structurer(type(member))(json_of(member)) == member
        jsonschema.validate(json_of(member), answer_schema(type(member)))

    @pytest.mark.parametrize(
        ("kind", "sent", "member"),
        [
            (Priority, "high", Priority.HIGH),
            (Priority, "URGENT", Priority.HIGH),
            (Priority, "2", Priority.HIGH),
            (Priority, 2, Priority.HIGH),
            (Status, 404.0, Status.MISSING),
            (Ratio, "0.5", Ratio.HALF),
            (Ratio, 0.5, Ratio.HALF),
            (Literal[Status.OK], "OK", Status.OK),
            (list[Status], "OK, 404", [Status.OK, Status.MISSING]),
        ],
        ids=str,
    )
    def test_names_and_numbers_are_accepted(self, kind, sent, member):
        """Names in any case, aliases and values are accepted, as text and as numbers."""
        assert reader_for(kind).read(sent) == member

    def test_parts_of_values_have_names(self):
        """In a record, members and keys are written as names; numbers are accepted as well."""
        task = Task(Priority.HIGH, {Status.MISSING: 3})
        data = {"priority": "HIGH", "by_status": {"MISSING": 3}}

        assert json_of(task) == data
        assert structurer(Task)(data) == task
        assert structurer(Task)({**data, "priority": 2}) == task
        jsonschema.validate(data, answer_schema(Task))

    @pytest.mark.parametrize("kind", [Access, list[Access], dict[Access, int], Access | None], ids=str)
    def test_flags_are_not_supported(self, kind):
        """Flags, which can be combined, are not an argument type. A list of an enumeration is one."""
        assert reader_for(kind) is None

    def test_a_tool_takes_names(self):
        """A tool call can name members, including in a record."""
        arguments = {"tone": "warm", "priority": "HIGH", "task": {"priority": "LOW"}}

        called = Client(advise, tools=True).call_tool("advise", arguments)

        assert called.text == f"WARM HIGH {Task(Priority.LOW)}"

    def test_an_invalid_choice_is_described_with_names(self):
        """The error lists the names."""
        with pytest.raises(Exception, match="not one of LOW, HIGH"):
            advise.render_wire({"tone": "warm", "task": json.dumps({"priority": 7})})

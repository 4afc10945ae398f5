"""Whole requests, validated with the vendors' published types."""

from dataclasses import dataclass
from datetime import date
from typing import Annotated, Literal
from uuid import UUID

import msgspec
import pytest

from promptkit import Workflow, assistant, prompt, system, user
from promptkit.exports import (
    MESSAGE_FUNCTIONS,
    REQUEST_FUNCTIONS,
    ExportError,
    anthropic_request,
    gemini_request,
    openai_chat_request,
    openai_responses_request,
)
from tests.exports.vendors import validate_request

EVERY_VENDOR = pytest.mark.parametrize("vendor", REQUEST_FUNCTIONS)
FIELDS = {"model": "m", "max_tokens": 10}
TURNS = user("Why?") + assistant("Because.") + user("And?")


@dataclass
class Finding:
    """A problem in the code."""

    line: int | None
    kind: Literal["bug", "style"]
    since: date
    id: UUID


class Review(msgspec.Struct):
    summary: Annotated[str, msgspec.Meta(max_length=100, description="One sentence")]
    findings: list[Finding] = []


@dataclass
class Tree:
    below: "list[Tree]"


@dataclass
class Scores:
    by_name: dict[str, float]


def fields(vendor):
    return {name: value for name, value in FIELDS.items() if vendor == "anthropic" or name == "model"}


def messages(vendor, request):
    return request[{"openai-responses": "input", "gemini": "contents"}.get(vendor, "messages")]


@EVERY_VENDOR
@pytest.mark.parametrize("answer", [None, Review])
@pytest.mark.parametrize("workflow", [TURNS, system("Be brief.") + TURNS])
def test_requests_match_the_vendors_types(vendor, workflow, answer):
    """The SDK of each vendor accepts the request, with and without a system part and an answer."""
    validate_request(vendor, REQUEST_FUNCTIONS[vendor](workflow, answer=answer, **fields(vendor)))


@EVERY_VENDOR
def test_request_has_the_same_messages(vendor):
    """Without a system part, a request contains the messages that the vendor's function returns."""
    assert messages(vendor, REQUEST_FUNCTIONS[vendor](TURNS)) == MESSAGE_FUNCTIONS[vendor](TURNS)
    assert REQUEST_FUNCTIONS[vendor](TURNS).keys() == {
        "openai-responses": {"input"},
        "gemini": {"contents"},
    }.get(vendor, {"messages"})


def test_system_part():
    """The system part is where each vendor expects it."""
    workflow = system("Be brief.") + user("Why?")

    assert openai_chat_request(workflow)["messages"][0] == {"role": "developer", "content": "Be brief."}
    with_old_role = openai_chat_request(workflow, system_role="system")
    assert with_old_role["messages"][0] == {"role": "system", "content": "Be brief."}
    assert openai_responses_request(workflow)["instructions"] == "Be brief."
    assert anthropic_request(workflow)["system"] == [{"type": "text", "text": "Be brief."}]
    assert gemini_request(workflow)["config"] == {"system_instruction": "Be brief."}


@pytest.mark.parametrize("vendor", ["openai-responses", "anthropic", "gemini"])
def test_messages_reject_a_system_part(vendor):
    """
    The function for messages rejects a system part and names the function for requests; lossy=True turns it
    into a turn.
    """
    workflow = system("Be brief.") + user("Why?")
    with pytest.raises(ExportError) as caught:
        MESSAGE_FUNCTIONS[vendor](workflow)

    function = REQUEST_FUNCTIONS[vendor].__name__
    assert f"the rendering has a system part: build the whole request with {function}(...)" in str(
        caught.value
    )
    assert MESSAGE_FUNCTIONS[vendor](workflow, lossy=True) == MESSAGE_FUNCTIONS[vendor](
        Workflow(workflow.sent)
    )


def schema_in(vendor, request):
    """Return the schema in a request."""
    match vendor:
        case "openai-chat":
            return request["response_format"]["json_schema"]["schema"]
        case "openai-responses":
            return request["text"]["format"]["schema"]
        case "anthropic":
            return request["output_config"]["format"]["schema"]
    return request["config"]["response_json_schema"]


class TestAnswers:
    @EVERY_VENDOR
    def test_answer_of_a_prompt(self, vendor):
        """
        The prompt's answer type is the default, and a call can override it.

        Sums and slices of renderings have no answer type.
        """

        @prompt(answer=Review)
        def review():
            return TURNS

        rendered = review.render()

        assert rendered == TURNS
        assert rendered.answer is Review
        assert (rendered + "x").answer is rendered[:].answer is None
        assert REQUEST_FUNCTIONS[vendor](rendered) == REQUEST_FUNCTIONS[vendor](TURNS, answer=Review)
        overridden = schema_in(vendor, REQUEST_FUNCTIONS[vendor](rendered, answer=Finding))
        assert list(overridden["properties"]) == ["line", "kind", "since", "id"]

    @pytest.mark.parametrize(
        ("vendor", "field", "members"),
        [
            ("openai-responses", "text", {"verbosity": "low"}),
            ("anthropic", "output_config", {"effort": "low"}),
            ("gemini", "config", {"temperature": 0}),
        ],
    )
    def test_other_options_next_to_the_schema(self, vendor, field, members):
        """The caller can set other options in the field that contains the schema."""
        request = REQUEST_FUNCTIONS[vendor](TURNS, answer=Review, **{field: members})

        assert request[field].items() >= members.items()
        assert schema_in(vendor, request) == schema_in(
            vendor, REQUEST_FUNCTIONS[vendor](TURNS, answer=Review)
        )

    @pytest.mark.parametrize("vendor", ["openai-chat", "openai-responses", "anthropic"])
    def test_strict_schemas(self, vendor):
        """Objects are closed, all fields are required, and unsupported keywords are removed."""
        schema = schema_in(vendor, REQUEST_FUNCTIONS[vendor](TURNS, answer=Review))
        finding = schema["properties"]["findings"]["items"]

        assert schema["required"] == ["summary", "findings"]
        assert schema["additionalProperties"] is finding["additionalProperties"] is False
        assert "maxLength" not in schema["properties"]["summary"]
        assert schema["properties"]["summary"]["description"].startswith("One sentence")
        assert finding["properties"]["since"]["format"] == "date"
        assert "default" not in schema["properties"]["findings"]

    @EVERY_VENDOR
    def test_recursive_answer(self, vendor):
        """If a vendor does not support recursion, the error shows where the type is recursive."""
        if vendor != "anthropic":
            assert "$defs" in schema_in(vendor, REQUEST_FUNCTIONS[vendor](TURNS, answer=Tree))
            return
        with pytest.raises(TypeError) as caught:
            REQUEST_FUNCTIONS[vendor](TURNS, answer=Tree)

        assert str(caught.value) == (
            "Anthropic does not support the answer type: Tree.below[] refers to itself; "
            "declare a fixed number of levels"
        )

    @EVERY_VENDOR
    def test_answer_with_arbitrary_members(self, vendor):
        """Gemini supports members with any name; for other vendors the error suggests an alternative."""
        if vendor == "gemini":
            assert REQUEST_FUNCTIONS[vendor](TURNS, answer=Scores)
            return
        with pytest.raises(TypeError) as caught:
            REQUEST_FUNCTIONS[vendor](TURNS, answer=Scores)

        assert "does not support the answer type: Scores.by_name has arbitrary keys; use a list of" in str(
            caught.value
        )

    @pytest.mark.parametrize("vendor", ["openai-chat", "openai-responses"])
    def test_answer_that_is_not_an_object(self, vendor):
        """OpenAI requires an object as the answer."""
        with pytest.raises(
            TypeError, match=r"OpenAI does not support the answer type: list .*wrap it in a class"
        ):
            REQUEST_FUNCTIONS[vendor](TURNS, answer=list[int])


class TestFields:
    @EVERY_VENDOR
    def test_other_fields(self, vendor):
        """Other fields are passed through."""
        assert REQUEST_FUNCTIONS[vendor](TURNS, model="m")["model"] == "m"

    def test_config_of_gemini(self):
        """The caller's ``config`` is merged with the generated one."""
        request = gemini_request(system("Be brief.") + TURNS, config={"temperature": 0})

        assert request["config"] == {"system_instruction": "Be brief.", "temperature": 0}

"""Cache points in requests, validated with the vendors' published types."""

from dataclasses import dataclass
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit import EmbeddedResource, Image, ResourceLink, Workflow, assistant, cache_point, system, user
from promptkit.exports import (
    MESSAGE_FUNCTIONS,
    REQUEST_FUNCTIONS,
    anthropic_messages,
    anthropic_request,
    gemini_request,
    openai_chat,
    openai_chat_request,
    openai_responses,
    openai_responses_request,
)
from tests.exports.test_requests import fields, messages
from tests.exports.test_vendors import FILES, REJECTED, content
from tests.exports.vendors import validate_request

EVERY_VENDOR = pytest.mark.parametrize("vendor", REQUEST_FUNCTIONS)
POINT = cache_point()
ANTHROPIC = {"cache_control": {"type": "ephemeral"}}
OPENAI = {"prompt_cache_breakpoint": {"mode": "explicit"}}
MARKS = {*ANTHROPIC, *OPENAI}


@dataclass
class Verdict:
    is_fine: bool


words = st.sampled_from(["a", "bb", "c\n\nc"])
points = st.just(POINT)
user_parts = st.lists(words | points | st.just(ResourceLink("a:b", name="a")), max_size=6)
turns = st.one_of(
    user_parts.map(lambda parts: ("user", parts)),
    st.lists(words | points, max_size=6).map(lambda parts: ("assistant", parts)),
    st.just((None, [POINT])),
)
prompts = st.tuples(
    st.lists(words | points, max_size=4).map(lambda parts: ("system", parts)), st.lists(turns, max_size=5)
).map(lambda both: [both[0], *both[1]])


def make_workflow(prompt):
    """Return a workflow of turns, each given as a role and its parts."""
    makers = {"user": user, "assistant": assistant, "system": system, None: lambda point: point}
    return sum((makers[role](*parts) for role, parts in prompt if parts), Workflow())


def without_points(workflow):
    return Workflow(workflow.messages, workflow.system)


def prefixes(prompt):
    """Yield the content before each point as a separate workflow."""
    for turn_index, (role, parts) in enumerate(prompt):
        for part_index, part in enumerate(parts):
            if part is POINT:
                yield without_points(make_workflow([*prompt[:turn_index], (role, parts[:part_index])]))


def request_text(vendor, request):
    """Return all text of a request, with ¶ for each mark."""
    turns = messages(vendor, request)
    if vendor == "anthropic" and "system" in request:
        turns = [{"role": "system", "content": request["system"]}, *turns]
    return "".join(f"<{turn['role']}>{_turn_text(turn)}" for turn in turns)


def _turn_text(turn):
    parts = turn.get("content", turn.get("parts"))
    if isinstance(parts, str):
        return parts
    return "".join(f"{part['text']}{'¶' * len(MARKS & part.keys())}" for part in parts)


class TestValidity:
    @EVERY_VENDOR
    @pytest.mark.parametrize("answer", [None, Verdict], ids=["", "answer"])
    @pytest.mark.parametrize("point", [None, POINT], ids=["", "points"])
    def test_every_kind_of_content(self, vendor, point, answer, png, wav):
        """
        Each kind of content, in any role, can be followed by a cache point, and the vendor's SDK accepts the
        request.
        """
        heads = [Workflow(), system("Be brief.", point, "Be kind.", point)]
        for head, (name, kind) in product(heads, content(png, wav).items()):
            question = user(
                point, "Look.", point, "And here:", *[kind] * (name not in REJECTED[vendor]), point
            )
            reply = assistant("Well.", point, "So:", *[kind] * (name not in FILES), point)
            workflow = head + question + reply + user("Go on.")

            validate_request(vendor, REQUEST_FUNCTIONS[vendor](workflow, answer=answer, **fields(vendor)))

    @EVERY_VENDOR
    @given(prompt=prompts)
    def test_generated_workflows(self, vendor, prompt):
        """The vendor's SDK accepts requests with cache points anywhere, with unsupported content as text."""
        validate_request(
            vendor, REQUEST_FUNCTIONS[vendor](make_workflow(prompt), lossy=True, **fields(vendor))
        )


class TestLaws:
    @EVERY_VENDOR
    @given(prompt=prompts)
    def test_points_change_no_text(self, vendor, prompt):
        """
        Cache points change no text, and there are at most four marks. Without marks, nothing changes at all.
        """
        workflow = make_workflow(prompt)
        request, request_without_points = (
            REQUEST_FUNCTIONS[vendor](workflow),
            REQUEST_FUNCTIONS[vendor](without_points(workflow)),
        )
        text = request_text(vendor, request)

        assert text.replace("¶", "") == request_text(vendor, request_without_points)
        assert request.get("instructions") == request_without_points.get("instructions")
        assert text.count("¶") <= (0 if vendor == "gemini" else 4)
        if vendor == "gemini" or not workflow.cache_points:
            assert request == request_without_points

    @EVERY_VENDOR
    @given(prompt=prompts)
    def test_messages_and_requests_have_the_same_marks(self, vendor, prompt):
        """
        The functions for messages set the same marks as those for requests, with or without a system part.
        """
        workflow = make_workflow(prompt)
        without_system = make_workflow(prompt[1:])

        request = REQUEST_FUNCTIONS[vendor](workflow)
        if vendor == "openai-chat":
            assert request["messages"] == openai_chat(workflow)
        assert messages(vendor, REQUEST_FUNCTIONS[vendor](without_system)) == MESSAGE_FUNCTIONS[vendor](
            without_system
        )
        assert [
            turn for turn in messages(vendor, request) if turn["role"] != "developer"
        ] == MESSAGE_FUNCTIONS[vendor](without_system)

    @pytest.mark.parametrize("vendor", ["openai-chat", "anthropic"])
    @given(prompt=prompts)
    def test_marks_end_the_prefixes_of_points(self, vendor, prompt):
        """
        Each mark is at the end of the text that a request with only the parts before a point would have.

        If there are more than four such prefixes, the four longest are marked.
        """
        text = request_text(vendor, REQUEST_FUNCTIONS[vendor](make_workflow(prompt)))
        marked = [text[:end].replace("¶", "").rstrip() for end, mark in enumerate(text) if mark == "¶"]
        expected = {
            request_text(vendor, REQUEST_FUNCTIONS[vendor](prefix)) for prefix in prefixes(prompt)
        } - {""}

        assert marked == sorted(expected, key=len)[-4:]


class TestForms:
    def test_openai_chat(self):
        """
        Turns with marks consist of parts, including developer and assistant turns; other turns stay strings.
        """
        workflow = (
            system("Be brief.", POINT, "Be kind.")
            + user("Look.", POINT, "Why?")
            + assistant("Because.")
            + assistant("So.", POINT)
            + user("And?")
        )

        assert openai_chat_request(workflow)["messages"] == [
            {
                "role": "developer",
                "content": [
                    {"type": "text", "text": "Be brief.\n\n", **OPENAI},
                    {"type": "text", "text": "Be kind."},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look.\n\n", **OPENAI},
                    {"type": "text", "text": "Why?"},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Because.\n\n"},
                    {"type": "text", "text": "So.", **OPENAI},
                ],
            },
            {"role": "user", "content": "And?"},
        ]

    def test_openai_responses(self, png):
        """
        Instructions and assistant turns are strings, so only user parts can be marked.

        A point marks the last user part before it, if any.
        """
        workflow = (
            system("Be brief.", POINT, "Be kind.")
            + POINT
            + user("Look.", Image(png))
            + assistant("Well.", POINT, "So.", POINT)
            + user("And?")
        )
        image = {"type": "input_image", "image_url": f"data:image/png;base64,{Image(png).base64}"}

        assert openai_responses_request(workflow) == {
            "instructions": "Be brief.\n\nBe kind.",
            "input": [
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "Look."},
                        {**image, "detail": "auto", **OPENAI},
                    ],
                },
                {"role": "assistant", "content": "Well.\n\nSo."},
                {"role": "user", "content": "And?"},
            ],
        }
        first = assistant("Well.", POINT) + "And?"
        assert openai_responses(first) == openai_responses(without_points(first))

    def test_anthropic(self):
        """Any block can be marked. A point before the first turn marks the last block of the system part."""
        style = EmbeddedResource("docs://style", text="Write plainly.")
        head = system("Be brief.", POINT, "Be kind.") + POINT
        request = anthropic_request(head + user("Look.", style, POINT) + assistant("So.", POINT))

        assert request["system"] == [
            {"type": "text", "text": "Be brief.\n\n", **ANTHROPIC},
            {"type": "text", "text": "Be kind.", **ANTHROPIC},
        ]
        text, document = request["messages"][0]["content"]
        assert text == {"type": "text", "text": "Look."}
        assert (document["type"], document["cache_control"]) == ("document", {"type": "ephemeral"})
        assert request["messages"][1]["content"] == [{"type": "text", "text": "So.", **ANTHROPIC}]

    def test_gemini(self):
        """Gemini requests have no marks, because Gemini detects stable prefixes itself."""
        workflow = system("Be brief.", POINT) + user("Look.", POINT, "Why?")

        assert gemini_request(workflow) == gemini_request(without_points(workflow))

    def test_system_part_that_becomes_a_turn(self):
        """The points of a system part that becomes a turn stay in that turn."""
        turns_sent = anthropic_messages(system("Be brief.", POINT) + user("Why?"), lossy=True)

        assert turns_sent == [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Be brief.", **ANTHROPIC},
                    {"type": "text", "text": "Why?"},
                ],
            }
        ]

    @EVERY_VENDOR
    def test_leading_point_sets_no_mark(self, vendor):
        """A point before all content sets no mark, because there is nothing to cache."""
        assert MESSAGE_FUNCTIONS[vendor](POINT + user(POINT, "Why?")) == MESSAGE_FUNCTIONS[vendor](
            user("Why?")
        )


class TestLimit:
    def test_last_four_marks_are_kept(self):
        """
        Only the last four marks are kept. Text is still split at every point, so additional points do not
        change the blocks of a prefix.
        """
        workflow = system("0", POINT) + user("1", POINT, "2", POINT, "3", POINT, "4", POINT) + "5"
        request = anthropic_request(workflow)

        assert request["system"] == [{"type": "text", "text": "0"}]
        assert [len(MARKS & part.keys()) for part in request["messages"][0]["content"]] == [1, 1, 1, 1, 0]
        more = anthropic_messages(user("1", POINT, "2", POINT, "3", POINT, "4", POINT, "5", POINT))
        assert [len(MARKS & part.keys()) for part in more[0]["content"]] == [0, 1, 1, 1, 1]

    def test_marks_are_separate_objects(self):
        """
        Each mark is a separate object: so a change to one request, such as a longer time to live, affects no
        other request.
        """
        workflow = user("a", POINT)
        changed = anthropic_messages(workflow)
        changed[0]["content"][0]["cache_control"]["ttl"] = "1h"

        assert anthropic_messages(workflow)[0]["content"] == [{"type": "text", "text": "a", **ANTHROPIC}]

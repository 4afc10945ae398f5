"""Conversations, images and audio as arguments."""

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Optional

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptkit import (
    Arg,
    ArgumentsError,
    Audio,
    EmbeddedResource,
    Image,
    Message,
    ResourceLink,
    Text,
    Workflow,
    assistant,
    prompt,
    system,
    user,
)
from promptkit.testing import Client
from promptkit.types.parsing import reader_for
from promptkit.types.schemas import Definitions, type_schema
from promptkit.types.structuring import structurer
from promptkit.types.unstructuring import json_of, text_of

PIXEL = "R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs="
PICTURE = Image(reader_for(bytes).read(PIXEL))


@dataclass
class Report:
    title: str
    pictures: list[Image]
    talk: Workflow | None = None


def read(annotation, value):
    return reader_for(annotation).read(value)


def collect_errors(annotation, value):
    """Return the error messages that a client receives."""

    def ask(history) -> str:
        return ""

    ask.__annotations__["history"] = annotation
    with pytest.raises(ArgumentsError) as caught:
        prompt(ask).compiled.arguments.read({"history": value})
    return [str(error) for error in caught.value.errors]


#: The content of a message from a client, and the blocks that it becomes.
CONTENT = [
    ("Hello", [Text("Hello")]),
    ("", []),
    ({"type": "text", "text": "Hello"}, [Text("Hello")]),
    ({"type": "text", "text": "Hello", "_meta": {"id": 1}}, [Text("Hello")]),
    (
        {
            "type": "text",
            "text": "Hello",
            "annotations": {"audience": ["user"], "priority": 1, "lastModified": "2026-01-31T12:00:00+00:00"},
        },
        [Text("Hello", audience="user", priority=1, last_modified=datetime(2026, 1, 31, 12, tzinfo=UTC))],
    ),
    ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], [Text("a"), Text("b")]),
    ([], []),
    ({"type": "image", "data": PIXEL, "mimeType": "image/gif"}, [PICTURE]),
    ([{"type": "text", "text": "See"}, {"type": "image", "data": PIXEL}], [Text("See"), PICTURE]),
    (
        {"type": "resource", "resource": {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "a"}},
        [EmbeddedResource("file:///a.txt", text="a", mime_type="text/plain")],
    ),
    (
        {"type": "resource", "resource": {"uri": "file:///a", "blob": "aGk="}},
        [EmbeddedResource("file:///a", blob=b"hi")],
    ),
    (
        {"type": "resource_link", "uri": "file:///a", "name": "a", "size": 3, "icons": []},
        [ResourceLink("file:///a", name="a", size=3)],
    ),
]


class TestConversations:
    @pytest.mark.parametrize(("content", "blocks"), CONTENT, ids=lambda part: str(part)[:40])
    def test_content_is_text_or_blocks(self, content, blocks):
        """Each block becomes a message with the role of its turn. Blank text is omitted, as by `user`."""
        workflow = read(Workflow, json.dumps([{"role": "assistant", "content": content}]))

        assert [(message.role, message.content) for message in workflow] == [("assistant", b) for b in blocks]

    @pytest.mark.parametrize(
        ("annotation", "kind"),
        [
            (Workflow, Workflow),
            (list[Message], list),
            (Sequence[Message], tuple),
            (tuple[Message, ...], tuple),
            (Optional[Workflow], Workflow),  # noqa: UP045 (people write it)
            (list[Message] | None, list),
            (Annotated[list[Message], msgspec.Meta(min_length=2)], list),
            (Annotated[Workflow, Arg("The conversation")], Workflow),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("encode", [json.dumps, lambda value: value], ids=["text", "JSON"])
    def test_every_spelling_reads_the_same_messages(self, annotation, kind, encode):
        """Messages are accepted as text, as in prompt arguments, and as JSON, as in tool arguments."""
        sent = [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": [{"type": "text", "text": "b"}]},
        ]

        def ask(history) -> str:
            return ""

        ask.__annotations__["history"] = annotation
        history = prompt(ask).compiled.arguments.read({"history": encode(sent)})["history"]

        assert type(history) is kind
        assert list(history) == [*user("a"), Message("assistant", "b")]

    @pytest.mark.parametrize(
        ("sent", "errors"),
        [
            (
                [{"role": "asistant", "content": "a"}],
                [
                    (
                        "'history[0].role' is invalid: role 'asistant' is not one of user, assistant "
                        "(did you mean 'assistant'?)"
                    )
                ],
            ),
            (
                [{"role": "user"}, {"content": "a"}],
                ["'history[0].content' is missing", "'history[1].role' is missing"],
            ),
            (
                [{"role": "user", "content": "a", "contents": "b"}],
                ["'history[0].contents' is not a member of this object (did you mean 'content'?)"],
            ),
            (
                [{"role": "user", "content": [{"type": "text", "txt": "a"}]}],
                ["'history[0].content[0].txt' is not a member of this object (did you mean 'text'?)"],
            ),
            ([{"role": "user", "content": {"type": "text"}}], ["'history[0].content.text' is missing"]),
            ([{"role": "user", "content": [{"type": "image"}]}], ["'history[0].content[0].data' is missing"]),
            (
                [{"role": "user", "content": {"type": "resource"}}],
                ["'history[0].content.resource.uri' is missing"],
            ),
            (
                [{"role": "user", "content": {"type": "image", "data": "aGk="}}],
                [
                    (
                        "'history[0].content' is invalid: the bytes are not in a known format, but "
                        "clients accept only "
                        "image/gif, image/jpeg, image/png, image/webp: convert them first"
                    )
                ],
            ),
            (
                [{"role": "user", "content": {"type": "imgae", "data": PIXEL}}],
                [
                    (
                        "'history[0].content.type' is 'imgae', "
                        "not one of text, image, audio, resource, resource_link (did you mean 'image'?)"
                    )
                ],
            ),
            ('[{"role": ', ["'history' is not valid JSON at line 1, column 11: it ends too early"]),
        ],
        ids=lambda part: str(part)[:60],
    )
    @pytest.mark.parametrize("annotation", [Workflow, list[Message]], ids=str)
    def test_an_error_has_its_path(self, annotation, sent, errors):
        """An error has the path of the message, the block and the field."""
        assert collect_errors(annotation, sent if isinstance(sent, str) else json.dumps(sent)) == errors

    def test_other_text_is_rejected(self):
        """The error for text that is not JSON describes a conversation."""
        assert collect_errors(Workflow, "hello") == [
            "'history' is 'hello', not a list of messages, each with role and content"
        ]

    def test_only_a_workflow_accepts_system_messages(self):
        """A workflow accepts system messages, and a list of messages does not."""
        sent = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "a"},
            {
                "role": "system",
                "content": [{"type": "text", "text": "Be kind."}, {"type": "text", "text": ""}],
            },
        ]
        workflow = read(Workflow, json.dumps(sent))

        assert workflow == system("Be brief.", "Be kind.") + user("a")
        assert read(Workflow, text_of(workflow)) == workflow
        assert collect_errors(list[Message], json.dumps(sent)) == [
            f"'history[{index}].role' is invalid: a message cannot have the role 'system': write system(...) "
            f"next to the turns"
            for index in (0, 2)
        ]
        pictured = [{"role": "system", "content": {"type": "image", "data": PIXEL}}]
        assert collect_errors(Workflow, json.dumps(pictured)) == [
            "'history[0].content' has content other than text, but system parts must be text"
        ]

    def test_one_message_has_one_block(self):
        """A parameter for one message rejects several blocks and empty content."""
        several = {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}

        assert read(Message, '{"role": "user", "content": "a"}') == Message("user", "a")
        assert collect_errors(Message, json.dumps(several)) == [
            "'history.content' has several blocks, but a message can have only one"
        ]
        assert collect_errors(Message, '{"role": "user", "content": " "}') == [
            "'history.content' has no content"
        ]


CONTENTS = (
    st.builds(Text, st.text(min_size=1).filter(lambda text: not text.isspace()), priority=st.floats(0, 1))
    | st.just(PICTURE)
    | st.builds(EmbeddedResource, st.just("file:///a"), text=st.text())
    | st.builds(EmbeddedResource, st.just("file:///a"), blob=st.binary(min_size=1))
    | st.builds(ResourceLink, st.just("file:///a"), name=st.just("a"), size=st.none() | st.integers(0, 9))
    | st.builds(Text, st.just("a"), last_modified=st.datetimes(timezones=st.just(UTC)))
)
MESSAGES = st.lists(st.builds(Message, st.sampled_from(["user", "assistant"]), CONTENTS), max_size=4)


@settings(deadline=None)
@given(MESSAGES)
def test_a_conversation_survives_serializing(messages):
    """Any conversation survives serializing and reading."""
    assert read(Workflow, text_of(Workflow(messages))) == Workflow(messages)
    assert read(list[Message], text_of(messages)) == messages
    assert structurer(dict[str, Workflow])({"a": json_of(Workflow(messages))}) == {"a": Workflow(messages)}


class TestImages:
    @pytest.mark.parametrize("sent", [PIXEL, f"data:image/gif;base64,{PIXEL}"], ids=["base64", "data URI"])
    def test_an_image_is_base64_or_a_data_uri(self, sent):
        """An image is sent as base64 or a data: URI, and several images one per line."""
        assert read(Image, sent) == PICTURE
        assert read(list[Image], f"{sent}\n{sent}") == [PICTURE, PICTURE]
        assert text_of(PICTURE) == PIXEL

    def test_audio_is_accepted(self, wav):
        """Audio is accepted, with the type detected from its bytes."""
        assert read(Audio, b64encode(wav).decode()).mime_type == "audio/wav"

    def test_an_image_can_be_in_a_record(self):
        """Inside a record, an image is base64."""
        sent = {"title": "a", "pictures": [PIXEL], "talk": [{"role": "user", "content": "b"}]}

        assert read(Report, json.dumps(sent)) == Report("a", [PICTURE], user("b"))

    def test_invalid_media_are_rejected(self, wav):
        """Invalid media are rejected with their path and the error of the class."""
        assert collect_errors(Image, "***") == ["'history' is '***', not base64 or a data: URI"]
        (error,) = collect_errors(Image, b64encode(wav).decode())
        assert error.startswith("'history' is invalid: the bytes are audio/")
        (error,) = collect_errors(Report, '{"title": "a", "pictures": ["aGk="]}')
        assert error.startswith("'history.pictures[0]' is invalid: the bytes are not in a known format")


def ask(history: Workflow, picture: Image, earlier: list[Message] | None = None) -> Workflow:
    """Ask about a picture."""
    return history + user("Describe this.", picture)


class TestOnTheWire:
    def test_the_schema_of_a_message_is_short(self):
        """The schema of a message describes its fields and contains no docstrings of classes."""
        schema = prompt(ask).compiled.schema
        turns = schema["properties"]["history"]
        turn = turns["items"]

        assert turns["type"] == "array"
        assert turn["required"] == ["role", "content"]
        assert turn["properties"]["role"] == {"type": "string", "enum": ["user", "assistant", "system"]}
        assert [alternative["type"] for alternative in turn["properties"]["content"]["anyOf"]] == [
            "string",
            "object",
            "array",
        ]
        earlier = schema["properties"]["earlier"]["anyOf"][0]["items"]
        assert earlier["properties"]["role"]["enum"] == ["user", "assistant"]
        assert earlier["properties"]["content"] == turn["properties"]["content"]
        assert schema["properties"]["picture"]["contentEncoding"] == "base64"
        assert schema["properties"]["picture"]["minLength"] == 1  # an image is never empty
        assert "frozen" not in json.dumps(schema)
        assert '"description": "One' not in json.dumps(schema)
        assert len(json.dumps(turns)) < 1_500

    def test_a_conversation_in_a_record_has_the_same_schema(self):
        """A conversation inside a record has the same schema."""
        schema, _ = type_schema(Report, Definitions({}))
        workflow_schema, _ = type_schema(Workflow, Definitions({}))

        assert schema["properties"]["talk"]["anyOf"][0] == workflow_schema

    def test_a_client_sends_conversations_and_images(self):
        """The test client sends conversations and images to prompts as text and to tools as JSON."""
        talk = user("Hello.") + assistant("Hello.")
        sent = {"history": talk, "picture": PICTURE, "earlier": list(talk)}

        messages = Client(prompt(ask)).get_prompt("ask", sent)
        result = Client(prompt(ask), tools=True).call_tool("ask", sent)

        assert messages == talk + user("Describe this.", PICTURE)
        assert [block for block in result.content if isinstance(block, Image)] == [PICTURE]
        assert not result.is_error

    def test_a_default_is_shown_as_a_client_would_send_it(self):
        """The default is shown in the description and the schema as a client would send it."""

        @prompt
        def continue_conversation(history: Workflow = user("Hello.")) -> Workflow:  # noqa: B008 (it cannot be changed)
            """Continue the conversation."""
            return history

        sent = [{"role": "user", "content": "Hello."}]
        (argument,) = continue_conversation.compiled.arguments.ordered
        assert continue_conversation.compiled.schema["properties"]["history"]["default"] == sent
        assert msgspec.json.encode(sent).decode() in argument.description

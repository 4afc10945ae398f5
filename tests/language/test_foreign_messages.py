"""Messages of other libraries are converted to workflows, or rejected with their position."""

import base64
from types import SimpleNamespace

import anthropic.types
import fastmcp.prompts
import mcp.types
import openai.types.chat
import pytest

from promptkit import (
    Audio,
    EmbeddedResource,
    Image,
    Message,
    ResourceLink,
    Text,
    Workflow,
    assistant,
    cache_point,
    system,
    user,
)
from promptkit.errors import MediaError

PDF = b"%PDF-1.7\n%%EOF\n"


def encode(data):
    """Return *data* in base64."""
    return base64.b64encode(data).decode()


def data_url(data, mime_type):
    """Return *data* as a ``data:`` URI."""
    return f"data:{mime_type};base64,{encode(data)}"


def from_parts(*parts):
    """Return the content of a user message with these parts."""
    return [message.content for message in Workflow.from_messages([{"role": "user", "content": [*parts]}])]


class TestRoles:
    @pytest.mark.parametrize(
        ("role", "expected"),
        [
            *((role, user("a")) for role in ("user", "human")),
            *((role, assistant("a")) for role in ("assistant", "ai")),
            *((role, system("a")) for role in ("system", "developer")),
        ],
    )
    def test_roles(self, role, expected):
        """The roles of all libraries are converted; a system message becomes the system part."""
        assert Workflow.from_messages([{"role": role, "content": "a"}]) == expected

    def test_messages_are_joined_in_order(self):
        """Messages are in order; several system messages are joined, like with `+`."""
        messages = [
            {"role": "system", "content": "a"},
            {"role": "user", "content": "b"},
            {"role": "assistant", "content": [{"type": "text", "text": "c"}, {"type": "text", "text": "d"}]},
            {"role": "system", "content": [{"type": "text", "text": "e"}]},
        ]

        expected = system("a", "e") + user("b") + assistant("c") + assistant("d")
        assert Workflow.from_messages(messages) == Workflow.from_messages(iter(messages)) == expected

    def test_empty_messages_are_omitted(self):
        """Like `user`, `from_messages` omits blank text and missing content."""
        contents = ["", " \n", None, [], [{"type": "text", "text": ""}, " "]]

        assert (
            Workflow.from_messages([{"role": "user", "content": content} for content in contents])
            == Workflow()
        )

    def test_metadata_is_ignored(self):
        """Fields that are not for models, and fields without a value, are ignored."""
        message = {
            "role": "assistant",
            "content": "a",
            "id": "m1",
            "usage": {"n": 3},
            "tool_calls": [],
            "audio": None,
        }

        assert Workflow.from_messages([message]) == assistant("a")


class TestParts:
    @pytest.mark.parametrize("kind", ["text", "input_text", "output_text"])
    def test_text(self, kind):
        """Each text is a message, with MCP's annotations; citations are ignored."""
        annotations = {"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-31T12:00:00Z"}

        assert from_parts({"type": kind, "text": "a"}, "b") == [Text("a"), Text("b")]
        assert from_parts({"type": kind, "text": "a", "annotations": annotations}) == [
            Text("a", audience="user", priority=0.5, last_modified="2026-01-31T12:00:00Z")
        ]
        assert from_parts({"type": kind, "text": "a", "annotations": [{"url": "x:y"}]}) == [Text("a")]

    def test_images(self, png):
        """Images in the formats of OpenAI, Anthropic, LangChain and MCP are converted."""
        url = data_url(png, "image/png")
        source = {"type": "base64", "media_type": "image/png", "data": encode(png)}
        parts = [
            {"type": "image_url", "image_url": {"url": url, "detail": "low"}},
            {"type": "image_url", "image_url": url},
            {"type": "input_image", "image_url": url, "detail": "auto"},
            {"type": "image", "source": source},
            {"type": "image", "base64": encode(png), "mime_type": "image/png"},
            {"type": "image", "source_type": "base64", "data": encode(png), "mime_type": "image/png"},
            {"type": "image", "url": url},
            {"type": "image", "data": encode(png), "mimeType": "image/png"},
        ]

        assert from_parts(*parts) == [Image(png)] * len(parts)

    def test_audio(self, wav):
        """Audio in the formats of OpenAI, LangChain and MCP is converted."""
        parts = [
            {"type": "input_audio", "input_audio": {"data": encode(wav), "format": "wav"}},
            {"type": "audio", "base64": encode(wav), "mime_type": "audio/wav"},
            {"type": "audio", "data": encode(wav), "mimeType": "audio/wav"},
        ]

        assert from_parts(*parts) == [Audio(wav)] * len(parts)

    @pytest.mark.parametrize(
        ("name", "uri"),
        [
            ("policy.pdf", "recipe:///policy.pdf"),
            ("a b/ä.pdf", "recipe:///%C3%A4.pdf"),
            ("docs://policy", "docs://policy"),
            (None, "recipe:///document"),
            ("", "recipe:///document"),
        ],
    )
    def test_documents(self, name, uri):
        """The URI of a document is made from its name, or is the name if that is a URI."""
        pdf = data_url(PDF, "application/pdf")
        source = {"type": "base64", "media_type": "application/pdf", "data": encode(PDF)}
        parts = [
            {"type": "file", "file": {"filename": name, "file_data": pdf}},
            {"type": "input_file", "filename": name, "file_data": pdf},
            {"type": "document", "title": name, "source": source},
            {"type": "file", "filename": name, "base64": encode(PDF), "mime_type": "application/pdf"},
        ]

        document = EmbeddedResource(uri, blob=PDF, mime_type="application/pdf")
        assert from_parts(*parts) == [document] * len(parts)

    def test_text_documents(self):
        """A document with text stays text."""
        source = {"type": "text", "media_type": "text/plain", "data": "a"}

        assert from_parts(
            {"type": "document", "title": "docs://a", "source": source},
            {"type": "file", "file": {"filename": "a.md", "file_data": data_url(b"# a", "text/markdown")}},
        ) == [
            EmbeddedResource("docs://a", text="a", mime_type="text/plain"),
            EmbeddedResource("recipe:///a.md", text="# a", mime_type="text/markdown"),
        ]

    def test_cache_markers(self):
        """A vendor's cache marker becomes a cache point after the part."""
        mark = {"cache_control": {"type": "ephemeral"}}
        messages = [
            {
                "role": "system",
                "content": [{"type": "text", "text": "a", **mark}, {"type": "text", "text": "b"}],
            },
            {
                "role": "user",
                "content": [{"type": "text", "text": "c", **mark}, {"type": "text", "text": "d"}],
            },
        ]

        expected = system("a", cache_point(), "b") + user("c", cache_point()) + user("d")
        workflow = Workflow.from_messages(messages)
        assert workflow == expected
        assert workflow.cache_points == expected.cache_points


class TestObjects:
    def test_messages_of_the_official_sdk(self, png, wav):
        """Every content block of MCP is converted, as an object of the official SDK and as a dictionary."""
        types = mcp.types
        text = types.TextResourceContents(uri="docs://a", text="a", mime_type="text/markdown")
        link = {"name": "a", "title": "A", "description": "x", "mime_type": "text/plain", "size": 3}
        sent = [
            types.TextContent(text="a", annotations=types.Annotations(audience=["user"], priority=1)),
            types.ImageContent(data=encode(png), mime_type="image/png"),
            types.AudioContent(data=encode(wav), mime_type="audio/wav"),
            types.EmbeddedResource(resource=text),
            types.EmbeddedResource(resource=types.BlobResourceContents(uri="docs://a", blob=encode(PDF))),
            types.ResourceLink(uri="docs://a", **link),
        ]
        messages = [types.PromptMessage(role="assistant", content=block) for block in sent]

        expected = [
            Text("a", audience="user", priority=1),
            Image(png),
            Audio(wav),
            EmbeddedResource("docs://a", text="a", mime_type="text/markdown"),
            EmbeddedResource("docs://a", blob=PDF),
            ResourceLink("docs://a", **link),
        ]
        assert Workflow.from_messages(messages) == assistant(*expected)
        dictionaries = [message.model_dump(mode="json", by_alias=True) for message in messages]
        assert Workflow.from_messages(dictionaries) == assistant(*expected)

    def test_messages_of_fastmcp(self, png):
        """Messages of fastmcp are converted."""
        image = mcp.types.ImageContent(data=encode(png), mime_type="image/png")
        messages = [fastmcp.prompts.Message("a"), fastmcp.prompts.Message(image, role="assistant")]

        assert Workflow.from_messages(messages) == user("a") + assistant(Image(png))

    def test_answers_of_the_vendors_sdks(self):
        """Answers of OpenAI's and Anthropic's SDKs are converted, as objects or as their blocks."""
        reply = openai.types.chat.ChatCompletionMessage(role="assistant", content="a")
        usage = anthropic.types.Usage(input_tokens=1, output_tokens=1)
        block = anthropic.types.TextBlock(type="text", text="b", citations=None)
        fields = {
            "id": "m1",
            "type": "message",
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": usage,
        }
        answer = anthropic.types.Message.model_construct(
            role="assistant", content=[block], model="m", **fields
        )

        messages = [reply, answer, {"role": "assistant", "content": answer.content}]
        assert Workflow.from_messages(messages) == assistant("a") + assistant("b") + assistant("b")

    def test_messages_of_langchain(self, png):
        """Messages of LangChain, with its standard blocks, are converted."""
        messages = pytest.importorskip("langchain_core.messages")
        image = {"type": "image", "base64": encode(png), "mime_type": "image/png"}
        sent = [
            messages.SystemMessage("a"),
            messages.HumanMessage([{"type": "text", "text": "b"}, image, "c"]),
            messages.AIMessage("d", response_metadata={"model": "m"}, id="m1"),
            messages.AIMessageChunk("e"),
            messages.ChatMessage(role="user", content="f"),
        ]

        expected = system("a") + user("b", Image(png), "c") + assistant("d") + assistant("e") + user("f")
        assert Workflow.from_messages(sent) == expected
        with pytest.raises(ValueError, match="message 1 has the role 'tool'"):
            Workflow.from_messages([messages.ToolMessage("a", tool_call_id="1")])


class TestErrors:
    @pytest.mark.parametrize(
        ("messages", "error"),
        [
            ("user", "Workflow.from_messages() takes a list of messages, not a str ('user')"),
            (
                {"role": "user", "content": "a"},
                "Workflow.from_messages() takes a list of messages, not a dict",
            ),
            (3, "Workflow.from_messages() takes a list of messages, not an int (3)"),
            ([3], "message 1 is an int (3): pass a dictionary with role and content"),
            ([("user", "a")], "message 1 is a tuple (('user', 'a'))"),
            ([{"content": "a"}], "message 1 is a dict ({'content': 'a'})"),
            ([SimpleNamespace(role="user", content="a")], "message 1 is a SimpleNamespace"),
            ([{"role": "user", "content": "a"}, Message("user", "a")], "message 2 is a Message"),
            (
                [{"role": "user", "content": 3}],
                "message 1 is an int (3): pass text or a dictionary with a type",
            ),
            ([{"role": "user", "content": ["a", 3]}], "message 1, part 2 is an int (3)"),
        ],
        ids=repr,
    )
    def test_values_that_are_not_messages_are_type_errors(self, messages, error):
        """A value that is not a message, or not a part, is a TypeError with its position."""
        with pytest.raises(TypeError) as caught:
            Workflow.from_messages(messages)

        assert str(caught.value).startswith(error)

    @pytest.mark.parametrize(
        ("message", "error"),
        [
            ({"role": "tool", "content": "a"}, "message 2 has the role 'tool'"),
            ({"role": ["user"], "content": "a"}, "message 2 has the role ['user']"),
            (
                {"role": "assistant", "tool_calls": [{}]},
                "message 2 has 'tool_calls', which a workflow cannot",
            ),
            ({"role": "assistant", "content": "a", "refusal": "no"}, "message 2 has 'refusal'"),
            ({"role": "user", "content": "a", "name": "Ann"}, "message 2 has 'name'"),
            ({"role": "user", "parts": [{"text": "a"}]}, "message 2 has 'parts'"),
        ],
        ids=repr,
    )
    def test_messages_without_counterpart(self, message, error):
        """A role or a field that a workflow does not have is an error, so that no content is lost."""
        with pytest.raises(ValueError) as caught:  # noqa: PT011 (the message is checked below)
            Workflow.from_messages([{"role": "user", "content": "a"}, message])

        assert str(caught.value).startswith(error)

    @pytest.mark.parametrize(
        ("part", "error"),
        [
            (
                {"type": "tool_use", "id": "1"},
                "message 1, part 2 has the type 'tool_use', which a workflow cannot",
            ),
            ({"text": "a"}, "message 1, part 2 has the type None"),
            ({"type": ["text"], "text": "a"}, "message 1, part 2 has the type ['text']"),
            ({"type": "text"}, "message 1, part 2 is an invalid 'text': it has no 'text'"),
            (
                {"type": "text", "text": 3},
                "message 1, part 2 is an invalid 'text': Text takes a str, not int",
            ),
            ({"type": "text", "text": "a", "extra": "b"}, "message 1, part 2 has 'extra'"),
            ({"type": "image"}, "message 1, part 2 is an invalid 'image': it has no 'data' or 'base64'"),
            (
                {"type": "image", "source": "x"},
                "message 1, part 2 is an invalid 'image': its 'source' is not an",
            ),
            (
                {"type": "image", "data": "!", "mimeType": "image/png"},
                "message 1, part 2 is an invalid 'image': ",
            ),
            (
                {"type": "image", "data": "é", "mimeType": "image/png"},
                "message 1, part 2 is an invalid 'image': ",
            ),
            (
                {"type": "file", "file": {"file_id": "1"}},
                "message 1, part 2 is an invalid 'file': it has no 'file_d",
            ),
            (
                {"type": "document", "source": {"type": "url", "url": "https://a.b"}},
                "message 1, part 2 is an inva",
            ),
            (
                {"type": "resource_link", "uri": "a"},
                "message 1, part 2 is an invalid 'resource_link': it has no",
            ),
        ],
        ids=repr,
    )
    def test_parts_without_counterpart(self, part, error):
        """A part that a workflow cannot represent is an error with its position."""
        with pytest.raises(ValueError) as caught:  # noqa: PT011 (the message is checked below)
            from_parts("a", part)

        assert str(caught.value).startswith(error)

    @pytest.mark.parametrize(
        "part",
        [
            {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
            {"type": "input_image", "image_url": "https://example.org/a.png"},
            {"type": "image", "url": "https://example.org/a.png"},
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            {"type": "input_file", "file_data": "https://example.org/a.png"},
        ],
        ids=repr,
    )
    def test_nothing_is_downloaded(self, part):
        """Content at a URL is an error that suggests passing its data."""
        with pytest.raises(
            ValueError, match=r"'https://example\.org/a\.png' is not part of the message: download it"
        ):
            from_parts(part)

    def test_damaged_images(self, png):
        """A damaged image raises the usual error, with its position."""
        with pytest.raises(MediaError, match="message 1, part 1: the image is damaged"):
            from_parts({"type": "image", "data": encode(png[:30]), "mimeType": "image/png"})

    def test_system_messages_are_text(self, png):
        """A system message with an image is an error."""
        image = {"type": "image_url", "image_url": {"url": data_url(png, "image/png")}}

        with pytest.raises(ValueError, match="message 1 is a system message with an Image"):
            Workflow.from_messages([{"role": "system", "content": [image]}])

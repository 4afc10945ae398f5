import base64
import json
from datetime import UTC, datetime
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from promptkit import (
    Arg,
    Audio,
    EmbeddedResource,
    Icon,
    Image,
    Message,
    PromptError,
    ResourceLink,
    Text,
    Workflow,
    prompt,
)
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from promptkit.protocol.capabilities import ServerInfo
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.pagination import paginate
from promptkit.protocol.revisions import REVISIONS
from tests.wire import validate

NOTES = {"audience": ("user",), "priority": 0.5, "last_modified": datetime(2026, 1, 31, 12, tzinfo=UTC)}
LINK = ResourceLink(
    "file:///notes.txt",
    name="notes.txt",
    title="Notes",
    description="Minutes of the meeting",
    mime_type="text/plain",
    size=3,
)


@prompt(
    title="Review",
    icons=["https://shelf.example/i.png", Icon("data:image/png;base64,AA==", sizes=["48x48"], theme="dark")],
    tags=["code"],
    version="2",
    meta={"example.shelf/owner": "me"},
)
def review(diff: Annotated[str, Arg("The diff", title="Diff")], depth: int = 1) -> str:
    """Review a change."""
    return diff


def lower(revision, content):
    """Return *content* as a block of the revision."""
    workflow = Workflow([Message("user", content)])
    result = json.loads(lowering_for(REVISIONS[revision]).result(review.compiled, workflow))
    return result["messages"][0]["content"]


def listing(revision):
    """Return the list of prompts in a revision."""
    catalog = compile(Recipes(prompts=(review,)))
    return json.loads(paginate("prompts/list", catalog, lowering_for(REVISIONS[revision])).page())


def every_content(png, wav):
    return [
        Text("hello", **NOTES),
        Image(png, priority=0),
        Audio(wav, **NOTES),
        EmbeddedResource("file:///a.txt", text="a", **NOTES),
        EmbeddedResource("file:///a.png", blob=png),
        LINK,
    ]


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_result_is_valid_in_every_revision(revision, png, wav):
    """Results with every kind of content, and lists with every field, match the published schemas."""
    contents = every_content(png, wav)
    workflow = Workflow([Message("assistant", content) for content in contents])
    result = json.loads(lowering_for(REVISIONS[revision]).result(review.compiled, workflow))

    validate(result, revision, "GetPromptResult")
    validate(listing(revision), revision, "ListPromptsResult")


def test_text():
    """Text is sent with its annotations."""
    assert lower("2025-11-25", Text("hello", **NOTES)) == {
        "type": "text",
        "text": "hello",
        "annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-31T12:00:00Z"},
    }


@pytest.mark.parametrize(
    ("revision", "dated"), [("2024-11-05", False), ("2025-03-26", False), ("2025-06-18", True)]
)
def test_date_is_sent_where_the_revision_defines_it(revision, dated):
    """`lastModified` is sent only in revisions that define it."""
    assert dated == ("lastModified" in lower(revision, Text("hello", **NOTES))["annotations"])


def test_priority_of_zero():
    """A priority of zero is sent, and empty annotations are omitted."""
    assert lower("2024-11-05", Text("x", priority=0))["annotations"] == {"priority": 0}
    assert "annotations" not in lower("2024-11-05", Text("x", last_modified=NOTES["last_modified"]))


@pytest.mark.requirement("prompts/get/image")
@pytest.mark.parametrize("revision", REVISIONS)
def test_image(revision, png):
    """The bytes of an image are unchanged."""
    sent = lower(revision, Image(png))

    assert ("image", "image/png", png) == (sent["type"], sent["mimeType"], base64.b64decode(sent["data"]))


@pytest.mark.requirement("prompts/get/audio")
@pytest.mark.parametrize("revision", [*REVISIONS][1:])
def test_audio(revision, wav):
    """The bytes of a recording are unchanged."""
    sent = lower(revision, Audio(wav))

    assert ("audio", "audio/wav", wav) == (sent["type"], sent["mimeType"], base64.b64decode(sent["data"]))


def test_audio_in_revisions_without_audio(wav):
    """In revisions without audio, a recording is an embedded resource with all its bytes."""
    sent = lower("2024-11-05", Audio(wav, priority=1))

    assert (sent["type"], sent["annotations"]) == ("resource", {"priority": 1})
    assert ("audio/wav", wav) == (sent["resource"]["mimeType"], base64.b64decode(sent["resource"]["blob"]))


@pytest.mark.requirement("prompts/get/embedded-uri", "prompts/get/embedded-mime-type")
@pytest.mark.requirement("prompts/get/embedded-contents")
@pytest.mark.parametrize("revision", REVISIONS)
def test_embedded_resources(revision, png):
    """An embedded resource is text or bytes, and always has a MIME type."""
    text = lower(revision, EmbeddedResource("file:///a.txt", text="a"))
    blob = lower(revision, EmbeddedResource("file:///a.png", blob=png))

    assert text["resource"] == {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "a"}
    assert {
        "uri": "file:///a.png",
        "mimeType": "image/png",
        "blob": base64.b64encode(png).decode(),
    } == blob["resource"]


@pytest.mark.requirement("prompts/get/embedded-mime-type")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("mime_type", ["text/markdown", "application/vnd.shelf+json"])
def test_mime_type_of_the_author(revision, mime_type):
    """The MIME type of the author is sent."""
    text = lower(revision, EmbeddedResource("file:///a", text="a", mime_type=mime_type))
    blob = lower(revision, EmbeddedResource("file:///a", blob=b"a", mime_type=mime_type))

    assert {sent["resource"]["mimeType"] for sent in (text, blob)} == {mime_type}


@pytest.mark.requirement("prompts/get/embedded-uri")
@pytest.mark.parametrize("uri", ["", "notes.txt", "/notes.txt", "file:", "x:a b", "x:%zz", "C:\\notes.txt"])
def test_invalid_uri(uri):
    """An embedded resource with an invalid URI cannot be created."""
    with pytest.raises(ValueError, match="URI"):
        EmbeddedResource(uri, text="a")


@pytest.mark.requirement("prompts/get/resource-link")
@pytest.mark.parametrize("revision", [*REVISIONS][2:])
def test_resource_link(revision):
    """A link has the URI, name, title, description, MIME type and size."""
    assert lower(revision, LINK) == {
        "type": "resource_link",
        "uri": "file:///notes.txt",
        "name": "notes.txt",
        "title": "Notes",
        "description": "Minutes of the meeting",
        "mimeType": "text/plain",
        "size": 3,
    }


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26"])
def test_link_in_revisions_without_links(revision):
    """In revisions without links, a link is text with the name and the URI."""
    assert lower(revision, LINK) == {
        "type": "text",
        "text": "[Notes](file:///notes.txt) (notes.txt, text/plain, 3 B): Minutes of the meeting",
    }


@pytest.mark.parametrize("revision", REVISIONS)
def test_error_flag_of_a_tool_result_comes_first(revision):
    """Logs often cut long lines, so the flag of a failed call precedes all other members."""
    result = lowering_for(REVISIONS[revision]).tool_error(PromptError("no such branch"))

    assert result.startswith(b'{"isError":true,')
    assert json.loads(result)["content"] == [{"type": "text", "text": "no such branch"}]


def test_list_of_the_newest_handshake():
    """In the newest handshake revision, the list has all fields that the author set."""
    assert listing("2025-11-25") == {
        "prompts": [
            {
                "name": "review",
                "title": "Review",
                "description": "Review a change.",
                "arguments": [
                    {"name": "diff", "title": "Diff", "description": "The diff", "required": True},
                    {"name": "depth", "description": "a whole number; default 1", "required": False},
                ],
                "icons": [
                    {"src": "https://shelf.example/i.png"},
                    {"src": "data:image/png;base64,AA==", "sizes": ["48x48"], "theme": "dark"},
                ],
                "_meta": {
                    "promptkit/arguments": {
                        "$schema": "https://json-schema.org/draft/2020-12/schema",
                        "type": "object",
                        "properties": {
                            "diff": {"title": "Diff", "description": "The diff", "type": "string"},
                            "depth": {"type": "integer", "description": "default 1", "default": 1},
                        },
                        "required": ["diff"],
                    },
                    "promptkit/tags": ["code"],
                    "promptkit/version": "2",
                    "example.shelf/owner": "me",
                },
            },
        ],
    }


@pytest.mark.parametrize(
    ("revision", "members"),
    [
        ("2024-11-05", {"name", "description", "arguments"}),
        ("2025-03-26", {"name", "description", "arguments"}),
        ("2025-06-18", {"name", "title", "description", "arguments", "_meta"}),
        ("2025-11-25", {"name", "title", "description", "arguments", "icons", "_meta"}),
    ],
)
def test_list_in_each_revision(revision, members):
    """A field is sent only in revisions that define it."""
    (item,) = listing(revision)["prompts"]

    assert members == set(item)


@given(st.text(st.characters(codec="utf-8")))
def test_arbitrary_text(text):
    """Any text arrives unchanged."""
    if text.strip():
        assert text == lower("2025-11-25", Text(text))["text"]


def test_large_bytes():
    """The cache of encoded bytes does not confuse different bytes."""
    lowering = lowering_for(REVISIONS["2025-06-18"])
    constant = bytes(100_000)

    for number in range(20):
        for data in (constant, bytes([number]) * 100_000, bytes([number]) * 3_000_000):
            sent = json.loads(lowering.contents(EmbeddedResource("a:b", blob=data)))
            assert base64.b64decode(sent["contents"][0]["blob"]) == data


@given(
    st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip),
    st.text(st.characters(exclude_categories=["Cs"])),
)
def test_plain_text_equals_a_message(text, description):
    """Plain text has the same result as a message that contains it, byte for byte and in every revision."""
    described = structs.replace(review.compiled, description=description)
    workflow = Workflow([Message("user", Text(text))])
    for revision in REVISIONS.values():
        lowering = lowering_for(revision, ServerInfo("shelf", "1"))

        assert lowering.result(described, text) == lowering.result(described, workflow)

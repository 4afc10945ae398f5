import base64
import json
from datetime import UTC, datetime
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from promptkit import Arg, Audio, EmbeddedResource, Icon, Image, Message, ResourceLink, Text, Workflow, prompt
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from promptkit.protocol.capabilities import ServerInfo
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.pagination import pages_of
from promptkit.protocol.revisions import REVISIONS
from tests.wire import validate

NOTES = {"audience": ("user",), "priority": 0.5, "last_modified": datetime(2026, 1, 31, 12, tzinfo=UTC)}
LINK = ResourceLink(
    "file:///notes.txt",
    name="notes.txt",
    title="Notes",
    description="What was said",
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
    """One content block as a revision sends it."""
    workflow = Workflow([Message("user", content)])
    result = json.loads(lowering_for(REVISIONS[revision]).result(review.compiled, workflow))
    return result["messages"][0]["content"]


def listing(revision):
    """The list of prompts as a revision sends it."""
    catalog = compile(Recipes(prompts=(review,)))
    return json.loads(pages_of("prompts/list", catalog, lowering_for(REVISIONS[revision])).page())


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
    """
    A prompt with every kind of content, and a listing with every member, match the published
    schema of each revision.
    """
    contents = every_content(png, wav)
    workflow = Workflow([Message("assistant", content) for content in contents])
    result = json.loads(lowering_for(REVISIONS[revision]).result(review.compiled, workflow))

    validate(result, revision, "GetPromptResult")
    validate(listing(revision), revision, "ListPromptsResult")


def test_text():
    """
    Text is sent with its annotations.
    """
    assert lower("2025-11-25", Text("hello", **NOTES)) == {
        "type": "text",
        "text": "hello",
        "annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-31T12:00:00Z"},
    }


@pytest.mark.parametrize(
    ("revision", "dated"), [("2024-11-05", False), ("2025-03-26", False), ("2025-06-18", True)]
)
def test_a_date_is_sent_where_the_revision_has_one(revision, dated):
    """
    A member appears only where the revision defines it.
    """
    assert dated == ("lastModified" in lower(revision, Text("hello", **NOTES))["annotations"])


def test_a_priority_of_zero_is_said():
    """
    Zero is a priority; an annotation that only an older revision lacks leaves no empty object.
    """
    assert lower("2024-11-05", Text("x", priority=0))["annotations"] == {"priority": 0}
    assert "annotations" not in lower("2024-11-05", Text("x", last_modified=NOTES["last_modified"]))


@pytest.mark.requirement("prompts/get/image")
@pytest.mark.parametrize("revision", REVISIONS)
def test_an_image(revision, png):
    """
    An image's bytes arrive as they were.
    """
    sent = lower(revision, Image(png))

    assert ("image", "image/png", png) == (sent["type"], sent["mimeType"], base64.b64decode(sent["data"]))


@pytest.mark.requirement("prompts/get/audio")
@pytest.mark.parametrize("revision", [*REVISIONS][1:])
def test_audio(revision, wav):
    """
    So do those of a recording.
    """
    sent = lower(revision, Audio(wav))

    assert ("audio", "audio/wav", wav) == (sent["type"], sent["mimeType"], base64.b64decode(sent["data"]))


def test_audio_before_there_was_audio(wav):
    """
    Where a revision has no audio it becomes an embedded document, with all its bytes.
    """
    sent = lower("2024-11-05", Audio(wav, priority=1))

    assert (sent["type"], sent["annotations"]) == ("resource", {"priority": 1})
    assert ("audio/wav", wav) == (sent["resource"]["mimeType"], base64.b64decode(sent["resource"]["blob"]))


@pytest.mark.requirement("prompts/get/embedded-uri", "prompts/get/embedded-mime-type")
@pytest.mark.requirement("prompts/get/embedded-contents")
@pytest.mark.parametrize("revision", REVISIONS)
def test_embedded_resources(revision, png):
    """
    A document is text or bytes, with a type in any case.
    """
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
def test_a_type_that_is_given_is_sent(revision, mime_type):
    """
    What the author says that a document is counts.
    """
    text = lower(revision, EmbeddedResource("file:///a", text="a", mime_type=mime_type))
    blob = lower(revision, EmbeddedResource("file:///a", blob=b"a", mime_type=mime_type))

    assert {sent["resource"]["mimeType"] for sent in (text, blob)} == {mime_type}


@pytest.mark.requirement("prompts/get/embedded-uri")
@pytest.mark.parametrize("uri", ["", "notes.txt", "/notes.txt", "file:", "x:a b", "x:%zz", "C:\\notes.txt"])
def test_a_document_without_a_uri(uri):
    """
    An invalid URI is refused before anything is sent.
    """
    with pytest.raises(ValueError, match="URI"):
        EmbeddedResource(uri, text="a")


@pytest.mark.requirement("prompts/get/resource-link")
@pytest.mark.parametrize("revision", [*REVISIONS][2:])
def test_a_link(revision):
    """
    A link says where, what and how large.
    """
    assert lower(revision, LINK) == {
        "type": "resource_link",
        "uri": "file:///notes.txt",
        "name": "notes.txt",
        "title": "Notes",
        "description": "What was said",
        "mimeType": "text/plain",
        "size": 3,
    }


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26"])
def test_a_link_before_there_were_links(revision):
    """
    Where a revision has no links it becomes text with the name and the URI.
    """
    assert lower(revision, LINK) == {
        "type": "text",
        "text": "[Notes](file:///notes.txt) (notes.txt, text/plain, 3 B): What was said",
    }


def test_the_listing_of_the_newest_handshake():
    """
    The newest revision shows everything that the author set.
    """
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
def test_older_listings_show_what_they_know(revision, members):
    """
    A member appears only where the revision defines it.
    """
    (shown,) = listing(revision)["prompts"]

    assert members == set(shown)


@given(st.text(st.characters(codec="utf-8")))
def test_any_text_arrives(text):
    """
    Whatever a text holds arrives as it was.
    """
    if text.strip():
        assert text == lower("2025-11-25", Text(text))["text"]


def test_large_bytes_are_sent_as_they_are():
    """
    Those that were sent last are kept encoded: by the object, so none is taken for another.
    """
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
def test_a_text_is_sent_as_a_message_with_it_is(text, description):
    """
    Whatever it holds, and whatever describes the prompt: to the last byte, in every revision.
    """
    described = structs.replace(review.compiled, description=description)
    workflow = Workflow([Message("user", Text(text))])
    for revision in REVISIONS.values():
        lowering = lowering_for(revision, ServerInfo("shelf", "1"))

        assert lowering.result(described, text) == lowering.result(described, workflow)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("text", ["gap", '"gap"', 'é\n\\"', "x" * 5_000])
@pytest.mark.parametrize("server", ["promptkit", "gap"])
def test_a_plain_string_is_a_single_message(revision, text, server):
    """
    Its result is what one message of the user gives, whatever the prompt and the server are called.
    """

    @prompt(description="gap")
    def gap() -> str:
        return text

    lowering = lowering_for(REVISIONS[revision], ServerInfo(server, "gap"))
    workflow = Workflow([Message("user", Text(text))])

    for described in (review, gap, review):
        assert lowering.result(described.compiled, text) == lowering.result(described.compiled, workflow)
    assert lowering.tool_result(text) == lowering.tool_result(text) == lowering.tool_result(workflow)

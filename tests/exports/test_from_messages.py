"""`Workflow.from_messages` is the inverse of the exports, for everything that their formats can hold."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    prompt,
    system,
    user,
)
from promptkit.exports import MESSAGE_FUNCTIONS, openai_chat
from promptkit.testing import Client

PDF = b"%PDF-1.7\n%%EOF\n"
TEXTS = st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip).map(Text)


def documents(*uris, **content):
    """Return embedded resources with each of these URIs."""
    return [EmbeddedResource(uri, **content) for uri in uris]


def list_content(form, png, wav):
    """Return the content, other than text, that a format can hold in user turns."""
    named = documents("recipe:///a.pdf", "recipe:///%C3%A4%20b.pdf", blob=PDF, mime_type="application/pdf")
    if form == "openai-chat":
        return [Image(png), Audio(wav), *named]
    if form == "openai-responses":
        return [Image(png), *named]
    titled = documents("docs://a", "urn:b", text="# a", mime_type="text/plain")
    return [Image(png), *named, *documents("docs://a", blob=PDF, mime_type="application/pdf"), *titled]


@st.composite
def workflows(draw, contents, *, has_system, joins_assistant):
    """Generate workflows of text, and of *contents* in user turns."""
    messages = draw(
        st.lists(
            st.builds(Message, st.just("user"), TEXTS | st.sampled_from(contents))
            | st.builds(Message, st.just("assistant"), TEXTS)
        )
    )
    if joins_assistant:  # then consecutive messages of the assistant become one
        starts = [before.role == after.role == "assistant" for before, after in pairwise(messages)]
        messages = [
            message for message, is_same in zip(messages, [False, *starts], strict=False) if not is_same
        ]
    return Workflow(messages, draw(st.none() | TEXTS) if has_system else None)


@pytest.mark.parametrize("form", ["openai-chat", "openai-responses", "anthropic"])
@given(data=st.data())
def test_exports_are_reversed(form, png, wav, data):
    """The messages of a vendor's request are converted to the workflow that they were exported from."""
    options = {"has_system": form == "openai-chat", "joins_assistant": form != "anthropic"}
    workflow = data.draw(workflows(list_content(form, png, wav), **options))

    assert Workflow.from_messages(MESSAGE_FUNCTIONS[form](workflow)) == workflow


def test_cache_points_are_reversed():
    """Cache points after a part are kept, in OpenAI's and in Anthropic's format."""
    turns = user("b", cache_point()) + user("c") + assistant("d") + user("e", cache_point())
    with_system = system("a", cache_point()) + turns

    for messages, expected in (
        (openai_chat(with_system), with_system),
        (MESSAGE_FUNCTIONS["anthropic"](turns), turns),
    ):
        workflow = Workflow.from_messages(messages)
        assert workflow == expected
        assert workflow.cache_points == expected.cache_points


@given(data=st.data())
def test_replies_of_a_server_are_reversed(png, wav, data):
    """The messages of ``prompts/get`` are converted to the workflow that the prompt returned."""
    annotated = Text("a", audience=["user", "assistant"], priority=0.5, last_modified="2026-01-31T12:00:00Z")
    contents = [
        *(annotated, Image(png, priority=1), Audio(wav)),
        *documents("docs://a", text="# a", mime_type="text/markdown"),
        *documents("docs://a", blob=PDF, mime_type="application/pdf", audience="user"),
        ResourceLink("docs://a", name="a", title="A", description="x", mime_type="text/plain", size=3),
    ]
    workflow = data.draw(workflows(contents, has_system=False, joins_assistant=False).filter(len))

    @prompt
    def turns():
        return workflow

    with Client(turns) as client:
        messages = client.request("prompts/get", {"name": "turns"})["messages"]

    assert Workflow.from_messages(messages) == workflow

"""Exported messages, validated with the vendors' published types."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from promptkit import (
    Audio,
    EmbeddedResource,
    Image,
    Message,
    ResourceLink,
    Text,
    Workflow,
    assistant,
    compiler,
    user,
)
from promptkit.exports import MESSAGE_FUNCTIONS, ExportError
from promptkit.loader.loader import load
from tests.exports.vendors import validate

RECIPES = Path(__file__).parents[2] / "recipes"
EVERY_FORM = pytest.mark.parametrize("form", MESSAGE_FUNCTIONS)

GIF = b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\1\0\1\0\0\2\2D\1\0;"
JPEG = b"\xff\xd8\xff\xe0\0\x10JFIF\0\xff\xd9"
OGG = b"OggS" + bytes(60)
MP3 = b"ID3\4" + bytes(60)
PDF = b"%PDF-1.7\n%%EOF\n"
ZIP = b"PK\x03\x04rest"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def content(png, wav):
    """Return every kind of content, by name."""
    return {
        "text": Text("Look at this.", audience="user", priority=1),
        "png": Image(png),
        "gif": Image(GIF),
        "wav": Audio(wav),
        "mp3": Audio(MP3),
        "ogg": Audio(OGG),
        "document": EmbeddedResource("docs://style", text="Write plainly."),
        "empty": EmbeddedResource("docs://empty", text=""),
        "far": EmbeddedResource(f"docs://{'x' * 600}", text="Write plainly."),
        "pdf": EmbeddedResource("file:///a/long%20report.pdf", blob=PDF, mime_type="application/pdf"),
        "docx": EmbeddedResource("docs://letter", blob=ZIP, mime_type=DOCX),
        "blob of png": EmbeddedResource("docs://dot", blob=png),
        "blob of text": EmbeddedResource("docs://csv", blob=b"a,b", mime_type="text/csv"),
        "zip": EmbeddedResource("docs://zip", blob=ZIP, mime_type="application/zip"),
        "link": ResourceLink("https://example.org/x", name="x", title="The page", description="A page."),
        "linked image": ResourceLink("https://example.org/x.png", name="x", mime_type="image/png"),
        "linked pdf": ResourceLink("https://example.org/x.pdf", name="x", mime_type="application/pdf"),
        "local image": ResourceLink("file:///x.png", name="x", mime_type="image/png"),
        "stored": ResourceLink("gs://bucket/x.mp3", name="x", mime_type="audio/mpeg"),
    }


#: The content that each vendor rejects in user turns.
REJECTED = {
    "openai-chat": {"ogg", "docx", "blob of text", "zip"},
    "openai-responses": {"wav", "mp3", "ogg", "blob of text", "zip"},
    "anthropic": {"wav", "mp3", "ogg", "docx", "blob of text", "zip"},
    "gemini": {"gif", "docx", "blob of text", "zip"},
}
#: The recipes whose examples contain content that a vendor rejects.
REJECTED_RECIPES = {
    "openai-chat": set(),
    "openai-responses": {"summarize_recording", "analyze_code", "decision_record"},  # they have system parts
    "anthropic": {"summarize_recording", "analyze_code", "decision_record"},
    "gemini": {"analyze_code", "decision_record"},
}
FILES = {"png", "gif", "wav", "mp3", "ogg", "pdf", "docx", "blob of png", "blob of text", "zip"}


def is_rejected(form, workflow):
    """Return whether an export rejects a workflow; an accepted workflow must give valid messages."""
    try:
        messages = MESSAGE_FUNCTIONS[form](workflow)
    except ExportError:
        return True
    validate(form, messages)
    return False


class TestValidity:
    @EVERY_FORM
    def test_every_kind_of_content(self, form, png, wav):
        """
        The accepted content is valid for the vendor's types; in assistant turns, only files are rejected.
        """
        kinds = content(png, wav)

        assert {name for name, kind in kinds.items() if is_rejected(form, user(kind))} == REJECTED[form]
        assert {name for name, kind in kinds.items() if is_rejected(form, assistant(kind))} == FILES

    @EVERY_FORM
    def test_lossy_exports_are_valid(self, form, png, wav):
        """With ``lossy=True`` all messages are valid, and the text of unsupported content is included."""
        kinds = content(png, wav)
        workflow = Workflow(Message(role, kind) for role in ("user", "assistant") for kind in kinds.values())
        messages = MESSAGE_FUNCTIONS[form](workflow, lossy=True)

        validate(form, messages)
        text = str(messages)
        assert all(str(kinds[name]) in text for name in REJECTED[form] | FILES)

    @EVERY_FORM
    def test_every_recipe(self, form, monkeypatch):
        """
        Each recipe's examples give valid messages for every vendor, except the recipes in `REJECTED_RECIPES`.
        """
        monkeypatch.delenv("PROJECT_ROOT", raising=False)
        catalog = compiler.compile(load(str(RECIPES)))
        count, rejected = 0, set()
        for prompt in catalog.prompts:
            for arguments in prompt.arguments.example_texts:
                if prompt.name == "git_commit" and "diff" not in arguments:
                    continue  # without a diff, the prompt renders the staged changes, if any
                workflow = prompt.render(arguments)
                if is_rejected(form, workflow):
                    rejected.add(prompt.name)
                    validate(form, MESSAGE_FUNCTIONS[form](workflow, lossy=True))
                count += 1

        assert count > 13
        assert rejected == REJECTED_RECIPES[form]

    @EVERY_FORM
    @given(data=st.data())
    def test_generated_workflows(self, form, png, wav, data):
        """Messages in any order are valid; turns alternate, and no text is lost."""
        kinds = content(png, wav)
        accepted = [kind for name, kind in kinds.items() if name not in REJECTED[form] | FILES]
        accepted_from_users = accepted + [kinds[name] for name in FILES - REJECTED[form]]
        texts = st.text().filter(str.strip).map(Text)
        contents = {
            "user": st.sampled_from(accepted_from_users) | texts,
            "assistant": st.sampled_from(accepted) | texts,
        }
        drawn_messages = st.sampled_from(["user", "assistant"]).flatmap(
            lambda role: contents[role].map(lambda part: Message(role, part))
        )
        workflow = Workflow(data.draw(st.lists(drawn_messages, max_size=8)))
        turns = MESSAGE_FUNCTIONS[form](workflow)

        validate(form, turns)
        roles = [turn["role"] for turn in turns]
        assert all(role != next_role for role, next_role in pairwise(roles))
        exported_text = "\n".join(texts_in(turns))
        original_texts = [message.content.text for message in workflow if isinstance(message.content, Text)]
        assert all(text in exported_text for text in original_texts)

    @EVERY_FORM
    def test_types_are_strict(self, form):
        """The validation in these tests rejects keys that the vendor does not have."""
        (message,) = MESSAGE_FUNCTIONS[form](user("Hello."))

        with pytest.raises(ValidationError):
            validate(form, [{**message, "extra": 1}])

    def test_parts_are_strict(self):
        """The validation also rejects unknown keys in nested parts."""
        part = {"type": "text", "text": "x", "extra": 1}
        inputs = {"type": "input_text", "text": "x", "extra": 1}

        for form, parts in (("openai-chat", part), ("openai-responses", inputs), ("anthropic", part)):
            with pytest.raises(ValidationError):
                validate(form, [{"role": "user", "content": [parts]}])
        with pytest.raises(ValidationError):
            validate("gemini", [{"role": "user", "parts": [{"text": "x", "extra": 1}]}])


def texts_in(value):
    """Return every string in nested data."""
    if isinstance(value, dict):
        return [text for item in value.values() for text in texts_in(item)]
    if isinstance(value, list):
        return [text for item in value for text in texts_in(item)]
    return [value] if isinstance(value, str) else []


class TestForms:
    def test_openai_chat(self, png, wav):
        """
        A single text part is a string, and several parts are a list; the assistant's text parts are joined.
        """
        workflow = user("Look.", Image(png), Audio(wav)) + assistant("I see.") + assistant("Go on?") + "Yes."

        messages = MESSAGE_FUNCTIONS["openai-chat"](workflow)

        assert [message["role"] for message in messages] == ["user", "assistant", "user"]
        text, image, audio = messages[0]["content"]
        assert text == {"type": "text", "text": "Look."}
        assert image["image_url"]["url"].startswith("data:image/png;base64,iVBOR")
        assert audio["input_audio"]["format"] == "wav"
        assert [message["content"] for message in messages[1:]] == ["I see.\n\nGo on?", "Yes."]

    def test_openai_responses(self, png):
        """Files have a name with the suffix of their type."""
        letter = EmbeddedResource("docs://a/letter", blob=ZIP, mime_type=DOCX)
        (message,) = MESSAGE_FUNCTIONS["openai-responses"](user(Image(png), letter))

        image, file = message["content"]
        assert image["type"] == "input_image"
        assert file["type"] == "input_file"
        assert file["filename"] == "letter.docx"
        assert file["file_data"].startswith(f"data:{DOCX};base64,")

    def test_anthropic(self, png):
        """Documents are blocks with their URI as the title, and turns of one role are joined."""
        style = EmbeddedResource("docs://style", text="Write plainly.")
        messages = MESSAGE_FUNCTIONS["anthropic"](
            user("Look.") + user(Image(png), style) + assistant("I see.")
        )

        assert [message["role"] for message in messages] == ["user", "assistant"]
        assert [block["type"] for block in messages[0]["content"]] == ["text", "image", "document"]
        assert messages[0]["content"][2] == {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "Write plainly."},
            "title": "docs://style",
        }
        assert messages[1]["content"] == "I see."

    def test_gemini(self, png):
        """The assistant's role is `model`, and binary data stays bytes."""
        messages = MESSAGE_FUNCTIONS["gemini"](user(Image(png), Audio(MP3)) + assistant("I see."))

        assert messages == [
            {
                "role": "user",
                "parts": [
                    {"inline_data": {"mime_type": "image/png", "data": png}},
                    {"inline_data": {"mime_type": "audio/mp3", "data": MP3}},
                ],
            },
            {"role": "model", "parts": [{"text": "I see."}]},
        ]

    def test_links(self, png, wav):
        """A link is exported as text, and additionally by URL if the vendor fetches that kind of content."""
        link = content(png, wav)["linked pdf"]

        messages_by_form = {form: export(user(link)) for form, export in MESSAGE_FUNCTIONS.items()}

        assert messages_by_form["openai-chat"] == [{"role": "user", "content": str(link)}]
        assert messages_by_form["openai-responses"][0]["content"][1] == {
            "type": "input_file",
            "file_url": link.uri,
        }
        assert messages_by_form["anthropic"][0]["content"][1]["source"] == {"type": "url", "url": link.uri}
        assert messages_by_form["gemini"][0]["parts"][1]["file_data"] == {
            "mime_type": "application/pdf",
            "file_uri": link.uri,
        }

    @EVERY_FORM
    def test_variants_of_mime_types(self, form):
        """A MIME type can have capitals and parameters, and common aliases are accepted."""
        variants = [
            EmbeddedResource("docs://a", blob=JPEG, mime_type=name)
            for name in ("image/jpg", "Image/JPEG; q=1")
        ]
        plain = EmbeddedResource("docs://a", blob=JPEG, mime_type="image/jpeg")

        assert MESSAGE_FUNCTIONS[form](user(*variants)) == MESSAGE_FUNCTIONS[form](user(plain, plain))

    @EVERY_FORM
    def test_messages_are_json_except_bytes(self, form, png):
        """Messages consist of dictionaries, lists and strings, apart from bytes."""
        messages = MESSAGE_FUNCTIONS[form](user("Look.", Image(png)))

        assert json.loads(json.dumps(messages, default=lambda data: data.hex()))


class TestErrors:
    def test_error_lists_every_rejected_part(self, png):
        """The error lists each rejected part with its message number, type and role, and a fix."""
        workflow = (
            user("Hear.", Audio(OGG))
            + assistant(Image(png))
            + user(EmbeddedResource("docs://csv", blob=b"a,b", mime_type="text/csv"))
        )

        with pytest.raises(ExportError) as caught:
            MESSAGE_FUNCTIONS["openai-chat"](workflow)

        assert str(caught.value) == (
            "the OpenAI Chat Completions API cannot represent the rendering: "
            "message 2 (user) contains audio/ogg: send another type instead: audio/mpeg, audio/wav; "
            "message 3 (assistant) contains image/png: "
            "move it to a user turn, because assistant turns can contain only text; "
            "message 4 (user) contains text/csv: embed it with text= instead of blob= "
            "(lossy=True replaces unsupported content with text)"
        )
        assert [part.message for part in caught.value.parts] == [2, 3, 4]

    def test_vendor_without_audio(self, wav):
        """If a vendor accepts no audio at all, the error suggests text instead of a conversion."""
        with pytest.raises(
            ExportError, match="message 1 \\(user\\) contains audio/wav: write its content as text"
        ):
            MESSAGE_FUNCTIONS["anthropic"](user(Audio(wav)))

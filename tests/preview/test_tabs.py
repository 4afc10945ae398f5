import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from textwrap import dedent
from typing import Annotated, Literal

import pytest

pytest.importorskip("starlette")

import attrs

from promptkit import (
    Arg,
    ArgumentsError,
    Audio,
    EmbeddedResource,
    Image,
    PromptError,
    assistant,
    prompt,
    user,
)
from promptkit.cli import main
from promptkit.cli.parsers import VENDORS
from promptkit.clients.profiles import CLIENTS, ClientProfile
from promptkit.compiler.compilation import compile
from promptkit.exports import REQUEST_FUNCTIONS
from promptkit.preview.media import MediaStore, Upload
from promptkit.preview.rendering import Rendering
from promptkit.preview.tabs import TABS, TabContent, build_tab, compute_sent_arguments
from promptkit.preview.templating import environment
from promptkit.protocol.revisions import REVISIONS
from promptkit.testing import Client, ProtocolError
from tests.preview import submission

SECRET = "hunter2-hunter2"  # noqa: S105 (of a test)
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002000001"
    "e221bc330000000049454e44ae426082"
)
WAV = b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0@\x1f\0\0@\x1f\0\0\x01\0\x08\0data\0\0\0\0"


@prompt(title="A word", tags=["x"])
def media(
    code: Annotated[str, Arg("The code", title="Code")], language: Literal["python", "rust"] = "python"
):
    """Say many things."""
    yield user(f"Review this {language}:", code)
    yield assistant("Of course.")
    yield user(Image(PNG), Audio(WAV), EmbeddedResource("note://x", text="A note"))


@prompt
def whisper(token: Annotated[str, Arg(secret=True)], text: str = "", times: int = 1):
    return f"Send {text} with {token}, please"


@prompt(elicit=True)
def asking(tones: list[Literal["warm", "cold"]], text: str):
    return f"{tones} {text}"


@prompt
def failing(text: str):
    raise PromptError(text)


def render_prompt(declared, **sent):
    """Render a prompt with the values of a form."""
    compiled = declared.compiled
    try:
        return Rendering(compiled, sent, compiled.render(sent))
    except ArgumentsError as errors:
        return Rendering(compiled, sent, argument_errors=errors.errors)
    except PromptError as error:
        return Rendering(compiled, sent, error=str(error))


def render_blocks(tab, rendering, choice="", target="recipes"):
    return [block.text for block in build_tab(tab, rendering, target, choice).blocks]


class TestWire:
    """The Wire tab shows what a client of each revision receives."""

    @pytest.mark.parametrize("date", REVISIONS)
    def test_result_equals_what_the_client_receives(self, date):
        """The result and the list entry equal what a client receives through the protocol."""
        result, entry = map(json.loads, render_blocks("wire", render_prompt(media, code="è"), date))

        with Client(media, revision=date) as client:
            assert result == client.request("prompts/get", {"name": "media", "arguments": {"code": "è"}})
            assert entry == client.request("prompts/list")["prompts"][0]

    @pytest.mark.parametrize("date", REVISIONS)
    def test_error_equals_what_the_client_receives(self, date):
        """Invalid arguments show the error that the client receives, with its data."""
        sent = {"code": "x", "language": "pyhton"}
        displayed = json.loads(render_blocks("wire", render_prompt(media, **sent), date)[0])

        with Client(media, revision=date) as client, pytest.raises(ProtocolError) as raised:
            client.request("prompts/get", {"name": "media", "arguments": sent})
        error = raised.value
        assert displayed == {"code": error.code, "message": error.message, "data": error.data}

    @pytest.mark.parametrize("date", REVISIONS)
    def test_questions_equal_what_the_client_receives(self, date):
        """An eliciting prompt shows the questions that a client of the revision receives."""
        compiled = asking.compiled
        with pytest.raises(ArgumentsError) as raised:
            compiled.render({})
        rendering = Rendering(
            compiled, {}, argument_errors=raised.value.errors, elicited=compiled.arguments.ordered
        )
        received = []

        class Person(Client):
            def _fill_in(self, params):
                received.append(params)
                return super()._fill_in(params)

        with Person(asking, revision=date, answers={}) as client, pytest.raises(ProtocolError):
            client.request("prompts/get", {"name": "asking"})
        *questions, _error, _entry = map(json.loads, render_blocks("wire", rendering, date))
        assert questions == received

    def test_newest_revision_is_first(self):
        """Revisions are listed newest first, and an unknown choice selects the newest."""
        content = build_tab("wire", render_prompt(media, code="x"), "recipes", "2000-01-01")

        assert [choice.value for choice in content.choices] == list(reversed(REVISIONS))
        assert [choice.is_selected for choice in content.choices] == [True, False, False, False, False]

    def test_invisible_characters_are_escaped(self):
        """Invisible characters are shown as JSON escapes of the same text."""
        text = render_blocks("wire", render_prompt(media, code="a\u202eb\x7f"))[0]

        assert "\\u202e" in text
        assert json.loads(text)["messages"][0]["content"]["text"].endswith("a\u202eb\x7f")

    def test_failing_prompt_has_no_result(self):
        """A prompt that fails shows its list entry and a note, without a result."""
        content = build_tab("wire", render_prompt(failing, text="no"), "recipes")

        assert [block.title for block in content.blocks] == ["prompts/list entry"]
        assert content.notes == ("This prompt failed: clients receive an error instead of messages.",)


#: A recipe whose vendor request uses every feature: system text, cache points and an answer type.
ASKING = """
from dataclasses import dataclass

from promptkit import assistant, cache_point, prompt, system, user


@dataclass
class Verdict:
    is_fine: bool


@prompt(answer=Verdict)
def talk(a: str):
    yield system("Be brief.", cache_point())
    yield user("Look.", cache_point(), a)
    yield assistant("Well.")
    yield cache_point()
    yield user("And?")
"""


class TestVendors:
    """The Vendors tab shows the requests of each vendor's SDK."""

    def test_formats_equal_those_of_render(self):
        """The tab has the same formats as `promptkit render --request`."""
        assert tuple(REQUEST_FUNCTIONS) == VENDORS

    @pytest.mark.parametrize("request_format", REQUEST_FUNCTIONS)
    def test_request_equals_the_output_of_render(self, request_format, tmp_path, monkeypatch, capfd):
        """The tab shows the same request as `promptkit render --request`."""
        monkeypatch.chdir(tmp_path)
        (tmp_path / "recipe.py").write_text(ASKING)
        compiled = compile("recipe.py")["talk"]
        rendering = Rendering(compiled, {"a": "x"}, compiled.render({"a": "x"}))

        assert main(["render", "recipe.py", "talk", "a=x", "--request", request_format]) == 0
        assert json.loads(render_blocks("vendors", rendering, request_format)[0]) == json.loads(
            capfd.readouterr().out
        )

    def test_unsupported_content_is_reported(self):
        """Unsupported content is replaced by text in the request and reported in a note."""
        content = build_tab("vendors", render_prompt(media, code="x"), "recipes", "anthropic")

        assert [note.partition(":")[0] for note in content.notes] == ["Not supported by Anthropic"]
        assert "audio/wav" in content.notes[0]
        assert [choice.value for choice in content.choices if choice.is_selected] == ["anthropic"]
        (block,) = content.blocks
        assert block.title == "messages.create arguments, with text in place of unsupported content"
        assert "<audio/wav 44 B" in block.text

    def test_unsupported_answer_type_is_reported(self):
        """An unsupported answer type yields no request, and the note explains what to write."""

        @prompt(answer=list[int])
        def count(text: str):
            return text

        assert build_tab("vendors", render_prompt(count, text="x"), "recipes", "gemini").blocks
        content = build_tab("vendors", render_prompt(count, text="x"), "recipes", "openai-chat")
        assert (content.blocks, len(content.choices)) == ((), 4)
        (note,) = content.notes
        assert note.startswith("OpenAI does not support the answer type: list")
        assert note.endswith("wrap it in a class with one field.")

    def test_invalid_arguments_have_no_request(self):
        """Invalid arguments yield no request."""
        content = build_tab("vendors", render_prompt(media), "recipes", "gemini")

        assert (content.blocks, len(content.choices)) == ((), 4)


def create_project(folder, source):
    """Create a project with one recipe file; return its catalog and its target."""
    (folder / "pyproject.toml").write_text("[tool.promptkit]\n")
    # Imported modules stay cached under their names, so each project uses a different one.
    target = folder / f"{folder.name}_recipes"
    target.mkdir()
    (target / "talk.py").write_text(dedent(source), encoding="utf-8")
    return compile(str(target)), str(target)


def render_by_name(catalog, name, sent):
    compiled = catalog[name]
    try:
        return Rendering(compiled, sent, compiled.render(sent))
    except ArgumentsError as errors:
        return Rendering(compiled, sent, argument_errors=errors.errors)


class TestNewCase:
    def test_secrets_and_uploads_are_read_by_the_source(self, tmp_path, monkeypatch):
        """The source reads secrets from the environment, and uploads from files next to the recipe."""
        monkeypatch.setenv("TOKEN", SECRET)
        catalog, target = create_project(
            tmp_path,
            """
            from typing import Annotated
            from promptkit import Arg, prompt

            @prompt
            def look(image: bytes, files: list[bytes], text: str, token: Annotated[str, Arg(secret=True)]):
                return f"{len(image)}, {[len(file) for file in files]}, {len(text)}"
            """,
        )
        data = {"shot.png": b"\xff" * 9, "a b.bin": b"1", "b.bin": b"22", "nul.txt": b"\xef\xbb\xbf\0\r\n"}
        for name, content in data.items():
            (Path(target) / name).write_bytes(content)
        uploads = {
            "image": Upload("/" * 12, ("shot.png",), 9),
            "files": Upload("MQ==\nMjI=", ("a b.bin", "b.bin"), 3),
            "text": Upload("\0\n", ("nul.txt",), 6),
        }
        sent = {name: upload.value for name, upload in uploads.items()} | {"token": SECRET}
        rendering = attrs.evolve(render_by_name(catalog, "look", sent), uploads=uploads)

        (source,) = render_blocks("new-case", rendering)

        assert not re.search("//|xff|MQ==|hunter2", source)
        recipe = Path(target) / "talk.py"
        recipe.write_text(recipe.read_text() + source)
        again = compile(target)
        (case,) = again["look"].saved()
        assert str(render_by_name(again, "look", case.sent()).workflow) == str(rendering.workflow)

    def test_case_of_a_markdown_prompt_is_front_matter(self, tmp_path):
        """
        The case of a Markdown prompt is shown as front matter, which has the same values except secrets.
        """
        arguments = (
            "arguments:\n  text: The text\n  token: {secret: true}\n  count: {type: int, default: 1}\n"
        )
        body = "{{text}} {{count}}{{token}}"
        file = tmp_path / "prompts" / "echo.prompt.md"
        file.parent.mkdir()
        file.write_text(f"---\n{arguments}---\n{body}")
        sent = {"text": "a: 'b'\n\"c\" # \\", "count": "007", "token": SECRET}
        rendering = render_by_name(compile(str(file.parent)), "echo", sent)

        (case,) = render_blocks("new-case", rendering)

        assert SECRET not in case
        file.write_text(f"---\n{arguments}{case}\n---\n{body}")
        (saved,) = compile(str(file.parent))["echo"].saved()
        assert (saved.name, saved.sent()) == ("a name", {key: sent[key] for key in ("text", "count")})

    def test_long_call_has_one_line_per_argument(self, tmp_path):
        """A long call has one line per argument."""
        catalog, _ = create_project(
            tmp_path,
            "from promptkit import prompt\n\n@prompt\ndef talk(one: str, two: int):\n    return one\n",
        )
        value = "x" * 80
        (source,) = render_blocks("new-case", render_by_name(catalog, "talk", {"one": value, "two": "2"}))

        assert source == f'talk.case_wire("a name", {{\n    "one": "{value}",\n    "two": "2",\n}})'


class TestCommandLine:
    """The copied command prints the same rendering."""

    @pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
    @pytest.mark.parametrize(
        "text",
        [
            "x",
            "",
            "a b",
            'it\'s "$HOME" `ls` !! \\ %PATH% *',
            "@file",
            "@@file",
            "line\nline\n",
            "-x=y",
            "è\t",
        ],
        ids=ascii,
    )
    def test_command_prints_the_same_rendering(self, text, tmp_path, monkeypatch, capfd):
        """The shell passes any value on unchanged."""
        monkeypatch.chdir(tmp_path)
        create_project(
            tmp_path,
            "from promptkit import prompt\n@prompt\ndef talk(value: str):\n    return f'<{value}>'\n",
        )
        (tmp_path / "my recipes").mkdir()
        next(tmp_path.glob("*/talk.py")).rename(tmp_path / "my recipes" / "talk.py")
        rendering = render_by_name(compile("my recipes"), "talk", {"value": text})
        (command,) = render_blocks("command-line", rendering, target="my recipes")
        words = ["bash", "-c", command.replace("promptkit", 'printf "%s\\0"', 1)]
        arguments = subprocess.run(words, capture_output=True, check=True).stdout.decode().split("\0")[:-1]

        assert arguments[:3] == ["render", "my recipes", "talk"]
        assert main([*arguments, "--format", "json"]) == 0
        output = json.loads(capfd.readouterr().out)["messages"][0]["content"]["text"]
        assert output == f"<{text}>"

    @pytest.mark.parametrize("name", ["$(touch pwned)", "b;touch pwned;", "x\ny", "language "])
    def test_unknown_argument_is_omitted(self, name):
        """Unknown arguments, which a link can contain, are omitted from the command."""
        (command,) = render_blocks(
            "command-line", render_prompt(media, **{"code": "x", name: "y"}), target="recipes"
        )

        assert command == "promptkit render recipes media code=x"

    def test_target_like_an_option_is_a_path(self):
        """A target that looks like an option is written as a path."""
        (command,) = render_blocks("command-line", render_prompt(media, code="x"), target="--help")

        assert command == "promptkit render ./--help media code=x"

    def test_simple_command_has_no_quotes(self):
        """A simple command contains no quotes."""
        (command,) = render_blocks("command-line", render_prompt(media, code="x", language="rust"))

        assert command == "promptkit render recipes media code=x language=rust"
        assert shlex.split(command)[0] == "promptkit"

    def test_target_with_spaces_is_quoted(self):
        """A target with spaces is quoted."""
        (command,) = render_blocks("command-line", render_prompt(media, code="x"), target="my recipes")

        assert command == "promptkit render 'my recipes' media code=x"

    def test_secret_becomes_a_shell_variable(self):
        """A secret is replaced by a shell variable, and a note explains why."""
        content = build_tab("command-line", render_prompt(whisper, token=SECRET), "recipes")

        assert content.blocks[0].text == 'promptkit render recipes whisper token="$TOKEN"'
        assert content.notes == (
            "'token' is a secret, so its value is omitted: set the variable TOKEN first.",
        )

    def test_uploads_are_read_from_files(self):
        """Uploads and very long values are read from files, with a note for each."""

        @prompt
        def look(image: bytes, text: str):
            return text

        content = build_tab("command-line", render_prompt(look, image="aGk=", text="x" * 40_000), "recipes")

        assert content.blocks[0].text == "promptkit render recipes look image=@image.bin text=@text.txt"
        assert len(content.notes) == 2

    @pytest.mark.parametrize(
        ("file", "word"),
        [
            ("shot.png", "image=@shot.png"),
            ("my shot.png", "'image=@my shot.png'"),
            ("@x", "image=@./@x"),
            ("-", "image=@./-"),
        ],
    )
    def test_upload_is_read_from_its_file(self, file, word):
        """An upload is read from a file with the name of the uploaded file, in the current folder."""

        @prompt
        def look(image: bytes):
            return "x"

        uploads = {"image": Upload("aGk=", (file,), 2)}
        content = build_tab(
            "command-line", attrs.evolve(render_prompt(look, image="aGk="), uploads=uploads), "recipes"
        )

        assert content.blocks[0].text == f"promptkit render recipes look {word}"
        assert content.notes == (f"'image' is read from {file}: run the command in the folder of that file.",)


class TestClients:
    """The Clients tab predicts a client's view from its profile."""

    @pytest.mark.parametrize("name", CLIENTS)
    def test_view_follows_from_the_profile(self, name):
        """The client's profile determines whether the prompt is offered, and which messages are dropped."""
        client = CLIENTS[name]
        content = build_tab("clients", render_prompt(media, code="a b", language="rust"), "recipes", name)
        view = content.view

        assert view.title == client.title
        assert [choice.value for choice in content.choices if choice.is_selected] == [name]
        assert view.is_offered == (client.has_prompts and client.max_arguments is None)
        lost = [not message.is_unchanged for message in view.messages]
        kinds = ["text", "text", "image", "recording", "document"]
        assert view.messages == () or lost == [
            kind in client.unsupported or (client.sends_first_only and number > 0)
            for number, kind in enumerate(kinds)
        ]

    def test_notes_equal_the_lint_warnings(self):
        """The notes equal the warnings that the client's lints give."""
        rendering = render_prompt(media, code="a b", language="rust")

        def join_notes(name):
            return " ".join(build_tab("clients", rendering, "recipes", name).notes)

        assert "Zed hides it, because it has 2 arguments" in join_notes("zed")
        assert "Gemini CLI omits an image" in join_notes("gemini-cli")
        assert "Gemini CLI sends only the first message" in join_notes("gemini-cli")
        assert "Claude Code sends an assistant turn as a user turn" in join_notes("claude-code")
        assert "Codex does not show prompts" in join_notes("codex")
        assert join_notes("cursor") == ""

    def test_upload_is_shown_by_name_and_size(self):
        """An upload is shown by its name and size instead of base64."""

        @prompt
        def look(image: bytes):
            return "x"

        upload = Upload("aGk=", ("shot.png",), 20_000)
        rendering = attrs.evolve(render_prompt(look, image="aGk="), uploads={"image": upload})
        (argument,) = build_tab("clients", rendering, "recipes", "cursor").view.arguments

        assert (argument.text, argument.is_unchanged) == ("shot.png, 20 kB", True)

    @pytest.mark.parametrize("is_async", [False, True])
    def test_messages_are_rendered_from_the_sent_arguments(self, is_async):
        """The messages are rendered from the arguments that the client would send, split at spaces or not."""

        @prompt
        def plain(code: str, note: str = "none"):
            return f"{code} and {note}"

        @prompt
        async def waiting(code: str, note: str = "none"):
            return f"{code} and {note}"

        chosen = waiting if is_async else plain
        sent = {"code": "a b", "note": "c"}
        workflow = plain.compiled.render(sent)
        rendering = Rendering(chosen.compiled, sent, workflow)

        def list_messages(name):
            return [
                message.text for message in build_tab("clients", rendering, "recipes", name).view.messages
            ]

        assert list_messages("cursor") == ["a b and c"]
        assert list_messages("claude-code") == ["a b and none"]
        assert list_messages("gemini-cli") == ['"a b and c"']

    def test_refused_prompt_shows_the_reason(self):
        """If the prompt cannot be rendered, the view shows the reason and no messages."""

        @prompt(elicit=False)
        def without_form(code: str, language: Literal["python", "rust"]):
            return code

        cut = build_tab(
            "clients", render_prompt(without_form, code="a b", language="rust"), "recipes", "claude-code"
        )
        asked = build_tab("clients", render_prompt(media, language="rust"), "recipes", "claude-code")
        failed = build_tab("clients", render_prompt(failing, text="no"), "recipes", "cursor")
        refused = build_tab("clients", render_prompt(media, language="x"), "recipes", "cursor")

        assert cut.view.messages == failed.view.messages == refused.view.messages == ()
        assert "The server rejects the arguments that Claude Code sends: " in cut.view.reason
        assert "'language' is 'b'" in cut.view.reason
        assert asked.view.reason == "Claude Code shows a form for 'code'."
        assert failed.view.reason == "no"
        assert "'code' is missing" in refused.view.reason
        html = str(environment().get_template("client_view.html").module.view(cut.view))
        assert "No messages" in html
        assert "<h3>Messages</h3>" not in html

    @pytest.mark.parametrize(
        ("profile", "sent"),
        [
            (ClientProfile("a"), {"code": "x y", "language": "rust"}),
            (ClientProfile("b", splits_at_spaces=True), {"code": "x", "language": "y"}),
            (ClientProfile("c", splits_at_spaces=True, keeps_rest=True), {"code": "x", "language": "y rust"}),
            (
                ClientProfile("d", splits_at_spaces=True, keeps_rest=True, fills_in_text=True),
                {"code": "x y"},
            ),
            (ClientProfile("e", splits_at_spaces=True, rejects_missing=True), {"code": "x y"}),
        ],
    )
    def test_profile_splits_or_drops_values(self, profile, sent):
        """The profile decides whether spaces split values, and which arguments have values."""
        typed = {"language": "rust", "code": "x y"}

        assert compute_sent_arguments(profile, media.compiled, typed) == sent

    def test_words_are_filled_in_by_position(self):
        """A word at the position of an optional argument is lost, and a text without a word is empty."""
        profile = ClientProfile("a", splits_at_spaces=True, keeps_rest=True, fills_in_text=True)

        @prompt
        def mixed(*, note: str = "", topic: str, town: str):
            return "x"

        def compute(topic, town):
            return compute_sent_arguments(profile, mixed.compiled, {"topic": topic, "town": town})

        assert compute("a b", "c d") == {"topic": "b", "town": "c d"}
        assert compute("a", "b") == {"topic": "b", "town": ""}

    def test_invalid_positions_are_explained(self):
        """For a required number, the view explains that opencode's positional placeholder is invalid."""

        @prompt
        def many(count: int):
            return "x"

        view = build_tab("clients", render_prompt(many, count="3"), "recipes", "opencode").view
        assert "sends '$1' for 'count', which is invalid" in view.reason

    def test_secrets_are_not_shown(self):
        """Secrets appear neither in arguments nor in messages."""
        for name in CLIENTS:
            content = repr(build_tab("clients", render_prompt(whisper, token=SECRET), "recipes", name))
            assert "hunter2" not in content


@pytest.mark.parametrize("tab", TABS)
@pytest.mark.parametrize(
    "sent",
    [
        {"token": SECRET, "text": SECRET},
        {"token": SECRET, "text": "x", "times": SECRET},
        {"token": f"three {SECRET} words", "text": "x", SECRET: "1"},
    ],
    ids=["in a text", "in an error", "in a name"],
)
def test_no_tab_shows_a_secret(tab, sent):
    """No tab shows a secret, even if another argument repeats it."""
    rendering = render_prompt(whisper, **sent)
    for choice in ("", *REVISIONS, *REQUEST_FUNCTIONS, *CLIENTS):
        content = repr(build_tab(tab, rendering, "recipes", choice))
        assert [word for word in ("hunter2", "three") if word in content] == []


@pytest.mark.parametrize("tab", TABS)
def test_no_tab_shows_the_default_of_a_secret(tab):
    """No tab shows a secret's default, even if another argument repeats it."""

    @prompt
    def defaulting(text: str, token: Annotated[str, Arg(secret=True)] = SECRET):
        return f"{text} {token}"

    assert "hunter2" not in repr(build_tab(tab, render_prompt(defaulting, text=SECRET), "recipes"))


@pytest.mark.parametrize("tab", TABS)
def test_hostile_text_is_escaped(tab):
    """Hostile text creates no elements or attributes."""
    evil = '"></pre><script>alert(1)</script><hx-partial></hx-partial><img src=x onerror=alert(1)>'
    content = build_tab(tab, render_prompt(media, code=evil), evil)
    html = str(environment().get_template("tabs.html").module.panel("/prompts/media", content, MediaStore()))
    tree = submission.parse_html(html)

    assert {element.tag for element in tree.iter()} & {"script", "img", "hx-partial"} == set()
    assert [key for element in tree.iter() for key in element.attrib if key.startswith("on")] == []
    copied = ["".join(element.itertext()) for element in tree.iter("pre") if element.get("id")]
    assert copied == [block.text for block in content.blocks]


@pytest.mark.parametrize("tab", ["wire", "vendors", "clients"])
def test_long_text_is_truncated_but_copied_in_full(tab):
    """Long text is truncated on the page and copied in full."""

    @prompt
    def long(text: str):
        return text

    content = build_tab(tab, render_prompt(long, text="word " * 60_001), "recipes")
    store = MediaStore()
    html = str(environment().get_template("tabs.html").module.panel("/prompts/long", content, store))

    assert len(html) < 60_000
    assert re.search(r"20,000 of 3\d\d,\d{3} characters are shown", html)
    copied = [
        store.build_response(digest).body.decode()
        for digest in re.findall(r'data-full-text="/media/(\w+)"', html)
    ]
    assert copied == [block.text for block in content.blocks if len(block.text) > 20_000]


@pytest.mark.parametrize("tab", TABS)
def test_upload_error_hides_all_tabs(tab):
    """An upload error hides all tabs, because only the preview has that limit."""
    rendering = attrs.evolve(
        render_prompt(media), uploads={"code": Upload(None, ("a.bin",), 3, "is not text")}
    )

    assert build_tab(tab, rendering, "recipes") == TabContent(
        tab, notes=("Nothing to show: the files for 'code' cannot be sent.",)
    )


def test_tabs_form_a_tab_list():
    """The tabs form a tab list in which only the current tab is reachable by the Tab key."""
    html = environment().get_template("tabs.html").module.tabs("/prompts/x", TABS, "conversation", "")
    tree = submission.parse_html(str(html))
    tabs = [button for button in tree.iter("button") if button.get("role") == "tab"]

    assert ["".join(button.itertext()) for button in tabs] == ["Arguments", "Conversation", *TABS.values()]
    assert [button.get("tabindex") for button in tabs] == ["-1", "0", *["-1"] * len(TABS)]

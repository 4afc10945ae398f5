"""`promptkit render` beyond a prompt's transcript: Markdown, resources, files of media, watching."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import msgspec
import pytest

from promptkit.cli import main
from promptkit.compiler.compilation import compile
from promptkit.exports import FORMS
from promptkit.loader.loader import load
from tests.terminal import COMMAND, Person, command, environment, on_terminal

SHELF = '''
import time
from pathlib import Path
from typing import Annotated
from promptkit import Arg, Audio, EmbeddedResource, Image, ResourceLink, assistant, prompt, resource, user

HERE = Path(__file__).parent

@prompt
def mixed():
    """Everything at once."""
    yield user("Look at\\n\\n# this", Image((HERE / "dot.png").read_bytes()))
    yield user(Audio((HERE / "beep.wav").read_bytes()))
    yield assistant(EmbeddedResource("docs://code", text="a\\n```\\nb"))
    yield user(EmbeddedResource("docs://zip", blob=b"PK\\x03\\x04rest", mime_type="application/zip"))
    yield user(ResourceLink("https://example.org/x", name="x", title="The page"))

@prompt
def hides(key: Annotated[str, Arg(secret=True)]) -> str:
    return f"The key is {key}."

@resource("docs://{section}/{page}{?lines}")
def page(section: str, page: int, lines: int = 1) -> str:
    return f"{section} {page} {lines}"

@resource("docs://keys/{key}")
def keys(key: Annotated[str, Arg(secret=True)]) -> str:
    return f"The key is {key}."

@resource("media://dot", mime_type="image/png")
def dot() -> bytes:
    return (HERE / "dot.png").read_bytes()

@resource("docs://broken")
def broken() -> str:
    raise ValueError("a bug")
'''

MIXED = """\
## user

Look at

# this

## user

`<image/png 69 B sha256:...>`

## user

`<audio/wav 2 kB sha256:...>`

## assistant

`docs://code`

````
a
```
b
````

## user

`[docs://zip] <application/zip 8 B sha256:...>`

## user

[The page](https://example.org/x) (x)
"""


@pytest.fixture
def shelf(recipes, tmp_path, monkeypatch, png, wav):
    """Prompts and resources with media, in the current folder."""
    folder = recipes(shelf=SHELF)
    (folder / "dot.png").write_bytes(png)
    (folder / "beep.wav").write_bytes(wav)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys, *argv):
    """Run a command; return its exit code and what it printed."""
    code = main(argv)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


class TestMarkdown:
    def test_a_heading_for_each_message(self, shelf, capsys):
        """
        Text stands as it is, documents in a fence that they cannot close, media by type, size and digest.
        """
        code, out, err = run(capsys, "render", "mixed", "--format", "markdown")

        assert (code, err) == (0, "")
        assert re.sub(r"sha256:[0-9a-f]{8}", "sha256:...", out) == MIXED

    def test_media_are_linked_where_they_are_written(self, shelf, capsys):
        """
        With a folder for media, the Markdown shows images and links the rest.
        """
        _, out, _ = run(capsys, "render", "mixed", "--format", "markdown", "--out", "my media")

        shown = re.sub(r" sha256:[0-9a-f]{8}", "", out)
        assert "\n![image/png 69 B](<my media/mixed-1.png>)\n" in shown
        assert "\n[audio/wav 2 kB](<my media/mixed-2.wav>)\n" in shown
        assert "](<my media/mixed-3.zip>)\n" in shown

    def test_a_secret_is_hidden(self, shelf, capsys):
        """
        Markdown hides what the transcript hides.
        """
        out = run(capsys, "render", "hides", "key=hunter2hunter2", "--format", "markdown")[1]

        assert out == "## user\n\nThe key is <secret>.\n"

    def test_on_a_terminal(self, recipes, shelf):
        """
        Control characters of content are shown, not obeyed.
        """
        recipes(evil="from promptkit import prompt\nprompt(name='evil')(lambda: 'a\\x1b[31mb')\n")

        shown = on_terminal("render", "evil", "--format", "markdown", cwd=shelf)

        assert shown == "## user\n\na\\x1b[31mb\n"

    def test_json_is_a_format(self, shelf):
        """
        ``--json`` is short for ``--format json``.
        """
        short, long = (
            command("render", "mixed", *argv, cwd=shelf) for argv in (["--json"], ["--format", "json"])
        )

        assert short == long
        assert len(json.loads(short[1])["messages"]) == 6


class TestMedia:
    @pytest.mark.parametrize("form", ["transcript", "markdown", "json"])
    def test_bytes_become_files(self, form, shelf, capsys, png, wav):
        """
        Each is a file of its type, whatever is printed; standard error says where.
        """
        code, _, err = run(capsys, "render", "mixed", "--out", "media/new", "--format", form)

        written = {file.name: file.read_bytes() for file in (shelf / "media" / "new").iterdir()}
        assert code == 0
        assert written == {"mixed-1.png": png, "mixed-2.wav": wav, "mixed-3.zip": b"PK\x03\x04rest"}
        assert err.splitlines() == [
            f"promptkit: wrote {Path('media', 'new', name)}" for name in sorted(written)
        ]

    def test_nothing_to_write_makes_no_folder(self, shelf, capsys):
        """
        A prompt of text alone leaves nothing behind.
        """
        assert run(capsys, "render", "hides", "key=x", "--out", "media")[0] == 0
        assert not (shelf / "media").exists()

    @pytest.mark.skipif(os.name == "nt", reason="links need privileges")
    @pytest.mark.parametrize("kind", ["link", "pipe", "device"])
    def test_what_lies_there_is_not_written_through(self, kind, shelf, capsys):
        """
        It stays, and so does what a link leads to.
        """
        (shelf / "media").mkdir()
        (shelf / "other").write_text("mine")
        file = shelf / "media" / "mixed-1.png"
        if kind == "pipe":
            os.mkfifo(file)
        else:
            file.symlink_to(shelf / "other" if kind == "link" else os.devnull)

        code, out, err = run(capsys, "render", "mixed", "--out", "media")

        assert (code, out) == (2, "")
        reason = "it is not a regular file" if kind == "pipe" else "it is a link: put a file in its place"
        assert err == f"promptkit: cannot write to 'media/mixed-1.png': {reason}\n"
        assert (shelf / "other").read_text() == "mine"
        assert not file.is_file() or file.is_symlink()

    @pytest.mark.skipif(os.name == "nt", reason="links need privileges")
    def test_a_link_in_place_of_the_folder_is_not_followed(self, shelf, capsys):
        """
        It may have come with the repository, and lead anywhere.
        """
        (shelf / "elsewhere").mkdir()
        (shelf / "media").symlink_to(shelf / "elsewhere")

        code, out, err = run(capsys, "render", "mixed", "--out", "media/new")

        assert (code, out, list((shelf / "elsewhere").iterdir())) == (2, "", [])
        assert err.startswith("promptkit: cannot write to 'media': it is a link: ")

    def test_what_cannot_be_written(self, shelf, capsys):
        """
        The folder is named, with the reason.
        """
        (shelf / "media").write_text("a file")

        code, out, err = run(capsys, "render", "mixed", "--out", "media")

        assert (code, out) == (2, "")
        assert err.startswith("promptkit: cannot write to 'media': ")


class TestResources:
    def test_a_resource_is_read_by_its_uri(self, shelf, capsys):
        """
        The variables stand in the URI, a ``=`` too.
        """
        assert run(capsys, "render", "docs://intro/3?lines=2") == (
            0,
            "[docs://intro/3?lines=2]\nintro 3 2\n",
            "",
        )

    def test_for_machines(self, shelf, capsys):
        """
        The JSON is what a client receives.
        """
        _, out, _ = run(capsys, "render", "recipes", "docs://intro/3", "--json")

        assert json.loads(out) == {
            "contents": [{"uri": "docs://intro/3", "mimeType": "text/plain", "text": "intro 3 1"}]
        }

    def test_as_markdown_and_as_a_file(self, shelf, capsys, png):
        """
        Bytes are written to a file that has the name of the resource.
        """
        _, out, _ = run(capsys, "render", "media://dot", "--out", "media", "--format", "markdown")

        assert (shelf / "media" / "dot-1.png").read_bytes() == png
        assert out.endswith("](<media/dot-1.png>)\n")

    def test_a_secret_is_hidden(self, shelf, capsys):
        """
        A variable may be a secret, and is hidden wherever it stands.
        """
        out = run(capsys, "render", "docs://keys/hunter2hunter2")[1]

        assert out == "[docs://keys/<secret>]\nThe key is <secret>.\n"

    @pytest.mark.parametrize(
        ("argv", "code", "said"),
        [
            (["docs://brokn"], 2, "unknown resource 'docs://brokn'; did you mean 'docs://broken'?"),
            (["dot"], 2, "unknown prompt 'dot'; did you mean 'media://dot'?"),
            (["docs://intro/x"], 1, "resource 'page': 'page' is 'x', not a whole number"),
            (["docs://broken"], 1, "ValueError: a bug"),
        ],
        ids=str,
    )
    def test_what_goes_wrong(self, argv, code, said, shelf, capsys):
        """
        An unknown URI is wrong usage; what the author's function raises is a fault.
        """
        ended, out, err = run(capsys, "render", *argv)

        assert (ended, out) == (code, "")
        assert err.splitlines()[-1].removeprefix("promptkit: ") == said

    def test_it_takes_no_arguments(self, shelf, capsys):
        """
        Its variables are written into the URI.
        """
        with pytest.raises(SystemExit) as ended:
            main(["render", "docs://intro/3", "lines=2"])

        assert ended.value.code == 2
        assert "a URI takes no arguments: write their values into it" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
class TestWatch:
    def test_a_change_is_shown(self, recipes, tmp_path):
        """
        What is said after a change follows what was said before; a broken state is told; Ctrl-C ends it.
        """
        head = "from promptkit import prompt\n\n@prompt\ndef greet(name: str) -> str:\n"
        source = f"{head}    return f'{{}} {{{{name}}}}'\n"
        recipes(greet=source.format("Hello"))
        process = subprocess.Popen(
            [*COMMAND, "render", "greet", "name=Ada", "--watch"],
            cwd=tmp_path,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            assert [process.stdout.readline() for _ in range(2)] == [b"[user]\n", b"Hello Ada\n"]
            time.sleep(0.2)  # a file that is written just now is not looked at at once
            recipes(greet="1 / 0\n")
            assert any(b"PK101" in line for line in iter(process.stderr.readline, b""))
            recipes(greet=source.format("Good day,"))
            assert [process.stdout.readline() for _ in range(3)] == [b"\n", b"[user]\n", b"Good day, Ada\n"]
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=20)
        assert process.returncode == 130

    def test_on_a_terminal(self, recipes, tmp_path):
        """
        What is missing is asked for once. What is said after a change takes the place of what was said.
        """
        head = "from promptkit import prompt\n\n@prompt\ndef greet(name: str) -> str:\n"
        recipes(greet=f"{head}    return f'Hello, {{name}}.'\n")
        someone = Person(tmp_path, "render", "greet", "--watch", all_streams=True)
        try:
            someone.sees("name (")
            someone.types("Ada\r")
            someone.sees("Hello, Ada.\r\n")
            time.sleep(0.2)  # a file that is written just now is not looked at at once
            recipes(greet=f"{head}    return f'Good day, {{name}}.'\n")
            someone.sees("Good day, Ada.\r\n")
            recipes(greet="1 / 0\n")
            someone.sees("PK101")
            someone.process.send_signal(signal.SIGINT)
            code, _ = someone.ends()
        finally:
            someone.leaves()

        assert code == 130
        assert "\x1b[H\x1b[2J[user]\r\nGood day, Ada.\r\n" in someone.sent

    @pytest.mark.parametrize(
        ("argv", "last"), [(["--json"], b"}\n"), (["--format", "markdown"], b"Hello, Ada.\n")], ids=str
    )
    def test_forms(self, argv, last, recipes, tmp_path):
        """
        Every form can be watched, and the answers are not garbled by what is asked.
        """
        recipes(
            greet="from promptkit import prompt\n\n@prompt\ndef greet(name: str): return f'Hello, {name}.'\n"
        )
        someone = Person(tmp_path, "render", "greet", "--watch", *argv)
        try:
            someone.sees("name (")
            someone.types("Ada\r")
            lines = iter(someone.process.stdout.readline, last)
            shown = b"".join([*lines, last]).decode()
            someone.process.send_signal(signal.SIGINT)
            ended = someone.ends()
        finally:
            someone.leaves()

        assert ended == (130, "")
        if argv == ["--json"]:
            assert json.loads(shown)["messages"][0]["content"]["text"] == "Hello, Ada."
        else:
            assert shown == "## user\n\nHello, Ada.\n"

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["gret"], b"promptkit: unknown prompt 'gret'; did you mean 'greet'?\n"),
            (["greet", "x"], b"promptkit: 'x' is not an argument: write KEY=VALUE, or KEY=@FILE\n"),
        ],
        ids=str,
    )
    def test_wrong_usage(self, words, said, recipes, tmp_path):
        """
        No change of a file could help, so nothing is watched.
        """
        recipes(greet="from promptkit import prompt\nprompt(name='greet')(lambda: 'Hello.')\n")

        assert command("render", "recipes", *words, "--watch", cwd=tmp_path) == (2, b"", said)

    def test_nothing_at_the_target(self, tmp_path):
        """
        It is wrong usage, as without the option.
        """
        code, out, err = command("render", "nowhere", "greet", "--watch", cwd=tmp_path)

        assert (code, out) == (2, b"")
        assert err.startswith(b"promptkit: cannot load 'nowhere'")
        assert err.endswith(b" (the first of two words is TARGET; arguments are written KEY=VALUE)\n")


class TestVendors:
    @pytest.mark.parametrize("form", FORMS)
    def test_what_a_vendor_takes(self, form, shelf, capsys):
        """
        It is what the export returns, as JSON, with base64 for bytes.
        """
        code, out, err = run(capsys, "render", "mixed", "--format", form, "--lossy")

        assert (code, err) == (0, "")
        workflow = compile(load(shelf / "recipes")).render("mixed")
        exported = FORMS[form](workflow, lossy=True)
        assert json.loads(out) == msgspec.to_builtins(exported)

    def test_what_it_does_not_take(self, shelf, capsys):
        """
        It is an error that names the messages, and the option that shows text for them.
        """
        code, out, err = run(capsys, "render", "mixed", "--format", "anthropic")

        assert (code, out) == (1, "")
        assert err == (
            "promptkit: Anthropic cannot take it: message 3 holds audio/wav of the user: "
            "write a text with the same content; message 5 holds application/zip of the user: "
            "convert it to application/pdf (--lossy replaces unsupported content by text)\n"
        )

    def test_a_resource(self, shelf, capsys):
        """
        A document becomes a turn of the user.
        """
        code, out, _ = run(capsys, "render", "media://dot", "--format", "gemini")

        (turn,) = json.loads(out)
        assert (code, turn["role"]) == (0, "user")
        assert turn["parts"][0]["inline_data"]["mime_type"] == "image/png"

    def test_secrets_are_hidden(self, shelf, capsys):
        """
        As in every form.
        """
        _, out, _ = run(capsys, "render", "hides", "key=swordfish-9", "--format", "openai-chat")

        assert json.loads(out)[0]["content"] == "The key is <secret>."


ASKING = """
from dataclasses import dataclass
from typing import Annotated
from promptkit import Arg, prompt, system, user

@dataclass
class Verdict:
    scores: dict[str, float]

@prompt
def ask(key: Annotated[str, Arg(secret=True)]):
    yield system(f"You know {key}.")
    yield user("Why?")

@prompt(answer=Verdict)
def judge():
    return "Judge."
"""


class TestRequests:
    def test_a_whole_request(self, recipes, capfd):
        """
        It is what the SDK takes, with the model, and without secrets.
        """
        folder = str(recipes(asking=ASKING))

        assert (
            main(["render", folder, "ask", "key=k1-9f", "--request", "anthropic", "--model", "claude"]) == 0
        )
        assert json.loads(capfd.readouterr().out) == {
            "messages": [{"role": "user", "content": "Why?"}],
            "system": [{"type": "text", "text": "You know <secret>."}],
            "model": "claude",
        }

    def test_an_answer_that_a_vendor_does_not_take(self, recipes, capfd):
        """
        It is said which part, and what to do.
        """
        folder = str(recipes(asking=ASKING))

        assert main(["render", folder, "judge", "--request", "openai-chat"]) == 1
        assert capfd.readouterr().err == (
            "promptkit: OpenAI takes no such answer: Verdict.scores has members of any name; "
            "make it a list of objects with a name and a value\n"
        )

    def test_a_model_without_a_request(self, recipes, capfd):
        """
        A model is named in a request alone.
        """
        with pytest.raises(SystemExit) as ended:
            main(["render", str(recipes(asking=ASKING)), "judge", "--model", "x"])

        assert ended.value.code == 2
        assert "--model is for a request: name its vendor with --request" in capfd.readouterr().err

    def test_markdown(self, recipes, capfd):
        """
        A system part has a heading of its own, and files keep their places.
        """
        assert main(["render", str(recipes(asking=ASKING)), "ask", "key=k1-9f", "--format", "markdown"]) == 0
        assert capfd.readouterr().out == "## system\n\nYou know <secret>.\n\n## user\n\nWhy?\n"

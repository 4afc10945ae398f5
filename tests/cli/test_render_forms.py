"""`promptkit render`: Markdown, media files, resources, vendors' formats."""

import json
import os
import re
from pathlib import Path

import msgspec
import pytest

from promptkit.cli import main
from promptkit.compiler.compilation import compile
from promptkit.exports import MESSAGE_FUNCTIONS
from promptkit.loader.loader import load

RECIPE = '''
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

MARKDOWN = """\
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
def project(recipes, tmp_path, monkeypatch, png, wav):
    """Prompts and resources with media; the project is the current folder."""
    recipe_folder = recipes(shelf=RECIPE)
    (recipe_folder / "dot.png").write_bytes(png)
    (recipe_folder / "beep.wav").write_bytes(wav)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys, *argv):
    """Run a command and return its exit code, standard output and standard error."""
    code = main(argv)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


class TestMarkdown:
    def test_messages_have_headings(self, project, capsys):
        """Text is copied, documents are fenced safely, and media are shown by type, size and digest."""
        code, out, err = run(capsys, "render", "mixed", "--format", "markdown")

        assert (code, err) == (0, "")
        assert re.sub(r"sha256:[0-9a-f]{8}", "sha256:...", out) == MARKDOWN

    def test_media_are_linked(self, project, capsys):
        """With `--out`, the Markdown shows images and links other media."""
        _, out, _ = run(capsys, "render", "mixed", "--format", "markdown", "--out", "my media")

        markdown = re.sub(r" sha256:[0-9a-f]{8}", "", out)
        assert "\n![image/png 69 B](<my media/mixed-1.png>)\n" in markdown
        assert "\n[audio/wav 2 kB](<my media/mixed-2.wav>)\n" in markdown
        assert "](<my media/mixed-3.zip>)\n" in markdown

    def test_secret_is_hidden(self, project, capsys):
        """Markdown hides what the transcript hides."""
        out = run(capsys, "render", "hides", "key=hunter2hunter2", "--format", "markdown")[1]

        assert out == "## user\n\nThe key is <secret>.\n"

    def test_on_a_terminal(self, recipes, project, run_on_terminal):
        """Control characters in the content are escaped on a terminal."""
        recipes(evil="from promptkit import prompt\nprompt(name='evil')(lambda: 'a\\x1b[31mb')\n")

        output = run_on_terminal("render", "evil", "--format", "markdown")

        assert output == (0, "## user\n\na\\x1b[31mb\n")

    def test_json_is_a_format(self, project, capsys):
        """`--json` is short for `--format json`."""
        with_json, with_format = (
            run(capsys, "render", "mixed", *argv) for argv in (["--json"], ["--format", "json"])
        )

        assert with_json == with_format
        assert len(json.loads(with_json[1])["messages"]) == 6


class TestMedia:
    @pytest.mark.parametrize("form", ["transcript", "markdown", "json"])
    def test_media_are_written_to_files(self, form, project, capsys, png, wav):
        """Each medium is written to a file with the suffix of its type; standard error names the files."""
        code, _, err = run(capsys, "render", "mixed", "--out", "media/new", "--format", form)

        written = {file.name: file.read_bytes() for file in (project / "media" / "new").iterdir()}
        assert code == 0
        assert written == {"mixed-1.png": png, "mixed-2.wav": wav, "mixed-3.zip": b"PK\x03\x04rest"}
        assert err.splitlines() == [
            f"promptkit: wrote {Path('media', 'new', name)}" for name in sorted(written)
        ]

    def test_no_folder_without_media(self, project, capsys):
        """A prompt without media creates no folder."""
        assert run(capsys, "render", "hides", "key=x", "--out", "media")[0] == 0
        assert not (project / "media").exists()

    @pytest.mark.skipif(os.name == "nt", reason="links need privileges")
    @pytest.mark.parametrize("kind", ["link", "pipe", "device"])
    def test_existing_special_files_are_not_overwritten(self, kind, project, capsys):
        """A link, pipe or device is kept, and a link's target stays unchanged."""
        (project / "media").mkdir()
        (project / "other").write_text("mine")
        file = project / "media" / "mixed-1.png"
        if kind == "pipe":
            os.mkfifo(file)
        else:
            file.symlink_to(project / "other" if kind == "link" else os.devnull)

        code, out, err = run(capsys, "render", "mixed", "--out", "media")

        assert (code, out) == (2, "")
        reason = "it is not a regular file" if kind == "pipe" else "it is a link: replace it with a file"
        assert err == f"promptkit: cannot write to 'media/mixed-1.png': {reason}\n"
        assert (project / "other").read_text() == "mine"
        assert not file.is_file() or file.is_symlink()

    @pytest.mark.skipif(os.name == "nt", reason="links need privileges")
    def test_linked_folder_is_rejected(self, project, capsys):
        """A link in place of the output folder is rejected, because the link could lead anywhere."""
        (project / "elsewhere").mkdir()
        (project / "media").symlink_to(project / "elsewhere")

        code, out, err = run(capsys, "render", "mixed", "--out", "media/new")

        assert (code, out, list((project / "elsewhere").iterdir())) == (2, "", [])
        assert err.startswith("promptkit: cannot write to 'media': it is a link: ")

    def test_unwritable_folder(self, project, capsys):
        """The error names the folder and the reason."""
        (project / "media").write_text("a file")

        code, out, err = run(capsys, "render", "mixed", "--out", "media")

        assert (code, out) == (2, "")
        assert err.startswith("promptkit: cannot write to 'media': ")


class TestResources:
    def test_resource_by_uri(self, project, capsys):
        """A URI with variables is read, even with a `=` in it."""
        assert run(capsys, "render", "docs://intro/3?lines=2") == (
            0,
            "[docs://intro/3?lines=2]\nintro 3 2\n",
            "",
        )

    def test_json(self, project, capsys):
        """`--json` prints what a client receives."""
        _, out, _ = run(capsys, "render", "recipes", "docs://intro/3", "--json")

        assert json.loads(out) == {
            "contents": [{"uri": "docs://intro/3", "mimeType": "text/plain", "text": "intro 3 1"}]
        }

    def test_markdown_with_media_file(self, project, capsys, png):
        """A binary resource is written to a file named after it."""
        _, out, _ = run(capsys, "render", "media://dot", "--out", "media", "--format", "markdown")

        assert (project / "media" / "dot-1.png").read_bytes() == png
        assert out.endswith("](<media/dot-1.png>)\n")

    def test_secret_is_hidden(self, project, capsys):
        """A secret variable is hidden in the URI and in the text."""
        out = run(capsys, "render", "docs://keys/hunter2hunter2")[1]

        assert out == "[docs://keys/<secret>]\nThe key is <secret>.\n"

    @pytest.mark.parametrize(
        ("argv", "code", "names"),
        [
            (["docs://brokn"], 2, ["unknown resource 'docs://brokn'", "'docs://broken'?"]),
            (["dot"], 2, ["unknown prompt 'dot'", "'media://dot'?"]),
            (["docs://intro/x"], 1, ["resource 'page'", "'page' is 'x'"]),
            (["docs://broken"], 1, ["resource 'broken' failed at recipes/shelf.py:35"]),
        ],
        ids=str,
    )
    def test_errors(self, argv, code, names, project, capsys):
        """An unknown URI is a usage error; an exception of the resource is not."""
        exit_code, out, err = run(capsys, "render", *argv)

        assert (exit_code, out) == (code, "")
        assert all(name in err.splitlines()[-1] for name in names)

    def test_resource_takes_no_arguments(self, project, capsys):
        """Arguments after a URI are a usage error."""
        with pytest.raises(SystemExit) as exit:
            main(["render", "docs://intro/3", "lines=2"])

        assert exit.value.code == 2
        assert "a URI does not take arguments: put the values into the URI" in capsys.readouterr().err

    @pytest.mark.parametrize("target", ["recipes", "recipes/shelf.py"])
    @pytest.mark.parametrize("arguments", [[], ["name=x"]], ids=["alone", "arguments"])
    def test_target_in_place_of_a_name(self, target, arguments, project, capsys):
        """A target with an object is not taken for a URI."""
        with pytest.raises(SystemExit) as exit:
            main(["render", f"{target}:greet", *arguments])

        assert exit.value.code == 2
        hint = f"name a prompt in it, for example: promptkit render {target}:greet NAME\n"
        assert capsys.readouterr().err.endswith(hint)


class TestVendors:
    @pytest.mark.parametrize("form", MESSAGE_FUNCTIONS)
    def test_vendor_format(self, form, project, capsys):
        """The output is the exported data as JSON, with bytes in base64."""
        code, out, err = run(capsys, "render", "mixed", "--format", form, "--lossy")

        assert (code, err) == (0, "")
        workflow = compile(load(project / "recipes")).render("mixed")
        exported = MESSAGE_FUNCTIONS[form](workflow, lossy=True)
        assert json.loads(out) == msgspec.to_builtins(exported)

    def test_unsupported_content(self, project, capsys):
        """The error names the messages and the option `--lossy`."""
        code, out, err = run(capsys, "render", "mixed", "--format", "anthropic")

        assert (code, out) == (1, "")
        assert err == (
            "promptkit: Anthropic cannot represent the rendering: message 3 (user) contains audio/wav: "
            "write its content as text; message 5 (user) contains application/zip: "
            "send another type instead: application/pdf (--lossy replaces unsupported content with text)\n"
        )

    def test_a_resource(self, project, capsys):
        """A resource is exported as a turn of the user."""
        code, out, _ = run(capsys, "render", "media://dot", "--format", "gemini")

        (turn,) = json.loads(out)
        assert (code, turn["role"]) == (0, "user")
        assert turn["parts"][0]["inline_data"]["mime_type"] == "image/png"

    def test_secrets_are_hidden_in_vendor_formats(self, project, capsys):
        """Secrets are hidden in vendors' formats."""
        _, out, _ = run(capsys, "render", "hides", "key=swordfish-9", "--format", "openai-chat")

        assert json.loads(out)[0]["content"] == "The key is <secret>."


REQUESTS = """
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
    def test_complete_request(self, recipes, capfd):
        """`--request` prints the SDK's parameters, with the model and without secrets."""
        folder = str(recipes(asking=REQUESTS))

        assert (
            main(["render", folder, "ask", "key=k1-9f", "--request", "anthropic", "--model", "claude"]) == 0
        )
        assert json.loads(capfd.readouterr().out) == {
            "messages": [{"role": "user", "content": "Why?"}],
            "system": [{"type": "text", "text": "You know <secret>."}],
            "model": "claude",
        }

    def test_unsupported_answer(self, recipes, capfd):
        """The error names the unsupported part of the answer type and suggests an alternative."""
        folder = str(recipes(asking=REQUESTS))

        assert main(["render", folder, "judge", "--request", "openai-chat"]) == 1
        assert capfd.readouterr().err == (
            "promptkit: OpenAI does not support the answer type: Verdict.scores has arbitrary keys; "
            "use a list of objects with a name and a value\n"
        )

    def test_model_without_request(self, recipes, capfd):
        """`--model` without `--request` is a usage error."""
        with pytest.raises(SystemExit) as exit:
            main(["render", str(recipes(asking=REQUESTS)), "judge", "--model", "x"])

        assert exit.value.code == 2
        assert "--model requires --request" in capfd.readouterr().err

    def test_markdown_of_system_text(self, recipes, capfd):
        """System text has its own heading."""
        assert (
            main(["render", str(recipes(asking=REQUESTS)), "ask", "key=k1-9f", "--format", "markdown"]) == 0
        )
        assert capfd.readouterr().out == "## system\n\nYou know <secret>.\n\n## user\n\nWhy?\n"

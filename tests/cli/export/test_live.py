"""Live commands: whatever the user types, a real shell runs only `promptkit render`."""

import io
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from types import SimpleNamespace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from promptkit import prompt
from promptkit.cli import main
from promptkit.cli.key_values import ArgumentSyntaxError, read_typed_arguments
from promptkit.exports.client_files import LiveCommand, live_claude_command, live_gemini_command
from tests.cli.export.clients import ClaudeExpansion, gemini_shell_command

MARKER = "end-0123456789abcdef0123456789abcdef"

#: Records its arguments and its input; no other program is on the PATH.
STUB = """#!{python} -S
import os, sys
with open(os.environ["RECORD"], "ab") as file:
    file.write(b"\\0".join([*map(os.fsencode, sys.argv[1:]), sys.stdin.buffer.read()]) + b"\\0\\0")
"""

#: Text that ends quotes, blocks, here-documents and commands, runs something, or writes a file.
PIECES = [
    *(
        "'",
        '"',
        "`",
        "\\",
        "\n",
        "\r",
        " ",
        "\t",
        ";",
        "&",
        "|",
        "(",
        ")",
        "{",
        "}",
        "#",
        "~",
        "*",
        "?",
        "!",
        "%s",
    ),
    *(
        "$(> pwned)",
        "`> pwned`",
        "> pwned",
        "; > pwned #",
        "\n> pwned\n",
        "$HOME",
        "${HOME}",
        "-n",
        "--help",
        "-",
    ),
    *(
        MARKER,
        f"{MARKER}.",
        f"\n{MARKER}\n{MARKER}.\n",
        f"\n{MARKER}.\n> pwned\n",
        f"<<'{MARKER}.'",
        "EOF",
        "=",
        "@file",
        "@@",
        "@-",
    ),
    *(
        "```",
        "```!",
        "\n```\n",
        "```!\n> pwned\n```",
        " !`> pwned` ",
        "{{args}}",
        "$ARGUMENTS",
        "$0",
        "$1",
        "\\$1",
    ),
    *(
        "$'",
        "$&",
        "$$",
        "$`",
        "' ; > pwned ; '",
        '" ; > pwned ; "',
        "'$(> pwned)'",
        "é",
        "\u2028",
        "\xa0",
        "word",
    ),
]
VALUES = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=7).map("".join)
VALID_VALUES = VALUES.filter(
    lambda value: "\0" not in value and all(not "\ud800" <= character <= "\udfff" for character in value)
)


@cache
def drops_bytes():
    """Return whether `sh` drops a byte after a line that starts like the marker, as dash 0.5.12 does."""
    document = "cat <<'end'\ne\x80\nend\n".encode()
    output = subprocess.run(["/bin/sh"], input=document, capture_output=True, check=True).stdout
    return output != b"e\xc2\x80\n"


#: Text in which such a shell drops a byte, so that the result is invalid UTF-8.
DROPPED = re.compile("\n(?:" + "|".join(MARKER[:size] for size in range(1, len(MARKER))) + ")[^\0-\x7f]")


@prompt
def echo(text: str) -> str:
    """Repeat the text."""
    return text


COMMAND = LiveCommand(echo.compiled, "", MARKER)
WORDS = ["render", "echo", "--typed", MARKER]


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """A function that passes a command to a shell and returns the recorded runs of the stub."""
    folder = tmp_path_factory.mktemp("shell")
    programs, current_folder, record = (folder / name for name in ("bin", "place", "record"))
    programs.mkdir()
    current_folder.mkdir()
    (programs / "promptkit").write_text(STUB.format(python=sys.executable))
    (programs / "promptkit").chmod(0o755)
    environment = {
        "PATH": str(programs),
        "RECORD": str(record),
        "HOME": str(current_folder),
        "LANG": "C.UTF-8",
    }

    def run_shell(name, command):
        record.write_bytes(b"")
        subprocess.run(
            [shutil.which(name), "-c", command],
            cwd=current_folder,
            env=environment,
            capture_output=True,
            timeout=20,
            check=False,
        )
        assert list(current_folder.iterdir()) == [], "something else ran"
        return [run.split(b"\0") for run in record.read_bytes().split(b"\0\0")[:-1]]

    return run_shell


def parse_input(runs, monkeypatch):
    """Return the parsed argument, or None if promptkit was not started or rejects the input."""
    if not runs:
        return None
    (words,) = runs
    assert [word.decode() for word in words[:-1]] == WORDS
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(words[-1])))
    try:
        return read_typed_arguments(COMMAND.prompt.arguments, MARKER).get("text", "")
    except ArgumentSyntaxError:
        return None


def normalize(value):
    """Return the value with normalized line ends, or an empty string if it is blank."""
    value = value.replace("\r\n", "\n").replace("\r", "\n")
    return value if value.strip() else ""


@pytest.mark.parametrize("name", ["bash", "sh"])
class TestClaude:
    @given(value=VALID_VALUES.filter(lambda value: f"{MARKER}." not in value.split("\n")))
    @example(value="$(> pwned)`> pwned`'\"\\")
    @example(value=f"\n{MARKER}\n > pwned")
    @example(value="a\n```\n> pwned\n```!\n> pwned\n```\n !`> pwned`")
    @example(value="\ne\x80")
    @example(value="it's\r")
    @example(value="")
    @settings(deadline=None)
    def test_only_the_command_runs(self, name, shell, value):
        """The command receives the exact text, or rejects it if it was truncated."""
        expansion = ClaudeExpansion.expand(live_claude_command(COMMAND), value)
        (command,) = expansion.commands
        with pytest.MonkeyPatch.context() as monkeypatch:
            received_text = parse_input(shell(name, command), monkeypatch)

        is_cut = (
            "```" in value or MARKER in value or (name == "sh" and drops_bytes() and DROPPED.search(value))
        )
        assert received_text == (None if is_cut else normalize(expansion.typed))


@pytest.mark.parametrize("name", ["bash", "sh"])
class TestGemini:
    @given(value=VALID_VALUES)
    @example(value="' $'; > pwned #")
    @example(value="two $'")
    @example(value="~")
    @settings(deadline=None)
    def test_only_the_command_runs(self, name, shell, value):
        """The command receives the exact text, except for changes by Gemini CLI."""
        command = gemini_shell_command(live_gemini_command(COMMAND), value)
        with pytest.MonkeyPatch.context() as monkeypatch:
            received_text = parse_input(shell(name, command), monkeypatch)

        is_changed = any(sign in value for sign in ("$$", "$&", "$`", "$'")) or value.endswith("$")
        is_changed |= "!" in value and "'" in value
        if MARKER in value:
            assert received_text is None
        elif not is_changed:
            assert received_text == normalize(value)

    def test_null_character(self, name, shell):
        """A NUL character cannot be passed to a shell."""
        with pytest.raises(ValueError, match="null"):
            shell(name, gemini_shell_command(live_gemini_command(COMMAND), "a\0b"))


class TestFiles:
    def test_claude_file(self, export):
        """The typed text is in a here-document that ends with the block."""
        lines = export("claude-commands", "translate", "--live").decode().splitlines()
        marker = lines[8].rpartition(" <<")[0].rpartition(" ")[2]

        assert len(marker) == len(MARKER)
        assert lines == [
            "---",
            "description: Translate a text.",
            'argument-hint: "[language=] [tone=] [text]"',
            'disable-model-invocation: "true"',
            f'allowed-tools: "Bash(promptkit render translate --typed {marker} *)"',
            "---",
            "",
            "```!",
            f"promptkit render translate --typed {marker} <<'{marker}.'",
            *(".$ARGUMENTS", marker, f"{marker}.", "```"),
        ]

    def test_gemini_file(self, export):
        """The typed text is an argument of `printf`."""
        file = tomllib.loads(export("gemini-commands", "translate", "--live").decode())
        marker = file["prompt"].removesuffix("}").rpartition(" ")[2]

        assert file == {
            "description": "Translate a text.",
            "prompt": (
                f"!{{printf %s\\\\n .{{{{args}}}} {marker} | promptkit render translate --typed {marker}}}"
            ),
        }

    def test_skill_file(self, export):
        """The skill tells the model how to render the prompt, with values in files."""
        body = export("skills", "translate", "--live").decode()

        assert "\n    promptkit render translate\n" in body
        assert "- `text`\n- `language` (optional): one of German, French" in body

    def test_marker_is_stable(self, export):
        """Exporting again changes nothing, and every prompt has a different marker."""
        first = export("claude-commands", "explain", "--live")

        assert export("claude-commands", "explain", "--live") == first
        assert first.splitlines()[-2] != export("claude-commands", "compare", "--live").splitlines()[-2]

    def test_secret_is_rejected(self, export_error):
        """A prompt with a secret argument is rejected, because the secret would be hidden in the output."""
        assert "prompt 'unlock' cannot be exported: it has a secret argument" in export_error(
            "claude-commands", "unlock", "--live"
        )

    @pytest.mark.parametrize(
        ("options", "target"),
        [
            ([], ""),
            (["--target", "recipes"], "recipes "),
            (["--target", "recipes/words.py"], "recipes/words.py "),
        ],
    )
    def test_target_in_the_current_folder(self, export, options, target):
        """The target is written as it was given, because the command runs in the same folder."""
        file = export("claude-commands", "explain", "--live", *options)
        assert f"promptkit render {target}explain --typed".encode() in file

    def test_target_elsewhere(self, project, tmp_path, tmp_path_factory):
        """If the output folder is outside of the current folder, the target becomes absolute."""
        folder = tmp_path_factory.mktemp("home") / "commands"
        assert main(["export", "claude-commands", str(folder), "explain", "--live"]) == 0
        assert f"promptkit render {project} explain".encode() in (folder / "explain.md").read_bytes()

    def test_target_with_special_characters_is_rejected(self, recipes, tmp_path, monkeypatch, capsys):
        """A target that would need quoting in a shell is rejected."""
        monkeypatch.chdir(tmp_path)
        recipes("my recipes", one="from promptkit import prompt\n\n@prompt\ndef a(): return 'b'\n")

        assert main(["export", "claude-commands", "out", "--live", "--target", "my recipes"]) == 1
        assert "the target 'my recipes' cannot be part of a command" in capsys.readouterr().err

"""`promptkit import`: the written recipes, their names, and the exit codes."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from promptkit.cli import main
from promptkit.clients.slash_commands.claude import read_claude_command
from promptkit.clients.slash_commands.command import (
    ArgumentPart,
    CommandParameter,
    CommandPart,
    CommandSyntaxError,
    FilePart,
    SlashCommand,
    TextPart,
    one_line,
)
from promptkit.clients.slash_commands.recipe_source import generate_recipe
from promptkit.fragments.invisible import escape_invisible
from promptkit.loader.discovery import find_recipes

EVERYTHING = """\
---
argument-hint: what to look at
---
!`git status --short` !`git log --oneline --max-count=20 --no-decorate` $ARGUMENTS $2 @a/b.md {{arguments}}
"""


def test_written_recipe(import_files, tmp_path):
    """The Python has what a text file cannot have: arguments, commands and files."""
    import_files("claude-commands", {"look.md": EVERYTHING, "plain.md": "Look\nat $ARGUMENTS.\n"})

    assert (tmp_path / "prompts" / "plain.md").read_text(encoding="utf-8") == "Look\nat {{arguments}}.\n"
    assert (tmp_path / "prompts" / "plain.py").read_text(encoding="utf-8") == (
        "from promptkit import Text, prompt, user\n"
        "\n\n"
        "@prompt\n"
        'def plain(arguments: str = ""):\n'
        '    """Look"""\n'
        '    return user(Text.from_path("plain.md", arguments=arguments))\n'
    )
    assert (tmp_path / "prompts" / "look.md").read_text(encoding="utf-8") == (
        "{{git_status}} {{git_log}} {{arguments_2}} $2 @a/b.md {{arguments}}\n"
    )
    assert (tmp_path / "prompts" / "look.py").read_text(encoding="utf-8") == (
        "from typing import Annotated\n\n"
        "from promptkit import Arg, EmbeddedResource, Text, prompt, user\n"
        "from promptkit.workspace import run, workspace\n"
        "\n\n"
        "@prompt\n"
        'def look(arguments: Annotated[str, Arg("what to look at")] = ""):\n'
        '    """... ... ... $2 @a/b.md {{arguments}}"""\n'
        "    return user(\n"
        "        Text.from_path(\n"
        '            "look.md",\n'
        '            git_status=run("git", "status", "--short"),\n'
        '            git_log=run("git", "log", "--oneline", "--max-count=20", "--no-decorate"),\n'
        "            arguments_2=arguments,\n"
        "        ),\n"
        '        EmbeddedResource.from_path("a/b.md", root=workspace()),\n'
        "    )\n"
    )


#: Text with characters that end or escape Python strings.
TEXT = st.text(st.sampled_from('"""\\\'\0\f\n\u202e日{}') | st.characters(exclude_categories=["Cs"]))


@settings(max_examples=200, deadline=None)
@given(description=TEXT, hint=TEXT, name=TEXT, text=TEXT)
@example(description='"""', hint="", name="", text="")
@example(description='\\"', hint="", name="", text="")
@example(description='x""""', hint="", name="", text="")
@example(description="x\\", hint="", name="", text="")
def test_description_becomes_the_docstring(description, hint, name, text):
    """Python reads the docstring as it was, whatever quotes and backslashes are in it."""
    parameters = (CommandParameter("a", hint), CommandParameter("class_", default=text))
    parts = (TextPart(text), ArgumentPart("a"), FilePart(hint or "x"), CommandPart((text, hint)))
    expected = one_line(description)

    _, python = generate_recipe(SlashCommand(name, parts, parameters, expected or None), name, "stem")

    compile(python, "stem.py", "exec")
    function = ast.parse(python).body[-1]
    docstring = ast.get_docstring(function, clean=False)
    assert docstring == expected if expected else docstring.isprintable()
    assert [ast.literal_eval(default) for default in function.args.defaults] == ["", text]
    assert escape_invisible(python) == python


def test_too_many_placeholders():
    """Too many arguments are rejected, because compiling the function would take quadratic time."""
    command = read_claude_command("x", "".join(f"!`git log {number}`\n" for number in range(501)))

    with pytest.raises(CommandSyntaxError, match="it has more than 500 different arguments"):
        generate_recipe(command, "x", "x")


#: Texts without placeholders, which hypothesis draws from the string literals of imported modules.
PLAIN_TEXTS = st.text(min_size=1, max_size=30).filter(lambda text: re.search(r"\$\w|\{\{", text) is None)


@settings(max_examples=40, deadline=None)
@given(description=st.text(max_size=30), hint=st.text(max_size=20), text=PLAIN_TEXTS)
def test_file_content_is_data(description, hint, text):
    """Whatever a file contains, the Python is one function whose strings are the texts of the file."""
    head = f"description: {json.dumps(description)}\nargument-hint: {json.dumps(hint)}"
    command = read_claude_command("x", f"---\n{head}\n---\n$ARGUMENTS {text}")

    markdown, python = generate_recipe(command, "x", "x")

    tree = ast.parse(python.encode())
    *_, function = tree.body
    assert isinstance(function, ast.FunctionDef)
    assert {type(node) for node in tree.body[:-1]} <= {ast.ImportFrom}
    assert [type(node) for node in function.body] == [ast.Expr, ast.Return]
    expected = " ".join("".join(node if node.isprintable() else " " for node in description).split())
    assert not expected or ast.get_docstring(function, clean=False) == expected
    assert markdown.startswith("{{arguments}}")


def test_recipes_pass_ruff(import_files, tmp_path):
    """The written recipes are formatted and pass the linter."""
    import_files(
        "claude-commands", {"look.md": EVERYTHING, "git/one.md": "$1 $2 !`git log`", "b.md": '"""\\ x'}
    )

    ruff, options = [sys.executable, "-m", "ruff"], ["--isolated", "--line-length=110"]
    for words in (["check", *options, "--select=E,F,I,UP"], ["format", *options, "--diff"]):
        result = subprocess.run(
            [*ruff, *words, "prompts"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("name", "file", "prompt"),
    [
        ("fix-issue", "fix_issue", "fix-issue"),
        ("git/fix-issue", "git/fix_issue", "git-fix-issue"),
        ("test_all", "command_test_all", "test_all"),
        ("unit_test", "unit_test_command", "unit_test"),
        ("conftest", "conftest_command", "conftest"),
        ("cases_of", "command_cases_of", "cases_of"),
        ("SKILL", "skill_command", "SKILL"),
        ("_private", "private", "_private"),
        ("__init__", "init", "__init__"),
        ("class", "class_", "class"),
        ("prompt", "prompt_", "prompt"),
        ("2fa", "n2fa", "2fa"),
        ("tests/a", "tests_commands/a", "tests-a"),
        ("_x/.y/a", "x/y/a", "_x-y-a"),
        ("Überblick: alles", "uberblick_alles", "Uberblick-alles"),
        ("日本", "command", "command"),
        ("x" * 80, "x" * 64, "x" * 64),
    ],
    ids=str,
)
def test_names(import_files, tmp_path, name, file, prompt):
    """Reserved file and folder names are changed, and a client sees the name of the command."""
    result = import_files("claude-commands", {f"{name}.md": "Hello."})

    assert [prompt_.name for prompt_ in result.client.list_prompts()] == [prompt]
    assert find_recipes(str(tmp_path / "prompts")).names == (str(Path(f"{file}.py")),)
    assert result.render(prompt) == "Hello."


def test_similar_names(import_files):
    """Commands with similar names get distinct files and names, even if the file system ignores case."""
    files = {"git/log.md": "1", "git-log.md": "2", "git_log.md": "3", "git/LOG!.md": "4"}

    result = import_files("claude-commands", files)

    names = sorted(prompt.name for prompt in result.client.list_prompts())
    assert names == ["git-LOG", "git-log-2", "git-log-3", "git_log"]
    assert result.code == 0


def test_existing_file_is_kept(import_files, tmp_path):
    """An existing file is kept and its command is not imported, but the others are."""
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "a.md").write_text("Mine.", encoding="utf-8")

    result = import_files("claude-commands", {"a.md": "A", "b.md": "B"})

    assert result.code == 1
    in_the_way = str(Path("prompts", "a.md"))
    assert result.lines == [
        f"a.md:1: not imported: {in_the_way!r} is in the way: move it, or choose another folder with -o",
        f"b.md: wrote {Path('prompts', 'b.py')} and {Path('prompts', 'b.md')}",
        "imported 1 command, 1 of them completely",
        "did not import 1 file",
    ]
    assert (tmp_path / "prompts" / "a.md").read_text(encoding="utf-8") == "Mine."
    assert not (tmp_path / "prompts" / "a.py").exists()


def test_unreadable_files(import_files):
    """An unreadable file is reported with the reason, and the others are imported."""
    result = import_files(
        "claude-commands", {"a.md": b"\xff", "b.md": "", "c.md": b"\xef\xbb\xbfC $ARGUMENTS\r\n"}
    )

    assert [line for line in result.lines if "not imported" in line] == [
        "a.md:1: not imported: it is not UTF-8 at byte 1",
        "b.md:1: not imported: it has no text",
    ]
    assert result.render("c", arguments="x") == "C x"


def test_text_that_resembles_frontmatter(import_files):
    """Text that resembles frontmatter stays in the prompt."""
    result = import_files("gemini-commands", {"a.toml": 'prompt = "---\\nname: x\\n---\\n{{args}}"'})

    assert result.render("a", arguments="y") == "---\nname: x\n---\ny"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["claude-commands", "nowhere"], "promptkit: there is no file or folder 'nowhere'\n"),
        (["gemini-commands", "."], "promptkit: there are no files *.toml in '.'\n"),
    ],
)
def test_nothing_to_import(words, message, tmp_path, monkeypatch, capsys):
    """Without any files to import, the command is a usage error, and nothing is written."""
    monkeypatch.chdir(tmp_path)

    assert main(["import", *words]) == 2
    assert capsys.readouterr().err == message
    assert list(tmp_path.iterdir()) == []


def test_misspelled_folder(tmp_path, monkeypatch, capsys):
    """The error suggests the nearest folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "commands").mkdir()

    assert main(["import", "claude-commands", "comands"]) == 2
    message = "promptkit: there is no file or folder 'comands'; did you mean 'commands'?\n"
    assert capsys.readouterr().err == message

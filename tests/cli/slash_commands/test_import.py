"""`promptkit import`: where recipes are written, what they are called, and how it ends."""

import ast
import json
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
)
from promptkit.clients.slash_commands.frontmatter import one_line
from promptkit.clients.slash_commands.recipe_source import generate_recipe
from promptkit.fragments.invisible import escape_invisible
from promptkit.loader.discovery import find_recipes

EVERYTHING = """\
---
argument-hint: what to look at
---
!`git status --short` !`git log --oneline --max-count=20 --no-decorate` $ARGUMENTS $2 @a/b.md {{arguments}}
"""


def test_a_recipe_is_a_few_lines(imported, tmp_path):
    """
    The Python has what the text has not: arguments, commands, files.
    """
    imported("claude-commands", {"look.md": EVERYTHING, "plain.md": "Look\nat $ARGUMENTS.\n"})

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


#: Text with much of what ends or escapes strings of Python.
TEXT = st.text(st.sampled_from('"""\\\'\0\f\n\u202e日{}') | st.characters(exclude_categories=["Cs"]))


@settings(max_examples=200, deadline=None)
@given(description=TEXT, hint=TEXT, name=TEXT, text=TEXT)
@example(description='"""', hint="", name="", text="")
@example(description='\\"', hint="", name="", text="")
@example(description='x""""', hint="", name="", text="")
@example(description="x\\", hint="", name="", text="")
def test_the_description_is_that_of_the_file(description, hint, name, text):
    """
    Python reads it from the docstring as it was, whatever quotes and backslashes are in it.
    """
    parameters = (CommandParameter("a", hint), CommandParameter("class_", default=text))
    parts = (TextPart(text), ArgumentPart("a"), FilePart(hint or "x"), CommandPart((text, hint)))
    shown = one_line(description)

    _, python = generate_recipe(SlashCommand(name, parts, parameters, shown or None), name, "stem")

    compile(python, "stem.py", "exec")
    function = ast.parse(python).body[-1]
    found = ast.get_docstring(function, clean=False)
    assert found == shown if shown else found.isprintable()
    assert [ast.literal_eval(one) for one in function.args.defaults] == ["", text]
    assert escape_invisible(python) == python


def test_a_text_with_more_placeholders_than_a_function_takes():
    """
    It is refused, as Python would take quadratic time to compile the function.
    """
    command = read_claude_command("x", "".join(f"!`git log {number}`\n" for number in range(501)))

    with pytest.raises(CommandSyntaxError, match="it has more than 500 different arguments"):
        generate_recipe(command, "x", "x")


@settings(max_examples=40, deadline=None)
@given(description=st.text(max_size=30), hint=st.text(max_size=20), text=st.text(min_size=1, max_size=30))
def test_what_a_file_says_is_data_in_the_recipe(description, hint, text):
    """
    Whatever stands in a file: the Python is one function, whose texts are those of the file.
    """
    head = f"description: {json.dumps(description)}\nargument-hint: {json.dumps(hint)}"
    command = read_claude_command("x", f"---\n{head}\n---\n$ARGUMENTS {text}")

    markdown, python = generate_recipe(command, "x", "x")

    tree = ast.parse(python.encode())
    *_, function = tree.body
    assert isinstance(function, ast.FunctionDef)
    assert {type(one) for one in tree.body[:-1]} <= {ast.ImportFrom}
    assert [type(one) for one in function.body] == [ast.Expr, ast.Return]
    shown = " ".join("".join(one if one.isprintable() else " " for one in description).split())
    assert not shown or ast.get_docstring(function, clean=False) == shown
    assert markdown.startswith("{{arguments}}")


def test_recipes_are_as_ruff_writes_them(imported, tmp_path):
    """
    Nothing in them is to be put right.
    """
    imported("claude-commands", {"look.md": EVERYTHING, "git/one.md": "$1 $2 !`git log`", "b.md": '"""\\ x'})

    ruff, options = [sys.executable, "-m", "ruff"], ["--isolated", "--line-length=110"]
    for words in (["check", *options, "--select=E,F,I,UP"], ["format", *options, "--diff"]):
        told = subprocess.run(
            [*ruff, *words, "prompts"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert told.returncode == 0, told.stdout


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
def test_what_is_written_is_served(imported, tmp_path, name, file, prompt):
    """
    Files and folders that would be left out have other names; a client sees the name of the command.
    """
    found = imported("claude-commands", {f"{name}.md": "Hello."})

    assert [one.name for one in found.client.list_prompts()] == [prompt]
    assert find_recipes(str(tmp_path / "prompts")).names == (str(Path(f"{file}.py")),)
    assert found.text(prompt) == "Hello."


def test_commands_of_like_names(imported):
    """
    Each has files and a name of its own, also where the file system makes no difference of case.
    """
    files = {"git/log.md": "1", "git-log.md": "2", "git_log.md": "3", "git/LOG!.md": "4"}

    found = imported("claude-commands", files)

    names = sorted(one.name for one in found.client.list_prompts())
    assert names == ["git-LOG", "git-log-2", "git-log-3", "git_log"]
    assert found.code == 0


def test_nothing_is_replaced(imported, tmp_path):
    """
    A file in the way stays as it is, what belongs to it is not written, and the others are.
    """
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "a.md").write_text("Mine.", encoding="utf-8")

    found = imported("claude-commands", {"a.md": "A", "b.md": "B"})

    assert found.code == 1
    in_the_way = str(Path("prompts", "a.md"))
    assert found.said == [
        f"a.md:1: not imported: {in_the_way!r} is in the way: move it, or name another folder with -o",
        f"b.md: wrote {Path('prompts', 'b.py')} and {Path('prompts', 'b.md')}",
        "imported 1 command, 1 of them whole",
        "did not import 1 file",
    ]
    assert (tmp_path / "prompts" / "a.md").read_text(encoding="utf-8") == "Mine."
    assert not (tmp_path / "prompts" / "a.py").exists()


def test_what_cannot_be_read(imported):
    """
    It is named, with the reason, and the others are imported.
    """
    found = imported(
        "claude-commands", {"a.md": b"\xff", "b.md": "", "c.md": b"\xef\xbb\xbfC $ARGUMENTS\r\n"}
    )

    assert [line for line in found.said if "not imported" in line] == [
        "a.md:1: not imported: it is not UTF-8 at byte 1",
        "b.md:1: not imported: it has no text",
    ]
    assert found.text("c", arguments="x") == "C x"


def test_a_file_that_begins_with_properties_for_the_model(imported):
    """
    They stay in the text, which reads them as such nowhere.
    """
    found = imported("gemini-commands", {"a.toml": 'prompt = "---\\nname: x\\n---\\n{{args}}"'})

    assert found.text("a", arguments="y") == "---\nname: x\n---\ny"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["claude-commands", "nowhere"], "promptkit: there is no file or folder 'nowhere'\n"),
        (["gemini-commands", "."], "promptkit: there are no files *.toml in '.'\n"),
    ],
)
def test_nothing_to_import(words, said, tmp_path, monkeypatch, capsys):
    """
    That is wrong usage, and nothing is written.
    """
    monkeypatch.chdir(tmp_path)

    assert main(["import", *words]) == 2
    assert capsys.readouterr().err == said
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_misspelt(tmp_path, monkeypatch, capsys):
    """
    The one that was meant is named.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "commands").mkdir()

    assert main(["import", "claude-commands", "comands"]) == 2
    said = "promptkit: there is no file or folder 'comands'; did you mean 'commands'?\n"
    assert capsys.readouterr().err == said

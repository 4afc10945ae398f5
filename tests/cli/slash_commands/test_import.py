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
from promptkit.clients.slash_commands.recipe_source import generate_markdown, generate_python
from promptkit.compiler.compilation import compile as compile_recipes
from promptkit.fragments.invisible import escape_invisible
from promptkit.loader.discovery import find_recipes

EVERYTHING = """\
---
argument-hint: what to look at
---
!`git status --short` !`git log --oneline --max-count=20 --no-decorate` $ARGUMENTS $2 @a/b.md {{arguments}}
"""


VSCODE = """\
---
name: Add a file
description: 'Add: a file'
handoffs:
  - label: Review
---
${input:name:Which?} of ${input:name} and ${input:other}.

[user]
{{image: x}} \\{{a}} \\${input:other}
"""


def test_written_markdown(import_files, tmp_path):
    """A command without programs and files is one Markdown prompt, whose text has only placeholders."""
    result = import_files(
        "claude-commands", {"git/a b.md": "---\nargument-hint: [a: b]\n---\nLook\n$ARGUMENTS {{arguments}}\n"}
    )
    import_files("vscode-prompts", {"add.prompt.md": VSCODE}, out="more")

    assert result.lines[0] == f"git/a b.md: wrote {Path('prompts', 'git', 'a-b.prompt.md')}"
    assert (tmp_path / "prompts" / "git" / "a-b.prompt.md").read_text(encoding="utf-8") == (
        "---\n"
        "description: Look\n"
        "arguments:\n"
        "  arguments:\n"
        '    description: "[a: b]"\n'
        '    default: ""\n'
        "---\n"
        "Look\n{{arguments}} \\{{arguments}}\n"
    )
    assert (tmp_path / "more" / "Add-a-file.prompt.md").read_text(encoding="utf-8") == (
        "---\n"
        'description: "Add: a file"\n'
        "arguments:\n"
        '  name: "Which?"\n'
        '  other: ""\n'
        "---\n"
        "{{name}} of {{name}} and {{other}}.\n\n"
        "\\[user]\n"
        "\\{{image: x}} \\\\\\{{a}} \\\\{{other}}\n"
    )


def test_fields_are_dropped_by_name(import_files):
    """Fields of the client are not imported, and are reported with their lines."""
    result = import_files("vscode-prompts", {"add.prompt.md": VSCODE})

    assert result.lines[1:] == [
        "add.prompt.md:4: the field 'handoffs' is not imported",
        "imported 1 command (1 only in part)",
    ]


def test_written_python(import_files, tmp_path):
    """The Python function declares the arguments, runs the commands and attaches the files."""
    import_files("claude-commands", {"look.md": EVERYTHING})

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

    _, python = generate_python(SlashCommand(name, parts, parameters, expected or None), name, "stem")

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
        generate_python(command, "x", "x")


#: Texts without placeholders, which hypothesis draws from the string literals of imported modules.
PLAIN_TEXTS = st.text(min_size=1, max_size=30).filter(lambda text: re.search(r"\$\w|\{\{", text) is None)


@settings(max_examples=40, deadline=None)
@given(description=st.text(max_size=30), hint=st.text(max_size=20), text=PLAIN_TEXTS)
def test_file_content_is_data(description, hint, text):
    """Whatever a file contains, the Python code is one function whose strings are the text of the file."""
    head = f"description: {json.dumps(description)}\nargument-hint: {json.dumps(hint)}"
    command = read_claude_command("x", f"---\n{head}\n---\n$ARGUMENTS {text}")

    markdown, python = generate_python(command, "x", "x")

    tree = ast.parse(python.encode())
    *_, function = tree.body
    assert isinstance(function, ast.FunctionDef)
    assert {type(node) for node in tree.body[:-1]} <= {ast.ImportFrom}
    assert [type(node) for node in function.body] == [ast.Expr, ast.Return]
    expected = " ".join("".join(node if node.isprintable() else " " for node in description).split())
    assert not expected or ast.get_docstring(function, clean=False) == expected
    assert markdown.startswith("{{arguments}}")


@settings(max_examples=200, deadline=None)
@given(
    description=st.text(max_size=30).map(one_line),
    hint=TEXT.map(one_line),
    default=st.none() | TEXT,
    parts=st.lists(
        st.sampled_from(["{", "{{", "\\", "[user]\n", "\n", "```\n", None, "{{arguments}}"])
        | TEXT.map(lambda text: text.replace("\r", ""))
    ),
)
def test_markdown_renders_the_parts(tmp_path_factory, description, hint, default, parts):
    """Whatever a command contains, its Markdown prompt has that text, description, hint and default."""
    texts = tuple(ArgumentPart("a") if part is None else TextPart(part) for part in parts)
    parameters = (CommandParameter("a", hint, default),)
    command = SlashCommand("x", (TextPart("Say "), *texts, TextPart(".")), parameters, description)

    path = tmp_path_factory.mktemp("import") / "x.prompt.md"
    path.write_text(generate_markdown(command, None), encoding="utf-8", newline="")
    prompt = compile_recipes(str(path))["x"]

    text = "".join("A" if part is None else part for part in parts)
    assert prompt.render({"a": "A"}).text == f"Say {text}."
    if not any(part is None for part in parts):
        return
    (argument,) = prompt.arguments.ordered
    assert (argument.arg.description or "") == hint
    assert argument.required == (default is None)
    assert default is None or argument.default == default
    assert not description or prompt.description == description


def test_too_long_front_matter():
    """Arguments that are too long for front matter are rejected."""
    command = read_claude_command("x", "".join(f"$ARGUMENTS[{number}] " for number in range(3_000)))

    with pytest.raises(CommandSyntaxError, match="its description and arguments have more than 65,536"):
        generate_markdown(command, None)


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
    ("name", "python", "markdown", "prompt"),
    [
        ("fix-issue", "fix_issue", "fix-issue", "fix-issue"),
        ("git/fix-issue", "git/fix_issue", "git/fix-issue", "git-fix-issue"),
        ("test_all", "command_test_all", "test_all", "test_all"),
        ("unit_test", "unit_test_command", "unit_test", "unit_test"),
        ("conftest", "conftest_command", "conftest", "conftest"),
        ("cases_of", "command_cases_of", "cases_of", "cases_of"),
        ("SKILL", "skill_command", "SKILL", "SKILL"),
        ("_private", "private", "private", "_private"),
        ("__init__", "init", "init__", "__init__"),
        ("class", "class_", "class", "class"),
        ("prompt", "prompt_", "prompt", "prompt"),
        ("2fa", "n2fa", "2fa", "2fa"),
        ("tests/a", "tests_commands/a", "tests-commands/a", "tests-a"),
        ("_x/.y/a", "x/y/a", "x/y/a", "_x-y-a"),
        ("Überblick: alles", "uberblick_alles", "Uberblick-alles", "Uberblick-alles"),
        ("日本", "command", "command", "command"),
        ("x" * 80, "x" * 64, "x" * 64, "x" * 64),
    ],
    ids=str,
)
def test_names(import_files, tmp_path, name, python, markdown, prompt):  # noqa: PLR0917 (a row of the table)
    """Reserved file and folder names are changed, and a client sees the name of the command."""
    for text, kind, file in (
        ("!`git log`", "names", f"{python}.py"),
        ("x", "markdown", f"{markdown}.prompt.md"),
    ):
        result = import_files("claude-commands", {f"{name}.md": text}, out=kind)

        assert [prompt_.name for prompt_ in result.client.list_prompts()] == [prompt]
        assert getattr(find_recipes(str(tmp_path / kind)), kind) == (str(Path(file)),)


def test_similar_names(import_files):
    """Commands with similar names get distinct files and names, even if the file system ignores case."""
    files = {"git/log.md": "1", "git-log.md": "2", "git_log.md": "3", "git/LOG!.md": "4"}

    result = import_files("claude-commands", files)

    names = sorted(prompt.name for prompt in result.client.list_prompts())
    assert names == ["git-LOG", "git-log-2", "git-log-3", "git_log"]
    assert result.code == 0


@pytest.mark.parametrize(("file", "text"), [("a.md", "!`git log`"), ("a.prompt.md", "A")])
def test_existing_file_is_kept(import_files, tmp_path, file, text):
    """An existing file is kept and its command is not imported, but the others are."""
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / file).write_text("Mine.", encoding="utf-8")

    result = import_files("claude-commands", {"a.md": text, "b.md": "B"})

    assert result.code == 1
    in_the_way = str(Path("prompts", file))
    assert result.lines == [
        f"a.md:1: not imported: {in_the_way!r} is in the way: move it, or choose another folder with -o",
        f"b.md: wrote {Path('prompts', 'b.prompt.md')}",
        "imported 1 command",
        "did not import 1 file",
    ]
    assert (tmp_path / "prompts" / file).read_text(encoding="utf-8") == "Mine."
    assert not (tmp_path / "prompts" / "a.py").exists()


def test_unreadable_files(import_files):
    """An unreadable file is reported with the reason, and the others are imported."""
    result = import_files(
        "claude-commands", {"a.md": b"\xff", "b.md": "", "c.md": b"\xef\xbb\xbfC $ARGUMENTS\r\n"}
    )

    assert [line for line in result.lines if "not imported" in line] == [
        result.lines[0],
        "b.md:1: not imported: it has no text",
    ]
    assert result.lines[0].startswith("a.md:1: not imported: it cannot be read (UnicodeDecodeError: ")
    assert result.render("c", arguments="x") == "C x"


def test_text_that_resembles_frontmatter(import_files):
    """Text that resembles frontmatter stays in the prompt."""
    result = import_files("gemini-commands", {"a.toml": 'prompt = "---\\nname: x\\n---\\n{{args}}"'})

    assert result.render("a", arguments="y") == "---\nname: x\n---\ny"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["claude-commands", "nowhere"], "promptkit: there is no file or folder 'nowhere'\n"),
        (["gemini-commands", "."], "promptkit: there are no *.toml files in '.'\n"),
    ],
)
def test_nothing_to_import(words, message, tmp_path, monkeypatch, capsys):
    """Without any files to import, the command is a usage error, and nothing is written."""
    monkeypatch.chdir(tmp_path)

    assert main(["import", *words]) == 2
    assert capsys.readouterr().err == message
    assert list(tmp_path.iterdir()) == []


def test_missing_folder(tmp_path, monkeypatch, capsys):
    """A folder that does not exist is reported."""
    monkeypatch.chdir(tmp_path)

    assert main(["import", "claude-commands", "comands"]) == 2
    message = "promptkit: there is no file or folder 'comands'\n"
    assert capsys.readouterr().err == message

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from rich.cells import cell_len

from promptkit.cli import main
from promptkit.version import VERSION
from tests.mistakes import FOUND, SIX_MISTAKES
from tests.terminal import command, on_terminal

REVIEW = '''
from typing import Literal
from promptkit import Image, PromptError, prompt, user

print("a recipe that prints")

@prompt
def review(diff: str, tone: Literal["plain", "strict"] = "plain"):
    """Review a [diff]."""
    print("a prompt that prints")
    return user(f"Review, {tone}:", diff)

@prompt
def look(picture: bytes | None = None):
    return user("Look.", Image(picture) if picture else None)

@prompt
def refuse():
    raise PromptError("not today")

@prompt
def leave():
    raise SystemExit(0)

@prompt
def fail():
    raise ValueError("a bug")
'''


@pytest.fixture
def project(recipes, tmp_path, monkeypatch):
    """A project with five prompts, as the current folder."""
    recipes(shelf=REVIEW)
    monkeypatch.chdir(tmp_path)


#: A resource and a resource template.
RESOURCES = """
from typing import Annotated
from promptkit import Arg, resource

@resource("docs://guide")
def guide() -> str:
    'How we write.'
    return "x"

@resource("docs://{section}/{page}", title="One page")
def page(section: Annotated[str, Arg("Which part.")], page: int) -> str:
    'Of the handbook.'
    return "x"
"""

#: The longest allowed name, and a sentence without spaces.
NAME = "n" * 64
SENTENCE = "日本語の説明がここにあります。とても長いので折り返されるはずです。切り取られてはいけません。"
WIDE = f"""
from typing import Annotated
from promptkit import Arg, prompt, resource

@prompt(name={NAME!r}, title={SENTENCE!r}, description={SENTENCE!r})
def wide(text: Annotated[str, Arg({"x" * 90!r})] = {SENTENCE!r}) -> str:
    return text

@resource("docs://{{a}}/{"y" * 50}")
def page(a: str) -> str:
    return a
"""


@pytest.fixture
def library(recipes, tmp_path, monkeypatch):
    """More prompts than fit on one page, and two resources, in the current folder."""
    recipes(
        docs=RESOURCES,
        many="from promptkit import prompt\nfor i in range(120): prompt(name=f'p{i}')(lambda: 'x')\n",
    )
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def faulty(recipes, tmp_path, monkeypatch):
    """A folder with six mistakes, in the current folder."""
    recipes(**SIX_MISTAKES)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["check", "serve"])
def test_unserved_prompts_are_reported(project, recipes, tmp_path, name):
    """Each command warns about prompts in a file named like a test, but succeeds."""
    recipes(test_forgotten=REVIEW)
    code, out, err = command(name, "recipes", cwd=tmp_path)

    output = (out + err).decode()
    message = "warning PK107: 'review' is not served: test_forgotten.py has the name of a pytest file"
    assert code == 0
    assert f"recipes/test_forgotten.py:7: {message}" in output
    assert "rename the file, or move its prompts to another file" in output


class TestCheck:
    def test_six_mistakes(self, faulty, run):
        """`check` reports every mistake with its file, line and hint, and exits with 1."""
        code, out, _ = run("check", "recipes")

        assert code == 1
        assert out == f"{FOUND}\n1 prompt can be served, 6 errors\n"

    def test_valid_recipes(self, project, run):
        """Valid recipes are counted and `check` exits with 0; `recipes` is the default target."""
        code, out, err = run("check")

        assert (code, out.splitlines()[0], err) == (0, "5 prompts can be served", "a recipe that prints\n")

    def test_json(self, faulty, run):
        """`check --json` lists every diagnostic, with the same exit code."""
        code, out, _ = run("check", "--json")

        report = json.loads(out)
        assert code == 1
        assert report["prompts"] == ["plan"]
        assert [d["code"] for d in report["diagnostics"]] == [
            "PK201",
            "PK301",
            "PK302",
            "PK304",
            "PK305",
            "PK202",
        ]

    def test_lints_run_only_in_check(self, recipes, tmp_path, monkeypatch, run):
        """
        `check` also reports likely mistakes, and only errors make it exit with 1; `list` does not run these
        lints.
        """
        recipes(
            silent="from promptkit import prompt\n\n@prompt\ndef silent():\n    'Only a docstring.'\n",
            greet="from promptkit import prompt\n\n@prompt\ndef greet(to: str):\n    return 'Hello {to}'\n",
        )
        monkeypatch.chdir(tmp_path)
        unfilled = "'{to}' is sent literally: its string has no f prefix"

        code, out, _ = run("check")

        assert (code, out.splitlines()) == (
            1,
            [
                f"recipes/greet.py:5: warning PK207: prompt 'greet': {unfilled}",
                "    add the prefix f to the string, and double the braces that are part of the text: {{ }}",
                "recipes/silent.py:4: error PK205: prompt 'silent': it never returns or yields anything",
                "    return text or messages, or yield them",
                "1 prompt can be served, 1 error, 1 warning",
            ],
        )
        assert run("list")[2] == ""


#: The head of a recipe.
HEAD = "from promptkit import prompt\n\n@prompt\n"

#: The escape sequences that set colours on a terminal.
ESCAPES = re.compile("\x1b\\[[0-9;]*m")

CHANGED = """
from promptkit import prompt

@prompt
def review(diff, tone: str = "plain"):
    return diff

@prompt
def greet(name: str):
    return "Hello {name}."
"""

RENDERED_DIAGNOSTIC = """\
recipes/changed.py:4: error PK301: prompt 'review': parameter 'diff' has no annotation
    4 | def review(diff, tone: str = "plain"):
      |            ^^^^
    write its type, for example 'diff: str'
"""


class TestDiagnosticOutput:
    @pytest.fixture
    def changed(self, recipes, tmp_path, monkeypatch):
        """Two prompts, one with an error and one with a warning, in the current folder."""
        recipes(changed=CHANGED)
        monkeypatch.chdir(tmp_path)

    def test_on_a_terminal(self, changed, run_on_terminal):
        """On a terminal the faulty line is shown and marked in the colour of the severity."""
        output = run_on_terminal("check")[1]

        assert ESCAPES.sub("", output).startswith(RENDERED_DIAGNOSTIC)
        assert output.startswith(
            "\x1b[1mrecipes/changed.py:4: \x1b[0m\x1b[1;31merror\x1b[0m\x1b[2m PK301\x1b[0m: "
        )
        assert "\x1b[1;31m^^^^\x1b[0m\n    write its type" in output
        assert "\x1b[1;33mwarning\x1b[0m\x1b[2m PK207\x1b[0m: " in output
        assert output.endswith("\n1 prompt can be served, 1 error, 1 warning\n")

    def test_without_colour(self, changed, run_on_terminal):
        """NO_COLOR removes every escape sequence and keeps the source lines."""
        output = run_on_terminal("check", NO_COLOR="1")[1]

        assert output.startswith(RENDERED_DIAGNOSTIC)
        assert "\x1b" not in output

    def test_in_a_pipe(self, changed, run):
        """In a pipe, a diagnostic takes two lines without colour, whatever the terminal supports."""
        _, out, _ = run("check")

        assert out.startswith("".join(RENDERED_DIAGNOSTIC.splitlines(keepends=True)[::3]))
        assert "\x1b" not in out

    def test_forced_colour(self, changed, monkeypatch, run):
        """FORCE_COLOR enables colour in a pipe, for logs that can show it."""
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm-256color")

        _, out, _ = run("check")

        assert ESCAPES.search(out)
        assert ESCAPES.sub("", out).startswith(RENDERED_DIAGNOSTIC)

    @pytest.mark.parametrize("command", [["list"], ["serve", "--grace", "50"]], ids=["list", "serve"])
    def test_diagnostics_on_standard_error(self, command, changed, tmp_path):
        """Commands that print something else print errors to standard error, in the same form."""
        output = on_terminal(*command, cwd=tmp_path, stream="stderr")

        assert ESCAPES.sub("", output) == RENDERED_DIAGNOSTIC
        assert ESCAPES.search(output)

    def test_wide_characters(self, recipes, tmp_path, monkeypatch, run_on_terminal):
        """Characters that take two columns are marked by two carets."""
        monkeypatch.chdir(tmp_path)
        recipes(wide=f"{HEAD}def p(概要: str, 本, z: str = '') -> str:\n    return 本\n")

        output = run_on_terminal("check", NO_COLOR="1")[1]

        assert "    4 | def p(概要: str, 本, z: str = '') -> str:\n      |                  ^^\n" in output

    def test_a_long_line(self, recipes, tmp_path, monkeypatch, run_on_terminal):
        """If a line is wider than the terminal, its faulty part is shown."""
        monkeypatch.chdir(tmp_path)
        names = ", ".join(f"argument_{n}: str" for n in range(9))
        recipes(long=f"{HEAD}def p({names}, diff, *, z: str = '', y: str = '') -> str:\n\treturn diff\n")

        output = run_on_terminal("check", NO_COLOR="1")[1].splitlines()

        column = output[2].index("^")
        assert output[1][column:].startswith("diff, *")
        assert [len(output[1]) <= 80, output[1][8], output[2].count("^")] == [True, "…", 4]

    def test_diagnostic_without_source(self, recipes, tmp_path, monkeypatch, run_on_terminal):
        """A diagnostic of a folder shows no source line."""
        monkeypatch.chdir(tmp_path)
        recipes(nothing="")

        output = run_on_terminal("check", NO_COLOR="1")[1]

        assert output.splitlines()[:2] == [
            "recipes: error PK102: no prompt is defined here",
            (
                "    decorate a function with @prompt, in a *.py file whose name starts with neither '_' "
                "nor 'test_', or write a file NAME.prompt.md"
            ),
        ]

    def test_square_brackets_are_not_markup(self, recipes, tmp_path, monkeypatch, run_on_terminal):
        """Text that looks like rich's markup or an emoji is printed unchanged."""
        monkeypatch.chdir(tmp_path)
        head = HEAD.replace("@prompt", "@prompt(name='[red]:smile:')")
        recipes(markup=f"{head}def p() -> str:\n    return 'x'\n")

        assert "prompt '[red]:smile:': a name" in run_on_terminal("check", NO_COLOR="1")[1]

    def test_example_in_the_docs(self, recipes, tmp_path, monkeypatch, run_on_terminal):
        """The first example in docs/diagnostics.md matches the output on a terminal."""
        monkeypatch.chdir(tmp_path)
        page = Path(__file__).parents[2].joinpath("docs", "diagnostics.md").read_text(encoding="utf-8")
        example = next(token.content for token in MarkdownIt().parse(page) if token.type == "fence")
        recipes("prompts", review=CHANGED)

        output = run_on_terminal("check", "prompts", NO_COLOR="1")[1]

        assert output.startswith(example)


#: Parameters, and how `list` shows them.
TYPES_HEAD = """
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from enum import Enum
from typing import Annotated, Literal, Optional
from msgspec import Meta
from promptkit import Arg, prompt

class Tone(Enum):
    WARM = "warm"
    COLD = "cold"

@dataclass
class Point:
    x: int
"""
TYPES = [
    ("x: int", "int, required"),
    ("x: 'list[str] | None' = None", "list[str] | None, optional"),
    ("x: Optional[int] = 3", "int | None, default 3"),
    ("x: Literal['a', 1] = 'a'", "Literal['a', 1], default a"),
    ("x: timedelta = timedelta(seconds=1800)", "timedelta, default 30m"),
    ("x: date = date(2026, 1, 31)", "date, default 2026-01-31"),
    ("x: bool = True", "bool, default yes"),
    ("x: list[str] = ['a', 'b']", "list[str], default a, b"),
    ("x: list[str] = ['a, b']", """list[str], default ["a, b"]"""),
    ("x: dict[str, int] = {'a': 1}", 'dict[str, int], default {"a":1}'),
    ("x: str = ''", "str, optional"),
    ("x: str = ' '", 'str, default " "'),
    ("x: Tone = Tone.WARM", "Tone('warm', 'cold'), default warm"),
    ("x: Annotated[int, Meta(ge=1)] = 2", "int, default 2"),
    ("x: list[Point]", "list[Point], required"),
    ("x: dict[str, date]", "dict[str, date], required"),
    ("x: tuple[int, ...] = ()", "tuple[int, ...], default []"),
    ("x: Annotated[str, Arg(secret=True)] = 'hunter2'", "str, default <secret>"),
    ("x: Annotated[str, Arg('What for')]", "str, required: What for"),
    ("x: Point = Point(1)", 'Point, default {"x":1}'),
    ("x: bytes = b'a'", "bytes, default YQ=="),
    ("x: Annotated[str, Arg(env='TEAM')]", "str, default from $TEAM"),
    ("x: Annotated[int, Arg(env='DEPTH')] = 3", "int, default from $DEPTH, else 3"),
    ("x: Annotated[str, Arg(env='KEY', secret=True)] = 'x'", "str, default from $KEY, else <secret>"),
    ("x: str = 'a   b\\n\u202ec'", r'str, default "a   b\n\u202ec"'),
]


class TestList:
    def test_text(self, project, run):
        """
        `list` prints one line per prompt with its description, then one line per argument with its type.
        """
        code, out, err = run("list")

        assert (code, err) == (0, "a recipe that prints\n")
        assert out.splitlines()[-3:] == [
            "prompt review: Review a [diff].",
            "    diff: str, required",
            "    tone: Literal['plain', 'strict'], default plain",
        ]

    def test_json(self, project, run):
        """`list --json` prints what a client receives."""
        _, out, _ = run("list", "recipes", "--json")

        listed = json.loads(out)["prompts"][-1]
        assert list(listed.pop("_meta")) == ["promptkit/arguments"]
        assert listed == {
            "name": "review",
            "description": "Review a [diff].",
            "arguments": [
                {"name": "diff", "required": True},
                {"name": "tone", "description": "one of plain, strict; default plain", "required": False},
            ],
        }

    def test_resources(self, library, run):
        """`list` prints resources and templates, with the variables of the templates."""
        code, out, _ = run("list")

        assert code == 0
        assert out.splitlines()[-4:] == [
            "resource guide (docs://guide): How we write.",
            "template page (docs://{section}/{page}) (One page): Of the handbook.",
            "    section: str, required: Which part.",
            "    page: int, required",
        ]

    def test_resources_as_json(self, library, run):
        """`list --json` prints the server, and each list as a client receives it, on one page."""
        lists = json.loads(run("list", "--json")[1])

        assert lists.pop("serverInfo") == {"name": "promptkit", "version": "0"}
        assert {name: len(items) for name, items in lists.items()} == {
            "prompts": 120,
            "resources": 1,
            "resourceTemplates": 1,
        }

    def test_resources_without_prompts(self, recipes, tmp_path, monkeypatch, run):
        """A folder with resources but no prompts is valid, and its resources are counted."""
        recipes(docs=RESOURCES)
        monkeypatch.chdir(tmp_path)

        assert run("check") == (0, "2 resources can be served\n", "")
        assert json.loads(run("check", "--json")[1]) == {
            "prompts": [],
            "resources": ["docs://guide", "docs://{section}/{page}"],
            "skills": [],
            "diagnostics": [],
            "not_described": [],
        }
        code, out, err = run("list")
        assert (code, err) == (0, "")
        assert out.startswith("resource guide (docs://guide): How we write.\n")

    @pytest.mark.parametrize("columns", [20, 40, 80, 200])
    def test_text_wraps_on_a_terminal(self, columns, recipes, tmp_path, monkeypatch, run_on_terminal):
        """
        On a terminal of any width, text wraps and is not cut, even if it has wide characters or no spaces.
        """
        recipes(wide=WIDE)

        monkeypatch.chdir(tmp_path)
        _, output = run_on_terminal("list", columns=columns, NO_COLOR="1")

        lines = output.splitlines()
        assert max(map(cell_len, lines)) <= columns
        joined = "".join(output.split())
        for text in (
            NAME,
            SENTENCE,
            "x" * 90,
            f"default {SENTENCE}: x",
            "template",
            "docs://{a}/" + "y" * 50,
        ):
            assert text.replace(" ", "") in joined
        assert "…" not in output

    def test_text_does_not_wrap_in_a_pipe(self, recipes, tmp_path, monkeypatch, run):
        """In a pipe, each item takes one line, whatever the width of the terminal."""
        recipes(wide=WIDE)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("COLUMNS", "10")

        assert run("list")[1].splitlines() == [
            f"prompt {NAME} ({SENTENCE}): {SENTENCE}",
            f"    text: str, default {SENTENCE}: {'x' * 90}",
            f"template page (docs://{{a}}/{'y' * 50})",
            "    a: str, required",
        ]

    def test_types(self, recipes, tmp_path, run):
        """
        An argument is listed with its type and default as its author wrote them; a secret's default is
        hidden.
        """
        prompts = "".join(
            f"\n@prompt\ndef p{i:02}({parameter}) -> str:\n    return str(x)\n"
            for i, (parameter, _) in enumerate(TYPES)
        )
        recipes(types=TYPES_HEAD + prompts)

        code, out, err = run("list", cwd=tmp_path)

        assert (code, err) == (0, "")
        assert out.splitlines()[1::2] == [f"    x: {listed}" for _, listed in TYPES]

    def test_errors_are_printed_to_stderr(self, faulty, run):
        """`list` prints the served prompts to standard output and the errors to standard error."""
        code, out, err = run("list", "--json")

        assert (code, err) == (1, f"{FOUND}\n")
        assert [prompt["name"] for prompt in json.loads(out)["prompts"]] == ["plan"]


class TestRender:
    def test_transcript(self, project, run):
        """
        Arguments are parsed as if a client had sent them; output of prompts does not reach standard output.
        """
        code, out, err = run("render", "recipes", "review", "diff=a = b", "tone=STRICT")

        assert (code, out) == (0, "[user]\nReview, strict:\n\na = b\n")
        assert "a prompt that prints" in err

    def test_json(self, project, run):
        """`render --json` prints the result that a client receives."""
        _, out, _ = run("render", "recipes", "review", "diff=x", "--json")

        assert json.loads(out) == {
            "description": "Review a [diff].",
            "messages": [{"role": "user", "content": {"type": "text", "text": "Review, plain:\n\nx"}}],
        }

    def test_child_processes_do_not_garble_stdout(self, recipes, tmp_path):
        """Output that bypasses `sys.stdout` does not garble the JSON."""
        noisy = """
            import os, subprocess
            from promptkit import prompt

            os.write(1, b"raw\\n")

            @prompt
            def noisy() -> str:
                subprocess.run(["echo", "child"], check=True)
                return "x"
        """
        folder = recipes(noisy=noisy)

        result = subprocess.run(
            [sys.executable, "-m", "promptkit", "render", folder, "noisy", "--json"],
            capture_output=True,
            check=True,
        )

        assert json.loads(result.stdout)["messages"]
        assert result.stderr.split() == [b"raw", b"child"]

    def test_lone_surrogate(self, recipes, tmp_path, monkeypatch, run):
        """A lone surrogate is escaped in text and rejected in JSON."""
        recipes(half="from promptkit import prompt\nprompt(name='half')(lambda: 'a\\ud800b')\n")
        monkeypatch.chdir(tmp_path)

        assert run("render", "half") == (0, "[user]\na\\ud800b\n", "")
        code, out, err = run("render", "half", "--json")
        assert (code, out) == (1, "")
        assert err.startswith("promptkit: prompt 'half' contains text that cannot be sent: ")

    def test_escaped_at_sign(self, project, run):
        """``key=@@name`` sends ``@name``."""
        assert "@alice" in run("render", "recipes", "review", "diff=@@alice did it")[1]

    def test_file_argument(self, project, run, tmp_path, png):
        """`key=@file` sends the text of a file, or its bytes or image, depending on the parameter's type."""
        (tmp_path / "change.diff").write_text("+ ü", encoding="utf-8")
        (tmp_path / "dot.png").write_bytes(png)
        show = "@prompt\ndef show(picture: Image):\n    return picture\n"
        (tmp_path / "recipes" / "show.py").write_text(f"from promptkit import Image, prompt\n\n\n{show}")

        assert "+ ü" in run("render", "recipes", "review", "diff=@change.diff")[1]
        assert "<image/png " in run("render", "recipes", "look", "picture=@dot.png")[1]
        assert "<image/png " in run("render", "recipes", "show", "picture=@dot.png")[1]
        message = run("render", "recipes", "show", "picture=@dto.png")[2]
        assert message.endswith("from 'dto.png': No such file or directory\n")

    @pytest.mark.parametrize(
        ("words", "suggestion"),
        [
            ("look picture=dot.png", "picture=@dot.png"),
            ("look picture=logo", "picture=@logo"),  # the text is valid base64 as well
            ("show picture=dot.png", "picture=@dot.png"),
            ("many pictures=dot.png", "pictures=@dot.png"),
            ("record point=point.json", "point=@point.json"),
            ("record point=logo", "point=@logo"),
        ],
    )
    def test_file_name_without_at_sign(self, project, run, tmp_path, words, suggestion):
        """
        Where a file's content is expected, the name of an existing file without `@` is rejected.
        """
        for name in ("logo", "dot.png", "point.json"):
            (tmp_path / name).write_bytes(b"")
        (tmp_path / "recipes" / "files.py").write_text(FILES)
        argument = suggestion.partition("=")[0]

        reason = f"the value of {argument!r} is the name of a file, not its content"
        message = f"{reason}: put @ before it, for example {suggestion}"
        code, out, err = run("render", "recipes", *words.split())

        assert (code, out, err.splitlines()[-1]) == (2, "", f"promptkit: {message}")

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            ("either text=logo.png", "'logo.png'"),
            ("place path=logo.png", "'logo.png'"),
            ("review diff=logo.png", "logo.png"),
            ("raw data=aGk=", "b'hi'"),
            ("raw data=data:text/x.html,hi", "b'hi'"),
        ],
    )
    def test_values_that_look_like_file_names(self, project, run, tmp_path, words, expected):
        """
        A file name is accepted where the parameter takes text or a path, and so is any other valid value.
        """
        (tmp_path / "logo").write_bytes(b"")
        (tmp_path / "recipes" / "files.py").write_text(FILES)

        code, out, _ = run("render", "recipes", *words.split())

        assert code == 0
        assert expected in out

    def test_secret_file_name_is_not_repeated(self, project, run, tmp_path):
        """An error never contains the value of a secret."""
        (tmp_path / "recipes" / "files.py").write_text(FILES)
        (tmp_path / "hunter2.pem").touch()

        message = "the value of 'key' is the name of a file, not its content: put @ before it"
        code, _, err = run("render", "recipes", "hides", "key=hunter2.pem")

        assert (code, err.splitlines()[-1]) == (2, f"promptkit: {message}")

    @pytest.mark.parametrize(
        ("words", "code", "names"),
        [
            (["review"], 1, ["prompt 'review'", "'diff' is missing"]),
            (["review", "diff=x", "tone=odd"], 1, ["prompt 'review'", "'tone' is 'odd'", "plain, strict"]),
            (["review", "diff=x", "zzz=1"], 1, ["prompt 'review'", "'zzz'", "diff, tone"]),
            (["refuse", "x=1"], 1, ["prompt 'refuse'", "'x'", "none"]),
            (["refuse"], 1, ["not today"]),
            (["fail"], 1, ["prompt 'fail' failed at recipes/shelf.py:26"]),
            (["revew"], 2, ["unknown prompt 'revew'", "'review'?"]),
            (["xy"], 2, ["unknown prompt 'xy'", "promptkit list recipes"]),
            (["review", "diff=x", "diff=y"], 2, ["'diff' was given twice: pass it only once"]),
            (["leave"], 1, ["prompt 'leave' failed at recipes/shelf.py:22"]),
            (["review", "diff"], 2, ["'diff'", "KEY=VALUE"]),
            (["review", "diff=@nowhere"], 2, ["'diff'", "'nowhere'", "No such file"]),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, list) else "",
    )
    def test_errors(self, project, run, words, code, names):
        """A failing prompt exits with 1 and wrong usage with 2; the reason goes to standard error."""
        ended, out, err = run("render", "recipes", *words)

        assert (ended, out) == (code, "")
        assert all(name in err.splitlines()[-1] for name in names)


#: Prompts with parameters that take file content, and some that take text.
FILES = """
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from promptkit import Arg, Image, prompt

@dataclass
class Point:
    x: int

@prompt
def show(picture: Image): return picture

@prompt
def many(pictures: list[bytes]): return "x"

@prompt
def record(point: Point): return "x"

@prompt
def raw(data: bytes): return repr(data)

@prompt
def either(text: str | bytes): return repr(text)

@prompt
def place(path: Path): return repr(str(path))

@prompt
def hides(key: Annotated[bytes, Arg(secret=True)]): return "x"
"""


BROKEN = """
from promptkit import prompt

@prompt
def sound(text: str = "x") -> str:
    return text

@prompt
def untyped(text) -> str:
    return text

@prompt(name="two-faults")
def faults(one, *more: str) -> str:
    return one

@prompt
def twice(text) -> str:
    return text

@prompt
def twice(text: str) -> str:
    return text
"""


class TestRenderBrokenPrompt:
    @pytest.fixture(autouse=True)
    def project(self, recipes, tmp_path, monkeypatch):
        """Valid prompts among broken ones, and files that cannot be imported."""
        recipes(
            broken=BROKEN,
            syntax="from promptkit import prompt\n\n@prompt\ndef unclosed(text: str) -> str:\n    return (\n",
            named="from promptkit import prompt\nimport nowhere\n\n@prompt(name='by-name')\ndef f(): pass\n",
            stem="1 / 0\n",
        )
        monkeypatch.chdir(tmp_path)

    @pytest.mark.parametrize(
        ("name", "codes"),
        [
            ("untyped", ["broken.py:8: error PK301"]),
            ("two-faults", ["broken.py:12: error PK301", "broken.py:12: error PK302"]),
            ("twice", ["broken.py:16: error PK301", "broken.py:19: error PK202"]),
        ],
    )
    def test_own_diagnostics_are_shown(self, name, codes, run):
        """Only the diagnostics of the requested prompt are printed."""
        code, out, err = run("render", name, "text=x")

        *faults, last = err.splitlines()
        assert (code, out, last) == (1, "", f"promptkit: prompt {name!r} cannot be rendered")
        assert [fault[: fault.index(" PK") + 6] for fault in faults[::2]] == [f"recipes/{c}" for c in codes]

    @pytest.mark.parametrize("name", ["sound"])
    def test_valid_prompt_is_rendered(self, name, run):
        """A valid prompt is rendered even if other prompts are broken."""
        assert run("render", name) == (0, "[user]\nx\n", "")

    @pytest.mark.parametrize(
        ("name", "hint"),
        [
            ("untypd", "; did you mean 'untyped'?"),
            ("Sound", "; did you mean 'sound'?"),
            ("zzz", ": run 'promptkit list' to see all names"),
        ],
    )
    def test_misspelled_name(self, name, hint, run):
        """
        The nearest name is suggested after the errors of files, even if it is the name of a broken prompt.
        """
        code, out, err = run("render", name)

        *faults, last = err.splitlines()
        assert (code, out, last) == (1, "", f"promptkit: unknown prompt {name!r}{hint}")
        assert [fault.partition(": cannot")[0].partition(" PK")[2][:3] for fault in faults[::2]] == [
            "101"
        ] * 3

    def test_target_without_prompts(self, tmp_path, run):
        """The error reports that the target has no prompts."""
        (tmp_path / "empty").mkdir()

        code, _, err = run("render", "empty", "x")

        assert code == 1
        assert "PK102" in err
        assert err.endswith("promptkit: unknown prompt 'x': run 'promptkit list empty' to see all names\n")

    def test_prompt_name_as_target(self, run):
        """The error explains that the first of two words is the target."""
        code, _, err = run("render", "sound", "text")

        assert code == 2
        assert "'sound'" in err
        assert "('sound' was parsed as TARGET; write arguments as KEY=VALUE)" in err

    @pytest.mark.parametrize("target", ["recipes", "recipes/broken.py", "recipes/broken.py:sound"])
    def test_target_without_a_name(self, target, capsys):
        """
        If the only word is a folder, a file or an object, the error asks for the name of a prompt in it.
        """
        with pytest.raises(SystemExit) as exit:
            main(["render", target])

        assert exit.value.code == 2
        hint = f"name a prompt in it, for example: promptkit render {target} NAME\n"
        assert capsys.readouterr().err.endswith(hint)


class TestStandardInput:
    @pytest.fixture(autouse=True)
    def project(self, recipes, tmp_path):
        """A prompt that takes text and bytes, and a prompt that changes the current folder."""
        recipes(
            takes="""
                import os
                from promptkit import prompt

                @prompt
                def takes(text: str = "", data: bytes | None = None) -> str:
                    return f"{text!r} {data!r}"
                """,
            moves="import os\nos.chdir('/')\n",
        )
        self.folder = tmp_path

    @pytest.mark.parametrize(
        ("words", "stdin", "expected"),
        [
            (["text=@-"], "é\n日".encode(), "'é\\n日' None"),
            (["text=@-"], b"a\r\nb", "'a\\nb' None"),
            (["text=@-"], b"", "'' None"),
            (["text=@-"], b"\xef\xbb\xbfa", "'a' None"),
            (["data=@-"], b"\x00\xff", "'' b'\\x00\\xff'"),
            (["data=@-", "text=@@-"], b"\x00", "'@-' b'\\x00'"),
            (["text=-"], b"x", "'-' None"),
            (["text=@file.txt"], b"x", "'in a file' None"),
        ],
        ids=str,
    )
    def test_standard_input_as_argument(self, words, stdin, expected, run):
        """
        `key=@-` reads standard input as text or as bytes, even if a recipe changes the working directory.
        """
        (self.folder / "file.txt").write_text("in a file")

        code, out, _ = run("render", "takes", *words, cwd=self.folder, stdin=stdin)

        assert (code, out) == (0, f"[user]\n{expected}\n")

    @pytest.mark.parametrize("name", ["bounded", "several", "named", "one_of", "either"])
    def test_bytes_argument(self, name, recipes, run):
        """A file is sent as bytes wherever the type accepts bytes, however the type is written."""
        recipes(
            many="""
                from typing import Annotated, NewType
                from msgspec import Meta
                from promptkit import prompt

                Blob = NewType("Blob", bytes)

                @prompt
                def many(
                    bounded: Annotated[bytes, Meta(max_length=9)] | None = None,
                    several: list[bytes] | None = None,
                    named: Blob | None = None,
                    one_of: Blob | int | None = None,
                    either: bytes | str = "",
                ) -> str:
                    return repr(bounded or several or named or one_of or either)
                """
        )
        expected = "[b'\\xff']" if name == "several" else "b'\\xff'"

        code, out, err = run("render", "many", f"{name}=@-", cwd=self.folder, stdin=b"\xff")

        assert (code, out, err) == (0, f"[user]\n{expected}\n", "")

    @pytest.mark.parametrize(
        ("words", "names"),
        [
            (["text=@-", "data=@-"], ["only one argument", "standard input", "KEY=@FILE"]),
            (["text=@-"], ["'text'", "standard input is not UTF-8"]),
            (["text=@blob"], ["'text'", "'blob' is not UTF-8"]),
            (["data=@nowhere"], ["'data'", "'nowhere'", "No such file"]),
            (["data=@recipes"], ["'data'", "'recipes'", "Is a directory"]),
            (["data=@"], ["'data'", "data=@FILE", "data=@@"]),
            (["text"], ["'text'", "KEY=VALUE"]),
            (["text=\udcff"], ["'text'", "its value is not UTF-8", "text=@FILE"]),
        ],
        ids=ascii,
    )
    def test_unreadable_arguments(self, words, names, run):
        """The error names the argument, the file and the reason."""
        if os.name == "nt":
            pytest.skip("it has words of its own")
        (self.folder / "blob").write_bytes(b"\xff")

        code, out, err = run("render", "recipes", "takes", *words, cwd=self.folder, stdin=b"\xff")

        assert (code, out, err.count("\n")) == (2, "", 1)
        assert all(name in err for name in names)

    def test_endless_file(self, run):
        """Reading a file stops at the size limit of a request."""
        if not os.path.exists("/dev/zero"):  # noqa: PTH110
            pytest.skip("there is no such file here")

        code, _, err = run("render", "takes", "data=@/dev/zero", cwd=self.folder)

        message = "promptkit: 'data' cannot be read from '/dev/zero': it is larger than 67,108,864 bytes\n"
        assert (code, err) == (2, message)


def test_strict_reports_why_nothing_is_served(faulty, tmp_path):
    """`serve --strict` reports why nothing is served and how to fix it."""
    code, out, err = command("serve", "--strict", cwd=tmp_path)

    message = "promptkit: nothing is served because of --strict: fix the errors above, or omit the option"
    assert (code, out) == (1, b"")
    assert err.decode() == f"{FOUND}\n{message}\n"


SLOW = "import time\nfrom promptkit import prompt\n\ntime.sleep({})\n\n@prompt\ndef slow({}): return 'x'\n"


@pytest.mark.parametrize(("parameters", "expected"), [("", 0), ("a", 1)], ids=["fine", "faulty"])
def test_strict_waits_for_slow_imports(parameters, expected, recipes):
    """`serve --strict` waits for a slow import and reports its errors, even after the end of the input."""
    folder = recipes(slow=SLOW.format(1.5, parameters))

    code, _, err = command("serve", str(folder), "--strict", "--grace=0", cwd=folder)

    assert (code, b"nothing is served because of --strict" in err) == (expected, expected == 1)


def test_strict_fails_on_an_endless_import(recipes):
    """An import that does not finish within the grace period after the client disconnects is a failure."""
    folder = recipes(slow=SLOW.format(40, ""))
    command = [sys.executable, "-m", "promptkit", "serve", str(folder), "--strict", "--grace=0"]

    assert subprocess.run(command, input=b"", capture_output=True, timeout=30, check=False).returncode == 1


class TestUsage:
    def test_missing_target(self, tmp_path, run):
        """A missing target is a usage error."""
        message = "promptkit: cannot load 'nowhere': there is no such folder, file or module\n"

        assert run("check", "nowhere", cwd=tmp_path) == (2, "", message)
        assert command("serve", "--grace", "50", "nowhere", cwd=tmp_path) == (2, b"", message.encode())

    @pytest.mark.parametrize("argv", [["nope"], ["list", "--nope"], ["render", "recipes"]], ids=str)
    def test_invalid_command_line(self, argv, capsys):
        """An invalid command line is a usage error."""
        with pytest.raises(SystemExit) as exit:
            main(argv)

        assert exit.value.code == 2
        assert "usage: promptkit" in capsys.readouterr().err

    def test_closed_pipe(self, faulty):
        """`promptkit check | head` ends without a message about the closed pipe."""
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", "promptkit", "check"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        process.stdout.close()

        assert process.wait(timeout=20) == 1
        assert process.stderr.read() == b""
        process.stderr.close()

    def test_console_script(self):
        """`promptkit` and `python -m promptkit` are the same program."""
        script = Path(sys.executable).with_name("promptkit")
        outputs = [
            subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
            for command in ([script], [sys.executable, "-m", "promptkit"])
        ]

        assert outputs == [f"promptkit {VERSION}\n"] * 2

"""`promptkit check`: exit codes, GitHub annotations, `--render`, `--client`, and secret files."""

import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import ANY

import pytest

from promptkit.cli import main
from promptkit.cli.output import Output
from promptkit.clients import profiles
from promptkit.errors.diagnostics import Diagnostic, Location
from promptkit.errors.rules import Rule
from promptkit.workspace import run

ROOT = Path(__file__).parents[2]

#: The examples in docs/diagnostics.md, and the output for each.
PAGE = ROOT.joinpath("docs", "diagnostics.md").read_text(encoding="utf-8")
EXAMPLES_IN_DOCS = {
    code: re.search(
        r"```python[^\n]*\n(.*?)```\n\n```text\n(.*?)```\n", PAGE[PAGE.index(f"\n## {code}\n") :], re.DOTALL
    ).groups()
    for code in ("PK220", "PK226", "PK231", "PK420")
}

#: The line about prompts that have no description, before their names.
UNDESCRIBED = "no docstring or description for clients to show"
BROKEN = 'from promptkit import prompt\n\n@prompt\ndef broken(diff, tone: str = "x"):\n    return diff\n'

#: A prompt with a warning.
FORGOTTEN = 'from promptkit import prompt\n\n@prompt\ndef greet(name: str):\n    return "Hello {name}."\n'

#: A prompt with an argument for which no value can be generated.
NEEDS = """
from typing import Annotated
from msgspec import Meta
from promptkit import prompt

@prompt
def needs(text: Annotated[str, Meta(pattern="^(zebra|gnu)$")]) -> str:
    return text
"""

EXAMPLES = """
import time
from typing import Annotated
from msgspec import Meta
from promptkit import Arg, PromptError, prompt

@prompt
def fine(n: Annotated[int, Arg(examples=[1, 2])]) -> str:
    return str(1 / n)

@prompt
def defaults() -> str:
    return ""

@prompt
def second(n: Annotated[int, Arg(examples=[1, 0])]) -> str:
    return str(1 / n)

@prompt
def needs(text: Annotated[str, Meta(pattern="^(zebra|gnu)$")]) -> str:
    return text

@prompt
def refuses(n: int = 0) -> str:
    raise PromptError("not today")

@prompt(timeout=0.05)
def slow() -> str:
    time.sleep(30)
    return "x"

@prompt
def hides(key: Annotated[str, Arg(secret=True, examples=["hunter2hunter2"])]) -> str:
    raise ValueError(f"bad key {key}")
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, outside of a GitHub checkout."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    return tmp_path


def check(capsys, *argv):
    """Run `check --json`; return its exit code and report."""
    code = main(["check", "--json", *argv])
    return code, json.loads(capsys.readouterr().out)


#: Imports and helpers for the function bodies in these tests.
HEAD = """
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import Path

from promptkit import prompt, system, user

class Level(Enum):
    LOW = 1

async def fetch(name):
    return name

"""


class TestFailOn:
    @pytest.fixture
    def warned_project(self, recipes, folder):
        """A project as the current folder, with one warning in its recipes."""
        recipes(greet=FORGOTTEN)
        return folder

    @pytest.mark.parametrize(
        ("argv", "configured", "code"),
        [
            ([], "", 0),
            (["--fail-on", "error"], "", 0),
            (["--fail-on", "warning"], "", 1),
            ([], "error", 0),
            ([], "warning", 1),
            (["--fail-on", "error"], "warning", 0),
        ],
    )
    def test_exit_code_of_a_warning(self, argv, configured, code, warned_project, capsys):
        """
        The command line, or otherwise the configuration, can make `check` exit with 1 for a warning.
        """
        setting = f'fail-on = "{configured}"' if configured else ""
        (warned_project / "pyproject.toml").write_text(f"[tool.promptkit]\n{setting}\n")

        result = check(capsys, *argv)

        assert (result[0], [diagnostic["code"] for diagnostic in result[1]["diagnostics"]]) == (
            code,
            ["PK207"],
        )

    def test_ignored_warning(self, recipes, folder, capsys):
        """An ignored warning does not fail `check --fail-on warning`."""
        recipes(greet=FORGOTTEN.rstrip() + "  # promptkit: ignore[PK207]\n")

        assert main(["check", "--fail-on", "warning"]) == 0


class TestBodies:
    @pytest.mark.parametrize(
        ("body", "code"),
        [
            ('return {"role": "user", "content": name}', "PK206"),
            ("return dict(content=name)", "PK206"),
            ("answer = {n: n for n in name}\n    return answer", "PK206"),
            ("return fetch(name)", "PK206"),
            ("found = fetch(name)\n    return found", "PK206"),
            ("return user(fetch(name))", "PK206"),
            ('yield {"text": name}', "PK206"),
            ("user(name)", "PK205"),
            ("text = name\n    if text:\n        return", "PK205"),
            ("return nmae", "PK103"),
            ('return user("x", since)', "PK206"),
            ('yield "x"\n    yield since', "PK206"),
            ('return user("x", Path(name))', "PK206"),
            ('return user("x", level)', "PK206"),
            ('return ["x", Decimal(name)]', "PK206"),
            ("return system(name)", "PK205"),
            ("yield system(name)", "PK205"),
            ('return system(name) if name else "x"', "PK205"),
        ],
        ids=range(18),
    )
    def test_unusable_return_value_is_an_error(self, body, code, recipes, folder, capsys):
        """Returning an unsupported type, returning nothing, or using an undefined name is an error."""
        recipes(wrong=f"{HEAD}@prompt\ndef wrong(name: str, since: date, level: Level):\n    {body}\n")

        exit_code, data = check(capsys)

        assert (
            exit_code,
            [(diagnostic["code"], diagnostic["severity"]) for diagnostic in data["diagnostics"]],
        ) == (
            1,
            [(code, "error")],
        )
        assert data["prompts"] == [
            "wrong"
        ]  # the prompt is served nevertheless, because the source does not show everything

    @pytest.mark.parametrize(
        "body",
        [
            'yield system(name)\n    if not name:\n        raise PromptError("x")\n    yield name',
            "yield system(name)\n    yield from turns()",
            "return system(name) + turns()",
            "since = since.isoformat()\n    return user(since)",
            "return user(level.name, str(since))",
        ],
        ids=range(5),
    )
    def test_valid_return_values_are_accepted(self, body, recipes, folder, capsys):
        """Branches that raise are ignored, and calls to unknown functions can return a turn."""
        turns = "from promptkit import PromptError\n\ndef turns():\n    return [user('x')]\n"
        recipes(fine=f"{HEAD}{turns}\n@prompt\ndef fine(name: str, since: date, level: Level):\n    {body}\n")

        assert check(capsys)[1]["diagnostics"] == []

    @pytest.mark.parametrize(
        "source", ["", "import os\n\ndef helper():\n    return open('style.md').read()\n"]
    )
    def test_folder_without_prompts_is_an_error(self, source, recipes, folder, capsys):
        """A folder without prompts is an error, even if it has other diagnostics."""
        recipes(nothing=source)

        exit_code, data = check(capsys)

        assert exit_code == 1
        assert "PK102" in [diagnostic["code"] for diagnostic in data["diagnostics"]]


class TestGitHub:
    def test_annotation_of_a_diagnostic(self, recipes, folder, capsys):
        """An annotation has the file, line and columns in GitHub's form, with the hint on its second line."""
        recipes(broken=BROKEN)

        code = main(["check", "--format", "github"])

        assert code == 1
        assert capsys.readouterr().out == (
            "::error file=recipes/broken.py,line=4,col=12,endColumn=15,title=promptkit PK301"
            "::prompt 'broken': parameter 'diff' has no annotation%0A"
            "write its type, for example 'diff: str'\n"
        )

    def test_paths_are_relative_to_the_checkout(self, recipes, folder, monkeypatch, capsys):
        """Paths are relative to GITHUB_WORKSPACE, whatever the current folder is."""
        recipes(broken=BROKEN)
        monkeypatch.setenv("GITHUB_WORKSPACE", str(folder))
        monkeypatch.chdir(folder / "recipes")

        main(["check", ".", "--format", "github"])

        assert capsys.readouterr().out.startswith("::error file=recipes/broken.py,line=4,")

    @pytest.mark.parametrize("name", ["a,b", "a%b", "a:b"])
    def test_special_characters_are_escaped(self, name, recipes, folder, capsys):
        """A path cannot add a property to an annotation, and a message cannot start a workflow command."""
        recipes(**{name: BROKEN.replace("broken", "x%0A::error::y")})

        main(["check", "--format", "github"])

        (annotation,) = capsys.readouterr().out.splitlines()
        properties, text = re.fullmatch(r"::error (.*?)::(.*)", annotation).groups()
        encoded = {sign: f"%{ord(sign):02X}" for sign in ",%:"}
        assert properties.startswith(f"file=recipes/a{encoded[name[1]]}b.py,line=")
        assert "%0A" in text

    def test_annotations_without_a_line(self, recipes, folder, capsys):
        """An invalid token file and prompts that were not rendered get annotations without a line."""
        recipes(fine=NEEDS)

        code = main(["check", "--format", "github", "--render", "--token-file", "no,file"])

        assert code == 1
        assert capsys.readouterr().out == (
            f"::notice title=promptkit::{UNDESCRIBED}: needs\n"
            "::notice title=promptkit::not rendered because they need examples: needs\n"
            "::error title=promptkit::a server would not start: no,file: the file cannot be read: "
            "No such file or directory\n"
        )

    def test_warning_annotation(self, recipes, folder, capsys):
        """A warning is the only output, and exits with 0."""
        recipes(greet=FORGOTTEN)

        assert main(["check", "--format", "github"]) == 0
        assert capsys.readouterr().out.startswith("::warning file=recipes/greet.py,line=5,")


class TestRender:
    def test_image_of_the_author(self, recipes, folder, capsys):
        """An image that cannot be sent is an error, which only rendering detects."""
        recipes(
            picture="from promptkit import Image, prompt, user\n@prompt\ndef picture():\n"
            "    return user('Look.', Image(bytes([1] * 20)))\n"
        )

        code, report = check(capsys, "--render")

        ((code_of_rule, message),) = [(each["code"], each["message"]) for each in report["diagnostics"]]
        assert (code, code_of_rule, report["not_rendered"]) == (1, "PK220", {})
        assert message.startswith(
            "prompt 'picture': it fails for its defaults: the bytes are not in a known format"
        )

    def test_examples_are_rendered(self, recipes, folder, capsys):
        """
        A failing example is an error at the line that raised.

        Prompts without examples, and prompts that reject their defaults, are listed.
        """
        recipes(examples=EXAMPLES)
        timed_out = "it took longer than its limit of 0.05 s"

        code, report = check(capsys, "--render")

        failures = {
            diagnostic["message"].split("'")[1]: (
                diagnostic["line"],
                diagnostic["message"].partition(": ")[2],
            )
            for diagnostic in report["diagnostics"]
        }
        assert code == 1
        assert report["not_rendered"] == {
            "defaults": "prompt 'defaults' rendered no messages for these arguments",
            "needs": "it needs examples",
            "refuses": "not today",
        }
        assert failures == {
            "hides": (33, "it fails for key=<secret>: ValueError: bad key <secret>"),
            "second": (16, "it fails for n='0': ZeroDivisionError: division by zero"),
            "slow": (
                28,
                f"it fails for its defaults: {timed_out}, and was at {Path('recipes', 'examples.py')}:28",
            ),
        }
        assert {diagnostic["code"] for diagnostic in report["diagnostics"]} == {"PK220"}

    def test_generated_arguments(self, recipes, folder, capsys):
        """
        A prompt without cases is rendered with generated arguments, which include each choice once.

        The prompt can reject such arguments with a `PromptError`; any other exception is an error.
        """
        recipes(
            choices="""
            from enum import Enum
            from typing import Literal
            from promptkit import PromptError, prompt

            class Tone(Enum):
                WARM = "warm"
                PLAIN = "plain"

            TEXTS = {"a": "A", "b": "B"}

            @prompt
            def by_literal(code: str, kind: Literal["a", "b", "c"] = "a") -> str:
                return TEXTS[kind]

            @prompt
            def by_enum(code: str, tone: Tone = Tone.WARM) -> str:
                return {Tone.WARM: "warm"}[tone]

            @prompt
            def by_bool(code: str, strict: bool = True) -> str:
                return code if strict else 1 / 0

            @prompt
            def by_text(path: str) -> str:
                raise PromptError(f"there is no {path}")
            """
        )

        code, report = check(capsys, "--render")

        assert code == 1
        assert report["not_rendered"] == {"by_text": "there is no sample"}
        assert [diagnostic["message"].partition("fails for ")[2] for diagnostic in report["diagnostics"]] == [
            "code='sample', strict='false': ZeroDivisionError: division by zero",
            "code='sample', tone='plain': KeyError: <Tone.PLAIN: 'plain'>",
            "code='sample', kind='c': KeyError: 'c'",
        ]

    @pytest.mark.parametrize("is_async", [False, True])
    def test_text_files_are_checked_when_they_are_read(self, is_async, recipes, folder, capsys):
        """A text file is checked when it is read, even if the source does not show its path."""
        folder = recipes(
            guide="""
            from promptkit import Text, prompt

            @prompt
            def guide(name: str = "guide"):
                return Text.below(
                    ".", name + ".md", name=name
                )
            """.replace("def guide(", "async def guide(" if is_async else "def guide(")
        )
        folder.joinpath("guide.md").write_text("---\na: b\n---\n{{name}}\n{{nam}}\n{{#name}}\n{{/name}}")

        code, report = check(capsys, "--render")

        ((rule, message, line),) = [
            (diagnostic["code"], diagnostic["message"], diagnostic["line"])
            for diagnostic in report["diagnostics"]
        ]
        assert (code, rule, line) == (0, "PK218", 5)
        assert message == "prompt 'guide': {{nam}} in guide.md:5 gets no value and is sent literally"

    def test_client_lints_use_the_rendering(self, recipes, folder, capsys):
        """Client lints also check rendered messages, and report each problem once."""
        recipes(
            turns="""
            from promptkit import Image, assistant, prompt, user

            def opening():
                return assistant("What shall I review?")

            @prompt
            def first() -> object:
                return opening() + user("x")
            """
        )

        code = main(["check", "recipes", "--render", "--client", "gemini-cli", "--json"])
        diagnostics = json.loads(capsys.readouterr().out)["diagnostics"]

        assert code == 0
        assert sorted(diagnostic["code"] for diagnostic in diagnostics) == ["PK211", "PK502"]

    def test_rejected_defaults_are_listed(self, recipes, folder, capsys):
        """
        A prompt that rejects its defaults is listed, and does not fail the check.

        If it rejects an example of its author, that is an error.
        """
        source = """
            from typing import Annotated
            from promptkit import Arg, PromptError, prompt, resource

            @prompt
            def review() -> str:
                raise PromptError("there is no difference to HEAD")

            @prompt
            def both(n: Annotated[int, Arg(examples=[1])] = 0) -> str:
                if n == 0:
                    raise PromptError("say a number")
                return str(n)

            @resource("diff://staged")
            def staged() -> str:
                raise PromptError("nothing is staged")
        """
        recipes(refusing=source)

        code = main(["check", "--render"])

        assert (code, capsys.readouterr().out.splitlines()) == (
            0,
            [
                "2 prompts and 1 resource can be served",
                f"{UNDESCRIBED}: both, review",
                "not rendered with default or generated arguments: review: there is no difference to HEAD",
                "not rendered with default or generated arguments: diff://staged: nothing is staged",
            ],
        )
        recipes(refusing=source.replace("examples=[1]", "examples=[0]"))
        assert main(["check", "--render"]) == 1

    def test_prompts_that_always_fail_are_not_counted(self, recipes, folder, capsys):
        """
        A prompt or resource that always fails because of an error is not counted as served.

        A prompt is counted if the error belongs to another prompt of the same name, which is not served.
        """
        recipes(
            first="from promptkit import prompt\n\n@prompt\ndef same():\n    return 'x'\n",
            second="from promptkit import prompt\n\n@prompt\ndef same():\n    return {'a': 'b'}\n",
            third="""
            from promptkit import Text, resource

            @resource("note://today")
            def note() -> str:
                return Text.from_path("none.md").text

            @resource("note://tomorrow")
            def later() -> str:
                return "Nothing."
            """,
        )

        assert main(["check"]) == 1
        assert capsys.readouterr().out.splitlines()[-1] == "1 prompt and 1 resource can be served, 3 errors"

    def test_unsampled_prompts_are_listed(self, recipes, folder, capsys):
        """A prompt with `sample=False` is called neither for its examples nor for its defaults."""
        recipes(
            unasked="""
            from typing import Annotated
            from promptkit import Arg, prompt

            @prompt(sample=False)
            def publish(version: Annotated[str, Arg(examples=["1.0"])] = "2.0"):
                raise SystemExit("it was called")

            @prompt(sample=False)
            def order():
                raise SystemExit("it was called")
            """
        )

        code = main(["check", "--render"])

        assert (code, capsys.readouterr().out.splitlines()) == (
            0,
            [
                "2 prompts can be served",
                f"{UNDESCRIBED}: order, publish",
                "not rendered because they have sample=False: order, publish",
            ],
        )

    def test_prompts_are_not_called_by_default(self, recipes, folder, capsys):
        """Without `--render` no prompt is called."""
        recipes(examples=EXAMPLES)

        assert check(capsys)[0] == 0

    def test_prompts_without_examples_are_listed(self, recipes, folder, capsys):
        """The text output lists the prompts without examples."""
        recipes(needs=EXAMPLES.partition("@prompt\ndef refuses")[0].replace('return ""', "return 'x'"))

        code = main(["check", "--render"])

        assert code == 1
        assert capsys.readouterr().out.endswith("\nnot rendered because they need examples: needs\n")

    def test_recipes_of_this_repository(self, folder, monkeypatch, capsys):
        """
        `check recipes --render` reports nothing and renders every prompt, because all of them have cases.
        """
        variables = ("PROJECT_ROOT", "SCREENSHOT_FOLDER", "RECORDING_FOLDER")
        assert not any(name in os.environ for name in variables)
        run("git", "init", "--quiet")

        monkeypatch.setenv("PROMPTKIT_WORKSPACE", str(folder))
        monkeypatch.chdir(ROOT)
        capsys.readouterr()

        assert main(["check", "recipes", "--render"]) == 0
        assert capsys.readouterr().out == "15 prompts, 1 resource and 3 skills can be served\n"

    @pytest.mark.parametrize(
        ("code", "served"),
        [("PK220", "0 prompts"), ("PK231", "1 prompt"), ("PK420", "0 prompts")],
    )
    def test_example_in_the_docs(self, code, served, recipes, folder, capsys):
        """The example in docs/diagnostics.md prints the documented error."""
        source, expected = EXAMPLES_IN_DOCS[code]
        recipes(**{Rule(code).name.lower(): source})

        assert main(["check", "--render"]) == 1
        assert capsys.readouterr().out == f"{expected}{served} can be served, 1 error\n"

    def test_max_tokens(self, recipes, folder, capsys):
        """The documented example exceeds 100 tokens with one of its cases. Without the limit, it is valid."""
        source, expected = EXAMPLES_IN_DOCS["PK226"]
        recipes(too_many_tokens=source)

        assert main(["check", "--max-tokens", "100"]) == 1
        assert capsys.readouterr().out == f"{expected}1 prompt can be served, 1 error\n"
        assert main(["check", "--render", "--max-tokens", "305"]) == 0
        assert main(["check", "--render"]) == 0

    def test_max_tokens_of_examples(self, recipes, folder, capsys):
        """Every turn and the system part count, and a comment can suppress the diagnostic."""
        source = """
from typing import Annotated
from promptkit import Arg, prompt, system, user

@prompt
def ask(text: Annotated[str, Arg(examples=["a" * 8])]):
    return system("b" * 4) + user("c", text)
"""
        recipes(ask=source)

        assert check(capsys, "--max-tokens", "4") == (0, ANY)
        code, report = check(capsys, "--max-tokens", "3")
        assert code == 1
        (diagnostic,) = report["diagnostics"]
        assert diagnostic["code"] == "PK226"
        assert "about 4 tokens for text='aaaaaaaa', more than the limit of 3" in diagnostic["message"]
        recipes(ask=source.replace("):\n", "):  # promptkit: ignore[PK226]\n"))
        assert check(capsys, "--max-tokens", "3")[0] == 0

    def test_max_tokens_of_generated_arguments(self, recipes, folder, capsys):
        """A prompt without cases and examples is measured with generated arguments, with each choice once."""
        recipes(
            explain="""
from typing import Literal
from promptkit import prompt

@prompt
def explain(text: str, depth: Literal["short", "long"]):
    return text + "a" * {"short": 40, "long": 400}[depth]
"""
        )

        code, report = check(capsys, "--max-tokens", "50")

        assert code == 1
        (diagnostic,) = report["diagnostics"]
        assert "depth='long', more than the limit of 50" in diagnostic["message"]

    @pytest.mark.parametrize("number", ["0", "-1", "many", "1.5"])
    def test_invalid_max_tokens(self, recipes, folder, capsys, number):
        """The limit is a positive whole number."""
        recipes(ask=FORGOTTEN)

        with pytest.raises(SystemExit) as exited:
            main(["check", f"--max-tokens={number}"])
        assert exited.value.code == 2
        assert "is not a whole number" in capsys.readouterr().err

    def test_on_a_terminal(self, recipes, folder, run_on_terminal):
        """A terminal shows the line that raised."""
        recipes(example_fails=EXAMPLES_IN_DOCS["PK220"][0])

        _, output = run_on_terminal("check", "--render", NO_COLOR="1")

        assert '\n    8 |     return f"Cut the text every {100 / parts:.0f} lines."\n' in output


RESOURCES = """
import time
from datetime import date
from typing import Annotated
from promptkit import Arg, PromptError, prompt, resource

@prompt
def sound() -> str:
    return "x"

@resource("docs://guide")
def guide() -> str:
    return "x"

@resource("docs://late")
def late() -> str:
    raise PromptError("not today")

@resource("docs://nothing")
def nothing() -> bytes:
    return None

@resource("docs://half")
def half() -> str:
    return "a\\ud800b"

@resource("docs://pages/{n}{?tags*}")
def page(
    n: Annotated[int, Arg(examples=[1, 0])],
    tags: Annotated[list[str] | None, Arg(examples=[["a", "b,c"]])] = None,
) -> str:
    assert tags in (None, ["a", "b,c"])
    return str(1 / n)

@resource("docs://days/{day}")
def day(day: Annotated[date, Arg(examples=[date(2026, 1, 31)])]) -> str:
    return f"{day:%A}"

@resource("docs://parts{?part}")
def part(part: str = "") -> str:
    raise ValueError(f"no part {part!r}")

@resource("docs://keys/{key}")
def key(key: Annotated[str, Arg(secret=True, examples=["hunter2hunter2"])]) -> str:
    raise ValueError(f"bad key {key}")

@resource("docs://needs/{text}")
def needs(text: str) -> str:
    return text
"""


class TestResources:
    def test_resources_are_read(self, recipes, folder, capsys):
        """Resources are read, and templates are read with their examples; failures are errors."""
        recipes(shelf=RESOURCES)

        code, report = check(capsys, "--render")

        failures = {
            diagnostic["message"].split("'")[1]: diagnostic["message"].partition(": ")[2]
            for diagnostic in report["diagnostics"]
        }
        assert code == 1
        assert report["not_rendered"] == {
            "docs://late": "not today",
            "docs://needs/{text}": "it needs examples",
        }
        assert "recipes/shelf.py:18) returned None: return str or bytes" in failures.pop("nothing")
        assert failures == {
            "half": "it fails for docs://half: UnicodeEncodeError: 'utf-8' codec can't encode character "
            "'\\ud800' in position 1: surrogates not allowed",
            "key": "it fails for docs://keys/<secret>: ValueError: bad key <secret>",
            "page": "it fails for docs://pages/0?tags=a&tags=b%2Cc: ZeroDivisionError: division by zero",
            "part": "it fails for docs://parts: ValueError: no part ''",
        }
        assert {diagnostic["code"] for diagnostic in report["diagnostics"]} == {"PK420"}

    def test_time_limit(self, recipes, folder, capsys, monkeypatch):
        """A resource that exceeds its time limit is an error."""
        recipes(shelf=RESOURCES.replace('raise PromptError("not today")', "time.sleep(30)"))
        monkeypatch.setattr("promptkit.server.timeouts.Limits", lambda: SimpleNamespace(timeout=0.05))

        diagnostics = check(capsys, "--render")[1]["diagnostics"]

        location = f"{Path('recipes', 'shelf.py')}:16"
        reason = f"it took longer than its limit of 0.05 s, and was at {location}"
        assert f"resource 'late': it fails for docs://late: {reason}" in [
            diagnostic["message"] for diagnostic in diagnostics
        ]

    def test_text_that_cannot_be_sent(self, recipes, folder, capsys):
        """Text that cannot be encoded is an error."""
        recipes(half="from promptkit import prompt\n\n@prompt\ndef half() -> str:\n    return 'a\\ud800'\n")

        (diagnostic,) = check(capsys, "--render")[1]["diagnostics"]

        assert diagnostic["message"].startswith(
            "prompt 'half': it fails for its defaults: UnicodeEncodeError: "
        )


@pytest.fixture
def clients(monkeypatch):
    """Two client profiles: `narrow` rejects long prompt names, `wide` accepts everything."""

    def lint_client(name, catalog):
        return [
            Diagnostic(
                Rule.HIDDEN_PROMPT,
                f"prompt {prompt.name!r}: {name} cuts its name",
                "shorten it",
                prompt.location,
            )
            for prompt in catalog.prompts
            if name == "narrow" and len(prompt.name) > 5
        ]

    profiles_by_name = {"narrow": profiles.ClientProfile("Narrow"), "wide": profiles.ClientProfile("Wide")}
    monkeypatch.setattr(profiles, "CLIENTS", profiles_by_name)
    monkeypatch.setattr("promptkit.lints.linter.lint_client", lint_client)


@pytest.mark.usefixtures("clients")
class TestClients:
    @pytest.fixture(autouse=True)
    def project(self, recipes, folder):
        """A prompt with a long name."""
        self.folder = folder
        recipes(shelf="from promptkit import prompt\n\n@prompt\ndef lengthy() -> str:\n    return 'x'\n")

    @pytest.mark.parametrize(
        ("argv", "count"),
        [
            ([], 0),
            (["--client", "wide"], 0),
            (["--client", "narrow"], 1),
            (["--client", "wide", "--client", "narrow", "--client", "narrow"], 1),
        ],
        ids=str,
    )
    def test_selected_clients(self, argv, count, capsys):
        """`--client` can be repeated, and each client is checked once."""
        assert len(check(capsys, *argv)[1]["diagnostics"]) == count

    def test_configured_clients(self, capsys):
        """The configured clients are checked unless the command line names others."""
        (self.folder / "pyproject.toml").write_text('[tool.promptkit]\nclients = ["narrow"]\n')

        assert len(check(capsys)[1]["diagnostics"]) == 1
        assert check(capsys, "--client", "wide")[1]["diagnostics"] == []

    def test_client_diagnostics_can_be_ignored(self, recipes, capsys):
        """An ignore comment also applies to diagnostics of clients."""
        recipes(
            shelf="from promptkit import prompt\n\n@prompt  # promptkit: ignore[PK501]\n"
            "def lengthy() -> str:  # promptkit: ignore[PK501]\n    return 'x'\n"
        )

        assert check(capsys, "--client", "narrow")[1]["diagnostics"] == []

    def test_unknown_client(self, capsys):
        """The error suggests the nearest client, or lists all of them."""
        for name, hint in [("narow", "did you mean 'narrow'?"), ("zzzzz", "choose one of narrow, wide")]:
            with pytest.raises(SystemExit) as exit:
                main(["check", "--client", name])
            assert exit.value.code == 2
            output = capsys.readouterr().err.splitlines()[-1]
            assert output == f"promptkit check: error: argument --client: unknown client {name!r}: {hint}"

    def test_unknown_client_in_the_configuration(self, capsys):
        """The error names the configuration file."""
        file = self.folder / "pyproject.toml"
        file.write_text('[tool.promptkit]\nclients = ["narow"]\n')

        assert main(["check"]) == 2
        output = capsys.readouterr().err
        hint = "unknown client 'narow': did you mean 'narrow'?"
        assert output == f"promptkit: {file}: [tool.promptkit] clients: {hint}\n"


@pytest.mark.skipif(sys.platform == "win32", reason="files have no modes there")
class TestSecrets:
    """Files with tokens and keys are validated in the same way as when a server starts."""

    @pytest.fixture
    def check_secrets(self, recipes, folder, capsys):
        """
        A function that checks a token file and a key file, and returns the exit code and the reported errors.
        """
        recipes(greet=FORGOTTEN)

        def run_check(tokens, keys, mode=0o600):
            for name, text in (("tokens", tokens), ("keys", keys)):
                (folder / name).write_text(text)
                (folder / name).chmod(mode)
            code, data = check(capsys, "--token-file", "tokens", "--state-keys", "keys")
            return code, data["refused"]

        return run_check

    def test_valid_files(self, check_secrets):
        """Valid files cause no error."""
        assert check_secrets(f"ada {'a' * 32}\n", f"{'ab' * 32}\n") == (0, [])

    def test_invalid_lines(self, check_secrets):
        """The error names the line and shows no secret."""
        code, errors = check_secrets(f"ada {'a' * 32}\nbob short\n", "abc\n")

        assert code == 1
        assert (
            errors[0] == "tokens: line 2: the token could be guessed: use at least 32 characters instead of 5"
        )
        assert errors[1].startswith("keys: line 1: a key must be at least 32 bytes long, in base64 or ")

    def test_readable_by_others(self, check_secrets):
        """A file that other users can read is rejected, and the error shows the fix."""
        code, errors = check_secrets(f"ada {'a' * 32}\n", f"{'ab' * 32}\n", mode=0o644)

        assert code == 1
        assert [error.partition(":")[0] for error in errors] == ["tokens", "keys"]
        assert all("every user can read it (mode 0644): generate new " in error for error in errors)


def test_json_is_a_format(recipes, folder, capsys):
    """`--json` is short for `--format json`, and the two cannot be combined."""
    recipes(broken=BROKEN)

    outputs = []
    for words in (["--json"], ["--format", "json"]):
        assert main(["check", *words]) == 1
        outputs.append(capsys.readouterr().out)

    assert outputs[0] == outputs[1]
    with pytest.raises(SystemExit):
        main(["check", "--json", "--format", "github"])


def test_prompts_without_a_description(recipes, folder, capsys):
    """
    Prompts without a description are listed, but do not fail the check.

    The text output omits this list if there are errors, which are more important.
    """
    source = """
        from promptkit import prompt

        @prompt
        def silent():
            return "x"

        @prompt
        def documented():
            \"\"\"Say x.\"\"\"
            return "x"

        @prompt(description="Say x.")
        def described():
            return "x"

        @prompt(deprecated="use silent")
        def replaced():
            return "x"
    """
    recipes(some=source)

    assert main(["check", "--fail-on", "warning"]) == 0
    assert capsys.readouterr().out == f"4 prompts can be served\n{UNDESCRIBED}: silent\n"
    assert main(["check", "--fail-on", "warning", "--format", "github"]) == 0
    assert capsys.readouterr().out == f"::notice title=promptkit::{UNDESCRIBED}: silent\n"
    recipes(broken=BROKEN)
    assert main(["check"]) == 1
    assert UNDESCRIBED not in capsys.readouterr().out
    assert main(["check", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["not_described"] == ["silent"]


def test_locations_without_a_file(capsys):
    """A diagnostic without a location is annotated without file and line."""
    from promptkit.cli.diagnostics import print_annotations

    output = Output(sys.stdout, "utf-8")
    print_annotations([Diagnostic(Rule.NO_PROMPTS, "nothing", "add", Location(""))], output)
    output.send()

    assert capsys.readouterr().out == "::error title=promptkit PK102::nothing%0Aadd\n"

"""`promptkit check` beyond text: GitHub's annotations, rendering for examples, clients."""

import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from promptkit.cli import main
from promptkit.cli.output import Output
from promptkit.clients import profiles
from promptkit.errors.diagnostics import Diagnostic, Location
from promptkit.errors.rules import Rule
from promptkit.workspace import run
from tests.terminal import command, on_terminal

ROOT = Path(__file__).parents[2]

#: The examples on the page of diagnostics, and what is printed.
PAGE = ROOT.joinpath("docs", "diagnostics.md").read_text(encoding="utf-8")
SHOWN = {
    code: re.search(
        r"```python[^\n]*\n(.*?)```\n\n```text\n(.*?)```\n", PAGE[PAGE.index(f"\n## {code}\n") :], re.DOTALL
    ).groups()
    for code in ("PK220", "PK231", "PK420")
}

BROKEN = 'from promptkit import prompt\n\n@prompt\ndef broken(diff, tone: str = "x"):\n    return diff\n'

#: A prompt with a warning.
FORGOTTEN = 'from promptkit import prompt\n\n@prompt\ndef greet(name: str):\n    return "Hello {name}."\n'

EXAMPLES = """
import time
from typing import Annotated
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
def needs(text: str) -> str:
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
    """The current folder, which is no checkout of GitHub's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    return tmp_path


def checked(capsys, *argv):
    """Run `check`; return its exit code, and what it found as data."""
    code = main(["check", "--json", *argv])
    return code, json.loads(capsys.readouterr().out)


#: What the bodies of functions in these tests use.
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
    def warned(self, recipes, folder):
        """The current folder, whose recipes have a warning."""
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
    def test_a_warning_ends_with_1_where_that_is_asked_for(self, argv, configured, code, warned, capsys):
        """
        By the command line, or else by the configuration.
        """
        setting = f'fail-on = "{configured}"' if configured else ""
        (warned / "pyproject.toml").write_text(f"[tool.promptkit]\n{setting}\n")

        found = checked(capsys, *argv)

        assert (found[0], [one["code"] for one in found[1]["diagnostics"]]) == (code, ["PK207"])

    def test_what_is_fine_is_fine(self, recipes, folder, capsys):
        """
        Without a finding, and with one that is ignored.
        """
        recipes(greet=FORGOTTEN.rstrip() + "  # promptkit: ignore[PK207]\n")

        assert main(["check", "--fail-on", "warning"]) == 0


class TestGreenAndWrong:
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
    def test_what_fails_for_everybody_is_an_error(self, body, code, recipes, folder, capsys):
        """
        A prompt that returns what no message can hold, that returns nothing, or that names what is not there.
        """
        recipes(wrong=f"{HEAD}@prompt\ndef wrong(name: str, since: date, level: Level):\n    {body}\n")

        ended, data = checked(capsys)

        assert (ended, [(one["code"], one["severity"]) for one in data["diagnostics"]]) == (
            1,
            [(code, "error")],
        )
        assert data["prompts"] == ["wrong"]  # it is served all the same: sources do not show all

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
    def test_what_can_be_sent_is_no_error(self, body, recipes, folder, capsys):
        """
        A way that raises sends nothing, and what the source does not show may be a turn.
        """
        turns = "from promptkit import PromptError\n\ndef turns():\n    return [user('x')]\n"
        recipes(fine=f"{HEAD}{turns}\n@prompt\ndef fine(name: str, since: date, level: Level):\n    {body}\n")

        assert checked(capsys)[1]["diagnostics"] == []

    @pytest.mark.parametrize(
        "source", ["", "import os\n\ndef helper():\n    return open('style.md').read()\n"]
    )
    def test_a_folder_without_prompts_is_an_error(self, source, recipes, folder, capsys):
        """
        Also where something less is found in it.
        """
        recipes(nothing=source)

        ended, data = checked(capsys)

        assert ended == 1
        assert "PK102" in [one["code"] for one in data["diagnostics"]]


class TestGitHub:
    def test_a_finding_is_an_annotation(self, recipes, folder, capsys):
        """
        It has file, line and columns, as GitHub wants them, and its hint on a line of its own.
        """
        recipes(broken=BROKEN)

        code = main(["check", "--format", "github"])

        assert code == 1
        assert capsys.readouterr().out == (
            "::error file=recipes/broken.py,line=4,col=12,endColumn=15,title=promptkit PK301"
            "::prompt 'broken': parameter 'diff' has no annotation%0Awrite its type, as in 'diff: str'\n"
        )

    def test_paths_begin_at_the_checkout(self, recipes, folder, monkeypatch, capsys):
        """
        Where GitHub says what the checkout is, paths start there, in whatever folder the command runs.
        """
        recipes(broken=BROKEN)
        monkeypatch.setenv("GITHUB_WORKSPACE", str(folder))
        monkeypatch.chdir(folder / "recipes")

        main(["check", ".", "--format", "github"])

        assert capsys.readouterr().out.startswith("::error file=recipes/broken.py,line=4,")

    @pytest.mark.parametrize("name", ["a,b", "a%b", "a:b"])
    def test_what_means_something_is_escaped(self, name, recipes, folder, capsys):
        """
        No path can add a property, and no text a command.
        """
        recipes(**{name: BROKEN.replace("broken", "x%0A::error::y")})

        main(["check", "--format", "github"])

        (annotation,) = capsys.readouterr().out.splitlines()
        place, text = re.fullmatch(r"::error (.*?)::(.*)", annotation).groups()
        decoded = {sign: f"%{ord(sign):02X}" for sign in ",%:"}
        assert place.startswith(f"file=recipes/a{decoded[name[1]]}b.py,line=")
        assert "%0A" in text

    def test_it_says_what_is_beside_the_findings(self, recipes, folder, capsys):
        """
        A token file that no server takes and prompts that were not tried are annotations of no line.
        """
        recipes(fine="from promptkit import prompt\n\n@prompt\ndef needs(x: str) -> str:\n    return x\n")

        code = main(["check", "--format", "github", "--render", "--token-file", "no,file"])

        assert code == 1
        assert capsys.readouterr().out == (
            "::notice title=promptkit::not rendered, because they need examples: needs\n"
            "::error title=promptkit::no server starts with no,file: cannot be read: "
            "No such file or directory\n"
        )

    def test_nothing_found_is_nothing_printed(self, recipes, folder, capsys):
        """
        Sound recipes print nothing, and a warning is one.
        """
        recipes(greet=FORGOTTEN)

        assert main(["check", "--format", "github"]) == 0
        assert capsys.readouterr().out.startswith("::warning file=recipes/greet.py,line=5,")


class TestRender:
    def test_each_prompt_is_rendered_for_its_examples(self, recipes, folder, capsys):
        """
        What fails is an error at the line that raised; what has no examples is named, and what refuses its
        defaults, with what it says.
        """
        recipes(examples=EXAMPLES)
        late = "it took longer than its limit of 0.05 s"

        code, found = checked(capsys, "--render")

        told = {
            one["message"].split("'")[1]: (one["line"], one["message"].partition(": ")[2])
            for one in found["diagnostics"]
        }
        assert code == 1
        assert found["not_rendered"] == {
            "defaults": "prompt 'defaults' has nothing to say for these arguments",
            "needs": "it needs examples",
            "refuses": "not today",
        }
        assert told == {
            "hides": (32, "it fails for key=<secret>: ValueError: bad key <secret>"),
            "second": (15, "it fails for n='0': ZeroDivisionError: division by zero"),
            "slow": (
                27,
                f"it fails for its defaults: {late}, and was at {Path('recipes', 'examples.py')}:27",
            ),
        }
        assert {one["code"] for one in found["diagnostics"]} == {"PK220"}

    def test_a_client_is_asked_about_what_was_rendered(self, recipes, folder, capsys):
        """
        What the source does not show is found in the rendering, once.
        """
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
        found = json.loads(capsys.readouterr().out)["diagnostics"]

        assert code == 0
        assert sorted(one["code"] for one in found) == ["PK211", "PK502"]

    def test_what_refuses_its_defaults_is_said(self, recipes, folder, capsys):
        """
        It is no failure: nobody has asked for it. For its author's examples it is one.
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
                "not rendered for its defaults: both: say a number",
                "not rendered for its defaults: review: there is no difference to HEAD",
                "not rendered for its defaults: diff://staged: nothing is staged",
            ],
        )
        recipes(refusing=source.replace("examples=[1]", "examples=[0]"))
        assert main(["check", "--render"]) == 1

    def test_what_is_not_to_be_sampled_is_said(self, recipes, folder, capsys):
        """
        It is called neither for its examples nor for its defaults.
        """
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
            ["2 prompts can be served", "not rendered, because they have sample=False: order, publish"],
        )

    def test_only_if_it_is_asked_for(self, recipes, folder, capsys):
        """
        Without the option no prompt is called.
        """
        recipes(examples=EXAMPLES)

        assert checked(capsys)[0] == 0

    def test_what_cannot_be_rendered_is_said(self, recipes, folder, capsys):
        """
        The text says which prompts could not be tried, and why.
        """
        recipes(needs=EXAMPLES.partition("@prompt\ndef refuses")[0].replace('return ""', "return 'x'"))

        code = main(["check", "--render"])

        assert code == 1
        assert capsys.readouterr().out.endswith("\nnot rendered, because they need examples: needs\n")

    def test_all_of_our_own_recipes_are_rendered(self, folder):
        """
        `check recipes --render` finds nothing and leaves no prompt out, whatever is staged: they have cases.
        """
        variables = ("PROJECT_ROOT", "SCREENSHOT_FOLDER", "RECORDING_FOLDER")
        assert not any(name in os.environ for name in variables)
        run("git", "init", "--quiet")

        code, printed, _ = command(
            "check", "recipes", "--render", cwd=ROOT, env={"PROMPTKIT_WORKSPACE": str(folder)}
        )

        assert (code, printed.decode()) == (0, "13 prompts, 1 resource and 2 skills can be served\n")

    @pytest.mark.parametrize(
        ("code", "served"),
        [("PK220", "1 prompt"), ("PK231", "1 prompt"), ("PK420", "1 resource")],
    )
    def test_the_page_shows_it(self, code, served, recipes, folder, capsys):
        """
        The example on the page of diagnostics fails as it says there.
        """
        source, printed = SHOWN[code]
        recipes(**{Rule(code).name.lower(): source})

        assert main(["check", "--render"]) == 1
        assert capsys.readouterr().out == f"{printed}{served} can be served, 1 error\n"

    def test_on_a_terminal(self, recipes, folder):
        """
        There, the line that raised is shown.
        """
        recipes(example_fails=SHOWN["PK220"][0])

        shown = on_terminal("check", "--render", cwd=folder, NO_COLOR="1")

        assert '\n    8 |     return f"Cut the text every {100 / parts:.0f} lines."\n' in shown


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
    def test_each_is_read(self, recipes, folder, capsys):
        """
        Those without variables at their URI, templates for their examples; what fails is an error.
        """
        recipes(shelf=RESOURCES)

        code, found = checked(capsys, "--render")

        told = {
            one["message"].split("'")[1]: one["message"].partition(": ")[2] for one in found["diagnostics"]
        }
        assert code == 1
        assert found["not_rendered"] == {
            "docs://late": "not today",
            "docs://needs/{text}": "it needs examples",
        }
        assert "recipes/shelf.py:18) returned None: return str or bytes" in told.pop("nothing")
        assert told == {
            "half": "it fails for docs://half: UnicodeEncodeError: 'utf-8' codec can't encode character "
            "'\\ud800' in position 1: surrogates not allowed",
            "key": "it fails for docs://keys/<secret>: ValueError: bad key <secret>",
            "page": "it fails for docs://pages/0?tags=a&tags=b%2Cc: ZeroDivisionError: division by zero",
            "part": "it fails for docs://parts: ValueError: no part ''",
        }
        assert {one["code"] for one in found["diagnostics"]} == {"PK420"}

    def test_the_time_limit(self, recipes, folder, capsys, monkeypatch):
        """
        One that takes too long fails like any other.
        """
        recipes(shelf=RESOURCES.replace('raise PromptError("not today")', "time.sleep(30)"))
        monkeypatch.setattr("promptkit.server.user_code.Limits", lambda: SimpleNamespace(timeout=0.05))

        found = checked(capsys, "--render")[1]["diagnostics"]

        place = f"{Path('recipes', 'shelf.py')}:16"
        said = f"it took longer than its limit of 0.05 s, and was at {place}"
        assert f"resource 'late': it fails for docs://late: {said}" in [one["message"] for one in found]

    def test_text_that_cannot_be_sent(self, recipes, folder, capsys):
        """
        A prompt is tried to the end, too: its result has to be one that can be written.
        """
        recipes(half="from promptkit import prompt\n\n@prompt\ndef half() -> str:\n    return 'a\\ud800'\n")

        (found,) = checked(capsys, "--render")[1]["diagnostics"]

        assert found["message"].startswith("prompt 'half': it fails for its defaults: UnicodeEncodeError: ")


@pytest.fixture
def clients(monkeypatch):
    """Two clients that we know all of: one takes no prompt of a long name, the other takes anything."""

    def lint_client(name, catalog):
        return [
            Diagnostic(
                Rule.BAD_EXAMPLE,
                f"prompt {prompt.name!r}: {name} cuts its name",
                "shorten it",
                prompt.location,
            )
            for prompt in catalog.prompts
            if name == "narrow" and len(prompt.name) > 5
        ]

    known = {"narrow": profiles.ClientProfile("Narrow"), "wide": profiles.ClientProfile("Wide")}
    monkeypatch.setattr(profiles, "CLIENTS", known)
    monkeypatch.setattr("promptkit.lints.linter.lint_client", lint_client)


@pytest.mark.usefixtures("clients")
class TestClients:
    @pytest.fixture(autouse=True)
    def shelf(self, recipes, folder):
        """A prompt with a long name."""
        self.folder = folder
        recipes(shelf="from promptkit import prompt\n\n@prompt\ndef lengthy() -> str:\n    return 'x'\n")

    @pytest.mark.parametrize(
        ("argv", "found"),
        [
            ([], 0),
            (["--client", "wide"], 0),
            (["--client", "narrow"], 1),
            (["--client", "wide", "--client", "narrow", "--client", "narrow"], 1),
        ],
        ids=str,
    )
    def test_each_client_that_is_named_is_asked(self, argv, found, capsys):
        """
        The option can be repeated; a client that is named twice is asked once.
        """
        assert len(checked(capsys, *argv)[1]["diagnostics"]) == found

    def test_those_of_the_configuration(self, capsys):
        """
        They are asked unless the command line names others.
        """
        (self.folder / "pyproject.toml").write_text('[tool.promptkit]\nclients = ["narrow"]\n')

        assert len(checked(capsys)[1]["diagnostics"]) == 1
        assert checked(capsys, "--client", "wide")[1]["diagnostics"] == []

    def test_a_finding_is_ignored_on_its_line(self, recipes, capsys):
        """
        A comment takes back what is said for a client, too.
        """
        recipes(
            shelf="from promptkit import prompt\n\n@prompt  # promptkit: ignore[PK313]\n"
            "def lengthy() -> str:  # promptkit: ignore[PK313]\n    return 'x'\n"
        )

        assert checked(capsys, "--client", "narrow")[1]["diagnostics"] == []

    def test_an_unknown_one(self, capsys):
        """
        The nearest is named, or all of them.
        """
        for name, said in [("narow", "did you mean 'narrow'?"), ("zzzzz", "there are narrow, wide")]:
            with pytest.raises(SystemExit) as ended:
                main(["check", "--client", name])
            assert ended.value.code == 2
            told = capsys.readouterr().err.splitlines()[-1]
            assert told == f"promptkit check: error: argument --client: there is no client {name!r}: {said}"

    def test_an_unknown_one_in_the_configuration(self, capsys):
        """
        The file is named, too.
        """
        file = self.folder / "pyproject.toml"
        file.write_text('[tool.promptkit]\nclients = ["narow"]\n')

        assert main(["check"]) == 2
        told = capsys.readouterr().err
        said = "there is no client 'narow': did you mean 'narrow'?"
        assert told == f"promptkit: {file}: [tool.promptkit] clients: {said}\n"


@pytest.mark.skipif(sys.platform == "win32", reason="files have no modes there")
class TestSecrets:
    """Files of tokens and keys are read as a server reads them, before it does."""

    @pytest.fixture
    def refused(self, recipes, folder, capsys):
        """Return the exit code, and what a server would say of a file of tokens and one of keys."""
        recipes(greet=FORGOTTEN)

        def check(tokens, keys, mode=0o600):
            for name, text in (("tokens", tokens), ("keys", keys)):
                (folder / name).write_text(text)
                (folder / name).chmod(mode)
            code, data = checked(capsys, "--token-file", "tokens", "--state-keys", "keys")
            return code, data["refused"]

        return check

    def test_what_a_server_takes(self, refused):
        """
        Nothing is said of it.
        """
        assert refused(f"ada {'a' * 32}\n", f"{'ab' * 32}\n") == (0, [])

    def test_what_it_does_not(self, refused):
        """
        The line is named, and no secret is shown.
        """
        code, found = refused(f"ada {'a' * 32}\nbob short\n", "abc\n")

        assert code == 1
        assert found[0] == "tokens: line 2: the token has 5 characters and could be guessed: it needs 32"
        assert found[1].startswith("keys: line 1: this is neither base64 nor hexadecimal; ")

    def test_what_others_can_read(self, refused):
        """
        Each file is refused with what to do.
        """
        code, found = refused(f"ada {'a' * 32}\n", f"{'ab' * 32}\n", mode=0o644)

        assert code == 1
        assert [one.partition(":")[0] for one in found] == ["tokens", "keys"]
        assert all("every user can read it (mode 0644): make new " in one for one in found)


def test_json_is_a_format(recipes, folder):
    """
    ``--json`` is short for ``--format json``, and both together are refused.
    """
    recipes(broken=BROKEN)

    assert command("check", "--json", cwd=folder) == command("check", "--format", "json", cwd=folder)
    assert command("check", "--json", "--format", "text", cwd=folder)[0] == 2


def test_locations_without_a_file(capsys):
    """
    What has no place is annotated without one.
    """
    from promptkit.cli.diagnostics import print_annotations

    output = Output(sys.stdout, "utf-8")
    print_annotations([Diagnostic(Rule.NO_PROMPTS, "nothing", "add", Location(""))], output)
    output.send()

    assert capsys.readouterr().out == "::error title=promptkit PK102::nothing%0Aadd\n"

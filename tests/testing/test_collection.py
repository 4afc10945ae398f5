"""`pytest --promptkit`, in pytest runs like an author's."""

import json
import re
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import settings

from promptkit.cli import main
from promptkit.compiler.compilation import compile
from promptkit.errors.distribution import install_command
from promptkit.loader.loader import load

ROOT = Path(__file__).parents[2]
pytest_plugins = ["pytester"]

#: A problem of each kind, among valid prompts.
RECIPES = {
    "sound": '''
        from typing import Annotated, Literal
        from promptkit import Arg, PromptError, prompt, resource

        @prompt
        def review(code: Annotated[str, Arg("The code", examples=["x = 1"])], kind: Literal["a", "b"] = "a"):
            """Ask for a review."""
            return f"Review ({kind}): {code!r}"

        @prompt
        async def refuse(text: str):
            """Take no blank text."""
            if not text.strip():
                raise PromptError("There is no text.")
            return text

        @resource("shelf://notice")
        def notice() -> str:
            return "Closed."
    ''',
    "finding": '''
        from promptkit import prompt

        @prompt
        def greet(name: str):
            """Say hello."""
            return "Hello {name}."
    ''',
    "unserved": '''
        from promptkit import prompt

        @prompt
        def unserved(name):
            """Say hello."""
            return f"Hello {name}."
    ''',
    "refused": '''
        from typing import Annotated
        from promptkit import Arg, PromptError, prompt

        @prompt
        def refused(name: Annotated[str, Arg("Who", examples=["Ada", "Grace"])]):
            """Say hello."""
            if name == "Grace":
                raise PromptError("There is no Grace.")
            return f"Hello {name}."
    ''',
    "generated": '''
        from promptkit import prompt

        @prompt
        def divide(amount: float, among: int = 2):
            """Share something."""
            return f"Each gets {share(amount, among)}."

        def share(amount, among):
            return amount / among
    ''',
    "broken": """
        from promptkit import prompt
        import nothing_of_that_name

        @prompt
        def lost(): return "x"
    """,
    "_text": "word = 'x'",
    "test_sound": "from sound import review\n\ndef test(): assert review('x')",
}

FAULTY = [
    "broken.py::broken.py",
    "finding.py::greet",
    "generated.py::divide",
    "refused.py::refused",
    "unserved.py::unserved",
]


@pytest.fixture
def project(pytester):
    """A function that writes recipes into a folder of the project."""

    def write(*names, folder="recipes", **more):
        place = pytester.path / folder
        place.mkdir(exist_ok=True, parents=True)
        wanted = names or (() if more else RECIPES)
        for name, source in {**{name: RECIPES[name] for name in wanted}, **more}.items():
            (place / f"{name}.py").write_text(dedent(source).lstrip("\n"))
        return place

    return write


@pytest.fixture
def run(run):
    """A function that runs pytest in the project and returns the result of each test."""
    return lambda *options: run("-rA", "--tb=short", *options)


def outcomes(ran):
    """Return the tests that have passed and those that have failed, without their folders."""
    lines = [re.match(r"(PASSED|FAILED) (?:\S*/)?([^/\s]+)", line) for line in ran.outlines]
    found = {"PASSED": set(), "FAILED": set()}
    for line in filter(None, lines):
        found[line[1]].add(line[2])
    return sorted(found["PASSED"]), sorted(found["FAILED"])


def test_a_planted_fault_of_each_kind_is_found(project, run, monkeypatch):
    """
    A diagnostic, a prompt that cannot be served, a file that cannot be imported, an example that is rejected,
    and a generated argument for which a prompt fails are each reported with their location; all other prompts
    pass.
    """
    project()
    monkeypatch.setenv("CI", "true")  # the same generated arguments in each run

    ran = run("--promptkit", "recipes")
    shown = ran.stdout.str()

    assert outcomes(ran) == (["sound.py::refuse", "sound.py::review", "test_sound.py::test"], FAULTY)
    assert "finding.py:6: warning PK207: prompt 'greet'" in shown
    assert "unserved.py:4: error PK301: prompt 'unserved': parameter 'name' has no annotation" in shown
    assert "broken.py:2: error PK101" in shown
    assert "prompt 'refused' fails for {'name': 'Grace'}" in shown
    assert "There is no Grace." in shown
    assert "prompt 'divide' fails for {'amount': '0.0', 'among': '0'}" in shown
    assert "return amount / among" in shown
    assert "ZeroDivisionError" in shown
    assert "promptkit/" not in shown
    assert "Falsifying" not in shown


def test_a_prompt_that_refuses_whatever_is_made_up_is_skipped(project, run):
    """
    A prompt that rejects all generated arguments is skipped with its reason; it may only lack input here.
    """
    source = """
        from promptkit import PromptError, prompt

        @prompt
        def review(ref: str = "HEAD"):
            raise PromptError("there is no difference")
    """
    project(review=source)

    ran = run("--promptkit", "recipes")

    ran.assert_outcomes(skipped=1)
    assert "not rendered: there is no difference" in ran.stdout.str()


def test_a_prompt_that_is_not_to_be_sampled_is_skipped(project, run):
    """
    With `sample=False`, a prompt is called neither for examples nor for generated arguments, and the reason
    is shown.
    """
    source = """
        from typing import Annotated
        from promptkit import Arg, prompt

        @prompt(sample=False)
        def publish(version: Annotated[str, Arg(examples=["1.0"])] = "2.0"):
            raise SystemExit("it was called")
    """
    project(publish=source)

    ran = run("--promptkit", "recipes")

    ran.assert_outcomes(skipped=1)
    assert "not rendered: sample=False" in ran.stdout.str()


CASES = """
    from typing import Annotated
    from promptkit import Arg, PromptError, prompt

    @prompt
    def review(code: str, key: Annotated[str, Arg(secret=True)] = ""):
        if not code:
            raise PromptError("the code is empty")
        return f"Review {code}. {key}"

    review.case("short", "x = 1", key="hunter2hunter2")
    review.case("nothing", "").refused("is empty")
"""


class TestCases:
    def test_each_is_a_test(self, project, run):
        """
        Each case is a test; a case without the expected outcome fails with a one-line message, in any file.
        """
        more = """
            from .review import review

            review.case("empty", "")
            review.case("full", "x").refused("is empty")
            review.case("wrong", 3)
        """
        project(review=CASES, cases_more=more)

        ran = run("--promptkit", "recipes", "-q")

        passed, failed = outcomes(ran)
        assert passed == ["review.py::review", "review.py::review[nothing]", "review.py::review[short]"]
        assert failed == [
            "cases_more.py::cases_more.py",
            *(f"review.py::review[{name}]" for name in ("empty", "full", "wrong")),
        ]
        said = ran.stdout.str()
        assert "prompt 'review': the case 'empty' is refused: the code is empty" in said
        assert "the case 'full' is not refused as expected: 'is empty'" in said
        assert "parameter 'code' takes str, not an int (3)" in said

    def test_snapshots_are_kept_when_they_are_asked_for(self, project, run, pytester):
        """
        Snapshots are checked once `--snapshot-update` has written them. Each is a file next to the prompt,
        without secrets; a changed text is shown as a diff, and accepted by an update.
        """
        project(review=CASES)
        kept = pytester.path / "recipes/__snapshots__/review/review[short].md"

        assert not run("--promptkit", "recipes").ret
        assert not kept.exists()
        run("--promptkit", "recipes", "--snapshot-update").assert_outcomes(passed=3)
        assert kept.read_text() == "[user]\nReview x = 1. <secret>\n"
        assert [file.name for file in kept.parent.iterdir()] == [kept.name]
        run("--promptkit", "recipes").assert_outcomes(passed=3)

        project(review=CASES.replace("Review {code}", "Check {code}"))
        ran = run("--promptkit", "recipes")
        ran.assert_outcomes(passed=2, failed=1)
        ran.stdout.fnmatch_lines(
            [
                "prompt 'review': the case 'short' renders another text (- snapshot, + now)",
                "- Review x = 1. <secret>",
                "+ Check x = 1. <secret>",
            ]
        )
        run("--promptkit", "recipes", "--snapshot-update").assert_outcomes(passed=3)
        assert kept.read_text() == "[user]\nCheck x = 1. <secret>\n"


def test_several_targets_are_loaded_together(project, run, pytester):
    """Each prompt of several targets is a test, and conflicts between the targets are reported."""
    (pytester.path / "pyproject.toml").write_text("[tool.promptkit]\ntarget = ['recipes', 'more/recipes']\n")
    for folder in ("recipes", "more/recipes"):
        name = folder.partition("/")[0]
        project(folder=folder, **{name: f"from promptkit import prompt\n\n@prompt\ndef {name}(): return 'x'"})
        project(folder=folder, twice="from promptkit import prompt\n\n@prompt\ndef twice(): return 'x'")

    ran = run("--promptkit", "-q")

    assert outcomes(ran)[0] == ["more.py::more", "recipes.py::recipes", "twice.py::twice"]
    assert "already defined at" in ran.stdout.str()


def test_without_the_option_a_recipe_is_no_test(project, run):
    """Without the option, recipes are not collected."""
    project()

    run("recipes").assert_outcomes(passed=1)


#: Problems that `check` finds in the whole catalog, in the configuration, in renderings, and outside of
#: prompts.
DELICATE = {
    "twin": """
        from promptkit import prompt

        @prompt(name="Review")
        def upper():
            return "x"
    """,
    "twins": """
        from promptkit import prompt

        @prompt(name="review")
        def lower():
            return "x"
    """,
    "suppressed": """
        from promptkit import prompt

        @prompt
        def suppressed(name: str):
            return "Hello {name}."  # promptkit: ignore[PK207]
    """,
    "opening": """
        from promptkit import assistant, prompt, user

        def turns():
            return assistant("What is it?") + user("This.")

        @prompt
        def opening():
            return turns()
    """,
    "wide": """
        from typing import Annotated
        from promptkit import Arg, prompt

        @prompt
        def wide(a: Annotated[str, Arg(examples=["b"])] = "c", d: int = 1):
            return f"{a} {d}"
    """,
    "words": "greeting = helo\n",
    "plain": "import math\n\ndef area(radius):\n    return math.pi * radius * radii\n",
}


class TestBesideCheck:
    """`pytest --promptkit` compared with `promptkit check --render`."""

    @pytest.fixture
    def both(self, run, capsys):
        """A function that returns the diagnostics of both, by file, line and code, and the pytest run."""

        def both(*target):
            main(["check", *target, "--render", "--json", "--client=zed"])
            data = json.loads(capsys.readouterr().out)["diagnostics"]
            by_check = {(Path(one["file"]).name, one["line"], one["code"]) for one in data}
            ran = run("--promptkit", *target)
            told = re.findall(
                r"^(?:E +)?(\S+?):(\d+): (?:error|warning) (PK\d+)", ran.stdout.str(), re.MULTILINE
            )
            return by_check, {(Path(file).name, int(line), code) for file, line, code in told}, ran

        return both

    @pytest.mark.parametrize("target", [(), ("recipes",)], ids=["configured", "named"])
    def test_they_find_the_same(self, target, project, both, pytester):
        """
        Both report the same diagnostics: for the catalog, for clients, in renderings, and outside of prompts.
        Both obey the same suppressions, and both search subfolders except those that are not served.
        """
        project("finding", "sound", **DELICATE)
        project("unserved", folder="recipes/ops/deep")
        project("finding", "unserved", folder="recipes/_drafts")
        project(folder="recipes", test_forgotten=RECIPES["finding"].replace("greet", "forgotten"))
        (pytester.path / "pyproject.toml").write_text(
            "[tool.promptkit]\nignore = ['PK210']\nclients = ['zed']\n"
        )

        by_check, by_pytest, ran = both(*target)

        assert {code for _, _, code in by_check} >= {"PK101", "PK103", "PK107", "PK207", "PK211", "PK501"}
        assert "PK210" not in ran.stdout.str()
        assert by_pytest == by_check
        assert "drafts" not in ran.stdout.str()
        assert "recipes/ops/deep/unserved.py::unserved" in ran.stdout.str()

    @pytest.mark.parametrize("target", ["recipes/twins.py", "recipes/twins.py:lower"])
    def test_a_file_or_an_object_is_all_that_is_looked_at(self, target, project, both, pytester):
        """If the configuration names a file, or a prompt in it, nothing next to it is checked."""
        project(**DELICATE)
        (pytester.path / "pyproject.toml").write_text(f"[tool.promptkit]\ntarget = '{target}'\n")

        by_check, by_pytest, ran = both()

        assert by_check == by_pytest == set()
        assert outcomes(ran) == (["twins.py::review"], [])

    def test_a_folder_above_leads_to_its_target(self, project, run, pytester):
        """
        Given a folder that contains the target, pytest tests the served prompts below it and ignores other
        files.
        """
        project("sound")
        project("finding", folder="recipes/_drafts")
        project(folder="tests", util="def area(): return raduis", test_it="def test(): pass")

        assert outcomes(run("--promptkit", ".")) == (
            ["sound.py::refuse", "sound.py::review", "test_it.py::test"],
            [],
        )

    @pytest.mark.parametrize(
        ("setting", "says"),
        [
            ("ignore = ['PK998']", "[tool.promptkit] ignore: there is no code 'PK998'"),
            ("ignore = ['PK301']", "[tool.promptkit] ignore: PK301 is an error that cannot be"),
            (
                "clients = ['zde']",
                "[tool.promptkit] clients: there is no client 'zde': did you mean 'zed'?",
            ),
        ],
    )
    def test_a_setting_that_does_not_exist_is_told_by_both(self, setting, says, project, run, capsys):
        """Both reject a misspelt code or client."""
        settings = project("sound").with_name("pyproject.toml")
        settings.write_text(f"[tool.promptkit]\n{setting}\n")

        assert main(["check", "recipes"]) == 2
        assert says in capsys.readouterr().err
        for ran in (run("--promptkit", "recipes"), run("--promptkit")):
            assert ran.ret == pytest.ExitCode.USAGE_ERROR
            assert says in ran.stderr.str()


def test_our_own_recipes_are_clean(run, monkeypatch):
    """
    ``pytest --promptkit recipes`` in a checkout passes for each of the thirteen recipes and their cases, with
    no environment variable set except ``CI``.
    """
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("CI", "true")  # the same generated arguments in each run

    profile = settings.get_current_profile_name()
    ran = run("--promptkit", "-n0", "-k", "not test_", "recipes")
    settings.load_profile(profile)  # which conftest.py has replaced

    assert ran.ret == 0
    passed, failed = outcomes(ran)
    assert failed == []
    assert [one for one in passed if "[" not in one] == [
        f"{name}.py::{name}" for name in sorted(compile(load(ROOT / "recipes")))
    ]


class TestWhatIsCollected:
    def test_the_folder_recipes(self, project, run):
        """Without a target, the folder `recipes` is collected, and no other."""
        project("sound")
        project("finding", folder="elsewhere")

        assert outcomes(run("--promptkit")) == (["sound.py::refuse", "sound.py::review"], [])

    def test_the_target_of_the_configuration(self, project, run, pytester):
        """The configured target is collected next to the regular tests, and its `ignore` is obeyed."""
        project("finding", "sound", folder="mine")
        project("test_sound", folder="tests", sound=RECIPES["sound"])
        (pytester.path / "pyproject.toml").write_text(
            "[tool.promptkit]\ntarget = 'mine'\nignore = ['PK207']\n"
            "[tool.pytest.ini_options]\ntestpaths = ['tests']\npythonpath = ['mine']\n"
        )

        assert outcomes(run("--promptkit", "-n1")) == (
            ["finding.py::greet", "sound.py::refuse", "sound.py::review", "test_sound.py::test"],
            [],
        )

    def test_a_folder_whose_configuration_names_a_module(self, project, run, pytester):
        """A folder on the command line is searched even if the configured target is a module."""
        project("sound")
        (pytester.path / "pyproject.toml").write_text("[tool.promptkit]\ntarget = 'recipes.sound'\n")

        assert outcomes(run("--promptkit", ".")) == (["sound.py::refuse", "sound.py::review"], [])

    def test_one_file_or_one_prompt(self, project, run):
        """A file, or one of its prompts, is selected like any test."""
        project()

        assert outcomes(run("--promptkit", "recipes/sound.py::review")) == (["sound.py::review"], [])

    @pytest.mark.parametrize(
        ("configuration", "says"),
        [
            ("", "there is no folder recipes or prompts here: name one, or set target in"),
            (
                "[tool.promptkit]\ntargt = 'x'",
                "[tool.promptkit] has no setting 'targt': did you mean 'target'?",
            ),
            ("[tool.promptkit]\ntarget = 'json'", "'json' is a module; name the folder that it is in"),
        ],
    )
    def test_there_is_no_target(self, configuration, says, run, pytester):
        """A missing or invalid target is reported in one sentence before any test runs."""
        (pytester.path / "pyproject.toml").write_text(configuration)

        ran = run("--promptkit")

        assert ran.ret == pytest.ExitCode.USAGE_ERROR
        assert says in ran.stderr.str()


def test_fixtures_that_all_tests_use_count(project, run):
    """Autouse fixtures of a `conftest.py` also apply to prompts."""
    project(
        "sound",
        reads="""
        import os
        from promptkit import prompt

        @prompt
        def reads():
            return os.environ["WORD"]
        """,
        conftest="""
        import pytest

        @pytest.fixture(autouse=True)
        def word(monkeypatch):
            monkeypatch.setenv("WORD", "set")
        """,
    )

    assert "reads.py::reads" in outcomes(run("--promptkit", "recipes"))[0]


def test_what_is_missing_is_named_with_the_command(project, run_alone):
    """Without hypothesis, each test of a prompt fails with the command that installs it."""
    project("sound", conftest="import sys\nsys.modules['hypothesis'] = None")

    ran = run_alone("-rA", "--tb=short", "--promptkit", "recipes", "-p", "no:hypothesispytest")

    assert outcomes(ran)[1] == ["sound.py::refuse", "sound.py::review"]
    assert f"needs hypothesis: {install_command('testing')}" in ran.stdout.str()

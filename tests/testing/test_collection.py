"""`pytest --promptkit`, in runs of pytest as authors start it."""

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

FAILED = [
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
        folder_path = pytester.path / folder
        folder_path.mkdir(exist_ok=True, parents=True)
        selected = names or (() if more else RECIPES)
        for name, source in {**{name: RECIPES[name] for name in selected}, **more}.items():
            (folder_path / f"{name}.py").write_text(dedent(source).lstrip("\n"))
        return folder_path

    return write


@pytest.fixture
def run(run):
    """A function that runs pytest in the project and returns the result of each test."""
    return lambda *options: run("-rA", "--tb=short", *options)


def outcomes_of(result):
    """Return the passed tests and the failed tests, without their folders."""
    lines = [re.match(r"(PASSED|FAILED) (?:\S*/)?([^/\s]+)", line) for line in result.outlines]
    names = {"PASSED": set(), "FAILED": set()}
    for line in filter(None, lines):
        names[line[1]].add(line[2])
    return sorted(names["PASSED"]), sorted(names["FAILED"])


def test_every_kind_of_problem_is_reported(project, run, monkeypatch):
    """
    A diagnostic, a prompt that cannot be served, a file that cannot be imported, an example that is rejected,
    and a generated argument for which a prompt fails are each reported with their location; all other prompts
    pass.
    """
    project()
    monkeypatch.setenv("CI", "true")  # the same generated arguments in each run

    result = run("--promptkit", "recipes")
    output = result.stdout.str()

    assert outcomes_of(result) == (["sound.py::refuse", "sound.py::review", "test_sound.py::test"], FAILED)
    assert "finding.py:6: warning PK207: prompt 'greet'" in output
    assert "unserved.py:4: error PK301: prompt 'unserved': parameter 'name' has no annotation" in output
    assert "broken.py:2: error PK101" in output
    assert "prompt 'refused' fails for {'name': 'Grace'}" in output
    assert "There is no Grace." in output
    assert "prompt 'divide' fails for {'amount': '0.0', 'among': '0'}" in output
    assert "return amount / among" in output
    assert "ZeroDivisionError" in output
    assert "promptkit/" not in output
    assert "Falsifying" not in output


def test_prompt_that_rejects_all_generated_arguments_is_skipped(project, run):
    """
    A prompt that rejects all generated arguments is skipped with its reason; it may need other input.
    """
    source = """
        from promptkit import PromptError, prompt

        @prompt
        def review(ref: str = "HEAD"):
            raise PromptError("there is no difference")
    """
    project(review=source)

    result = run("--promptkit", "recipes")

    result.assert_outcomes(skipped=1)
    assert "not rendered: there is no difference" in result.stdout.str()


def test_unsampled_prompt_is_skipped(project, run):
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

    result = run("--promptkit", "recipes")

    result.assert_outcomes(skipped=1)
    assert "not rendered: sample=False" in result.stdout.str()


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
    def test_every_case_is_a_test(self, project, run):
        """
        Each case is a test; a case without the expected outcome fails with a one-line message, in any file.
        """
        more_cases = """
            from .review import review

            review.case("empty", "")
            review.case("full", "x").refused("is empty")
            review.case("wrong", 3)
        """
        project(review=CASES, cases_more=more_cases)

        result = run("--promptkit", "recipes", "-q")

        passed, failed = outcomes_of(result)
        assert passed == ["review.py::review", "review.py::review[nothing]", "review.py::review[short]"]
        assert failed == [
            "cases_more.py::cases_more.py",
            *(f"review.py::review[{name}]" for name in ("empty", "full", "wrong")),
        ]
        output = result.stdout.str()
        assert "prompt 'review': the case 'empty' is rejected: the code is empty" in output
        assert "the case 'full' should be rejected with 'is empty', but it succeeds" in output
        assert "parameter 'code' takes str, not an int (3)" in output

    def test_snapshots_of_cases(self, project, run, pytester):
        """
        Snapshots are checked once `--snapshot-update` has written them. Each is a file next to the prompt,
        without secrets; a changed text is shown as a diff, and accepted by an update.
        """
        project(review=CASES)
        snapshot = pytester.path / "recipes/__snapshots__/review/review[short].md"

        assert not run("--promptkit", "recipes").ret
        assert not snapshot.exists()
        run("--promptkit", "recipes", "--snapshot-update").assert_outcomes(passed=3)
        assert snapshot.read_text() == "[user]\nReview x = 1. <secret>\n"
        assert [file.name for file in snapshot.parent.iterdir()] == [snapshot.name]
        run("--promptkit", "recipes").assert_outcomes(passed=3)

        project(review=CASES.replace("Review {code}", "Check {code}"))
        result = run("--promptkit", "recipes")
        result.assert_outcomes(passed=2, failed=1)
        result.stdout.fnmatch_lines(
            [
                "prompt 'review': the case 'short' renders different text (- snapshot, + current)",
                "- Review x = 1. <secret>",
                "+ Check x = 1. <secret>",
            ]
        )
        run("--promptkit", "recipes", "--snapshot-update").assert_outcomes(passed=3)
        assert snapshot.read_text() == "[user]\nCheck x = 1. <secret>\n"

    NAMES = ("a/b", "a:b", "ab", "?", "*", "Ab", "é", "e\u0301", "a::b", "ß" * 300, "ß" * 300 + "x", "a.1")

    @pytest.mark.parametrize("paths", [(), (".",), ("recipes",), ("recipes/review.py",)])
    def test_snapshot_of_a_removed_case(self, project, run, pytester, paths):
        """The snapshot of a removed case is unused, and an update removes it, for any arguments of pytest."""
        case = 'review.case("long", "x = 1 " * 9)\n'
        project(review=dedent(CASES) + case)
        snapshot = pytester.path / "recipes/__snapshots__/review/review[long].md"
        run("--promptkit", *paths, "--snapshot-update").assert_outcomes(passed=4)
        project(review=CASES)

        result = run("--promptkit", *paths)

        assert (result.ret, "1 snapshot unused." in result.stdout.str()) == (1, True)
        run("--promptkit", *paths, "--snapshot-update").assert_outcomes(passed=3)
        assert not snapshot.exists()

    def test_snapshots_of_cases_that_are_not_tested(self, project, run, pytester):
        """A run that does not test the cases keeps their snapshots."""
        project(
            review=CASES, test_review="def test_review(promptkit_snapshot): assert 'x' == promptkit_snapshot"
        )
        run("--promptkit", "--snapshot-update").assert_outcomes(passed=4)

        run("--snapshot-update")

        assert (pytester.path / "recipes/__snapshots__/review/review[short].md").exists()

    @pytest.mark.filterwarnings("error")
    def test_each_case_has_its_own_snapshot(self, project, run, pytester):
        """
        Cases have different snapshots, even if their names differ only in characters that file names cannot
        have, in case, or beyond the longest file name. Snapshots of removed cases are removed.
        """
        cases = "".join(f"review.case({name!r}, {name!r})\n" for name in self.NAMES)
        project(review=dedent(CASES) + cases)

        run("--promptkit", "recipes", "--snapshot-update").assert_outcomes(passed=3 + len(self.NAMES))
        files = [file.name for file in pytester.path.glob("recipes/__snapshots__/review/*")]
        assert len(files) == len({file.casefold() for file in files}) == 1 + len(self.NAMES)
        assert max(len(file.encode()) for file in files) < 255
        run("--promptkit", "recipes").assert_outcomes(passed=3 + len(self.NAMES))

        project(review=CASES)
        run("--promptkit", "recipes", "--snapshot-update").assert_outcomes(passed=3)
        files = [file.name for file in pytester.path.glob("recipes/__snapshots__/review/*")]
        assert files == ["review[short].md"]

    def test_lost_snapshot_fails_in_ci(self, project, run, pytester, monkeypatch):
        """In continuous integration, a case without a snapshot fails if other cases have one."""
        monkeypatch.setenv("CI", "true")
        project(review=dedent(CASES) + "review.case('long', 'x = 1\\n' * 9)\n")
        folder = pytester.path / "recipes/__snapshots__/review"

        run("--promptkit", "recipes").assert_outcomes(passed=4)
        run("--promptkit", "recipes", "--snapshot-update").assert_outcomes(passed=4)
        (folder / "review[long].md").unlink()
        result = run("--promptkit", "recipes")
        result.assert_outcomes(passed=3, failed=1)
        assert (
            "the case 'long' has no snapshot, but other cases in its file have one: write it with"
            in result.stdout.str()
        )
        monkeypatch.delenv("CI")
        run("--promptkit", "recipes").assert_outcomes(passed=4)

    def test_snapshot_shows_blanks_at_line_ends(self, project, run, pytester):
        """Whitespace that formatters remove is shown as symbols, and the next run finds no difference."""
        project(review=dedent(CASES) + r"review.case('long', 'a \n\tb\t\n\r', key='hunter2hunter2')")
        snapshot = pytester.path / "recipes/__snapshots__/review/review[long].md"

        run("--promptkit", "recipes", "--snapshot-update").assert_outcomes(passed=4)
        assert snapshot.read_text() == "[user]\nReview a␠\n\tb␉\n␍. <secret>\n"
        run("--promptkit", "recipes").assert_outcomes(passed=4)


def test_prompts_of_one_function_have_their_own_diagnostics(project, run):
    """A diagnostic fails the test of its own prompt, even if several prompts are made from one function."""
    project(
        many="""
            from typing import Annotated
            from promptkit import Arg, prompt

            def make(name, examples):
                @prompt(name=name)
                def made(n: Annotated[int, Arg(examples=examples)] = 0) -> str:
                    return str(n)
                return made

            prompts = [make("first", [1]), make("second", ["x"]), make("third", [3])]
        """
    )

    assert outcomes_of(run("--promptkit", "-q")) == (
        ["many.py::first", "many.py::third"],
        ["many.py::second"],
    )


def test_several_targets_are_loaded_together(project, run, pytester):
    """Each prompt of several targets is a test, and conflicts between the targets are reported."""
    (pytester.path / "pyproject.toml").write_text("[tool.promptkit]\ntarget = ['recipes', 'more/recipes']\n")
    for folder in ("recipes", "more/recipes"):
        name = folder.partition("/")[0]
        project(folder=folder, **{name: f"from promptkit import prompt\n\n@prompt\ndef {name}(): return 'x'"})
        project(folder=folder, twice="from promptkit import prompt\n\n@prompt\ndef twice(): return 'x'")

    result = run("--promptkit", "-q")

    assert outcomes_of(result)[0] == ["more.py::more", "recipes.py::recipes", "twice.py::twice"]
    assert "already defined at" in result.stdout.str()


@pytest.mark.parametrize("words", [(), ("team", "ops")])
def test_targets_with_prefixes(words, project, run, pytester):
    """Prompts of targets with prefixes are tested by the names by which they are served, with their cases."""
    configuration = "[tool.promptkit]\ntargets = {review = 'team/prompts', ops = 'ops/prompts'}\n"
    (pytester.path / "pyproject.toml").write_text(configuration)
    source = """
        from promptkit import prompt

        @prompt
        def plan(task: str = "it"):
            return f"Plan {task}."

        plan.case("short", "x")

        @prompt
        def unserved(name):
            return name
        """
    for folder in ("team", "ops"):
        project(folder=f"{folder}/prompts", plan=source)

    result = run("--promptkit", "-p", "no:syrupy", *words)

    names = [f"plan.py::{prefix}-{name}" for prefix in ("ops", "review") for name in ("plan", "plan[short]")]
    passed, failed = outcomes_of(result)
    assert passed == names
    assert failed == ["plan.py::ops-unserved", "plan.py::review-unserved"]
    result.stdout.fnmatch_lines(["*error PK301: prompt 'review-unserved': *"])


def test_recipes_are_not_collected_by_default(project, run):
    """Without the option, recipes are not collected."""
    project()

    run("recipes").assert_outcomes(passed=1)


#: Problems that `check` finds in the whole catalog, in the configuration, in renderings, and outside of
#: prompts.
DELICATE = {
    "twin": """
        from promptkit import prompt

        @prompt(name="review")
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


class TestComparedWithCheck:
    """`pytest --promptkit` compared with `promptkit check --render`."""

    @pytest.fixture
    def run_both(self, run, capsys):
        """A function that returns the diagnostics of both, by file, line and code, and the pytest run."""

        def run_both(*target):
            main(["check", *target, "--render", "--json", "--client=zed"])
            data = json.loads(capsys.readouterr().out)["diagnostics"]
            by_check = {
                (Path(diagnostic["file"]).name, diagnostic["line"], diagnostic["code"]) for diagnostic in data
            }
            result = run("--promptkit", *target)
            by_pytest = re.findall(
                r"^(?:E +)?(\S+?):(\d+): (?:error|warning) (PK\d+)", result.stdout.str(), re.MULTILINE
            )
            return by_check, {(Path(file).name, int(line), code) for file, line, code in by_pytest}, result

        return run_both

    @pytest.mark.parametrize("target", [(), ("recipes",)], ids=["configured", "named"])
    def test_both_report_the_same_diagnostics(self, target, project, run_both, pytester):
        """
        Both report the same diagnostics: for the catalog, for clients, in renderings, and outside of prompts.
        Both obey the same suppressions, and both search the served subfolders only.
        """
        project("finding", "sound", **DELICATE)
        project("unserved", folder="recipes/ops/deep")
        project("finding", "unserved", folder="recipes/_drafts")
        project(folder="recipes", test_forgotten=RECIPES["finding"].replace("greet", "forgotten"))
        (pytester.path / "pyproject.toml").write_text(
            "[tool.promptkit]\nignore = ['PK207']\nclients = ['zed']\n"
        )

        by_check, by_pytest, result = run_both(*target)

        assert {code for _, _, code in by_check} >= {"PK101", "PK103", "PK107", "PK202", "PK211", "PK501"}
        assert "PK207" not in result.stdout.str()
        assert by_pytest == by_check
        assert "drafts" not in result.stdout.str()
        assert "recipes/ops/deep/unserved.py::unserved" in result.stdout.str()

    @pytest.mark.parametrize("target", ["recipes/twins.py", "recipes/twins.py:lower"])
    def test_only_the_named_file_or_object_is_checked(self, target, project, run_both, pytester):
        """If the configuration names a file, or a prompt in it, nothing next to it is checked."""
        project(**DELICATE)
        (pytester.path / "pyproject.toml").write_text(f"[tool.promptkit]\ntarget = '{target}'\n")

        by_check, by_pytest, result = run_both()

        assert by_check == by_pytest == set()
        assert outcomes_of(result) == (["twins.py::review"], [])

    def test_folder_that_contains_the_target(self, project, run, pytester):
        """
        Given a folder that contains the target, pytest tests the served prompts below it and ignores other
        files.
        """
        project("sound")
        project("finding", folder="recipes/_drafts")
        project(folder="tests", util="def area(): return raduis", test_it="def test(): pass")

        assert outcomes_of(run("--promptkit", ".")) == (
            ["sound.py::refuse", "sound.py::review", "test_it.py::test"],
            [],
        )

    @pytest.mark.parametrize(
        ("setting", "message"),
        [
            ("ignore = ['PK998']", "[tool.promptkit] ignore: unknown code 'PK998'"),
            ("ignore = ['PK301']", "[tool.promptkit] ignore: PK301 is an error that cannot be"),
            (
                "clients = ['zde']",
                "[tool.promptkit] clients: unknown client 'zde': did you mean 'zed'?",
            ),
        ],
    )
    def test_both_reject_an_unknown_setting(self, setting, message, project, run, capsys):
        """Both reject a misspelt code or client."""
        configuration = project("sound").with_name("pyproject.toml")
        configuration.write_text(f"[tool.promptkit]\n{setting}\n")

        assert main(["check", "recipes"]) == 2
        assert message in capsys.readouterr().err
        for result in (run("--promptkit", "recipes"), run("--promptkit")):
            assert result.ret == pytest.ExitCode.USAGE_ERROR
            assert message in result.stderr.str()


def test_recipes_of_this_repository(run, monkeypatch):
    """
    ``pytest --promptkit recipes`` in a checkout passes for each of the fifteen recipes and their cases, with
    no environment variable set except ``CI``.
    """
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("CI", "")  # the same generated arguments in each run, but not four times as many

    profile = settings.get_current_profile_name()
    result = run("--promptkit", "-n0", "-k", "not test_", "recipes")
    settings.load_profile(profile)  # which conftest.py has replaced

    assert result.ret == 0
    passed, failed = outcomes_of(result)
    assert failed == []
    assert [name for name in passed if "[" not in name] == [
        f"{Path(prompt.location.file).name}::{prompt.name}"
        for prompt in compile(load(ROOT / "recipes")).prompts
    ]


class TestCollectedFiles:
    def test_default_folder(self, project, run):
        """Without a target, the folder `recipes` is collected, and no other."""
        project("sound")
        project("finding", folder="elsewhere")

        assert outcomes_of(run("--promptkit")) == (["sound.py::refuse", "sound.py::review"], [])

    def test_configured_target(self, project, run, pytester):
        """The configured target is collected next to the regular tests, and its `ignore` is obeyed."""
        project("finding", "sound", folder="mine")
        project("test_sound", folder="tests", sound=RECIPES["sound"])
        (pytester.path / "pyproject.toml").write_text(
            "[tool.promptkit]\ntarget = 'mine'\nignore = ['PK207']\n"
            "[tool.pytest.ini_options]\ntestpaths = ['tests']\npythonpath = ['mine']\n"
        )

        assert outcomes_of(run("--promptkit", "-n1")) == (
            ["finding.py::greet", "sound.py::refuse", "sound.py::review", "test_sound.py::test"],
            [],
        )

    def test_folder_with_a_module_as_configured_target(self, project, run, pytester):
        """A folder on the command line is searched even if the configured target is a module."""
        project("sound")
        (pytester.path / "pyproject.toml").write_text("[tool.promptkit]\ntarget = 'recipes.sound'\n")

        assert outcomes_of(run("--promptkit", ".")) == (["sound.py::refuse", "sound.py::review"], [])

    def test_single_prompt(self, project, run):
        """A file, or one of its prompts, is selected like any test."""
        project()

        assert outcomes_of(run("--promptkit", "recipes/sound.py::review")) == (["sound.py::review"], [])

    @pytest.mark.parametrize(
        ("configuration", "message"),
        [
            ("", "there is no folder recipes or prompts here: pass a target, or set one in"),
            (
                "[tool.promptkit]\ntargt = 'x'",
                "[tool.promptkit] has no setting 'targt': did you mean 'target'?",
            ),
            ("[tool.promptkit]\ntarget = 'json'", "'json' is a module: use the folder that contains it"),
        ],
    )
    def test_missing_or_invalid_target(self, configuration, message, run, pytester):
        """A missing or invalid target is reported in one sentence before any test runs."""
        (pytester.path / "pyproject.toml").write_text(configuration)

        result = run("--promptkit")

        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert message in result.stderr.str()


def test_autouse_fixtures_apply_to_prompts(project, run):
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

    assert "reads.py::reads" in outcomes_of(run("--promptkit", "recipes"))[0]


def test_missing_hypothesis(project, run_alone):
    """Without hypothesis, each test of a prompt fails with the command that installs it."""
    project("sound", conftest="import sys\nsys.modules['hypothesis'] = None")

    result = run_alone("-rA", "--tb=short", "--promptkit", "recipes", "-p", "no:hypothesispytest")

    assert outcomes_of(result)[1] == ["sound.py::refuse", "sound.py::review"]
    assert f"needs hypothesis: {install_command('testing')}" in result.stdout.str()


class TestMarkdown:
    @pytest.fixture
    def write(self, pytester):
        """A function that writes a file of the project."""

        def write(name, text):
            path = pytester.path / name
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text(text)

        return write

    def test_a_folder_without_python(self, write, run):
        """Each Markdown prompt and each of its cases is a test, even in a folder without Python files."""
        write(
            "prompts/fix.prompt.md", "---\ncases:\n  one: {issue: x}\n  two: {issu: y}\n---\nFix {{issue}}."
        )
        write("prompts/tidy.prompt.md", "Tidy up.")
        write("prompts/notes.md", "Not a prompt.")

        result = run("--promptkit")

        assert outcomes_of(result) == (
            ["fix.prompt.md::fix[one]", "tidy.prompt.md::tidy"],
            ["fix.prompt.md::fix", "fix.prompt.md::fix[two]"],
        )

    def test_configured_patterns(self, write, run):
        """Files of a configured pattern are collected as well."""
        write("pyproject.toml", '[tool.promptkit]\ntarget = "prompts"\nmarkdown = ["*.md"]\n')
        write("prompts/fix.md", "Fix {{issue}}.")

        assert outcomes_of(run("--promptkit")) == (["fix.md::fix"], [])

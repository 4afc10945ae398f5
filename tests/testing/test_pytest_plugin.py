"""The pytest plugin, in runs of pytest as authors start it."""

import re
import sys
from importlib.metadata import entry_points
from textwrap import dedent

import pytest

from promptkit import Audio, EmbeddedResource, Image, Message, ResourceLink, Text, Workflow, assistant, user
from promptkit.loader.targets import project_root
from promptkit.testing.pytest_plugin import make_importable, root_of
from promptkit.testing.transcripts import explain

pytest_plugins = ["pytester"]


@pytest.fixture
def run(run):
    """A function that runs pytest without the plugins that most tests here do not need."""
    return lambda *options: run("-p", "no:hypothesispytest", "-p", "no:syrupy", *options)


def explanation_of(result):
    """Return pytest's explanation of the failed comparison."""
    return [line[1:].strip() for line in result.outlines if re.match(r"E\b", line)]


def test_entry_point():
    """Pytest finds the plugin wherever promptkit is installed."""
    (entry_point,) = (point for point in entry_points(group="pytest11") if point.name == "promptkit")

    assert entry_point.value == "promptkit.testing.pytest_plugin"


def test_declarations_are_not_tests(pytester, run):
    """Prompts, resources and skills whose names start with ``test_`` are not collected as tests."""
    pytester.makepyfile("""
        from promptkit import prompt, resource, skill

        @prompt
        def test_plan(change: str):
            return f"Plan the tests of {change}."

        @resource("tests://all")
        def test_names() -> str:
            return "one, two"

        @skill
        def test_writing() -> str:
            "Write tests."
            return "Write them first."

        def test_the_plan():
            assert test_plan("x") == "Plan the tests of x."
    """)

    run().assert_outcomes(passed=1)


class TestComparison:
    CONVERSATION = """
        from promptkit import assistant, user

        def conversation(word):
            turns = user("Start.")
            for number in range(7):
                turns += user(f"Question {number}.", "More of it.") + assistant("Answer.", "x" * 2000)
                turns += user(f"A {word if number == 4 else 'word'} in {number}.", "z" * 50)
            return turns

        def test_conversation():
            assert len(conversation("word")) == 22
            assert conversation("changed") == conversation("word")
    """

    def test_only_the_changed_line_is_shown(self, pytester, run):
        """For conversations of 22 turns, only the changed line is shown."""
        pytester.makepyfile(self.CONVERSATION)

        lines = explanation_of(run())

        assert lines[0].endswith("assert Workflow == Workflow: the transcripts differ (- right, + left)")
        assert lines[1:] == ["message 16, user:", "- A word in 4.", "+ A changed in 4."]

    @pytest.mark.parametrize("count", [2, 3])
    @pytest.mark.parametrize("padding", ["", "x" * 300], ids=["short", "long"])
    def test_every_changed_word_is_shown(self, count, padding, pytester, run):
        """Of 22 turns, each changed word is shown with - and +, and pytest truncates nothing."""
        numbers = [3, 12, 20][:count]
        pytester.makepyfile(
            f"""
            from promptkit import assistant, user

            def conversation(word, numbers=()):
                turns = user("Start.", "Listen.") + "Go on."
                for number in range(2, 22):
                    role = assistant if number % 2 else user
                    said = word if number in numbers else 'word'
                    turns += role(f"Well,\\na {{said}} in {{number}}.{padding}")
                return turns

            def test_conversation():
                assert len(conversation("word")) == 22
                assert conversation("changed", {numbers}) == conversation("word")
            """
        )

        result = run()
        changes = [line for line in explanation_of(result) if line.startswith(("- ", "+ "))]

        assert [line[:20].rstrip(".x") for line in changes] == [
            line for number in numbers for line in (f"- a word in {number}", f"+ a changed in {number}")
        ]
        assert "truncated" not in result.stdout.str()

    def test_output_is_shortened(self, pytester, run):
        """If everything differs, the changes come first, and -vv shows the location of each."""
        pytester.makepyfile(
            """
            from promptkit import user

            def conversation(word):
                return sum((user(f"{number} {word}") + user("same") for number in range(1, 9)), user("Go."))

            def test_conversation():
                assert conversation("left") == conversation("right")
            """
        )

        short, long = explanation_of(run()), explanation_of(run("-vv"))

        assert short[1:6] == ["- 1 right", "+ 1 left", "- 2 right", "+ 2 left", "- 3 right"]
        assert [line for line in long if line.endswith(", user:")] == [
            f"message {2 * number}, user:" for number in range(1, 9)
        ]
        assert "+ 8 left" in long

    def test_other_comparisons_are_not_explained(self, pytester, run):
        """Other comparisons are explained as without the plugin."""
        source = """
            import promptkit.language.messages

            def test_other():
                assert {"a": [1, 2]} == {"a": [1, 3]}
        """
        pytester.makepyfile(source)

        assert explanation_of(run()) == explanation_of(run("-p", "no:promptkit"))

    def test_long_line_is_cut_around_the_difference(self, pytester, run):
        """A long line is cut around the difference; -vv shows the whole line."""
        pytester.makepyfile(
            """
            from promptkit import user

            def test_paragraph():
                assert user("a" * 700 + " left " + "b" * 700) == user("a" * 700 + " right " + "b" * 700)
            """
        )

        short, long = "\n".join(explanation_of(run())), "\n".join(explanation_of(run("-vv")))

        assert re.search(r"^- …a{30,40} right b+…$", short, re.MULTILINE)
        assert re.search(r"^\+ …a{30,40} left b+…$", short, re.MULTILINE)
        assert f"+ {'a' * 700} left {'b' * 700}" in long


LINK = ResourceLink("a:b", name="a")


class TestExplanation:
    @pytest.mark.parametrize(
        ("left", "right", "lines"),
        [
            (user("a"), user("b"), ["message 1, user:", "- b", "+ a"]),
            (user("a")[0], user("b")[0], ["- b", "+ a"]),
            (user("a"), assistant("a"), ["message 1, assistant:", "- [assistant]", "+ [user]"]),
            (user("a"), user("a") + "b", ["message 2, user:", "- [user]", "- b"]),
            (user("a "), user("a"), ["message 1, user:", "- a", "+ a␠"]),
            (user("a\tb"), user("a\x1bb"), ["message 1, user:", "- 'a\\x1bb'", "+ a\tb"]),
            (user("a\r\nb"), user("a\nb"), ["message 1, user:", "- a", "+ a␍"]),
            (
                user(Text("a", priority=1)),
                user(Text("a", audience="user", priority=0.5)),
                [
                    "message 1, user:",
                    "- [user] audience=('user',) priority=0.5",
                    "+ [user] priority=1",
                ],
            ),
            (
                EmbeddedResource("a:b", text="c", mime_type="text/plain"),
                EmbeddedResource("a:b", text="c"),
                [
                    "- EmbeddedResource",
                    "+ EmbeddedResource mime_type='text/plain'",
                ],
            ),
            (
                ResourceLink("a:b", name="c", title="c"),
                ResourceLink("a:b", name="c"),
                [
                    "- ResourceLink",
                    "+ ResourceLink name='c' title='c'",
                ],
            ),
            (
                user("a\n[assistant]\nb"),
                user("a") + assistant("b"),
                ["message 2, assistant:", "- [assistant]", "+ \\[assistant]"],
            ),
            (list(user("a")), list(user("b")), ["message 1, user:", "- b", "+ a"]),
            (Workflow(), user("a"), ["message 1, user:", "- [user]", "- a"]),
        ],
    )
    def test_differences_are_shown(self, left, right, lines):
        """Each difference is shown, even a difference that a transcript does not show."""
        head, *shown_lines = explain("==", left, right)

        assert head.endswith(": the transcripts differ (- right, + left)")
        assert shown_lines == lines

    @pytest.mark.parametrize(
        ("operator", "text", "turns", "lines"),
        [
            ("in", "c", user("a"), ["'c' in Workflow: its text does not contain this string", "[user]", "a"]),
            ("not in", "a", user("a", "b"), ["'a' not in Workflow: its text contains this string", "a"]),
            (
                "in",
                "c",
                user("a")[0],
                ["'c' in Message: its text does not contain this string", "[user]", "a"],
            ),
        ],
    )
    def test_missing_and_unwanted_text(self, operator, text, turns, lines):
        """For text that is missing, the transcript is shown; for unwanted text, the lines that contain it."""
        assert explain(operator, text, turns) == lines

    @pytest.mark.parametrize("right", ["abc", ["a"], {"a": 1}])
    def test_other_containment_tests_are_not_explained(self, right):
        """Other containment tests are left to pytest."""
        assert explain("in", "x", right) is None
        assert explain("in", user("a"), right) is None

    def test_media_are_shown_by_digest_and_size(self, png, wav):
        """Different media are shown by digest and size, without base64."""
        _, *lines = explain("==", user(Image(png), Audio(wav)), user(Image(png + b"\0"), Audio(wav)))

        assert lines == [
            "message 1, user:",
            f"- {Image(png + bytes(1))!s}",
            f"+ {Image(png)!s}",
        ]

    @pytest.mark.parametrize(
        ("left", "right", "advice"),
        [
            (user("a"), "a", "compare .text or str(...) with a string"),
            ("a", user("a")[0], "compare .text or str(...) with a string"),
            (user("a", LINK), list(user("a", LINK)), "compare values of the same type"),
            (tuple(user("a")), user("a"), "compare values of the same type"),
            (Text("[a](a:b)"), LINK, "compare values of the same type"),
            (user("a"), Text("a"), "compare values of the same type"),
            (user("a"), None, "compare values of the same type"),
        ],
    )
    def test_types_that_are_never_equal(self, left, right, advice):
        """A comparison of types that are never equal names them, and suggests what to compare instead."""
        head, *_ = explain("==", left, right)

        assert head.startswith(
            f"{type(left).__name__} == {type(right).__name__}: values of these types are never "
            f"equal: {advice}"
        )

    def test_equal_values_that_should_differ(self):
        """If values are equal but must not be, their transcript is shown once."""
        message = Message("user", "a")

        assert explain("!=", user("a"), message) == ["Workflow != Message: they are equal", "[user]", "a"]

    @pytest.mark.parametrize(("left", "right"), [(1, 2), ("a", "b"), ([], []), ([1], [2]), (None, ["a"])])
    def test_values_without_turns_are_not_explained(self, left, right):
        """Values without turns get no explanation."""
        assert explain("==", left, right) is None


#: A project whose recipes import a module by its full name, and a module that must not be shadowed.
PROJECT = {
    "lib/util.py": "word = 'found'",
    "json.py": "shadowing = True",
    "recipes/plan.py": """
        from lib.util import word
        from promptkit import prompt

        @prompt
        def plan() -> str:
            return word
    """,
    "recipes/conftest.py": "from lib.util import word",
    "recipes/test_plan.py": """
        import json
        import sys
        from plan import plan

        def test_plan():
            assert "found" in plan.render()
            assert not hasattr(json, "shadowing")
            assert sys.path[-1].endswith("project")
    """,
}


class TestProjectRoot:
    @pytest.fixture
    def project(self, pytester):
        """The project on disk."""
        project = pytester.mkdir("above") / "project"
        for path, source in PROJECT.items():
            (project / path).parent.mkdir(parents=True, exist_ok=True)
            (project / path).write_text(dedent(source))
        return project

    @pytest.mark.parametrize(
        ("location", "arguments"),
        [
            ("project with pyproject.toml", []),
            ("project/recipes with .git", ["test_plan.py"]),
            ("", ["project/recipes/test_plan.py::test_plan"]),
        ],
    )
    def test_project_root_is_importable(self, location, arguments, project, run_forked, monkeypatch):
        """
        Pytest can import what the commands can, wherever it is started. The root is last on the path, so it
        shadows nothing.
        """
        start, _, marker = location.partition(" with ")
        if marker:
            (project / marker).write_text("")
        monkeypatch.chdir(project.parent / start)

        run_forked(*arguments).assert_outcomes(passed=1)

    def test_parent_folder_is_not_importable(self, project, run_forked, monkeypatch):
        """The project's parent folder is not importable, even if pytest itself does not change the path."""
        (project / "pyproject.toml").write_text("")
        (project / "test_here.py").write_text(
            "import sys\nfrom lib.util import word\n\n"
            f"def test():\n    assert {str(project.parent)!r} not in sys.path"
        )
        monkeypatch.chdir(project)

        run_forked("test_here.py", "--import-mode=importlib").assert_outcomes(passed=1)


#: The project NAME with a separate module, which its prompts and tests import.
NAMED = {
    "pyproject.toml": "",
    "NAME_lib.py": "class Own: pass",
    "recipes/plan.py": """
        import NAME_lib
        from promptkit import prompt

        @prompt
        def plan() -> str:
            \"\"\"Say a word.\"\"\"
            return NAME_lib.Own.__name__
    """,
    "tests/test_NAME.py": """
        from pathlib import Path
        from NAME_lib import Own
        from promptkit.loader.loader import load

        def test_there_is_one_class():
            for name in ("first", "second", "first", "second"):
                assert load(Path(__file__).parents[2] / name / "recipes").diagnostics == ()
                import NAME_lib
                assert NAME_lib.Own is Own
    """,
}


def test_two_projects(pytester, run_forked):
    """
    Tests import from their own project, and keep its modules, even when prompts of another project are
    loaded, whether during collection or by a test.
    """
    for name in ("first", "second"):
        for path, source in NAMED.items():
            file = pytester.path / name / path.replace("NAME", name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(dedent(source).replace("NAME", name))

    run_forked("--promptkit", "first", "second").assert_outcomes(passed=4)


#: A project that has nothing to do with promptkit.
UNRELATED = {
    "pyproject.toml": "[project]\nname = 'unrelated'\n[tool.promptkit-like]\n",
    "prompts/questions.py": "QUESTIONS = ['Which database?']",
    "recipes/soup.py": "def cook(): return 'soup'",
    "tests/conftest.py": "",
    "tests/helping.py": "import json",
}

#: Files that each make this a project with prompts.
RELATED = {
    "pyproject.toml": "[tool.promptkit]\ntarget = 'src/prompts'\n",
    "prompts/review.py": "from promptkit import prompt\n@prompt\ndef review(): ...\n",
    "recipes/review.py": "from promptkit import prompt\n@prompt\ndef review(): ...\n",
    "tests/review.py": "from promptkit import prompt\n@prompt\ndef review(): ...\n",
}

#: Tests that check what the plugin has imported and changed.
CHECKS = """
    import sys

    def test_modules():
        names = {name for name in sys.modules if name.startswith("promptkit")}
        own = {"promptkit.testing", "promptkit.testing.pytest_plugin"}
        packages = {"promptkit", "promptkit.loader", "promptkit.files"}
        reading = {"promptkit.loader.discovery", "promptkit.files.reading"}
        assert names == {*packages, "promptkit.version", *reading, *own}
        assert "msgspec" not in sys.modules

    def test_path(pytestconfig):
        assert (str(pytestconfig.rootpath) in sys.path) == PROMPTS

    def test_failure():
        assert "a" == "b"
"""


class TestProjectsWithoutPrompts:
    @pytest.fixture
    def run_checks(self, pytester, run_alone):
        """A function that runs these checks in a project with the given files."""

        def run_checks(files, *, has_prompts):
            for path, source in {**files, "tests/test_it.py": CHECKS}.items():
                file = pytester.path / path
                file.parent.mkdir(exist_ok=True)
                file.write_text(dedent(source).replace("PROMPTS", str(has_prompts)))
            (pytester.path / ".git").mkdir()
            return run_alone("--rootdir=.", "--import-mode=importlib")

        return run_checks

    def test_plugin_has_no_effect(self, run_checks):
        """
        In a project without prompts, the plugin imports only its own few modules and leaves the module path
        unchanged, whatever the folders are called.
        """
        run_checks(UNRELATED, has_prompts=False).assert_outcomes(passed=2, failed=1)

    def test_project_with_prompts(self, run_checks):
        """In a project with prompts, the root becomes importable, and modules are imported on demand."""
        run_checks({**UNRELATED, **RELATED}, has_prompts=True).assert_outcomes(passed=2, failed=1)

    @pytest.mark.parametrize("path", [None, *RELATED])
    def test_detection_of_prompts(self, path, tmp_path, monkeypatch):
        """The root is importable if there is a configuration, or recipes in one of the default folders."""
        monkeypatch.setattr(sys, "path", list(sys.path))
        for name, source in {**UNRELATED, **({path: RELATED[path]} if path else {})}.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(source)

        make_importable(tmp_path / "tests")

        assert (str(tmp_path) in sys.path) == (path is not None)

    @pytest.mark.parametrize("marker", ["pyproject.toml", ".git", None])
    @pytest.mark.parametrize("location", ["above", "above/project", "above/project/recipes"])
    def test_root_is_the_same_as_for_commands(self, marker, location, tmp_path):
        """
        Tests next to recipes have the same project root as the commands, wherever the project's marker is.
        """
        recipes = tmp_path / "above" / "project" / "recipes"
        recipes.mkdir(parents=True)
        (tmp_path / ".git").mkdir()
        if marker is not None:
            (tmp_path / location / marker).touch()
        own = marker is not None and location.endswith("recipes")

        assert str(root_of(recipes)) == (str(recipes) if own else project_root(recipes))

    def test_folder_that_does_not_exist(self, tmp_path):
        """A folder that does not exist is not a project with prompts, and not an error."""
        before = list(sys.path)

        make_importable(tmp_path / "nowhere" / "at" / "all")

        assert sys.path == before


class TestTracebacks:
    SOURCE = """
        from contextlib import contextmanager
        from promptkit import Message, prompt, user

        @prompt
        def fails(text: str):
            return user(f"{1 / 0}")

        @prompt
        async def fails_later(text: str):
            return user(f"{1 / 0}")

        @prompt
        def says_nothing_that_can_be_sent(text: str):
            return [("system", text)]

        @contextmanager
        def careful():
            raise ValueError("without promptkit")
            yield

        def test_a_fault_in_a_prompt(): fails.render_wire({"text": "a"})
        def test_a_fault_in_an_async_prompt(): fails_later.render("a")
        def test_a_result(): says_nothing_that_can_be_sent.render("a")
        def test_a_wrong_argument(): fails(3)
        def test_a_missing_argument(): fails.render_wire({})
        def test_a_role(): Message("system", "a")
        def test_an_f_string(): f"{user('a')}"
    """

    @pytest.mark.parametrize("style", ["long", "short", "native"])
    def test_frames_of_promptkit_are_hidden(self, style, pytester, run):
        """A failure shows the test, the prompt, and the exception, but no frames of promptkit."""
        pytester.makepyfile(self.SOURCE)

        output = run(f"--tb={style}").stdout.str()

        assert "promptkit/" not in output
        assert "asyncio" not in output
        assert output.count("1 / 0") >= 2

    def test_full_trace_shows_all_frames(self, pytester, run):
        """``--full-trace`` shows the frames of promptkit as well."""
        pytester.makepyfile(self.SOURCE)

        assert "prompts.py" in run("--full-trace").stdout.str()

    def test_other_tracebacks_are_unchanged(self, pytester, run):
        """A traceback without frames of promptkit is the same as without the plugin."""
        test = pytester.makepyfile(
            self.SOURCE + "\n        def test_other():\n            with careful(): pass\n"
        )

        frames = [
            [line for line in run(f"{test}::test_other", *options).outlines if ".py:" in line]
            for options in ((), ("-p", "no:promptkit"))
        ]

        assert frames[0] == frames[1]
        assert any("contextlib" in line for line in frames[0])

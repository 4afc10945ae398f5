"""The pytest plugin, in pytest runs like an author's."""

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


def explanation(result):
    """Return pytest's explanation of the failed comparison."""
    return [line[1:].strip() for line in result.outlines if re.match(r"E\b", line)]


def test_the_entry_point_is_there():
    """Pytest finds the plugin wherever promptkit is installed."""
    (found,) = (point for point in entry_points(group="pytest11") if point.name == "promptkit")

    assert found.value == "promptkit.testing.pytest_plugin"


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

    def test_a_changed_word_is_a_line_of_each(self, pytester, run):
        """For conversations of 22 turns, only the changed line is shown."""
        pytester.makepyfile(self.CONVERSATION)

        said = explanation(run())

        assert said[0].endswith("assert Workflow == Workflow: the transcripts differ (- right, + left)")
        assert said[1:] == ["message 16, user:", "- A word in 4.", "+ A changed in 4."]

    @pytest.mark.parametrize("changed", [2, 3])
    @pytest.mark.parametrize("around", ["", "x" * 300], ids=["short", "long"])
    def test_several_changed_words_are_all_seen(self, changed, around, pytester, run):
        """Of 22 turns, each changed word is shown with - and +, and pytest truncates nothing."""
        numbers = [3, 12, 20][:changed]
        pytester.makepyfile(
            f"""
            from promptkit import assistant, user

            def conversation(word, numbers=()):
                turns = user("Start.", "Listen.") + "Go on."
                for number in range(2, 22):
                    role = assistant if number % 2 else user
                    said = word if number in numbers else 'word'
                    turns += role(f"Well,\\na {{said}} in {{number}}.{around}")
                return turns

            def test_conversation():
                assert len(conversation("word")) == 22
                assert conversation("changed", {numbers}) == conversation("word")
            """
        )

        ran = run()
        said = [line for line in explanation(ran) if line.startswith(("- ", "+ "))]

        assert [line[:20].rstrip(".x") for line in said] == [
            line for number in numbers for line in (f"- a word in {number}", f"+ a changed in {number}")
        ]
        assert "truncated" not in ran.stdout.str()

    def test_what_does_not_fit_is_left_to_more_output(self, pytester, run):
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

        short, long = explanation(run()), explanation(run("-vv"))

        assert short[1:6] == ["- 1 right", "+ 1 left", "- 2 right", "+ 2 left", "- 3 right"]
        assert [line for line in long if line.endswith(", user:")] == [
            f"message {2 * number}, user:" for number in range(1, 9)
        ]
        assert "+ 8 left" in long

    def test_only_what_is_about_turns_is_explained(self, pytester, run):
        """Other comparisons are explained as without the plugin."""
        source = """
            import promptkit.language.messages

            def test_other():
                assert {"a": [1, 2]} == {"a": [1, 3]}
        """
        pytester.makepyfile(source)

        assert explanation(run()) == explanation(run("-p", "no:promptkit"))

    def test_a_word_in_a_long_line_is_seen(self, pytester, run):
        """A long line is cut around the difference; -vv shows the whole line."""
        pytester.makepyfile(
            """
            from promptkit import user

            def test_paragraph():
                assert user("a" * 700 + " left " + "b" * 700) == user("a" * 700 + " right " + "b" * 700)
            """
        )

        short, long = "\n".join(explanation(run())), "\n".join(explanation(run("-vv")))

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
            (user("a "), user("a"), ["message 1, user:", "- a", "+ 'a '"]),
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
            (
                [user("a"), user("b")],
                [user("a"), user("c")],
                ["item 2, message 1, user:", "- c", "+ b"],
            ),
            ((Text("a"),), (Text("b"),), ["item 1:", "- b", "+ a"]),
            (list(user("a")), list(user("b")), ["message 1, user:", "- b", "+ a"]),
            (Workflow(), user("a"), ["message 1, user:", "- [user]", "- a"]),
        ],
    )
    def test_what_differs(self, left, right, lines):
        """Each difference is shown, even one that a transcript does not show."""
        head, *found = explain("==", left, right)

        assert head.endswith(": the transcripts differ (- right, + left)")
        assert found == lines

    @pytest.mark.parametrize(
        ("operator", "text", "turns", "lines"),
        [
            ("in", "c", user("a"), ["'c' in Workflow: no text of it contains that", "[user]", "a"]),
            ("not in", "a", user("a", "b"), ["'a' not in Workflow: its text contains that", "a"]),
            ("in", "c", user("a")[0], ["'c' in Message: no text of it contains that", "[user]", "a"]),
        ],
    )
    def test_text_that_is_missing_or_should_be(self, operator, text, turns, lines):
        """For text that is missing, the transcript is shown; for unwanted text, the lines that contain it."""
        assert explain(operator, text, turns) == lines

    @pytest.mark.parametrize("right", ["abc", ["a"], {"a": 1}])
    def test_what_is_looked_for_elsewhere(self, right):
        """Other containment tests are left to pytest."""
        assert explain("in", "x", right) is None
        assert explain("in", user("a"), right) is None

    def test_media_are_told_apart_by_digest_and_size(self, png, wav):
        """Different media are shown by digest and size, without base64."""
        _, *found = explain("==", user(Image(png), Audio(wav)), user(Image(png + b"\0"), Audio(wav)))

        assert found == [
            "message 1, user:",
            f"- {Image(png + bytes(1))!s}",
            f"+ {Image(png)!s}",
        ]

    @pytest.mark.parametrize(
        ("left", "right", "says"),
        [
            (user("a"), "a", "compare its .text, or str(...) of it, with a string"),
            ("a", user("a")[0], "compare its .text, or str(...) of it, with a string"),
            (user("a", LINK), list(user("a", LINK)), "compare values of one type"),
            (tuple(user("a")), user("a"), "compare values of one type"),
            (Text("[a](a:b)"), LINK, "compare values of one type"),
            (user("a"), Text("a"), "compare values of one type"),
            (user("a"), None, "compare values of one type"),
        ],
    )
    def test_what_is_never_equal(self, left, right, says):
        """A comparison of types that are never equal names them, and suggests what to compare instead."""
        head, *_ = explain("==", left, right)

        assert head.startswith(
            f"{type(left).__name__} == {type(right).__name__}: these are never equal; {says}"
        )

    def test_what_should_have_differed(self):
        """If equal values should have differed, their transcript is shown once."""
        message = Message("user", "a")

        assert explain("!=", user("a"), message) == ["Workflow != Message: they are equal", "[user]", "a"]

    @pytest.mark.parametrize(("left", "right"), [(1, 2), ("a", "b"), ([], []), ([1], [2]), (None, ["a"])])
    def test_all_else_is_left_alone(self, left, right):
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
        ("place", "arguments"),
        [
            ("project with pyproject.toml", []),
            ("project/recipes with .git", ["test_plan.py"]),
            ("", ["project/recipes/test_plan.py::test_plan"]),
        ],
    )
    def test_it_can_be_imported(self, place, arguments, project, run_alone, monkeypatch):
        """
        Pytest can import what the commands can, wherever it is started. The root is last on the path, so it
        shadows nothing.
        """
        start, _, mark = place.partition(" with ")
        if mark:
            (project / mark).write_text("")
        monkeypatch.chdir(project.parent / start)

        run_alone(*arguments).assert_outcomes(passed=1)

    def test_a_test_in_the_root_does_not_reach_above(self, project, run_alone, monkeypatch):
        """The project's parent folder is not importable, even if pytest itself does not change the path."""
        (project / "pyproject.toml").write_text("")
        (project / "test_here.py").write_text(
            "import sys\nfrom lib.util import word\n\n"
            f"def test():\n    assert {str(project.parent)!r} not in sys.path"
        )
        monkeypatch.chdir(project)

        run_alone("test_here.py", "--import-mode=importlib").assert_outcomes(passed=1)


#: The project NAME with a module of its own, which its prompts and tests import.
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


def test_two_projects(pytester, run_alone):
    """
    Tests import from their own project, and keep its modules, even when prompts of another project are
    loaded, whether during collection or by a test.
    """
    for name in ("first", "second"):
        for path, source in NAMED.items():
            file = pytester.path / name / path.replace("NAME", name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(dedent(source).replace("NAME", name))

    run_alone("--promptkit", "first", "second").assert_outcomes(passed=4)


#: A project that has nothing to do with promptkit.
UNRELATED = {
    "pyproject.toml": "[project]\nname = 'unrelated'\n[tool.promptkit-like]\n",
    "prompts/questions.py": "QUESTIONS = ['Which database?']",
    "recipes/soup.py": "def cook(): return 'soup'",
    "tests/conftest.py": "",
    "tests/helping.py": "import json",
}

#: Files of which each makes this a project with prompts.
RELATED = {
    "pyproject.toml": "[tool.promptkit]\ntarget = 'src/prompts'\n",
    "prompts/review.py": "from promptkit import prompt\n@prompt\ndef review(): ...\n",
    "recipes/review.py": "from promptkit import prompt\n@prompt\ndef review(): ...\n",
    "tests/review.py": "from promptkit import prompt\n@prompt\ndef review(): ...\n",
}

#: Tests that check what the plugin has imported and changed.
LOOKS = """
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
    def look(self, pytester, run_alone):
        """A function that runs these checks in a project with the given files."""

        def look(files, *, has_prompts):
            for path, source in {**files, "tests/test_it.py": LOOKS}.items():
                file = pytester.path / path
                file.parent.mkdir(exist_ok=True)
                file.write_text(dedent(source).replace("PROMPTS", str(has_prompts)))
            (pytester.path / ".git").mkdir()
            return run_alone("--rootdir=.", "--import-mode=importlib")

        return look

    def test_nothing_is_imported_and_no_path_changed(self, look):
        """
        In a project without prompts, the plugin imports only its own few modules and leaves the module path
        unchanged, whatever the folders are called.
        """
        look(UNRELATED, has_prompts=False).assert_outcomes(passed=2, failed=1)

    def test_in_one_with_prompts_no_more_is_imported(self, look):
        """In a project with prompts, the root becomes importable, and modules are imported on demand."""
        look({**UNRELATED, **RELATED}, has_prompts=True).assert_outcomes(passed=2, failed=1)

    @pytest.mark.parametrize("path", [None, *RELATED])
    def test_what_makes_it_one_with_prompts(self, path, tmp_path, monkeypatch):
        """The root is importable if there is a configuration, or recipes in one of the default folders."""
        monkeypatch.setattr(sys, "path", list(sys.path))
        for name, source in {**UNRELATED, **({path: RELATED[path]} if path else {})}.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(source)

        make_importable(tmp_path / "tests")

        assert (str(tmp_path) in sys.path) == (path is not None)

    @pytest.mark.parametrize("mark", ["pyproject.toml", ".git", None])
    @pytest.mark.parametrize("place", ["above", "above/project", "above/project/recipes"])
    def test_the_root_is_that_of_the_commands(self, mark, place, tmp_path):
        """
        Tests next to recipes have the same project root as the commands, wherever the project's marker is.
        """
        recipes = tmp_path / "above" / "project" / "recipes"
        recipes.mkdir(parents=True)
        (tmp_path / ".git").mkdir()
        if mark is not None:
            (tmp_path / place / mark).touch()
        own = mark is not None and place.endswith("recipes")

        assert str(root_of(recipes)) == (str(recipes) if own else project_root(recipes))

    def test_a_folder_that_cannot_be_read_has_none(self, tmp_path):
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
    def test_no_frame_of_promptkit_is_shown(self, style, pytester, run):
        """A failure shows the test, the prompt, and the exception, but no frames of promptkit."""
        pytester.makepyfile(self.SOURCE)

        shown = run(f"--tb={style}").stdout.str()

        assert "promptkit/" not in shown
        assert "asyncio" not in shown
        assert shown.count("1 / 0") >= 2

    def test_all_of_it_can_be_asked_for(self, pytester, run):
        """``--full-trace`` shows the frames of promptkit as well."""
        pytester.makepyfile(self.SOURCE)

        assert "prompts.py" in run("--full-trace").stdout.str()

    def test_other_failures_are_left_alone(self, pytester, run):
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

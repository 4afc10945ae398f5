"""Tests and promptkit share the modules of recipes within a pytest run."""

from textwrap import dedent

import pytest

pytest_plugins = ["pytester"]

RECIPE = '''
    from promptkit import prompt
    {shared}

    def git() -> str:
        return "the change"

    @prompt
    def review_diff() -> str:
        """Review the change."""
        return f"Review {{git()}}, {{TONE}}."
'''

#: Patches the module, whether it has been imported before or not.
PATCHES = """
    from promptkit.testing import Client

    def test_patched(monkeypatch):
        monkeypatch.setattr("{module}.git", lambda: "a fake")
        with Client("prompts") as client:
            assert str(client.get_prompt("review_diff")) == "[user]\\nReview a fake, kind."
"""

#: Uses a client of the same recipes, and imports from them.
USES_A_CLIENT = """
    import {module} as early
    from promptkit.testing import Client

    def test_client(promptkit_client):
        import {module} as late
        with Client("prompts") as client:
            assert str(client.get_prompt("review_diff")) == "[user]\\nReview the change, kind."
        assert promptkit_client.get_prompt("review_diff") == client_free("{module}")
        assert early is late

    def client_free(name):
        import sys
        return sys.modules[name].review_diff.render()
"""


@pytest.fixture
def project(pytester):
    """A function that writes a project with one recipe in a module with the given name."""

    def project(module, *files):
        folder = pytester.path.joinpath(*module.split(".")[:-1])
        folder.mkdir(parents=True)
        pytester.path.joinpath("pyproject.toml").touch()
        pytester.path.joinpath("prompts", "_shared.py").write_text("TONE = 'kind'\n")
        dots = "." * module.count(".")
        recipe = RECIPE.format(shared=f"from {dots}_shared import TONE")
        folder.joinpath("review_diff.py").write_text(dedent(recipe))
        for number, text in enumerate(files):
            path = pytester.path / f"test_{number}.py"
            path.write_text(dedent(text.replace("{module}", module)))

    return project


@pytest.mark.parametrize(
    ("module", "files", "options"),
    [
        ("prompts.review_diff", (PATCHES, USES_A_CLIENT), ("--promptkit",)),
        ("prompts.ops.review_diff", (USES_A_CLIENT, PATCHES), ("--promptkit",)),
        ("prompts.ops.review_diff", (PATCHES, USES_A_CLIENT), ()),
    ],
    ids=["first, prompts", "last, prompts", "first, tests"],
)
def test_client_renders_with_the_patch_of_a_test(module, files, options, project, run_forked):
    """
    A client renders with the test's patch, because there is only one module, in any order of tests, with or
    without `--promptkit`.
    """
    project(module, *files)

    result = run_forked(*options)

    result.assert_outcomes(passed=2 + len(options))


def test_package_is_executed_once(project, run_forked, pytester):
    """The package itself is executed only once, too."""
    project("prompts.review_diff", PATCHES, USES_A_CLIENT)
    pytester.path.joinpath("prompts", "__init__.py").write_text(
        "import sys\nassert not hasattr(sys, 'once')\nsys.once = True\n"
    )

    run_forked().assert_outcomes(passed=2)


#: Uses prompts that no variable holds, and prompts with one name.
UNNAMED = """
    import prompts.loop, prompts.twice
    import pytest
    from promptkit.errors import CompileError
    from promptkit.testing import Client

    def test_loop():
        prompts = Client("prompts/loop.py").list_prompts()
        assert [prompt.name for prompt in prompts] == ["a", "b"]

    def test_twice():
        with pytest.raises(CompileError, match="PK202"):
            Client("prompts/twice.py")
"""

#: Edits a file from which the recipe imports.
EDITS = """
    from pathlib import Path
    from promptkit.testing import Client

    def test_edit():
        import prompts.review_diff
        for tone in ("kind", "curt", "calm"):
            Path("prompts/_shared.py").write_text(f"TONE = {tone!r}\\n")
            client = Client("prompts/review_diff.py")
            assert str(client.get_prompt("review_diff")).endswith(f"{tone}.")
"""


def test_imported_modules_are_loaded_again(project, run_forked, pytester):
    """
    Although a test has imported the modules before, prompts that no variable holds are served, duplicate
    names are detected, and a client gets the new version of an edited file and of all files that import it.
    """
    project("prompts.review_diff", UNNAMED, EDITS)
    make = "from promptkit import prompt\n"
    folder = pytester.path / "prompts"
    folder.joinpath("loop.py").write_text(f"{make}for name in 'ab':\n    prompt(name=name)(lambda: 'x')\n")
    folder.joinpath("twice.py").write_text(make + "@prompt\ndef one(): return 'x'\n" * 2)

    run_forked().assert_outcomes(passed=3)

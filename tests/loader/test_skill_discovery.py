"""Discovery of skill folders, without running the programs in them."""

import pytest

from promptkit.compiler.compilation import compile
from promptkit.errors.rules import Rule

SKILL = "---\nname: {name}\ndescription: Ship it when asked.\n---\nDo it.\n"
RECIPE = "from promptkit import prompt\n\n@prompt\ndef hello() -> str:\n    return 'hello'\n"
BOMB = "raise RuntimeError('it ran')\n"


@pytest.fixture
def project(tmp_path):
    """A function that writes files into a project with a marker, and returns its root."""
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)

    def write(**files):
        for path, text in files.items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return root

    return write


def write_skill(root, path):
    """Write a skill below the root, and return its folder."""
    folder = root / path
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL.format(name=folder.name))
    return folder


def names(catalog):
    """Return the names of the skills."""
    return [skill.name for skill in catalog.skills]


@pytest.mark.parametrize(
    "path",
    ["setup_all.py", "tools/make.py", "__init__.py", "cases_ship.py", "tools/__init__.py", "conftest.py"],
)
def test_cloned_repository_runs_no_program(project, path):
    """In a folder of skills, programs and `__init__.py` are not imported unless they declare prompts."""
    root = project(**{path: BOMB})
    write_skill(root, "skills/ship")

    catalog = compile(root, lint=True)

    assert (names(catalog), catalog.diagnostics) == (["ship"], ())


@pytest.mark.parametrize("path", ["recipes/hello.py", "hello.py"])
def test_recipes_next_to_skills_are_imported(project, path):
    """Files that declare prompts are recipes, even next to other programs."""
    root = project(**{path: RECIPE, "tools/make.py": BOMB})
    write_skill(root, "skills/ship")

    catalog = compile(root)

    assert (list(catalog), names(catalog), catalog.diagnostics) == (["hello"], ["ship"], ())


@pytest.mark.parametrize("target", ["tools/make.py", "tools"])
def test_named_files_and_folders_without_skills_are_imported(project, target):
    """A file that is the target, and files of a folder without skills, are imported."""
    root = project(**{"tools/make.py": BOMB})
    write_skill(root, "skills/ship")

    (diagnostic,) = compile(root / target).diagnostics

    assert "it ran" in diagnostic.message


@pytest.mark.parametrize("linked", ["shared", "shared/skills", "shared/skills/ship"])
def test_linked_folder_of_the_project(project, linked):
    """A link to a folder of skills, or to a skill, is followed within the project."""
    root = project(**{"recipes/hello.py": RECIPE})
    write_skill(root, "shared/skills/ship")
    (root / "recipes" / "ship").symlink_to(root / linked)

    catalog = compile(root / "recipes")

    assert (list(catalog), names(catalog), catalog.diagnostics) == (["hello"], ["ship"], ())


def test_linked_recipes_of_the_project(project):
    """A link to a folder of recipes is followed within the project."""
    root = project(**{"recipes/hello.py": RECIPE, "shared/bye.py": RECIPE.replace("hello", "bye")})
    (root / "recipes" / "shared").symlink_to(root / "shared")

    assert list(compile(root / "recipes")) == ["bye", "hello"]


def test_linked_folder_outside_the_project(project, tmp_path):
    """A link that leads out of the project is reported."""
    root = project(**{"recipes/hello.py": RECIPE})
    write_skill(tmp_path, "elsewhere/ship")
    (root / "recipes" / "ship").symlink_to(tmp_path / "elsewhere")

    catalog = compile(root / "recipes")

    assert names(catalog) == []
    assert [diagnostic.rule for diagnostic in catalog.diagnostics] == [Rule.NOT_SERVED]


def test_skill_with_a_link_to_another_skill_is_rejected(project):
    """A skill that contains a link to another skill is rejected."""
    root = project()
    write_skill(root, "skills/one")
    (write_skill(root, "skills/two") / "words").symlink_to(root / "skills" / "one")

    catalog = compile(root / "skills")

    assert names(catalog) == ["one"]
    assert [diagnostic.rule for diagnostic in catalog.diagnostics] == [Rule.SKILL_FILES]


def test_hidden_folder(project, monkeypatch):
    """Skills in a folder with a leading dot are not served; the hint names the target that serves them."""
    root = project(**{"hello.py": RECIPE})
    write_skill(root, ".claude/skills/ship")
    monkeypatch.chdir(root)

    catalog = compile(root)

    (diagnostic,) = catalog.diagnostics
    assert names(catalog) == []
    assert diagnostic.rule is Rule.NOT_SERVED
    assert "pass '.claude/' as a target" in diagnostic.hint
    assert names(compile(root / ".claude")) == ["ship"]
    assert names(compile(root / ".claude" / "skills")) == ["ship"]


def test_hidden_folder_without_skills_is_not_reported(project):
    """Other folders with a leading dot are not mentioned."""
    assert compile(project(**{"hello.py": RECIPE, ".venv/x.py": BOMB})).diagnostics == ()

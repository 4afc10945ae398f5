"""`pytest --promptkit` tests the cases of skills, and folders of skills."""

import pytest

pytest_plugins = ["pytester"]

RECIPE = """
from promptkit import skill

@skill
def review():
    '''Review code. Use it before a commit.'''
    return "Read it."

review.case("review my code")
review.case("ship it", wanted=False)
"""

SKILL = """\
---
name: ship
description: Release a version, if asked.
metadata:
  cases: |
    release it
    {more}
---
Tag it.
"""


@pytest.fixture
def write_project(pytester):
    """A function that writes a recipe with a skill, and a folder with a skill and another case."""

    def write_project(more):
        folder = pytester.mkdir("recipes")
        (folder / "review.py").write_text(RECIPE)
        (folder / "ship").mkdir()
        (folder / "ship" / "SKILL.md").write_text(SKILL.format(more=more))

    return write_project


def test_every_case_of_a_skill_is_a_test(write_project, run):
    """A case passes if the ranking is as expected."""
    write_project("not: review my code")

    result = run("--promptkit", "-v", "recipes")

    result.assert_outcomes(passed=4)
    names = ["review.py::review?review my code? *", "review.py::review?ship it? *"]
    names += ["ship/SKILL.md::ship?release it? *", "ship/SKILL.md::ship?review my code? *"]
    result.stdout.fnmatch_lines([f"recipes/{name}PASSED*" for name in names])


def test_case_that_ranks_another_skill_first(write_project, run):
    """A case fails and names the skill that ranks first; the other tests pass."""
    write_project("review my code")

    result = run("--promptkit", "recipes")

    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*warning PK613: skill 'ship': * in the request 'review my code'*"])


def test_cases_in_another_file(pytester, run):
    """A case that is not in the file of its skill can fail as well."""
    folder = pytester.mkdir("recipes")
    skill, _, _ = RECIPE.partition("review.case")
    other = skill.replace("review()", "ship()").replace("Review code", "Release a version")
    (folder / "review.py").write_text(skill)
    (folder / "ship.py").write_text(other)
    (folder / "cases_review.py").write_text("from .review import review\nreview.case('release a version')\n")

    result = run("--promptkit", "recipes")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*warning PK613: skill 'review': *"])


def test_folder_of_skills(pytester, run):
    """All diagnostics of a skill, except for its cases, are one test."""
    (pytester.mkdir("skills") / "ship").mkdir()
    text = SKILL.format(more="").replace(", if asked", "")
    (pytester.path / "skills" / "ship" / "SKILL.md").write_text(text)

    result = run("--promptkit", "skills")

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*PK610*"])

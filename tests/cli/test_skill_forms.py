"""Skills for other clients on the command line: `serve --skills-as`, `install`, `check` and the evals."""

import json
import subprocess
import sys

import pytest

from promptkit.clients.profiles import INSTALLABLE
from promptkit.clients.servers import command_in
from tests.cli.install.entries import entries
from tests.wire import line, modern

SKILL = """\
---
name: ship-it
description: Release a version. Use it when the user wants to publish.
metadata:
  cases: |
    publish the next version
    not: review my code
---
Tag it.
"""

RECIPE = '''
from promptkit import prompt, skill

@prompt
def hello() -> str:
    """Greet."""
    return "hello"

@skill
def review():
    """Review code. Use it before a commit."""
    return "Read $ARGUMENTS."

review.case("review my code")
'''

CASES = "from .reviews import review\n\nreview.case('publish it', wanted=False)\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with a recipe and a folder of skills, in the current folder."""
    folder = tmp_path / "team" / "recipes"
    (folder / "skills" / "ship-it").mkdir(parents=True)
    (folder / "skills" / "ship-it" / "SKILL.md").write_text(SKILL)
    (folder / "reviews.py").write_text(RECIPE)
    (folder / "cases_reviews.py").write_text(CASES)
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return folder.parent


def list_tools(*options):
    """Return the names of the tools of a served project."""
    command = [sys.executable, "-m", "promptkit", "serve", *options]
    request = line(modern(1, "tools/list", {}))
    served = subprocess.run(command, input=request, capture_output=True, check=True, timeout=60)
    return [tool["name"] for tool in json.loads(served.stdout)["result"]["tools"]]


@pytest.mark.parametrize("options", [["--skills-as", "tools"], ["--skills-as=prompts,tools", "--tools"], []])
def test_serve(project, options):
    """Skills are tools with the option, or with the setting."""
    if not options:
        (project / "pyproject.toml").write_text("[tool.promptkit.serve]\nskills-as = 'tools'\n")
    expected = [*(["hello"] if "--tools" in options else []), "find_skills", "read_skill"]
    assert list_tools(*options) == expected


@pytest.mark.parametrize("value", ["", "tool", "tools,", "tools prompts"])
def test_invalid_form(run, project, value):
    """Other forms are rejected."""
    code, _, errors = run("serve", f"--skills-as={value}")
    assert code == 2
    assert "is invalid: use tools, prompts, or tools,prompts" in errors


@pytest.mark.parametrize(
    ("client", "options"),
    [
        ("claude-desktop", ["--skills-as=tools,prompts"]),
        ("lm-studio", ["--tools", "--skills-as=tools"]),
        ("codex", ["--tools"]),
        ("claude-code", []),
    ],
)
def test_install_offers_skills_to_clients_without_skills(run, project, client, options):
    """A client that reads no folders of skills gets them from the server; the choice of the user stays."""
    assert run("install", client)[0] == 0
    assert _serve_words(client)[2:] == options

    assert run("install", client, "--", "--skills-as=prompts")[0] == 0
    assert [word for word in _serve_words(client) if "skills-as" in word] == ["--skills-as=prompts"]


def test_install_without_skills(run, project):
    """For recipes without skills, `install` writes no option for skills."""
    (project / "recipes" / "reviews.py").write_text(RECIPE.partition("@skill")[0].replace(", skill", ""))
    (project / "recipes" / "skills" / "ship-it" / "SKILL.md").unlink()

    assert run("install", "claude-desktop")[0] == 0
    assert len(_serve_words("claude-desktop")) == 2


def _serve_words(client):
    (entry,) = entries(client).values()
    words = command_in(INSTALLABLE[client], entry)
    return words[words.index("serve") :]


def test_check_ranks_cases(run, project):
    """`check` ranks the cases of recipes, case files and folders."""
    assert run("check")[:2] == (0, "2 prompts and 2 skills can be served\n")

    (project / "recipes" / "cases_reviews.py").write_text(CASES.replace("publish", "review"))

    code, out, _ = run("check", "--fail-on", "warning")
    assert code == 1
    assert "recipes/cases_reviews.py:3: warning PK613: skill 'review': it ranks first" in out


def test_check_counts_skills(run, tmp_path):
    """If the only skill is invalid, the summary counts "0 skills", not prompts."""
    (tmp_path / "ship").mkdir()
    (tmp_path / "ship" / "SKILL.md").write_text("---\nname: ship\n---\n")

    assert run("check", str(tmp_path))[1].endswith("0 skills can be served, 1 error\n")


def test_check_compares_the_listing_with_the_budget(run, project):
    """`--max-tokens` is also the budget for names and descriptions."""
    assert "PK612" in run("check", "--max-tokens", "20")[1]
    assert "PK612" not in run("check", "--max-tokens", "40")[1]


def test_evals(run, project, tmp_path):
    """The cases are written in both forms of Anthropic's skill-creator."""
    code, out, _ = run("export", "skill-evals", str(tmp_path / "out"))

    assert (code, out.splitlines()[0]) == (0, f"wrote 2 skills to {tmp_path / 'out'}: review, ship-it")
    evals = json.loads((tmp_path / "out" / "ship-it" / "evals" / "evals.json").read_text())
    assert evals["skill_name"] == "ship-it"
    assert [each["id"] for each in evals["evals"]] == [1, 2]
    assert evals["evals"][1] == {
        "id": 2,
        "prompt": "review my code",
        "expected_output": "The skill 'ship-it' is not used",
        "files": [],
        "expectations": ["The skill 'ship-it' is not used"],
    }
    triggers = json.loads((tmp_path / "out" / "review" / "evals" / "triggers.json").read_text())
    assert triggers == [
        {"query": "review my code", "should_trigger": True},
        {"query": "publish it", "should_trigger": False},
    ]


@pytest.mark.parametrize(
    ("words", "part"), [(["hello"], "not a skill with cases"), (["x"], "unknown prompt 'x'")]
)
def test_evals_of_other_names(run, project, tmp_path, words, part):
    """A prompt has no evals."""
    code, _, errors = run("export", "skill-evals", str(tmp_path / "out"), *words)
    assert code in (1, 2)
    assert part in errors


def test_evals_without_cases(run, project, tmp_path):
    """Without cases, nothing is written."""
    code, _, errors = run("export", "skill-evals", str(tmp_path / "out"), "--target", "recipes/skills/none")
    assert code == 2
    (project / "recipes" / "cases_reviews.py").unlink()
    (project / "recipes" / "reviews.py").write_text(RECIPE.partition("review.case")[0])
    (project / "recipes" / "skills" / "ship-it" / "SKILL.md").write_text(SKILL.replace("cases", "notes"))
    code, _, errors = run("export", "skill-evals", str(tmp_path / "out"))
    assert code == 1
    assert "no skill has cases" in errors
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("form", "files"), [("codex", ["hello"]), ("claude-commands", ["hello.md", "review.md"])]
)
def test_exported_prompt_that_is_also_a_skill(run, project, tmp_path, form, files):
    """A skill with $ARGUMENTS is exported as a command as well, but not as a skill made of a prompt."""
    assert run("export", form, str(tmp_path / "out"))[0] == 0
    assert sorted(path.name for path in (tmp_path / "out").glob("[!.]*")) == files


def test_exported_skill_that_is_also_a_prompt(run, project, tmp_path):
    """A skill with $ARGUMENTS is exported once, as the skill."""
    assert run("export", "skills", str(tmp_path / "out"))[0] == 0
    assert "Read $ARGUMENTS." in (tmp_path / "out" / "review" / "SKILL.md").read_text()

"""Tests of the skills `review-changes` and `write-changelog`."""

import subprocess
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from promptkit.testing import Client
from recipes.code_review import RULES
from recipes.review_changes import review_changes

FOLDER = Path(__file__).parent


def test_prompt_and_skill_have_the_same_rules() -> None:
    """The skill contains the rules of the prompt `code_review`."""
    assert RULES.text in review_changes().text


@pytest.mark.parametrize("name", ["review-changes", "write-changelog"])
def test_client_can_read_every_file(name: str) -> None:
    """A client can read and verify every file of the skill, and the text links to its references."""
    skill = Client(FOLDER).read_skill(name)

    assert len(skill.files) > 1
    assert "references/" in skill.text


def test_commits_are_printed_by_kind(tmp_path: Path) -> None:
    """The script of `write-changelog` prints the commits since the last tag, grouped by kind."""

    def run_git(*arguments: str) -> None:
        identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
        command = ["git", *identity, *arguments]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)  # noqa: S603 (constant arguments)

    run_git("init")
    for name, subject in {"a": "Begin", "b": "fix: Count from one", "c": "Tidy up"}.items():
        (tmp_path / name).write_text(name)
        run_git("add", name)
        run_git("commit", "-m", subject)
        if name == "a":
            run_git("tag", "v1")

    command = [sys.executable, str(FOLDER / "skills" / "write-changelog" / "scripts" / "commits.py")]
    output = subprocess.check_output(command, cwd=tmp_path, text=True)  # noqa: S603 (as above)

    assert "Since v1:" in output
    assert output.index("Fixed") < output.index("Count from one")
    assert output.index("Others") < output.index("Tidy up")
    assert "Begin" not in output


def test_skill_matches_the_snapshot(promptkit_snapshot: SnapshotAssertion) -> None:
    """The skill equals the snapshot, because any change requires the user to approve it again."""
    assert Client(review_changes).read_skill("review-changes").text == promptkit_snapshot

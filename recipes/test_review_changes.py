"""Tests of the skills `review-changes` and `write-changelog`."""

import subprocess
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from promptkit.testing import Client
from recipes.code_review import RULES
from recipes.review_changes import review_changes

HERE = Path(__file__).parent


def test_the_prompt_and_the_skill_have_the_same_rules() -> None:
    """What people ask for and what models do by themselves is one text."""
    assert RULES.text in review_changes().text


@pytest.mark.parametrize("name", ["review-changes", "write-changelog"])
def test_a_host_can_read_it(name: str) -> None:
    """Every byte is what the list says, and the text names its references."""
    skill = Client(HERE).read_skill(name)

    assert len(skill.files) > 1
    assert "references/" in skill.text


def test_commits_are_printed_by_kind(tmp_path: Path) -> None:
    """The script of `write-changelog` prints what has changed since the last tag."""

    def git(*arguments: str) -> None:
        who = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.com")
        command = ["git", *who, *arguments]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)  # noqa: S603 (as it is written here)

    git("init")
    for name, subject in {"a": "Begin", "b": "fix: Count from one", "c": "Tidy up"}.items():
        (tmp_path / name).write_text(name)
        git("add", name)
        git("commit", "-m", subject)
        if name == "a":
            git("tag", "v1")

    command = [sys.executable, str(HERE / "skills" / "write-changelog" / "scripts" / "commits.py")]
    printed = subprocess.check_output(command, cwd=tmp_path, text=True)  # noqa: S603 (as above)

    assert "Since v1:" in printed
    assert printed.index("Fixed") < printed.index("Count from one")
    assert printed.index("Others") < printed.index("Tidy up")
    assert "Begin" not in printed


def test_all_of_it(promptkit_snapshot: SnapshotAssertion) -> None:
    """The file reads as in the snapshot: whoever has approved it is asked again when a byte changes."""
    assert Client(review_changes).read_skill("review-changes").text == promptkit_snapshot

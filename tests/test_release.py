"""The distribution: its commands, its metadata and size, and the workflow that releases it."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from promptkit.version import VERSION
from tests.clients.python_packages import INSTALLING, install_packages

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))


def test_both_commands_are_promptkit():
    """`uvx mcp-promptkit` runs the command with the name of the distribution."""
    assert set(PROJECT["scripts"]) == {"promptkit", "mcp-promptkit"}
    assert len({*PROJECT["scripts"].values()}) == 1


def test_required_packages_are_explained():
    """The table in docs/stability.md has the required packages, and no others."""
    page = (ROOT / "docs/stability.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \|", page.partition("## Required packages")[2], re.MULTILINE)
    required = [Requirement(text).name for text in PROJECT["dependencies"]]

    assert sorted(", ".join(rows[2:]).split(", ")) == sorted(required)


def test_all_has_every_extra():
    """The extra `all` has each extra for users."""
    extras = set(PROJECT["optional-dependencies"]) - {"all", "bench", "dev", "docs"}
    (every,) = PROJECT["optional-dependencies"]["all"]

    assert Requirement(every).extras == extras


class TestWorkflow:
    def test_only_tags_trigger_a_release(self):
        """Only pushing a tag triggers a release, and each job has only the permissions that it needs."""
        assert WORKFLOW[True] == {"push": {"tags": ["v*"]}}
        assert WORKFLOW["permissions"] == {"contents": "read"}
        assert WORKFLOW["jobs"]["publish"]["permissions"] == {"id-token": "write"}

    def test_publishing_is_trusted(self):
        """The release attests the files that were built and checked, and publishes them without a token."""
        steps = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]
        used = [step["uses"].partition("@")[0] for step in steps if "uses" in step]

        assert {"actions/attest-build-provenance", "pypa/gh-action-pypi-publish"} <= set(used)
        assert "secrets." not in (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
        assert any("twine check --strict" in step.get("run", "") for step in steps)


def release(*words):
    """Run the script of the workflow."""
    command = [sys.executable, ROOT / ".ci/release.py", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_tag_of_another_version_is_rejected():
    """
    A tag is rejected unless the version, the API and the changelog match it.

    The notes of the release are the changelog of the version.
    """
    wrong = release("check", "v9.9.9")

    assert wrong.returncode == 1
    assert "version.py" in wrong.stderr
    assert "docs/api.json" in wrong.stderr
    assert "CHANGELOG.md" in wrong.stderr
    assert "The first release." in release("notes", f"v{VERSION}").stdout


@pytest.mark.installs
@pytest.mark.timeout(3 * INSTALLING)
def test_distribution_is_valid_and_small(tmp_path, installations):
    """
    Twine accepts the wheel and the source archive that `build` makes, and the wheel is smaller than 1 MB.
    """
    python = install_packages(Path(__file__).with_name("release.txt"), installations)
    building = [python, "-m", "build", "--outdir", tmp_path, ROOT]
    subprocess.run(building, check=True, capture_output=True, timeout=INSTALLING)
    (wheel,), (archive,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    checking = [python, "-m", "twine", "check", "--strict", wheel, archive]
    checked = subprocess.run(checking, check=False, capture_output=True, text=True)

    assert checked.returncode == 0, checked.stdout
    assert wheel.stat().st_size < 1_000_000
    names = zipfile.ZipFile(wheel).namelist()
    assert [name for name in names if not name.startswith(("promptkit/", "mcp_promptkit-"))] == []

"""Revisions in an unknown author's repository: git runs no other program, and fetches nothing."""

import os
from pathlib import Path

import pytest

from promptkit.cli.repository import Repository, RevisionError, checkout
from tests.cli.diff.repositories import BEFORE, HARMLESS, commit, git


def files_at(revision="HEAD"):
    """Return the content of the recipes at a revision of the repository in the current folder."""
    with checkout(Repository(), revision, ["recipes"]) as (_, (recipes,), _):
        return {file.name: file.read_text(encoding="utf-8") for file in Path(recipes).iterdir()}


def error_at(revision="HEAD"):
    """Return the error for a revision."""
    with pytest.raises(RevisionError) as error:
        files_at(revision)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.fixture
def program(tmp_path):
    """A program that records its runs."""
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho ran >> '{tmp_path}/ran'\nexec cat\n")
    program.chmod(0o755)
    return program


@pytest.mark.skipif(os.name == "nt", reason="there is no sh")
class TestPrograms:
    @pytest.fixture(autouse=True)
    def _no_program_runs(self, program, tmp_path):
        """Assert after each test that the program was not run."""
        yield
        assert not (tmp_path / "ran").exists()

    @pytest.mark.parametrize("is_configured", [False, True])
    def test_hooks(self, is_configured, repository, program):
        """Hooks run neither from the default folder nor from a configured one."""
        hooks = repository / ".git" / "hooks"
        hooks.mkdir(exist_ok=True)
        for name in ("post-index-change", "post-checkout", "reference-transaction"):
            (hooks / name).symlink_to(program)
        if is_configured:
            git(repository, "config", "core.hooksPath", str(hooks))

        assert files_at() == {"review.py": BEFORE}

    @pytest.mark.parametrize("name", ["plain", "with.dots and blanks"])
    @pytest.mark.parametrize("kind", ["smudge", "process"])
    def test_filters(self, kind, name, repository, program):
        """Files are read as committed, without running filters, even required ones."""
        git(repository, "config", f"filter.{name}.{kind}", str(program))
        git(repository, "config", f"filter.{name}.required", "true")
        (repository / ".git" / "info").mkdir(exist_ok=True)
        attribute = f"*.py filter={name.partition(' ')[0]}\n"
        (repository / ".git" / "info" / "attributes").write_text(attribute)

        assert files_at() == {"review.py": BEFORE}

    @pytest.mark.parametrize(
        "setting", ["core.fsmonitor", "core.pager", "diff.external", "core.sshCommand", "core.gitProxy"]
    )
    def test_other_programs(self, setting, repository, program):
        """No other configured program runs."""
        git(repository, "config", setting, str(program))

        assert files_at() == {"review.py": BEFORE}

    def test_partial_clone(self, repository, program, tmp_path, monkeypatch):
        """Missing files of a partial clone are an error, and are not fetched through its configuration."""
        commit(repository, HARMLESS)
        git(repository, "config", "uploadpack.allowFilter", "true")
        git(tmp_path, "clone", "--quiet", "--filter=blob:none", f"file://{repository}", "partial")
        git(tmp_path / "partial", "config", "remote.origin.uploadpack", str(program))
        monkeypatch.chdir(tmp_path / "partial")

        messages = ("lazy fetching disabled", "promisor", "unable to read")  # by the version of git

        assert any(message in error_at("HEAD~1") for message in messages)


def test_filter_that_cannot_be_disabled(repository):
    """A filter with `=` in its name cannot be disabled on git's command line, so it is rejected."""
    git(repository, "config", "filter.a=b.smudge", "cat")

    assert error_at() == "the filter 'a=b' in git's configuration cannot be disabled: rename it without '='"


@pytest.mark.parametrize("revisions", ["HEAD~1", "HEAD~1..HEAD", "HEAD~1...HEAD"])
def test_shallow_clone(revisions, repository, tmp_path, monkeypatch):
    """A shallow clone is reported, with the command that fetches the missing commits."""
    commit(repository, HARMLESS)
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{repository}", "shallow")
    monkeypatch.chdir(tmp_path / "shallow")

    with pytest.raises(RevisionError) as error:
        files_at(Repository().resolve_range(revisions)[0])
    assert str(error.value) == (
        "unknown revision 'HEAD~1': this clone is shallow and lacks older commits: "
        "run git fetch --unshallow, or set fetch-depth: 0 for actions/checkout"
    )


@pytest.mark.skipif(os.name == "nt", reason="there are no pipes of this kind")
def test_git_that_hangs(repository, monkeypatch):
    """The error names the limit if one of git's files is a pipe."""
    os.mkfifo(repository / "pipe")
    git(repository, "config", "include.path", str(repository / "pipe"))
    monkeypatch.setattr("promptkit.cli.repository._MAX_S", 0.5)

    assert error_at().endswith("git rev-parse did not finish within 0.5 s: one of its files may be a pipe")


def test_missing_worktree(repository, tmp_path):
    """Git's error about a configured worktree that does not exist takes one line."""
    git(repository, "config", "core.worktree", str(tmp_path / "elsewhere"))

    assert error_at().startswith("fatal: ")


@pytest.mark.skipif(os.name == "nt", reason="links need privileges")
def test_links_of_a_revision(repository, tmp_path):
    """Links within the repository are followed, and links that lead out of it are skipped."""
    (tmp_path / "secret.py").write_text("secret")
    (repository / "recipes" / "stolen.py").symlink_to(tmp_path / "secret.py")
    (repository / "lib.py").write_text("shared")
    (repository / "recipes" / "shared.py").symlink_to("../lib.py")
    commit(repository, BEFORE)

    assert files_at() == {"review.py": BEFORE, "shared.py": "shared"}


@pytest.mark.parametrize("name", ["..", ".git"])
def test_paths_outside_the_folder(name, repository, tmp_path):
    """A tree with paths such as `..` is rejected with a one-line error."""
    blob = git(repository, "hash-object", "-w", os.devnull)
    (tmp_path / "tree").write_bytes(b"100644 " + name.encode() + b"\0" + bytes.fromhex(blob))
    tree = git(repository, "hash-object", "-t", "tree", "-w", "--literally", str(tmp_path / "tree"))

    assert name in error_at(git(repository, "commit-tree", tree, "-m", "Odd"))


def test_deeply_nested_path(repository):
    """A path of 1,500 folders is rejected before any of them is created."""
    blob = git(repository, "hash-object", "-w", str(repository / "recipes" / "review.py"))
    git(repository, "update-index", "--add", "--cacheinfo", f"100644,{blob},{'a/' * 1500}a")
    commit_hash = git(repository, "commit-tree", git(repository, "write-tree"), "-m", "Deep")

    assert error_at(commit_hash).endswith(" is nested in 1,500 folders, but at most 200 are supported")

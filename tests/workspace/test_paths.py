import os
import shutil
import subprocess
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit import Arg
from promptkit.catalog.completion import Completer
from promptkit.errors import PromptError
from promptkit.workspace import files, paths

#: The files in the workspace.
TREE = (
    "main.py",
    "notes.txt",
    "src/deep/er/tool.py",
    "src/tool.py",
    "src/tool.pyc",
    ".venv/lib.py",
    "line\nend.py",
)


@pytest.fixture
def tree(folder):
    """A workspace with files."""
    for name in TREE:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return folder


def run_git(folder, *arguments):
    """Run git in a folder."""
    subprocess.run(["git", *arguments], cwd=folder, check=True)  # noqa: S607 (whichever there is)


@pytest.fixture
def repository(tree):
    """A git repository with one added file, and some files that are ignored."""
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    tree.joinpath(".gitignore").write_text("*.pyc\n.venv\nsrc/deep\n")
    run_git(tree, "init", "-q")
    run_git(tree, "add", "main.py")
    return tree


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("**/*.py", ["main.py", "src/deep/er/tool.py", "src/tool.py"]),
        ("*.py", ["main.py"]),
        ("src/**", ["src/deep/er/tool.py", "src/tool.py", "src/tool.pyc"]),
        ("src/*/*/*", ["src/deep/er/tool.py"]),
        ("**/deep/**/*.py", ["src/deep/er/tool.py"]),
        ("**/tool.py[c]", ["src/tool.pyc"]),
        ("./m???.py", ["main.py"]),
        ("src", []),
    ],
)
def test_pattern_selects_files(pattern, matches, tree):
    """`*` matches within one name and `**` any folders; hidden folders and multi-line names are omitted."""
    assert files(pattern)() == matches


def test_files_that_git_ignores_are_omitted(repository):
    """In a repository, files that git ignores are omitted."""
    assert files("**")() == [".gitignore", "main.py", "notes.txt", "src/tool.py"]


def test_paths_in_a_subfolder_are_relative_to_it(repository, monkeypatch):
    """If the workspace is a subfolder of a repository, paths are relative to the subfolder."""
    monkeypatch.setenv("PROMPTKIT_WORKSPACE", str(repository / "src"))

    assert files("**/*.py")() == ["tool.py"]


def test_programs_of_a_repository_do_not_run(repository):
    """Programs that the repository's configuration names, such as a file system monitor, are not run."""
    program = repository.parent / "monitor"
    program.write_text("#!/bin/sh\ntouch ran\n")
    program.chmod(0o755)
    run_git(repository, "config", "core.fsmonitor", str(program))

    assert "main.py" in files("**")()
    assert not repository.joinpath("ran").exists()


def test_without_git_folders_are_walked(repository, monkeypatch):
    """Without git, only hidden folders are omitted."""
    monkeypatch.setenv("PATH", os.devnull)

    assert files("**/*.py*")() == ["main.py", "src/deep/er/tool.py", "src/tool.py", "src/tool.pyc"]


def test_files_complete_an_argument(tree):
    """The files complete an argument of `Arg`."""
    completer = Completer(Arg(complete=files("**/*.py")).complete)

    assert completer.complete("tool").values == ("src/deep/er/tool.py", "src/tool.py")


def test_files_need_a_workspace(monkeypatch):
    """Without a workspace, the error explains why."""
    monkeypatch.setenv("PROMPTKIT_WORKSPACE", "")

    with pytest.raises(PromptError, match="this server has no workspace"):
        files("*")()


@pytest.mark.parametrize("pattern", ["", "/etc/*", "../*", "a/../../b"])
def test_pattern_cannot_leave_the_workspace(pattern):
    """A pattern that leaves the workspace raises a ValueError."""
    with pytest.raises(ValueError, match="write it relative to the workspace"):
        files(pattern)


def matches_by_definition(names, parts):
    """Return whether names match a pattern, by the recursive definition of ``**``, in exponential time."""
    if not parts or not names:
        return not names and all(part == "**" for part in parts)
    first, *other_parts = parts
    if first == "**":
        return matches_by_definition(names, other_parts) or matches_by_definition(names[1:], parts)
    return fnmatchcase(names[0], first) and matches_by_definition(names[1:], other_parts)


@given(
    st.lists(st.sampled_from(["a", "b", "ab", "ba"]), min_size=1, max_size=7),
    st.lists(st.sampled_from(["**", "*", "a", "b", "a*", "?b"]), min_size=1, max_size=6),
)
def test_matching_is_as_defined(names, parts):
    """The matcher agrees with the recursive definition."""
    assert paths._matches(names, parts) is matches_by_definition(names, parts)


@pytest.mark.parametrize(
    ("names", "parts", "is_match"),
    [
        (["a"] * 1_500, ["**", "*.py"], False),
        ([*["a"] * 1_500, "b.py"], ["**", "*.py"], True),
        (["a"] * 1_500, ["**"] * 1_500, True),
        (["a"] * 1_500, [*["**", "a"] * 50, "b"], False),
    ],
    ids=["deep", "deep and wanted", "stars", "stars and names"],
)
def test_number_of_comparisons_is_bounded(names, parts, is_match, monkeypatch):
    """Deep paths and patterns with many ``**`` need a bounded number of comparisons."""
    count = 0

    def count_and_match(name, pattern):
        nonlocal count
        count += 1
        return fnmatchcase(name, pattern)

    monkeypatch.setattr(paths, "fnmatchcase", count_and_match)

    assert paths._matches(names, parts) is is_match
    assert count <= len(names) * len(parts)


def test_deep_path_in_the_index_does_not_hide_other_files(repository):
    """A path in the index that is 1,500 folders deep, and not on disk, does not hide other files."""
    blob = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    deep = "a/" * 1_500 + "deep.py"
    subprocess.run(
        ["git", "update-index", "--add", "--index-info"],  # noqa: S607 (whichever there is)
        cwd=repository,
        check=True,
        input=f"100644 {blob}\t{deep}\n".encode(),
    )

    assert files("**/*.py")() == [deep, "main.py", "src/tool.py"]


@pytest.mark.parametrize("name", ["odd\udcff.py", "line\nend.py", "tab\t.py", "\u202e.py"], ids=ascii)
def test_odd_names_are_omitted(name, tree):
    """Files and folders whose names are not valid text or have several lines are omitted."""
    tree.joinpath(name).touch()
    tree.joinpath(name.removesuffix(".py")).mkdir()
    tree.joinpath(name.removesuffix(".py"), "inner.py").touch()

    assert files("**/*.py")() == ["main.py", "src/deep/er/tool.py", "src/tool.py"]

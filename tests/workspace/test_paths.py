import os
import shutil
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit import Arg
from promptkit.catalog.completion import Completer
from promptkit.errors import PromptError
from promptkit.workspace import files, paths

#: What lies in the workspace.
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


def git(folder, *words):
    """Have git do something in a folder."""
    subprocess.run(["git", *words], cwd=folder, check=True)  # noqa: S607 (whichever there is)


@pytest.fixture
def repository(tree):
    """A git repository with files, one of which is committed; some are ignored."""
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    tree.joinpath(".gitignore").write_text("*.pyc\n.venv\nsrc/deep\n")
    git(tree, "init", "-q")
    git(tree, "add", "main.py")
    return tree


@pytest.mark.parametrize(
    ("pattern", "found"),
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
def test_a_pattern_chooses_files(pattern, found, tree):
    """
    Stars stand for characters of one name, two for any folders; hidden folders, and names of several lines,
    are left out.
    """
    assert files(pattern)() == found


def test_a_repository_has_what_git_does_not_ignore(repository):
    """
    Committed or not, in order.
    """
    assert files("**")() == [".gitignore", "main.py", "notes.txt", "src/tool.py"]


def test_a_folder_of_a_repository_has_its_own_files(repository, monkeypatch):
    """
    Their paths begin there.
    """
    monkeypatch.setenv("PROMPTKIT_WORKSPACE", str(repository / "src"))

    assert files("**/*.py")() == ["tool.py"]


def test_no_program_of_a_repository_runs(repository):
    """
    Its configuration may name one that git asks for changed files.
    """
    program = repository.parent / "monitor"
    program.write_text("#!/bin/sh\ntouch ran\n")
    program.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(program))

    assert "main.py" in files("**")()
    assert not repository.joinpath("ran").exists()


def test_without_git_folders_are_walked(repository, monkeypatch):
    """
    Then nothing is ignored but hidden folders.
    """
    monkeypatch.setenv("PATH", os.devnull)

    assert files("**/*.py*")() == ["main.py", "src/deep/er/tool.py", "src/tool.py", "src/tool.pyc"]


def test_it_completes_an_argument(tree):
    """
    It has the form that `Arg` takes: what was typed is looked for in the paths.
    """
    completer = Completer(Arg(complete=files("**/*.py")).complete)

    assert completer.complete("tool").values == ("src/deep/er/tool.py", "src/tool.py")


def test_without_a_workspace_there_are_none(monkeypatch):
    """
    Who completes is told why.
    """
    monkeypatch.setenv("PROMPTKIT_WORKSPACE", "")

    with pytest.raises(PromptError, match="this server has no workspace"):
        files("*")()


@pytest.mark.parametrize("pattern", ["", "/etc/*", "../*", "a/../../b"])
def test_a_pattern_stays_in_the_workspace(pattern):
    """
    Others are the author's mistake.
    """
    with pytest.raises(ValueError, match="write it relative to the workspace"):
        files(pattern)


def matches_by_definition(names, wanted):
    """Whether names match a pattern, as the definition of ``**`` has it: in exponential time."""
    if not wanted or not names:
        return not names and all(part == "**" for part in wanted)
    first, *rest = wanted
    if first == "**":
        return matches_by_definition(names, rest) or matches_by_definition(names[1:], wanted)
    return fnmatchcase(names[0], first) and matches_by_definition(names[1:], rest)


@given(
    st.lists(st.sampled_from(["a", "b", "ab", "ba"]), min_size=1, max_size=7),
    st.lists(st.sampled_from(["**", "*", "a", "b", "a*", "?b"]), min_size=1, max_size=6),
)
def test_matching_is_as_defined(names, wanted):
    """
    Matching in bounded time agrees with the recursive definition.
    """
    assert paths._matches(names, wanted) is matches_by_definition(names, wanted)


@pytest.mark.parametrize(
    ("names", "wanted", "is_match"),
    [
        (["a"] * 1_500, ["**", "*.py"], False),
        ([*["a"] * 1_500, "b.py"], ["**", "*.py"], True),
        (["a"] * 1_500, ["**"] * 1_500, True),
        (["a"] * 1_500, [*["**", "a"] * 50, "b"], False),
    ],
    ids=["deep", "deep and wanted", "stars", "stars and names"],
)
def test_each_name_is_compared_with_each_part_at_most_once(names, wanted, is_match, monkeypatch):
    """
    Deep paths and patterns with many ``**`` take bounded time, and no stack.
    """
    count = 0

    def counted(name, pattern):
        nonlocal count
        count += 1
        return fnmatchcase(name, pattern)

    monkeypatch.setattr(paths, "fnmatchcase", counted)

    assert paths._matches(names, wanted) is is_match
    assert count <= len(names) * len(wanted)


def test_a_deep_path_in_the_index_does_not_hide_the_others(repository):
    """
    A repository can have a path of 1,500 folders in its index, which no file needs to have.
    """
    blob = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    deep = "a/" * 1_500 + "deep.py"
    subprocess.run(
        ["git", "update-index", "--add", "--index-info"],  # noqa: S607 (whichever there is)
        cwd=repository,
        check=True,
        input=f"100644 {blob}\t{deep}\n".encode(),
    )

    assert files("**/*.py")() == [deep, "main.py", "src/tool.py"]


def test_deep_folders_are_walked(tree, monkeypatch):
    """
    Without a repository, folders that nest deeper than Python calls are found, too.
    """
    monkeypatch.chdir(tree)
    for _ in range(1_200):
        Path("a").mkdir()
        os.chdir("a")
    os.chdir(tree)
    deep = tree.joinpath(*["a"] * 1_200)
    deep.joinpath("deep.py").touch()

    found = files("**/*.py")()

    deep.joinpath("deep.py").unlink()
    os.removedirs(deep)  # pytest would call itself for each level
    assert found == ["a/" * 1_200 + "deep.py", "main.py", "src/deep/er/tool.py", "src/tool.py"]


@pytest.mark.parametrize("name", ["odd\udcff.py", "line\nend.py", "tab\t.py", "\u202e.py"], ids=ascii)
def test_odd_names_are_left_out(name, tree):
    """
    A name that is not text, or not one line, cannot be sent as an argument.
    """
    tree.joinpath(name).touch()
    tree.joinpath(name.removesuffix(".py")).mkdir()
    tree.joinpath(name.removesuffix(".py"), "inner.py").touch()

    assert files("**/*.py")() == ["main.py", "src/deep/er/tool.py", "src/tool.py"]

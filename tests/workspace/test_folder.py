from pathlib import Path

import pytest

from promptkit.errors import PromptError
from promptkit.workspace import workspace


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Three folders, of which the last is the current one; the variables are not set."""
    for name in ("PROMPTKIT_WORKSPACE", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    folders = [tmp_path / name for name in ("named", "project", "current")]
    for folder in folders:
        folder.mkdir()
    monkeypatch.chdir(folders[-1])
    return folders


def test_promptkit_variable_takes_precedence(folders, monkeypatch):
    """PROMPTKIT_WORKSPACE takes precedence over CLAUDE_PROJECT_DIR, and both over the current folder."""
    named, project, current = folders
    workspaces = [workspace()]
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(project))
    workspaces.append(workspace())
    monkeypatch.setenv("PROMPTKIT_WORKSPACE", str(named))
    workspaces.append(workspace())

    assert workspaces == [current, project, named]


def test_empty_claude_variable_is_ignored(folders, monkeypatch):
    """An empty CLAUDE_PROJECT_DIR is ignored."""
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", "")

    assert workspace() == folders[-1]


def test_relative_path_is_resolved_from_the_current_folder(folders, monkeypatch):
    """A relative path is resolved against the current folder."""
    folders[-1].joinpath("below").mkdir()
    monkeypatch.setenv("PROMPTKIT_WORKSPACE", "below")

    assert workspace() == folders[-1] / "below"


def test_empty_promptkit_variable_means_no_workspace(folders, monkeypatch):
    """An empty PROMPTKIT_WORKSPACE means no workspace, whatever else is set."""
    monkeypatch.setenv("PROMPTKIT_WORKSPACE", "")
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(folders[1]))

    with pytest.raises(PromptError) as raised:
        workspace()

    assert str(raised.value) == (
        "this server has no workspace: start it with --workspace DIR, or over stdio in the right folder"
    )


def test_root_is_not_a_workspace(folders, monkeypatch):
    """The root folder, where some clients start their servers, is not a workspace."""
    monkeypatch.chdir(Path.cwd().anchor)

    with pytest.raises(PromptError, match="this server has no workspace"):
        workspace()


def test_deleted_current_folder_is_not_a_workspace(folders):
    """A deleted current folder is not a workspace."""
    folders[-1].rmdir()

    with pytest.raises(PromptError, match="this server has no workspace"):
        workspace()


@pytest.mark.parametrize("variable", ["PROMPTKIT_WORKSPACE", "CLAUDE_PROJECT_DIR"])
@pytest.mark.parametrize("path", ["nowhere", "file", "file/below"])
def test_variable_that_does_not_name_a_folder_is_an_error(variable, path, folders, monkeypatch):
    """The error names the variable without the path, which remote clients must not see."""
    folders[-1].joinpath("file").touch()
    monkeypatch.setenv(variable, str(folders[-1] / path))

    with pytest.raises(PromptError) as raised:
        workspace()

    assert str(raised.value) == (
        f"{variable} is not a folder on the server's machine: correct it, or use --workspace DIR"
    )

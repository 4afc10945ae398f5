from pathlib import Path

import pytest

from promptkit.errors import PromptError
from promptkit.workspace import workspace


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Three folders, of which the last is the current one; the variables are not set."""
    for name in ("PROMPTKIT_WORKSPACE", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    folders = [tmp_path / name for name in ("named", "project", "current")]
    for folder in folders:
        folder.mkdir()
    monkeypatch.chdir(folders[-1])
    return folders


def test_what_names_the_workspace_first_counts(places, monkeypatch):
    """PROMPTKIT_WORKSPACE takes precedence over CLAUDE_PROJECT_DIR, and both over the current folder."""
    named, project, current = places
    found = [workspace()]
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(project))
    found.append(workspace())
    monkeypatch.setenv("PROMPTKIT_WORKSPACE", str(named))
    found.append(workspace())

    assert found == [current, project, named]


def test_an_empty_variable_of_claude_codes_says_nothing(places, monkeypatch):
    """An empty CLAUDE_PROJECT_DIR is ignored."""
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", "")

    assert workspace() == places[-1]


def test_a_relative_path_is_read_from_the_current_folder(places, monkeypatch):
    """A relative path is resolved against the current folder."""
    places[-1].joinpath("below").mkdir()
    monkeypatch.setenv("PROMPTKIT_WORKSPACE", "below")

    assert workspace() == places[-1] / "below"


def test_an_empty_variable_of_ours_means_none(places, monkeypatch):
    """An empty PROMPTKIT_WORKSPACE means no workspace, whatever else is set."""
    monkeypatch.setenv("PROMPTKIT_WORKSPACE", "")
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(places[1]))

    with pytest.raises(PromptError) as refused:
        workspace()

    assert str(refused.value) == (
        "this server has no workspace: start it with --workspace DIR, or over stdio in the right folder"
    )


def test_the_root_is_no_workspace(places, monkeypatch):
    """The root folder, where some clients start their servers, is not a workspace."""
    monkeypatch.chdir(Path.cwd().anchor)

    with pytest.raises(PromptError, match="this server has no workspace"):
        workspace()


def test_a_current_folder_that_is_gone_is_no_workspace(places):
    """A deleted current folder is not a workspace."""
    places[-1].rmdir()

    with pytest.raises(PromptError, match="this server has no workspace"):
        workspace()


@pytest.mark.parametrize("variable", ["PROMPTKIT_WORKSPACE", "CLAUDE_PROJECT_DIR"])
@pytest.mark.parametrize("named", ["nowhere", "file", "file/below"])
def test_a_variable_that_names_no_folder_is_an_error(variable, named, places, monkeypatch):
    """The error names the variable without the path, which remote clients must not see."""
    places[-1].joinpath("file").touch()
    monkeypatch.setenv(variable, str(places[-1] / named))

    with pytest.raises(PromptError) as refused:
        workspace()

    assert str(refused.value) == (
        f"{variable} names no folder where the server runs: correct it, or use --workspace DIR"
    )

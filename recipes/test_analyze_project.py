"""Tests of `analyze_project`."""

from pathlib import Path

import pytest

from promptkit import EmbeddedResource, PromptError
from promptkit.testing import Client
from recipes.analyze_project import analyze_project, project_file

#: A project of one source file and two logs.
FILES = {"src/upload.py": "x = 1", "logs/a.log": "10:00 lost", "logs/b c.log": "ä"}

ARGUMENTS = {
    "question": "Why do uploads fail?",
    "source": "src/upload.py",
    "logs": "logs/a.log, logs/b c.log",
}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make that project, and have the recipe read from it."""
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    monkeypatch.setenv("PROJECT_ROOT", str(tmp_path))
    return tmp_path


def test_files_follow_the_question_as_resources() -> None:
    """The text comes first, then every file, in the order in which they were named."""
    first, *rest = analyze_project.render_wire(ARGUMENTS)
    files = [message.content for message in rest]

    assert "Why do uploads fail?" in str(first)
    assert files == [
        EmbeddedResource("project:///src/upload.py", text="x = 1", mime_type="text/plain"),
        EmbeddedResource("project:///logs/a.log", text="10:00 lost", mime_type="text/plain"),
        EmbeddedResource("project:///logs/b%20c.log", text="ä", mime_type="text/plain"),
    ]


def test_clients_may_read_the_files_themselves() -> None:
    """What the prompt embeds, a client lists as a family of resources and reads by its URI."""
    client = Client([analyze_project, project_file])
    embedded = client.get_prompt("analyze_project", ARGUMENTS)[3].content

    assert [one.uri_template for one in client.list_resource_templates()] == ["project:///{+path}"]
    assert client.read_resource("project:///logs/b%20c.log") == embedded


def test_samples_are_read_where_no_project_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without PROJECT_ROOT the example works, and nothing but the samples can be read."""
    monkeypatch.delenv("PROJECT_ROOT")

    assert "part 1: refused" in analyze_project.render_wire(
        {"question": "Why do uploads fail?", "source": "upload.py", "logs": "upload.log"}
    )
    with pytest.raises(PromptError, match=r"leads out of|plain relative path"):
        project_file("../conftest.py")


def test_logs_are_optional() -> None:
    """Without logs the source alone is attached."""
    assert len(analyze_project.render_wire({**ARGUMENTS, "logs": ""})) == 2


@pytest.mark.parametrize(
    "path", ["", "src", "nowhere.py", "/etc/passwd", "../secret", "src/../../secret", "a\0b"]
)
def test_wrong_paths_are_explained(path: str, project: Path) -> None:
    """Whatever is no file of the project is refused in a sentence, and not read."""
    (project.parent / "secret").write_text("secret")

    with pytest.raises(PromptError, match=r"plain relative path|there is no file|leads out of"):
        analyze_project.render_wire({**ARGUMENTS, "source": path})


def test_link_out_of_the_project_is_refused(project: Path) -> None:
    """A symbolic link is followed before it is judged."""
    (project / "link.py").symlink_to("/etc/hosts")

    with pytest.raises(PromptError, match="leads out of"):
        project_file("link.py")


def test_binary_file_is_refused(project: Path) -> None:
    """A file that is no text is not sent as if it were."""
    (project / "photo.py").write_bytes(b"\x89PNG\0\0")

    with pytest.raises(PromptError, match="is no text"):
        project_file("photo.py")


def test_long_log_keeps_its_end(project: Path) -> None:
    """Of a log that is too long, the latest lines are sent, and what was cut is said."""
    (project / "long.log").write_text("old line\n" * 20_000 + "the crash\n")
    text = project_file("long.log")

    assert text.startswith("[... ")
    assert text.endswith("the crash\n")


def test_root_of_the_disk_is_no_project(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that a client started in / reads nothing until it is told where the project is."""
    monkeypatch.setenv("PROJECT_ROOT", "/")

    with pytest.raises(PromptError, match="set PROJECT_ROOT to a folder"):
        project_file("etc/hosts")

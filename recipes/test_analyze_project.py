"""Tests of `analyze_project`."""

from pathlib import Path

import pytest

from promptkit import EmbeddedResource, PromptError
from promptkit.testing import Client
from recipes.analyze_project import analyze_project, project_file

#: A project with one source file and two logs.
FILES = {"src/upload.py": "x = 1", "logs/a.log": "10:00 lost", "logs/b c.log": "ä"}

ARGUMENTS = {
    "question": "Why do uploads fail?",
    "source": "src/upload.py",
    "logs": "logs/a.log, logs/b c.log",
}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the files of the project, and configure the recipe to read from it."""
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    monkeypatch.setenv("PROJECT_ROOT", str(tmp_path))
    return tmp_path


def test_files_follow_the_question_as_resources() -> None:
    """The text comes first, followed by the files in the order of the arguments."""
    question, *attachments = analyze_project.render_wire(ARGUMENTS)

    assert "Why do uploads fail?" in str(question)
    assert [message.content for message in attachments] == [
        EmbeddedResource("project:///src/upload.py", text="x = 1", mime_type="text/plain"),
        EmbeddedResource("project:///logs/a.log", text="10:00 lost", mime_type="text/plain"),
        EmbeddedResource("project:///logs/b%20c.log", text="ä", mime_type="text/plain"),
    ]


def test_clients_can_read_the_embedded_files() -> None:
    """A client can read each embedded file by its URI, through a listed resource template."""
    client = Client([analyze_project, project_file])
    embedded = client.get_prompt("analyze_project", ARGUMENTS)[3].content

    assert [template.uri_template for template in client.list_resource_templates()] == ["project:///{+path}"]
    assert client.read_resource("project:///logs/b%20c.log") == embedded


def test_default_project_is_the_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without PROJECT_ROOT, only the samples can be read."""
    monkeypatch.delenv("PROJECT_ROOT")

    assert "part 1: rejected" in analyze_project.render_wire(
        {"question": "Why do uploads fail?", "source": "upload.py", "logs": "upload.log"}
    )
    with pytest.raises(PromptError, match=r"is outside|plain relative path"):
        project_file("../conftest.py")


def test_logs_are_optional() -> None:
    """Without logs, only the source file is attached."""
    assert len(analyze_project.render_wire({**ARGUMENTS, "logs": ""})) == 2


@pytest.mark.parametrize(
    "path", ["", "src", "nowhere.py", "/etc/passwd", "../secret", "src/../../secret", "a\0b"]
)
def test_invalid_path_is_rejected(path: str, project: Path) -> None:
    """A path that is not a file of the project is rejected with an explanation."""
    (project.parent / "secret").write_text("secret")

    with pytest.raises(PromptError, match=r"plain relative path|there is no file|is outside"):
        analyze_project.render_wire({**ARGUMENTS, "source": path})


def test_link_out_of_the_project_is_rejected(project: Path) -> None:
    """A symbolic link to a file outside the project is rejected."""
    (project / "link.py").symlink_to("/etc/hosts")

    with pytest.raises(PromptError, match="is outside"):
        project_file("link.py")


def test_binary_file_is_rejected(project: Path) -> None:
    """A file that contains a null byte is rejected."""
    (project / "photo.py").write_bytes(b"\x89PNG\0\0")

    with pytest.raises(PromptError, match="is not a text file"):
        project_file("photo.py")


def test_long_log_keeps_its_end(project: Path) -> None:
    """A log that is too long loses its start, and a note reports this."""
    (project / "long.log").write_text("old line\n" * 20_000 + "the crash\n")
    text = project_file("long.log")

    assert text.startswith("[... ")
    assert text.endswith("the crash\n")


def test_root_of_the_disk_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file can be read while the project is the root of the file system."""
    monkeypatch.setenv("PROJECT_ROOT", "/")

    with pytest.raises(PromptError, match="set PROJECT_ROOT to a folder"):
        project_file("etc/hosts")

"""What the tests of the recipes share."""

from pathlib import Path

import pytest

#: A project of one source file and two logs, the names of which the examples have.
FILES = {"src/upload.py": "x = 1", "logs/a.log": "10:00 lost", "logs/b c.log": "ä"}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the project that `analyze_project` reads from."""
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    monkeypatch.setenv("PROJECT_ROOT", str(tmp_path))
    return tmp_path

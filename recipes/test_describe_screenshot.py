"""Tests of `describe_screenshot`."""

from pathlib import Path

import pytest

from promptkit import Image, PromptError
from promptkit.testing import Client
from recipes.describe_screenshot import SAMPLES, USES, describe_screenshot, list_pictures


@pytest.mark.parametrize("use", USES)
def test_picture_follows_the_text(use: str) -> None:
    """For every use, the bytes of the file follow the text as a PNG image."""
    text, picture = describe_screenshot.render_wire({"picture": "dialog.png", "use": use})

    assert str(USES[use]) in str(text)
    assert picture.content == Image((SAMPLES / "dialog.png").read_bytes(), "image/png")


@pytest.mark.parametrize("name", ["", "missing.png", "../describe_screenshot.py", "/etc/passwd", "chime.wav"])
def test_invalid_picture_is_rejected(name: str) -> None:
    """A missing file, a file outside the folder or a file that is not a picture is rejected."""
    with pytest.raises(PromptError, match=r"plain relative path|there is no file|the bytes are audio/wav"):
        describe_screenshot.render_wire({"picture": name})


def test_folder_can_be_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures are read from the folder that SCREENSHOT_FOLDER names."""
    (tmp_path / "mine.png").write_bytes((SAMPLES / "dialog.png").read_bytes())
    monkeypatch.setenv("SCREENSHOT_FOLDER", str(tmp_path))

    assert len(describe_screenshot("mine.png")) == 2
    assert list_pictures("") == ["mine.png"]


def test_picture_names_are_completed() -> None:
    """Completion returns the pictures that start with the input, and no other files."""
    client = Client(describe_screenshot)

    assert client.complete("describe_screenshot", "picture", "d").values == ("dialog.png",)
    assert list_pictures("d") == ["dialog.png"]
    assert list_pictures("chime") == []

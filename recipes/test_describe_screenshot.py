"""Tests of `describe_screenshot`."""

from pathlib import Path

import pytest

from promptkit import Image, PromptError
from promptkit.testing import Client
from recipes.describe_screenshot import SAMPLES, USES, describe_screenshot, pictures


@pytest.mark.parametrize("use", USES)
def test_image_bytes_arrive(use: str) -> None:
    """Whatever the use, the file's own bytes follow the text as a PNG."""
    text, picture = describe_screenshot.render_wire({"picture": "dialog.png", "use": use})

    assert str(USES[use]) in str(text)
    assert picture.content == Image((SAMPLES / "dialog.png").read_bytes(), "image/png")


@pytest.mark.parametrize("name", ["", "missing.png", "../describe_screenshot.py", "/etc/passwd", "chime.wav"])
def test_anything_but_a_picture_of_the_folder_is_explained(name: str) -> None:
    """Other files, and files that are no pictures, are refused in a sentence."""
    with pytest.raises(PromptError, match=r"plain relative path|there is no file|the bytes are audio/wav"):
        describe_screenshot.render_wire({"picture": name})


def test_folder_is_the_authors_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment variable says where pictures come from."""
    (tmp_path / "mine.png").write_bytes((SAMPLES / "dialog.png").read_bytes())
    monkeypatch.setenv("SCREENSHOT_FOLDER", str(tmp_path))

    assert len(describe_screenshot("mine.png")) == 2
    assert pictures("") == ["mine.png"]


def test_names_of_pictures_complete() -> None:
    """What was typed is completed to pictures, not to other files."""
    client = Client(describe_screenshot)

    assert client.complete("describe_screenshot", "picture", "d").values == ("dialog.png",)
    assert pictures("d") == ["dialog.png"]
    assert pictures("chime") == []

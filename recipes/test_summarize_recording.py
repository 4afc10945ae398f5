"""Tests of `summarize_recording`."""

from pathlib import Path

import pytest

from promptkit import Audio, EmbeddedResource, PromptError
from promptkit.testing import Client
from recipes.summarize_recording import SAMPLES, summarize_recording


def test_recording_follows_the_text() -> None:
    """The request comes first, then the file's own bytes as WAV, both from the user."""
    text, recording = summarize_recording.render_wire({"recording": "chime.wav"})

    assert (text.role, recording.role) == ("user", "user")
    assert "**Decisions**" in str(text)
    assert recording.content == Audio((SAMPLES / "chime.wav").read_bytes(), "audio/wav")


def test_client_that_knows_no_sound_receives_it() -> None:
    """For a client of the first revision the recording is a document, with the same bytes."""
    _, recording = Client(summarize_recording, revision="2024-11-05").get_prompt(
        "summarize_recording", {"recording": "chime.wav"}
    )

    assert isinstance(recording.content, EmbeddedResource)
    assert recording.content.blob == (SAMPLES / "chime.wav").read_bytes()


def test_actions_alone() -> None:
    """The short form asks for the table and for nothing else."""
    shown = str(summarize_recording("chime.wav", form="actions"))

    assert "| Owner |" in shown
    assert "**Decisions**" not in shown


def test_file_that_is_no_recording_is_explained() -> None:
    """A picture is refused before a client could choke on it."""
    with pytest.raises(PromptError, match=r"'dialog\.png': the bytes are image/png"):
        summarize_recording("dialog.png")


def test_folder_is_the_authors_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With another folder the samples cannot be reached."""
    monkeypatch.setenv("RECORDING_FOLDER", str(tmp_path))

    with pytest.raises(PromptError, match=r"there is no file 'chime\.wav'"):
        summarize_recording("chime.wav")

"""Tests of `summarize_recording`."""

from pathlib import Path

import pytest

from promptkit import Audio, EmbeddedResource, PromptError
from promptkit.testing import Client
from recipes.summarize_recording import SAMPLES, summarize_recording


def test_recording_follows_the_text() -> None:
    """The text comes first, followed by the bytes of the file as WAV audio, both from the user."""
    text, recording = summarize_recording.render_wire({"recording": "chime.wav"})

    assert (text.role, recording.role) == ("user", "user")
    assert "**Decisions**" in str(text)
    assert recording.content == Audio((SAMPLES / "chime.wav").read_bytes(), "audio/wav")


def test_client_without_audio_receives_a_resource() -> None:
    """A client of the first revision, which has no audio, receives the bytes as an embedded resource."""
    _, recording = Client(summarize_recording, revision="2024-11-05").get_prompt(
        "summarize_recording", {"recording": "chime.wav"}
    )

    assert isinstance(recording.content, EmbeddedResource)
    assert recording.content.blob == (SAMPLES / "chime.wav").read_bytes()


def test_actions_omit_the_minutes() -> None:
    """The form `actions` asks only for the table."""
    rendering = str(summarize_recording("chime.wav", form="actions"))

    assert "| Owner |" in rendering
    assert "**Decisions**" not in rendering


def test_picture_is_rejected() -> None:
    """A file that is not a recording is rejected."""
    with pytest.raises(PromptError, match=r"'dialog\.png': the bytes are image/png"):
        summarize_recording("dialog.png")


def test_folder_can_be_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With RECORDING_FOLDER set, the samples cannot be read."""
    monkeypatch.setenv("RECORDING_FOLDER", str(tmp_path))

    with pytest.raises(PromptError, match=r"there is no file 'chime\.wav'"):
        summarize_recording("chime.wav")

import os
from pathlib import Path

import pytest

from promptkit.files.scratch import (
    create_scratch_folder,
    open_unnamed_file,
    remove_scratch_folder,
)


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """The folder for temporary files."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_scratch_folder_is_removed_with_its_files(place):
    """Removing a scratch folder removes its files, and can be repeated."""
    folder = Path(create_scratch_folder("before-"))
    (folder / "file").touch()

    remove_scratch_folder(str(folder))
    remove_scratch_folder(str(folder))

    assert list(place.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="on Windows it has a name while it is open")
def test_an_unnamed_file_is_in_no_folder(place):
    """An unnamed file can be written and read, and is in no folder."""
    with open_unnamed_file("before-") as file:
        file.write(b"text")
        file.seek(0)
        assert (file.read(), list(place.iterdir())) == (b"text", [])

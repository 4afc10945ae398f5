"""Links in a folder into which untrusted data was unpacked."""

import os

import pytest

from promptkit.files.folder import remove_outward_links

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links need privileges")


def test_links_that_lead_out_are_removed(tmp_path):
    """Links out of the folder are removed, direct or not; links within it stay, even dangling ones."""
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    (outside / "deep").mkdir(parents=True)
    (outside / "mine.txt").write_text("mine")
    (folder / "deep" / "a\\b:c").mkdir(parents=True)
    (folder / "file.txt").write_text("own")
    links = {
        "absolute": (outside / "mine.txt", False),
        "relative": ("../outside/mine.txt", False),
        "folder": (outside, False),
        "chain": ("relative", False),
        "missing": ("../outside/nothing", False),
        "similar": (tmp_path / "folder-2", False),
        "deep/a\\b:c/odd\n\udcff": ("../../../outside", False),
        "own": ("file.txt", True),
        "deep/up": ("../file.txt", True),
        "nowhere": ("deep/nothing", True),
        "circle": ("circle", True),
        "top": (".", True),
    }
    for name, (target, _) in links.items():
        (folder / name).symlink_to(target)

    remove_outward_links(folder)

    assert {name for name in links if os.path.lexists(folder / name)} == {
        name for name, (_, stays) in links.items() if stays
    }
    assert (outside / "mine.txt").read_text() == "mine"
    assert (outside / "deep").is_dir()


def test_a_folder_that_does_not_exist(tmp_path):
    """A missing folder is ignored, because a revision without files has none."""
    remove_outward_links(tmp_path / "none")

import os
import stat
from pathlib import Path

import pytest

from promptkit.files.folder import Folder, FolderLockedError, check_plain

posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no such files")


@pytest.fixture
def outside(tmp_path):
    """A file outside of the folder under test."""
    file = tmp_path / "victim.txt"
    file.write_text("precious")
    return file


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "folder").mkdir()
    return Folder(tmp_path / "folder")


class TestPaths:
    @pytest.mark.parametrize(
        "path",
        [
            "",
            ".",
            "..",
            "../a",
            "a/../b",
            "/a",
            "a//b",
            "a/",
            "./a",
            "a\\b",
            "c:a",
            "a\0b",
            "a\nb",
            "\u202ea",
        ],
    )
    def test_unportable_path_is_rejected(self, path, folder, outside):
        """Absolute paths, `..`, and names that another system reads differently are rejected."""
        with pytest.raises(OSError, match="not a plain path"):
            check_plain(path)
        for call in (folder.read, folder.remove, folder.open_for_reading, folder.lstat):
            with pytest.raises(OSError, match="not a plain path"):
                call(*((path, 10) if call == folder.read else (path,)))
        with pytest.raises(OSError, match="not a plain path"):
            folder.write(path, b"x")
        assert outside.read_text() == "precious"

    @pytest.mark.parametrize("path", ["a", "a/b", ".hidden", "..a", "a b", "é", "SKILL.md"])
    def test_a_plain_path_is_written_and_read(self, path, folder):
        """Writing a file creates its parent folders."""
        folder.write(path, b"one", b" two")

        assert folder.read(path, 7) == b"one two"
        assert [file_path for file_path, _ in folder.walk()] == [path]


@posix
class TestLinks:
    @pytest.mark.parametrize("target", ["victim.txt", "missing.txt"])
    def test_a_link_in_place_of_a_file_is_not_followed(self, target, folder, outside):
        """Reading and writing a link fails, and removing it leaves its target."""
        link = folder.path / "link"
        link.symlink_to(outside.parent / target)

        with pytest.raises(OSError, match="it is a link"):
            folder.read("link", 10)
        with pytest.raises(OSError, match="it is a link"):
            folder.write("link", b"x")
        with pytest.raises(OSError, match="it is a link"):
            folder.open_for_update("link")
        folder.remove("link")
        assert not link.is_symlink()
        assert outside.read_text() == "precious"
        assert not (outside.parent / "missing.txt").exists()

    def test_a_link_in_place_of_a_folder_is_not_followed(self, folder, outside):
        """Through a link to a folder, nothing is read, written, listed or removed."""
        (folder.path / "link").symlink_to(outside.parent)

        for call in (
            lambda: folder.read("link/victim.txt", 10),
            lambda: folder.write("link/new.txt", b"x"),
            lambda: folder.remove("link/victim.txt"),
            lambda: folder.entries("link"),
        ):
            with pytest.raises(OSError, match="it is a link"):
                call()
        assert [path for path, _ in folder.walk()] == ["link"]
        assert outside.read_text() == "precious"
        assert not (outside.parent / "new.txt").exists()

    def test_a_relative_folder_that_is_a_link_is_rejected(self, tmp_path, outside, monkeypatch):
        """A relative folder that is a link is rejected, because it can come with the repository."""
        (tmp_path / "work").mkdir()
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "work" / "out").symlink_to(tmp_path / "elsewhere")
        monkeypatch.chdir(tmp_path / "work")

        with pytest.raises(OSError, match="it is a link"):
            Folder.named("out").write("file", b"x")
        with pytest.raises(OSError, match="it is a link"):
            Folder.named("out").exists()
        Folder.named(tmp_path / "work" / "out").write("file", b"x")
        Folder.named("../elsewhere").write("other", b"x")
        assert sorted(path.name for path in (tmp_path / "elsewhere").iterdir()) == ["file", "other"]

    def test_folder_that_becomes_a_link_is_not_followed(self, folder, outside, monkeypatch):
        """A folder that becomes a link after it was checked is not followed."""
        (folder.path / "a").mkdir()
        check = os.stat

        def swap(path, **options):
            status = check(path, **options)
            if path == "a":
                (folder.path / "a").rmdir()
                (folder.path / "a").symlink_to(outside.parent)
            return status

        monkeypatch.setattr("os.stat", swap)
        with pytest.raises(OSError, match="it is a link"):
            folder.remove("a/victim.txt")
        assert outside.read_text() == "precious"


@posix
@pytest.mark.timeout(10)
@pytest.mark.parametrize("kind", ["pipe", "socket", "folder"])
def test_special_file_is_rejected_without_waiting(kind, folder):
    """Pipes, sockets and folders are rejected without waiting and without change."""
    place = folder.path / "it"
    if kind == "folder":
        place.mkdir()
    else:
        os.mknod(place, (stat.S_IFIFO if kind == "pipe" else stat.S_IFSOCK) | 0o600)
    before = place.lstat().st_ino

    for call in (
        lambda: folder.read("it", 10),
        lambda: folder.write("it", b"x"),
        lambda: folder.open_for_update("it"),
    ):
        with pytest.raises(OSError, match=r"regular file|directory"):
            call()
    assert place.lstat().st_ino == before


@posix
def test_a_hard_link_is_not_updated(folder, outside):
    """A hard link is not updated in place, and a write replaces only one of its names."""
    (folder.path / "file").hardlink_to(outside)

    with pytest.raises(OSError, match="hard links"):
        folder.open_for_update("file")
    folder.write("file", b"new")
    assert outside.read_text() == "precious"


def test_a_file_is_updated_in_place(folder):
    """A file is updated in place, and created if it does not exist."""
    with folder.open_for_update("new/file") as file:
        file.write(b"abc")
    with folder.open_for_update("new/file") as file:
        file.truncate(1)

    assert folder.read("new/file", 1) == b"a"
    with pytest.raises(OSError, match="larger than 0 bytes"):
        folder.read("new/file", 0)


def test_a_failed_write_leaves_no_temporary_file(folder, monkeypatch):
    """A failed write keeps the previous content and leaves no temporary file."""
    folder.write("file", b"before")
    folder.write("file", b"after", mode=0o600)
    monkeypatch.setattr("os.replace", lambda *_, **__: (_ for _ in ()).throw(OSError("full")))

    with pytest.raises(OSError, match="full"):
        folder.write("file", b"lost")
    assert [(path, folder.read(path, 10)) for path, _ in folder.walk()] == [("file", b"after")]


def test_empty_folders_are_removed_upwards(folder):
    """Empty parent folders are removed, except the folder itself."""
    folder.write("a/b/c/file", b"")
    folder.write("a/other", b"")
    folder.remove("a/b/c/file")
    folder.remove_empty_folders("a/b/c/file")

    assert [path for path, _ in folder.walk()] == ["a/other"]
    assert not (folder.path / "a" / "b").exists()
    folder.remove("a/other")
    folder.remove_empty_folders("a/other")
    assert folder.exists()
    assert folder.entries() == []


def test_missing_file(tmp_path):
    """A missing file has no status and no digest, and its folder is created on a write."""
    folder = Folder(tmp_path, "a/b")

    assert not folder.exists()
    assert folder.lstat("c/d") is None
    assert folder.digest("c", 10) is None
    folder.create()
    assert folder.exists()
    assert folder.digest("c", 10) is None
    folder.write("c", b"")
    assert folder.digest("c", 10) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@posix
def test_a_folder_is_locked_once(folder):
    """A second lock fails immediately, and a lock leaves no files."""
    with folder.locked(), pytest.raises(FolderLockedError), folder.locked():
        pass
    with folder.locked():
        pass
    assert folder.entries() == []


class TestResolving:
    def test_links_within_the_folder_are_followed(self, folder):
        """Links within the folder are resolved to their target's path."""
        folder.write("a/b.txt", b"x")
        (folder.path / "link").symlink_to("a")
        (folder.path / "c.txt").symlink_to("link/b.txt")

        assert [folder.resolve(path) for path in ("a/b.txt", "link/b.txt", "c.txt")] == ["a/b.txt"] * 3

    @pytest.mark.parametrize("target", ["../victim.txt", "..", ".", "/"])
    def test_a_link_that_leads_out_is_rejected(self, target, folder, outside):
        """A link out of the folder, or to the folder itself, is rejected."""
        (folder.path / "link").symlink_to(target)

        with pytest.raises(OSError, match="it is outside 'folder'"):
            folder.resolve("link")

    @pytest.mark.parametrize("target", ["nowhere", "link"])
    def test_a_link_that_leads_nowhere_is_rejected(self, target, folder):
        """A dangling link and a circular link are rejected."""
        (folder.path / "link").symlink_to(target)

        with pytest.raises(OSError, match=r"No such file|Too many levels"):
            folder.resolve("link")


def test_a_file_is_checked_before_it_is_read(folder):
    """The check receives the status of the opened file, and its exception is raised."""
    folder.write("a.txt", b"abc")
    sizes = []
    assert folder.read("a.txt", 10, lambda status: sizes.append(status.st_size)) == b"abc"
    assert sizes == [3]

    def refuse(status):
        raise ValueError(status.st_size)

    with pytest.raises(ValueError, match="3"):
        folder.read("a.txt", 1, refuse)


@posix
class TestInside:
    def test_links_that_stay_in_the_root_are_followed(self, tmp_path):
        """Links that stay within the root are followed, and messages show the path with the link."""
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to("real")
        folder = Folder.inside(tmp_path, "link/below")

        folder.create()
        folder.write("file", b"x")

        assert (tmp_path / "real" / "below" / "file").read_bytes() == b"x"
        assert folder.display_root == tmp_path / "link" / "below"

    @pytest.mark.parametrize("path", ["link", "link/below", "dangling", "a/../../outside"])
    def test_links_that_lead_out_are_rejected(self, path, tmp_path):
        """Links out of the root are rejected, even dangling ones, whose target a write would create."""
        root = tmp_path / "root"
        root.mkdir()
        (tmp_path / "outside").mkdir()
        (root / "link").symlink_to(tmp_path / "outside")
        (root / "dangling").symlink_to("../missing")

        with pytest.raises(OSError, match="it is outside "):
            Folder.inside(root, path)

    def test_a_link_that_appears_later_is_rejected(self, tmp_path):
        """A folder that becomes a link after its path was resolved is rejected."""
        (tmp_path / "root" / "a").mkdir(parents=True)
        folder = Folder.inside(tmp_path / "root", "a")
        (tmp_path / "root" / "a").rmdir()
        (tmp_path / "root" / "a").symlink_to(tmp_path)

        with pytest.raises(OSError, match="it is a link"):
            folder.write("file", b"x")
        assert not (tmp_path / "file").exists()

    def test_a_circle_of_links_is_rejected(self, tmp_path):
        """A circular link is rejected."""
        (tmp_path / "a").symlink_to("a")

        with pytest.raises(OSError, match="it is a link"):
            Folder.inside(tmp_path, "a").create()


def test_failing_finish_keeps_the_previous_file(folder):
    """An exception in `finish` keeps the previous file and leaves no temporary file."""
    folder.write("file", b"before")

    def finish(descriptor):
        assert os.fstat(descriptor).st_size == 5
        raise ValueError("full")

    with pytest.raises(ValueError, match="full"):
        folder.write("file", b"after", finish=finish)
    assert [(path, folder.read(path, 10)) for path, _ in folder.walk()] == [("file", b"before")]


@posix
def test_the_mode_of_a_new_folder(tmp_path):
    """A new folder gets the given mode, and an existing one keeps its own."""
    Folder(tmp_path / "above" / "private").create(mode=0o700)
    Folder(tmp_path / "above").create(mode=0o700)

    assert stat.S_IMODE((tmp_path / "above" / "private").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "above").stat().st_mode) != 0o700


def test_messages_show_a_folder_as_it_was_named(tmp_path, monkeypatch):
    """Messages show a folder as it was named, while its path is absolute."""
    monkeypatch.chdir(tmp_path)

    assert Folder.named("a/b").display_root == Path("a", "b")
    assert Folder.named("a/b").path == tmp_path / "a" / "b"


@posix
def test_a_released_lock_can_be_acquired_again(folder):
    """A released lock can be acquired again, with `wait` as without it."""
    with folder.locked():
        pass
    with folder.locked(wait=True):
        pass


class TestNewFiles:
    def test_files_and_folders_are_created(self, tmp_path):
        """New files are written with all missing folders."""
        Folder(tmp_path / "a" / "b", "c").write_new({"x": b"1", "d/e/y": b"2"})

        assert (tmp_path / "a" / "b" / "c" / "x").read_bytes() == b"1"
        assert (tmp_path / "a" / "b" / "c" / "d" / "e" / "y").read_bytes() == b"2"

    @pytest.mark.parametrize(
        "make",
        [
            lambda place, outside: place.write_text("mine"),
            lambda place, outside: place.mkdir(),
            pytest.param(lambda place, outside: place.symlink_to(outside), marks=posix),
            pytest.param(lambda place, outside: place.symlink_to(outside.parent / "missing"), marks=posix),
            pytest.param(lambda place, outside: os.mkfifo(place), marks=posix),
        ],
        ids=["file", "folder", "link", "dangling link", "pipe"],
    )
    def test_existing_entry_prevents_all_writes(self, make, folder, outside):
        """An existing entry is named in the error, and nothing is written."""
        (folder.path / "empty").mkdir()
        make(folder.path / "z", outside)

        with pytest.raises(FileExistsError) as caught:
            folder.write_new({"empty/x": b"1", "new/deep/x": b"2", "z": b"3"})

        assert caught.value.filename == str(folder.path / "z")
        assert sorted(path.name for path in folder.path.rglob("*")) == ["empty", "z"]
        assert outside.read_text() == "precious"
        assert not (outside.parent / "missing").exists()

    @posix
    def test_a_link_in_place_of_a_folder_is_not_followed(self, tmp_path, monkeypatch, outside):
        """A link in a relative path is rejected, and the error names it."""
        monkeypatch.chdir(tmp_path)
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "out").symlink_to("elsewhere")

        for named, path in (("out", "x"), ("out/deep", "x"), (".", "out/x"), (".", "out/deep/x")):
            with pytest.raises(OSError, match="it is a link") as caught:
                Folder.named(named).write_new({"first": b"1", path: b"2"})
            assert caught.value.filename == "out"
        assert list((tmp_path / "elsewhere").iterdir()) == []
        assert not (tmp_path / "first").exists()

    def test_a_file_in_place_of_a_folder(self, folder):
        """A file in place of a folder is named in the error."""
        (folder.path / "a").write_text("mine")

        with pytest.raises(NotADirectoryError) as caught:
            folder.write_new({"x": b"1", "a/b/y": b"2"})

        assert caught.value.filename == str(folder.path / "a")
        assert [path.name for path in folder.path.iterdir()] == ["a"]

    def test_a_write_that_fails_leaves_nothing(self, tmp_path, monkeypatch):
        """A failed write also removes the folders created for it."""
        monkeypatch.setattr("promptkit.files.folder.open", full_disk, raising=False)

        with pytest.raises(OSError, match="No space left") as caught:
            Folder(tmp_path / "a" / "b", "c").write_new({"d/x": b"1"})

        assert caught.value.filename == str(tmp_path / "a" / "b" / "c" / "d" / "x")
        assert list(tmp_path.iterdir()) == []


def full_disk(descriptor, mode):
    os.close(descriptor)
    raise OSError(28, "No space left on device")


def test_the_path_in_messages(tmp_path, monkeypatch):
    """Paths in messages start as the user typed them."""
    monkeypatch.chdir(tmp_path)

    assert Folder.named("./a/").display_path("b") == str(Path("a", "b"))
    assert Folder.named(".").display_path("b") == "b"
    assert Folder.named("../x").display_path("b") == str(Path("..", "x", "b"))
    assert Folder.named(tmp_path).display_path("b") == str(tmp_path / "b")


@posix
@pytest.mark.parametrize("name", ["a:b", "a\\b", "a\nb", os.fsdecode(b"\xff")])
def test_a_name_that_is_not_portable(name, folder):
    """A name that is not portable is accepted only with `is_portable=False`."""
    (folder.path / name).mkdir()
    (folder.path / name / name).write_bytes(b"x")
    with pytest.raises(OSError, match="not a plain path"):
        list(folder.walk())
    listed = Folder(folder.path, is_portable=False)

    ((path, _),) = listed.walk()

    assert path == f"{name}/{name}"
    assert listed.read(path, 1) == b"x"
    for wrong in ("../folder/a", "a\0", "/a", ""):
        with pytest.raises(OSError, match="not a path within"):
            listed.read(wrong, 1)


def test_a_folder_that_cannot_be_read_is_reported(folder, monkeypatch):
    """An unreadable folder is reported, and the others are walked."""
    for path in ("a/1", "b/2", "c/3"):
        folder.write(path, b"")
    entries = folder.entries

    def refuse(path=""):
        if path == "b":
            raise PermissionError(13, "Permission denied", path)
        return entries(path)

    monkeypatch.setattr(folder, "entries", refuse)
    errors = []

    paths = [
        path for path, _ in folder.walk(on_error=lambda path, error: errors.append((path, error.strerror)))
    ]

    assert paths == ["a/1", "c/3"]
    assert errors == [("b", "Permission denied")]
    with pytest.raises(PermissionError):
        list(folder.walk())


def test_folders_that_are_nested_too_deeply(folder):
    """Folders nested too deeply are reported, because each is opened from the top."""
    folder.write("/".join("a" * 150) + "/x", b"")
    errors = []

    assert list(folder.walk(on_error=lambda path, error: errors.append(error.strerror))) == []
    assert errors == ["it is nested more than 100 folders deep"]

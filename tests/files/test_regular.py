import os
import stat

import pytest

from promptkit.files.reading import has_untrusted_owner, may_exist, read_regular_file

posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no such files")
as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="files are given to another user"
)


class TestRead:
    def test_file_and_its_limit(self, tmp_path):
        """A file of up to the limit is read, and a larger one is rejected."""
        (tmp_path / "file").write_bytes(b"x" * 10)

        assert read_regular_file(tmp_path / "file", 10) == b"x" * 10
        with pytest.raises(OSError, match="it is larger than 9 bytes"):
            read_regular_file(tmp_path / "file", 9)

    @posix
    @pytest.mark.timeout(10)
    @pytest.mark.parametrize("kind", ["pipe", "device", "socket"])
    def test_special_files_are_rejected(self, kind, tmp_path):
        """Pipes, devices and sockets are rejected without being opened."""
        file = tmp_path / "file"
        if kind == "device":
            file.symlink_to("/dev/zero")
        else:
            os.mknod(file, (stat.S_IFIFO if kind == "pipe" else stat.S_IFSOCK) | 0o600)

        with pytest.raises(OSError, match="it is not a regular file"):
            read_regular_file(file, 10)

    def test_a_folder(self, tmp_path):
        """Reading a folder raises the system's error."""
        with pytest.raises(IsADirectoryError, match="directory"):
            read_regular_file(tmp_path, 10)


class TestForeign:
    def test_own_files_and_missing_files(self, tmp_path):
        """The user's own files, root's files and missing files are not foreign."""
        assert [has_untrusted_owner(path) for path in (tmp_path, "/", tmp_path / "no", "\0")] == [False] * 4

    @as_root
    def test_file_of_another_user(self, tmp_path, monkeypatch):
        """Another user's file is foreign, unless they own the named folder or ran `sudo`."""
        monkeypatch.delenv("SUDO_UID", raising=False)
        file = tmp_path / "file"
        file.touch()
        os.chown(file, 1234, 1234)

        assert has_untrusted_owner(file)
        assert has_untrusted_owner(file, trusted_folder=tmp_path)
        os.chown(tmp_path, 1234, 1234)
        assert not has_untrusted_owner(file, trusted_folder=tmp_path)
        monkeypatch.setenv("SUDO_UID", "1234")
        assert not has_untrusted_owner(file)

    @as_root
    def test_link_of_another_user(self, tmp_path, monkeypatch):
        """A link that belongs to another user is foreign, even if it leads to a file of the current user."""
        monkeypatch.delenv("SUDO_UID", raising=False)
        (tmp_path / "file").touch()
        (tmp_path / "link").symlink_to("file")
        os.lchown(tmp_path / "link", 1234, 1234)

        assert has_untrusted_owner(tmp_path / "link")


class TestMayExist:
    def test_a_path_of_another_machine_is_not_looked_up(self, monkeypatch):
        """A path on another machine counts as existing without being looked up."""
        monkeypatch.setattr("os.path.exists", lambda _: 1 // 0)

        assert may_exist("//host/share/file")
        assert may_exist("\\\\host\\share\\file")

    @pytest.mark.parametrize("path", ["/a\0b", "/" + "a" * 5000, "/\ud800", "/missing"])
    def test_an_odd_path_does_not_exist(self, path):
        """An invalid path does not exist and raises no exception."""
        assert not may_exist(path)
        assert may_exist("/")

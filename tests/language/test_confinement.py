"""Attacks with real files on the folder to which a path from a client is confined."""

import gc
import os
import socket
import struct
import sys
import threading
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest

from promptkit import Audio, EmbeddedResource, Image
from promptkit.errors import MediaError, PromptError
from promptkit.language import files
from promptkit.language.files import MAX_PATH_LENGTH, read_below
from promptkit.language.media import MAX_AUDIO_BYTES, MAX_IMAGE_BYTES

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs the file system of POSIX")

#: Content of files that must not be read; it must not be in any error either.
SECRET = b"GIF89a, the secret of someone else"

NOT_PLAIN = (
    "{path!r} is not a plain relative path below 'pictures': it must not start with a slash or contain "
    "'..' or ':'"
)
NO_FILE = "there is no file {path!r} in 'pictures'"
OUTSIDE = "{path!r} is outside 'pictures'"
TOO_LONG = "{shortened!r} is {length:,} characters long: a path can have at most 4,096"

#: Paths to try, and the expected error messages.
PATHS = {
    # Parent folders, in every spelling.
    "parent": ("../secret.gif", NOT_PLAIN),
    "parent of a folder": ("cats/../../secret.gif", NOT_PLAIN),
    "parent and back": ("../pictures/cat.png", NOT_PLAIN),
    "parent that stays inside": ("cats/../cat.png", NOT_PLAIN),
    "parent of a folder that is not there": ("nothing/../../secret.gif", NOT_PLAIN),
    "parent after a dot": ("./../secret.gif", NOT_PLAIN),
    "parent after slashes": ("cats//..//..//secret.gif", NOT_PLAIN),
    "parent of a file": ("cat.png/../../secret.gif", NOT_PLAIN),
    "parent, backslashes": ("..\\secret.gif", NOT_PLAIN),
    "parent, both slashes": ("cats/..\\../secret.gif", NOT_PLAIN),
    "parent at the end": ("cats/..", NOT_PLAIN),
    "many parents": ("../" * 60 + "etc/passwd", NOT_PLAIN),
    "sibling with the same beginning": ("../pictures-private/secret.gif", NOT_PLAIN),
    "other case": ("../SECRET.GIF", NOT_PLAIN),
    "three dots": (".../secret.gif", NO_FILE),
    "four dots": ("..../secret.gif", NO_FILE),
    "doubled against one-time cleaning": ("....//secret.gif", NO_FILE),
    "a space after the dots": (".. /secret.gif", NO_FILE),
    "percent": ("%2e%2e/secret.gif", NO_FILE),
    "percent slash": ("..%2fsecret.gif", NO_FILE),
    "percent twice": ("%252e%252e%252fsecret.gif", NO_FILE),
    "overlong UTF-8 in percents": ("%c0%ae%c0%ae%c0%afsecret.gif", NO_FILE),
    "full-width dots": ("\uff0e\uff0e/secret.gif", NO_FILE),
    "full-width slash": ("..\uff0fsecret.gif", NO_FILE),
    "one dot leaders": ("\u2024\u2024/secret.gif", NO_FILE),
    "two dot leader": ("\u2025/secret.gif", NO_FILE),
    "division slash": ("..\u2215secret.gif", NO_FILE),
    "zero width between": (".\u200b./secret.gif", NO_FILE),
    "escaped dots": ("\udc2e\udc2e/secret.gif", NO_FILE),
    "escaped slash": ("..\udc2fsecret.gif", NO_FILE),
    "half a pair": ("\ud800.png", NO_FILE),
    # Absolute paths.
    "absolute": ("/etc/passwd", NOT_PLAIN),
    "two slashes": ("//etc/passwd", NOT_PLAIN),
    "three slashes": ("///etc/passwd", NOT_PLAIN),
    "absolute, other case": ("/ETC/passwd", NOT_PLAIN),
    "environment": ("/proc/self/environ", NOT_PLAIN),
    "descriptor": ("/proc/self/fd/0", NOT_PLAIN),
    "root of the process": ("/proc/self/root/etc/passwd", NOT_PLAIN),
    "folder of the process": ("/proc/self/cwd/secret.gif", NOT_PLAIN),
    "endless device": ("/dev/zero", NOT_PLAIN),
    "standard input": ("/dev/stdin", NOT_PLAIN),
    "terminal": ("/dev/tty", NOT_PLAIN),
    "home": ("~/secret.gif", NO_FILE),
    "another user's home": ("~root/.ssh/id_rsa", NO_FILE),
    "variable": ("$HOME/secret.gif", NO_FILE),
    "variable of Windows": ("%USERPROFILE%\\secret.gif", NO_FILE),
    # Windows paths.
    "share": ("\\\\host\\share\\a.png", NOT_PLAIN),
    "share, slashes": ("//host/share/a.png", NOT_PLAIN),
    "device path": ("\\\\.\\pipe\\a", NOT_PLAIN),
    "long path": ("\\\\?\\C:\\a.png", NOT_PLAIN),
    "drive": ("C:\\a.png", NOT_PLAIN),
    "drive, slashes": ("c:/a.png", NOT_PLAIN),
    "relative to a drive": ("C:a.png", NOT_PLAIN),
    "top of this drive": ("\\a.png", NOT_PLAIN),
    "stream": ("cat.png:hidden", NOT_PLAIN),
    "stream of data": ("cat.png::$DATA", NOT_PLAIN),
    "device": ("NUL", NO_FILE),
    "device with an ending": ("COM1.png", NO_FILE),
    # URLs.
    "file URL": ("file:///etc/passwd", NOT_PLAIN),
    "file URL of a host": ("file://localhost/etc/passwd", NOT_PLAIN),
    "web URL": ("http://169.254.169.254/latest/meta-data", NOT_PLAIN),
    "URL without a scheme": ("//169.254.169.254/a.png", NOT_PLAIN),
    "data URL": ("data:image/png;base64,iVBORw0KGgo=", NOT_PLAIN),
    "scheme in capitals": ("FILE:/etc/passwd", NOT_PLAIN),
    # Invalid names, and names with suffixes that some systems drop.
    "empty": ("", NO_FILE),
    "dot": (".", NO_FILE),
    "slash": ("/", NOT_PLAIN),
    "blank": (" ", NO_FILE),
    "NUL byte": ("\0", NOT_PLAIN),
    "NUL before an ending": ("cat.png\0.txt", NOT_PLAIN),
    "NUL before a parent": ("cats\0/../../secret.gif", NOT_PLAIN),
    "slash after": ("cat.png/", NO_FILE),
    "slash and dot after": ("cat.png/.", NO_FILE),
    "space after": ("cat.png ", NO_FILE),
    "dot after": ("cat.png.", NO_FILE),
    "line feed after": ("cat.png\n", NO_FILE),
    "line feed before": ("\ncat.png", NO_FILE),
    "carriage return": ("cat.png\r\n/etc/passwd", NO_FILE),
    "escape sequence": ("\x1b[2Jcat.png", NO_FILE),
    "pattern": ("*.png", NO_FILE),
    "in quotes": ('"cat.png"', NO_FILE),
    "command": ("|cat /etc/passwd", NO_FILE),
    "below a file": ("cat.png/secret.gif", NO_FILE),
    "long name": ("a" * 256, NO_FILE),
    "longest path": ("a/" * 2048, NO_FILE),
    "path too long": ("a/" * 2048 + "b", TOO_LONG),
    "megabyte of name": ("a" * 1_000_000, TOO_LONG),
    "megabyte of folders": ("a/" * 500_000, TOO_LONG),
    "megabyte of parents": ("../" * 300_000, TOO_LONG),
    # Entries of the folder that are not files within it.
    "link out": ("links/out.gif", OUTSIDE),
    "absolute link": ("links/absolute.gif", OUTSIDE),
    "link to a link out": ("links/chain.gif", OUTSIDE),
    "link to a folder outside": ("links/folder/secret.gif", OUTSIDE),
    "link to the root's own folder": ("links/up/secret.gif", OUTSIDE),
    "out and in again": ("links/up/pictures-private/secret.gif", OUTSIDE),
    "link to the environment": ("links/environ", OUTSIDE),
    "link to an open file": ("links/descriptor", None),
    "link to a device": ("links/zero", OUTSIDE),
    "link to the top": ("links/top/etc/passwd", OUTSIDE),
    "link to itself": ("links/circle.gif", NO_FILE),
    "link to nothing": ("links/dangling.gif", NO_FILE),
    "link to nothing outside": ("links/nowhere.gif", OUTSIDE),
    "link to a folder": ("links/cats", NO_FILE),
    "pipe": ("special/pipe.png", NO_FILE),
    "socket": ("special/socket.png", NO_FILE),
    "folder": ("cats", NO_FILE),
    "folder with a slash": ("cats/", NO_FILE),
    "folder with an ending": ("special/folder.png", NO_FILE),
    "link to a pipe": ("special/link.png", NO_FILE),
}

PNG_START = b"\x89PNG\r\n\x1a\n"
UNKNOWN = (
    "the bytes are not in a known format, but clients accept only "
    "image/gif, image/jpeg, image/png, image/webp"
)
DAMAGED = "the image is damaged or truncated: save it again"

#: Contents of a file, and the expected error messages.
CONTENTS = {
    "empty": (b"", "the data is empty"),
    "text": (b"a picture of a cat", UNKNOWN),
    "SVG": (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", UNKNOWN),
    "SVG with a declaration": (
        b"<?xml version='1.0'?><!DOCTYPE svg SYSTEM '/etc/passwd'><svg/>",
        UNKNOWN,
    ),
    "web page": (b"<!doctype html><script>alert(1)</script>", UNKNOWN),
    "PDF": (b"%PDF-1.7\n" + PNG_START, "the bytes are application/pdf, but clients accept only"),
    "archive": (b"PK\3\4" + bytes(30) + PNG_START, "the bytes are application/zip, but clients accept only"),
    "script that begins as GIF": (b"GIF89a/*\0\0" + b"*/=1;alert(1)", DAMAGED),
    "secret that begins as GIF": (SECRET, DAMAGED),
    "mark alone": (PNG_START, "the image is damaged"),
    "PNG without its end": (PNG_START + struct.pack(">I4sII", 13, b"IHDR", 1, 1) + bytes(99), DAMAGED),
    "GIF without its end": (b"GIF89a" + struct.pack("<HH", 1, 1) + b"\x80\0\0,", DAMAGED),
    "JPEG without its end": (
        b"\xff\xd8\xff\xe0\0\4\0\0\xff\xc0" + struct.pack(">HBHHB3B", 11, 8, 1, 1, 1, 1, 17, 0),
        DAMAGED,
    ),
    "WebP without its end": (b"RIFF\xff\0\0\0WEBPVP8L\x08\0\0\0\x2f\0\0\0\0\x88\x88\x08", DAMAGED),
    "picture without sides": (PNG_START + struct.pack(">I4sII", 13, b"IHDR", 0, 0) + b"IEND", DAMAGED),
    "picture as wide as the sea": (
        PNG_START + struct.pack(">I4sII", 13, b"IHDR", 2**31 - 1, 1) + b"IEND",
        "the image has 2,147,483,647 by 1 pixels, but clients accept at most 8,000 per side",
    ),
    "sound": (b"RIFF\4\0\0\0WAVEfmt ", "the bytes are audio/wav, but clients accept only"),
    "TIFF": (b"II*\0" + bytes(20), "the bytes are image/tiff, but clients accept only"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, png):
    """A folder of pictures with malicious entries, and secrets around it."""
    top = tmp_path_factory.mktemp("attacked")
    pictures = top / "pictures"
    for name in ("pictures/cats", "pictures/links", "pictures/special/folder.png", "pictures-private"):
        (top / name).mkdir(parents=True)
    for name in ("secret.gif", "pictures-private/secret.gif"):
        (top / name).write_bytes(SECRET)
    for name in ("cat.png", "cats/tom.png"):
        (pictures / name).write_bytes(png)
    targets = {
        "out.gif": "../../secret.gif",
        "absolute.gif": top / "secret.gif",
        "chain.gif": "out.gif",
        "folder": "../../pictures-private",
        "up": "../..",
        "environ": "/proc/self/environ",
        "descriptor": "/proc/self/fd/0",
        "zero": "/dev/zero",
        "top": "/",
        "circle.gif": "circle.gif",
        "dangling.gif": "nothing.gif",
        "nowhere.gif": "../../nothing.gif",
        "cats": "../cats",
        "inside.png": "../cats/tom.png",
    }
    for name, target in targets.items():
        (pictures / "links" / name).symlink_to(target)
    special = pictures / "special"
    os.mkfifo(special / "pipe.png")
    (special / "link.png").symlink_to("pipe.png")
    here = Path.cwd()
    os.chdir(special)  # the length of a socket's path is limited
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.png")
    os.chdir(here)
    return pictures


class TestPaths:
    def test_table_has_at_least_100_paths(self):
        """The table has at least 100 different paths."""
        assert len({path for path, _ in PATHS.values()}) == len(PATHS) >= 100

    @pytest.mark.timeout(10)
    @pytest.mark.parametrize("kind", [Image, Audio, EmbeddedResource])
    @pytest.mark.parametrize(("path", "template"), PATHS.values(), ids=PATHS)
    def test_attack_is_rejected(self, folder, path, template, kind):
        """Each path is rejected with a readable error that reveals nothing but the path itself."""
        with pytest.raises(MediaError) as caught:
            kind.from_path(path, root=folder)
        message = str(caught.value)

        assert isinstance(caught.value, PromptError)
        shortened = f"{path[:200]}..." if len(path) > 200 else path
        if template is not None:
            assert message == template.format(path=shortened, shortened=shortened, length=len(path))
        assert str(folder.parent) not in message
        assert SECRET.decode() not in message
        assert len(message) < 1000

    @pytest.mark.parametrize("path", ["../secret.gif", "links/out.gif", "/etc/passwd"])
    def test_path_object_is_rejected_like_a_string(self, folder, path):
        """A `Path` is rejected like a string."""
        with pytest.raises(MediaError):
            Image.from_path(Path(path), root=folder)

    @pytest.mark.parametrize(
        "name",
        [
            "cat.png",
            "cats/tom.png",
            "./cats//tom.png",
            "links/inside.png",
            "a cat, asleep.png",
            "Kätzchen 猫 🐈.png",
            ".hidden.png",
            "..two dots.png",
            "dots..inside.png",
            "no ending",
            "100%.png",
            "~tilde.png",
            "-dash.png",
            "a/b/c/d/e/f/g/h/deep.png",
            "n" * 255,
            "caf\udce9.png",
        ],
        ids=ascii,
    )
    def test_file_with_any_name_is_read(self, folder, png, name):
        """Files in the folder can be read, whatever their names."""
        with suppress(FileExistsError):
            (folder / name).parent.mkdir(parents=True)
        (folder / name).write_bytes(png)

        assert Image.from_path(name, root=folder).data == png

    def test_hard_link_is_read(self, folder, png):
        """A hard link is read, because it cannot be distinguished from a file."""
        (folder.parent / "original.png").write_bytes(png)
        (folder / "hard.png").hardlink_to(folder.parent / "original.png")

        assert Image.from_path("hard.png", root=folder).data == png

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_unreadable_file_is_rejected(self, folder, png):
        """The error contains the operating system's message, without the folder's path."""
        (folder / "locked.png").write_bytes(png)
        (folder / "locked.png").chmod(0)

        with pytest.raises(MediaError, match=r"^'locked\.png' cannot be read: Permission denied$"):
            Image.from_path("locked.png", root=folder)

    def test_rejected_paths_leak_no_descriptors(self, folder):
        """Rejected paths leak no file descriptors."""
        descriptors = Path("/dev/fd")
        gc.collect()
        before = len(list(descriptors.iterdir()))

        for path, _ in PATHS.values():
            with suppress(MediaError):
                Image.from_path(path, root=folder)

        assert len(list(descriptors.iterdir())) == before


class TestRaces:
    """An attacker with write access swaps a file after it was checked."""

    @pytest.fixture
    def read_during_attack(self, tmp_path, png, monkeypatch):
        """A function that reads a file, and runs *attack* right after the path was checked."""
        pictures = tmp_path / "pictures"
        (pictures / "cats").mkdir(parents=True)
        (pictures / "cats" / "a.png").write_bytes(png)
        (tmp_path / "cats").mkdir()
        (tmp_path / "cats" / "a.png").write_bytes(SECRET)
        confine = files.confine

        def read(attack):
            def confine_and_attack(path, root):
                confined = confine(path, root)
                attack(pictures)
                return confined

            monkeypatch.setattr(files, "confine", confine_and_attack)
            return read_below("cats/a.png", pictures)

        return read

    @pytest.mark.parametrize(
        ("moved", "target"),
        [
            ("cats/a.png", "../../cats/a.png"),
            ("cats/a.png", "/dev/zero"),
            ("cats", "../cats"),
            ("cats", "/etc"),
            ("cats/a.png", "b.png"),
        ],
        ids=["file", "device", "folder", "absolute folder", "link that stays inside"],
    )
    def test_link_created_after_the_check_is_not_followed(self, read_during_attack, moved, target):
        """A link that is created after the check is not followed."""

        def attack(pictures):
            (pictures / moved).rename(pictures / "moved")
            (pictures / moved).symlink_to(target)

        with pytest.raises(MediaError, match=r"^'cats/a\.png' cannot be read: "):
            read_during_attack(attack)

    def test_folder_removed_after_the_check_is_rejected(self, read_during_attack):
        """A folder that disappears after the check raises MediaError."""
        with pytest.raises(MediaError, match=r"^'cats/a\.png' cannot be read: No such file or directory$"):
            read_during_attack(lambda pictures: (pictures / "cats").rename(pictures / "dogs"))

    @pytest.mark.timeout(10)
    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (os.mkfifo, "^there is no file 'cats/a.png' in 'pictures'$"),
            (os.mkdir, "^'cats/a.png' cannot be read: Is a directory$"),
        ],
        ids=["pipe", "folder"],
    )
    def test_file_replaced_after_the_check_is_rejected(self, read_during_attack, make, message):
        """A pipe or folder that replaces the file after the check is rejected without blocking."""

        def attack(pictures):
            (pictures / "cats" / "a.png").unlink()
            make(pictures / "cats" / "a.png")

        with pytest.raises(MediaError, match=message):
            read_during_attack(attack)

    def test_concurrent_swaps_never_reveal_the_secret(self, tmp_path, png):
        """While another thread swaps the file and a link, each read returns the file or raises MediaError."""
        pictures = tmp_path / "pictures"
        pictures.mkdir()
        (tmp_path / "secret.gif").write_bytes(SECRET)
        name, good, evil = (pictures / name for name in ("a.png", "good", "evil"))
        stopped = threading.Event()

        def swap():
            while not stopped.is_set():
                good.write_bytes(png)
                good.replace(name)
                evil.symlink_to(tmp_path / "secret.gif")
                evil.replace(name)

        attacker = threading.Thread(target=swap)
        attacker.start()
        contents = set()
        for _ in range(500):
            with suppress(MediaError):
                contents.add(read_below("a.png", pictures))
        stopped.set()
        attacker.join()

        assert contents <= {png}


class TestContents:
    @pytest.mark.parametrize(("data", "expected"), CONTENTS.values(), ids=CONTENTS)
    def test_other_content_is_rejected(self, folder, data, expected):
        """The bytes determine the type, and the error contains the file's name but not its content."""
        (folder / "fake.png").write_bytes(data)

        with pytest.raises(MediaError) as caught:
            Image.from_path("fake.png", root=folder)
        message = str(caught.value)

        assert message.startswith("'fake.png': ")
        assert expected in message
        assert "secret" not in message

    def test_declared_type_must_match(self, folder):
        """A file that does not have the declared type is rejected."""
        with pytest.raises(MediaError, match=r"^'cat\.png': the bytes are image/png, not image/jpeg: "):
            Image.from_path("cat.png", "image/jpeg", root=folder)

    def test_data_after_a_picture_does_not_change_its_type(self, folder, png):
        """Data after the end of a picture does not change its type."""
        (folder / "polyglot.png").write_bytes(png + b"PK\5\6<script>")

        assert Image.from_path("polyglot.png", root=folder).mime_type == "image/png"

    @pytest.mark.parametrize(
        ("kind", "limit"), [(Image, MAX_IMAGE_BYTES), (Audio, MAX_AUDIO_BYTES)], ids=["Image", "Audio"]
    )
    @pytest.mark.parametrize("confined", [True, False], ids=["a client's", "the author's"])
    def test_huge_file_is_rejected_without_reading_it(self, tmp_path, kind, limit, confined):
        """A huge file is rejected without reading it, and the error has both sizes."""
        with (tmp_path / "huge.png").open("wb") as file:
            file.truncate(10**9)
        options = {"root": tmp_path} if confined else {}
        path = "huge.png" if confined else tmp_path / "huge.png"

        tracemalloc.start()
        with pytest.raises(MediaError) as caught:
            kind.from_path(path, **options)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

        assert str(caught.value).endswith(
            f"huge.png': the size is 1,000,000,000 bytes, but the limit is {limit:,} bytes: "
            "reduce the size first"
        )
        assert peak < 10**6

    def test_endless_file_is_read_to_the_limit(self):
        """An endless file of reported size 0 is read only up to the limit."""
        with pytest.raises(MediaError, match=f"^'/dev/zero': the size is {MAX_IMAGE_BYTES + 1:,} bytes"):
            Image.from_path("/dev/zero")

    def test_read_below_takes_a_limit(self, tmp_path):
        """`read_below` takes a limit for other kinds of files."""
        (tmp_path / "notes.txt").write_bytes(b"12345")

        assert read_below("notes.txt", tmp_path, 5) == b"12345"
        with pytest.raises(MediaError, match=r"^'notes\.txt': the size is 5 bytes, but the limit is 4 bytes"):
            read_below("notes.txt", tmp_path, 4)

    def test_path_limit_is_not_below_the_systems(self):
        """The limit for paths is not below the system's."""
        assert os.pathconf("/", "PC_PATH_MAX") <= MAX_PATH_LENGTH

"""The sets of lists on disk: whatever lies in their place, a server starts, and sends what is true."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import MsgspecError

from promptkit import Arg, prompt, resource
from promptkit.compiler.compilation import compile
from promptkit.compiler.recipes import Recipes
from promptkit.protocol.capabilities import Capabilities
from promptkit.protocol.digests import digest
from promptkit.protocol.revisions import REVISIONS
from promptkit.transports.kept_lists import MADE_BY, MAGIC, KeptLists
from promptkit.transports.read_files import Purpose, ReadFiles, StaleSet, noted_reads
from promptkit.transports.shell_words import ShellWords

REVISION = list(REVISIONS.values())[-2]
NO_WORDS = ShellWords()
ENCODED_WORDS = msgspec.msgpack.encode(NO_WORDS)
PURPOSE = Purpose(("folder",), "all", "--name 'promptkit'")


def keyed(*pages):
    """Pages of the list of prompts, each with its key."""
    return [(("prompts/list", REVISION, str(n)), page) for n, page in enumerate(pages)]


def nothing():
    """The files of recipes that read nothing: other tests may have changed where modules are looked for."""
    with noted_reads("") as reads:
        return ReadFiles(path=reads.files().path)


def fill(file, *pages, files=None, words=NO_WORDS):
    """Write lists, and return their file."""
    KeptLists(MADE_BY, PURPOSE, files or nothing(), Capabilities()).write_to(str(file), keyed(*pages), words)
    return file


def forge(file, files, pages):
    """Write lists with any content, as an attacker who knows the format can."""
    put(file, msgspec.msgpack.encode(KeptLists(MADE_BY, PURPOSE, files, Capabilities(), {}, pages)))


def put(file, lists):
    file.write_bytes(MAGIC + len(lists).to_bytes(8, "big") + digest(lists) + lists)


def read(file):
    """The pages of the lists; None if they are not used, and for each page that is not there."""
    try:
        kept = KeptLists.read_from(str(file), PURPOSE, {})
    except StaleSet:
        return None
    return [kept.page("prompts/list", REVISION, str(n)) for n in range(len(kept.pages))]


def replace_by_pipe(file):
    file.unlink()
    os.mkfifo(file)


@pytest.fixture
def kept(tmp_path):
    """A set in a file."""
    return fill(tmp_path / "kept", b"one", b"two" * 50)


#: A stamp that no file has.
STAMP = (1, 2, 3, 4)


class TestHostileSets:
    """Whatever stands in the place of a set: a server starts, and tells what is true."""

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
    def test_a_pipe_is_not_waited_for(self, kept):
        """
        A pipe in the set's place is not read.
        """
        kept.unlink()
        os.mkfifo(kept)

        assert read(kept) is None

    def test_a_size_is_not_believed(self, kept):
        """
        A file that claims lists, or a page, of 8 GiB, and is as large, takes no memory.
        """
        os.truncate(kept, 8 << 30)
        with kept.open("r+b") as file:
            file.write(MAGIC + (8 << 30).to_bytes(8, "big"))
        assert read(kept) is None

        for page in (
            (0, 8 << 30, b"x" * 16),
            (1 << 63, 1, b""),
            (-1, 1, b""),
            (0, -1, b""),
            (1 << 40, 5, b""),
        ):
            kept.unlink()
            forge(kept, nothing(), {f"prompts/list {REVISION.date} 0": page})
            assert read(kept) == [None]

    @pytest.mark.parametrize(
        "files",
        [
            {"read": {"a\0b": (STAMP, b"x")}},
            {"read": {"/dev/zero": (STAMP, b"x")}},
            {"read": {"/proc/kcore": (STAMP, b"x")}},
            {"read": {"": (STAMP, b"x"), "\0": (STAMP, b"x")}},
            {"searched": {"a\0b": (STAMP, b"")}},
            {"read": {"x" * 100_000: (STAMP, b"")}},
            {"read": {"x/" * 10_000: (STAMP, b"y")}},
            {"read": {f"/nothing/{number}": (STAMP, b"x") for number in range(10_000)}},
        ],
        ids=lambda files: next(iter(files)),
    )
    def test_strange_files_are_no_error(self, kept, files):
        """
        A set with a valid digest that names unreadable files is ignored.
        """
        forge(kept, ReadFiles(**files, path=nothing().path), {})

        assert read(kept) is None

    @pytest.mark.parametrize(
        "lists",
        [
            b"\x91" * 100_000,
            b"\xdd\xff\xff\xff\xff",
            b"\xdf\xff\xff\xff\xff",
            b"",
            b"\xc1",
            b"\xc6\xff\xff\xff\xff",
        ],
    )
    def test_strange_lists_are_no_error(self, kept, lists):
        """
        So is one that is nested, claims more than there is, or is empty.
        """
        put(kept, lists)

        assert read(kept) is None

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
    @pytest.mark.parametrize("change", [lambda file: os.truncate(file, 100), Path.unlink, replace_by_pipe])
    def test_a_file_that_changes_while_it_is_read(self, kept, change):
        """
        A page that is gone when it is asked for is not sent.
        """
        found = KeptLists.read_from(str(kept), PURPOSE, {})
        change(kept)

        assert found.page("prompts/list", REVISION, "0") is None
        with pytest.raises(MsgspecError):
            found.words()


class TestTampering:
    def test_what_was_written_is_read(self, kept):
        """
        A set comes back as it was.
        """
        assert read(kept) == [b"one", b"two" * 50]

    def test_no_byte_can_be_changed(self, kept):
        """
        Whichever byte of the file changes, nothing is sent that was not written.
        """
        data = kept.read_bytes()
        for place in range(len(data) - len(ENCODED_WORDS)):
            kept.write_bytes(data[:place] + bytes([data[place] ^ 0x41]) + data[place + 1 :])
            found = read(kept)

            assert found is None or set(found) <= {b"one", b"two" * 50, None}
            assert found != [b"one", b"two" * 50]

    def test_a_part_of_a_file_is_not_used(self, kept):
        """
        A file that was cut off anywhere tells nothing that is not whole.
        """
        data = kept.read_bytes()
        for size in range(len(data) - len(ENCODED_WORDS)):
            kept.write_bytes(data[:size])
            found = read(kept)

            assert found is None or set(found) <= {b"one", None}

    @pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no such permissions")
    @pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
    def test_a_file_that_others_may_write_is_not_read(self, kept, mode):
        """
        A file that others may write to is not sent.
        """
        kept.chmod(mode)

        assert read(kept) is None

    @pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root can give files away")
    def test_a_file_of_somebody_else_is_not_read(self, kept):
        """
        A file of another user is not sent.
        """
        os.chown(kept, 12345, 12345)

        assert read(kept) is None

    @pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="links are followed on this system")
    def test_a_link_is_not_followed(self, kept, tmp_path):
        """
        A link to a set somewhere else is not one.
        """
        kept.rename(tmp_path / "elsewhere")
        kept.symlink_to(tmp_path / "elsewhere")

        assert read(kept) is None

    def test_a_folder_is_not_a_set(self, kept):
        """
        Whatever else stands there is left alone.
        """
        kept.unlink()
        kept.mkdir()

        assert read(kept) is None
        with pytest.raises(IsADirectoryError):
            fill(kept, b"x")

    @pytest.mark.parametrize("seconds", [25 * 3600, -3600], ids=["a day ago", "tomorrow"])
    def test_an_old_one_is_not_read(self, kept, seconds):
        """
        A set that was not found right for a day is made again.
        """
        then = time.time() - seconds
        os.utime(kept, (then, then))

        assert read(kept) is None

    def test_another_version_is_not_read(self, kept, monkeypatch):
        """
        A set of another promptkit, msgspec or Python is made anew.
        """
        monkeypatch.setattr("promptkit.transports.kept_lists.MADE_BY", "another")

        assert read(kept) is None


WRITER = """
import sys
from tests.transports.test_kept_lists import ReadFiles, fill
file, path, letter = sys.argv[1:]
for _ in range(100):
    pages = [letter.encode() * 5000 + b"%d" % n for n in range(9)]
    fill(file, *pages, files=ReadFiles(path=bytes.fromhex(path)))
"""


def test_writers_do_not_disturb_each_other(kept):
    """
    While several processes write, a reader finds the pages of one of them, unless another one has written
    meanwhile; no temporary file is left.
    """
    command = [sys.executable, "-c", WRITER, str(kept), nothing().path.hex()]
    writers = [subprocess.Popen([*command, letter], cwd=Path(__file__).parents[2]) for letter in "abc"]
    found = []
    while any(writer.poll() is None for writer in writers):
        found.append(read(kept))

    assert [writer.returncode for writer in writers] == [0, 0, 0]
    whole = [[letter * 5000 + b"%d" % n for n in range(9)] for letter in (b"a", b"b", b"c")]
    sets = [set(pages) for pages in (*whole, [b"one", b"two" * 50])]
    assert all(any({*pages} - {None} <= one for one in sets) for pages in found)
    assert read(kept) in whole
    assert list(kept.parent.iterdir()) == [kept]


def test_equal_pages_are_written_once(kept):
    """
    A page that several revisions share takes its room once.
    """
    fill(kept, b"a" * 100, b"b", b"a" * 100)

    places = list(KeptLists.read_from(str(kept), PURPOSE, {}).pages.values())
    assert [size for _, size, _ in places] == [100, 1, 100]
    assert len(set(places)) == 2
    assert read(kept) == [b"a" * 100, b"b", b"a" * 100]


@pytest.mark.parametrize(
    ("pages", "wrong"),
    [
        ([b"one", b"two" * 50], set()),
        ([b"one"], {"prompts/list"}),
        ([b"one", b"two" * 50, b"three"], {"prompts/list"}),
        ([b"one", b"other"], {"prompts/list"}),
    ],
    ids=["same", "fewer", "more", "other"],
)
def test_lists_are_compared(kept, pages, wrong):
    """
    A page that is another one, that is new or that is gone makes its list a wrong one.
    """
    assert KeptLists.read_from(str(kept), PURPOSE, {}).wrong_lists(keyed(*pages)) == wrong


@prompt
def review(
    *,
    code: str,
    language: Literal["python", "rust"],
    team: Annotated[str, Arg(complete=["core", "a\tb", "a\nb", "a\ud800b", "日本"])],
    branch: Annotated[str, Arg(complete=lambda: ["main"])],
    key: Annotated[str, Arg(secret=True)],
    many: Annotated[str, Arg(complete=map(str, range(10_001)))],
    most: Annotated[str, Arg(complete=map(str, range(10_000)))],
) -> str:
    return code


@resource("docs://guide")
def guide() -> str:
    return "x"


@resource("docs://{page}")
def page(page: Literal["intro", "end"]) -> str:
    return page


def test_what_the_shell_completes(kept):
    """
    Names, URIs, and the values that are the same whatever was typed, as far as a shell can show them.
    """
    fill(kept, words=ShellWords.of(compile(Recipes([review], [guide, page]))))
    words = KeptLists.read_from(str(kept), PURPOSE, {}).words()

    assert words.prompts["review"].pop("most") == tuple(map(str, range(10_000)))
    assert words == ShellWords(
        {
            "review": {
                "code": (),
                "language": ("python", "rust"),
                "team": ("core", "日本"),
                "branch": (),
                "key": (),
                "many": (),
            }
        },
        {"docs://guide": {}, "docs://{page}": {"page": ("intro", "end")}},
    )

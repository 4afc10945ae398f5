import os
import struct
import types
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptkit.errors import MediaError
from promptkit.language.files import confine, source_folder
from promptkit.language.media import (
    AUDIO_TYPES,
    IMAGE_TYPES,
    MAX_AUDIO_BYTES,
    MAX_IMAGE_BYTES,
    Image,
    checked_type,
    human_size,
    render_png,
    sniff,
)

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c494441"
    "54789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
GIF = b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
GIF += b"," + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x02\x02\x44\x01\0;"
JPEG = b"\xff\xd8\xff\xe0" + struct.pack(">H5sHBHHBB", 16, b"JFIF\0", 0x0101, 0, 1, 1, 0, 0)
JPEG += b"\xff\xc0" + struct.pack(">HBHHB3B", 11, 8, 1, 1, 1, 1, 0x11, 0) + b"\xff\xd9"
WEBP = b"VP8L" + struct.pack("<I", 8) + b"\x2f\0\0\0\0\x88\x88\x08"
WEBP = b"RIFF" + struct.pack("<I", 4 + len(WEBP)) + b"WEBP" + WEBP
WAV = (
    b"fmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16) + b"data" + struct.pack("<I", 2) + b"\0\0"
)
WAV = b"RIFF" + struct.pack("<I", 4 + len(WAV)) + b"WAVE" + WAV
MP3 = b"\xff\xfb\x90\x64".ljust(417, b"\0")
ID3 = b"ID3\x04\0\0\0\0\0\0" + MP3
OGG = b"OggS\0\x02" + struct.pack("<QIIIBB", 0, 1, 0, 0, 1, 19) + b"OpusHead\x01\x01\0\0\x80\xbb\0\0\0\0\0"
FLAC = b"fLaC\x80" + struct.pack(">I", 34)[1:] + struct.pack(">HH", 4096, 4096) + bytes(30)
M4A = struct.pack(">I4s4sI4s4s", 24, b"ftyp", b"M4A ", 0, b"M4A ", b"mp42")
AAC = b"\xff\xf1\x50\x80\x01\x7f\xfc"

IMAGES = {
    "image/png": PNG,
    "image/gif": GIF,
    "image/jpeg": JPEG,
    "image/webp": WEBP,
}
SOUNDS = {
    "audio/wav": WAV,
    "audio/mpeg": MP3,
    "audio/ogg": OGG,
    "audio/flac": FLAC,
    "audio/mp4": M4A,
    "audio/aac": AAC,
}

#: Formats that clients do not accept, and data that is not media.
UNSUPPORTED = {
    "svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
    "bmp": b"BM" + struct.pack("<IHHI", 58, 0, 0, 54) + bytes(44),
    "tiff": b"II*\0" + bytes(20),
    "avif": struct.pack(">I4s4sI4s4s", 24, b"ftyp", b"avif", 0, b"mif1", b"miaf"),
    "heic": struct.pack(">I4s4sI4s4s", 24, b"ftyp", b"heic", 0, b"mif1", b"heic"),
    "pdf": b"%PDF-1.7\n",
    "html": b"<!doctype html><title>Not found</title>",
    "text": b"a picture of a cat",
    "zeros": bytes(64),
}


def make_gif(width, height):
    """Return a GIF with this size in its header."""
    return GIF[:6] + struct.pack("<HH", width, height) + GIF[10:]


CLIENTS_ACCEPT = "clients accept only image/gif, image/jpeg, image/png, image/webp"


class TestSniff:
    @pytest.mark.parametrize(("mime_type", "data"), (IMAGES | SOUNDS).items(), ids=IMAGES | SOUNDS)
    def test_every_format_is_detected(self, mime_type, data):
        """Every accepted type is detected under its registered name."""
        assert sniff(data) == mime_type

    @pytest.mark.parametrize(
        ("mime_type", "data"),
        [
            ("audio/mpeg", ID3),
            ("image/gif", GIF.replace(b"89a", b"87a")),
            ("audio/aac", b"\xff\xf9" + AAC[2:]),
        ],
        ids=["MP3 with tags", "the older GIF", "MPEG-2 AAC"],
    )
    def test_every_signature_of_a_format_is_detected(self, mime_type, data):
        """A format with several signatures is detected by each."""
        assert sniff(data) == mime_type

    def test_accepted_types_are_the_detected_ones(self):
        """The accepted types are exactly the detected ones."""
        assert {sniff(data) for data in IMAGES.values()} == IMAGE_TYPES
        assert {sniff(data) for data in SOUNDS.values()} == AUDIO_TYPES

    @pytest.mark.parametrize("data", [b"", b"\x89PNG"[:2], b"plain text", bytes(64)])
    def test_unknown_bytes_have_no_type(self, data):
        """Unknown bytes have no type."""
        assert sniff(data) is None

    @settings(deadline=None)
    @given(st.binary(max_size=64))
    def test_detection_never_raises(self, data):
        """Detection never raises."""
        assert isinstance(sniff(data), str | None)


class TestCheckedType:
    @pytest.mark.parametrize("declared", [None, "image/png", "IMAGE/PNG"])
    def test_declared_type_is_optional(self, declared):
        """The declared type is optional, and case-insensitive."""
        assert checked_type(PNG, declared, IMAGE_TYPES, MAX_IMAGE_BYTES) == "image/png"

    @pytest.mark.parametrize(
        ("data", "declared"),
        [
            (JPEG, "image/jpg"),
            (WAV, "audio/x-wav"),
            (WAV, "audio/wave"),
            (WAV, "audio/vnd.wave"),
            (MP3, "audio/mp3"),
            (FLAC, "audio/x-flac"),
            (M4A, "audio/m4a"),
            (OGG, "audio/opus"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_alias_of_a_type_is_accepted(self, data, declared):
        """An alias of a type is accepted and replaced by the registered name."""
        mime_type = checked_type(data, declared, IMAGE_TYPES | AUDIO_TYPES, MAX_AUDIO_BYTES)

        assert mime_type == sniff(data)

    @pytest.mark.parametrize(
        ("data", "declared", "message"),
        [
            (b"", None, "the data is empty: pass the bytes of the whole file"),
            (PNG, "image/jpeg", "the bytes are image/png, not image/jpeg: omit the type, or correct it"),
            (
                UNSUPPORTED["pdf"],
                None,
                f"the bytes are application/pdf, but {CLIENTS_ACCEPT}: convert them first",
            ),
            (
                UNSUPPORTED["text"],
                "image/png",
                f"the bytes are not in a known format, but {CLIENTS_ACCEPT}: convert them first",
            ),
            (
                bytes(5_000_001),
                None,
                "the size is 5,000,001 bytes, but the limit is 3,932,160 bytes: reduce the size first",
            ),
        ],
        ids=["empty", "mismatch", "refused format", "unknown format", "oversized"],
    )
    def test_error_explains_the_problem_and_the_fix(self, data, declared, message):
        """Each error explains the problem and the fix."""
        with pytest.raises(MediaError) as caught:
            checked_type(data, declared, IMAGE_TYPES, MAX_IMAGE_BYTES)

        assert str(caught.value) == message

    @pytest.mark.parametrize("data", UNSUPPORTED.values(), ids=UNSUPPORTED)
    def test_unsupported_format_is_rejected(self, data):
        """Formats that model APIs would reject are rejected."""
        with pytest.raises(MediaError, match="clients accept only image/gif"):
            checked_type(data, None, IMAGE_TYPES, MAX_IMAGE_BYTES)

    def test_image_at_the_limit_is_accepted(self):
        """An image at the size limit is accepted, and one that is a byte larger is not."""
        largest = PNG.ljust(MAX_IMAGE_BYTES, b"\0")

        assert checked_type(largest, None, IMAGE_TYPES, MAX_IMAGE_BYTES) == "image/png"
        with pytest.raises(MediaError, match="reduce the size first"):
            checked_type(largest + b"\0", None, IMAGE_TYPES, MAX_IMAGE_BYTES)

    @pytest.mark.parametrize(
        "data",
        [PNG[:12], PNG[:20], GIF[:8], JPEG[:20], WEBP[:16], b"GIF is a format of 1987", b"\xff\xd8\xff"],
        ids=["PNG", "PNG header", "GIF", "JPEG", "WebP", "text that begins as a GIF does", "JPEG mark"],
    )
    def test_truncated_image_is_rejected(self, data):
        """A truncated image is rejected."""
        with pytest.raises(MediaError, match=r"^the image is damaged\b.*: save it again$"):
            checked_type(data, None, IMAGE_TYPES, MAX_IMAGE_BYTES)

    @pytest.mark.parametrize(("width", "height"), [(8000, 8000), (8000, 1)])
    def test_image_of_the_largest_dimensions_is_accepted(self, width, height):
        """An image with the maximum width and height is accepted."""
        assert checked_type(make_gif(width, height), None, IMAGE_TYPES, MAX_IMAGE_BYTES) == "image/gif"

    @pytest.mark.parametrize(
        ("width", "height", "dimensions"),
        [(8001, 1, "8,001 by 1"), (1, 30000, "1 by 30,000")],
        ids=["wide", "high"],
    )
    def test_image_with_too_many_pixels_is_rejected(self, width, height, dimensions):
        """An image that is too large in either direction is rejected with its size."""
        with pytest.raises(MediaError) as caught:
            checked_type(make_gif(width, height), None, IMAGE_TYPES, MAX_IMAGE_BYTES)

        assert str(caught.value) == (
            f"the image has {dimensions} pixels, but clients accept at most 8,000 per side: "
            "scale it down first"
        )

    @settings(deadline=None)
    @given(st.sampled_from(list(IMAGES.values())), st.binary(max_size=40))
    def test_damaged_data_is_accepted_or_rejected(self, image, data):
        """Damaged data either has a type or raises MediaError."""
        try:
            checked_type(image[:12] + data, None, IMAGE_TYPES, MAX_IMAGE_BYTES)
        except MediaError:
            return

    def test_limit_is_5_mib_of_base64(self):
        """The limit is 5 MiB of base64, because model APIs receive base64."""
        assert -(-MAX_IMAGE_BYTES // 3) * 4 == 5 * 1024 * 1024

    def test_sizes_in_the_error_differ(self):
        """Just above the limit, the two sizes in the message still differ."""
        with pytest.raises(MediaError) as caught:
            checked_type(bytes(MAX_IMAGE_BYTES + 1), None, IMAGE_TYPES, MAX_IMAGE_BYTES)
        size, _, remainder = (
            str(caught.value).removeprefix("the size is ").partition(" bytes, but the limit is ")
        )
        limit, _, _ = remainder.partition(" bytes:")

        assert size != limit


class TestHumanSize:
    @pytest.mark.parametrize(
        ("size", "text"),
        [
            (0, "0 B"),
            (1, "1 B"),
            (999, "999 B"),
            (1000, "1 kB"),
            (20_480, "20 kB"),
            (999_499, "999 kB"),
            (999_500, "1 MB"),
            (3_932_160, "4 MB"),
            (20 * 1024 * 1024, "21 MB"),
            (5_000_000_000, "5 GB"),
        ],
    )
    def test_size_has_a_unit(self, size, text):
        """A size has at most three digits and the unit that fits."""
        assert human_size(size) == text

    @given(st.integers(0, 10**12))
    def test_rounding_never_gives_1000_of_a_unit(self, size):
        """Rounding never gives 1000 of a unit."""
        number, unit = human_size(size).split()

        assert 0 <= int(number) <= 999 + (unit == "GB")
        assert unit in {"B", "kB", "MB", "GB"}


class Displayable:
    """An object that notebooks can display."""

    def __init__(self, data):
        self.data = data

    def _repr_png_(self):
        return self.data


class Figure:
    """An object like a matplotlib figure."""

    def savefig(self, file, format):  # noqa: A002 (matplotlib's own name)
        """Write the picture like matplotlib."""
        assert format == "png"
        file.write(PNG)


class TestRenderPng:
    @pytest.mark.parametrize("value", [Displayable(PNG), Figure()], ids=["_repr_png_", "savefig"])
    def test_object_that_renders_itself_is_supported(self, value):
        """`_repr_png_` and `savefig` are supported."""
        assert render_png(value) == PNG

    @pytest.mark.parametrize(
        "value",
        [
            object(),
            "savefig",
            3,
            None,
            Displayable(None),
            Displayable("text"),
            Displayable,
            Figure,
            types.SimpleNamespace(savefig=3),
        ],
        ids=[
            "object",
            "str",
            "int",
            "None",
            "has none now",
            "shows text",
            "class",
            "class of figures",
            "attribute",
        ],
    )
    def test_other_objects_give_none(self, value):
        """Classes, plain attributes and objects without a picture give None."""
        assert render_png(value) is None

    def test_exception_in_a_method_is_not_wrapped(self):
        """An exception in the object's own method is not wrapped."""

        class Broken:
            def _repr_png_(self):
                raise RuntimeError("no display")

        with pytest.raises(RuntimeError, match="no display"):
            render_png(Broken())


class TestSourceFolder:
    def test_depth_0_is_the_callers_folder(self):
        """Depth 0 is the folder of the calling file."""
        assert source_folder(0) == Path(__file__).parent

    def test_depth_1_is_the_folder_of_the_callers_caller(self, tmp_path):
        """Depth 1 is the folder of the caller's caller."""
        code = compile("folder = call()", str(tmp_path / "recipe.py"), "exec")
        names = {"__file__": str(tmp_path / "recipe.py"), "call": lambda: source_folder(1)}

        exec(code, names)  # noqa: S102 (a recipe without an import)

        assert names["folder"] == tmp_path

    def test_code_without_a_file_uses_the_current_folder(self, tmp_path, monkeypatch):
        """Code without a file uses the current folder."""
        monkeypatch.chdir(tmp_path)
        names = {"call": lambda: source_folder(1)}

        exec("folder = call()", names)  # noqa: S102 (like a console)

        assert names["folder"] == tmp_path


@pytest.fixture
def root(tmp_path):
    """A folder of pictures next to a folder with a secret."""
    folder = tmp_path / "pictures"
    (folder / "cats").mkdir(parents=True)
    (folder / "cats" / "tom.png").write_bytes(PNG)
    (folder / "cat.png").write_bytes(PNG)
    (tmp_path / "pictures-private").mkdir()
    (tmp_path / "pictures-private" / "secret.png").write_bytes(PNG)
    return folder


class TestConfine:
    @pytest.mark.parametrize(
        "path", ["cat.png", "cats/tom.png", "./cat.png", "cats//tom.png", Path("cats/tom.png")], ids=str
    )
    def test_path_is_resolved_below_the_root(self, root, path):
        """A plain relative path is resolved below the root."""
        assert confine(path, root) == (root / path).resolve()

    @pytest.mark.parametrize(
        "path",
        [
            "..",
            "../pictures-private/secret.png",
            "cats/../../pictures-private/secret.png",
            "cats/../cat.png",
            "..\\pictures-private\\secret.png",
            "cats\\..\\..\\pictures-private\\secret.png",
            "/etc/passwd",
            "/proc/self/environ",
            "/dev/zero",
            "\\etc\\passwd",
            "C:\\Windows\\win.ini",
            "C:win.ini",
            "c:/windows/win.ini",
            "\\\\server\\share\\a.png",
            "//server/share/a.png",
            "\\\\.\\COM1",
            "\\\\?\\C:\\a.png",
            "//?/C:/a.png",
            "cat.png\0.txt",
            "\0",
            "cat.png:stream",
            "http://example.com/a.png",
            "file:///etc/passwd",
            "data:image/png;base64,AAAA",
        ],
    )
    def test_path_that_is_not_plain_is_rejected(self, root, path):
        """A path that could leave the root on any platform is rejected on every platform."""
        with pytest.raises(MediaError) as caught:
            confine(path, root)

        assert str(caught.value).startswith(f"{path!r} is not a plain relative path below 'pictures': ")

    @pytest.mark.parametrize(
        "path",
        [
            "",
            ".",
            "dog.png",
            "cats",
            "NUL",
            "con",
            "con.png",
            "COM1",
            "~/cat.png",
            "%2e%2e/cat.png",
            "cats\\tom.png",
        ],
        ids=lambda path: path or "empty",
    )
    def test_path_must_name_a_file(self, root, path):
        """Paths are neither expanded nor decoded, and must name a file below the root."""
        with pytest.raises(MediaError) as caught:
            confine(path, root)

        assert str(caught.value) == f"there is no file {path!r} in 'pictures'"

    @pytest.mark.parametrize(
        "target",
        ["/etc/passwd", "../pictures-private/secret.png", "../pictures/../pictures-private/secret.png"],
        ids=["absolute", "relative", "winding"],
    )
    def test_link_out_of_the_root_is_rejected(self, root, target):
        """A link to a file outside the root is rejected."""
        (root / "link.png").symlink_to(target)

        with pytest.raises(MediaError, match=r"^'link\.png' is outside 'pictures'$"):
            confine("link.png", root)

    def test_folder_that_links_out_of_the_root_is_rejected(self, root):
        """A folder that links outside is rejected, even to a sibling with the same prefix."""
        (root / "more").symlink_to("../pictures-private")

        with pytest.raises(MediaError, match=r"^'more/secret\.png' is outside 'pictures'$"):
            confine("more/secret.png", root)

    def test_link_within_the_root_is_followed(self, root):
        """A link to a file below the root is followed."""
        (root / "link.png").symlink_to("cats/tom.png")

        assert confine("link.png", root) == (root / "cats" / "tom.png").resolve()

    def test_root_can_be_a_link(self, root, tmp_path):
        """The root itself can be a link."""
        (tmp_path / "shortcut").symlink_to(root)

        assert confine("cat.png", tmp_path / "shortcut") == (root / "cat.png").resolve()

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
    def test_pipe_is_rejected(self, root):
        """A pipe is rejected, because reading it could block forever."""
        os.mkfifo(root / "pipe.png")

        with pytest.raises(MediaError, match=r"^there is no file 'pipe\.png' in 'pictures'$"):
            confine("pipe.png", root)

    @pytest.mark.parametrize(
        "path", ["loop.png", "a" * 5000, "\ud800.png"], ids=["link to itself", "too long", "surrogate"]
    )
    def test_path_that_the_system_cannot_look_up_is_rejected(self, root, path):
        """Paths that the system cannot look up raise MediaError, too, without revealing the root."""
        (root / "loop.png").symlink_to("loop.png")

        with pytest.raises(MediaError) as caught:
            confine(path, root)

        assert str(root.parent) not in str(caught.value)

    def test_missing_root_is_reported_like_a_missing_file(self, tmp_path):
        """A root that does not exist is reported like a missing file."""
        with pytest.raises(MediaError, match=r"^there is no file 'cat\.png' in 'pictures'$"):
            confine("cat.png", tmp_path / "pictures")

    @settings(deadline=None)
    @given(
        path=st.text("./\\ab:~\0-", max_size=12)
        | st.lists(
            st.sampled_from(["..", ".", "cats", "tom.png", "cat.png", "more", "", "~"]), max_size=6
        ).map("/".join)
    )
    def test_no_path_leaves_the_root(self, path, tmp_path_factory):
        """Any path either gives a file below the root or raises MediaError."""
        root = tmp_path_factory.getbasetemp() / "confined"
        if not root.exists():
            (root / "cats").mkdir(parents=True)
            (root / "cats" / "tom.png").write_bytes(PNG)
            (root / "cat.png").write_bytes(PNG)
            (root / "more").symlink_to("..")

        try:
            confined = confine(path, root)
        except MediaError:
            return

        assert confined.is_relative_to(root.resolve())
        assert confined.is_file()

    def test_from_path_confines_to_the_root(self, root):
        """`from_path` with a root uses `confine`."""
        assert Image.from_path("cats/tom.png", root=root).data == PNG
        with pytest.raises(MediaError, match="is not a plain relative path below 'pictures'"):
            Image.from_path("../pictures-private/secret.png", root=root)

import copy
import datetime as dt
import inspect
import pickle
from base64 import b64encode
from enum import Enum
from functools import partial
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import promptkit
from promptkit import user
from promptkit.errors import MediaError
from promptkit.language.documents import EmbeddedResource, ResourceLink
from promptkit.language.media import Audio, Icon, Image
from promptkit.language.text import Text
from promptkit.language.validation import checked_uri
from promptkit.loader.loader import load
from tests.ids import stable_repr


class Color(str, Enum):  # noqa: UP042 (f-strings format its members by name)
    RED = "red"


NOON = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)

#: Factories of each kind of content, with real media and these annotations.
KINDS = {
    "Text": lambda png, wav, **annotations: Text("a", **annotations),
    "Image": lambda png, wav, **annotations: Image(png, **annotations),
    "Audio": lambda png, wav, **annotations: Audio(wav, **annotations),
    "text resource": lambda png, wav, **annotations: EmbeddedResource("a:b", text="a", **annotations),
    "blob resource": lambda png, wav, **annotations: EmbeddedResource("a:b", blob=png, **annotations),
    "ResourceLink": lambda png, wav, **annotations: ResourceLink("a:b", name="a", **annotations),
}

WITHOUT_BYTES = [
    Text('it\'s\n"text"'),
    Text("a", audience="user", priority=0.5, last_modified=NOON),
    EmbeddedResource("a:b", text="", mime_type="text/plain"),
    ResourceLink("a:b", name="a"),
    ResourceLink("a:b", name="a", title="A", description="b", mime_type="text/plain", size=3, priority=0),
    Icon("https://example.com/a.png", mime_type="image/png", sizes=["48x48"], theme="dark"),
]


@pytest.fixture(params=KINDS)
def make(request, png, wav):
    """A factory of one kind of content, which takes annotations."""
    return partial(KINDS[request.param], png, wav)


class TestContract:
    @pytest.mark.parametrize(
        ("name", "parameters"),
        [
            ("Text", "text"),
            ("Image", "data mime_type=None"),
            ("Audio", "data mime_type=None"),
            ("EmbeddedResource", "uri * text=None blob=None mime_type=None"),
            ("ResourceLink", "uri * name title=None description=None mime_type=None size=None"),
        ],
    )
    def test_signatures_match_the_documentation(self, name, parameters):
        """Each kind of content takes the documented parameters, and the three annotations by name."""
        annotations = ["audience=()", "priority=None", "last_modified=None"]
        declared = inspect.signature(getattr(promptkit, name)).parameters.values()

        positional = [p for p in declared if p.kind is not p.KEYWORD_ONLY]
        named = {str(p.replace(annotation=p.empty)) for p in declared if p.kind is p.KEYWORD_ONLY}

        before, _, after = parameters.partition("*")
        assert [str(p.replace(annotation=p.empty)) for p in positional] == before.split()
        assert named == {*after.split(), *annotations}


class TestEveryKind:
    def test_content_is_compared_by_value(self, make):
        """Content with equal fields is equal and has the same hash."""
        assert make() == make()
        assert hash(make()) == hash(make())
        assert make() != make(priority=1)

    def test_content_is_immutable(self, make):
        """Content is immutable."""
        content = make()

        for name in [field.name for field in attrs.fields(type(content))] + ["other"]:
            with pytest.raises(attrs.exceptions.FrozenInstanceError):
                setattr(content, name, None)

    def test_content_has_slots(self, make):
        """Content has slots and no `__dict__`."""
        assert not hasattr(make(), "__dict__")

    def test_content_can_be_pickled_and_copied(self, make):
        """Content is equal to its pickled and copied self."""
        content = make(audience="user", priority=0.5, last_modified=NOON)

        assert pickle.loads(pickle.dumps(content)) == content  # noqa: S301 (our own pickle)
        assert copy.copy(content) == content
        assert copy.deepcopy(content) == content

    @pytest.mark.parametrize(
        ("audience", "expected"),
        [
            ((), ()),
            ("user", ("user",)),
            (["assistant"], ("assistant",)),
            (("user", "assistant"), ("user", "assistant")),
            (None, ()),
        ],
        ids=["empty", "bare", "list", "tuple", "None"],
    )
    def test_audience_is_stored_as_a_tuple(self, make, audience, expected):
        """The audience can be one role or a sequence, and is stored as a tuple."""
        assert make(audience=audience).audience == expected

    @pytest.mark.parametrize("priority", [None, 0, 0.0, 0.5, 1, 1.0])
    def test_priority_is_between_0_and_1(self, make, priority):
        """The priority can be any number from 0 to 1, or None."""
        assert make(priority=priority).priority == priority

    @pytest.mark.parametrize(
        "last_modified",
        [NOON, "2026-01-31T12:00:00Z", "2026-01-31T13:00:00+01:00"],
        ids=["datetime", "UTC text", "offset text"],
    )
    def test_last_modified_takes_datetimes_and_text(self, make, last_modified):
        """`last_modified` can be given as a datetime or as text, in any time zone."""
        assert make(last_modified=last_modified).last_modified == NOON

    @pytest.mark.parametrize(
        ("annotations", "message"),
        [
            ({"priority": 2}, "priority is 2: it must be between 0 (optional) and 1 (required)"),
            ({"priority": -0.5}, "priority is -0.5: it must be between 0 (optional) and 1 (required)"),
            ({"priority": float("nan")}, "priority is nan: it must be between 0 (optional) and 1 (required)"),
            (
                {"last_modified": dt.datetime(2026, 1, 31, 12)},  # noqa: DTZ001 (naive on purpose)
                (
                    "last_modified '2026-01-31 12:00:00' has no time zone: "
                    "add one, for example '2026-01-31T12:00:00Z'"
                ),
            ),
            (
                {"last_modified": "2026-01-31"},
                "last_modified '2026-01-31' has no time zone: add one, for example '2026-01-31T12:00:00Z'",
            ),
            (
                {"audience": "system"},
                "a message cannot have the role 'system': write system(...) next to the turns",
            ),
            ({"audience": ["user", "model"]}, "role 'model' is not one of user, assistant"),
        ],
        ids=["above 1", "below 0", "nan", "naive", "a day", "system", "no role"],
    )
    def test_invalid_annotation_is_rejected(self, make, annotations, message):
        """An annotation out of range raises immediately, with a message that names a fix."""
        with pytest.raises(ValueError) as caught:  # noqa: PT011 (the text is compared)
            make(**annotations)

        assert str(caught.value) == message

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("priority", "high"),
            ("last_modified", "yesterday"),
            ("last_modified", dt.date(2026, 1, 31)),
            ("last_modified", 1769860800),
            ("audience", 5),
        ],
        ids=["priority in words", "moment in words", "date", "timestamp", "audience of 5"],
    )
    def test_annotation_of_the_wrong_type_is_rejected(self, name, value):
        """An annotation of the wrong type raises an error that names it."""
        with pytest.raises((TypeError, ValueError), match=name):
            Text("a", **{name: value})

    def test_annotations_are_returned_together(self, make):
        """`annotations` returns all three, and `annotated` is True if any is set."""
        assert make().annotations == ((), None, None)
        assert not make().annotated
        assert make(priority=0).annotated
        assert make(audience="user", priority=1).annotations == (("user",), 1, None)


class TestContains:
    def test_in_searches_the_text(self):
        """`in` searches the text of content, like that of a message."""
        assert "go" in Text("a go function")
        assert "rust" not in Text("a go function")
        assert "notes" in EmbeddedResource("memo://notes", text="x")

    @pytest.mark.parametrize("item", [3, None, Text("go"), ["go"]], ids=repr)
    def test_in_rejects_other_types(self, item):
        """`in` rejects other types, for which ``not in`` would always be true."""
        with pytest.raises(TypeError, match=r"^Text can be searched only for text, not for (?:an? |None)"):
            assert item not in Text("a go function")


class TestRepr:
    @pytest.mark.parametrize("content", WITHOUT_BYTES, ids=stable_repr)
    def test_repr_evaluates_to_an_equal_value(self, content):
        """Evaluating the repr gives an equal value."""
        names = {name: getattr(promptkit, name) for name in promptkit.__all__}

        assert eval(repr(content), {**names, "datetime": dt}) == content  # noqa: S307 (tests the repr)

    def test_repr_omits_defaults(self):
        """The repr omits defaults."""
        assert repr(Text("a", priority=0.5)) == "Text('a', priority=0.5)"

    def test_repr_shows_only_the_size_of_bytes(self, png):
        """The repr of an image shows only the size of its bytes."""
        assert repr(Image(png)) == f"Image(<{len(png)} B>, mime_type='image/png')"


class TestText:
    @pytest.mark.parametrize("text", ["", " ", "a\0b", "{braces} %s {{", "ünïcode 🎉", "a\r\nb"])
    def test_text_is_kept_unchanged(self, text):
        """Text is kept unchanged, without interpreting any characters."""
        assert Text(text).text == text
        assert str(Text(text)) == text
        assert f"{Text(text)}" == text

    @pytest.mark.parametrize("value", [None, 3, b"a", ["a"], Text("a")], ids=stable_repr)
    def test_other_types_are_rejected(self, value):
        """`Text` rejects anything but a str."""
        kind = type(value).__name__

        with pytest.raises(TypeError, match=rf"^Text takes a str, not {kind}: pass str\(\.\.\.\)$"):
            Text(value)

    @pytest.mark.parametrize(
        ("joined", "expected"),
        [
            (Text("a") + "b", Text("a\n\nb")),
            ("a" + Text("b"), Text("a\n\nb")),
            (Text("a") + Text("b") + "c", Text("a\n\nb\n\nc")),
            (Text("a") + "", Text("a")),
            (Text(" \n") + "b", Text("b")),
            ("" + Text("b"), Text("b")),
            (Text("a", priority=1) + "b", Text("a\n\nb", priority=1)),
            ("a" + Text("b", priority=1), Text("a\n\nb", priority=1)),
            (Text("a", priority=1) + Text("b", priority=1), Text("a\n\nb", priority=1)),
            (Text("a") + Color.RED, Text("a\n\nred")),
            (Color.RED + Text("a"), Text("red\n\na")),
        ],
        ids=[
            "str after",
            "str before",
            "chain",
            "empty after",
            "blank before",
            "empty before",
            "annotated first",
            "annotated last",
            "equally annotated",
            "a member of an enum after",
            "a member of an enum before",
        ],
    )
    def test_plus_joins_to_one_block(self, joined, expected):
        """Adding `Text` values joins them with a blank line and keeps annotations."""
        assert joined == expected

    def test_different_annotations_cannot_be_joined(self):
        """Texts with different annotations cannot be joined."""
        with pytest.raises(
            ValueError,
            match=r"^texts with different annotations cannot be combined into one block: pass both",
        ):
            Text("a", audience="user") + Text("b", audience="assistant")

    @pytest.mark.parametrize("other", [3, None, b"a", ["a"]], ids=stable_repr)
    def test_plus_rejects_other_types(self, other):
        """Adding anything but text raises a TypeError on either side."""
        with pytest.raises(TypeError, match="unsupported operand"):
            Text("a") + other
        with pytest.raises(TypeError, match=r"unsupported operand|can only concatenate|can't concat"):
            other + Text("a")

    @given(st.text(), st.text(), st.text())
    def test_plus_is_associative(self, a, b, c):
        """Adding `Text` values is associative."""
        assert (Text(a) + Text(b)) + Text(c) == Text(a) + (Text(b) + Text(c))

    @given(st.text())
    def test_any_text_can_be_pickled(self, text):
        """Every text can be pickled, including lone surrogates."""
        assert pickle.loads(pickle.dumps(Text(text))) == Text(text)  # noqa: S301 (our own pickle)


class Drawing:
    def __init__(self, data):
        self.data = data

    def _repr_png_(self):
        return self.data


class Figure:
    def __init__(self, data):
        self.data = data

    def savefig(self, file, **options):
        """Write the picture like matplotlib."""
        file.write(self.data)


class TestImage:
    @pytest.mark.parametrize(
        "wrap", [bytes, bytearray, memoryview, Drawing, Figure], ids=lambda kind: kind.__name__
    )
    def test_image_takes_bytes_and_figures(self, png, wrap):
        """An image can be made of any bytes-like object, a figure or an object with `_repr_png_`."""
        assert Image(wrap(png)) == Image(png)
        assert Image(wrap(png)).data == png

    def test_type_is_detected(self, png):
        """The type is detected, and a declared type must match."""
        assert Image(png).mime_type == "image/png"
        assert Image(png, "image/png") == Image(png)
        assert Image(b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff\0;").mime_type == "image/gif"

    @pytest.mark.parametrize("kind", [Image, Audio])
    def test_path_is_never_opened(self, kind, png, wav, tmp_path):
        """A path is never opened, and the error suggests `from_path`."""
        path = tmp_path / "file"
        path.write_bytes(png if kind is Image else wav)

        with pytest.raises(TypeError, match=r"is not bytes: use from_path\(\.\.\.\) to read a file$"):
            kind(str(path))
        with pytest.raises(TypeError, match=r"is not bytes: use from_path\(\.\.\.\) to read a file$"):
            kind(path)

    @pytest.mark.parametrize("value", [None, 3, ["a"], object, Drawing(None)], ids=stable_repr)
    def test_other_values_are_rejected(self, value):
        """Any other value raises an error with its type."""
        kind = type(value).__name__

        with pytest.raises(TypeError) as caught:
            Image(value)

        assert (
            str(caught.value)
            == f"expected bytes (or, for an Image, an object that can be rendered as PNG), not {kind}"
        )

    def test_error_page_is_rejected(self):
        """An error page that was downloaded in place of an image is rejected."""
        with pytest.raises(
            MediaError, match=r"^the bytes are not in a known format, but clients accept only image/gif"
        ):
            Image(b"<html>404 Not Found</html>", "image/png")

    def test_audio_is_rejected(self, wav):
        """Image rejects audio."""
        with pytest.raises(MediaError, match=r"^the bytes are audio/wav, but clients accept only image/gif"):
            Image(wav)

    def test_result_of_repr_png_is_checked(self):
        """The result of `_repr_png_` is checked like any bytes."""
        with pytest.raises(MediaError, match="not in a known format"):
            Image(Drawing(b"no PNG"))

    def test_base64_is_cached(self, png):
        """The base64 text is cached and does not affect equality."""
        image = Image(png)

        assert image.base64 == b64encode(png).decode()
        assert image.base64 is image.base64
        assert image == Image(png)

    def test_str_shows_type_size_and_digest(self, png):
        """str() shows an image by type, size and digest."""
        assert str(Image(png)) == f"<image/png {len(png)} B sha256:56b49e8c>".replace(
            "56b49e8c", _digest(png)
        )


class TestAudio:
    def test_type_is_detected(self, wav):
        """The type is detected, and a declared alias is accepted."""
        assert Audio(wav).mime_type == "audio/wav"
        assert Audio(wav, "audio/x-wav") == Audio(wav)
        assert Audio(wav).base64 == b64encode(wav).decode()
        assert str(Audio(wav)) == f"<audio/wav 2 kB sha256:{_digest(wav)}>"

    def test_image_is_rejected(self, png):
        """Audio rejects images."""
        with pytest.raises(MediaError, match=r"^the bytes are image/png, but clients accept only audio/aac"):
            Audio(png)

    def test_empty_data_is_rejected(self):
        """Empty data is rejected."""
        with pytest.raises(MediaError, match=r"^the data is empty: pass the bytes of the whole file$"):
            Audio(b"")


def _digest(data):
    from hashlib import sha256

    return sha256(data).hexdigest()[:8]


RECIPE = """
    from promptkit import Audio, Image, prompt, read_below

    @prompt
    def show(name: str = "picture.png") -> Image:
        return Image.from_path(name)

    @prompt
    def attached(name: str) -> str:
        return str(len(read_below(name, "pictures")))

    @prompt
    def confined(name: str) -> Image:
        return Image.from_path(name, root="pictures")

    @prompt
    def listen() -> Audio:
        return Audio.from_path("sound.wav", "audio/wav", priority=1, audience="assistant")
"""


class TestFromPath:
    @pytest.fixture
    def prompts(self, recipes, png, wav, tmp_path, monkeypatch):
        """The prompts of a recipe next to its media, with another current folder."""
        folder = recipes(show=RECIPE)
        (folder / "picture.png").write_bytes(png)
        (folder / "sound.wav").write_bytes(wav)
        (folder / "pictures").mkdir()
        (folder / "pictures" / "a.png").write_bytes(png)
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        monkeypatch.chdir(elsewhere)
        return {prompt.__name__: prompt for prompt in load(folder).prompts}

    def test_a_path_is_relative_to_the_recipe(self, prompts, png):
        """A path is relative to the recipe's folder and not to the current one."""
        assert prompts["show"]() == Image(png)
        assert prompts["show"].render_wire() == user(Image(png))

    def test_absolute_path_is_read(self, prompts, tmp_path, png):
        """Without a root, any absolute path is allowed."""
        assert prompts["show"](str(tmp_path / "recipes" / "picture.png")) == Image(png)

    def test_type_and_annotations_can_be_given(self, prompts, wav):
        """`from_path` takes the options of the class."""
        assert prompts["listen"]() == Audio(wav, priority=1, audience="assistant")

    def test_root_is_relative_to_the_recipe(self, prompts, png):
        """A root is relative to the recipe's folder, and the path to the root."""
        assert prompts["confined"]("a.png") == Image(png)
        assert prompts["attached"]("a.png") == str(len(png))

    @pytest.mark.parametrize(
        "path", ["../picture.png", "/etc/passwd", "C:\\a.png", "//host/a.png", "a.png\0"]
    )
    def test_root_confines_a_path(self, prompts, path):
        """A path from an argument cannot leave the root."""
        with pytest.raises(MediaError, match="is not a plain relative path below 'pictures'"):
            prompts["confined"].render_wire({"name": path})

    def test_missing_file_raises_file_not_found_error(self, prompts):
        """Without a root, a missing file raises FileNotFoundError."""
        with pytest.raises(FileNotFoundError, match=r"missing\.png"):
            prompts["show"]("missing.png")

    def test_bytes_are_checked(self, prompts):
        """The bytes are checked, whatever the file's suffix."""
        Path(prompts["show"].location.file).with_name("fake.png").write_text("no PNG")

        with pytest.raises(MediaError, match="the bytes are not in a known format"):
            prompts["show"]("fake.png")

    def test_path_in_a_helper_is_relative_to_the_helper(self, recipes, png):
        """
        A path is relative to the file that calls `from_path`, even if that is a helper in another folder.
        """
        helper = "from promptkit import Image\ndef picture():\n    return Image.from_path('picture.png')\n"
        shared = recipes("recipes/shared", __init__="", _pictures=helper)
        (shared / "picture.png").write_bytes(png)
        recipe = (
            "from promptkit import prompt\nfrom .shared._pictures import picture\nshow = prompt(picture)\n"
        )

        (show,) = load(recipes(show=recipe)).prompts

        assert show() == Image(png)


class TestUri:
    @pytest.mark.parametrize(
        "uri",
        [
            "logs://recent",
            "file:///notes.txt",
            "urn:isbn:0451450523",
            "mailto:a@example.com",
            "https://example.com/a?b=c&d=%20#e",
            "x:1",
            "http://[::1]:80/",
            "svn+ssh://host/p",
        ],
    )
    def test_valid_uri_is_kept(self, uri):
        """A valid URI is kept unchanged."""
        assert checked_uri(uri) == uri

    @pytest.mark.parametrize(
        ("uri", "message"),
        [
            (
                "notes.txt",
                "'notes.txt' is not a URI: it needs a scheme, for example 'file:///notes.txt' or 'logs://recent'",
            ),
            ("", "'' is not a URI: it needs a scheme, for example 'file:///notes.txt' or 'logs://recent'"),
            (
                "/etc/passwd",
                "'/etc/passwd' is not a URI: it needs a scheme, for example 'file:///notes.txt' or 'logs://recent'",
            ),
            (
                "1x:a",
                "'1x:a' is not a URI: it needs a scheme, for example 'file:///notes.txt' or 'logs://recent'",
            ),
            (
                "file:///a b",
                "'file:///a b' has characters that are not allowed in a URI: write 'file:///a%20b'",
            ),
            ("x:é", "'x:é' has characters that are not allowed in a URI: write 'x:%C3%A9'"),
            ("x:a\n", "'x:a\\n' has characters that are not allowed in a URI: write 'x:a%0A'"),
        ],
        ids=["relative", "empty", "path", "no scheme", "space", "letter", "line end"],
    )
    def test_invalid_uri_is_rejected_with_a_hint(self, uri, message):
        """The error distinguishes a missing scheme from characters that must be escaped."""
        with pytest.raises(ValueError) as caught:  # noqa: PT011 (the text is compared)
            checked_uri(uri)

        assert str(caught.value) == message

    @pytest.mark.parametrize("uri", ["x:a b", "x:<é>", "x:100%", "x:%zz", "file:", "C:\\notes.txt"])
    def test_suggested_uri_is_valid(self, uri):
        """The URI that the error suggests is valid, and never a mangled Windows path."""
        with pytest.raises(ValueError) as caught:  # noqa: PT011 (the hint is extracted)
            checked_uri(uri)
        *_, hint = str(caught.value).split("'")[:-1]

        assert checked_uri(hint) == hint
        assert hint != "C:%5Cnotes.txt"

    @pytest.mark.parametrize(
        "make",
        [
            lambda uri: EmbeddedResource(uri, text="a"),
            lambda uri: EmbeddedResource(uri, blob=b"a"),
            lambda uri: ResourceLink(uri, name="a"),
            Icon,
        ],
        ids=["text", "blob", "link", "icon"],
    )
    @pytest.mark.parametrize(
        ("uri", "error"), [("notes", ValueError), (3, TypeError), (None, TypeError), (Path("/a"), TypeError)]
    )
    def test_every_class_checks_its_uri(self, make, uri, error):
        """Every class that takes a URI rejects an invalid one."""
        with pytest.raises(error, match="URI"):
            make(uri)

    @given(st.text(st.characters(exclude_categories=["Cs"])))
    def test_any_text_is_returned_or_rejected(self, text):
        """Any text is either returned unchanged or rejected with an error that contains it."""
        try:
            assert checked_uri(text) == text
        except ValueError as error:
            assert repr(text) in str(error)  # noqa: PT017 (only some texts are rejected)


class TestEmbeddedResource:
    def test_no_file_is_opened(self, tmp_path):
        """The URI is only a name, so no file is opened."""
        (tmp_path / "secret").write_text("secret")

        document = EmbeddedResource(f"file://{tmp_path}/secret", text="mine")

        assert document.text == "mine"
        assert "secret" not in str(document).partition("\n")[2]

    @pytest.mark.parametrize(
        ("values", "error", "message"),
        [
            ({}, TypeError, "EmbeddedResource 'a:b' needs exactly one of text= and blob="),
            (
                {"text": "a", "blob": b"a"},
                TypeError,
                "EmbeddedResource 'a:b' needs exactly one of text= and blob=",
            ),
            ({"text": b"a"}, TypeError, "text= of 'a:b' must be a str, not bytes: use blob= for bytes"),
            ({"blob": "a"}, TypeError, "blob= of 'a:b' must be bytes, not str: use text= for text"),
            ({"blob": b""}, ValueError, "blob= of 'a:b' is empty: pass the bytes of the whole document"),
        ],
        ids=["neither", "both", "bytes as text", "text as bytes", "empty blob"],
    )
    def test_exactly_one_of_text_and_blob_is_required(self, values, error, message):
        """Exactly one of text and blob is required, with the right type."""
        with pytest.raises(error) as caught:
            EmbeddedResource("a:b", **values)

        assert str(caught.value) == message

    def test_empty_text_is_a_document(self):
        """An empty string is allowed."""
        assert EmbeddedResource("a:b", text="").text == ""

    @pytest.mark.parametrize(
        ("blob", "declared", "mime_type"),
        [
            (b"%PDF-1.7\n", None, "application/pdf"),
            (b"\0\x01", None, "application/octet-stream"),
            (b"a,b\n", "text/csv", "text/csv"),
        ],
        ids=["sniffed", "unknown", "given"],
    )
    def test_blob_always_has_a_type(self, blob, declared, mime_type):
        """A blob has the declared, the detected or a generic type, because clients need a type."""
        assert EmbeddedResource("a:b", blob=blob, mime_type=declared).mime_type == mime_type

    def test_text_has_a_type_only_if_declared(self):
        """Text has a type only if it is declared."""
        assert EmbeddedResource("a:b", text="a").mime_type is None
        assert EmbeddedResource("a:b", text="a", mime_type="text/markdown").mime_type == "text/markdown"

    def test_str_shows_uri_and_content(self, png):
        """str() shows text in full and bytes in short."""
        assert str(EmbeddedResource("a:b", text="one\ntwo")) == "[a:b]\none\ntwo"
        assert (
            str(EmbeddedResource("a:b", blob=png)) == f"[a:b] <image/png {len(png)} B sha256:{_digest(png)}>"
        )

    def test_base64_encodes_the_blob(self):
        """`base64` encodes the blob, and is empty for text."""
        assert EmbeddedResource("a:b", blob=b"abc").base64 == "YWJj"
        assert EmbeddedResource("a:b", text="abc").base64 == ""


class TestResourceLink:
    @pytest.mark.parametrize(
        ("values", "text"),
        [
            ({}, "[notes](a:b)"),
            ({"title": "My notes"}, "[My notes](a:b) (notes)"),
            ({"description": "what I wrote"}, "[notes](a:b): what I wrote"),
        ],
        ids=["name", "title", "description"],
    )
    def test_str_shows_a_link(self, values, text):
        """str() shows the title or name, the URI and the description."""
        assert str(ResourceLink("a:b", name="notes", **values)) == text

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ({"name": ""}, "name is blank: pass the document's name"),
            ({"name": "a", "size": -1}, "size is -1: it must not be negative"),
        ],
        ids=["no name", "negative size"],
    )
    def test_invalid_value_is_rejected(self, values, message):
        """A blank name or negative size raises immediately."""
        with pytest.raises(ValueError) as caught:  # noqa: PT011 (the text is compared)
            ResourceLink("a:b", **values)

        assert str(caught.value) == message

    @pytest.mark.parametrize(
        ("values", "field"),
        [
            ({"name": 3}, "name"),
            ({"name": None}, "name"),
            ({"name": " "}, "name"),
            ({"name": "a", "size": "3"}, "size"),
        ],
        ids=["number", "None", "blank", "size in words"],
    )
    def test_value_of_the_wrong_type_is_rejected(self, values, field):
        """A value of the wrong type raises an error that names the field."""
        with pytest.raises(
            (TypeError, ValueError), match=rf"\b{field}\b.*(?:is|takes|str|int|number)"
        ) as caught:
            ResourceLink("a:b", **values)

        assert "not supported between" not in str(caught.value)

    def test_size_of_0_is_kept(self):
        """A size of 0 is kept."""
        assert ResourceLink("a:b", name="a", size=0).size == 0


class TestIcon:
    def test_icon_is_hashable(self):
        """Sizes become a tuple, so that the icon is hashable."""
        icon = Icon("https://example.com/a.png", mime_type="image/png", sizes=["48x48", "any"], theme="dark")

        assert icon.sizes == ("48x48", "any")
        assert hash(icon) == hash(pickle.loads(pickle.dumps(icon)))  # noqa: S301 (our own pickle)

    @pytest.mark.parametrize("sizes", [None, 48])
    def test_invalid_sizes_are_rejected(self, sizes):
        """An invalid size raises an error that shows the form."""
        with pytest.raises(ValueError, match="is not a valid size: use a form such as"):
            Icon("https://example.com/a.png", sizes=sizes)

    def test_single_size_is_not_split_into_letters(self):
        """A plain string as sizes is one size or an error, and is never split into letters."""
        try:
            sizes = Icon("https://example.com/a.png", sizes="48x48").sizes
        except TypeError:
            return

        assert sizes == ("48x48",)

    def test_unknown_theme_is_rejected(self):
        """An unknown theme is rejected."""
        with pytest.raises(ValueError, match="light"):
            Icon("https://example.com/a.png", theme="blue")

import datetime as dt
import re
from decimal import Decimal
from io import BytesIO
from typing import Annotated, Literal
from uuid import UUID

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from starlette.datastructures import FormData, Headers, QueryParams, UploadFile

from promptkit import Arg, ArgumentsError, Audio, Image, Workflow, prompt
from promptkit.preview import forms
from promptkit.preview.forms import Submission, query_of
from promptkit.preview.media import MAX_UPLOAD_SIZE, Uploads
from promptkit.preview.templating import environment
from promptkit.testing import wire_arguments
from tests.ids import shown
from tests.laws.test_types import TYPES, share
from tests.preview import submission
from tests.sample_types import Corner, Level, Point, Tone
from tests.types.test_type_table import FAULTS, VALUES

#: Every type of the type table, with a text that a client may send for it.
SENT = [(kind, sent) for kind, sent, *_ in [*VALUES, *FAULTS, (list[str], "[1]")] if isinstance(sent, str)]
TYPED = pytest.mark.parametrize("annotation", TYPES, ids=str)


#: An upload store shared by all tests.
UPLOADS = Uploads()


def fields_of(arguments, sent, faults=()):
    return forms.fields_of(arguments, Submission(sent), UPLOADS, faults)


def submission_of(arguments, form, uploads=UPLOADS):
    return forms.submission_of(arguments, form, uploads)


def read(arguments, form):
    return dict(forms.submission_of(arguments, form, UPLOADS).given)


def drawn_again(arguments, found, uploads=UPLOADS):
    """Return the HTML of the form that answers a submission."""
    fields = environment().get_template("fields.html").module
    shown = forms.fields_of(arguments, found, uploads, found.faults)
    return str(fields.form("/prompts/typed", shown))


def taking(annotation, default=None):
    """Return a prompt with one parameter of a type."""

    def typed(value) -> str:
        return str(value)

    typed.__annotations__["value"] = annotation
    if default is not None:
        typed.__defaults__ = default
    return prompt(typed)


def arguments_of(annotation, **options):
    return taking(annotation, **options).compiled.arguments


def drawn(arguments, sent, faults=()):
    """Return the HTML of a form."""
    fields = environment().get_template("fields.html").module
    return str(fields.form("/prompts/typed", fields_of(arguments, sent, faults)))


def faults_of(arguments, sent):
    try:
        arguments.read(sent)
    except ArgumentsError as errors:
        return errors.errors
    return ()


def outcome(arguments, sent):
    """Return the values that a prompt reads, or its errors without the quoted values."""
    try:
        found = arguments.read(sent)
    except ArgumentsError as errors:
        return [(fault.argument, fault.path, fault.expected) for fault in errors.errors]
    return {name: (type(value), value, getattr(value, "tzinfo", None)) for name, value in found.items()}


def control_of(annotation, sent=None, **options):
    (field,) = fields_of(arguments_of(annotation, **options), {} if sent is None else {"value": sent})
    return field.control


class TestTheLaw:
    """A browser submits the values that its form was given: the prompt reads the same arguments."""

    @pytest.mark.parametrize(("annotation", "sent"), SENT, ids=lambda value: shown(value)[:40])
    def test_of_the_type_table(self, annotation, sent, monkeypatch):
        """Every text of the type table, valid or invalid, survives a round trip through the form."""
        monkeypatch.setenv("DEPTH", "3")
        arguments = arguments_of(annotation)

        back = read(arguments, submission.submission_of(drawn(arguments, {"value": sent})))

        assert outcome(arguments, back) == outcome(arguments, {"value": sent})

    @TYPED
    @settings(max_examples=share(16), suppress_health_check=[HealthCheck.too_slow], deadline=None)
    @given(data=st.data())
    def test_of_every_type(self, annotation, data):
        """Any value that a client may send for any type survives it too, required or optional."""
        default = data.draw(st.sampled_from([None, (None,)]))
        made = taking(annotation | None if default else annotation, default)
        sent = data.draw(wire_arguments(made))
        arguments = made.compiled.arguments

        back = read(arguments, submission.submission_of(drawn(arguments, sent)))

        assert outcome(arguments, back) == outcome(arguments, sent)

    @settings(max_examples=share(100), deadline=None)
    @given(text=st.text(st.characters() | st.sampled_from("\r\n\0\ud800\u2028<>&\"' \t"), max_size=12))
    @example(text="\n")
    @example(text="\nx")
    @example(text="\r")
    @example(text="")
    def test_of_any_text(self, text):
        """Any text survives it, including leading line ends and characters that HTML cannot hold."""
        for secret in (False, True):
            arguments = arguments_of(Annotated[str, Arg(secret=secret)])

            back = read(arguments, submission.submission_of(drawn(arguments, {"value": text})))

            assert back == {"value": text} or (secret and not text)

    @settings(max_examples=share(60), deadline=None)
    @given(text=st.text(st.characters(exclude_characters="\r\0", exclude_categories=["Cs"]), max_size=12))
    @example(text="")
    def test_of_links(self, text):
        """A link carries any text that browsers send unchanged."""
        arguments = arguments_of(str)

        assert read(arguments, QueryParams(query_of(arguments, {"value": text}))) == {"value": text}

    @TYPED
    def test_of_nothing(self, annotation):
        """A form without values submits none."""
        arguments = arguments_of(annotation)

        assert read(arguments, submission.submission_of(drawn(arguments, {}))) == {}


class TestControls:
    """Each type has a suitable control."""

    @pytest.mark.parametrize(
        ("annotation", "kind", "attributes"),
        [
            (str, "area", {}),
            (int, "line", {"type": "number", "step": "1"}),
            (
                Annotated[int, msgspec.Meta(ge=1, le=9)],
                "line",
                {"type": "number", "min": "1", "max": "9", "step": "1"},
            ),
            (
                Annotated[int, msgspec.Meta(gt=1, lt=9)],
                "line",
                {"type": "number", "min": "2", "max": "8", "step": "1"},
            ),
            (
                Annotated[int, msgspec.Meta(ge=3, multiple_of=5)],
                "line",
                {"type": "number", "min": "3", "step": "1"},
            ),
            (float, "line", {"type": "number", "step": "any"}),
            (Annotated[float, msgspec.Meta(gt=0)], "line", {"type": "number", "min": "0", "step": "any"}),
            (Decimal, "line", {"type": "number", "step": "any"}),
            (dt.date, "line", {"type": "date"}),
            (dt.datetime, "line", {"type": "text"}),
            (dt.time, "line", {"type": "text"}),
            (dt.timedelta, "line", {"type": "text"}),
            (UUID, "line", {"type": "text"}),
            (bytes, "file", {}),
            (Image | None, "file", {}),
            (list[Audio], "file", {}),
            (Workflow, "area", {}),
            (bool, "radios", {}),
            (bool | None, "radios", {}),
            (Tone, "radios", {}),
            (Level, "radios", {}),
            (Corner, "radios", {}),
            (Literal["a", "b", "c", "d", "e"], "select", {}),
            (Literal["a"] | bool, "radios", {}),
            (float | Literal["auto"], "line", {"type": "text"}),
            (list[int], "area", {}),
            (dict[str, int], "area", {}),
            (Point, "area", {}),
            (Point | dict[str, int], "area", {}),
            (Annotated[dict[str, int], msgspec.Meta(min_length=1)], "area", {}),
            (Annotated[str, Arg(secret=True)], "line", {"type": "password", "autocomplete": "off"}),
            (Annotated[int, Arg(secret=True)], "line", {"type": "password", "autocomplete": "off"}),
            (Annotated[str, Arg(complete=["main"])], "line", {"type": "text"}),
        ],
        ids=str,
    )
    def test_by_type(self, annotation, kind, attributes):
        """The type determines the control, its bounds and its step."""
        control = control_of(annotation)

        assert (control.kind, dict(control.attributes)) == (kind, attributes)

    @pytest.mark.parametrize(
        ("annotation", "sent"),
        [
            (dt.date, "2026-01-31"),
            (dt.datetime, "2026-01-31T12:00:00+01:00"),
            (dt.time, "12:30-03:30"),
            (int, "1000"),
            (list[int], "1, 2,3"),
            (list[str], '["a", "b, c"]'),
        ],
        ids=shown,
    )
    def test_values_are_in_their_controls_as_written(self, annotation, sent):
        """A control shows its value as it was sent."""
        assert control_of(annotation, sent).value == sent

    @pytest.mark.parametrize(
        ("annotation", "sent"),
        [
            (dt.date, "soon"),
            (dt.date, "20260131"),
            (int, "five"),
            (int, "1_000"),
            (float, "1e999"),
        ],
        ids=shown,
    )
    def test_what_a_native_control_would_drop_is_a_line_of_text(self, annotation, sent):
        """A value that a native control would drop or rewrite is shown in a text field."""
        control = control_of(annotation, sent)

        assert (control.kind, control.attributes["type"], control.value) == ("line", "text", sent)

    def test_a_choice_is_found_as_people_spell_it(self):
        """A choice is matched without regard to case, and an invalid value is shown as not a choice."""

        def chosen(sent):
            return [(one.value, one.label) for one in control_of(Tone, sent).choices if one.chosen]

        assert chosen("WARM") == [("warm", "warm")]
        assert chosen("wram") == [("wram", "wram (not a choice)")]
        assert chosen(None) == []

    def test_what_may_be_left_out_can_be_left_out(self):
        """The default choice is labelled and submits no value, unless the value was given explicitly."""

        def choices(sent):
            found = control_of(Tone, sent, default=(Tone.COLD,)).choices
            return [(one.value, one.label, one.chosen) for one in found]

        assert choices(None) == [("warm", "warm", False), ("", "Cold (default)", True)]
        assert choices("warm") == [("warm", "warm", True), ("", "Cold (default)", False)]
        assert choices("Cold") == [("warm", "warm", False), ("Cold", "Cold (default)", True)]

    @pytest.mark.parametrize(
        ("annotation", "labels"),
        [
            (Tone, {"warm": "warm", "Cold": "Cold"}),
            (Level, {"1": "LOW (1)", "2": "HIGH (2)"}),
            (Corner, {"LEFT": "LEFT", "RIGHT": "RIGHT"}),
            (Literal[Level.HIGH, 3], {"2": "HIGH (2)", "3": "3"}),
        ],
        ids=str,
    )
    def test_a_number_is_shown_with_its_name(self, annotation, labels):
        """The label of an enum member shows its name next to the value that is sent."""
        assert {one.value: one.label for one in control_of(annotation).choices} == labels

    def test_a_default_is_shown_with_its_name(self):
        """The label of a default also shows the enum member's name."""
        assert control_of(Level, default=(Level.HIGH,)).choices[1].label == "HIGH (2) (default)"

    def test_a_control_is_kept_while_people_type(self):
        """A control's shape changes with its type, choices or file, but not with the typed text."""

        def shape(annotation, sent, **more):
            found = Submission({"value": sent}, **more)
            return forms.fields_of(arguments_of(annotation), found, UPLOADS)[0].shape

        assert shape(list[int], "1, 2") == shape(list[int], "1, x") == shape(list[str], "")
        assert shape(Literal["a", "b"], "a") != shape(Literal["a", "c"], "a")
        assert shape(bytes, "aGk=") != shape(bytes, "aG8=")
        assert shape(str, "x") != shape(str, "x", reads={"value": 1})


class TestAccessibleNames:
    """Assistive technology receives the name, description and errors of each field."""

    @TYPED
    def test_each_control_is_named_and_described(self, annotation):
        """The label is the argument's title, and the description and errors belong to the control."""
        titled = Annotated[annotation, Arg("What it is.", title="The value")]
        arguments = arguments_of(titled)
        html = drawn(arguments, {}, faults_of(arguments, {}))
        tree = submission.parsed(html)
        ids = {one.get("id"): one for one in tree.iter() if one.get("id")}
        (control,) = [one for one in tree.iter() if one.get("aria-errormessage")]
        label = ids["name-of-value"]
        names = {
            label.get("for"),
            *(key for key, one in ids.items() if one.get("aria-labelledby") == label.get("id")),
        }

        assert control.get("id") in names
        assert "".join(label.itertext()) == "The value"
        assert control.get("aria-describedby").split() == ["hint-of-value", "faults-of-value"]
        assert "What it is." in "".join(ids["hint-of-value"].itertext())
        assert ids[control.get("aria-errormessage")].get("aria-live") == "polite"
        assert "is missing" in "".join(ids["faults-of-value"].itertext())

    @pytest.mark.parametrize("sent", [{}, {"value": "x"}, {"value": "\r", "value2": "5", "no such": "1"}])
    def test_ids_are_unique(self, sent):
        """Ids are unique on a page, and every label refers to a control."""

        @prompt
        def many(
            value: str, value2: Annotated[int, Arg(complete=[1])] = 1, value3: dt.datetime | None = None
        ):
            return value

        tree = submission.parsed(drawn(many.compiled.arguments, sent))
        ids = [one.get("id") for one in tree.iter() if one.get("id")]

        assert len(ids) == len(set(ids))
        assert {one.get("for") for one in tree.iter("label") if one.get("for")} <= set(ids)

    def test_hostile_text_is_text(self):
        """Hostile values, titles and errors create no elements or attributes."""
        evil = '"><script>alert(1)</script><img src=x onerror=alert(1)>'
        titled = Annotated[Literal["a", "b"], Arg(evil, title=evil, examples=["a"])]

        for kind in (titled, str, int, list[str]):
            arguments = arguments_of(kind)
            sent = {"value": evil, evil: evil}
            tree = submission.parsed(drawn(arguments, sent, faults_of(arguments, sent)))

            assert {one.tag for one in tree.iter()} & {"script", "img"} == set()
            assert [key for one in tree.iter() for key in one.attrib if key.startswith("on")] == []


class TestFaults:
    """Errors are shown at their fields, with their locations."""

    @pytest.mark.parametrize(
        ("annotation", "sent", "told"),
        [
            (int, "five", "'value' is 'five', not a whole number"),
            (list[int], "1\n\nx\n", "'value[1]' is 'x', not a whole number"),
            (list[int], "1, x", "'value[1]' is 'x', not a whole number"),
            (Point, '{\n  "x": "a"\n}', "'value.x' is 'a', not a whole number"),
            (dict[str, int], '{"a" 1}', "is JSON that cannot be read at line 1, column 6: "),
        ],
        ids=shown,
    )
    def test_the_place_is_told(self, annotation, sent, told):
        """The error names the item of a list, the member of JSON, or the position of a syntax error."""
        arguments = arguments_of(annotation)
        (field,) = fields_of(arguments, {"value": sent}, faults_of(arguments, {"value": sent}))

        (fault,) = field.faults
        assert told in fault

    def test_a_secret_is_not_told(self):
        """An error of a secret shows neither its value nor a location in it."""
        arguments = arguments_of(Annotated[Point, Arg(secret=True)])
        sent = {"value": '{"x": "hunter2"}'}
        (field,) = fields_of(arguments, sent, faults_of(arguments, sent))

        assert [fault for fault in field.faults if "hunter2" in fault or "line" in fault] == []
        assert field.faults

    def test_unknown_arguments_have_fields(self):
        """An unknown argument has a field with an error, and disappears once the field is empty."""
        arguments = arguments_of(int)
        sent = {"value": "1", "vlaue": "2"}
        fields = fields_of(arguments, sent, faults_of(arguments, sent))
        html = drawn(arguments, sent, faults_of(arguments, sent))

        assert [(one.name, one.is_unknown) for one in fields] == [("value", False), ("vlaue", True)]
        assert fields[1].faults == ("'vlaue' is not an argument of this prompt (did you mean 'value'?)",)
        assert read(arguments, submission.submission_of(html)) == sent
        assert read(arguments, FormData([("value", "1"), ("vlaue", "")])) == {"value": "1"}


class TestLinks:
    """The address holds the arguments."""

    def test_secrets_and_uploads_are_left_out(self):
        """Secrets, uploads and very long texts are omitted from the address."""

        @prompt
        def many(
            *,
            code: str,
            token: Annotated[str, Arg(secret=True)],
            image: bytes,
            images: list[bytes],
            when: dt.datetime,
            text: str = "",
        ):
            return code

        given = {
            "code": "a=1&b",
            "token": "hunter2",
            "image": "aGk=",
            "images": "aGk=",
            "when": "2026-01-31T12:00+01:00",
            "text": "x" * 6000,
        }

        assert query_of(many.compiled.arguments, given) == "code=a%3D1%26b&when=2026-01-31T12%3A00%2B01%3A00"


def upload(name, data, field="value"):
    return (f"{field}.file", UploadFile(BytesIO(data), filename=name, size=len(data), headers=Headers()))


class TestUploads:
    """A file fills an argument with the text that a client would send."""

    @pytest.mark.parametrize(
        ("annotation", "data", "sent"),
        [
            (bytes, b"\x00\xff", "AP8="),
            (bytes | None, b"hi", "aGk="),
            (str, "è\r\nx".encode(), "è\nx"),
            (str, b"\xef\xbb\xbfx", "x"),
            (Point, b'{"x": 1}', '{"x": 1}'),
        ],
        ids=shown,
    )
    def test_a_file_is_base64_or_text(self, annotation, data, sent):
        """A file for bytes is sent as base64; for other types it is sent as text."""
        arguments = arguments_of(annotation)
        found = submission_of(arguments, FormData([("value", "old"), upload("a.txt", data)]))

        assert (found.given, found.faults) == ({"value": sent}, ())
        is_hidden = annotation in (bytes, bytes | None)
        assert [one.files for one in found.uploads.values()] == [("a.txt",)] * is_hidden
        assert found.reads == ({} if is_hidden else {"value": 1})

    def test_several_files_are_a_list(self):
        """A list of bytes accepts several files."""
        arguments = arguments_of(list[bytes])
        form = FormData([upload("a", b"1"), upload("b", b"2")])

        assert arguments.read(read(arguments, form)) == {"value": [b"1", b"2"]}

    @pytest.mark.parametrize(
        ("data", "told"),
        [
            (b"ab\xff", "cannot be read from 'a.txt': it is not UTF-8 text (byte 3)"),
            (b"x" * (MAX_UPLOAD_SIZE + 1), "is too large: the preview takes files of at most 4 MiB"),
        ],
        ids=["no text", "too large"],
    )
    def test_what_cannot_be_sent_is_a_fault(self, data, told):
        """A file that is too large or not text is an error at its field, which keeps its value."""
        arguments = arguments_of(str)
        found = submission_of(arguments, FormData([("value", "old"), upload("a.txt", data)]))

        assert [(fault.argument, fault.reason) for fault in found.faults] == [("value", told)]
        assert found.given == {"value": "old"}

    def test_an_empty_chooser_is_no_file(self):
        """An upload without a file name, as browsers send for an empty file chooser, is ignored."""
        arguments = arguments_of(bytes)

        assert read(arguments, FormData([upload("", b"")])) == {}

    @pytest.mark.parametrize("annotation", [bytes, str, list[bytes]], ids=str)
    def test_what_was_uploaded_is_kept(self, annotation):
        """An uploaded file is submitted again with its name."""
        arguments = arguments_of(annotation)
        first = submission_of(arguments, FormData([upload("a.bin", b"hello")]))
        html = drawn_again(arguments, first)
        second = submission_of(arguments, submission.submission_of(html))

        assert (second.given, second.uploads) == (first.given, first.uploads)
        assert ("a.bin" in html, "5 bytes" in html) == (annotation is not str,) * 2

    @pytest.mark.parametrize(
        ("annotation", "data"),
        [(bytes, b"\xff"), (list[bytes], b"x"), (str, b"\0")],
    )
    def test_a_form_holds_its_digest_alone(self, annotation, data):
        """The form refers to a large upload by a digest, so that it stays small."""
        arguments = arguments_of(annotation)
        found = submission_of(arguments, FormData([upload("a.bin", data * 100_000)]))

        assert len(found.given["value"]) >= 100_000
        assert len(drawn_again(arguments, found)) < 3_000

    @pytest.mark.parametrize("annotation", [bytes, str])
    @pytest.mark.parametrize(
        "sent", [upload("a.txt", b"\xff" * (MAX_UPLOAD_SIZE + 1)), ("value.oversized", "9000000 my a.txt")]
    )
    def test_what_cannot_be_sent_stays_at_its_field(self, annotation, sent):
        """An upload error is repeated with each submission until another file is chosen."""
        arguments = arguments_of(annotation)
        first = submission_of(arguments, FormData([sent]))
        html = drawn_again(arguments, first)
        second = submission_of(arguments, submission.submission_of(html))
        other = FormData([*submission.submission_of(html).multi_items(), upload("b.txt", b"x")])

        assert "a.txt" in html
        assert [fault.reason for fault in second.faults] == [
            "is too large: the preview takes files of at most 4 MiB"
        ]
        assert submission_of(arguments, other).faults == ()

    def test_what_is_not_kept_is_to_be_chosen_again(self):
        """An evicted upload is reported as expired, with each submission."""
        arguments = arguments_of(bytes)
        html = drawn_again(arguments, submission_of(arguments, FormData([upload("a.txt", b"x")])))
        for _ in range(2):
            found = submission_of(arguments, submission.submission_of(html), Uploads())
            html = drawn_again(arguments, found, Uploads())

            assert found.given == {}
            assert "&#39;value&#39; has expired: choose the file again" in html

    def test_uploads_are_bounded(self, monkeypatch):
        """The least recently used uploads are evicted."""
        monkeypatch.setattr("promptkit.preview.media._MOST_KEPT", 3_000)
        arguments, uploads = arguments_of(bytes), Uploads()
        forms_of = {}
        for name in ("a", "b", "c"):
            found = submission_of(arguments, FormData([upload(name, name.encode())]), uploads)
            forms_of[name] = submission.submission_of(drawn_again(arguments, found, uploads))
            submission_of(arguments, forms_of["a"], uploads)

        kept = {name: submission_of(arguments, form, uploads).given for name, form in forms_of.items()}
        assert kept == {"a": {"value": "YQ=="}, "b": {}, "c": {"value": "Yw=="}}

    @pytest.mark.parametrize(
        ("annotation", "sent", "size"),
        [(bytes, "aGk=", 2), (bytes, "data:,h%69", 2), (str, "a\r\nb", 4), (bytes, "***", 3)],
        ids=shown,
    )
    def test_the_size_of_what_is_kept(self, annotation, sent, size):
        """The size of an upload is that of its value, regardless of the encoding."""
        (field,) = fields_of(arguments_of(annotation), {"value": sent})

        assert field.upload.size == size

    def test_an_unknown_field_takes_no_file(self):
        """A file for an unknown argument is ignored."""
        assert read(arguments_of(int), FormData([upload("a", b"1", "other")])) == {}


def test_names_of_controls_belong_to_an_argument():
    """Each control is named after its argument, optionally followed by a dot and a word."""
    for annotation in TYPES:
        html = drawn(arguments_of(annotation), {})
        names = [one.get("name") for one in submission.parsed(html).iter() if one.get("name")]

        assert [name for name in names if not re.fullmatch(r"value(\.\w+)?", name)] == []


def test_any_query_is_read():
    """A malformed query is ignored and never fails."""
    arguments = arguments_of(str)

    for query in (
        ".=1",
        "=",
        "a.b.c=1",
        "value.reads=x",
        "value.upload=x",
        "value.oversized=x",
        "value.oversized=",
    ):
        assert read(arguments, QueryParams(query)) == {}

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
from promptkit.preview.forms import Submission, build_query
from promptkit.preview.media import MAX_UPLOAD_SIZE, UploadStore
from promptkit.preview.templating import environment
from promptkit.testing import wire_arguments
from tests.ids import stable_repr
from tests.laws.test_types import TYPES, share
from tests.preview import submission
from tests.sample_types import Corner, Level, Point, Tone, Urgency
from tests.types.test_type_table import FAULTS, VALUES

#: Every type of the type table, with a text that a client can send for it.
SENT = [(kind, sent) for kind, sent, *_ in [*VALUES, *FAULTS, (list[str], "[1]")] if isinstance(sent, str)]
TYPED = pytest.mark.parametrize("annotation", TYPES, ids=str)


#: An upload store shared by all tests.
UPLOADS = UploadStore()


def build_fields(arguments, sent, errors=()):
    return forms.build_fields(arguments, Submission(sent), UPLOADS, errors)


def read_submission(arguments, form, uploads=UPLOADS):
    return forms.read_submission(arguments, form, uploads)


def read_values(arguments, form):
    return dict(forms.read_submission(arguments, form, UPLOADS).values)


def render_reply(arguments, submitted, uploads=UPLOADS):
    """Return the HTML of the form that answers a submission."""
    template = environment().get_template("fields.html").module
    fields = forms.build_fields(arguments, submitted, uploads, submitted.errors)
    return str(template.form("/prompts/typed", fields))


def make_prompt(annotation, default=None):
    """Return a prompt with one parameter of a type."""

    def typed(value) -> str:
        return str(value)

    typed.__annotations__["value"] = annotation
    if default is not None:
        typed.__defaults__ = default
    return prompt(typed)


def make_arguments(annotation, **options):
    return make_prompt(annotation, **options).compiled.arguments


def render_form(arguments, sent, errors=()):
    """Return the HTML of a form."""
    template = environment().get_template("fields.html").module
    return str(template.form("/prompts/typed", build_fields(arguments, sent, errors)))


def collect_errors(arguments, sent):
    try:
        arguments.read(sent)
    except ArgumentsError as errors:
        return errors.errors
    return ()


def describe_outcome(arguments, sent):
    """Return the values that a prompt reads, or its errors without the quoted values."""
    try:
        values = arguments.read(sent)
    except ArgumentsError as errors:
        return [(error.argument, error.path, error.expected) for error in errors.errors]
    return {name: (type(value), value, getattr(value, "tzinfo", None)) for name, value in values.items()}


def build_control(annotation, sent=None, **options):
    (field,) = build_fields(make_arguments(annotation, **options), {} if sent is None else {"value": sent})
    return field.control


class TestRoundTrip:
    """A browser sends back the values of the form unchanged, so the prompt reads the same arguments."""

    @pytest.mark.parametrize(("annotation", "sent"), SENT, ids=lambda value: stable_repr(value)[:40])
    def test_type_table_survives(self, annotation, sent, monkeypatch):
        """Every string in the type table, valid or invalid, survives a round trip through the form."""
        monkeypatch.setenv("DEPTH", "3")
        arguments = make_arguments(annotation)

        values = read_values(arguments, submission.collect_form_data(render_form(arguments, {"value": sent})))

        assert describe_outcome(arguments, values) == describe_outcome(arguments, {"value": sent})

    @TYPED
    @settings(max_examples=share(16), suppress_health_check=[HealthCheck.too_slow], deadline=None)
    @given(data=st.data())
    def test_generated_value_survives(self, annotation, data):
        """Any value that a client can send for any type survives the round trip, required or optional."""
        default = data.draw(st.sampled_from([None, (None,)]))
        typed = make_prompt(annotation | None if default else annotation, default)
        sent = data.draw(wire_arguments(typed))
        arguments = typed.compiled.arguments

        values = read_values(arguments, submission.collect_form_data(render_form(arguments, sent)))

        assert describe_outcome(arguments, values) == describe_outcome(arguments, sent)

    @settings(max_examples=share(100), deadline=None)
    @given(text=st.text(st.characters() | st.sampled_from("\r\n\0\ud800\u2028<>&\"' \t"), max_size=12))
    @example(text="\n")
    @example(text="\nx")
    @example(text="\r")
    @example(text="")
    def test_any_text_survives(self, text):
        """Any text survives, including leading line ends and characters that HTML cannot hold."""
        for secret in (False, True):
            arguments = make_arguments(Annotated[str, Arg(secret=secret)])

            values = read_values(
                arguments, submission.collect_form_data(render_form(arguments, {"value": text}))
            )

            assert values == {"value": text} or (secret and not text)

    @settings(max_examples=share(60), deadline=None)
    @given(text=st.text(st.characters(exclude_characters="\r\0", exclude_categories=["Cs"]), max_size=12))
    @example(text="")
    def test_link_carries_any_text(self, text):
        """A link carries any text that browsers do not change."""
        arguments = make_arguments(str)

        assert read_values(arguments, QueryParams(build_query(arguments, {"value": text}))) == {"value": text}

    @TYPED
    def test_empty_form_submits_nothing(self, annotation):
        """A form without values submits no values."""
        arguments = make_arguments(annotation)

        assert read_values(arguments, submission.collect_form_data(render_form(arguments, {}))) == {}


class TestCheckboxes:
    """A list of choices is a group of checkboxes, which send one value each."""

    @staticmethod
    def arguments(annotation=list[Literal["fast", "safe", "small"]]):
        """Return the arguments of a prompt with a list."""

        @prompt
        def choose(goals: annotation):
            return ", ".join(map(str, goals)) or "none"

        return choose.compiled.arguments

    @pytest.mark.parametrize("sent", ["", "safe", "fast, small", "fast,small"])
    def test_checked_values_are_sent_back(self, sent):
        """The page sends back the value that it shows."""
        arguments = self.arguments()
        html = render_reply(arguments, Submission({"goals": sent} if sent else {}))
        checked = re.findall(r'type="checkbox" name="goals" value="(\w+)" checked', html)
        values = read_values(arguments, FormData([("goals", value) for value in checked]))

        assert html.count('type="checkbox" name="goals" value=') == 3
        assert values == ({"goals": ", ".join(re.split(", ?", sent))} if sent else {})

    @pytest.mark.parametrize("sent", ["small, fast", "fast, fast", "fast, tiny"])
    def test_other_values_are_text(self, sent):
        """A value in another order, or an invalid one, is shown as text, which is sent unchanged."""
        html = render_reply(self.arguments(), Submission({"goals": sent}))

        assert "<textarea" in html
        assert 'name="goals" value=' not in html

    def test_members_of_enumerations(self):
        """Enumerations work like literals."""
        html = render_reply(self.arguments(list[Tone]), Submission({}))

        assert html.count('type="checkbox" name="goals" value=') == len(Tone)


class TestControls:
    """Each type has a suitable control."""

    @pytest.mark.parametrize(
        ("annotation", "kind", "attributes"),
        [
            (str, "area", {}),
            (int, "line", {"type": "number", "step": "1"}),
            (Annotated[int, msgspec.Meta(ge=1, le=9)], "line", {"type": "number", "step": "1"}),
            (float, "line", {"type": "number", "step": "any"}),
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
    def test_type_determines_the_control(self, annotation, kind, attributes):
        """The type determines the control and its step."""
        control = build_control(annotation)

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
        ids=stable_repr,
    )
    def test_control_shows_the_value_as_sent(self, annotation, sent):
        """A control shows its value as it was sent."""
        assert build_control(annotation, sent).value == sent

    @pytest.mark.parametrize(
        ("annotation", "sent"),
        [
            (dt.date, "soon"),
            (dt.date, "20260131"),
            (int, "five"),
            (int, "1_000"),
            (float, "1e999"),
        ],
        ids=stable_repr,
    )
    def test_invalid_value_is_shown_in_a_text_field(self, annotation, sent):
        """A value that a native control would drop or rewrite is shown in a text field."""
        control = build_control(annotation, sent)

        assert (control.kind, control.attributes["type"], control.value) == ("line", "text", sent)

    def test_choice_ignores_case(self):
        """
        A choice is matched without regard to case, and an invalid value is labelled as an invalid choice.
        """

        def list_chosen(sent):
            return [
                (choice.value, choice.label)
                for choice in build_control(Tone, sent).choices
                if choice.is_selected
            ]

        assert list_chosen("WARM") == [("warm", "warm")]
        assert list_chosen("wram") == [("wram", "wram (invalid choice)")]
        assert list_chosen(None) == []

    def test_default_choice_submits_no_value(self):
        """The default choice is labelled and submits no value, unless the value was given explicitly."""

        def list_choices(sent):
            choices = build_control(Tone, sent, default=(Tone.COLD,)).choices
            return [(choice.value, choice.label, choice.is_selected) for choice in choices]

        assert list_choices(None) == [("warm", "warm", False), ("", "Cold (default)", True)]
        assert list_choices("warm") == [("warm", "warm", True), ("", "Cold (default)", False)]
        assert list_choices("Cold") == [("warm", "warm", False), ("Cold", "Cold (default)", True)]

    @pytest.mark.parametrize(
        ("annotation", "labels"),
        [
            (Tone, {"warm": "warm", "Cold": "Cold"}),
            (Level, {"LOW": "LOW", "HIGH": "HIGH"}),
            (Urgency, {"soon": "soon: Within a day", "later": "later"}),
            (Corner, {"LEFT": "LEFT", "RIGHT": "RIGHT"}),
            (Literal[Level.HIGH, 3], {"HIGH": "HIGH", "3": "3"}),
        ],
        ids=str,
    )
    def test_label_of_a_choice_shows_its_text_and_its_meaning(self, annotation, labels):
        """The label of a choice is the text that is sent, and the meaning of an enum member."""
        assert {choice.value: choice.label for choice in build_control(annotation).choices} == labels

    def test_shape_ignores_typed_text(self):
        """A control's shape changes with its type, choices or file, but not with the typed text."""

        def compute_shape(annotation, sent, **more):
            submitted = Submission({"value": sent}, **more)
            return forms.build_fields(make_arguments(annotation), submitted, UPLOADS)[0].shape

        assert (
            compute_shape(list[int], "1, 2")
            == compute_shape(list[int], "1, x")
            == compute_shape(list[str], "")
        )
        assert compute_shape(Literal["a", "b"], "a") != compute_shape(Literal["a", "c"], "a")
        assert compute_shape(bytes, "aGk=") != compute_shape(bytes, "aG8=")
        assert compute_shape(str, "x") != compute_shape(str, "x", read_counts={"value": 1})


class TestAccessibleNames:
    """Assistive technology receives the name, description and errors of each field."""

    @TYPED
    def test_control_has_name_description_and_errors(self, annotation):
        """The label is the argument's title, and the description and errors belong to the control."""
        titled = Annotated[annotation, Arg("A description.", title="The value")]
        arguments = make_arguments(titled)
        html = render_form(arguments, {}, collect_errors(arguments, {}))
        tree = submission.parse_html(html)
        ids = {element.get("id"): element for element in tree.iter() if element.get("id")}
        (control,) = [element for element in tree.iter() if element.get("aria-errormessage")]
        label = ids["name-of-value"]
        names = {
            label.get("for"),
            *(key for key, element in ids.items() if element.get("aria-labelledby") == label.get("id")),
        }

        assert control.get("id") in names
        assert "".join(label.itertext()) == "The value"
        assert control.get("aria-describedby").split() == ["hint-of-value", "errors-of-value"]
        assert "A description." in "".join(ids["hint-of-value"].itertext())
        assert ids[control.get("aria-errormessage")].get("aria-live") == "polite"
        assert "is missing" in "".join(ids["errors-of-value"].itertext())

    @pytest.mark.parametrize("sent", [{}, {"value": "x"}, {"value": "\r", "value2": "5", "no such": "1"}])
    def test_ids_are_unique(self, sent):
        """Ids are unique on a page, and every label refers to a control."""

        @prompt
        def many(
            value: str, value2: Annotated[int, Arg(complete=[1])] = 1, value3: dt.datetime | None = None
        ):
            return value

        tree = submission.parse_html(render_form(many.compiled.arguments, sent))
        ids = [element.get("id") for element in tree.iter() if element.get("id")]

        assert len(ids) == len(set(ids))
        assert {element.get("for") for element in tree.iter("label") if element.get("for")} <= set(ids)

    def test_hostile_text_is_escaped(self):
        """Hostile values, titles and errors create no elements or attributes."""
        evil = '"><script>alert(1)</script><img src=x onerror=alert(1)>'
        titled = Annotated[Literal["a", "b"], Arg(evil, title=evil, examples=["a"])]

        for kind in (titled, str, int, list[str]):
            arguments = make_arguments(kind)
            sent = {"value": evil, evil: evil}
            tree = submission.parse_html(render_form(arguments, sent, collect_errors(arguments, sent)))

            assert {element.tag for element in tree.iter()} & {"script", "img"} == set()
            assert [key for element in tree.iter() for key in element.attrib if key.startswith("on")] == []


class TestErrors:
    """Errors are shown at their fields, with their locations."""

    @pytest.mark.parametrize(
        ("annotation", "sent", "message"),
        [
            (int, "five", "'value' is 'five', not a whole number"),
            (list[int], "1\n\nx\n", "'value[1]' is 'x', not a whole number"),
            (list[int], "1, x", "'value[1]' is 'x', not a whole number"),
            (Point, '{\n  "x": "a"\n}', "'value.x' is 'a', not a whole number"),
            (dict[str, int], '{"a" 1}', "is not valid JSON at line 1, column 6: "),
        ],
        ids=stable_repr,
    )
    def test_error_names_its_location(self, annotation, sent, message):
        """The error names the item of a list, the member of JSON, or the position of a syntax error."""
        arguments = make_arguments(annotation)
        (field,) = build_fields(arguments, {"value": sent}, collect_errors(arguments, {"value": sent}))

        (error,) = field.errors
        assert message in error

    def test_error_of_a_secret_hides_its_value(self):
        """An error of a secret shows neither its value nor a location in it."""
        arguments = make_arguments(Annotated[Point, Arg(secret=True)])
        sent = {"value": '{"x": "hunter2"}'}
        (field,) = build_fields(arguments, sent, collect_errors(arguments, sent))

        assert [error for error in field.errors if "hunter2" in error or "line" in error] == []
        assert field.errors

    def test_unknown_argument_has_a_field(self):
        """An unknown argument has a field with an error, and disappears once the field is empty."""
        arguments = make_arguments(int)
        sent = {"value": "1", "vlaue": "2"}
        fields = build_fields(arguments, sent, collect_errors(arguments, sent))
        html = render_form(arguments, sent, collect_errors(arguments, sent))

        assert [(field.name, field.is_unknown) for field in fields] == [("value", False), ("vlaue", True)]
        assert fields[1].errors == ("'vlaue' is not an argument of this prompt (did you mean 'value'?)",)
        assert read_values(arguments, submission.collect_form_data(html)) == sent
        assert read_values(arguments, FormData([("value", "1"), ("vlaue", "")])) == {"value": "1"}


class TestLinks:
    """The address holds the arguments."""

    def test_secrets_and_uploads_are_omitted(self):
        """Secrets, uploads and very long strings are omitted from the address."""

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

        values = {
            "code": "a=1&b",
            "token": "hunter2",
            "image": "aGk=",
            "images": "aGk=",
            "when": "2026-01-31T12:00+01:00",
            "text": "x" * 6000,
        }

        assert (
            build_query(many.compiled.arguments, values) == "code=a%3D1%26b&when=2026-01-31T12%3A00%2B01%3A00"
        )


def make_upload(name, data, field="value"):
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
        ids=stable_repr,
    )
    def test_file_is_sent_as_base64_or_text(self, annotation, data, sent):
        """A file for bytes is sent as base64; for other types it is sent as text."""
        arguments = make_arguments(annotation)
        submitted = read_submission(arguments, FormData([("value", "old"), make_upload("a.txt", data)]))

        assert (submitted.values, submitted.errors) == ({"value": sent}, ())
        is_hidden = annotation in (bytes, bytes | None)
        assert [upload.files for upload in submitted.uploads.values()] == [("a.txt",)] * is_hidden
        assert submitted.read_counts == ({} if is_hidden else {"value": 1})

    def test_list_accepts_several_files(self):
        """A list of bytes accepts several files."""
        arguments = make_arguments(list[bytes])
        form = FormData([make_upload("a", b"1"), make_upload("b", b"2")])

        assert arguments.read(read_values(arguments, form)) == {"value": [b"1", b"2"]}

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (b"ab\xff", "cannot be read from 'a.txt': it is not UTF-8 text (byte 3)"),
            (b"x" * (MAX_UPLOAD_SIZE + 1), "is too large: the preview accepts files of up to 4 MiB"),
        ],
        ids=["no text", "too large"],
    )
    def test_unusable_file_is_an_error(self, data, reason):
        """A file that is too large or not text is an error at its field, which keeps its value."""
        arguments = make_arguments(str)
        submitted = read_submission(arguments, FormData([("value", "old"), make_upload("a.txt", data)]))

        assert [(error.argument, error.reason) for error in submitted.errors] == [("value", reason)]
        assert submitted.values == {"value": "old"}

    def test_empty_file_chooser_is_ignored(self):
        """An upload without a file name, as browsers send for an empty file chooser, is ignored."""
        arguments = make_arguments(bytes)

        assert read_values(arguments, FormData([make_upload("", b"")])) == {}

    @pytest.mark.parametrize("annotation", [bytes, str, list[bytes]], ids=str)
    def test_upload_is_submitted_again(self, annotation):
        """An uploaded file is submitted again with its name."""
        arguments = make_arguments(annotation)
        first = read_submission(arguments, FormData([make_upload("a.bin", b"hello")]))
        html = render_reply(arguments, first)
        second = read_submission(arguments, submission.collect_form_data(html))

        assert (second.values, second.uploads) == (first.values, first.uploads)
        assert ("a.bin" in html, "5 bytes" in html) == (annotation is not str,) * 2

    @pytest.mark.parametrize(
        ("annotation", "data"),
        [(bytes, b"\xff"), (list[bytes], b"x"), (str, b"\0")],
    )
    def test_large_upload_is_referred_to_by_digest(self, annotation, data):
        """The form refers to a large upload by a digest, so that it stays small."""
        arguments = make_arguments(annotation)
        submitted = read_submission(arguments, FormData([make_upload("a.bin", data * 100_000)]))

        assert len(submitted.values["value"]) >= 100_000
        assert len(render_reply(arguments, submitted)) < 3_000

    @pytest.mark.parametrize("annotation", [bytes, str])
    @pytest.mark.parametrize(
        "sent",
        [make_upload("a.txt", b"\xff" * (MAX_UPLOAD_SIZE + 1)), ("value.oversized", "9000000 my a.txt")],
    )
    def test_upload_error_is_repeated(self, annotation, sent):
        """An upload error is repeated with each submission until another file is chosen."""
        arguments = make_arguments(annotation)
        first = read_submission(arguments, FormData([sent]))
        html = render_reply(arguments, first)
        second = read_submission(arguments, submission.collect_form_data(html))
        other = FormData([*submission.collect_form_data(html).multi_items(), make_upload("b.txt", b"x")])

        assert "a.txt" in html
        assert [error.reason for error in second.errors] == [
            "is too large: the preview accepts files of up to 4 MiB"
        ]
        assert read_submission(arguments, other).errors == ()

    def test_evicted_upload_is_reported_as_expired(self):
        """An evicted upload is reported as expired, with each submission."""
        arguments = make_arguments(bytes)
        html = render_reply(arguments, read_submission(arguments, FormData([make_upload("a.txt", b"x")])))
        for _ in range(2):
            submitted = read_submission(arguments, submission.collect_form_data(html), UploadStore())
            html = render_reply(arguments, submitted, UploadStore())

            assert submitted.values == {}
            assert "&#39;value&#39; has expired: choose the file again" in html

    def test_least_recently_used_uploads_are_evicted(self, monkeypatch):
        """The least recently used uploads are evicted."""
        monkeypatch.setattr("promptkit.preview.media._MAX_UPLOAD_CHARS", 3_000)
        arguments, uploads = make_arguments(bytes), UploadStore()
        forms_by_name = {}
        for name in ("a", "b", "c"):
            submitted = read_submission(arguments, FormData([make_upload(name, name.encode())]), uploads)
            forms_by_name[name] = submission.collect_form_data(render_reply(arguments, submitted, uploads))
            read_submission(arguments, forms_by_name["a"], uploads)

        values_by_name = {
            name: read_submission(arguments, form, uploads).values for name, form in forms_by_name.items()
        }
        assert values_by_name == {"a": {"value": "YQ=="}, "b": {}, "c": {"value": "Yw=="}}

    @pytest.mark.parametrize(
        ("annotation", "sent", "size"),
        [(bytes, "aGk=", 4), (str, "a\r\nb", 4)],
        ids=stable_repr,
    )
    def test_size_of_a_value_is_the_size_of_the_sent_text(self, annotation, sent, size):
        """The size of a value that was not read from a file is the size of the text that a client sends."""
        (field,) = build_fields(make_arguments(annotation), {"value": sent})

        assert field.upload.size == size

    def test_file_for_an_unknown_argument_is_ignored(self):
        """A file for an unknown argument is ignored."""
        assert read_values(make_arguments(int), FormData([make_upload("a", b"1", "other")])) == {}


def test_controls_are_named_after_their_argument():
    """Each control is named after its argument, optionally followed by a dot and a word."""
    for annotation in TYPES:
        html = render_form(make_arguments(annotation), {})
        names = [element.get("name") for element in submission.parse_html(html).iter() if element.get("name")]

        assert [name for name in names if not re.fullmatch(r"value(\.\w+)?", name)] == []


def test_malformed_query_is_ignored():
    """A malformed query is ignored and never fails."""
    arguments = make_arguments(str)

    for query in (
        ".=1",
        "=",
        "a.b.c=1",
        "value.reads=x",
        "value.upload=x",
        "value.oversized=x",
        "value.oversized=",
    ):
        assert read_values(arguments, QueryParams(query)) == {}

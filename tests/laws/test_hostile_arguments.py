"""Hostile arguments: each gives a value or one clear error, without delay."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

import pytest

from promptkit import prompt, resource
from promptkit.compiler.compilation import compile
from promptkit.errors import ArgumentsError, UnknownPromptError, UnknownResourceError
from promptkit.errors.suggestions import nearest
from promptkit.loader.recipes import Recipes
from tests.wire import MODERN, Client, line, request

pytestmark = pytest.mark.timeout(20)

MEGABYTE = 1_000_000


@dataclass
class Point:
    x: int
    y: float = 0.0


@dataclass
class Tree:
    name: str
    children: "list[Tree]"


TYPES = {
    "str": str,
    "int": int,
    "float": float,
    "Decimal": Decimal,
    "choice": Literal["red", "green"],
    "numbers": list[int],
    "words": list[str],
    "anything": dict,
    "sizes": dict[str, int],
    "by_number": dict[int, str],
    "Point": Point,
    "Tree": Tree,
    "bytes": bytes,
    "either": int | list[int],
}


def prompt_with_parameter(name, annotation):
    """Return a prompt with one parameter of a type, which renders the name of its value's type."""

    def render_type(value):
        return type(value).__name__

    render_type.__name__ = render_type.__qualname__ = name
    render_type.__annotations__ = {"value": annotation}
    return prompt(render_type)


@resource("notes:///{name}")
def notes(name: str) -> str:
    return name


CATALOG = compile(
    Recipes(prompts=tuple(prompt_with_parameter(*item) for item in TYPES.items()), resources=(notes,)),
)


def nested(depth, value=None):
    """Return a list nested *depth* levels deep."""
    for _ in range(depth):
        value = [value]
    return value


#: Text that a client can send for a value of any type.
TEXTS = {
    "NUL": "\0",
    "control characters": "\x1b[2J\x07\r\n",
    "NaN": "NaN",
    "negative infinity": "-Infinity",
    "NaN in JSON": '{"x": NaN}',
    "infinity in JSON": "[Infinity]",
    "ten thousand digits": "1" * 10_000,
    "a million digits": "1" * MEGABYTE,
    "ten thousand digits in JSON": '{"x": %s}' % ("1" * 10_000),
    "a list of ten thousand digits": f"[{'1' * 10_000}]",
    "float beyond floats": "1e999999",
    "float beyond floats in JSON": "[1e999999]",
    "exponent beyond Decimals": f"1E+{'9' * 30}",
    "tiny beyond Decimals": f"1E-{'9' * 30}",
    "duplicate keys": '{"x": 1, "x": 2}',
    "deep list": "[" * 100_000 + "]" * 100_000,
    "deep list without an end": "[" * 100_000,
    "deep object": '{"x":' * 100_000 + "1" + "}" * 100_000,
    "deep enough for Python": "[" * 900 + "]" * 900,
    "deep tree": '{"name":"a","children":[' * 300 + "]}" * 300,
    "half a pair in JSON": '["\\ud800"]',
    "half a pair as a key": '{"\\ud800": 1}',
    "data: URI without a comma": "data:;base64",
    "data: URI of bad base64": "data:;base64,////////_",
    "data: URI of bytes that are not UTF-8": "data:text/plain;base64,//79",
    "data: URI of escaped bytes": "data:,%FF%FE%00",
    "data: URI of bad escapes": "data:,%zz%",
    "megabytes of base64": "A" * 2 * MEGABYTE,
    "megabytes of bad base64": "A" * 2 * MEGABYTE + "!",
    "a megabyte of blanks": " " * MEGABYTE,
    "a megabyte of commas": "," * MEGABYTE,
    "a megabyte of text": "x" * MEGABYTE,
    "a key of a megabyte": '{"%s": "x"}' % ("k" * MEGABYTE),
    "digits of another script": "١٢٣",
    "full-width digits": "\uff11\uff12",
    "digits in groups": "1_000",
    "hexadecimal": "0x10",
    "code": "__import__('os').system('true')",
    "template": "{value.__class__.__mro__} %s ${x}",
}

#: Values that only a caller in the same process can pass, because JSON cannot represent them.
VALUES = {
    "half a pair": "\ud800",
    "half a pair in a list": ["\ud800"],
    "half a pair as a key": {"\ud800": 1},
    "half a pair in text that is JSON": '["\ud800"]',
    "half a pair in a data: URI": "data:\ud800,\ud800",
    "half a pair in base64": "QUJD\ud800",
    "NaN": float("nan"),
    "infinity": float("inf"),
    "NaN in a list": [float("nan")],
    "NaN in an object": {"x": float("nan"), "y": float("nan")},
    "a list in itself, almost": nested(5),
    "deep": nested(100_000),
    "bytes": b"\xff",
    "object": object,
    "key that is not text": {1: 1, None: 2},
}


def render_or_error(name, value):
    """Return a prompt's rendering for a value, or the error; no other exception is allowed."""
    try:
        return CATALOG.render(name, {"value": value})
    except ArgumentsError as error:
        return error


class TestValues:
    @pytest.mark.parametrize("value", [*TEXTS.values(), *VALUES.values()], ids=[*TEXTS, *VALUES])
    def test_every_value_gives_a_rendering_or_a_short_error(self, value):
        """No value crashes a reader or occupies it for long, and no error grows with the value."""
        for name in TYPES:
            result = render_or_error(name, value)

            if isinstance(result, ArgumentsError):
                assert all(error.argument == "value" for error in result.errors)
                assert max(len(str(error) + str(error.as_data())) for error in result.errors) < 2000

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
    def test_server_answers_every_request(self, text):
        """Every request gets one valid reply, and the next request is served."""
        client = Client(CATALOG, MODERN)

        replies = [client.get(name, value=text) for name in TYPES]

        assert all(reply.get("error", {"code": -32602})["code"] == -32602 for reply in replies)
        assert "result" in client.get("str", value="hello")

    @pytest.mark.parametrize(
        ("name", "value", "reason"),
        [
            (
                "int",
                "1" * 10_000,
                f"is '{'1' * 27}...{'1' * 28}', not a whole number with at most 4,300 digits",
            ),
            ("float", "NaN", "is 'NaN', not a number"),
            ("float", "1e999999", "is '1e999999', not a number"),
            ("Decimal", "Infinity", "is 'Infinity', not a number"),
            ("Decimal", f"1E+{'9' * 30}", f"is '1E+{'9' * 30}', not a number"),
            ("bytes", "data:;base64", "is 'data:;base64', not base64 or a data: URI"),
            (
                "sizes",
                '{"x": NaN}',
                "is not valid JSON at line 1, column 7: invalid character",
            ),
        ],
        ids=["digits", "NaN", "too large", "infinity", "exponent", "no comma", "NaN in JSON"],
    )
    def test_error_has_the_value_and_the_expected_type(self, name, value, reason):
        """The error quotes the value, with the middle of a long one omitted, and names the expected type."""
        (error,) = render_or_error(name, value).errors

        assert error.reason == reason

    def test_last_duplicate_key_counts(self):
        """
        Of duplicate keys, the last one counts, as in common JSON parsers, so a filter in front of the server
        sees the same value.
        """

        @prompt
        def show(value: dict[str, int]) -> str:
            return str(value)

        assert str(show.render_wire({"value": '{"x": 1, "x": 2}'})) == str(
            show.render_wire({"value": {"x": 2}})
        )

    @pytest.mark.parametrize(
        ("text", "expected"),
        [("data:text/plain;base64,//79", b"\xff\xfe\xfd"), ("data:,%FF%FE%00", b"\xff\xfe\0")],
        ids=["base64", "escaped"],
    )
    def test_bytes_need_not_be_utf_8(self, text, expected):
        """Bytes need not be valid UTF-8, in either form of a data: URI."""

        @prompt
        def show(value: bytes) -> str:
            return value.hex()

        assert expected.hex() in str(show.render_wire({"value": text}))


class TestNames:
    """Unknown names."""

    LONG = "n" * MEGABYTE
    SHORTENED = "n" * 200 + "..."

    def test_long_argument_name_is_shortened(self):
        """The error for a long unknown argument is short, in its message and in its data."""
        with pytest.raises(ArgumentsError) as caught:
            CATALOG.render("str", {"value": "a", self.LONG: "b"})
        (error,) = caught.value.errors

        assert str(error) == f"'{self.SHORTENED}' is not an argument of this prompt"
        assert error.as_data()["argument"] == self.SHORTENED

    def test_long_key_is_shortened(self):
        """The path in the error for a long key is truncated."""
        with pytest.raises(ArgumentsError) as caught:
            CATALOG.render("sizes", {"value": {self.LONG: "x"}})
        (error,) = caught.value.errors

        assert str(error) == f"\"value['{'n' * 193}...\" is 'x', not a whole number"
        assert error.as_data()["path"] == f"['{'n' * 198}..."

    def test_long_prompt_name_is_shortened(self):
        """The error for a long unknown prompt shows the start of its name."""
        with pytest.raises(UnknownPromptError) as caught:
            CATALOG.render(self.LONG)

        assert str(caught.value) == f"unknown prompt '{self.SHORTENED}'"
        assert caught.value.as_data() == {"name": self.SHORTENED}

    def test_long_uri_is_shortened(self):
        """The error for a long unknown resource shows the start of its URI."""
        with pytest.raises(UnknownResourceError) as caught:
            CATALOG.read(f"x:{self.LONG[:60_000]}")

        assert str(caught.value) == f"unknown resource 'x:{'n' * 198}...'"
        assert caught.value.as_data() == {"uri": f"x:{'n' * 198}..."}

    def test_too_long_uri_is_rejected(self):
        """A URI that is too long is rejected without being matched against templates."""
        uri = f"notes:///{self.LONG}"

        with pytest.raises(UnknownResourceError) as caught:
            CATALOG.read(uri)

        assert (
            str(caught.value)
            == f"unknown resource {uri[:200] + '...'!r}: a URI can have at most 65,536 characters"
        )
        assert "result" in Client(CATALOG).ask("resources/read", {"uri": "notes:///" + "n" * 65_527})

    def test_ordinary_name_is_shown_in_full(self):
        """Names of ordinary length are shown in full."""
        assert str(UnknownPromptError("n" * 200)) == f"unknown prompt '{'n' * 200}'"
        assert UnknownPromptError("greeet", "greet").as_data() == {"name": "greeet", "nearest": "greet"}
        assert UnknownResourceError("x:a", "x:b").as_data() == {"uri": "x:a", "nearest": "x:b"}

    @pytest.mark.parametrize(
        "name", ["\ud800", "\0", "\x1b[2J", "value\u200b", "\u202evalue", "v\u0430lue", "", "value "]
    )
    def test_lookalike_argument_is_rejected(self, name):
        """An unknown argument that looks like a known one is shown with escapes."""
        with pytest.raises(ArgumentsError) as caught:
            CATALOG.render("str", {"value": "a", name: "b"})

        assert str(caught.value).startswith(f"prompt 'str': {name!r} is not an argument of this prompt")

    @pytest.mark.parametrize("revision", ["2024-11-05", MODERN])
    @pytest.mark.parametrize(
        ("method", "params"),
        [
            ("prompts/get", {"name": LONG}),
            ("prompts/get", {"name": "str", "arguments": {"value": "a", LONG: "b"}}),
            ("resources/read", {"uri": f"x:{LONG}"}),
        ],
        ids=["prompt", "argument", "resource"],
    )
    def test_reply_has_the_shortened_name(self, revision, method, params):
        """The reply to a request with a megabyte-long name is short."""
        client = Client(CATALOG, revision)

        reply = client.ask(method, params)

        assert "error" in reply
        assert sum(map(len, client.sent)) < 2000

    @pytest.mark.parametrize("name", ["n" * MEGABYTE, "language" * 100_000, "\u0130" * 300_000], ids=ascii)
    def test_very_long_name_has_no_suggestion(self, name):
        """A very long name is not compared with short names."""
        assert nearest(name[:MEGABYTE], ["code", "language", *map(str, range(1000))]) is None


class TestLines:
    """Errors found before any argument is read."""

    @pytest.mark.parametrize(
        "value",
        [
            b"NaN",
            b"Infinity",
            b"1e999999",
            b"1" * 10_000,
            b'"\\ud800"',
            b'"\xff\xfe"',
            b'"\xed\xa0\x80"',
            b'"\xc0\xae"',
            b"[" * 100_000 + b"]" * 100_000,
            b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
            b"'a'",
            b"undefined",
        ],
        ids=[
            *("NaN", "infinity", "too large", "too many digits", "half a pair", "no UTF-8"),
            *("half a pair in UTF-8", "overlong UTF-8", "deep list", "deep object", "quotes", "word"),
        ],
    )
    def test_invalid_json_value_is_rejected(self, value):
        """An invalid JSON value gives an error, and the next line is served."""
        client = Client(CATALOG)
        params = {"name": "str", "arguments": {"value": "HERE"}}
        good = line(request(1, "prompts/get", params))

        client.sent.clear()

        client.server.receive_data(good.replace(b'"HERE"', value))

        (reply,) = client.replies()
        assert "error" in reply
        assert "result" in client.get("str", value="hello")

    def test_duplicate_argument(self):
        """A duplicate argument neither crashes the server nor leads to two values."""
        client = Client(CATALOG)
        good = line(request(1, "prompts/get", {"name": "int", "arguments": {"value": "1"}}))

        (reply,) = client.send(good.replace(b'"value": "1"', b'"value": "x", "value": "2"'))

        assert "result" in reply

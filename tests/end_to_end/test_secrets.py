"""Secret arguments never appear in replies, logs, output of commands, or the audit."""

import contextlib
import json
import subprocess
import sys
import time
from base64 import b64encode
from dataclasses import dataclass
from datetime import date
from enum import Enum
from reprlib import repr as short_repr
from typing import Annotated, Literal
from urllib.parse import quote
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit import Arg, Image, PromptError, prompt, resource, user
from promptkit.catalog import redaction
from promptkit.catalog.redaction import HIDDEN, WINDOW_LENGTH, RecentSecrets, Redactor
from promptkit.cli import main
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from tests.wire import MODERN, Client, initialize, line, notification, request

#: Quotes, backslashes, line breaks and non-ASCII letters have several escaped forms.
VALUE = 'correct-horse "battery"\\staple\n\'ünter-swordfish'
NUMBER = "86420975"
WORDS = ["correct-", "horse", "battery", "staple", "swordfish", "ünter"]
Token = Annotated[str, Arg("The key", secret=True)]


class CustomError(PromptError):
    def __str__(self):
        return f"rejected: {self.message}"


@prompt
def inner(depth: int) -> str:
    return str(depth)


@prompt
def plain(token: Token) -> str:
    raise ValueError(token)


@prompt
def as_code_shows_it(token: Token) -> str:
    raise ValueError(f"{token!r} {json.dumps(token)} {token.encode()!r} {quote(token)} {token!a}")


@prompt
def shortened(token: Token) -> str:
    raise ValueError(f"{short_repr(token * 3)} {token[:13]} {token[-10:]} {(token * 9)[:200]!r}")


@prompt
def a_key(token: Token) -> str:
    return {}[token]


@prompt
def a_number(token: Token) -> str:
    return str(int(token))


def raise_value_error(token):
    raise ValueError(token)


@prompt
def chained(token: Token) -> str:
    try:
        raise_value_error(token)
    except ValueError as error:
        raise RuntimeError("no") from error
    return "unreached"


@prompt
def in_the_context(token: Token) -> str:
    try:
        raise_value_error(token)
    except ValueError:
        return str(1 / 0)


@prompt
def noted(token: Token) -> str:
    error = RuntimeError("no")
    error.add_note(token)
    raise error


@prompt
def grouped(token: Token) -> str:
    raise ExceptionGroup("two", [ValueError(token), KeyError(token)])


@prompt
def exiting(token: Token) -> str:
    sys.exit(token)


@prompt
def raises_prompt_error(token: Token) -> str:
    raise PromptError(f"the key {token} is not valid")


@prompt
def raises_custom_error(token: Token) -> str:
    raise CustomError(token)


@prompt
def reported_for_media(token: Token) -> str:
    return user(Image.from_path(token, root="."))


@prompt
def unsendable(token: Token):
    return token.encode()


@prompt
def yielded(token: Token):
    yield "one"
    yield {token}


@prompt
def rejected_by_another(token: Token):
    return inner.render_wire({"depth": token})


@prompt
def rejected_by_a_type(token: Token):
    return inner(token)


@prompt
async def awaited(token: Token) -> str:
    raise ValueError(token)


@prompt
async def reported_later(token: Token) -> str:
    raise PromptError(token)


@prompt(timeout=9)
def on_a_thread(token: Token) -> str:
    raise ValueError(token)


@prompt(cache=9)
def cached(token: Token) -> str:
    raise ValueError(token)


@prompt(elicit=True)
def eliciting(name: str, token: Token) -> str:
    raise ValueError(token)


@prompt
def by_default(token: Token = VALUE) -> str:
    raise ValueError(token)


@prompt
def mistyped(token: Annotated[int, Arg(secret=True)]) -> str:
    return str(token)


@prompt
def choice(token: Annotated[Literal["one", "two"], Arg(secret=True)]) -> str:
    return token


@prompt
def bytes_(token: Annotated[bytes, Arg(secret=True)]) -> str:
    raise ValueError(token, token.decode())


@prompt
def items(token: Annotated[dict[str, list[str]], Arg(secret=True)]) -> str:
    raise ValueError(token, token["key"][0])


@dataclass
class Login:
    name: str
    key: str


@prompt
def fields(token: Annotated[Login, Arg(secret=True)]) -> str:
    raise ValueError(token, token.key)


def completed(typed: str, chosen: dict[str, str]) -> list[str]:
    raise ValueError(chosen["token"])


@prompt
def completing(token: Token, other: Annotated[str, Arg(complete=completed)]) -> str:
    return other


@resource("vault://{token}")
def vault(token: Token) -> str:
    raise ValueError(token)


@resource("safe://{token}")
def safe(token: Annotated[int, Arg(secret=True)]) -> str:
    return str(token)


FAILING = [
    plain,
    as_code_shows_it,
    shortened,
    a_key,
    a_number,
    chained,
    in_the_context,
    noted,
    grouped,
    exiting,
    raises_prompt_error,
    raises_custom_error,
    reported_for_media,
    unsendable,
    yielded,
    rejected_by_another,
    rejected_by_a_type,
    awaited,
    reported_later,
    on_a_thread,
    cached,
    mistyped,
    choice,
]
CATALOG = compile(
    Recipes(
        prompts=(*FAILING, eliciting, by_default, bytes_, items, fields, completing), resources=(vault, safe)
    )
)


def client(revision="2025-11-25"):
    return Client(CATALOG, revision, capabilities={"elicitation": {}})


def all_output(client, printed):
    """Return the replies of a server and its standard error."""
    deadline = time.monotonic() + 50
    while not client.sent and time.monotonic() < deadline:
        time.sleep(0.002)
    # The escapes of JSON must not hide a secret from the search.
    return "".join(map(str, client.replies())) + printed.readouterr().err


def words_in(text):
    """Return the words of the secret that *text* contains."""
    return [word for word in WORDS if word in text or word.encode("unicode-escape").decode() in text]


class TestServing:
    @pytest.mark.parametrize("failing", FAILING, ids=lambda failing: failing.__name__)
    @pytest.mark.parametrize("revision", ["2024-11-05", MODERN])
    def test_failing_prompt(self, failing, revision, capsys):
        """Neither the reply nor the log of a failing prompt contains its secret."""
        client_ = client(revision)

        client_.post("prompts/get", {"name": failing.__name__, "arguments": {"token": VALUE}})

        output = all_output(client_, capsys)
        assert "error" in output
        assert words_in(output) == []

    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("by_default", {}),
            ("bytes_", {"token": "Y29ycmVjdC1ob3JzZSBiYXR0ZXJ5IHN0YXBsZQ=="}),
            ("items", {"token": json.dumps({"key": [VALUE]})}),
            ("items", {"token": {"key": [VALUE]}}),
            ("fields", {"token": json.dumps({"name": "correct", "key": VALUE})}),
            ("fields", {"token": json.dumps({"name": VALUE})}),
            ("mistyped", {"token": VALUE, VALUE[:4]: "unknown"}),
            ("eliciting", {"token": VALUE, "name": "x"}),
            ("eliciting", {"token": VALUE}),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    @pytest.mark.parametrize("revision", ["2025-06-18", MODERN])
    def test_other_types_of_secrets(self, name, arguments, revision, capsys):
        """A secret can have any type, come from a default, or be sent for the wrong argument."""
        client_ = client(revision)

        client_.post("prompts/get", {"name": name, "arguments": arguments})

        assert words_in(all_output(client_, capsys)) == []

    def test_context_of_secrets_is_kept(self, capsys):
        """The traceback shows all but the secret, and the reply contains the author's message around it."""
        message = client().get("raises_prompt_error", token=VALUE)["error"]["message"]
        client().get("plain", token=VALUE)

        logged = capsys.readouterr().err
        assert message == f"the key {HIDDEN} is not valid"
        assert logged.startswith("promptkit: error ")
        assert "in prompt 'plain':\nTraceback" in logged
        assert "\n    raise ValueError(token)\n" in logged
        assert logged.endswith(f"\nValueError: {HIDDEN}\n")

    def test_completion_hides_other_arguments(self, capsys):
        """Secrets in the context of a completion are hidden, and secret values are not completed."""
        for name in ("other", "token"):
            client_ = client()
            client_.post(
                "completion/complete",
                {
                    "ref": {"type": "ref/prompt", "name": "completing"},
                    "argument": {"name": name, "value": VALUE if name == "token" else ""},
                    "context": {"arguments": {"token": VALUE}},
                },
            )

            assert words_in(all_output(client_, capsys)) == []

    @pytest.mark.parametrize("scheme", ["vault", "safe"])
    def test_uri_of_a_resource_is_hidden(self, scheme, capsys):
        """A URI with a secret is replaced by its template in messages."""
        client_ = client()

        client_.post("resources/read", {"uri": f"{scheme}://{quote(VALUE, safe='')}"})

        output = all_output(client_, capsys)
        assert words_in(output) == []
        assert ("vault://{token}" if scheme == "vault" else "'safe'") in output

    @pytest.mark.parametrize("method", ["prompts/list", "resources/templates/list"])
    def test_secret_default_is_not_listed(self, method, capsys):
        """A secret default is in no description and no schema."""
        client_ = client()

        client_.post(method)

        assert words_in(all_output(client_, capsys)) == []

    def test_audit_contains_no_secrets(self, tmp_path):
        """The secrets of all recorded requests are hidden."""
        from tests.server.test_audit import AuditedClient

        audited = AuditedClient(tmp_path / "audit", catalog=CATALOG)
        synchronous = [f for f in FAILING if not f.compiled.renderer.is_async and f.compiled.timeout is None]
        for failing in synchronous:
            audited.get(failing.__name__, token=VALUE)
        audited.ask("resources/read", {"uri": f"vault://{quote(VALUE, safe='')}"})

        assert len(audited.records()) == len(synchronous) + 1
        assert words_in(audited.file.read_text()) == []

    def test_exception_with_a_failing_str(self, capsys):
        """Any exception whose `__str__` fails is an internal error."""

        class Mute(PromptError):
            def __str__(self):
                raise ValueError(self.message)

        @prompt
        def mute(token: Token) -> str:
            raise Mute(token)

        client_ = Client(compile(Recipes(prompts=(mute,))))

        assert client_.get("mute", token=VALUE)["error"]["code"] == -32603
        assert words_in(all_output(client_, capsys)) == []


RECIPE = """
from typing import Annotated
from promptkit import Arg, PromptError, prompt, user

Token = Annotated[str, Arg(secret=True)]

@prompt
def show(token: Token):
    "Show it."
    return user(f"The key is {token}, {token!r} and {token[:13]}.")

@prompt
def fail(token: Token) -> str:
    raise ValueError(token)

@prompt
def refuse(token: Token) -> str:
    raise PromptError(token)

@prompt
def number(token: Annotated[int, Arg(secret=True)] = "correct-horse-battery") -> str:
    return str(token)
"""


class TestCommands:
    @pytest.mark.parametrize(
        "words",
        [
            ["render", "recipes", "show", f"token={VALUE}"],
            ["render", "recipes", "show", f"token={VALUE}", "--json"],
            ["render", "recipes", "show", "token=@key"],
            ["render", "recipes", "fail", f"token={VALUE}"],
            ["render", "recipes", "refuse", f"token={VALUE}"],
            ["render", "recipes", "refuse", VALUE],
            ["render", "recipes", "refuse", "token=@horse"],
            ["render", "recipes", "refuse", f"token=@{VALUE}"],
            ["render", "recipes", "refuse", f"token={VALUE}", "token=x"],
            ["list", "recipes"],
            ["list", "recipes", "--json"],
            ["check", "recipes"],
            ["check", "recipes", "--json"],
        ],
        ids=" ".join,
    )
    def test_output_of_commands(self, recipes, tmp_path, monkeypatch, capsys, words):
        """No command prints a secret, in its output or in an error."""
        recipes(secrets=RECIPE)
        (tmp_path / "key").write_text(VALUE)
        monkeypatch.chdir(tmp_path)

        with contextlib.suppress(SystemExit):
            main(words)

        printed = capsys.readouterr()
        assert printed.out + printed.err
        assert words_in(printed.out + printed.err) == []

    def test_transcript_marks_secrets(self, recipes, tmp_path, monkeypatch, capsys):
        """The transcript and the JSON show where a secret was."""
        recipes(secrets=RECIPE)
        monkeypatch.chdir(tmp_path)

        main(["render", "recipes", "show", "token=correct-horse"])
        main(["render", "recipes", "show", "token=correct-horse", "--json"])

        transcript, _, json_text = capsys.readouterr().out.partition("\n{")
        text = f"The key is {HIDDEN}, '{HIDDEN}' and {HIDDEN}."
        assert transcript == f"[user]\n{text}"
        assert json.loads(f"{{{json_text}") == {
            "description": "Show it.",
            "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
        }


class TestDirectCalls:
    @pytest.mark.parametrize(
        "call",
        [
            lambda: mistyped(VALUE),
            lambda: mistyped.render(VALUE),
            lambda: mistyped.render_wire({"token": VALUE}),
            lambda: fields(VALUE),
            lambda: choice(VALUE),
        ],
        ids=["call", "render", "render_wire", "class", "choice"],
    )
    def test_type_errors_hide_the_value(self, call):
        """The error for a value of the wrong type does not contain the value."""
        with pytest.raises((TypeError, ValueError)) as error:
            call()

        assert words_in(f"{error.value!r} {error.value} {error.value.__context__!r}") == []


class Colour(Enum):
    CRIMSON = "deep-red"


def redactor(annotation, value, default=...):
    """Return the redactor for one secret argument."""

    def function(token):
        return "x"

    function.__annotations__ = {"token": Annotated[annotation, Arg(secret=True)], "return": str}
    function.__defaults__ = None if default is ... else (default,)
    return Redactor.of(prompt(function).compiled.arguments, {"token": value})


#: Letters that are not in the replacement of a secret.
LETTERS = st.text("abd 01-\n'\\ü", max_size=60)


class TestRedactor:
    @given(LETTERS.filter(lambda text: len(text.strip()) > 3), LETTERS, LETTERS, st.data())
    def test_every_stretch_is_redacted(self, secret, before, after, data):
        """No eight consecutive characters of a secret remain, and a shorter secret is removed as a whole."""
        start = data.draw(st.integers(0, max(len(secret) - WINDOW_LENGTH, 0)))
        end = data.draw(st.integers(min(start + WINDOW_LENGTH, len(secret)), len(secret)))

        redacted = redactor(str, secret).redacted(f"{before}{secret[start:end]}{after}")

        stretches = {secret[at : at + WINDOW_LENGTH] for at in range(max(1, len(secret) - WINDOW_LENGTH + 1))}
        assert [stretch for stretch in stretches if stretch.strip() and stretch in redacted] == []

    @given(st.text("xyz ", max_size=99))
    def test_unrelated_text_is_unchanged(self, text):
        """Text that shares no characters with a secret is unchanged."""
        assert redactor(str, "correct-horse").redacted(text) == text

    @pytest.mark.parametrize(
        ("annotation", "value", "text", "redacted"),
        [
            (str, "1234", "pin1234, 12345", "pin<secret>, <secret>5"),
            (str, "123", "pin123, 123; 1234", "pin123, 123; 1234"),
            (str, "abcdefghij", "YWJjZGVmZ2hpag==", "<secret>=="),
            (str, "", "nothing to hide", "nothing to hide"),
            (str, "        ", "   a        b", "   a        b"),
            (str, "abcdefghij", "xabcdefghix bcdefghij abcdefg", "x<secret>x <secret> abcdefg"),
            (str, "abcdefghij", "abcdefghiabcdefghij", "<secret><secret>"),
            (str, 'a"bcd', '{"a\\"bcd"} a%22bcd', '{"<secret>"} <secret>'),
            (int, "31_337", "31337 31_337", "<secret> <secret>"),
            (int, 31337, "is 31337", "is <secret>"),
            (float, "1e3", "1000.0", "<secret>"),
            (
                date,
                "2031-12-24",
                "datetime.date(2031, 12, 24) on 2031-12-24",
                "datetime.date(<secret>) on <secret>",
            ),
            (UUID, "12345678123456781234567812345678", "12345678-1234-5678", "<secret>"),
            (Colour, "crimson", "Colour.CRIMSON, CRIMSON, deep-red", "<secret>, CRIMSON, <secret>"),
            (list[str], "alpha, omega", "['alpha', 'omega']", "['<secret>', '<secret>']"),
            (list[int], "[1000, 2000]", "1000 + 2000", "<secret> + <secret>"),
            (dict[str, str], '{"alpha": "omega"}', "{'alpha': 'omega'}", "{'<secret>': '<secret>'}"),
            (bytes, "b21lZ2E=", "b'omega' omega b21lZ2E=", "b'<secret>' <secret> <secret>"),
            (Login, '{"name": "alpha", "key": "omega"}', "name key alpha", "name key <secret>"),
            (int, "no number", "'no number'", "'<secret>'"),
            (str | None, None, "None", "None"),
        ],
        ids=str,
    )
    def test_forms_of_secrets(self, annotation, value, text, redacted):
        """A secret is hidden as sent and as parsed. Field names and braces are not hidden."""
        assert redactor(annotation, value).redacted(text) == redacted

    def test_default_is_hidden(self):
        """The default of a secret argument is hidden like a sent value."""
        assert redactor(str, None, "swordfish").redacted("a swordfish") == f"a {HIDDEN}"

    def test_no_secrets(self):
        """Without a secret argument, text is unchanged."""
        redactor_ = Redactor.of(inner.compiled.arguments, {"depth": "12345"})

        assert (redactor_, redactor_.redacted("12345")) == (Redactor(), "12345")

    def test_protocol_words_are_kept(self):
        """A protocol field such as `type` keeps its value; values nested in other fields are redacted."""
        redacted = redactor(str, "swordfish").redacted_json(
            {"type": "swordfish", "format": {"name": "swordfish", "type": "text"}, "detail": ["swordfish"]}
        )

        assert redacted == {
            "type": "swordfish",
            "format": {"name": HIDDEN, "type": "text"},
            "detail": [HIDDEN],
        }

    def test_repr_of_a_redactor(self):
        """The repr of a redactor does not contain its secrets."""
        assert repr(redactor(str, "swordfish")) == "Redactor()"

    def test_long_text_is_redacted_quickly(self):
        """A million characters that contain an equally long secret are redacted in time."""
        secret = "correct-horse" * 80_000

        assert redactor(str, secret).redacted(f"no {secret!r}") == f"no '{HIDDEN}'"


PRINTING = """
import asyncio, gc, io, json, logging, pprint, sys, textwrap, threading, traceback, urllib.parse, warnings
from base64 import b64encode
from dataclasses import dataclass
from typing import Annotated
from promptkit import Arg, prompt, resource

Token = Annotated[str, Arg(secret=True)]
logging.basicConfig(level="INFO")
waiting = threading.Event()
left = []

def started(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()

@prompt
def left_behind(token: Token):
    def fail():
        waiting.wait(20)
        raise ValueError(f"left_behind {token}")
    left.append(threading.Thread(target=fail, daemon=True))
    left[0].start()
    return "x"

@prompt
def on_a_thread(token: Token):
    def fail():
        raise ValueError(token)
    started(fail)
    return "on_a_thread"

@prompt
def finalized(token: Token):
    class Last:
        def __del__(self):
            raise ValueError(token)
    Last()
    return "x"

@prompt
def collected(token: Token):
    class Last:
        def __del__(self):
            print("collected", token)
    cycle = Last()
    cycle.itself = cycle
    del cycle
    gc.collect()
    return "x"

@prompt
def in_a_generator(token: Token):
    def generate():
        try:
            yield 1
        finally:
            raise KeyError(token)
    next(generate())
    return "x"

@prompt
def warned(token: Token):
    warnings.warn(f"warned {token}")
    return "x"

@prompt
async def in_a_task(token: Token):
    async def fail():
        raise ValueError(token)
    asyncio.get_running_loop().create_task(fail())
    await asyncio.sleep(0.01)
    gc.collect()
    asyncio.get_running_loop().call_soon(lambda: {}[token])
    await asyncio.sleep(0.01)
    return "x"

@prompt
def logged(token: Token):
    logging.info("logged %s %r", token, [token])
    try:
        {}[token]
    except KeyError:
        logging.exception("no")
        traceback.print_exc()
        traceback.print_exc(file=sys.stdout)
    return "x"

@prompt
def printed(token: Token):
    print(token)
    print("printed", repr(token), json.dumps(token), token.encode(), urllib.parse.quote(token), ascii(token))
    print(urllib.parse.quote_plus(token), b64encode(token.encode()), b64encode(b"user:" + token.encode()))
    pprint.pprint({"key": [token] * 3}, width=24)
    print(textwrap.fill(token, 20))
    return "x"

@prompt
def in_bytes(token: Token):
    sys.stdout.buffer.write(b"in_bytes " + token.encode() + b"\\\\n")
    io.TextIOWrapper(sys.stderr.buffer).write(token)
    sys.__stderr__.writelines([token, "\\\\n"])
    return "x"

@prompt
def in_pieces(token: Token):
    print("in_pieces", end=" ")
    for character in token.replace("\\\\n", " "):
        print(character, end="", flush=True)
    print()
    sys.stderr.write("x" * 70000 + token)
    return "x"

@dataclass
class Login:
    key: str

@prompt
def structured(token: Annotated[dict[str, Login], Arg(secret=True)]):
    print("structured", token, list(token.values()))
    return "x"

@prompt
def in_a_completion(token: Token, other: Annotated[str, Arg(complete=lambda _, chosen: print(chosen))]):
    return "x"

@resource("vault://{token}")
def vault(token: Token):
    print("vault", token)
    return "x"

@prompt
def number(token: Annotated[int, Arg(secret=True)]):
    print("number", token, hex(3))
    return "x"

@prompt
def by_default(token: Token = "correct-horse by default"):
    print("by_default", token)
    return "x"

@prompt
def harmless(name: str):
    print("harmless", name, True, "a word of <b>correction")
    waiting.set()
    left[0].join(20)  # so that the exit does not cut off its output
    return "x"
"""


class TestProcessOutput:
    def standard_error_of(self, folder, *requests):
        """Return standard error of a server that answers the requests."""
        opening = line(initialize("2025-06-18")) + line(notification("notifications/initialized"))
        completed = subprocess.run(
            [sys.executable, "-m", "promptkit", "serve", str(folder)],
            input=opening + b"".join(map(line, requests)),
            capture_output=True,
            timeout=60,
            check=True,
        )
        return completed.stderr.decode()

    def get(self, number, name, /, **arguments):
        """Return a request for a prompt."""
        return request(number, "prompts/get", {"name": name, "arguments": arguments})

    def test_printed_secrets_are_hidden(self, recipes):
        """Secrets are hidden however they are printed, during or after a request; other output is kept."""
        names = [
            "left_behind",
            "on_a_thread",
            "finalized",
            "collected",
            "in_a_generator",
            "warned",
            "in_a_task",
            "logged",
            "printed",
            "in_bytes",
            "in_pieces",
        ]
        requests = [self.get(number, name, token=VALUE) for number, name in enumerate(names, 1)]
        logins = json.dumps({"staple-swordfish": {"key": VALUE}})
        completion = {
            "ref": {"type": "ref/prompt", "name": "in_a_completion"},
            "argument": {"name": "other", "value": ""},
            "context": {"arguments": {"token": VALUE}},
        }
        requests += [
            self.get(20, "structured", token=logins),
            request(21, "completion/complete", completion),
            request(22, "resources/read", {"uri": f"vault://{quote(VALUE, safe='')}"}),
            self.get(23, "number", token=NUMBER),
            self.get(24, "by_default"),
            self.get(25, "harmless", name="Ada"),
        ]

        output = self.standard_error_of(recipes(recipe=PRINTING), *requests)

        rows = [row for row in output.splitlines() if words_in(row)]
        # Wrapped text can leave pieces that are shorter than the redacted stretches.
        assert [row for row in rows if len(row.strip(" '\"(,)")) >= WINDOW_LENGTH] == []
        assert NUMBER not in output
        assert b64encode(VALUE.encode()).decode()[:WINDOW_LENGTH] not in output
        for name in (
            "collected",
            "warned",
            "logged",
            "printed",
            "in_bytes",
            "in_pieces",
            "structured",
            "vault",
        ):
            assert f"{name} " in output, name
        assert f"left_behind {HIDDEN}" in output
        assert f"number {HIDDEN} 0x3" in output
        assert f"by_default {HIDDEN}" in output
        assert "harmless Ada True a word of <b>correction" in output

    def test_secrets_printed_during_validation(self, recipes):
        """An author's type can print and reject the value during validation."""
        source = """
        from typing import Annotated
        from attrs import field, frozen
        from promptkit import Arg, prompt

        def printing(_self, _attribute, value):
            print("validated", value)
            raise ValueError(value)

        @frozen
        class Key:
            text: str = field(validator=printing)

        @prompt
        def keyed(token: Annotated[Key, Arg(secret=True)]):
            return "x"
        """

        output = self.standard_error_of(
            recipes(recipe=source), self.get(1, "keyed", token=json.dumps({"text": VALUE}))
        )

        assert "validated <secret>" in output
        assert words_in(output) == []

    def test_secrets_stay_hidden_later(self, recipes):
        """
        Many requests without a secret, and a hundred with other secrets, do not evict a secret that is still
        in use.
        """
        requests = [self.get(1, "left_behind", token=VALUE)]
        requests += [self.get(number, "collected", token=f"other-{number:09}") for number in range(2, 102)]
        requests += [self.get(number, "harmless", name="Ada") for number in range(102, 400)]

        output = self.standard_error_of(recipes(recipe=PRINTING), *requests)

        assert words_in(output) == []
        assert f"left_behind {HIDDEN}" in output
        assert "other-" not in output


class TestRecentSecrets:
    def test_recent_secrets_are_bounded(self):
        """The oldest secrets are evicted; a secret that is sent again becomes the newest."""
        recent = RecentSecrets()
        first = Redactor(frozenset({"first-secret"}))
        for number in range(5000):
            recent.add(Redactor(frozenset({f"{number:08}"})))
            if number % 100 == 0:
                recent.add(first)

        assert len(recent.redactors) <= 256
        assert recent.redacted("first-secret 00000000 00004999") == (f"{HIDDEN} 00000000 {HIDDEN}")

    def test_huge_secret_is_truncated(self):
        """Only the beginning of a huge secret is searched for."""

        def function(token: Token) -> str:
            return "x"

        arguments = prompt(function).compiled.arguments
        for value in ("ab\n" * 3_000_000, "[" * 100_000):
            assert sum(map(len, Redactor.of_values(arguments, {"token": value}).texts)) < 400_000

    def test_secret_with_many_parts_is_limited(self):
        """The search for the secrets of one request is limited, however they are divided."""

        def function(token: Annotated[dict[str, str], Arg(secret=True)]) -> str:
            return "x"

        arguments = prompt(function).compiled.arguments
        for read in (True, False):
            for value in (
                {f"key-{n}": f"{n:05}" * 200 for n in range(2000)},
                {"a": {"b": ["x" * 99_999] * 99}},
            ):
                redactor_ = Redactor.of_values(arguments, {"token": value}, are_converted=read)
                assert 0 < sum(map(len, redactor_.texts)) < 400_000

    def test_many_long_secrets(self):
        """Fewer secrets are kept if they are long, but always the secrets of the latest request."""
        recent = RecentSecrets()
        for number in range(100):
            recent.add(Redactor(frozenset({f"{number:05}" * 3000})))
            assert f"{number:05}" * 3000 in recent.redactors[-1].texts
            assert sum(len(text) for each in recent.redactors for text in each.texts) <= 128 * 1024
        recent.add(Redactor(frozenset({"x" * 200_000})))

        assert [each.texts for each in recent.redactors] == [{"x" * 200_000}]

    @pytest.mark.parametrize("value", ["1", "ab ", "", True, None])
    def test_short_values_are_not_hidden(self, value):
        """Values of fewer than four characters, and None, true and false, are not hidden."""

        def function(token: Token) -> str:
            return "x"

        redactor = Redactor.of_values(prompt(function).compiled.arguments, {"token": value})

        assert redactor.redacted("1 ab True null None") == "1 ab True null None"

    def test_cost_of_a_line(self, monkeypatch):
        """Secrets are split once, not for each line or each further secret."""
        recent, split_texts = RecentSecrets(), []
        for number in range(200):
            secret = f"secret-{number:09}"
            recent.add(Redactor(frozenset({secret})))
        recent.redacted("first")
        monkeypatch.setattr(
            redaction,
            "_iterate_windows",
            lambda text, windows=redaction._iterate_windows: split_texts.append(text) or windows(text),
        )

        recent.add(Redactor(frozenset({"another one"})))
        for _ in range(9):
            recent.redacted("a line")

        assert split_texts == ["a line", "another one", *["a line"] * 8]

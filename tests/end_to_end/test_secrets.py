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
from promptkit.catalog.redaction import HIDDEN, STRETCH, RecentSecrets, Redactor
from promptkit.cli import main
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from tests.wire import MODERN, Client, initialize, line, notification, request

#: Quotes, a backslash, a line end and a letter that is no ASCII are each written in several ways.
VALUE = 'correct-horse "battery"\\staple\n\'ünter-swordfish'
NUMBER = "86420975"
WORDS = ["correct-", "horse", "battery", "staple", "swordfish", "ünter"]
Token = Annotated[str, Arg("The key", secret=True)]


class Refusal(PromptError):
    def __str__(self):
        return f"refused: {self.message}"


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


def refused(token):
    raise ValueError(token)


@prompt
def chained(token: Token) -> str:
    try:
        refused(token)
    except ValueError as error:
        raise RuntimeError("no") from error
    return "unreached"


@prompt
def in_the_context(token: Token) -> str:
    try:
        refused(token)
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
def leaving(token: Token) -> str:
    sys.exit(token)


@prompt
def told(token: Token) -> str:
    raise PromptError(f"the key {token} is no good")


@prompt
def told_by_a_class(token: Token) -> str:
    raise Refusal(token)


@prompt
def told_of_media(token: Token) -> str:
    return user(Image.from_path(token, root="."))


@prompt
def unsendable(token: Token):
    return token.encode()


@prompt
def yielded(token: Token):
    yield "one"
    yield {token}


@prompt
def refused_by_another(token: Token):
    return inner.render_wire({"depth": token})


@prompt
def refused_by_a_type(token: Token):
    return inner(token)


@prompt
async def awaited(token: Token) -> str:
    raise ValueError(token)


@prompt
async def told_later(token: Token) -> str:
    raise PromptError(token)


@prompt(timeout=9)
def on_a_thread(token: Token) -> str:
    raise ValueError(token)


@prompt(cache=9)
def kept(token: Token) -> str:
    raise ValueError(token)


@prompt(elicit=True)
def asking(name: str, token: Token) -> str:
    raise ValueError(token)


@prompt
def by_default(token: Token = VALUE) -> str:
    raise ValueError(token)


@prompt
def misfit(token: Annotated[int, Arg(secret=True)]) -> str:
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
    leaving,
    told,
    told_by_a_class,
    told_of_media,
    unsendable,
    yielded,
    refused_by_another,
    refused_by_a_type,
    awaited,
    told_later,
    on_a_thread,
    kept,
    misfit,
    choice,
]
CATALOG = compile(
    Recipes(
        prompts=(*FAILING, asking, by_default, bytes_, items, fields, completing), resources=(vault, safe)
    )
)


def client(revision="2025-11-25"):
    return Client(CATALOG, revision, capabilities={"elicitation": {}})


def everything(client, printed):
    """All that a server has sent, and what was printed, on one line each."""
    deadline = time.monotonic() + 50
    while not client.sent and time.monotonic() < deadline:
        time.sleep(0.002)
    # JSON has escapes of its own, which must not be what hides a secret here.
    return "".join(map(str, client.replies())) + printed.readouterr().err


def words_in(text):
    """The parts of the secret that are in *text*."""
    return [word for word in WORDS if word in text or word.encode("unicode-escape").decode() in text]


class TestServing:
    @pytest.mark.parametrize("failing", FAILING, ids=lambda failing: failing.__name__)
    @pytest.mark.parametrize("revision", ["2024-11-05", MODERN])
    def test_a_prompt_that_fails(self, failing, revision, capsys):
        """Whatever a prompt raises, neither the reply nor what is logged holds its secret."""
        asked = client(revision)

        asked.post("prompts/get", {"name": failing.__name__, "arguments": {"token": VALUE}})

        out = everything(asked, capsys)
        assert "error" in out
        assert words_in(out) == []

    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("by_default", {}),
            ("bytes_", {"token": "Y29ycmVjdC1ob3JzZSBiYXR0ZXJ5IHN0YXBsZQ=="}),
            ("items", {"token": json.dumps({"key": [VALUE]})}),
            ("items", {"token": {"key": [VALUE]}}),
            ("fields", {"token": json.dumps({"name": "correct", "key": VALUE})}),
            ("fields", {"token": json.dumps({"name": VALUE})}),
            ("misfit", {"token": VALUE, VALUE[:4]: "unknown"}),
            ("asking", {"token": VALUE, "name": "x"}),
            ("asking", {"token": VALUE}),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    @pytest.mark.parametrize("revision", ["2025-06-18", MODERN])
    def test_other_arguments(self, name, arguments, revision, capsys):
        """A secret may be of any type, be left out, or be given where something else is asked for."""
        asked = client(revision)

        asked.post("prompts/get", {"name": name, "arguments": arguments})

        assert words_in(everything(asked, capsys)) == []

    def test_what_is_left(self, capsys):
        """The traceback shows all but the secret, and the reply the author's words around it."""
        message = client().get("told", token=VALUE)["error"]["message"]
        client().get("plain", token=VALUE)

        logged = capsys.readouterr().err
        assert message == f"the key {HIDDEN} is no good"
        assert logged.startswith("promptkit: error ")
        assert "in prompt 'plain':\nTraceback" in logged
        assert "\n    raise ValueError(token)\n" in logged
        assert logged.endswith(f"\nValueError: {HIDDEN}\n")

    def test_completion(self, capsys):
        """What was chosen before is as secret while another argument is completed; nothing is offered."""
        for name in ("other", "token"):
            asked = client()
            asked.post(
                "completion/complete",
                {
                    "ref": {"type": "ref/prompt", "name": "completing"},
                    "argument": {"name": name, "value": VALUE if name == "token" else ""},
                    "context": {"arguments": {"token": VALUE}},
                },
            )

            assert words_in(everything(asked, capsys)) == []

    @pytest.mark.parametrize("scheme", ["vault", "safe"])
    def test_a_resource(self, scheme, capsys):
        """A URI that holds a secret is not repeated: its template is named."""
        asked = client()

        asked.post("resources/read", {"uri": f"{scheme}://{quote(VALUE, safe='')}"})

        out = everything(asked, capsys)
        assert words_in(out) == []
        assert ("vault://{token}" if scheme == "vault" else "'safe'") in out

    @pytest.mark.parametrize("method", ["prompts/list", "resources/templates/list"])
    def test_a_listing(self, method, capsys):
        """A default that is a secret is in no description and in no schema."""
        asked = client()

        asked.post(method)

        assert words_in(everything(asked, capsys)) == []

    def test_an_audit(self, tmp_path):
        """No secret is in the file that notes all requests."""
        from tests.server.test_audit import Audited

        audited = Audited(tmp_path / "audit", catalog=CATALOG)
        at_once = [f for f in FAILING if not f.compiled.renderer.is_async and f.compiled.timeout is None]
        for failing in at_once:
            audited.get(failing.__name__, token=VALUE)
        audited.ask("resources/read", {"uri": f"vault://{quote(VALUE, safe='')}"})

        assert len(audited.records()) == len(at_once) + 1
        assert words_in(audited.file.read_text()) == []

    def test_an_exception_that_cannot_be_shown(self, capsys):
        """It is an internal error like any other, whatever it calls itself."""

        class Mute(PromptError):
            def __str__(self):
                raise ValueError(self.message)

        @prompt
        def mute(token: Token) -> str:
            raise Mute(token)

        asked = Client(compile(Recipes(prompts=(mute,))))

        assert asked.get("mute", token=VALUE)["error"]["code"] == -32603
        assert words_in(everything(asked, capsys)) == []


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
    def test_what_they_print(self, recipes, tmp_path, monkeypatch, capsys, words):
        """No command shows a secret, in what it is asked for or in an error."""
        recipes(secrets=RECIPE)
        (tmp_path / "key").write_text(VALUE)
        monkeypatch.chdir(tmp_path)

        with contextlib.suppress(SystemExit):
            main(words)

        printed = capsys.readouterr()
        assert printed.out + printed.err
        assert words_in(printed.out + printed.err) == []

    def test_a_transcript(self, recipes, tmp_path, monkeypatch, capsys):
        """A transcript, and the JSON, say where a secret stood."""
        recipes(secrets=RECIPE)
        monkeypatch.chdir(tmp_path)

        main(["render", "recipes", "show", "token=correct-horse"])
        main(["render", "recipes", "show", "token=correct-horse", "--json"])

        transcript, _, found = capsys.readouterr().out.partition("\n{")
        text = f"The key is {HIDDEN}, '{HIDDEN}' and {HIDDEN}."
        assert transcript == f"[user]\n{text}"
        assert json.loads(f"{{{found}") == {
            "description": "Show it.",
            "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
        }


class TestDirectCalls:
    @pytest.mark.parametrize(
        "call",
        [
            lambda: misfit(VALUE),
            lambda: misfit.render(VALUE),
            lambda: misfit.render_wire({"token": VALUE}),
            lambda: fields(VALUE),
            lambda: choice(VALUE),
        ],
        ids=["call", "render", "render_wire", "class", "choice"],
    )
    def test_what_does_not_fit(self, call):
        """A value of another type is refused without being repeated."""
        with pytest.raises((TypeError, ValueError)) as refused:
            call()

        assert words_in(f"{refused.value!r} {refused.value} {refused.value.__context__!r}") == []


class Colour(Enum):
    CRIMSON = "deep-red"


def redactor(annotation, sent, default=...):
    """What hides one secret."""

    def taking(token):
        return "x"

    taking.__annotations__ = {"token": Annotated[annotation, Arg(secret=True)], "return": str}
    taking.__defaults__ = None if default is ... else (default,)
    return Redactor.of(prompt(taking).compiled.arguments, {"token": sent})


#: Letters that are not in what is put in the place of a secret.
LETTERS = st.text("abd 01-\n'\\ü", max_size=60)


class TestRedactor:
    @given(LETTERS.filter(lambda text: len(text.strip()) > 3), LETTERS, LETTERS, st.data())
    def test_no_stretch_is_left(self, secret, before, after, data):
        """Of a secret no eight characters in a row are left, and a shorter one not at all."""
        start = data.draw(st.integers(0, max(len(secret) - STRETCH, 0)))
        end = data.draw(st.integers(min(start + STRETCH, len(secret)), len(secret)))

        redacted = redactor(str, secret).redacted(f"{before}{secret[start:end]}{after}")

        stretches = {secret[at : at + STRETCH] for at in range(max(1, len(secret) - STRETCH + 1))}
        assert [stretch for stretch in stretches if stretch.strip() and stretch in redacted] == []

    @given(st.text("xyz ", max_size=99))
    def test_all_else_is_left(self, text):
        """Text that shares nothing with a secret stays as it is."""
        assert redactor(str, "correct-horse").redacted(text) == text

    @pytest.mark.parametrize(
        ("annotation", "sent", "text", "redacted"),
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
    def test_what_is_hidden(self, annotation, sent, text, redacted):
        """A secret is hidden as it was sent and as it was read; names and braces are no secrets."""
        assert redactor(annotation, sent).redacted(text) == redacted

    def test_a_default(self):
        """A default is as secret as what is given."""
        assert redactor(str, None, "swordfish").redacted("a swordfish") == f"a {HIDDEN}"

    def test_nothing_is_secret(self):
        """Where no argument is marked, text stays as it is."""
        hidden = Redactor.of(inner.compiled.arguments, {"depth": "12345"})

        assert (hidden, hidden.redacted("12345")) == (Redactor(), "12345")

    def test_what_lies_below_a_member_of_the_protocol(self):
        """Words that the protocol has stay; what only stands below such a word does not."""
        shown = redactor(str, "swordfish").redacted_json(
            {"type": "swordfish", "format": {"name": "swordfish", "type": "text"}, "detail": ["swordfish"]}
        )

        assert shown == {"type": "swordfish", "format": {"name": HIDDEN, "type": "text"}, "detail": [HIDDEN]}

    def test_it_does_not_show_itself(self):
        """What hides secrets does not tell them either."""
        assert repr(redactor(str, "swordfish")) == "Redactor()"

    def test_long_texts(self):
        """A message of a million characters that holds the secret as long is hidden soon."""
        secret = "correct-horse" * 80_000

        assert redactor(str, secret).redacted(f"no {secret!r}") == f"no '{HIDDEN}'"


LEAVING = """
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

class Own:
    def __init__(self, text):
        self.text = text

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
    left[0].join(20)  # what it prints must not be cut off by the end of the process
    return "x"
"""


class TestWhatPythonPrints:
    def printed(self, folder, *requests):
        """What a server prints for requests."""
        opening = line(initialize("2025-06-18")) + line(notification("notifications/initialized"))
        ran = subprocess.run(
            [sys.executable, "-m", "promptkit", "serve", str(folder)],
            input=opening + b"".join(map(line, requests)),
            capture_output=True,
            timeout=60,
            check=True,
        )
        return ran.stderr.decode()

    def get(self, number, name, /, **arguments):
        """A request for a prompt."""
        return request(number, "prompts/get", {"name": name, "arguments": arguments})

    def test_by_itself_and_by_authors(self, recipes):
        """Whatever prints a secret, in a request or after it, it is not shown; the rest is."""
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

        found = self.printed(recipes(recipe=LEAVING), *requests)

        shown = [row for row in found.splitlines() if words_in(row)]
        # A line that is shorter than what is looked for may be left of a text that was wrapped.
        assert [row for row in shown if len(row.strip(" '\"(,)")) >= STRETCH] == []
        assert NUMBER not in found
        assert b64encode(VALUE.encode()).decode()[:STRETCH] not in found
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
            assert f"{name} " in found, name
        assert f"left_behind {HIDDEN}" in found
        assert f"number {HIDDEN} 0x3" in found
        assert f"by_default {HIDDEN}" in found
        assert "harmless Ada True a word of <b>correction" in found

    def test_before_the_value_is_read(self, recipes):
        """An author's own type may print what it is made of, and refuse it."""
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

        found = self.printed(recipes(recipe=source), self.get(1, "keyed", token=json.dumps({"text": VALUE})))

        assert "validated <secret>" in found
        assert words_in(found) == []

    def test_much_later(self, recipes):
        """Requests without a secret, however many, make none forgotten; nor do a hundred others."""
        requests = [self.get(1, "left_behind", token=VALUE)]
        requests += [self.get(number, "collected", token=f"other-{number:09}") for number in range(2, 102)]
        requests += [self.get(number, "harmless", name="Ada") for number in range(102, 400)]

        found = self.printed(recipes(recipe=LEAVING), *requests)

        assert words_in(found) == []
        assert f"left_behind {HIDDEN}" in found
        assert "other-" not in found


class TestRecentSecrets:
    def test_what_is_kept_is_bounded(self):
        """
        Of many secrets the oldest are forgotten, and of a long one the end; an old one that is given
        again is new.
        """
        recent = RecentSecrets()
        first = Redactor(frozenset({"first-secret"}))
        for number in range(5000):
            recent.add(Redactor(frozenset({f"{number:08}"})))
            if number % 100 == 0:
                recent.add(first)

        assert len(recent.redactors) <= 256
        assert recent.redacted("first-secret 00000000 00004999") == (f"{HIDDEN} 00000000 {HIDDEN}")

    def test_a_secret_of_many_megabytes(self):
        """Looking for it takes no longer than looking for its beginning."""

        def taking(token: Token) -> str:
            return "x"

        arguments = prompt(taking).compiled.arguments
        for value in ("ab\n" * 3_000_000, "[" * 100_000):
            assert sum(map(len, Redactor.of_values(arguments, {"token": value}).texts)) < 400_000

    def test_a_secret_of_many_parts(self):
        """Of one request only so much is looked for, however it is divided."""

        def taking(token: Annotated[dict[str, str], Arg(secret=True)]) -> str:
            return "x"

        arguments = prompt(taking).compiled.arguments
        for read in (True, False):
            for value in (
                {f"key-{n}": f"{n:05}" * 200 for n in range(2000)},
                {"a": {"b": ["x" * 99_999] * 99}},
            ):
                found = Redactor.of_values(arguments, {"token": value}, read=read)
                assert 0 < sum(map(len, found.texts)) < 400_000

    def test_many_long_ones(self):
        """Of long secrets fewer are looked for, but always those of the latest request."""
        recent = RecentSecrets()
        for number in range(100):
            recent.add(Redactor(frozenset({f"{number:05}" * 3000})))
            assert f"{number:05}" * 3000 in recent.redactors[-1].texts
            assert sum(len(text) for each in recent.redactors for text in each.texts) <= 128 * 1024
        recent.add(Redactor(frozenset({"x" * 200_000})))

        assert [each.texts for each in recent.redactors] == [{"x" * 200_000}]

    @pytest.mark.parametrize("value", ["1", "ab ", "", True, None])
    def test_short_values(self, value):
        """A secret of fewer than four characters, None, true and false are not hidden."""

        def taking(token: Token) -> str:
            return "x"

        redactor = Redactor.of_values(prompt(taking).compiled.arguments, {"token": value})

        assert redactor.redacted("1 ab True null None") == "1 ab True null None"

    def test_a_line_costs_no_more_than_its_length(self, monkeypatch):
        """What is looked for is taken apart once, and not again for each line, or each further secret."""
        recent, taken = RecentSecrets(), []
        for number in range(200):
            secret = f"secret-{number:09}"
            recent.add(Redactor(frozenset({secret})))
        recent.redacted("first")
        monkeypatch.setattr(
            redaction,
            "_windows",
            lambda text, windows=redaction._windows: taken.append(text) or windows(text),
        )

        recent.add(Redactor(frozenset({"another one"})))
        for _ in range(9):
            recent.redacted("a line")

        assert taken == ["a line", "another one", *["a line"] * 8]

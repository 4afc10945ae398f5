from base64 import b64decode
from datetime import date

import pytest

from promptkit import PromptError, resource
from promptkit.compiler import compile
from promptkit.loader import Recipes
from tests.wire import HANDSHAKES, MODERN, REVISIONS, Client


@resource("notes://welcome", title="Welcome", mime_type="text/markdown")
def welcome() -> str:
    """What to read first."""
    return "# Welcome"


@resource("images://{name}", mime_type="image/png")
def image(name: str) -> bytes:
    return name.encode()


@resource("logs://recent{?day,lines}")
def logs(day: date = date(2026, 1, 31), lines: int = 3) -> str:
    """Recent lines of the log."""
    if lines < 0:
        raise PromptError("there are no fewer lines than none")
    return f"{lines} lines of {day}" if lines else str(1 // lines)


CATALOG = compile(Recipes(resources=(welcome, image, logs)))
assert CATALOG.diagnostics == ()


def read(revision, uri):
    return Client(CATALOG, revision).ask("resources/read", {"uri": uri})


@pytest.mark.parametrize("revision", REVISIONS)
class TestReading:
    def test_text(self, revision):
        """
        Text comes with its URI and its type.
        """
        result = read(revision, "notes://welcome")["result"]

        assert result["contents"] == [
            {"uri": "notes://welcome", "mimeType": "text/markdown", "text": "# Welcome"}
        ]

    def test_bytes(self, revision):
        """
        Bytes come in base64.
        """
        (contents,) = read(revision, "images://a%20b")["result"]["contents"]

        assert (contents["uri"], contents["mimeType"]) == ("images://a%20b", "image/png")
        assert b64decode(contents["blob"]) == b"a b"

    @pytest.mark.parametrize(
        ("uri", "text"),
        [
            ("logs://recent", "3 lines of 2026-01-31"),
            ("logs://recent?lines=7", "7 lines of 2026-01-31"),
            ("logs://recent?day=2025-12-01&lines=1", "1 lines of 2025-12-01"),
            ("logs://recent?lines=1&day=2025-12-01", "1 lines of 2025-12-01"),
        ],
    )
    def test_variables_have_types(self, revision, uri, text):
        """
        What stands in the URI is read as arguments are.
        """
        assert read(revision, uri)["result"]["contents"][0]["text"] == text

    @pytest.mark.parametrize(
        ("uri", "code", "said"),
        [
            ("logs://recent?lines=many", -32602, "'lines' is 'many', not a whole number"),
            ("logs://recent?lines=-1", -32602, "there are no fewer lines than none"),
            ("logs://recent?lines=0", -32603, "resource 'logs://recent?lines=0' failed (error "),
        ],
    )
    def test_what_a_function_refuses(self, revision, uri, code, said, capsys):
        """
        Variables that do not fit are told as arguments are; so is what an author says and does not.
        """
        error = read(revision, uri)["error"]

        assert (error["code"], said in error["message"]) == (code, True)
        assert ("ZeroDivisionError" in capsys.readouterr().err) == (code == -32603)

    def test_the_lists(self, revision):
        """
        Resources and templates are listed apart, with what the revision can say of them.
        """
        client = Client(CATALOG, revision)

        (found,) = client.ask("resources/list")["result"]["resources"]
        templates = client.ask("resources/templates/list")["result"]["resourceTemplates"]

        title = {"title": "Welcome"} if revision >= "2025-06-18" else {}
        assert found == {
            "uri": "notes://welcome",
            "name": "welcome",
            **title,
            "description": "What to read first.",
            "mimeType": "text/markdown",
        }
        assert [template["uriTemplate"] for template in templates] == [
            "images://{name}",
            "logs://recent{?day,lines}",
        ]


@pytest.mark.parametrize(
    ("revision", "code"), [*[(revision, -32002) for revision in HANDSHAKES], (MODERN, -32602)]
)
@pytest.mark.parametrize("uri", ["notes://nowhere", "", "welcome", "notes://welcome/", "logs://recent?x=1"])
def test_what_there_is_not(revision, code, uri):
    """
    Sessions have a code for it, the modern era has not; the URI is in the data.
    """
    error = read(revision, uri)["error"]

    assert (error["code"], error["data"]["uri"]) == (code, uri)


def test_text_without_a_type_is_plain():
    """
    Where nobody says what a text is, clients are told that it is plain.
    """

    @resource("notes://x")
    def note() -> str:
        return "x"

    client = Client(compile(Recipes(resources=(note,))))

    assert client.ask("resources/read", {"uri": "notes://x"})["result"]["contents"] == [
        {"uri": "notes://x", "mimeType": "text/plain", "text": "x"}
    ]


def test_what_may_be_kept():
    """
    A function may say something else the next time, so clients keep nothing of what they read.
    """
    result = read(MODERN, "notes://welcome")["result"]

    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


@pytest.mark.parametrize("revision", HANDSHAKES)
def test_a_session_without_resources(revision):
    """
    Clients that ask for every kind of list are not turned away.
    """
    client = Client(compile(Recipes(resources=())), revision)

    assert client.ask("resources/list")["result"] == {"resources": []}
    assert client.ask("resources/templates/list")["result"] == {"resourceTemplates": []}
    assert client.ask("tools/list")["result"] == {"tools": []}

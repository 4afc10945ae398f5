from base64 import b64decode, b64encode
from datetime import date

import pytest

from promptkit import PromptError, prompt, resource
from promptkit.compiler.compilation import compile
from promptkit.errors.rules import Rule
from promptkit.loader.recipes import Recipes
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


#: Paths that lead out of their folder on at least one platform.
OUTSIDE = [
    *["../notes.txt", "..%2Fnotes.txt", "%2e%2e%2fnotes.txt", "..", "a/../../notes.txt", "a/.."],
    *["/etc/passwd", "%2Fetc%2Fpasswd", "a,/etc/passwd", "a, ../b", "a%0A../b", "%5B%22/etc%22%5D"],
    *["..%5Cnotes.txt", "%5Cnotes.txt", "C:%5Cnotes.txt", "C:/notes.txt", "C:notes.txt", "a%00b"],
    *["%5B%22%5Cu002e%5Cu002e/notes.txt%22%5D"],
]

#: Values that are not URIs of ``numbers://{n}``.
INVALID_URIS = [
    *[3, None, ["x:a"], {"uri": "x:a"}],
    *["", "numbers", "//numbers/1", "numbers:1", " numbers://1", "numbers://1\n", "numbers://\x001"],
    *["numbers://one", "numbers://1/2", "numbers://%ff", "numbers://1?x=2", "numbers://{n}", "numbers://"],
]


@pytest.mark.parametrize("revision", REVISIONS)
class TestReading:
    @pytest.mark.requirement("resources/read/text")
    def test_text(self, revision):
        """Text has its URI and its MIME type."""
        result = read(revision, "notes://welcome")["result"]

        assert result["contents"] == [
            {"uri": "notes://welcome", "mimeType": "text/markdown", "text": "# Welcome"}
        ]

    @pytest.mark.requirement("resources/read/text", "resources/security/binary")
    def test_bytes(self, revision):
        """Bytes are encoded as base64, even if they are valid text."""
        assert read(revision, "images://a%20b")["result"]["contents"] == [
            {"uri": "images://a%20b", "mimeType": "image/png", "blob": b64encode(b"a b").decode()}
        ]

    @pytest.mark.parametrize("declared", ["notes://a%20b/caf%C3%A9", "notes://a%20b/caf%c3%a9"])
    @pytest.mark.parametrize(
        "uri",
        ["notes://a%20b/caf%C3%A9", "notes://a%20b/caf%c3%a9", "notes://a b/café", "notes://a b/caf%c3%A9"],
    )
    def test_equivalent_uris(self, revision, declared, uri):
        """A URI can contain unescaped characters, and escapes in lower case."""
        fixed, template = (
            resource(declared)(lambda: "fixed"),
            resource("notes://a%20b/{name}")(lambda name: name),
        )
        client = Client(compile(Recipes(resources=(fixed, template))), revision)

        (contents,) = client.ask("resources/read", {"uri": uri})["result"]["contents"]

        assert contents["text"] == "fixed"

    @pytest.mark.requirement("resources/security/binary")
    def test_all_byte_values(self, revision):
        """All byte values arrive unchanged."""
        data = bytes(range(256))
        client = Client(compile(Recipes(resources=(resource("x:data")(lambda: data),))), revision)

        (contents,) = client.ask("resources/read", {"uri": "x:data"})["result"]["contents"]

        assert b64decode(contents["blob"], validate=True) == data

    @pytest.mark.requirement("resources/templates")
    @pytest.mark.parametrize(
        ("uri", "text"),
        [
            ("logs://recent", "3 lines of 2026-01-31"),
            ("logs://recent?lines=7", "7 lines of 2026-01-31"),
            ("logs://recent?day=2025-12-01&lines=1", "1 lines of 2025-12-01"),
            ("logs://recent?lines=1&day=2025-12-01", "1 lines of 2025-12-01"),
        ],
    )
    def test_typed_variables(self, revision, uri, text):
        """Variables in the URI are converted like arguments."""
        assert read(revision, uri)["result"]["contents"][0]["text"] == text

    @pytest.mark.parametrize(
        ("uri", "code", "message"),
        [
            ("logs://recent?lines=many", -32602, "'lines' is 'many', not a whole number"),
            ("logs://recent?lines=-1", -32602, "there are no fewer lines than none"),
            ("logs://recent?lines=0", -32603, "resource 'logs://recent?lines=0' failed (error "),
        ],
    )
    def test_errors(self, revision, uri, code, message, capsys):
        """Invalid variables and author errors are reported like those of prompts."""
        error = read(revision, uri)["error"]

        assert (error["code"], message in error["message"]) == (code, True)
        assert ("ZeroDivisionError" in capsys.readouterr().err) == (code == -32603)

    @pytest.mark.requirement("resources/read/internal-error")
    def test_failing_function(self, revision, capsys):
        """The exception of a function stays on the server."""

        @resource("x:broken")
        def broken() -> str:
            raise ValueError("password123")

        client = Client(compile(Recipes(resources=(broken,))), revision)
        error = client.ask("resources/read", {"uri": "x:broken"})["error"]

        assert (error["code"], "password123" in str(error)) == (-32603, False)
        assert "password123" in capsys.readouterr().err

    @pytest.mark.requirement("resources/templates", "resources/templates/mime-type")
    @pytest.mark.requirement("resources/list/answered")
    def test_lists(self, revision):
        """Resources and templates have separate lists, with the fields of the revision."""
        client = Client(CATALOG, revision)

        (listed,) = client.ask("resources/list")["result"]["resources"]
        templates = client.ask("resources/templates/list")["result"]["resourceTemplates"]

        title = {"title": "Welcome"} if revision >= "2025-06-18" else {}
        assert listed == {
            "uri": "notes://welcome",
            "name": "welcome",
            **title,
            "description": "What to read first.",
            "mimeType": "text/markdown",
        }
        assert [(template["uriTemplate"], template.get("mimeType", "none")) for template in templates] == [
            ("images://{name}", "image/png"),
            ("logs://recent{?day,lines}", "none"),
        ]

    @pytest.mark.requirement("resources/security/uris")
    def test_invalid_uri(self, revision):
        """An invalid URI is rejected before the author's function is called."""
        calls = []

        @resource("numbers://{n}")
        def number(n: int) -> str:
            calls.append(n)
            return str(n)

        client = Client(compile(Recipes(resources=(number,))), revision)

        for uri in INVALID_URIS:
            reply = client.ask("resources/read", {"uri": uri})
            assert (reply["error"]["code"] in {-32602, -32002}, calls) == (True, []), uri
        assert "result" in client.ask("resources/read", {"uri": "numbers://7"})
        assert calls == [7]

    @pytest.mark.requirement("resources/security/traversal")
    @pytest.mark.parametrize(
        "template", ["file:///docs/{+path}", "FILE:///docs{?path}", "file:///docs{?path*}"]
    )
    def test_path_traversal(self, revision, template):
        """A path in a file URI cannot leave its folder, on any platform."""
        calls = []

        @resource(template)
        def document(path: list[str]) -> str:
            calls.append(path)
            return "x"

        client = Client(compile(Recipes(resources=(document,))), revision)
        for path in OUTSIDE:
            uri = template.partition("{")[0] + ("?path=" if "?" in template else "") + path
            error = client.ask("resources/read", {"uri": uri})["error"]

            assert (error["code"], calls) == (-32602, []), path
            assert error["message"].endswith(", not a plain relative path without '..'"), path

    @pytest.mark.requirement("resources/security/traversal")
    @pytest.mark.parametrize(
        ("path", "read"),
        [
            ("a.txt", "a.txt"),
            ("a/b.txt", "a/b.txt"),
            ("a..b/...", "a..b/..."),
            ("a%20b%C3%A9", "a b\u00e9"),
            ("2026-01-31T12:00", "2026-01-31T12:00"),
        ],
    )
    def test_path_below_the_folder(self, revision, path, read):
        """Any path below the folder reaches the author's function unchanged."""
        document = resource("file:///docs/{+path}")(lambda path: path)
        client = Client(compile(Recipes(resources=(document,))), revision)

        (contents,) = client.ask("resources/read", {"uri": f"file:///docs/{path}"})["result"]["contents"]

        assert contents["text"] == read


@pytest.mark.requirement("resources/read/not-found", "resources/read/not-found-modern")
@pytest.mark.requirement("resources/read/no-empty-contents")
@pytest.mark.parametrize(
    ("revision", "code"), [*[(revision, -32002) for revision in HANDSHAKES], (MODERN, -32602)]
)
@pytest.mark.parametrize("uri", ["notes://nowhere", "", "welcome", "notes://welcome/", "logs://recent?x=1"])
def test_unknown_resource(revision, code, uri):
    """
    An unknown resource leads to -32002 in sessions, or -32602 in the modern era, with the URI in the data.
    """
    reply = read(revision, uri)

    assert (reply["error"]["code"], reply["error"]["data"]["uri"]) == (code, uri)
    assert "result" not in reply


@pytest.mark.requirement("resources/read/no-empty-contents")
@pytest.mark.parametrize("revision", REVISIONS)
def test_empty_resource(revision):
    """The content of an empty resource is one empty string."""
    client = Client(compile(Recipes(resources=(resource("x:empty", name="empty")(lambda: ""),))), revision)

    assert client.ask("resources/read", {"uri": "x:empty"})["result"]["contents"] == [
        {"uri": "x:empty", "mimeType": "text/plain", "text": ""}
    ]


@pytest.mark.requirement("resources/uris/custom")
@pytest.mark.parametrize(
    ("uri", "is_valid"),
    [
        *[(uri, True) for uri in ("x:a", "git+ssh://host/a", "a.b-c:%C3%A9?b=1#c", "urn:isbn:0451450523")],
        *[
            (uri, False)
            for uri in ("a", "/a", "1x:a", "x y:a", "x_y:a", "x:a b", "x:%zz", "x:\u00e9", "x:<a>", "x:")
        ],
    ],
)
def test_uri_syntax(uri, is_valid):
    """A valid URI of any scheme is listed unchanged; an invalid URI is reported."""
    catalog = compile(
        Recipes(prompts=(prompt(name="p")(lambda: "x"),), resources=(resource(uri)(lambda: "x"),))
    )
    listed = Client(catalog).ask("resources/list").get("result", {"resources": []})["resources"]
    reported = [diagnostic.rule for diagnostic in catalog.diagnostics]

    assert [item["uri"] for item in listed] == [uri] * is_valid
    assert reported == [Rule.BAD_TEMPLATE] * (not is_valid)


def test_default_mime_type():
    """Text without a MIME type is sent as text/plain."""

    @resource("notes://x")
    def note() -> str:
        return "x"

    client = Client(compile(Recipes(resources=(note,))))

    assert client.ask("resources/read", {"uri": "notes://x"})["result"]["contents"] == [
        {"uri": "notes://x", "mimeType": "text/plain", "text": "x"}
    ]


def test_resource_is_not_cacheable():
    """Resources have a lifetime of 0, because a function can return another result the next time."""
    result = read(MODERN, "notes://welcome")["result"]

    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


@pytest.mark.parametrize("revision", HANDSHAKES)
def test_session_without_resources(revision):
    """Clients can request every kind of list, even if it is empty."""
    client = Client(compile(Recipes(resources=())), revision)

    assert client.ask("resources/list")["result"] == {"resources": []}
    assert client.ask("resources/templates/list")["result"] == {"resourceTemplates": []}
    assert client.ask("tools/list")["result"] == {"tools": []}

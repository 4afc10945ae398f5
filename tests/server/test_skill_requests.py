from base64 import b64decode
from hashlib import sha256

import pytest

from promptkit import prompt, resource, skill
from promptkit.compiler.compilation import compile
from tests.wire import HANDSHAKES, MODERN, REVISIONS, Client

SKILLS = "io.modelcontextprotocol/skills"
FILES = {"references/rules.md": "Rules", "references/deep/x.txt": "x", "logo.bin": b"\xff\x00", "empty": ""}


@skill(files=FILES, license="MIT")
def review():
    """Review a change. Use it often."""
    return "Read [the rules](references/rules.md)."


@skill(prefix="acme", description="Only for some.", scopes=["team"])
def secret():
    return "Hush."


@prompt
def hello() -> str:
    return "hello"


@resource("notes://welcome")
def welcome() -> str:
    return "Welcome"


CATALOG = compile([review, secret, hello, welcome])
assert CATALOG.diagnostics == ()

ROOT = "skill://review"


@pytest.fixture(params=REVISIONS)
def client(request):
    """Return a client of each revision, without scopes."""
    return Client(CATALOG, request.param)


def digest_and_size(data):
    return {"digest": f"sha256:{sha256(data).hexdigest()}", "size": len(data)}


def modern_fields(client, **members):
    """Return the fields that only results of the modern era have."""
    return members if client.revision == MODERN else {}


@pytest.mark.parametrize("revision", REVISIONS)
def test_capability(revision):
    """The capabilities of skills and resources are always declared, even before the import."""

    def capabilities(catalog):
        client = Client(catalog, revision)
        method = "server/discover" if revision == MODERN else "initialize"
        params = {} if revision == MODERN else {"protocolVersion": revision, "capabilities": {}}
        params |= {} if revision == MODERN else {"clientInfo": {"name": "x", "version": "1"}}
        return client.ask(method, params)["result"]["capabilities"]

    with_skills, without = capabilities(compile([review])), capabilities(compile([hello]))

    assert with_skills["extensions"] == {SKILLS: {"directoryRead": True}}
    assert "resources" in with_skills
    assert without == with_skills


@pytest.mark.parametrize("revision", REVISIONS)
def test_server_without_skills(revision):
    """A server without skills has an empty list of skills, and every skill URI is unknown."""
    client = Client(compile([hello]), revision)

    assert client.ask("skills/list")["result"]["skills"] == []
    for method in ("skills/get", "resources/directory/read"):
        assert client.ask(method, {"uri": "skill://x/SKILL.md"})["error"]["code"] == -32602


class TestList:
    def test_entry(self, client):
        """An entry has the frontmatter and each file with its size and digest; hidden skills are omitted."""
        result = client.ask("skills/list")["result"]

        (entry,) = result.pop("skills")
        result.pop("_meta", None)
        assert result == modern_fields(client, resultType="complete", ttlMs=300_000, cacheScope="private")
        assert entry["uri"] == f"{ROOT}/SKILL.md"
        assert entry["frontmatter"] == {
            "name": "review",
            "description": "Review a change. Use it often.",
            "license": "MIT",
        }
        by_uri = {
            file["uri"]: {"digest": file["digest"], "size": file["size"]} for file in entry["resources"]
        }
        assert len(by_uri) == len(entry["resources"]) == 5
        assert by_uri[f"{ROOT}/references/rules.md"] == digest_and_size(b"Rules")
        assert by_uri[f"{ROOT}/logo.bin"] == digest_and_size(b"\xff\x00")
        assert by_uri[f"{ROOT}/empty"] == digest_and_size(b"")

    def test_pages(self, client):
        """A skill is not split across pages."""

        def numbered(number):
            return skill(name=f"skill-{number}", description="x", files={"a": "a", "b": "b"})(lambda: "x")

        paged = Client(compile([numbered(i) for i in range(5)]), client.revision, page_size=2)
        names, sizes, cursor = [], [], {}
        while cursor is not None:
            result = paged.ask("skills/list", cursor)["result"]
            names += [item["frontmatter"]["name"] for item in result["skills"]]
            sizes += [len(item["resources"]) for item in result["skills"]]
            cursor = {"cursor": result["nextCursor"]} if "nextCursor" in result else None

        assert names == [f"skill-{i}" for i in range(5)]
        assert sizes == [3] * 5

    def test_resource_list(self, client):
        """The resource list has only the first file of a skill, for clients without support for skills."""
        listed = client.ask("resources/list")["result"]["resources"]

        assert listed == [
            {"uri": "notes://welcome", "name": "welcome"},
            {
                "uri": f"{ROOT}/SKILL.md",
                "name": "review",
                "description": "Review a change. Use it often.",
                "mimeType": "text/markdown",
            },
        ]


class TestGet:
    def test_skill(self, client):
        """A skill is returned as in the list, by the URI of its first file."""
        (listed,) = client.ask("skills/list")["result"]["skills"]
        result = client.ask("skills/get", {"uri": f"{ROOT}/SKILL.md"})["result"]

        assert result.pop("skill") == listed
        result.pop("_meta", None)
        assert result == modern_fields(client, resultType="complete", ttlMs=300_000, cacheScope="private")

    @pytest.mark.parametrize(
        "uri", [ROOT, f"{ROOT}/", f"{ROOT}/references/rules.md", "skill://acme/secret/SKILL.md", "x"]
    )
    def test_unknown_skill(self, client, uri):
        """Other URIs and hidden skills are unknown."""
        error = client.ask("skills/get", {"uri": uri})["error"]

        assert error["code"] == -32602
        assert uri in error["message"]

    def test_scopes(self, client):
        """A client with the scopes can list, get and read the skill."""
        other = Client(CATALOG, client.revision, scopes=frozenset({"team"}))
        uri = "skill://acme/secret/SKILL.md"

        assert len(other.ask("skills/list")["result"]["skills"]) == 2
        assert other.ask("skills/get", {"uri": uri})["result"]["skill"]["uri"] == uri
        assert "Hush." in other.ask("resources/read", {"uri": uri})["result"]["contents"][0]["text"]
        assert "error" in client.ask("resources/read", {"uri": uri})
        assert "error" in client.ask("resources/directory/read", {"uri": "skill://acme/secret"})


class TestFiles:
    @pytest.mark.parametrize("path", ["SKILL.md", *FILES])
    def test_content(self, client, path):
        """A file is text if it is UTF-8, and base64 otherwise; a second read returns the same."""
        uri = f"{ROOT}/{path}"
        (first,), (second,) = (
            client.ask("resources/read", {"uri": uri})["result"]["contents"] for _ in range(2)
        )

        assert first == second
        assert first["uri"] == uri
        data = b64decode(first["blob"]) if "blob" in first else first["text"].encode()
        (entry,) = client.ask("skills/list")["result"]["skills"]
        (listed,) = (file for file in entry["resources"] if file["uri"] == uri)
        assert digest_and_size(data) == {"digest": listed["digest"], "size": listed["size"]}
        assert ("blob" in first) == (path == "logo.bin")

    def test_mime_types(self, client):
        """The MIME type depends on the file name."""

        def type_of(path):
            (contents,) = client.ask("resources/read", {"uri": f"{ROOT}/{path}"})["result"]["contents"]
            return contents["mimeType"]

        assert [type_of(path) for path in ("SKILL.md", "references/deep/x.txt", "logo.bin", "empty")] == [
            "text/markdown",
            "text/plain",
            "application/octet-stream",
            "text/plain",
        ]

    @pytest.mark.parametrize(
        "path", ["", "/", "/nothing", "/references", "/../review/SKILL.md", "/references//rules.md"]
    )
    def test_unknown_file(self, client, path):
        """A file has exactly one valid URI."""
        error = client.ask("resources/read", {"uri": f"{ROOT}{path}"})["error"]

        assert error["code"] == (-32602 if client.revision == MODERN else -32002)


class TestFolders:
    def test_direct_children(self, client):
        """A folder lists its files, and its subfolders with the MIME type of a directory."""
        result = client.ask("resources/directory/read", {"uri": ROOT})["result"]

        assert [(entry["uri"], entry.get("mimeType")) for entry in result["resources"]] == [
            (f"{ROOT}/SKILL.md", "text/markdown"),
            (f"{ROOT}/empty", None),
            (f"{ROOT}/logo.bin", "application/octet-stream"),
            (f"{ROOT}/references", "inode/directory"),
        ]
        assert "nextCursor" not in result

    def test_subfolder(self, client):
        """Every subfolder of a skill can be listed."""
        result = client.ask("resources/directory/read", {"uri": f"{ROOT}/references"})["result"]

        assert [(entry["uri"], entry["name"]) for entry in result["resources"]] == [
            (f"{ROOT}/references/deep", "deep"),
            (f"{ROOT}/references/rules.md", "rules.md"),
        ]

    def test_pages(self, client):
        """A cursor is valid only for its folder."""
        small = Client(CATALOG, client.revision, page_size=3)
        first = small.ask("resources/directory/read", {"uri": ROOT})["result"]
        params = {"uri": ROOT, "cursor": first["nextCursor"]}
        second = small.ask("resources/directory/read", params)["result"]

        assert [len(page["resources"]) for page in (first, second)] == [3, 1]
        other = small.ask("resources/directory/read", {**params, "uri": f"{ROOT}/references"})
        assert other["error"]["code"] == -32602

    @pytest.mark.parametrize(
        "uri", [f"{ROOT}/", f"{ROOT}/SKILL.md", f"{ROOT}/nothing", "skill:/", "skill://", "", "x"]
    )
    def test_unknown_folder(self, client, uri):
        """Files, other spellings and missing folders are errors."""
        assert client.ask("resources/directory/read", {"uri": uri})["error"]["code"] == -32602


@pytest.mark.parametrize("revision", HANDSHAKES)
def test_changed_file(revision):
    """
    A changed file counts as a change to the resource list, because the skill list contains the file's digest.
    """

    def catalog_of(text):
        return compile([hello, skill(name="a", description="x", files={"x.md": text})(lambda: "x")])

    client = Client(catalog_of("one"), revision, changes=True)
    client.ask("resources/subscribe", {"uri": "skill://a/x.md"})
    client.sent.clear()

    client.server.replace(catalog_of("two"))

    assert [reply["method"] for reply in client.replies()] == [
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    ]
    listed = client.ask("skills/list")["result"]["skills"][0]["resources"]
    read = client.ask("resources/read", {"uri": "skill://a/x.md"})["result"]["contents"][0]
    assert listed[1]["digest"] == digest_and_size(read["text"].encode())["digest"]

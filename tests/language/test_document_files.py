import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit import EmbeddedResource, user
from promptkit.errors import MediaError
from promptkit.exports import anthropic_messages, openai_responses
from promptkit.language.documents import document_type_and_text
from promptkit.language.files import MAX_FILE_BYTES, recipe_uri
from promptkit.loader.loader import load
from promptkit.testing import Client

PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n%%EOF\n"

RECIPE = """
    from promptkit import EmbeddedResource, prompt, user

    @prompt
    def ask(name: str = "policy.md"):
        return user("What does it say?", EmbeddedResource.from_path(name))

    @prompt
    def confined(name: str):
        return EmbeddedResource.from_path(name, root="../policies")

    @prompt
    def named():
        return EmbeddedResource.from_path(
            "policy.md", "policy:///leave", mime_type="text/x-policy", audience="assistant", priority=1
        )
"""


@pytest.fixture
def folder(recipes, tmp_path, monkeypatch):
    """A folder with recipes, and documents in it and next to it."""
    folder = recipes(ask=RECIPE)
    recipes("recipes/ops", deploy=RECIPE)
    documents = {
        "recipes/policy.md": b"# Leave\n",
        "recipes/ops/policy.md": b"# Deploying\n",
        "recipes/ops/long plan.pdf": PDF,
        "policies/hr/leave.md": b"# Leave\n",
        "policies.md": b"# All\n",
    }
    for name, data in documents.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_bytes(data)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    return folder


@pytest.fixture
def prompts(folder):
    """The prompts of the folder by ``file:prompt``."""
    return {f"{Path(prompt.location.file).stem}:{prompt.__name__}": prompt for prompt in load(folder).prompts}


class TestFromPath:
    def test_uri_is_relative_to_the_served_folder(self, prompts):
        """A path is relative to the recipe's folder, and the URI to the served folder."""
        assert prompts["ask:ask"]()[1].content == EmbeddedResource(
            "recipe:///policy.md", text="# Leave\n", mime_type="text/markdown"
        )
        assert prompts["deploy:ask"]()[1].content == EmbeddedResource(
            "recipe:///ops/policy.md", text="# Deploying\n", mime_type="text/markdown"
        )
        assert prompts["deploy:ask"]("../policy.md") == prompts["ask:ask"]()

    def test_binary_file_is_sent_as_a_blob(self, prompts):
        """Binary files become blobs of the detected type, and special characters in names are escaped."""
        assert prompts["deploy:ask"]("long plan.pdf")[1].content == EmbeddedResource(
            "recipe:///ops/long%20plan.pdf", blob=PDF, mime_type="application/pdf"
        )

    def test_uri_does_not_reveal_other_folders(self, folder, tmp_path, prompts):
        """The URI of a file outside the served folder contains only its name."""
        for path in ("../policies.md", str(tmp_path / "policies.md")):
            assert prompts["ask:ask"](path)[1].content.uri == "recipe:///policies.md"
        assert (
            prompts["ask:ask"](str(folder / "ops" / "policy.md"))[1].content.uri == "recipe:///ops/policy.md"
        )

    def test_declared_options_are_kept(self, prompts):
        """A declared URI, type and annotations are kept."""
        assert prompts["ask:named"]() == EmbeddedResource(
            "policy:///leave",
            text="# Leave\n",
            mime_type="text/x-policy",
            audience="assistant",
            priority=1,
        )

    def test_root_confines_a_path(self, prompts):
        """With a root, the URI is the requested path, which cannot leave the root."""
        assert prompts["ask:confined"]("hr//leave.md").uri == "recipe:///hr/leave.md"
        for path in ("../recipes/policy.md", "/etc/passwd", "C:\\a.md"):
            with pytest.raises(MediaError, match="is not a plain relative path below 'policies'"):
                prompts["ask:confined"].render_wire({"name": path})

    def test_missing_file_raises_file_not_found_error(self, prompts):
        """Without a root, a missing file raises FileNotFoundError."""
        with pytest.raises(FileNotFoundError, match=r"missing\.md"):
            prompts["ask:ask"]("missing.md")

    def test_file_that_is_too_large_is_rejected(self, folder, prompts):
        """A file above the limit is rejected with its size."""
        with (folder / "large.txt").open("wb") as file:
            file.truncate(MAX_FILE_BYTES + 1)

        with pytest.raises(
            MediaError, match=r"large\.txt': the size is 20,971,521 bytes, but the limit is 20,971,520 bytes"
        ):
            prompts["ask:ask"]("large.txt")

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"uri": "policy"}, ValueError, "'policy' is not a URI: it needs a scheme"),
            ({"uri": ""}, ValueError, "'' is not a URI"),
            ({"mime_type": 3}, TypeError, "mime_type must be a str, not int"),
            ({"priority": 2}, ValueError, "priority is 2"),
        ],
        ids=str,
    )
    def test_invalid_options_are_rejected(self, arguments, error, message, tmp_path):
        """Invalid options raise the same errors as the class itself."""
        (tmp_path / "a.md").write_text("a")

        with pytest.raises(error, match=re.escape(message)):
            EmbeddedResource.from_path(tmp_path / "a.md", **arguments)

    def test_uri_in_a_script_is_relative_to_its_folder(self, tmp_path):
        """In a script, the URI is relative to the script's folder."""
        (tmp_path / "docs").mkdir()
        (tmp_path / "docs" / "a.md").write_text("a")
        source = "from promptkit import EmbeddedResource\ndocument = EmbeddedResource.from_path('docs/a.md')"
        script = {"__file__": str(tmp_path / "script.py"), "__name__": "__main__"}

        exec(source, script)  # noqa: S102 (our own source)

        assert script["document"].uri == "recipe:///docs/a.md"

    def test_clients_and_vendors_receive_the_document(self, folder):
        """A document arrives unchanged, with a URI relative to the folder of the served file."""
        with Client(folder / "ops" / "deploy.py") as client:
            workflow = client.get_prompt("ask", {"name": "long plan.pdf"})

        document = EmbeddedResource("recipe:///long%20plan.pdf", blob=PDF, mime_type="application/pdf")
        assert workflow == user("What does it say?", document)
        (turn,) = openai_responses(workflow)
        assert turn["content"][1]["filename"] == "long plan.pdf"
        (turn,) = anthropic_messages(workflow)
        assert turn["content"][1]["title"] == "recipe:///long%20plan.pdf"


class TestUris:
    @pytest.mark.parametrize(
        ("file", "folders", "uri"),
        [
            ("/a/b/c.md", ["/a"], "recipe:///b/c.md"),
            ("/a/./b/../c.md", ["/a/b/.."], "recipe:///c.md"),
            ("/a/b/c.md", ["/x", "/a/b"], "recipe:///c.md"),
            ("/a/b/c.md", ["/a", "/a/b"], "recipe:///b/c.md"),
            ("/ab/c.md", ["/a"], "recipe:///c.md"),
            ("/a/c.md", [], "recipe:///c.md"),
            ("/a/休 #1?.md", ["/a"], "recipe:///%E4%BC%91%20%231%3F.md"),
            ("/a/caf\udce9.md", ["/a"], "recipe:///caf%E9.md"),
        ],
        ids=ascii,
    )
    def test_path_is_converted_to_a_uri(self, file, folders, uri):
        """The URI is escaped, and relative to the first folder with the file, or only its name."""
        assert recipe_uri(Path(file), *map(Path, folders)) == uri

    @given(st.lists(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1)))
    def test_every_path_gives_a_valid_uri(self, names):
        """Every path gives a valid URI that does not reveal the folders above."""
        path = Path("/home/somebody", *names, "a.md")

        uri = recipe_uri(path, Path("/home/somebody"))

        assert EmbeddedResource(uri, text="").uri == uri
        assert "somebody" not in uri or "somebody" in "".join(names)


class TestTypes:
    @pytest.mark.parametrize(
        ("name", "data", "mime_type"),
        [
            ("a.md", b"# A", "text/markdown"),
            ("A.MD", b"# A", "text/markdown"),
            ("a.csv", b"a,b", "text/csv"),
            ("a.py", b"x = 1", "text/x-python"),
            ("a.html", b"<p>", "text/html"),
            ("a.json", b"{}", "application/json"),
            ("a.yml", b"a: 1", "application/yaml"),
            ("a.toml", b"a = 1", "application/toml"),
            ("a.js", b"let a", "text/javascript"),
            ("a.svg", b"<svg/>", "image/svg+xml"),
            ("a.txt", "\ufeffä".encode(), "text/plain"),
            ("a.txt", b"", "text/plain"),
            ("bmw.md", b"BMW and MZ", "text/markdown"),
            ("main.ts", b"let a = 1", "text/plain"),
            ("graph.dot", b"digraph {}", "text/plain"),
            ("Makefile", b"all:\n", "text/plain"),
            (".gitignore", b"*.pyc\n", "text/plain"),
            ("a.unknown", b"a\r\nb", "text/plain"),
        ],
    )
    def test_utf_8_is_text(self, name, data, mime_type):
        """UTF-8 is text without its byte order mark, and a known suffix determines the text type."""
        assert document_type_and_text(name, data, None) == (mime_type, data.decode("utf-8-sig"))

    @pytest.mark.parametrize(
        ("name", "data", "mime_type"),
        [
            ("a.pdf", b"%PDF-1.7\nonly ASCII", "application/pdf"),
            ("a", PDF, "application/pdf"),
            ("a.txt", b"\x89PNG\r\n\x1a\n", "image/png"),
            ("a.txt", "ä".encode("latin-1"), "text/plain"),
            ("a.txt", "a".encode("utf-16"), "text/plain"),
            ("a.bin", b"a\0b", "application/octet-stream"),
            ("a.unknown", b"\xff\xff", "application/octet-stream"),
            ("a.zip", b"\xff\xff", "application/zip"),
        ],
    )
    def test_other_files_are_binary(self, name, data, mime_type):
        """The type of other files is detected from the bytes, or otherwise from the name."""
        assert document_type_and_text(name, data, None) == (mime_type, None)

    @pytest.mark.parametrize(
        ("declared", "is_text"),
        [
            ("text/x-rust; charset=utf-8", True),
            ("application/vnd.api+json", True),
            ("Application/YAML", True),
            ("application/pdf", False),
            ("application/x-own", False),
        ],
    )
    def test_declared_type_is_kept(self, declared, is_text):
        """A declared type is kept, and determines whether UTF-8 is text."""
        assert document_type_and_text("a.md", b"a", declared) == (declared, "a" if is_text else None)

    @given(st.text(), st.sampled_from(["a.md", "a.txt", "a.json"]))
    def test_text_is_unchanged(self, text, name):
        """Text is kept unchanged, unless it contains a NUL or surrogates, which make it binary."""
        data = text.encode(errors="surrogatepass")

        _, decoded = document_type_and_text(name, data, None)

        without_mark = re.sub("^\ufeff", "", text)
        assert decoded == (None if re.search("[\0\ud800-\udfff]", text) else without_mark)

    def test_types_registered_in_the_system_are_ignored(self, monkeypatch):
        """Types do not depend on those registered in the system."""
        import mimetypes

        mimetypes.init()
        for ending in (".md", ".mine"):
            monkeypatch.setitem(mimetypes.types_map, ending, "text/x-mine")

        assert document_type_and_text("a.md", b"a", None)[0] == "text/markdown"
        assert document_type_and_text("a.mine", b"a", None)[0] == "text/plain"

import os
from contextlib import closing

import pytest

from promptkit import Text
from promptkit.compiler.reloading import Reloader
from promptkit.errors import MediaError
from promptkit.language.files import mark_texts_stale, reads_once

RECIPE = """
from promptkit import Text, prompt

@prompt
def specify(feature: str, scope: str | None = None):
    return Text.from_path("specify.md", feature=feature, scope=scope)
"""


@pytest.fixture
def beside(tmp_path):
    """Return a function that writes a text file next to a recipe and returns its reader."""
    reads_once.clear()  # an earlier test may have ended like a server, which leaves it set
    names = {"__file__": str(tmp_path / "recipe.py"), "Text": Text}

    def write(text, name="x.md"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return lambda path=name, /, **values: eval(  # noqa: S307 (called as from the recipe)
            "Text.from_path(path, **values)", {**names, "path": path, "values": values}
        )

    return write


def settled(folder):
    """Make files look older, because recently written files are read later: their editor may not be done."""
    for file in folder.glob("*.py"):
        os.utime(file, (1e9, 1e9))


def saved(file, text):
    """Write a file so that its timestamp changes, however coarse the file system's clock is."""
    before = file.stat().st_mtime_ns
    file.write_text(text, encoding="utf-8")
    os.utime(file, ns=(before + 10**9, before + 10**9))


class TestReading:
    def test_holes(self, beside):
        """A file has the same placeholders as `fill`."""
        read = beside("# {{name}}\n\nScope: {{ scope }}\n\n{{other}}\n")

        assert read(name="x", scope=None) == Text("# x\n\n{{other}}")
        with pytest.raises(
            ValueError,
            match=r"x\.md: the text has no placeholder \{\{nme\}\}; its placeholders: \{\{name\}\}",
        ):
            read(nme="x")
        with pytest.raises(TypeError, match=r"x\.md: name is True"):
            read(name=True)

    @pytest.mark.parametrize(
        ("written", "text"),
        [
            ("\n\n  a\r\nb \n\n", "  a\nb"),
            ("\ufeffä\n", "ä"),
            ("---\ntitle: x\n---\n\n# Hello\n", "# Hello"),
            ("---\n---\na", "a"),
            ("---\n# told\non: [a,\n  b]\nsteps:\n- one\n\nmore.of-it: 1\n---\na", "a"),
            ('---\n"title": x\nallowed tools: Read\n---\na', "a"),
            ("---\n\nA rule above.\n\n---\n\na", "---\n\nA rule above.\n\n---\n\na"),
            ("---\n\n# Rules\n\n- Be brief\n\n---\na", "---\n\n# Rules\n\n- Be brief\n\n---\na"),
            ("---\n  An indented line.\n---\na", "---\n  An indented line.\n---\na"),
            ("---\n- a: list\n---\na", "---\n- a: list\n---\na"),
            ("---\n\n# told\ntitle: x\n---\na", "a"),
            ("\n---\ntitle: x\n---\na", "---\ntitle: x\n---\na"),
            ("a\n---\nb: c\n---\n", "a\n---\nb: c\n---"),
            ("---\n\na\n", "---\n\na"),
        ],
    )
    def test_what_is_left_out(self, written, text, beside):
        """Frontmatter, a byte order mark and outer blank lines are dropped; text between rules is kept."""
        assert beside(written)() == Text(text)

    def test_no_utf_8(self, beside):
        """The error about invalid UTF-8 has the position and a fix."""
        with pytest.raises(MediaError, match=r"'x\.md' is not UTF-8 at byte 2: save it as UTF-8"):
            beside(b"a\xff")()

    @pytest.mark.parametrize(
        ("path", "says"),
        [
            ("../x.md", "is not a plain relative path below"),
            ("/etc/hosts", "is not a plain relative path below"),
            ("nope.md", "there is no file 'nope.md' in"),
            (".", "there is no file '.' in"),
        ],
    )
    def test_other_places(self, path, says, beside):
        """The path must be a file below the recipe's folder."""
        with pytest.raises(MediaError, match=says):
            beside("x")(path)

    def test_a_link(self, beside, tmp_path_factory, tmp_path):
        """A link that leads out of the folder is rejected."""
        secret = tmp_path_factory.mktemp("elsewhere") / "secret.md"
        secret.write_text("secret")
        (tmp_path / "link.md").symlink_to(secret)

        with pytest.raises(MediaError, match="leads out of"):
            beside("x")("link.md")

    def test_below(self, tmp_path):
        """`Text.below` confines a path to the given folder."""
        (tmp_path / "styles").mkdir()
        (tmp_path / "styles" / "short.md").write_text("Be {{how}}.\n")

        assert Text.below(tmp_path / "styles", "short.md", how="brief") == Text("Be brief.")
        with pytest.raises(MediaError, match="is not a plain relative path below 'styles'"):
            Text.below(tmp_path / "styles", "../recipe.py")

    def test_annotations(self, beside):
        """A value passes on its annotations; `Text` can replace them."""
        read = beside("{{a}}")

        assert read(a=Text("x", priority=1)) == Text("x", priority=1)
        assert Text(read(a="x").text, priority=1) == Text("x", priority=1)


class TestChanges:
    def test_a_direct_call(self, beside, tmp_path):
        """Without a server, a changed file is read again."""
        read = beside("one {{a}}")
        assert read(a=1) == Text("one 1")
        saved(tmp_path / "x.md", "two {{a}}")

        assert read(a=1) == Text("two 1")

    def test_a_file_that_is_gone(self, beside, tmp_path):
        """A deleted file is not served from the cache."""
        read = beside("one")
        read()
        (tmp_path / "x.md").unlink()

        with pytest.raises(MediaError, match="there is no file"):
            read()

    def test_a_server(self, beside, tmp_path):
        """In a server, a cached file is checked again only after it was marked as stale."""
        read = beside("one")
        reads_once.set()
        try:
            assert read() == Text("one")
            saved(tmp_path / "x.md", "two")
            assert read() == Text("one")
            mark_texts_stale()
            assert read() == Text("two")
        finally:
            reads_once.clear()

    @pytest.mark.parametrize("target", ["recipes", "recipes/specify.py"])
    def test_a_reload(self, target, recipes, monkeypatch):
        """A changed text file is served after a reload, without a change to the recipe."""
        folder = recipes(specify=RECIPE)
        monkeypatch.chdir(folder.parent)
        text = folder / "specify.md"
        text.write_text("Specify {{feature}}.\n{{scope}}\n")
        settled(folder)
        with closing(Reloader(target, lambda _: None)) as reloader:
            catalog = reloader.load()
            said = catalog["specify"].render({"feature": "x"})
            saved(text, "Describe {{feature}}.\n{{scope}}\n")
            kept = catalog["specify"].render({"feature": "x"})
            assert reloader._find_files().files.keys() >= {str(text)}
            reloader._reload()
            changed = catalog["specify"].render({"feature": "x"})

        assert [one.text for one in (said, kept, changed)] == ["Specify x.", "Specify x.", "Describe x."]


def test_a_text_that_a_module_reads(recipes, monkeypatch):
    """A recipe file that reads a text on import is reimported when the text changes."""
    source = RECIPE.replace("return Text", "return GUIDE if scope else Text")
    folder = recipes(specify=source + '\nGUIDE = Text.from_path("guide.md")\n')
    monkeypatch.chdir(folder.parent)
    (folder / "guide.md").write_text("One.")
    settled(folder)
    with closing(Reloader("recipes", lambda _: None)) as reloader:
        catalogs = [reloader.load()]
        reloader._publish = catalogs.append
        saved(folder / "guide.md", "Two.")
        reloader._reload()
        said = [catalog["specify"].render({"feature": "x", "scope": "y"}).text for catalog in catalogs]

    assert said == ["One.", "Two."]

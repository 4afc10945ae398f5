import os
from contextlib import closing

import pytest

from promptkit import Text
from promptkit.compiler.reloading import Reloader
from promptkit.errors import MediaError
from promptkit.language.files import mark_texts_stale, trusts_cache

RECIPE = """
from promptkit import Text, prompt

@prompt
def specify(feature: str, scope: str | None = None):
    return Text.from_path("specify.md", feature=feature, scope=scope)
"""


@pytest.fixture
def write_text(tmp_path):
    """A function that writes a text file next to a recipe and returns a function that reads it."""
    trusts_cache.clear()  # a server in an earlier test may have left this set
    names = {"__file__": str(tmp_path / "recipe.py"), "Text": Text}

    def write_file(text, name="x.md"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return lambda path=name, /, **values: eval(  # noqa: S307 (called as from the recipe)
            "Text.from_path(path, **values)", {**names, "path": path, "values": values}
        )

    return write_file


def backdate_recipes(folder):
    """Make recipes look older, because the reloader waits before it reads recently written files."""
    for file in folder.glob("*.py"):
        os.utime(file, (1e9, 1e9))


def save_with_new_timestamp(file, text):
    """Write a file so that its timestamp changes, however coarse the file system's clock is."""
    before = file.stat().st_mtime_ns
    file.write_text(text, encoding="utf-8")
    os.utime(file, ns=(before + 10**9, before + 10**9))


class TestReading:
    def test_placeholders_are_filled(self, write_text):
        """A file has the same placeholders as `fill`."""
        read = write_text("# {{name}}\n\nScope: {{ scope? }}\n\n{{other}}\n")

        assert read(name="x", scope=None) == Text("# x\n\n{{other}}")
        with pytest.raises(
            ValueError,
            match=r"x\.md: the text has no placeholder \{\{nme\}\}; its placeholders: \{\{name\}\}",
        ):
            read(nme="x")
        with pytest.raises(TypeError, match=r"x\.md: 'name' is True"):
            read(name=True)

    @pytest.mark.parametrize(
        ("written", "text"),
        [
            ("\n\n  a\r\nb \n\n", "  a\nb "),
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
    def test_frontmatter_and_outer_blank_lines_are_dropped(self, written, text, write_text):
        """Frontmatter, a byte order mark and outer blank lines are dropped; text between rules is kept."""
        assert write_text(written)() == Text(text)

    def test_invalid_utf_8_is_rejected(self, write_text):
        """The error about invalid UTF-8 has the position and a fix."""
        with pytest.raises(MediaError, match=r"'x\.md' is not valid UTF-8 at byte 2: save it as UTF-8"):
            write_text(b"a\xff")()

    @pytest.mark.parametrize(
        ("path", "message"),
        [
            ("../x.md", "is not a plain relative path below"),
            ("/etc/hosts", "is not a plain relative path below"),
            ("nope.md", "there is no file 'nope.md' in"),
            (".", "there is no file '.' in"),
        ],
    )
    def test_path_outside_the_folder_is_rejected(self, path, message, write_text):
        """The path must be a file below the recipe's folder."""
        with pytest.raises(MediaError, match=message):
            write_text("x")(path)

    def test_link_out_of_the_folder_is_rejected(self, write_text, tmp_path_factory, tmp_path):
        """A link to a file outside the folder is rejected."""
        secret = tmp_path_factory.mktemp("elsewhere") / "secret.md"
        secret.write_text("secret")
        (tmp_path / "link.md").symlink_to(secret)

        with pytest.raises(MediaError, match="is outside"):
            write_text("x")("link.md")

    def test_below_confines_a_path(self, tmp_path):
        """`Text.below` confines a path to the given folder."""
        (tmp_path / "styles").mkdir()
        (tmp_path / "styles" / "short.md").write_text("Be {{how}}.\n")

        assert Text.below(tmp_path / "styles", "short.md", how="brief") == Text("Be brief.")
        with pytest.raises(MediaError, match="is not a plain relative path below 'styles'"):
            Text.below(tmp_path / "styles", "../recipe.py")

    def test_value_passes_on_its_annotations(self, write_text):
        """A value passes on its annotations; `Text` can replace them."""
        read = write_text("{{a}}")

        assert read(a=Text("x", priority=1)) == Text("x", priority=1)
        assert Text(read(a="x").text, priority=1) == Text("x", priority=1)


class TestChanges:
    def test_changed_file_is_read_again(self, write_text, tmp_path):
        """Without a server, a changed file is read again."""
        read = write_text("one {{a}}")
        assert read(a=1) == Text("one 1")
        save_with_new_timestamp(tmp_path / "x.md", "two {{a}}")

        assert read(a=1) == Text("two 1")

    def test_deleted_file_is_not_served_from_the_cache(self, write_text, tmp_path):
        """A deleted file is not served from the cache."""
        read = write_text("one")
        read()
        (tmp_path / "x.md").unlink()

        with pytest.raises(MediaError, match="there is no file"):
            read()

    def test_server_reads_a_file_again_when_it_is_stale(self, write_text, tmp_path):
        """In a server, a cached file is checked again only after it was marked as stale."""
        read = write_text("one")
        trusts_cache.set()
        try:
            assert read() == Text("one")
            save_with_new_timestamp(tmp_path / "x.md", "two")
            assert read() == Text("one")
            mark_texts_stale()
            assert read() == Text("two")
        finally:
            trusts_cache.clear()

    @pytest.mark.parametrize("target", ["recipes", "recipes/specify.py"])
    def test_changed_text_is_served_after_a_reload(self, target, recipes, monkeypatch):
        """A changed text file is served after a reload, without a change to the recipe."""
        folder = recipes(specify=RECIPE)
        monkeypatch.chdir(folder.parent)
        file = folder / "specify.md"
        file.write_text("Specify {{feature}}.\n{{scope?}}\n")
        backdate_recipes(folder)
        with closing(Reloader(target, lambda _: None)) as reloader:
            catalog = reloader.load()
            before = catalog["specify"].render({"feature": "x"})
            save_with_new_timestamp(file, "Describe {{feature}}.\n{{scope?}}\n")
            cached = catalog["specify"].render({"feature": "x"})
            assert reloader._find_files().files.keys() >= {str(file)}
            reloader._reload()
            changed = catalog["specify"].render({"feature": "x"})

        assert [rendering.text for rendering in (before, cached, changed)] == [
            "Specify x.",
            "Specify x.",
            "Describe x.",
        ]


def test_recipe_that_reads_a_text_file_on_import_is_reimported(recipes, monkeypatch):
    """A recipe file that reads a text file on import is reimported when the text file changes."""
    source = RECIPE.replace("return Text", "return GUIDE if scope else Text")
    folder = recipes(specify=source + '\nGUIDE = Text.from_path("guide.md")\n')
    monkeypatch.chdir(folder.parent)
    (folder / "guide.md").write_text("One.")
    backdate_recipes(folder)
    with closing(Reloader("recipes", lambda _: None)) as reloader:
        catalogs = [reloader.load()]
        reloader._publish = catalogs.append
        save_with_new_timestamp(folder / "guide.md", "Two.")
        reloader._reload()
        texts = [catalog["specify"].render({"feature": "x", "scope": "y"}).text for catalog in catalogs]

    assert texts == ["One.", "Two."]

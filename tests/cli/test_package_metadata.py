"""`promptkit package`: no text of a project becomes another field of the wheel's metadata."""

import email
import re
import zipfile
from argparse import Namespace
from email.headerregistry import Address
from io import StringIO

import pytest
import tomli_w
from flit_core.common import Metadata
from flit_core.config import prep_toml_config
from hypothesis import assume, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from packaging.metadata import Metadata as PublishedMetadata

from promptkit.cli import main
from promptkit.cli.packages.project import _EMAIL, PackageError, read_project
from promptkit.cli.packages.wheel import _metadata, readme_text

RECIPE = "from promptkit import prompt\n@prompt\ndef review(code: str):\n    'Review.'\n    return code\n"
PROJECT = {"name": "acme", "version": "1.0", "description": "Prompts."}
OPTIONS = Namespace(name=None, version=None, description=None, require=[])

#: Characters that some parser treats as a line end.
ENDS = ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\0", "\n\n"]

#: Each field that becomes a line of METADATA, with a text in it.
FIELDS = {
    "url": lambda text: {"urls": {"Home": f"https://a.example{text}"}},
    "label": lambda text: {"urls": {f"Home{text}": "https://a.example"}},
    "classifiers": lambda text: {"classifiers": [f"Topic :: Text{text}"]},
    "keywords": lambda text: {"keywords": ["a", f"mcp{text}"]},
    "author": lambda text: {"authors": [{"name": f"Acme{text}"}]},
    "author with an address": lambda text: {"authors": [{"name": f"Acme{text}", "email": "a@b.example"}]},
    "address": lambda text: {"authors": [{"email": f"a@b.example{text}"}]},
    "maintainer": lambda text: {"maintainers": [{"name": f"Acme{text}"}]},
    "license": lambda text: {"license": f"MIT{text}"},
    "requires-python": lambda text: {"requires-python": f">=3.11{text}"},
    "dependencies": lambda text: {"dependencies": [f"colorama @ https://a.example/a.whl{text}"]},
    "marker": lambda text: {"dependencies": [f"colorama; python_version > '3{text}'"]},
    "license-files": lambda text: {"license-files": [f"LICENSE{text}"]},
    "name": lambda text: {"name": f"acme{text}"},
    "version": lambda text: {"version": f"1.0{text}"},
    "dynamic": lambda text: {"dynamic": [f"version{text}"]},
}


@pytest.fixture
def acme(tmp_path, monkeypatch):
    """A project in the current folder."""
    project = tmp_path / "acme"
    (project / "prompts").mkdir(parents=True)
    (project / "prompts" / "review.py").write_text(RECIPE, encoding="utf-8")
    (project / ".git").mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1577836800")  # for monkeypatch to undo what the command sets
    return project


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder for the projects of all examples of a test."""
    return tmp_path_factory.mktemp("acme")


def write(folder, **fields):
    """Write a ``pyproject.toml``."""
    text = tomli_w.dumps({"project": {**PROJECT, **fields}})
    (folder / "pyproject.toml").write_text(text, encoding="utf-8", newline="")


def metadata_fields(folder):
    """Return the fields of METADATA that flit writes for a project, ignoring its readme."""
    fields = _metadata(read_project(folder, OPTIONS), "acme", [])["project"]
    config = prep_toml_config(
        {"project": {**fields, "readme": {"text": "", "content-type": "text/plain"}}}, folder / "x"
    )
    stream = StringIO()
    Metadata({"name": "acme", **config.metadata}).write_metadata_file(stream)
    return email.message_from_string(stream.getvalue()).items()


class TestInjection:
    @pytest.mark.parametrize("line_end", ENDS, ids=ascii)
    @pytest.mark.parametrize("field", FIELDS)
    def test_line_break_is_rejected(self, field, line_end, acme):
        """No field can contain a line break, and the error names the field."""
        fields = FIELDS[field](f"{line_end}X-Evil: yes")
        write(acme, **fields)

        with pytest.raises(PackageError, match=rf"^\[project\] {next(iter(fields))} in ") as error:
            read_project(acme, OPTIONS)
        assert str(error.value).isprintable()

    @pytest.mark.parametrize("option", ["name", "version", "require"])
    @pytest.mark.parametrize("line_end", ENDS, ids=ascii)
    def test_line_break_in_an_option_is_rejected(self, line_end, option, acme):
        """Options on the command line cannot contain a line break either."""
        text = f"acme{line_end}X-Evil: yes"
        options = Namespace(**{**vars(OPTIONS), option: [text] if option == "require" else text})

        with pytest.raises(PackageError, match=f"^--{option} has a line break"):
            read_project(acme, options)

    @given(field=st.sampled_from(sorted(FIELDS)), text=st.text(max_size=12))
    def test_no_text_adds_a_field(self, folder, field, text):
        """Every value is rejected or leaves the fields of METADATA unchanged."""
        try:
            write(folder, **FIELDS[field](text))
            lines = metadata_fields(folder)
        except (PackageError, ValueError):
            return
        write(folder, **FIELDS[field](""))
        assert [name for name, _ in lines] == [name for name, _ in metadata_fields(folder)]

    def test_wheel(self, acme, capsys):
        """Values with colons, quotes and commas are written to METADATA unchanged."""
        (acme / "LICENSE").write_text("MIT", encoding="utf-8")
        write(
            acme,
            description="First line:\n  second, 'third'\n",
            urls={"Home page": "https://a.example/?b=c#d"},
            classifiers=["Topic :: Text Processing"],
            authors=[{"name": 'A "B", C'}, {"name": "D, E", "email": "d@e.example"}],
            maintainers=[{"email": "f@g.example"}],
            keywords=["a", "b: c"],
            license="MIT",
        )
        assert main(["package"]) == 0
        assert capsys.readouterr().err == ""

        with zipfile.ZipFile("dist/acme-1.0-py3-none-any.whl") as wheel:
            text = wheel.read("acme-1.0.dist-info/METADATA")
            record = wheel.read("acme-1.0.dist-info/RECORD").decode()
            assert {line.partition(",")[0] for line in record.splitlines()} == set(wheel.namelist())
        metadata = PublishedMetadata.from_email(text, validate=False)
        assert metadata.summary == "First line: second, 'third'"
        assert metadata.project_urls == {"Home page": "https://a.example/?b=c#d"}
        assert metadata.classifiers == ["Topic :: Text Processing"]
        assert metadata.author == 'A "B", C'
        assert metadata.author_email == '"D, E" <d@e.example>'
        assert metadata.keywords == ["a", "b: c"]

    def test_names_of_prompts(self, acme):
        """The description that lists the prompts has one line."""
        project = read_project(acme, Namespace(**{**vars(OPTIONS), "name": "acme"}))

        assert project.with_description("1 prompt: a\nX-Evil: yes").description == "1 prompt: a\\nX-Evil: yes"


class TestInvalidValues:
    @pytest.mark.parametrize(
        "text",
        [
            "project = 3",
            "[[project]]\nname = 'a'",
            "[project]\ndependencies = 3",
            "[project]\ndependencies = 'abc'",
            "[project]\ndynamic = 3",
            "[project]\ndynamic = 'version'",
            "[project]\nreadme = 3",
            "[project]\nreadme = {file = 3}",
            "[project]\nauthors = 'me'",
            "[project]\nauthors = ['me']",
            "[project]\nauthors = [{name = 3}]",
            "[project]\nkeywords = 'a'",
            "[project]\nkeywords = [1979-05-27]",
            "[project]\nclassifiers = {a = 'b'}",
            "[project]\nurls = ['a']",
            "[project]\nurls = {a = {b = 'c'}}",
            "[project]\nlicense = 3",
            "[project]\nlicense = {file = 3}",
            "[project]\nlicense-files = {paths = ['a']}",
            "[project]\nlicense-files = [3]",
            "[project]\nrequires-python = 3.11",
            "[project]\nrequires-python = 'newest'",
            "[project]\ndescription = ['a']",
            f"[project]\nversion = '{'9' * 5000}'",
            f"[project]\nversion = '{'x' * 5000}'",
            f"[project]\nname = '{'!' * 5000}'",
            "[project]\nname = '\u212a'",
            f"[project]\ndependencies = ['a; {'(' * 5000}']",
            f"[project]\ndescription = ['{'a' * 5000}']",
            '[project]\ndescription = "a\\u202eb"',
            *(
                f"[project]\nauthors = [{{name = 'a', email = '{token}'}}]"
                for token in ("", "a", "@", "a@", "a@[", "(", "=")
            ),
        ],
    )
    def test_invalid_value(self, text, acme):
        """An invalid value is rejected in one short line."""
        (acme / "pyproject.toml").write_text(text, encoding="utf-8")

        with pytest.raises(PackageError) as error:
            read_project(acme, OPTIONS)
        assert "\n" not in str(error.value)
        assert len(str(error.value)) < 600

    @given(st.from_regex(_EMAIL, fullmatch=True))
    def test_accepted_addresses(self, address):
        """An accepted address is valid for flit too."""
        assert str(Address("Acme", addr_spec=address)).endswith(f"<{address}>")

    def test_unused_fields(self, acme):
        """Fields that the package does not use can have any form."""
        write(
            acme,
            **{
                "optional-dependencies": {"a": ["b\nc"]},
                "scripts": {"a\nb": "c"},
                "entry-points": {"a": {"b": "c"}},
            },
        )

        assert set(read_project(acme, OPTIONS).metadata) == {"requires-python"}


class TestReadme:
    @given(text=st.text(st.characters(categories=["L", "N", "P", "S"], include_characters=" "), max_size=40))
    def test_description_is_text(self, folder, text):
        """Markdown shows any description as it was written, and the text after it."""
        text = " ".join(text.split())
        assume(text)
        write(folder)
        project = read_project(folder, OPTIONS)
        markdown = readme_text(project._with("description", text), None, "local/acme")
        _, paragraph, _ = MarkdownIt().parse(markdown)[3:6]

        assert "".join(token.content for token in paragraph.children) == text
        assert all(token.type in ("text", "text_special") for token in paragraph.children)
        assert "uvx acme" in MarkdownIt().render(markdown)

    @pytest.mark.parametrize(
        "text", ["<!-- a", "1. a", "1) a", "- a", "+ a", "# a", "```", "&lt;", "![a](b)", "=a", "a_b_c"]
    )
    def test_markdown_in_the_description(self, folder, text):
        """Comments, lists, headings, fences and images are shown as text."""
        write(folder)
        project = read_project(folder, OPTIONS)
        html = MarkdownIt().render(readme_text(project._with("description", text), None, "local/acme"))

        escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        assert f"<p>{re.sub(' +', ' ', escaped)}</p>" in html

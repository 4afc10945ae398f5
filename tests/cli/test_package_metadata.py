"""Tests of `package`: no text of a project becomes another field of the wheel's metadata."""

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

#: Line ends of one parser or another.
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
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1577836800")  # as the command says it, for this process alone
    return project


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder for the projects of all examples of a test."""
    return tmp_path_factory.mktemp("acme")


def write(folder, **fields):
    """Write a ``pyproject.toml``."""
    text = tomli_w.dumps({"project": {**PROJECT, **fields}})
    (folder / "pyproject.toml").write_text(text, encoding="utf-8", newline="")


def lines_of(folder):
    """The fields of METADATA that the builder of wheels makes of a project; its readme is not read."""
    fields = _metadata(read_project(folder, OPTIONS), "acme", [])["project"]
    config = prep_toml_config(
        {"project": {**fields, "readme": {"text": "", "content-type": "text/plain"}}}, folder / "x"
    )
    written = StringIO()
    Metadata({"name": "acme", **config.metadata}).write_metadata_file(written)
    return email.message_from_string(written.getvalue()).items()


class TestInjection:
    @pytest.mark.parametrize("end", ENDS, ids=ascii)
    @pytest.mark.parametrize("field", FIELDS)
    def test_a_line_break_is_refused(self, field, end, acme):
        """No field may have one, and the error names the field."""
        fields = FIELDS[field](f"{end}X-Evil: yes")
        write(acme, **fields)

        with pytest.raises(PackageError, match=rf"^\[project\] {next(iter(fields))} in ") as refused:
            read_project(acme, OPTIONS)
        assert str(refused.value).isprintable()

    @pytest.mark.parametrize("option", ["name", "version", "require"])
    @pytest.mark.parametrize("end", ENDS, ids=ascii)
    def test_a_line_break_in_an_option_is_refused(self, end, option, acme):
        """The same holds for the command line."""
        text = f"acme{end}X-Evil: yes"
        options = Namespace(**{**vars(OPTIONS), option: [text] if option == "require" else text})

        with pytest.raises(PackageError, match=f"^--{option} has a line break"):
            read_project(acme, options)

    @given(field=st.sampled_from(sorted(FIELDS)), text=st.text(max_size=12))
    def test_no_text_adds_a_field(self, folder, field, text):
        """Whatever a field holds, it is refused, or METADATA has the same fields as without it."""
        try:
            write(folder, **FIELDS[field](text))
            lines = lines_of(folder)
        except (PackageError, ValueError):
            return
        write(folder, **FIELDS[field](""))
        assert [name for name, _ in lines] == [name for name, _ in lines_of(folder)]

    def test_the_wheel(self, acme, capsys):
        """Values with colons, quotes and commas are in METADATA as they were written."""
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
        """The description that is made of them has one line."""
        project = read_project(acme, Namespace(**{**vars(OPTIONS), "name": "acme"}))

        assert project.with_description("1 prompt: a\nX-Evil: yes").description == "1 prompt: a\\nX-Evil: yes"


class TestForms:
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
                f"[project]\nauthors = [{{name = 'a', email = '{one}'}}]"
                for one in ("", "a", "@", "a@", "a@[", "(", "=")
            ),
        ],
    )
    def test_a_value_of_another_form(self, text, acme):
        """It is refused in one short line."""
        (acme / "pyproject.toml").write_text(text, encoding="utf-8")

        with pytest.raises(PackageError) as refused:
            read_project(acme, OPTIONS)
        assert "\n" not in str(refused.value)
        assert len(str(refused.value)) < 600

    @given(st.from_regex(_EMAIL, fullmatch=True))
    def test_addresses_that_are_accepted(self, address):
        """The builder of wheels accepts them as well."""
        assert str(Address("Acme", addr_spec=address)).endswith(f"<{address}>")

    def test_fields_that_are_not_read(self, acme):
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
    def test_a_description_is_text(self, folder, text):
        """Markdown shows any description as it was written, and the text after it."""
        text = " ".join(text.split())
        assume(text)
        write(folder)
        project = read_project(folder, OPTIONS)
        shown = readme_text(project._with("description", text), None, "local/acme")
        _, paragraph, _ = MarkdownIt().parse(shown)[3:6]

        assert "".join(one.content for one in paragraph.children) == text
        assert all(one.type in ("text", "text_special") for one in paragraph.children)
        assert "uvx acme" in MarkdownIt().render(shown)

    @pytest.mark.parametrize(
        "text", ["<!-- a", "1. a", "1) a", "- a", "+ a", "# a", "```", "&lt;", "![a](b)", "=a", "a_b_c"]
    )
    def test_what_markdown_takes_for_more(self, folder, text):
        """Comments, lists, headings, fences and pictures are shown as text."""
        write(folder)
        project = read_project(folder, OPTIONS)
        shown = MarkdownIt().render(readme_text(project._with("description", text), None, "local/acme"))

        escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        assert f"<p>{re.sub(' +', ' ', escaped)}</p>" in shown

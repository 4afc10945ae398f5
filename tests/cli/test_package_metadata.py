"""`promptkit package`: no text of a project becomes another field of the wheel's metadata."""

import email
import zipfile
from argparse import Namespace
from io import StringIO

import pytest
import tomli_w
from flit_core.common import Metadata
from flit_core.config import prep_toml_config
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins
from packaging.metadata import Metadata as PublishedMetadata

from promptkit.cli import main
from promptkit.cli.package import build_pyproject
from promptkit.cli.package_project import PackageError, read_metadata

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
    fields = build_pyproject(read_metadata(folder, OPTIONS)[0], "acme", [])["project"]
    config = prep_toml_config(
        {"project": {**fields, "readme": {"text": "", "content-type": "text/plain"}}}, folder / "x"
    )
    stream = StringIO()
    Metadata({"name": "acme", **config.metadata}).write_metadata_file(stream)
    return email.message_from_string(stream.getvalue()).items()


class TestInjection:
    @pytest.mark.parametrize("field", FIELDS)
    def test_line_break_is_rejected(self, field, acme):
        """No field can contain a line break, and the error names the field."""
        for line_end in ENDS:
            fields = FIELDS[field](f"{line_end}X-Evil: yes")
            write(acme, **fields)

            with pytest.raises(PackageError, match=rf"^\[project\] {next(iter(fields))} in ") as error:
                read_metadata(acme, OPTIONS)
            assert str(error.value).isprintable()

    @pytest.mark.parametrize("option", ["name", "version", "require"])
    def test_line_break_in_an_option_is_rejected(self, option, acme):
        """Options on the command line cannot contain a line break either."""
        for line_end in ENDS:
            text = f"acme{line_end}X-Evil: yes"
            options = Namespace(**{**vars(OPTIONS), option: [text] if option == "require" else text})

            with pytest.raises(PackageError, match=f"^--{option} has a line break"):
                read_metadata(acme, options)

    @given(field=st.sampled_from(sorted(FIELDS)), text=st.text(max_size=12))
    def test_no_text_adds_a_field(self, folder, field, text):
        """Every value is rejected, or leaves the names of METADATA's fields unchanged."""
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
            "[project]\ndescription = ['a']",
            f"[project]\nversion = '{'9' * 5000}'",
            f"[project]\nversion = '{'x' * 5000}'",
            f"[project]\nname = '{'!' * 5000}'",
            "[project]\nname = '\u212a'",
            f"[project]\ndependencies = ['a; {'(' * 5000}']",
            f"[project]\ndescription = ['{'a' * 5000}']",
            '[project]\ndescription = "a\\u202eb"',
        ],
    )
    def test_invalid_value(self, text, acme):
        """An invalid value is rejected in one short line."""
        (acme / "pyproject.toml").write_text(text, encoding="utf-8")

        with pytest.raises(PackageError) as error:
            read_metadata(acme, OPTIONS)
        assert "\n" not in str(error.value)
        assert len(str(error.value)) < 600

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

        metadata, _ = read_metadata(acme, OPTIONS)
        assert to_builtins(metadata).keys() == {*PROJECT, "requires-python", "dependencies"}

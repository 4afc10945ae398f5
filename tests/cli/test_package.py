"""`promptkit package`: the content and metadata of the wheel, its registry entry, and serving from it."""

import email
import json
import keyword
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import jsonschema
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import structs
from packaging.utils import canonicalize_name

from promptkit import compiler
from promptkit.cli import main
from promptkit.cli.package import _module_name
from promptkit.cli.package_bundles import registry_identity, server_entry
from promptkit.cli.package_project import Metadata, PackageError
from promptkit.errors.distribution import install_command
from promptkit.language.media import Icon
from promptkit.server.identity import find_server_info
from promptkit.version import VERSION
from tests.wire import SCHEMAS, line, modern

ROOT = Path(__file__).parents[2]

#: The registry's schema, which developers of promptkit keep next to the protocol's schemas.
REGISTRY_SCHEMA = SCHEMAS / "registry-2025-12-11.json"

REVIEW = '''
from typing import Annotated
from promptkit import Arg, Text, prompt
from ._shared import hello
from team import house

@prompt
def review(code: str, key: Annotated[str, Arg("The key", env="ACME_KEY", secret=True)] = "none"):
    """Review code."""
    return f"{hello} {house} {Text.from_path('style.md')} {code}"
'''

PROJECT = """
[project]
name = "Acme.Prompts"
version = "1.2.0-rc1"
description = "The prompts of Acme."
dependencies = ["colorama; sys_platform == 'win32'"]
authors = [{name = "Acme", email = "prompts@example.org"}]
license = "MIT"
keywords = ["mcp"]
urls = {Homepage = "https://example.org"}
"""

WHEEL = "acme_prompts-1.2.0rc1-py3-none-any.whl"


@pytest.fixture
def project(recipes, tmp_path, monkeypatch):
    """A team's project, as the current folder."""
    folder = recipes("acme/prompts", review=REVIEW, _shared='hello = "Hello."')
    (folder / "team.py").write_text('house = "Acme"\n', encoding="utf-8")
    (folder / "style.md").write_text("Be kind.", encoding="utf-8")
    project = folder.parent
    (project / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (project / "LICENSE").write_text("MIT", encoding="utf-8")
    monkeypatch.chdir(project)
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1577836800")  # monkeypatch then undoes what the command sets
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    return project


@pytest.fixture
def acme(project, monkeypatch):
    """The project, without the check that loads the packaged recipes in another process."""
    monkeypatch.setattr("promptkit.cli.package._check_standalone", lambda *_: None)
    return project


@pytest.fixture
def run(capsys):
    """A function that runs the command and returns its exit code, standard output and standard error."""

    def run(*argv):
        code = main(["package", *argv])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def package(acme, run):
    """The function `run`, in the project."""
    return run


@pytest.fixture
def build(package):
    """A function that builds a package and returns the wheel, its metadata and the registry entry."""

    def build(*argv):
        code, out, err = package(*argv)
        assert (code, err) == (0, "")
        wheel = zipfile.ZipFile(out.splitlines()[0].split()[1])
        (metadata,) = [name for name in wheel.namelist() if name.endswith("METADATA")]
        return wheel, email.message_from_bytes(wheel.read(metadata)), entry()

    return build


def entry():
    """Return the registry entry that was written."""
    return json.loads(Path("dist/server.json").read_text(encoding="utf-8"))


def add_remote(url):
    """Make the current folder a git repository with a remote."""
    for words in (["init", "--quiet"], ["remote", "add", "origin", url]):
        subprocess.run(["git", *words], check=True)  # noqa: S607 (wherever it is)


def requirements(metadata):
    """Return the requirements of a wheel."""
    return metadata.get_all("Requires-Dist")


class TestWheel:
    def test_included_files(self, acme, build):
        """
        Files that a server can read are packaged: helpers, data, images and skills.

        Tests, cases and hidden files are omitted.
        """
        prompts = acme / "prompts"
        for path in (
            *(
                "_data/a.txt",
                "deep/b.png",
                "writing/SKILL.md",
                "writing/tests/test_c.py",
                "writing/cases_d.py",
            ),
            *("test_e.py", "f_test.py", "conftest.py", "cases_g.py", "tests/h.md", "__snapshots__/i.json"),
            *(".env", ".hidden/j.md", "__pycache__/k.pyc", "l.md~", "node_modules/m.md"),
        ):
            (prompts / path).parent.mkdir(parents=True, exist_ok=True)
            (prompts / path).write_text("")
        (prompts / "writing/SKILL.md").write_text("---\nname: writing\ndescription: Writes.\n---\nWrite.\n")
        wheel, _, _ = build()

        served = "acme_prompts/served/prompts/"
        packaged = {name.removeprefix(served) for name in wheel.namelist() if name.startswith(served)}
        assert packaged == {
            *("review.py", "_shared.py", "team.py", "style.md", "_data/a.txt", "deep/b.png"),
            *("writing/SKILL.md", "writing/tests/test_c.py", "writing/cases_d.py"),
        }
        assert {name for name in wheel.namelist() if not name.startswith(served)} == {
            *("acme_prompts/__init__.py", "acme_prompts/__main__.py", "acme_prompts/served/pyproject.toml"),
            *(
                f"acme_prompts-1.2.0rc1.dist-info/{name}"
                for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
            ),
        }

    def test_metadata(self, build):
        """
        The metadata is the project's, with promptkit as a requirement and one command named like the package.
        """
        wheel, metadata, _ = build()

        assert wheel.filename.endswith(WHEEL)
        assert metadata["Name"] == "Acme.Prompts"
        assert metadata["Version"] == "1.2.0rc1"
        assert metadata["Summary"] == "The prompts of Acme."
        assert metadata["License-Expression"] == "MIT"
        assert metadata["Author-email"] == "Acme <prompts@example.org>"
        assert metadata["Project-URL"] == "Homepage, https://example.org"
        assert metadata["Requires-Python"] == ">=3.11"
        assert requirements(metadata) == [
            "colorama; sys_platform == 'win32'",
            f"mcp-promptkit[http]>={VERSION}",
        ]
        entry_points = wheel.read("acme_prompts-1.2.0rc1.dist-info/entry_points.txt").decode()
        assert entry_points.split() == ["[console_scripts]", "Acme.Prompts=acme_prompts.__main__:main"]

    def test_readme(self, acme, build):
        """
        The package has the project's README if it is Markdown, and a generated README otherwise.

        Both contain the registry's `mcp-name` line once.
        """
        _, metadata, _ = build("--server-name", "org.example/a")
        assert metadata["Description-Content-Type"] == "text/markdown"
        assert "uvx Acme.Prompts\n" in metadata.get_payload()
        assert metadata.get_payload().endswith("<!-- mcp-name: org.example/a -->\n\n")

        (acme / "README.md").write_text("# Ours\n\nmcp-name: org.example/a-b", encoding="utf-8")
        (acme / "pyproject.toml").write_text(f'{PROJECT}readme = "README.md"\n', encoding="utf-8")
        _, metadata, _ = build("--server-name", "org.example/a")
        assert metadata.get_payload().startswith("# Ours\n")
        assert metadata.get_payload().count("mcp-name: org.example/a ") == 1
        _, metadata, _ = build("--server-name", "org.example/a-b")
        assert metadata.get_payload().count("mcp-name") == 1

    def test_builds_are_reproducible(self, acme, package):
        """Two builds are identical, whatever the times of the files and whatever was built before."""
        package()
        first = {file.name: file.read_bytes() for file in (acme / "dist").iterdir()}
        for file in acme.rglob("*"):
            os.utime(file, (2**31, 2**31))
        package()

        assert {file.name: file.read_bytes() for file in (acme / "dist").iterdir()} == first
        assert set(first) == {WHEEL, "server.json"}

    def test_project_folder_as_target(self, acme, build):
        """The output of an earlier build is not packaged."""
        shutil.move(acme / "pyproject.toml", acme / "prompts")
        os.chdir(acme / "prompts")
        names = [set(build(".")[0].namelist()) for _ in range(2)]

        assert names[0] == names[1]
        assert not any("dist/" in name for name in names[0])


class TestIdentity:
    """The server of a package has the identity of the package."""

    def find_identity(self, wheel, tmp_path):
        """Unpack a wheel, and return the identity of its server."""
        wheel.extractall(tmp_path / "installed")
        (folder,) = (tmp_path / "installed").glob("*/served/prompts")
        return find_server_info([str(folder)])

    def test_name_and_version_of_the_package(self, build, tmp_path):
        """Name and version come from the package, even if options set them."""
        wheel, _, _ = build("--name", "other", "--version", "3.2.1")
        info = self.find_identity(wheel, tmp_path)

        assert (info.name, info.version) == ("other", "3.2.1")
        assert (info.description, info.website) == ("The prompts of Acme.", "https://example.org")

    def test_settings_of_the_server(self, acme, build, tmp_path):
        """Title, instructions and icons are packaged with the content of their files."""
        (acme / "instructions.md").write_text("Be kind.\nReview.", encoding="utf-8")
        (acme / "logo.svg").write_text("<svg/>", encoding="utf-8")
        server = """
        [tool.promptkit.server]
        name = "Acme"
        title = "Prompts"
        instructions = {file = "instructions.md"}
        icons = [{src = "logo.svg", sizes = ["any"]}]
        """
        (acme / "pyproject.toml").write_text(PROJECT + server, encoding="utf-8")
        info = self.find_identity(build()[0], tmp_path)

        assert (info.name, info.version, info.title) == ("Acme", "1.2.0rc1", "Prompts")
        assert info.instructions == "Be kind.\nReview."
        assert info.icons == (Icon("data:image/svg+xml;base64,PHN2Zy8+", sizes=["any"]),)


class TestRequirements:
    def test_imported_packages_are_required(self, acme, package):
        """
        Imported packages become requirements, in at least the installed version, and are reported.

        The project's own requirements stay unchanged.
        """
        (acme / "prompts" / "_more.py").write_text(
            "import attr, json, team\ndef f():\n    import pytest, nowhere\n    from prompts import review\n"
        )
        code, out, _ = package("--require", "pytest<100", "--require", "mcp-promptkit==1")
        wheel = zipfile.ZipFile(f"dist/{WHEEL}")
        metadata = email.message_from_bytes(wheel.read("acme_prompts-1.2.0rc1.dist-info/METADATA"))

        assert code == 0
        *explicit, promptkit, added = requirements(metadata)
        assert explicit == ["colorama; sys_platform == 'win32'", "pytest<100", "mcp-promptkit==1"]
        assert promptkit == "mcp-promptkit[http]"
        assert added.startswith("attrs>=")
        assert f"the package requires {added}, which the recipes import\n" in out

    def test_imports_from_outside_the_folder_are_rejected(self, acme, package):
        """
        An import from outside the packaged folder is rejected, even a late one, because the package would
        lack it.
        """
        (acme / "shelf.py").write_text("")
        (acme / "prompts" / "_more.py").write_text("def later():\n    import shelf\n")
        code, out, err = package()

        assert (code, out) == (1, "")
        assert err == (
            "promptkit: nothing was built: _more.py imports 'shelf', which is outside 'prompts', so it "
            "would be missing from the package: move that module there, or publish it as a separate "
            "package and add the package with --require\n"
        )

    def test_imports_of_skill_scripts_are_not_required(self, acme, build):
        """Imports of a skill's scripts are not required, because agents run them in other environments."""
        (acme / "prompts" / "writing").mkdir()
        (acme / "prompts" / "writing/SKILL.md").write_text(
            "---\nname: writing\ndescription: W.\n---\nWrite.\n"
        )
        (acme / "prompts" / "writing/run.py").write_text("import pytest\n")

        assert len(requirements(build()[1])) == 2


METADATA = Metadata("acme", "1.0", "Prompts.")


class TestRegistry:
    def test_entry(self, build):
        """
        The entry has one version, the package on PyPI, and the environment variables that the recipes read.
        """
        add_remote("git@github.com:acme/prompts.git")
        *_, server = build()

        assert server == {
            "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
            "name": "io.github.acme/prompts",
            "description": "The prompts of Acme.",
            "repository": {"url": "https://github.com/acme/prompts", "source": "github"},
            "version": "1.2.0rc1",
            "packages": [
                {
                    "registryType": "pypi",
                    "identifier": "Acme.Prompts",
                    "version": "1.2.0rc1",
                    "runtimeHint": "uvx",
                    "transport": {"type": "stdio"},
                    "environmentVariables": [
                        {"name": "ACME_KEY", "description": "The key", "isSecret": True},
                    ],
                }
            ],
        }

    @pytest.mark.skipif(not REGISTRY_SCHEMA.is_file(), reason="the registry's published schema is not here")
    @pytest.mark.parametrize("description", ["Prompts.", "word " * 50])
    @pytest.mark.parametrize("repository", [None, "https://github.com/acme/prompts"])
    def test_entry_matches_the_published_schema(self, repository, description):
        """Every entry is valid according to the registry's published schema."""
        metadata = structs.replace(METADATA, description=description)
        server = server_entry("a/b", repository, metadata, compiler.compile([]))
        schema = json.loads(REGISTRY_SCHEMA.read_text(encoding="utf-8"))

        assert schema["$id"] == server["$schema"]
        jsonschema.Draft7Validator(schema, format_checker=jsonschema.FormatChecker()).validate(server)

    @pytest.mark.parametrize(
        "url",
        [
            "https://github.com/acme/prompts",
            "https://github.com/acme/prompts.git/",
            "https://someone:secret@github.com/acme/prompts.git",
            "http://www.github.com/acme/prompts",
            "git@github.com:acme/prompts.git",
            "github.com:acme/prompts",
            "ssh://git@github.com/acme/prompts.git",
            "ssh://git@ssh.github.com:443/acme/prompts.git",
            "git://github.com/acme/prompts.git",
        ],
    )
    def test_github_remotes(self, url, tmp_path, monkeypatch):
        """Every form of a GitHub remote results in the same name, without credentials."""
        monkeypatch.chdir(tmp_path)
        add_remote(url)

        expected = "io.github.acme/prompts", "https://github.com/acme/prompts"
        assert registry_identity(None, "acme", tmp_path) == expected

    @pytest.mark.parametrize(
        "url",
        [
            "https://gitlab.com/acme/prompts.git",
            "https://github.com.example.org/acme/prompts",
            "https://example.org/github.com/acme/prompts",
            "https://github.com/acme",
            "/srv/git/prompts.git",
        ],
    )
    def test_other_remotes(self, url, tmp_path, monkeypatch):
        """Without a GitHub remote the name is local."""
        monkeypatch.chdir(tmp_path)
        add_remote(url)

        assert registry_identity(None, "acme", tmp_path) == ("local/acme", None)

    @pytest.mark.parametrize("name", ["acme", "a/b/c", "a b/c", "a_b/c", "/c", f"a/{'b' * 200}"])
    def test_invalid_server_names(self, name, tmp_path):
        """An invalid server name is an error."""
        with pytest.raises(PackageError) as error:
            registry_identity(name, "acme", tmp_path)
        assert str(error.value) == (
            f"{name!r} is not a registry name: use NAMESPACE/NAME with at most 200 characters, for example "
            "--server-name io.github.acme/prompts"
        )

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("x" * 100, "x" * 100),
            ("word " * 30, f"{' '.join(['word'] * 19)} …"),
            ("x" * 101, f"{'x' * 99}…"),
        ],
    )
    def test_long_description(self, text, expected):
        """The registry's description is cut after a word."""
        metadata = structs.replace(METADATA, description=text)
        entry = server_entry("a/b", None, metadata, compiler.compile([]))

        assert (entry["description"], len(expected) <= 100) == (expected, True)

    def test_wheel_has_the_full_description(self, package):
        """The wheel has the full description, of any length."""
        package("--description", "word " * 30)

        assert f"Summary: {' '.join(['word'] * 30)}\n".encode() in zipfile.ZipFile(f"dist/{WHEEL}").read(
            "acme_prompts-1.2.0rc1.dist-info/METADATA"
        )


class TestProject:
    def test_without_a_project(self, acme, package):
        """Without `[project]`, name, version and description have reported defaults."""
        (acme / "pyproject.toml").unlink()
        (acme / ".git").mkdir()
        code, out, _ = package()

        assert code == 0
        assert entry()["description"] == "1 prompt for MCP clients: review"
        assert out == (
            f"built {Path('dist/acme-0.1.0-py3-none-any.whl')} with 1 prompt\n"
            f"wrote {Path('dist/server.json')} for local/acme\n"
            f"there is no [project] table in {acme / 'pyproject.toml'}\n"
            "the package is named acme after the folder: to choose another name, use --name\n"
            "the version is 0.1.0: to set another version, use --version\n"
            "the package has no description: set one with --description\n"
            "local/acme cannot be published in the registry: set a name with --server-name, "
            "such as io.github.acme/prompts\n"
            f"next: uvx --from {Path('dist/acme-0.1.0-py3-none-any.whl')} acme\n"
        )

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (
                ["--name", "my prompts!"],
                (
                    "'my prompts!' is not a package name: use letters and digits, with . - _ between "
                    "them, for example --name 'my-prompts'"
                ),
            ),
            (
                ["--version", "1.0-final!"],
                (
                    "'1.0-final!' is not a version (PEP 440): "
                    "use a form such as 1.2.0, 1.2.0rc1 or 1.2.0.post1"
                ),
            ),
            (
                ["--require", "a b"],
                (
                    "'a b' is not a valid requirement such as 'httpx>=0.27': "
                    "Expected semicolon (after name with no version specifier) or end"
                ),
            ),
        ],
    )
    def test_invalid_options(self, words, message, acme, package):
        """An invalid option is reported with a valid alternative."""
        assert package(*words) == (1, "", f"promptkit: nothing was built: {message}\n")
        assert not (acme / "dist").exists()

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("[project", "{} cannot be read: "),
            ("[project]\nname = 3", "{} cannot be read: Expected `str`, got `int` - at `$.project.name`"),
            (
                '[project]\nname = "a"\ndynamic = ["version"]',
                "the version in {} is dynamic, so only a build can compute it: set it with --version",
            ),
            (
                '[project]\nname = "a"\nversion = "1"\nlicense = "Mine"',
                "the wheel builder rejected [project] in pyproject.toml: 'Mine' is not",
            ),
        ],
    )
    def test_invalid_project(self, text, message, acme, package):
        """The error names the file and the invalid setting."""
        (acme / "pyproject.toml").write_text(text, encoding="utf-8")
        code, _, err = package()

        assert code == 1
        assert err.startswith(f"promptkit: nothing was built: {message.format(acme / 'pyproject.toml')}")

    def test_dynamic_dependencies(self, acme, package):
        """Dynamic dependencies are omitted, and the output reports it."""
        text = '[project]\nname = "a"\nversion = "1"\ndynamic = ["dependencies"]\n'
        (acme / "pyproject.toml").write_text(text, encoding="utf-8")
        _, out, _ = package()

        message = f"the dependencies in {acme / 'pyproject.toml'} are dynamic, and therefore omitted: "
        assert f"{message}add them with --require\n" in out


class TestErrors:
    def test_recipes_that_need_the_project(self, project, run):
        """The recipes are loaded from the package alone, and errors there are reported."""
        (project / "data.txt").write_text("Data.")
        (project / "prompts" / "reads.py").write_text(
            "from pathlib import Path\ntext = (Path(__file__).parents[1] / 'data.txt').read_text()\n"
        )
        code, out, err = run()

        assert (code, out) == (1, "")
        first, second = err.splitlines()[:2]
        message = (
            "promptkit: nothing was built: the recipes cannot be served without the project around them:"
        )
        assert first == message
        assert second.startswith(f"{Path('prompts/reads.py')}:2: error PK101: ")
        assert not (project / "dist").exists()

    def test_invalid_recipes(self, acme, package):
        """Diagnostics are printed, and nothing is built."""
        (acme / "prompts" / "bad.py").write_text("import nowhere\n")
        code, out, err = package()

        assert (code, err) == (1, "promptkit: nothing was built: fix the errors above\n")
        assert "bad.py" in out
        assert not (acme / "dist").exists()

    def test_empty_folder(self, acme, package):
        """A folder without prompts is rejected."""
        (acme / "empty").mkdir()

        code, out, err = package("empty")

        assert (code, err) == (1, "promptkit: nothing was built: fix the errors above\n")
        assert out.startswith("empty: error PK102: no prompt is defined here\n")

    @pytest.mark.parametrize(
        "targets",
        [
            ["prompts/review.py"],
            ["prompts", "more"],
            ["json"],
            ["prompts/*.md"],
            ["prompts", "more/*.md"],
            ["prompts", "a=more"],
            ["a=prompts", "a=more"],
            ["a=prompts", "b=json"],
            ["a=prompts", "b=prompts/*.md"],
            ["a=prompts", "b=more", "a=more/*.md"],
        ],
    )
    def test_other_targets(self, targets, acme, package):
        """Only a single folder, or several with different prefixes, can be packaged."""
        (acme / "more").mkdir()

        assert package(*targets) == (
            2,
            "",
            (
                f"promptkit: cannot package {' '.join(targets)!r}: specify one folder, or several folders, "
                "each with a prefix, for example review=team/prompts\n"
            ),
        )

    @pytest.mark.parametrize("targets", [["nosuch"], ["prompts", "nosuch"]], ids=str)
    def test_missing_target(self, targets, acme, package):
        """A missing target is reported like in every other command."""
        code, out, err = package(*targets)

        assert (code, out) == (2, "")
        assert err.startswith("promptkit: cannot load 'nosuch': there is no such folder, file or module")

    def test_missing_library(self, acme, run, monkeypatch):
        """The error names the command that installs a missing library."""
        monkeypatch.delitem(sys.modules, "promptkit.cli.package")
        monkeypatch.setitem(sys.modules, "tomli_w", None)
        code, _, err = run()

        assert code == 2
        assert err == f"promptkit: package needs tomli_w: {install_command('package')}\n"

    @pytest.mark.skipif(os.name == "nt", reason="a folder is made read-only in another way")
    def test_unwritable_folder(self, acme, package):
        """The error names a folder that cannot be written."""
        (acme / "dist").write_text("")
        code, _, err = package()

        assert code == 1
        assert err == ("promptkit: nothing was built: cannot write into 'dist': Not a directory (dist)\n")


NAMES = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,8}[A-Za-z0-9])?", fullmatch=True)


class TestModules:
    @given(NAMES | st.sampled_from(["json", "class", "3d", "promptkit", "prompts"]))
    def test_module_name_is_valid(self, name):
        """
        A module name can be imported, and shadows neither the standard library, nor promptkit, nor the
        recipes.
        """
        module = _module_name(name, ["prompts"])

        assert module.isidentifier()
        assert not keyword.iskeyword(module)
        assert module not in sys.stdlib_module_names | {"promptkit", "prompts"}

    @given(NAMES, NAMES)
    def test_module_names_are_unique(self, first, second):
        """Two packages that can be installed together have different modules."""
        assume(canonicalize_name(first) != canonicalize_name(second))

        assert _module_name(first, ["prompts"]) != _module_name(second, ["prompts"])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of a project with options for the server."""
    folder = tmp_path_factory.mktemp("acme")
    (folder / "prompts").mkdir()
    (folder / "prompts" / "review.py").write_text(REVIEW, encoding="utf-8")
    (folder / "prompts" / "_shared.py").write_text('hello = "Hello."', encoding="utf-8")
    (folder / "prompts" / "team.py").write_text('house = "Acme"\n', encoding="utf-8")
    (folder / "prompts" / "style.md").write_text("Be kind.", encoding="utf-8")
    (folder / "prompts" / "fix.prompt.md").write_text("Fix {{issue}}. {{> style.md}}", encoding="utf-8")
    (folder / "prompts" / "commands").mkdir()
    (folder / "prompts" / "commands" / "tidy.md").write_text("Tidy up.", encoding="utf-8")
    table = '\n[tool.promptkit.serve]\ntools = true\nname = "Acme"\ntimeout = 3\n'
    (folder / "pyproject.toml").write_text(f"{PROJECT}{table}", encoding="utf-8")
    dist = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "promptkit", "package", "--out", dist, "prompts"]
    subprocess.run([*command, "--markdown", "commands/*.md"], cwd=folder, check=True)
    return dist / WHEEL


@pytest.fixture
def unpacked(wheel, tmp_path, monkeypatch):
    """A folder with the unpacked wheel, without the project."""
    site = tmp_path / "elsewhere" / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    monkeypatch.chdir(tmp_path)
    return site


def environment(site):
    """Return environment variables with which a process can import the package and this promptkit."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(ROOT)])}


def ask(site, *words, requests):
    """Serve a package; return the results of requests by their ids, and standard error."""
    result = subprocess.run(
        [sys.executable, "-m", "acme_prompts", *words],
        input=b"".join(map(line, requests)),
        env=environment(site),
        capture_output=True,
        timeout=50,
        check=True,
    )
    messages = map(json.loads, result.stdout.splitlines())
    return {
        message["id"]: message["result"] for message in messages if "id" in message
    }, result.stderr.decode()


SERVER = "io.modelcontextprotocol/serverInfo"
LIST = modern(1, "prompts/list")
GET = modern(2, "prompts/get", {"name": "review", "arguments": {"code": "x"}})


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """The wheel of two folders of the same name, in two projects, with Markdown prompts."""
    folder = tmp_path_factory.mktemp("teams")
    for team in ("acme", "ops"):
        prompts = folder / team / "prompts"
        (prompts / "commands").mkdir(parents=True)
        (prompts / "review.py").write_text(
            "from promptkit import prompt\nfrom ._words import TEAM\n\n"
            "@prompt\ndef review(code: str) -> str:\n    return f'{TEAM} {code}'\n",
            encoding="utf-8",
        )
        (prompts / "_words.py").write_text(f"TEAM = {team!r}\n", encoding="utf-8")
        (prompts / "commands" / "tidy.md").write_text(f"Tidy up, {team}.", encoding="utf-8")
        (folder / team / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    command = [sys.executable, "-m", "promptkit", "package", "--markdown", "commands/*.md"]
    words = ["review=prompts", "ops=../ops/prompts", "--server-name", "org.example/a"]
    subprocess.run([*command, *words], cwd=folder / "acme", check=True)
    return folder / "acme" / "dist" / WHEEL


class TestPrefixes:
    def test_files(self, archive):
        """Each prefix is a folder with its own `pyproject.toml`."""
        served = "acme_prompts/served/"
        names = [name for name in zipfile.ZipFile(archive).namelist() if name.startswith(served)]

        files = ("prompts/_words.py", "prompts/commands/tidy.md", "prompts/review.py", "pyproject.toml")
        assert sorted(name.removeprefix(served) for name in names) == [
            f"{prefix}/{file}" for prefix in ("ops", "review") for file in files
        ]

    def test_served(self, archive, tmp_path):
        """Both folders are served with their prefixes, and each imports its own modules."""
        with zipfile.ZipFile(archive) as files:
            files.extractall(tmp_path)
        names = ["ops-review", "ops-tidy", "review-review", "review-tidy"]
        texts = ["ops x", "Tidy up, ops.", "acme x", "Tidy up, acme."]
        arguments = [{"code": "x"}, {}] * 2
        requests = [
            modern(number, "prompts/get", {"name": name, "arguments": given})
            for number, (name, given) in enumerate(zip(names, arguments, strict=True))
        ]

        results, err = ask(tmp_path, requests=[*requests, modern(9, "prompts/list")])

        assert err == ""
        assert [item["name"] for item in results[9]["prompts"]] == names
        assert [results[number]["messages"][0]["content"]["text"] for number in range(4)] == texts


class TestServed:
    def test_served_from_the_wheel(self, unpacked):
        """Relative imports, neighbouring modules and text files work, with the project's name and options."""
        results, err = ask(
            unpacked, requests=[LIST, GET, modern(3, "tools/list"), modern(4, "server/discover")]
        )

        assert err == ""
        assert [item["name"] for item in results[1]["prompts"]] == ["fix", "review", "tidy"]
        assert results[2]["messages"][0]["content"]["text"] == "Hello. Acme Be kind. x"
        assert [item["name"] for item in results[3]["tools"]] == ["fix", "review", "tidy"]
        assert results[4]["_meta"][SERVER]["name"] == "Acme"

    def test_markdown_prompts(self, unpacked):
        """
        Markdown prompts, including the files of a pattern, are served with the text files that they include.
        """
        fix = {"name": "fix", "arguments": {"issue": "#1"}}
        results, _ = ask(
            unpacked, requests=[modern(1, "prompts/get", fix), modern(2, "prompts/get", {"name": "tidy"})]
        )

        texts = [results[number]["messages"][0]["content"]["text"] for number in (1, 2)]
        assert texts == ["Fix #1. Be kind.", "Tidy up."]

    def test_options_of_serve(self, unpacked):
        """Options of `serve` can be added to the package's command and override the project's."""
        results, _ = ask(unpacked, "--name", "Other", requests=[modern(1, "server/discover")])

        assert results[1]["_meta"][SERVER]["name"] == "Other"

    def test_surrounding_project(self, unpacked, tmp_path):
        """Recipes cannot import modules of a project around the virtual environment."""
        (tmp_path / "pyproject.toml").write_text("")
        (tmp_path / "lent.py").write_text("")
        (unpacked / "acme_prompts/served/prompts/asks.py").write_text(
            "from importlib.util import find_spec\nfrom promptkit import prompt\n"
            "prompt(name='asks')(lambda: str(find_spec('lent')))\n"
        )
        outside = tmp_path / "outside"
        outside.mkdir()
        os.chdir(outside)
        results, _ = ask(unpacked, requests=[modern(1, "prompts/get", {"name": "asks"})])

        assert results[1]["messages"][0]["content"]["text"] == "None"

    def test_options_change_lists(self, unpacked):
        """Options such as `--tools-search` apply to the lists."""
        results, err = ask(unpacked, "--tools-search", requests=[modern(1, "tools/list")])

        assert "review" not in [tool["name"] for tool in results[1]["tools"]]
        assert (len(results[1]["tools"]), err) == (2, "")


def test_extra_matches_the_command():
    """The `package` extra installs what the command imports."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    names = [requirement.partition(">=")[0].replace("-", "_") for requirement in extras["package"]]
    source = "".join(file.read_text("utf-8") for file in (ROOT / "promptkit" / "cli").glob("package*.py"))

    assert all(re.search(rf"^(?:from|import) {name}\b", source, re.MULTILINE) for name in names)

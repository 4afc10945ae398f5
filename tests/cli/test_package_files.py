"""Tests of `package` in a repository that someone else wrote: which files are read, published and written."""

import json
import os
import socket
import stat
import subprocess
import sys
import zipfile
from contextlib import chdir
from pathlib import Path

import pytest

from promptkit.cli import main
from promptkit.cli.packages.contents import _top_names
from promptkit.cli.packages.project import PackageError
from promptkit.cli.packages.registry import registry_name
from promptkit.cli.packages.sources import SourceReader
from promptkit.files.folder import Folder

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="Windows has no such files"),
    pytest.mark.timeout(60),
]

RECIPE = "from promptkit import prompt\n@prompt\ndef review(code: str):\n    'Review.'\n    return code\n"
WHEEL = "acme-1.0-py3-none-any.whl"
PROJECT = '[project]\nname = "acme"\nversion = "1.0"\ndescription = "Prompts."\n'
REFUSED = "promptkit: nothing was built: "


@pytest.fixture
def acme(tmp_path, monkeypatch):
    """A project in the current folder."""
    project = tmp_path / "acme"
    (project / "prompts").mkdir(parents=True)
    (project / "prompts" / "review.py").write_text(RECIPE, encoding="utf-8")
    (project / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "diary.txt").write_text("precious", encoding="utf-8")
    monkeypatch.chdir(project)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1577836800")  # as the command says it, for this process alone
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    return project


@pytest.fixture
def package(acme, capfd):
    """A function that runs the command; it returns the exit code and the text on standard error."""

    def package(*words):
        code = main(["package", *words])
        return code, capfd.readouterr().err

    return package


@pytest.fixture
def refused(acme, package):
    """A function that runs the command, which must refuse in one line and write nothing, and returns it."""

    def refused(*words):
        code, err = package(*words)
        assert code == 1, err
        assert err.startswith(REFUSED)
        assert err.count("\n") == 1
        assert not list(acme.glob("dist/*.whl"))
        return err.removeprefix(REFUSED).rstrip("\n")

    return refused


def published():
    """The names in the wheel below the folder of the recipes, and what all files of the wheel hold."""
    with zipfile.ZipFile(f"dist/{WHEEL}") as wheel:
        names = [name.partition("/served/prompts/")[2] for name in wheel.namelist()]
        return {*filter(None, names)}, b"".join(map(wheel.read, wheel.namelist()))


def put(kind, place, target):
    """Put a link, a pipe, a socket, a device or a folder at a path."""
    if kind == "link":
        place.symlink_to(target)
    elif kind == "dangling link":
        place.symlink_to("nowhere")
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "socket":
        with chdir(place.parent), socket.socket(socket.AF_UNIX) as server:
            server.bind(place.name)  # the whole path may be too long for a socket
    elif kind == "device":
        place.symlink_to("/dev/zero")
    else:
        place.mkdir()


def git(*words):
    """Run git in the current folder."""
    subprocess.run(["git", *words], check=True)  # noqa: S607 (wherever it is)


class TestOutput:
    def test_a_folder_that_is_a_link(self, acme, refused):
        """A relative `dist` that is a link is refused, as it may have come with the repository."""
        (acme / "dist").symlink_to("../private")

        assert refused() == (
            "cannot write into 'dist': it is a link: replace it by its target, or name the target (dist)"
        )
        assert [*Path("../private").iterdir()] == [Path("../private/diary.txt")]

    @pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "socket", "device", "folder"])
    @pytest.mark.parametrize("name", ["server.json", WHEEL])
    def test_something_else_in_place_of_a_file(self, name, kind, acme, package):
        """It is refused, nothing is written through it, and neither file is written."""
        (acme / "dist").mkdir()
        put(kind, acme / "dist" / name, "../../private/diary.txt")
        before = (acme / "dist" / name).lstat().st_ino
        code, err = package()

        assert (code, err.count("\n")) == (1, 1)
        assert err.startswith(f"{REFUSED}cannot write into 'dist': ")
        assert err.endswith(f" ({name})\n")
        assert [*Path("dist").iterdir()] == [Path("dist", name)]
        assert (acme / "dist" / name).lstat().st_ino == before
        assert Path("../private/diary.txt").read_text(encoding="utf-8") == "precious"
        assert not Path("dist/nowhere").exists()

    @pytest.mark.parametrize("out", ["a/b", "../elsewhere", "."])
    def test_a_folder_that_the_user_names(self, out, acme, package):
        """It is created, and both files are in it."""
        code, err = package("--out", out)

        assert (code, err) == (0, "")
        assert all((acme / out / name).is_file() for name in (WHEEL, "server.json"))

    def test_the_recipes_themselves(self, acme, refused):
        """The next wheel would contain this one, so they are refused."""
        assert refused("--out", "prompts") == (
            "--out names the folder of the recipes, whose next package would contain this one: name another"
        )

    def test_an_absolute_folder(self, acme, package, tmp_path):
        """Links in a path that the user has typed in full are followed."""
        (tmp_path / "link").symlink_to("private")

        assert package("--out", str(tmp_path / "link" / "dist"))[0] == 0
        assert (tmp_path / "private" / "dist" / "server.json").is_file()


class TestLinks:
    @pytest.mark.parametrize("target", ["../../private/diary.txt", "/etc/passwd", "../pyproject.toml"])
    def test_a_file_outside_is_not_published(self, target, acme, refused):
        """A link that leads out of the recipes is refused by its name."""
        (acme / "prompts" / "data.txt").symlink_to(target)

        assert refused() == (
            "'data.txt' cannot be packaged: it leads out of 'prompts': put a copy in its place"
        )

    def test_a_folder_outside_is_not_published(self, acme, refused):
        """A link to a folder outside is refused, too, and not left out without a word."""
        (acme / "prompts" / "data").symlink_to("../../private")

        assert refused() == "'data' leads out of 'prompts': put a copy in place of the link"

    @pytest.mark.parametrize("target", ["nowhere", "data.txt"])
    def test_a_link_that_leads_nowhere(self, target, acme, refused):
        """It is refused by its name."""
        (acme / "prompts" / "data.txt").symlink_to(target)

        assert refused().startswith("'data.txt' cannot be read: ")

    def test_links_within_the_folder(self, acme, package):
        """Links to files and folders within it are followed: the wheel contains their targets."""
        (acme / "prompts" / "_texts").mkdir()
        (acme / "prompts" / "_texts" / "a.txt").write_text("A", encoding="utf-8")
        (acme / "prompts" / "b.txt").symlink_to("_texts/a.txt")
        assert package() == (0, "")

        assert published()[0] == {"review.py", "_texts/a.txt", "b.txt"}

    @pytest.mark.parametrize("target", [".env", ".private/key", "notes~"])
    def test_hidden_files(self, target, acme, package, refused):
        """They are left out, and a link to one is refused."""
        (acme / "prompts" / ".private").mkdir()
        (acme / "prompts" / target).write_text("TOKEN=precious", encoding="utf-8")
        assert package() == (0, "")
        names, contents = published()
        assert names == {"review.py"}
        assert b"precious" not in contents

        Path("dist", WHEEL).unlink()
        (acme / "prompts" / "settings.txt").symlink_to(target)
        assert refused() == (
            f"'settings.txt' leads to {target!r}, which is hidden, or a leftover of a program: "
            "put a copy in a visible place"
        )

    def test_a_file_that_becomes_a_link(self, acme, tmp_path, monkeypatch):
        """A link that takes the place of a file while the command runs is not followed."""
        opened = Folder.open_for_reading

        def swap(folder, path):
            (acme / "prompts" / path).unlink()
            (acme / "prompts" / path).symlink_to(tmp_path / "private" / "diary.txt")
            return opened(folder, path)

        monkeypatch.setattr(Folder, "open_for_reading", swap)
        with pytest.raises(PackageError, match=r"'review\.py' cannot be packaged: it is a link"):
            SourceReader({}).read(acme / "prompts", "review.py")

    def test_a_folder_that_becomes_a_link(self, acme, tmp_path, monkeypatch):
        """The same holds for a folder above the file."""
        (acme / "prompts" / "texts").mkdir()
        (acme / "prompts" / "texts" / "diary.txt").write_text("ours", encoding="utf-8")
        opened = Folder.open_for_reading

        def swap(folder, path):
            (acme / "prompts" / "texts").rename(acme / "old")
            (acme / "prompts" / "texts").symlink_to(tmp_path / "private")
            return opened(folder, path)

        monkeypatch.setattr(Folder, "open_for_reading", swap)
        with pytest.raises(PackageError, match=r"'texts/diary\.txt' cannot be packaged: it is a link"):
            SourceReader({}).read(acme / "prompts", "texts/diary.txt")


class TestOddFiles:
    @pytest.mark.parametrize("kind", ["pipe", "socket"])
    @pytest.mark.parametrize("name", ["data", "data.txt", "_helper.py"])
    def test_pipes_and_sockets(self, name, kind, acme, refused):
        """They are refused by name, and nothing waits for their other end."""
        put(kind, acme / "prompts" / name, "")

        assert refused() == f"{name!r} is a pipe, a socket or a device: remove it"

    def test_a_device(self, acme, refused):
        """A link to a device is refused, and the device is not read."""
        put("device", acme / "prompts" / "data.txt", "")

        assert refused() == "'data.txt' is a pipe, a socket or a device: remove it"

    @pytest.mark.skipif(sys.platform != "linux", reason="other file systems refuse such names")
    @pytest.mark.parametrize(
        "name", [b"a\nb.txt", b"a\x1bb.txt", b"\xff.txt", b"a\\b.txt", b"c:b.txt", b"\xe2\x80\xaeb"]
    )
    def test_names(self, name, acme, refused):
        """A name that is not valid on other systems, or would break the wheel's RECORD, is refused."""
        Path(os.fsdecode(bytes(acme / "prompts") + b"/" + name)).write_bytes(b"")

        assert (
            "is not a valid name on some systems: rename it, without control characters, backslashes"
            in refused()
        )

    @pytest.mark.skipif(sys.platform != "linux", reason="other file systems refuse such names")
    @pytest.mark.parametrize(
        ("first", "second", "clash"),
        [
            ("Notes.md", "notes.md", ("Notes.md", "notes.md")),
            ("Texts/a.md", "texts/b.md", ("Texts", "texts")),
            ("Texts/a.md", "texts", ("Texts", "texts")),
            ("caf\xe9.md", "cafe\u0301.md", ("cafe\u0301.md", "caf\xe9.md")),
        ],
    )
    def test_names_that_are_one_elsewhere(self, first, second, clash, acme, refused):
        """Paths that some file systems do not tell apart are refused."""
        for name in (first, second):
            (acme / "prompts" / name).parent.mkdir(exist_ok=True)
            (acme / "prompts" / name).write_text("", encoding="utf-8")

        assert refused() == (
            f"{clash[0]!r} and {clash[1]!r} differ in case alone, and are one file on some systems: "
            "rename one of them"
        )

    def test_a_long_path(self, acme, refused):
        """A path that other systems cannot have is refused."""
        folder = acme / "prompts"
        for _ in range(6):
            folder /= "x" * 200
            folder.mkdir()
        (folder / "a.txt").write_text("", encoding="utf-8")

        assert refused().endswith("...' has more than 1,000 characters: use shorter names")

    def test_a_large_file(self, acme, refused):
        """A sparse file of 16 GiB is refused before it is read."""
        with (acme / "prompts" / "data.bin").open("wb") as file:
            file.truncate(16 << 30)

        assert refused() == "'data.bin' is too large: the files of a package have at most 100 MiB together"

    def test_many_files(self, acme, refused, monkeypatch):
        """The number of files is limited."""
        monkeypatch.setattr("promptkit.cli.packages.contents._MAX_FILES", 2)
        for number in range(2):
            (acme / "prompts" / f"{number}.txt").write_text("", encoding="utf-8")

        assert refused() == "'prompts' has more than 2 files: move data elsewhere"

    @pytest.mark.parametrize(
        "source",
        [
            b"-" * 100_000 + b"1",
            b"(" * 100_000,
            b"x = " + b"[" * 90 + b"]" * 90 + b"\0",
            b"\xff\xfe",
            b"# coding: nosuch\n",
            b"a" + b".a" * 50_000,
        ],
    )
    def test_source_that_cannot_be_parsed(self, source):
        """It imports nothing that is served, and ends nothing."""
        assert list(_top_names(source)) == []

    def test_source_with_warnings(self, acme, package):
        """Warnings of Python about a file are not printed, and names of any length are looked up."""
        (acme / "prompts" / "_odd.py").write_text(
            f'a = "\\d"\nb = 1 is 1\nimport {"x" * 5000}\n', encoding="utf-8"
        )

        assert package() == (0, "")

    def test_a_folder_name_is_data(self, acme, package):
        """Quotes, braces and spaces in the name of the folder end up in the program as text."""
        name = "it's {folder!r} \"{options}\" 'x'"
        (acme / "prompts").rename(acme / name)
        assert package(name) == (0, "")
        with zipfile.ZipFile(f"dist/{WHEEL}") as wheel:
            wheel.extractall("site")
        ran = subprocess.run(
            [sys.executable, "-c", "from acme.__main__ import RECIPES; print(RECIPES)"],
            cwd="site",
            capture_output=True,
            text=True,
            check=True,
        )

        assert ran.stdout == f"{acme}/site/acme/served/{name}\n"

    def test_a_folder_name_with_a_line_break(self, acme, refused):
        """It is refused."""
        (acme / "prompts").rename(acme / "a\nb")

        assert refused("a\nb").startswith("'a\\nb' is not a valid name on some systems")

    def test_modes(self, acme, package):
        """A program stays executable, and all files of the wheel can be read by others."""
        (acme / "prompts" / "run.sh").write_text("", encoding="utf-8")
        (acme / "prompts" / "run.sh").chmod(0o755)
        assert package() == (0, "")

        with zipfile.ZipFile(f"dist/{WHEEL}") as wheel:
            modes = {one.filename.rpartition("/")[2]: one.external_attr >> 16 for one in wheel.infolist()}
        assert stat.S_IMODE(modes["run.sh"]) == 0o755
        assert stat.S_IMODE(modes["review.py"]) == 0o644


class TestSecrets:
    @pytest.mark.parametrize("option", ["state-keys", "token-file", "audit"])
    @pytest.mark.parametrize("place", ["prompts/secret", "{acme}/prompts/secret"])
    def test_files_of_the_server(self, place, option, acme, refused):
        """A file that the configuration names is refused, whatever its mode."""
        (acme / "prompts" / "secret").write_text("precious", encoding="utf-8")
        path = place.format(acme=acme)
        (acme / "pyproject.toml").write_text(
            f'{PROJECT}[tool.promptkit.serve]\n{option} = "{path}"\n', encoding="utf-8"
        )

        assert refused() == (
            f"'secret' is the file that [tool.promptkit.serve] names with {option}, "
            "which others must not get: move it out of 'prompts'"
        )

    @pytest.mark.parametrize("link", [os.symlink, os.link])
    def test_other_names_of_them(self, link, acme, refused):
        """A link to such a file, soft or hard, is refused as well."""
        (acme / "prompts" / "notes").mkdir()
        (acme / "prompts" / "team.tokens").write_text("precious", encoding="utf-8")
        link(acme / "prompts" / "team.tokens", acme / "prompts" / "a.txt")
        (acme / "pyproject.toml").write_text(
            f'{PROJECT}[tool.promptkit.serve]\ntoken-file = "prompts/team.tokens"\n', encoding="utf-8"
        )

        assert refused().startswith("'a.txt' is the file that [tool.promptkit.serve] names with token-file")

    def test_from_another_folder(self, acme, refused, monkeypatch, tmp_path):
        """The path is looked up from the project as well as from the current folder."""
        (acme / "prompts" / "state.keys").write_text("precious", encoding="utf-8")
        (acme / "pyproject.toml").write_text(
            f'{PROJECT}[tool.promptkit.serve]\nstate-keys = "prompts/state.keys"\n', encoding="utf-8"
        )
        monkeypatch.chdir(tmp_path)

        assert refused("acme/prompts").startswith("'state.keys' is the file that")

    @pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
    def test_files_that_only_their_owner_can_read(self, mode, acme, package, refused):
        """They are refused, with what to do if they may be published."""
        file = acme / "prompts" / "notes.txt"
        file.write_text("precious", encoding="utf-8")
        file.chmod(mode)

        assert refused() == (
            "'notes.txt' can be read by its owner alone, as secrets are: move it out of 'prompts', "
            "or chmod go+r it if others may read it"
        )
        file.chmod(mode | 0o044)
        assert package() == (0, "")

    def test_files_of_skills(self, acme, refused):
        """The same holds for the files of a skill."""
        skill = acme / "prompts" / "writing"
        skill.mkdir()
        (skill / "SKILL.md").write_text("---\nname: writing\ndescription: W.\n---\nW.\n", encoding="utf-8")
        (skill / "test_key.py").write_text("", encoding="utf-8")
        (skill / "test_key.py").chmod(0o600)

        assert refused().startswith("'writing/test_key.py' can be read by its owner alone")


class TestProjectFiles:
    @pytest.fixture
    def project(self, acme):
        """A function that adds lines to ``[project]``."""

        def project(lines):
            (acme / "pyproject.toml").write_text(f"{PROJECT}{lines}\n", encoding="utf-8")

        return project

    @pytest.mark.parametrize(
        "path", ["../private/diary.md", "{root}/private/diary.md", "a/../../private/diary.md"]
    )
    def test_a_readme_outside(self, path, acme, refused, project, tmp_path):
        """Absolute paths and paths that lead upwards are refused."""
        (tmp_path / "private" / "diary.md").write_text("precious", encoding="utf-8")
        project(f'readme = "{path.format(root=tmp_path)}"')

        assert "cannot be packaged: it is not a plain path within the folder" in refused()

    @pytest.mark.parametrize("name", ["README.md", "LICENSE", "COPYING.txt"])
    @pytest.mark.parametrize("target", ["../private/diary.txt", ".env", ".git/config", "nowhere"])
    def test_a_link_in_place_of_one(self, target, name, acme, refused, project):
        """A link that leads out of the project, to a hidden file or nowhere is refused."""
        (acme / ".git").mkdir()
        for path in (".env", ".git/config"):
            (acme / path).write_text("precious", encoding="utf-8")
        (acme / name).symlink_to(target)
        project('readme = "README.md"' if name == "README.md" else "")

        assert refused().startswith(repr(name))

    @pytest.mark.parametrize("name", ["README.md", "LICENSE"])
    @pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
    def test_a_pipe_in_place_of_one(self, kind, name, acme, refused, project):
        """Nothing waits for it."""
        put(kind, acme / name, "")
        project('readme = "README.md"' if name == "README.md" else "")

        assert refused().startswith(f"{name!r} cannot be packaged: ")

    @pytest.mark.parametrize("name", ["README.md", "LICENSE"])
    def test_secrets(self, name, acme, refused, project):
        """They are refused there as well."""
        (acme / name).write_text("precious", encoding="utf-8")
        (acme / name).chmod(0o600)
        project('readme = "README.md"' if name == "README.md" else "")

        assert refused().startswith(f"{name!r} can be read by its owner alone")

    def test_a_readme_that_is_not_text(self, acme, refused, project):
        """It is refused in one line."""
        (acme / "README.md").write_bytes(b"\xff")
        project('readme = "README.md"')

        assert refused() == "[project] readme 'README.md' is not UTF-8"

    @pytest.mark.parametrize("path", [".github/README.md", "docs/README.md"])
    def test_a_readme_elsewhere(self, path, acme, package, project):
        """One in another folder of the project, or a link to one, is fine."""
        (acme / path).parent.mkdir()
        (acme / path).write_text("Ours.", encoding="utf-8")
        (acme / "README.md").symlink_to(path)
        project('readme = "README.md"')
        assert package() == (0, "")

        assert b"Ours." in published()[1]

    @pytest.mark.parametrize(
        "pattern", ["../private/*", "/etc/passwd", "a/../../private/diary.txt", "{root}/private/*", "a\\\\nb"]
    )
    def test_patterns_of_licences_outside(self, pattern, acme, refused, project, tmp_path):
        """Absolute patterns and patterns that lead upwards are refused."""
        project(f'license-files = ["{pattern.format(root=tmp_path)}"]')

        assert refused().startswith("[project] license-files: ")

    def test_licences_in_a_linked_folder(self, acme, refused, project):
        """A folder that is a link is not entered by name, and no pattern matches it."""
        (acme / "LICENSES").symlink_to("../private")
        project('license-files = ["LICENSES/*"]')

        assert "it is a link" in refused()

    def test_licences(self, acme, package, project):
        """Patterns match files in folders; hidden ones and links to folders are left out."""
        for path in ("LICENSE", "legal/a/MIT.txt", "legal/b.txt", "legal/.hidden.txt", "legal/c.md"):
            (acme / path).parent.mkdir(parents=True, exist_ok=True)
            (acme / path).write_text("", encoding="utf-8")
        (acme / "legal" / "away").symlink_to("../../private")
        (acme / "legal" / "loop").symlink_to(".")
        project('license-files = ["LICEN[CS]E", "legal/**/*.txt", "**/c.md", "legal/b.txt", "nosuch/*"]')
        assert package() == (0, "")

        with zipfile.ZipFile(f"dist/{WHEEL}") as wheel:
            found = {name.partition("/licenses/")[2] for name in wheel.namelist()} - {""}
        assert found == {"LICENSE", "legal/a/MIT.txt", "legal/b.txt", "legal/c.md"}

    def test_loops_of_links(self, acme, package, project):
        """Links to the folder that they are in multiply no work."""
        for name in "abc":
            (acme / name).symlink_to(".")
        project(f'license-files = ["{"*/" * 40}LICENSE", "{"**/" * 10}LICENSE"]')

        assert package() == (0, "")

    def test_many_files(self, acme, refused, project, monkeypatch):
        """Patterns are compared with a limited number of files."""
        monkeypatch.setattr("promptkit.cli.packages.wheel._MAX_ENTRIES", 3)
        (acme / "LICENSE").write_text("", encoding="utf-8")
        project('license-files = ["**/LICENSE"]')

        assert refused() == "[project] license-files match among more than 3 files: name the files"


class TestPyproject:
    def test_a_link_out_of_the_project(self, acme, refused):
        """It is refused."""
        (acme / "pyproject.toml").rename(acme.parent / "private" / "pyproject.toml")
        (acme / "pyproject.toml").symlink_to("../private/pyproject.toml")

        assert refused() == (
            f"{acme / 'pyproject.toml'} cannot be read: it leads out of 'acme': put a copy in its place"
        )

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            (f"{'a.' * 400_000}a = 1", "is not TOML: a key has more than 100 parts"),
            (f"a = {'[' * 400_000}", "is not TOML: it is nested too deeply to be read"),
            (f"a = {'9' * 5000}", "is not TOML: Exceeds the limit"),
            ("a = '\xff'", "is not TOML: 'utf-8' codec can't decode"),
        ],
    )
    def test_a_file_that_takes_long(self, text, reason, acme, refused):
        """One that is nested too deeply, or is not TOML, is refused at once."""
        (acme / "pyproject.toml").write_text(text, encoding="latin-1")

        assert refused().startswith(f"{acme / 'pyproject.toml'} {reason}")


class TestGit:
    def test_no_program_is_run(self, acme, package):
        """Programs that the repository's configuration names are not run."""
        git("init", "--quiet")
        program = acme.parent / "program"
        program.write_text(f"#!/bin/sh\ntouch {acme.parent}/ran\n", encoding="utf-8")
        program.chmod(0o755)
        keys = (
            "core.fsmonitor",
            "core.pager",
            "pager.remote",
            "core.sshCommand",
            "core.editor",
            "alias.remote",
        )
        for key in (*keys, "core.askPass", "remote.origin.vcs", "credential.helper", "diff.external"):
            git("config", key, f"!{program}" if key.startswith("alias") else program)
        git("config", "remote.origin.url", f"ext::{program}")

        assert package() == (0, "")
        assert not (acme.parent / "ran").exists()

    def test_a_pipe_in_its_configuration(self, acme, monkeypatch):
        """Git is not waited for without end."""
        monkeypatch.setattr("promptkit.cli.packages.registry._GIT_S", 0.5)
        git("init", "--quiet")
        os.mkfifo("pipe")
        with open(".git/config", "a", encoding="utf-8") as file:
            file.write("[include]\npath = ../pipe\n")

        assert registry_name(None, "acme", acme) == ("local/acme", None, True)


class TestEnvironment:
    @pytest.mark.parametrize("time", ["9" * 30, "99999999999"])
    def test_a_time_that_no_wheel_can_hold(self, time, acme, refused, monkeypatch):
        """It is refused in one line."""
        monkeypatch.setenv("SOURCE_DATE_EPOCH", time)

        assert "SOURCE_DATE_EPOCH" in refused()

    def test_a_recipe_that_reads_and_prints(self, acme, package):
        """The check of the package gives recipes no input, and takes any bytes that they print."""
        (acme / "prompts" / "odd.py").write_text(
            "import os, sys\nif 'promptkit-package-' in __file__:\n    sys.stdin.read()\n"
            "    os.write(2, b'\\xff')\n    raise ValueError('odd')\n",
            encoding="utf-8",
        )
        code, err = package()

        assert code == 1
        assert "odd" in err

    def test_halves_of_characters(self, acme, package):
        """Text that UTF-8 cannot encode is escaped in the entry of the registry."""
        (acme / "prompts" / "odd.py").write_text(
            "from typing import Annotated\nfrom promptkit import Arg, prompt\n@prompt\n"
            "def odd(a: Annotated[str, Arg('x \\ud800', env='A')] = ''):\n    'Odd.'\n    return a\n",
            encoding="utf-8",
        )
        code, err = package()

        assert (code, err) == (0, "") or "Traceback" not in err
        if code == 0:
            json.loads(Path("dist/server.json").read_text(encoding="utf-8"))

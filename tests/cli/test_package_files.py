"""
`promptkit package` in a repository of an unknown author: the files that are read, published and written.
"""

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
from promptkit.cli.package import _write
from promptkit.cli.package_bundles import registry_identity
from promptkit.cli.package_project import PackageError, SourceReader, _imported_names
from promptkit.files.folder import Folder

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="Windows has no such files"),
    pytest.mark.timeout(60),
]

RECIPE = "from promptkit import prompt\n@prompt\ndef review(code: str):\n    'Review.'\n    return code\n"
WHEEL = "acme-1.0-py3-none-any.whl"
PROJECT = '[project]\nname = "acme"\nversion = "1.0"\ndescription = "Prompts."\n'
ERROR_PREFIX = "promptkit: nothing was built: "


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
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1577836800")  # for monkeypatch to undo what the command sets
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    monkeypatch.setattr("promptkit.cli.package._check_standalone", lambda *_: None)
    return project


@pytest.fixture
def package(acme, capfd):
    """A function that runs the command and returns its exit code and standard error."""

    def package(*words):
        code = main(["package", *words])
        return code, capfd.readouterr().err

    return package


@pytest.fixture
def package_error(acme, package):
    """
    A function that runs the command, asserts that it fails in one line and writes nothing, and returns the
    error.
    """

    def package_error(*words):
        code, err = package(*words)
        assert code == 1, err
        assert err.startswith(ERROR_PREFIX)
        assert err.count("\n") == 1
        assert not list(acme.glob("dist/*.whl"))
        return err.removeprefix(ERROR_PREFIX).rstrip("\n")

    return package_error


def read_wheel():
    """Return the names in the wheel below the recipes' folder, and the content of all files of the wheel."""
    with zipfile.ZipFile(f"dist/{WHEEL}") as wheel:
        names = [name.partition("/served/prompts/")[2] for name in wheel.namelist()]
        return {*filter(None, names)}, b"".join(map(wheel.read, wheel.namelist()))


def put(kind, path, target):
    """Put a link, a pipe, a socket, a device or a folder at a path."""
    if kind == "link":
        path.symlink_to(target)
    elif kind == "dangling link":
        path.symlink_to("nowhere")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with chdir(path.parent), socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)  # the full path can be too long for a socket
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()


def git(*words):
    """Run git in the current folder."""
    subprocess.run(["git", *words], check=True)  # noqa: S607 (wherever it is)


class TestOutput:
    def test_linked_output_folder(self, acme, package_error):
        """A relative `dist` that is a link is rejected, because it could have come with the repository."""
        (acme / "dist").symlink_to("../private")

        assert package_error() == (
            "cannot write into 'dist': it is a link: replace it with its target, or use the path "
            "of the target (dist)"
        )
        assert [*Path("../private").iterdir()] == [Path("../private/diary.txt")]

    @pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "socket", "device", "folder"])
    @pytest.mark.parametrize("name", ["server.json", WHEEL])
    def test_other_entry_in_place_of_a_file(self, name, kind, acme):
        """
        An entry that is not a regular file is rejected, and nothing is written through it.
        """
        (acme / "dist").mkdir()
        put(kind, acme / "dist" / name, "../../private/diary.txt")
        before = (acme / "dist" / name).lstat().st_ino
        with pytest.raises(PackageError) as error:
            _write(Folder.named("dist"), {WHEEL: b"", "server.json": b""})

        assert str(error.value).startswith("cannot write into 'dist': ")
        assert str(error.value).endswith(f" ({name})")
        assert (acme / "dist" / name).lstat().st_ino == before
        assert Path("../private/diary.txt").read_text(encoding="utf-8") == "precious"
        assert not Path("dist/nowhere").exists()

    @pytest.mark.parametrize("out", ["a/b", "../elsewhere", "."])
    def test_output_folder(self, out, acme, package):
        """`--out` creates the folder and writes both files into it."""
        code, err = package("--out", out)

        assert (code, err) == (0, "")
        assert all((acme / out / name).is_file() for name in (WHEEL, "server.json"))

    def test_output_into_the_recipes(self, acme, package_error):
        """The recipes' folder is rejected, because the next wheel would contain this one."""
        assert package_error("--out", "prompts") == (
            "--out is the folder of the recipes, so the next package would contain this one: change --out"
        )

    def test_absolute_output_folder(self, acme, package, tmp_path):
        """Links in an absolute path are followed."""
        (tmp_path / "link").symlink_to("private")

        assert package("--out", str(tmp_path / "link" / "dist"))[0] == 0
        assert (tmp_path / "private" / "dist" / "server.json").is_file()


class TestLinks:
    @pytest.mark.parametrize("target", ["../../private/diary.txt", "/etc/passwd", "../pyproject.toml"])
    def test_link_to_a_file_outside(self, target, acme, package_error):
        """A link out of the recipes is rejected with its name."""
        (acme / "prompts" / "data.txt").symlink_to(target)

        assert package_error() == (
            "'data.txt' cannot be packaged: it is outside 'prompts': replace the link with a copy"
        )

    def test_link_to_a_folder_outside(self, acme, package_error):
        """A link to a folder outside is rejected, not skipped silently."""
        (acme / "prompts" / "data").symlink_to("../../private")

        assert package_error() == (
            "'data' cannot be packaged: it is outside 'prompts': replace the link with a copy"
        )

    @pytest.mark.parametrize(
        ("target", "reason"),
        [
            ("nowhere", "cannot be found: if it is a broken link, remove it"),
            ("data.txt", "cannot be packaged: Too many levels of symbolic links"),
        ],
    )
    def test_dangling_link(self, target, reason, acme, package_error):
        """A dangling link is rejected with its name."""
        (acme / "prompts" / "data.txt").symlink_to(target)

        assert package_error() == f"'data.txt' {reason}"

    def test_links_within_the_folder(self, acme, package):
        """Links within the folder are followed, and the wheel contains their targets."""
        (acme / "prompts" / "_texts").mkdir()
        (acme / "prompts" / "_texts" / "a.txt").write_text("A", encoding="utf-8")
        (acme / "prompts" / "b.txt").symlink_to("_texts/a.txt")
        assert package() == (0, "")

        assert read_wheel()[0] == {"review.py", "_texts/a.txt", "b.txt"}

    @pytest.mark.parametrize("target", [".env", ".private/key", "notes~"])
    def test_hidden_files(self, target, acme, package, package_error):
        """Hidden files are omitted, and a link to a hidden file is rejected."""
        (acme / "prompts" / ".private").mkdir()
        (acme / "prompts" / target).write_text("TOKEN=precious", encoding="utf-8")
        assert package() == (0, "")
        names, contents = read_wheel()
        assert names == {"review.py"}
        assert b"precious" not in contents

        Path("dist", WHEEL).unlink()
        (acme / "prompts" / "settings.txt").symlink_to(target)
        assert package_error() == (
            f"'settings.txt' links to {target!r}, which is hidden, or is another program's temporary file: "
            "put a copy at a visible path"
        )

    def test_file_replaced_by_a_link(self, acme, tmp_path, monkeypatch):
        """A link that replaces a file while the command runs is not followed."""
        opened = Folder.open_for_reading

        def swap(folder, path):
            (acme / "prompts" / path).unlink()
            (acme / "prompts" / path).symlink_to(tmp_path / "private" / "diary.txt")
            return opened(folder, path)

        monkeypatch.setattr(Folder, "open_for_reading", swap)
        with pytest.raises(PackageError, match=r"'review\.py' cannot be packaged: it is a link"):
            SourceReader({}).read(acme / "prompts", "review.py")

    def test_folder_replaced_by_a_link(self, acme, tmp_path, monkeypatch):
        """A link that replaces a folder while the command runs is not followed."""
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
    def test_pipes_and_sockets(self, name, kind, acme, package_error):
        """Pipes and sockets are rejected by name, without waiting for their other end."""
        put(kind, acme / "prompts" / name, "")

        assert package_error() == f"{name!r} cannot be packaged: it is not a regular file"

    def test_device(self, acme, package_error):
        """A link to a device is rejected without reading the device."""
        put("device", acme / "prompts" / "data.txt", "")

        assert package_error().startswith("'data.txt' cannot be packaged: it is outside 'prompts'")

    @pytest.mark.skipif(sys.platform != "linux", reason="other file systems refuse such names")
    @pytest.mark.parametrize(
        "name", [b"a\nb.txt", b"a\x1bb.txt", b"\xff.txt", b"a\\b.txt", b"c:b.txt", b"\xe2\x80\xaeb"]
    )
    def test_invalid_names(self, name, acme, package_error):
        """A name that is invalid on other systems, or would break the wheel's RECORD, is rejected."""
        Path(os.fsdecode(bytes(acme / "prompts") + b"/" + name)).write_bytes(b"")

        assert package_error().endswith(" cannot be packaged: it is not a plain path within the folder")

    def test_large_file(self, acme, package_error):
        """A sparse file of 16 GiB is rejected before it is read."""
        with (acme / "prompts" / "data.bin").open("wb") as file:
            file.truncate(16 << 30)

        assert package_error() == "'data.bin' is too large: the files of a package can total at most 100 MiB"

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
    def test_unparsable_source(self, source):
        """A file that cannot be parsed adds no requirements."""
        assert list(_imported_names(source)) == []

    def test_source_with_warnings(self, acme, package):
        """Python's warnings about a file are not printed, and names of any length are looked up."""
        (acme / "prompts" / "_odd.py").write_text(
            f'a = "\\d"\nb = 1 is 1\nimport {"x" * 5000}\n', encoding="utf-8"
        )

        assert package() == (0, "")

    def test_folder_name_is_escaped(self, acme, package):
        """Quotes, braces and spaces in the folder's name are escaped in the generated program."""
        name = "it's {folder!r} \"{options}\" 'x'"
        (acme / "prompts").rename(acme / name)
        assert package(name) == (0, "")
        with zipfile.ZipFile(f"dist/{WHEEL}") as wheel:
            wheel.extractall("site")
        result = subprocess.run(
            [sys.executable, "-c", "from acme.__main__ import TARGETS; print(*TARGETS)"],
            cwd="site",
            capture_output=True,
            text=True,
            check=True,
        )

        assert result.stdout == f"{acme}/site/acme/served/{name}\n"

    def test_folder_name_with_a_line_break(self, acme, package_error):
        """A folder name with a line break is rejected."""
        (acme / "prompts").rename(acme / "a\nb")

        assert package_error("a\nb").startswith("it is not a plain path within the folder")

    def test_modes(self, acme, package):
        """A script stays executable, and other users can read all files of the wheel."""
        (acme / "prompts" / "run.sh").write_text("", encoding="utf-8")
        (acme / "prompts" / "run.sh").chmod(0o755)
        assert package() == (0, "")

        with zipfile.ZipFile(f"dist/{WHEEL}") as wheel:
            modes = {
                entry.filename.rpartition("/")[2]: entry.external_attr >> 16 for entry in wheel.infolist()
            }
        assert stat.S_IMODE(modes["run.sh"]) == 0o755
        assert stat.S_IMODE(modes["review.py"]) == 0o644


class TestSecrets:
    @pytest.mark.parametrize("option", ["state-keys", "token-file", "audit"])
    @pytest.mark.parametrize("path", ["prompts/secret", "{acme}/prompts/secret"])
    def test_secret_files_of_the_server(self, path, option, acme, package_error):
        """A secret file in the configuration is rejected, whatever its mode."""
        (acme / "prompts" / "secret").write_text("precious", encoding="utf-8")
        path = path.format(acme=acme)
        (acme / "pyproject.toml").write_text(
            f'{PROJECT}[tool.promptkit.serve]\n{option} = "{path}"\n', encoding="utf-8"
        )

        assert package_error() == (
            f"'secret' is the file for {option} in [tool.promptkit.serve], "
            "which must not be published: move it out of 'prompts'"
        )

    def test_link_to_a_secret_file(self, acme, package_error):
        """A link to a secret file is rejected as well."""
        (acme / "prompts" / "notes").mkdir()
        (acme / "prompts" / "team.tokens").write_text("precious", encoding="utf-8")
        (acme / "prompts" / "a.txt").symlink_to("team.tokens")
        (acme / "pyproject.toml").write_text(
            f'{PROJECT}[tool.promptkit.serve]\ntoken-file = "prompts/team.tokens"\n', encoding="utf-8"
        )

        assert package_error().startswith("'a.txt' is the file for token-file in [tool.promptkit.serve]")

    def test_path_from_another_folder(self, acme, package_error, monkeypatch, tmp_path):
        """A relative path of a secret file is resolved from the project, and from the current folder."""
        (acme / "prompts" / "state.keys").write_text("precious", encoding="utf-8")
        (acme / "pyproject.toml").write_text(
            f'{PROJECT}[tool.promptkit.serve]\nstate-keys = "prompts/state.keys"\n', encoding="utf-8"
        )
        monkeypatch.chdir(tmp_path)

        assert package_error("acme/prompts").startswith("'state.keys' is the file for state-keys")

    @pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
    def test_private_files(self, mode, acme, package, package_error):
        """A file that only its owner can read is rejected, with a fix if it can be published."""
        file = acme / "prompts" / "notes.txt"
        file.write_text("precious", encoding="utf-8")
        file.chmod(mode)

        assert package_error() == (
            "only its owner can read 'notes.txt', so it may be a secret: move it out of 'prompts', "
            "or run chmod go+r if it may be published"
        )
        file.chmod(mode | 0o044)
        assert package() == (0, "")

    def test_files_of_skills(self, acme, package_error):
        """Private files of a skill are rejected as well."""
        skill = acme / "prompts" / "writing"
        skill.mkdir()
        (skill / "SKILL.md").write_text("---\nname: writing\ndescription: W.\n---\nW.\n", encoding="utf-8")
        (skill / "test_key.py").write_text("", encoding="utf-8")
        (skill / "test_key.py").chmod(0o600)

        assert package_error().startswith("only its owner can read 'writing/test_key.py'")


class TestProjectFiles:
    @pytest.fixture
    def project(self, acme):
        """A function that adds lines to `[project]`."""

        def project(lines):
            (acme / "pyproject.toml").write_text(f"{PROJECT}{lines}\n", encoding="utf-8")

        return project

    @pytest.mark.parametrize(
        "path", ["../private/diary.md", "{root}/private/diary.md", "a/../../private/diary.md"]
    )
    def test_readme_outside(self, path, acme, package_error, project, tmp_path):
        """Absolute paths and paths that lead upwards are rejected."""
        (tmp_path / "private" / "diary.md").write_text("precious", encoding="utf-8")
        project(f'readme = "{path.format(root=tmp_path)}"')

        assert "cannot be packaged: it is not a plain path within the folder" in package_error()

    @pytest.mark.parametrize("name", ["README.md", "LICENSE"])
    @pytest.mark.parametrize("target", ["../private/diary.txt", ".env", ".git/config", "nowhere"])
    def test_link_in_place_of_a_project_file(self, target, name, acme, package_error, project):
        """A link that leads out of the project, to a hidden file or nowhere is rejected."""
        (acme / ".git").mkdir()
        for path in (".env", ".git/config"):
            (acme / path).write_text("precious", encoding="utf-8")
        (acme / name).symlink_to(target)
        project('readme = "README.md"' if name == "README.md" else "")

        assert package_error().startswith(repr(name))

    @pytest.mark.parametrize("name", ["README.md", "LICENSE"])
    @pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
    def test_special_file_in_place_of_a_project_file(self, kind, name, acme, package_error, project):
        """Special files are rejected without waiting."""
        put(kind, acme / name, "")
        project('readme = "README.md"' if name == "README.md" else "")

        assert package_error().startswith(f"{name!r} cannot be packaged: ")

    @pytest.mark.parametrize("name", ["README.md", "LICENSE"])
    def test_private_project_files(self, name, acme, package_error, project):
        """A README or licence that only its owner can read is rejected."""
        (acme / name).write_text("precious", encoding="utf-8")
        (acme / name).chmod(0o600)
        project('readme = "README.md"' if name == "README.md" else "")

        assert package_error().startswith(f"only its owner can read {name!r}")

    def test_readme_that_is_not_utf8(self, acme, package_error, project):
        """A README that is not UTF-8 is rejected in one line."""
        (acme / "README.md").write_bytes(b"\xff")
        project('readme = "README.md"')

        assert package_error() == "[project] readme 'README.md' is not UTF-8"

    @pytest.mark.parametrize("path", [".github/README.md", "docs/README.md"])
    def test_readme_in_another_folder(self, path, acme, package, project):
        """A README in another folder of the project, or a link to one, is used."""
        (acme / path).parent.mkdir()
        (acme / path).write_text("Ours.", encoding="utf-8")
        (acme / "README.md").symlink_to(path)
        project('readme = "README.md"')
        assert package() == (0, "")

        assert b"Ours." in read_wheel()[1]

    @pytest.mark.parametrize(
        ("pattern", "reason"),
        [
            ("../private/*", "it is not a plain path within the folder"),
            ("/etc/passwd", "it is not a plain path within the folder"),
            ("LICENSES/*", "it is a link"),
            (
                "**/LICENSE",
                "[project] license-files: '**/LICENSE' has a wildcard in its folder: write the full name of",
            ),
        ],
    )
    def test_license_patterns_outside(self, pattern, reason, acme, package_error, project):
        """Patterns that lead out of the project, and patterns with wildcards for folders, are rejected."""
        (acme / "LICENSES").symlink_to("../private")
        project(f'license-files = ["{pattern}"]')

        assert package_error().startswith(reason)

    def test_licenses(self, acme, package, project):
        """Patterns match files in a folder, except hidden files and links to folders."""
        for path in ("LICENSE", "legal/a/MIT.txt", "legal/b.txt", "legal/.hidden.txt", "legal/c.md"):
            (acme / path).parent.mkdir(parents=True, exist_ok=True)
            (acme / path).write_text("", encoding="utf-8")
        project('license-files = ["LICEN[CS]E", "legal/*.txt", "legal/c.md", "legal/b.txt", "nosuch/*"]')
        assert package() == (0, "")

        with zipfile.ZipFile(f"dist/{WHEEL}") as wheel:
            licenses = {name.partition("/licenses/")[2] for name in wheel.namelist()} - {""}
        assert licenses == {"LICENSE", "legal/b.txt", "legal/c.md"}


class TestPyproject:
    def test_link_out_of_the_project(self, acme, package_error):
        """A `pyproject.toml` that links out of the project is rejected."""
        (acme / "pyproject.toml").rename(acme.parent / "private" / "pyproject.toml")
        (acme / "pyproject.toml").symlink_to("../private/pyproject.toml")

        assert package_error() == (
            f"{acme / 'pyproject.toml'} cannot be read: it is outside 'acme': replace the link with a copy"
        )

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            (f"{'a.' * 400_000}a = 1", "cannot be read: a key has more than 100 parts"),
            (f"a = {'[' * 400_000}", "cannot be read: it is nested too deeply"),
            (f"a = {'9' * 5000}", "cannot be read: Exceeds the limit"),
            ("a = '\xff'", "cannot be read: 'utf-8' codec can't decode"),
        ],
    )
    def test_hostile_pyproject(self, text, reason, acme, package_error):
        """Text that is nested too deeply, or is not TOML, is rejected quickly."""
        (acme / "pyproject.toml").write_text(text, encoding="latin-1")

        assert package_error().startswith(f"{acme / 'pyproject.toml'} {reason}")


class TestGit:
    def test_no_program_is_run(self, acme, package):
        """Programs in the repository's git configuration are not run."""
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

    def test_pipe_in_git_configuration(self, acme, monkeypatch):
        """If git hangs, it times out, and the registry name is local."""
        monkeypatch.setattr("promptkit.cli.repository._MAX_S", 0.5)
        git("init", "--quiet")
        os.mkfifo("pipe")
        with open(".git/config", "a", encoding="utf-8") as file:
            file.write("[include]\npath = ../pipe\n")

        assert registry_identity(None, "acme", acme) == ("local/acme", None)


class TestEnvironment:
    def test_recipe_that_reads_and_prints(self, acme, package, monkeypatch):
        """The check of the package gives recipes no input and accepts any bytes that they print."""
        monkeypatch.undo()
        monkeypatch.chdir(acme)
        (acme / "prompts" / "odd.py").write_text(
            "import os, sys\nif 'promptkit-package-' in __file__:\n    sys.stdin.read()\n"
            "    os.write(2, b'\\xff')\n    raise ValueError('odd')\n",
            encoding="utf-8",
        )
        code, err = package()

        assert code == 1
        assert "odd" in err

    def test_lone_surrogates(self, acme, package):
        """A lone surrogate is escaped in the registry entry."""
        (acme / "prompts" / "odd.py").write_text(
            "from typing import Annotated\nfrom promptkit import Arg, prompt\n@prompt\n"
            "def odd(a: Annotated[str, Arg('x \\ud800', env='A')] = ''):\n    'Odd.'\n    return a\n",
            encoding="utf-8",
        )
        code, err = package()

        assert (code, err) == (0, "") or "Traceback" not in err
        if code == 0:
            json.loads(Path("dist/server.json").read_text(encoding="utf-8"))

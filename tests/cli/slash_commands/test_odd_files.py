"""`promptkit import` in an unknown repository: links, special files, and misleading text."""

import os
import re
import socket

import pytest

from promptkit.cli import main

posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no such files")

FORMATS = {"claude-commands": ".md", "gemini-commands": ".toml", "vscode-prompts": ".prompt.md"}
LINK = "it is a link"


@pytest.fixture
def outside_file(tmp_path):
    """A file outside of the imported folder, with text that every parser accepts."""
    file = tmp_path / "secret.md"
    file.write_text("prompt = 'precious'\n")
    return file


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A folder of an unknown repository, in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "fine.md").write_text("Fine.")
    return tmp_path / "theirs"


@pytest.fixture
def run(capsys):
    """A function that runs `promptkit import` and returns its exit code and the printed lines."""

    def call(*words):
        code = main(["import", *map(str, words)])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return code, (captured.out + captured.err).splitlines()

    return call


def is_file(path):
    return path.is_symlink() or not path.is_dir()


def files_in(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if is_file(path))


@posix
class TestLinks:
    def test_links_are_reported(self, repository, outside_file, run):
        """Links to files and folders are reported and not followed, and the other files are imported."""
        (repository / "a.md").symlink_to(outside_file)
        (repository / "b.md").symlink_to("missing")
        (repository / "c").symlink_to(outside_file.parent)
        (repository / "d.md").symlink_to("d.md")

        code, lines = run("claude-commands", "theirs")

        assert code == 1
        for name, rejected in zip(("a.md", "b.md", "c", "d.md"), lines, strict=False):
            assert rejected.startswith(f"theirs/{name}:1: not imported: {LINK}")
        assert lines[4:] == [
            "theirs/fine.md: wrote prompts/fine.prompt.md",
            "imported 1 command",
            "did not import 4 files",
        ]

    @pytest.mark.parametrize("path", ["theirs/a.md", "{absolute}/theirs/a.md", "./theirs/../theirs/a.md"])
    def test_named_link(self, path, repository, outside_file, run):
        """A link on the command line is rejected, and the other file is imported."""
        (repository / "a.md").symlink_to(outside_file)

        code, lines = run("claude-commands", path.format(absolute=repository.parent), "theirs/fine.md")

        assert (code, len(lines)) == (1, 4)
        assert f"a.md:1: not imported: {LINK}" in lines[0]
        assert files_in(repository.parent / "prompts") == ["fine.prompt.md"]

    @pytest.mark.parametrize("path", ["link", "link/secret.md"])
    def test_linked_folder(self, path, repository, outside_file, run):
        """A link in a relative path is rejected, because it could have come with the repository."""
        (repository.parent / "link").symlink_to(outside_file.parent)

        code, lines = run("claude-commands", path, "theirs")

        assert code == 1
        assert "not imported" in lines[0]
        assert "it is a link" in lines[0]
        assert files_in(repository.parent / "prompts") == ["fine.prompt.md"]

    @pytest.mark.parametrize("path", ["out", "out/sub", "out/fine.prompt.md"])
    @pytest.mark.parametrize("target", ["elsewhere", "missing"])
    def test_nothing_is_written_through_a_link(self, path, target, repository, run, tmp_path):
        """A link in place of the folder, a subfolder or a file rejects the whole command."""
        (tmp_path / "elsewhere").mkdir()
        link = tmp_path / path
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(tmp_path / target)
        (repository / "sub").mkdir()
        if path == "out/sub":
            (repository / "fine.md").rename(repository / "sub" / "fine.md")

        code, lines = run("claude-commands", "theirs", "-o", "out")

        assert code == 1
        assert lines[1:] == ["imported 0 commands", "did not import 1 file"]
        assert re.search(f"{path}'?(: it is a link:| is in the way:)", lines[0])
        assert list((tmp_path / "elsewhere").iterdir()) == []
        assert not (tmp_path / "missing").exists()
        assert files_in(tmp_path / "out") == ([path.partition("/")[2]] if "/" in path else [])


@posix
@pytest.mark.timeout(10)
class TestOddFiles:
    @pytest.mark.parametrize("client_format", FORMATS)
    def test_special_files(self, client_format, repository, run, monkeypatch):
        """
        Pipes, sockets and huge files are reported in one line each, and folders named like files are ignored.
        """
        suffix = FORMATS[client_format]
        os.mkfifo(repository / f"pipe{suffix}")
        monkeypatch.chdir(repository)  # paths of sockets are short
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"socket{suffix}")
        monkeypatch.chdir(repository.parent)
        (repository / f"folder{suffix}").mkdir()
        with (repository / f"huge{suffix}").open("wb") as huge:
            huge.truncate(16 << 30)
        (repository / f"ok{suffix}").write_text("prompt = 'Hello.'")

        code, lines = run(client_format, "theirs", f"theirs/pipe{suffix}")

        assert code == 1
        expected = [
            f"theirs/huge{suffix}:1: not imported: it is larger than 1,048,576 bytes",
            f"theirs/pipe{suffix}:1: not imported: it is not a regular file",
            f"theirs/socket{suffix}:1: not imported: it is not a regular file",
            f"theirs/pipe{suffix}:1: not imported: it is not a regular file",
            "did not import 4 files",
        ]
        assert [line for line in lines if "not import" in line] == expected
        assert any(line.startswith(f"theirs/ok{suffix}: wrote ") for line in lines)

    def test_device(self, repository, run):
        """A device is not read."""
        code, lines = run("claude-commands", "/dev/zero", "theirs")

        assert code == 1
        assert lines[0] == "/dev/zero:1: not imported: it is not a regular file"
        assert "theirs/fine.md: wrote" in lines[1]

    @pytest.mark.parametrize("client_format", FORMATS)
    def test_name_that_is_not_utf8(self, client_format, repository, run):
        """A file name that is not UTF-8 is escaped and rejected, and the others are imported."""
        suffix = FORMATS[client_format]
        (repository / os.fsdecode(b"a\xff" + suffix.encode())).write_text("prompt = 'x'")
        (repository / f"b{suffix}").write_text("prompt = 'x'")

        code, lines = run(client_format, "theirs")

        assert code == 1
        assert lines[0].startswith(
            f"theirs/a\\udcff{suffix}:1: not imported: it cannot be read (UnicodeEncode"
        )
        assert f"theirs/b{suffix}: wrote " in lines[1]

    @pytest.mark.parametrize(
        "name", ["a\nb", "a\x1b[2J", "\u202ea", "a:b", "a\\b", "-x", "::add-mask::x", "a b"]
    )
    def test_name_with_special_characters(self, name, repository, run):
        """The file is imported, and its name is printed on one line with control characters escaped."""
        (repository / "fine.md").rename(repository / f"{name}.md")
        (repository / name).mkdir()
        (repository / name / f"{name}.md").write_text("$1,0")

        code, lines = run("claude-commands", "theirs")

        assert (code, len(lines)) == (1, 4)
        assert all(line.isprintable() for line in lines)
        assert len(files_in(repository.parent / "prompts")) == 2

    @pytest.mark.parametrize("name", ["::add-mask::x", "##[error]x", " ::error::x"])
    def test_name_like_a_workflow_command(self, name, repository, run, monkeypatch):
        """No output line is a workflow command in GitHub Actions."""
        monkeypatch.chdir(repository)
        monkeypatch.setenv("GITHUB_ACTIONS", "true")
        (repository / "fine.md").rename(repository / f"{name}.md")

        code, lines = run("claude-commands", ".")

        assert code == 0
        assert not lines[0].lstrip().startswith(("::", "##["))
        assert ".md: wrote " in lines[0]

    def test_unreadable_folder(self, repository, run, monkeypatch):
        """An unreadable folder is reported in one line, and the other files are imported."""
        (repository / "closed").mkdir()
        (repository / "closed" / "a.md").write_text("x")
        monkeypatch.setattr("promptkit.files.folder.os.listdir", refuse_closed(os.listdir))

        code, lines = run("claude-commands", "theirs")

        assert code == 1
        assert "theirs/closed:1: not imported: Permission denied" in lines
        assert "theirs/fine.md: wrote prompts/fine.prompt.md" in lines


def refuse_closed(listdir):
    def call(path):
        names = listdir(path)
        if names == ["a.md"]:
            raise PermissionError(13, "Permission denied", path)
        return names

    return call


#: By format: text that once ended the whole import, or could have.
ODD = {
    "claude-commands": [
        "---\n\n---\nx",
        "---\n---\nx",
        "$" + "1" * 5_000,
        "$ARGUMENTS[" + "1" * 5_000 + "]",
        "\\$" + "1" * 5_000,
        "---\narguments: [0x" + "f" * 5_000 + "]\n---\nx",
        "---\narguments: " + "1" * 5_000 + "\n---\nx",
        "---\ndescription: !!bool x\n---\nx",
        "---\ndescription: " + "[" * 100_000 + "\n---\nx",
        "---\nargument-hint: argument_2\n---\n$1 $2",
        "---\nargument-hint: argument_2 argument_1\n---\n$1 $2",
        "---\narguments: [a, A]\n---\n$a $A",
        'a\0b\x0c\x0b\x85\u2028\ufeff"""',
        "\x01",
        '"' * 7,
        "\\",
        "x" * 100_000,
    ],
    "gemini-commands": [
        "prompt = 'x'\nn = " + "1" * 5_000,
        "prompt = 'x'\na = " + "[" * 100_000,
        "prompt = 'x'\n" + "a." * 100_000 + "a = 1",
        "prompt = '''" + "@{" * 1_000 + "'''",
        'prompt = "x"\ndescription = "\\u0000\\u0001\\u202e\\"\\"\\""',
        "prompt = 1979-05-27",
        "\0",
    ],
    "vscode-prompts": [
        "---\n\n---\nx",
        "---\nname: '../../x'\n---\n${input:a}",
        "---\nname: /\n---\nx",
        '${input:class:"""} ${input:None} ${input:日} ${input:本}',
        "${input:a:\\} ${input:A}",
    ],
}


@pytest.mark.parametrize(("client_format", "text"), [(name, text) for name in ODD for text in ODD[name]])
def test_odd_file_does_not_stop_the_import(client_format, text, import_files):
    """An odd file is imported or reported in one line, and the next file is imported."""
    suffix = FORMATS[client_format]

    result = import_files(client_format, {f"a{suffix}": text, f"z{suffix}": "prompt = 'Hello.'"})

    assert result.lines[0].startswith((f"a{suffix}: wrote ", f"a{suffix}:")), result.lines
    assert any(line.startswith(f"z{suffix}: wrote ") for line in result.lines)
    assert "Hello." in result.render("z")
    assert max(map(len, result.lines)) < 1_000
    assert not any("Error" in line for line in result.lines)


def test_unexpected_error(repository, run, monkeypatch):
    """An unexpected error is reported with its type in the file's line."""

    def fail(name, text):
        if name == "a":
            raise ZeroDivisionError("of\nmine")
        return read(name, text)

    import promptkit.cli.import_commands as module

    ending, read = module._PARSERS["claude-commands"]
    monkeypatch.setitem(module._PARSERS, "claude-commands", (ending, fail))
    (repository / "a.md").write_text("x")

    code, lines = run("claude-commands", "theirs")

    assert code == 1
    assert lines[0] == "theirs/a.md:1: not imported: it cannot be read (ZeroDivisionError: of mine)"
    assert lines[1].startswith("theirs/fine.md: wrote ")


def test_invalid_python_is_not_written(repository, run, monkeypatch):
    """A command whose Python does not parse is not imported."""
    monkeypatch.setattr("promptkit.cli.import_commands.generate_python", lambda *_: ("x", "def"))

    (repository / "fine.md").write_text("!`git log`")

    code, lines = run("claude-commands", "theirs")

    assert code == 1
    assert lines[0].startswith("theirs/fine.md:1: not imported: it cannot be read (SyntaxError: ")
    assert not (repository.parent / "prompts").exists()

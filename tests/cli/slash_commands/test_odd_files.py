"""`promptkit import` in a repository of others: links, files that are not files, and text that misleads."""

import os
import re
import socket

import pytest

from promptkit.cli import main

posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no such files")

FORMATS = {"claude-commands": ".md", "gemini-commands": ".toml", "vscode-prompts": ".prompt.md"}
LINK = "it is a link, and links are not followed: import its target instead"


@pytest.fixture
def outside(tmp_path):
    """A file outside of the folder that is imported, with text that every reader takes."""
    file = tmp_path / "secret.md"
    file.write_text("prompt = 'precious'\n")
    return file


@pytest.fixture
def theirs(tmp_path, monkeypatch):
    """A folder that came with a repository, in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "fine.md").write_text("Fine.")
    return tmp_path / "theirs"


@pytest.fixture
def run(capsys):
    """A function that runs a command, and returns its exit code and the lines that it prints."""

    def call(*words):
        code = main(["import", *map(str, words)])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return code, (printed.out + printed.err).splitlines()

    return call


def is_file(path):
    return path.is_symlink() or not path.is_dir()


def files_in(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if is_file(path))


@posix
class TestLinks:
    def test_links_in_a_folder_are_reported(self, theirs, outside, run):
        """
        What links to files and folders lead to is not imported, and the other files are.
        """
        (theirs / "a.md").symlink_to(outside)
        (theirs / "b.md").symlink_to("missing")
        (theirs / "c").symlink_to(outside.parent)
        (theirs / "d.md").symlink_to("d.md")

        code, lines = run("claude-commands", "theirs")

        assert code == 1
        refused = [f"theirs/{name}:1: not imported: {LINK}" for name in ("a.md", "b.md", "c", "d.md")]
        assert lines == [
            *refused,
            "theirs/fine.md: wrote prompts/fine.py and prompts/fine.md",
            "imported 1 command, 1 of them whole",
            "did not import 4 files",
        ]

    @pytest.mark.parametrize("path", ["theirs/a.md", "{absolute}/theirs/a.md", "./theirs/../theirs/a.md"])
    def test_a_link_that_is_named(self, path, theirs, outside, run):
        """
        It is refused, and the other file is imported.
        """
        (theirs / "a.md").symlink_to(outside)

        code, lines = run("claude-commands", path.format(absolute=theirs.parent), "theirs/fine.md")

        assert (code, len(lines)) == (1, 4)
        assert re.search(
            r"a\.md:1: not imported: it is a link.* (or name that|import its target instead)$", lines[0]
        )
        assert files_in(theirs.parent / "prompts") == ["fine.md", "fine.py"]

    @pytest.mark.parametrize("path", ["link", "link/secret.md"])
    def test_a_folder_that_is_a_link(self, path, theirs, outside, run):
        """
        A link in a relative path may have come with the repository.
        """
        (theirs.parent / "link").symlink_to(outside.parent)

        code, lines = run("claude-commands", path, "theirs")

        assert code == 1
        assert "not imported" in lines[0]
        assert "it is a link" in lines[0]
        assert files_in(theirs.parent / "prompts") == ["fine.md", "fine.py"]

    @pytest.mark.parametrize("place", ["out", "out/sub", "out/fine.py", "out/fine.md"])
    @pytest.mark.parametrize("target", ["elsewhere", "missing"])
    def test_nothing_is_written_through_a_link(self, place, target, theirs, run, tmp_path):
        """
        In place of the folder, of one below it, or of a file: the file is refused whole.
        """
        (tmp_path / "elsewhere").mkdir()
        link = tmp_path / place
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(tmp_path / target)
        (theirs / "sub").mkdir()
        if place == "out/sub":
            (theirs / "fine.md").rename(theirs / "sub" / "fine.md")

        code, lines = run("claude-commands", "theirs", "-o", "out")

        assert code == 1
        assert lines[1:] == ["imported 0 commands, 0 of them whole", "did not import 1 file"]
        assert re.search(f"{place}'?(: it is a link:| is in the way:)", lines[0])
        assert list((tmp_path / "elsewhere").iterdir()) == []
        assert not (tmp_path / "missing").exists()
        assert files_in(tmp_path / "out") == ([place.partition("/")[2]] if "/" in place else [])


@posix
@pytest.mark.timeout(10)
class TestOddFiles:
    @pytest.mark.parametrize("client_format", FORMATS)
    def test_what_is_not_a_file(self, client_format, theirs, run, monkeypatch):
        """
        Pipes, sockets, folders called as files, and huge files are one line each, and nothing waits for them.
        """
        end = FORMATS[client_format]
        os.mkfifo(theirs / f"pipe{end}")
        monkeypatch.chdir(theirs)  # paths of sockets are short
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"socket{end}")
        monkeypatch.chdir(theirs.parent)
        (theirs / f"folder{end}").mkdir()
        with (theirs / f"huge{end}").open("wb") as huge:
            huge.truncate(16 << 30)
        (theirs / f"ok{end}").write_text("prompt = 'Hello.'")

        code, lines = run(client_format, "theirs", f"theirs/pipe{end}")

        assert code == 1
        expected = [
            f"theirs/huge{end}:1: not imported: it has more than 1,048,576 bytes",
            f"theirs/pipe{end}:1: not imported: it is not a regular file",
            f"theirs/socket{end}:1: not imported: it is not a regular file",
            f"theirs/pipe{end}:1: not imported: it is not a regular file",
            "did not import 4 files",
        ]
        assert [line for line in lines if "not import" in line] == expected
        assert any(line.startswith(f"theirs/ok{end}: wrote ") for line in lines)

    def test_a_device(self, theirs, run):
        """
        It is not read, although it has no end.
        """
        code, lines = run("claude-commands", "/dev/zero", "theirs")

        assert code == 1
        assert lines[0] == "/dev/zero:1: not imported: it is not a regular file"
        assert "theirs/fine.md: wrote" in lines[1]

    @pytest.mark.parametrize("client_format", FORMATS)
    def test_a_name_that_is_not_utf8(self, client_format, theirs, run):
        """
        It is escaped, and the others are imported.
        """
        end = FORMATS[client_format]
        (theirs / os.fsdecode(b"a\xff" + end.encode())).write_text("prompt = 'x'")
        (theirs / f"b{end}").write_text("prompt = 'x'")

        code, lines = run(client_format, "theirs")

        assert code == 1
        assert lines[0] == f"theirs/a\\udcff{end}:1: not imported: its name is not UTF-8: rename it"
        assert f"theirs/b{end}: wrote " in lines[1]

    @pytest.mark.parametrize(
        "name", ["a\nb", "a\x1b[2J", "\u202ea", "a:b", "a\\b", "-x", "::add-mask::x", "a b"]
    )
    def test_a_name_of_any_characters(self, name, theirs, run):
        """
        The file is imported, and its name is shown on one line, without what a terminal would obey.
        """
        (theirs / "fine.md").rename(theirs / f"{name}.md")
        (theirs / name).mkdir()
        (theirs / name / f"{name}.md").write_text("$1,0")

        code, lines = run("claude-commands", "theirs")

        assert (code, len(lines)) == (1, 4)
        assert all(line.isprintable() for line in lines)
        assert len(files_in(theirs.parent / "prompts")) == 4

    @pytest.mark.parametrize("name", ["::add-mask::x", "##[error]x", " ::error::x"])
    def test_a_name_that_is_a_command_of_a_ci_system(self, name, theirs, run, monkeypatch):
        """
        No line begins with it.
        """
        monkeypatch.chdir(theirs)
        (theirs / "fine.md").rename(theirs / f"{name}.md")

        code, lines = run("claude-commands", ".")

        assert code == 0
        assert lines[0].startswith(f"./{name}.md: wrote ")

    def test_a_folder_that_cannot_be_read(self, theirs, run, monkeypatch):
        """
        It is one line, and the others are imported.
        """
        (theirs / "closed").mkdir()
        (theirs / "closed" / "a.md").write_text("x")
        monkeypatch.setattr("promptkit.files.folder.os.listdir", refuse_closed(os.listdir))

        code, lines = run("claude-commands", "theirs")

        assert code == 1
        assert "theirs/closed:1: not imported: Permission denied" in lines
        assert "theirs/fine.md: wrote prompts/fine.py and prompts/fine.md" in lines


def refuse_closed(listdir):
    def call(place):
        names = listdir(place)
        if names == ["a.md"]:
            raise PermissionError(13, "Permission denied", place)
        return names

    return call


#: By format: text that ended the whole import, or might.
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
def test_one_odd_file_does_not_end_the_import(client_format, text, imported):
    """
    It is imported so that it can be served, or it is one line; the file after it is imported.
    """
    end = FORMATS[client_format]

    found = imported(client_format, {f"a{end}": text, f"z{end}": "prompt = 'Hello.'"})

    assert found.said[0].startswith((f"a{end}: wrote ", f"a{end}:")), found.said
    assert any(line.startswith(f"z{end}: wrote ") for line in found.said)
    assert "Hello." in found.text("z")
    assert max(map(len, found.said)) < 1_000
    assert not any("Error" in line for line in found.said)


def test_an_unexpected_error_concerns_one_file(theirs, run, monkeypatch):
    """
    Its type is shown in the line of the file.
    """

    def fail(name, text):
        if name == "a":
            raise ZeroDivisionError("of\nmine")
        return read(name, text)

    import promptkit.cli.import_commands as module

    ending, read = module._READERS["claude-commands"]
    monkeypatch.setitem(module._READERS, "claude-commands", (ending, fail))
    (theirs / "a.md").write_text("x")

    code, lines = run("claude-commands", "theirs")

    assert code == 1
    assert lines[0] == "theirs/a.md:1: not imported: it cannot be read (ZeroDivisionError: of mine)"
    assert lines[1].startswith("theirs/fine.md: wrote ")


def test_python_that_does_not_parse_is_not_written(theirs, run, monkeypatch):
    """
    The command is not counted as imported.
    """
    monkeypatch.setattr("promptkit.cli.import_commands.written", lambda *_: ("x", "def"))

    code, lines = run("claude-commands", "theirs")

    assert code == 1
    assert lines[0].startswith("theirs/fine.md:1: not imported: it cannot be read (SyntaxError: ")
    assert not (theirs.parent / "prompts").exists()

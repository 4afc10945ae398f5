"""A project of an unknown author: links in its configuration are not followed, and nothing hangs."""

import difflib
import json
import os

import pytest

from promptkit.clients.configuration_changes import EntryChange, unified_diff
from promptkit.clients.profiles import INSTALLABLE
from tests.cli.install.entries import backup_path

#: The configuration file of each client in a project.
FILES = {
    name: settings.project[0].removeprefix("{project}/")
    for name, settings in INSTALLABLE.items()
    if settings.project
}
IN_FOLDERS = {name: file for name, file in FILES.items() if "/" in file}

OTHER = {"json": '{"mcpServers": {"other": {"command": "x"}}}', "toml": 'other = "x"\n'}

#: Commands that read or change the configuration of a project.
COMMANDS = {
    "install": ["install", "{}", "--scope", "project"],
    "install --dry-run": ["install", "{}", "--scope", "project", "--dry-run"],
    "uninstall": ["uninstall", "{}", "--scope", "project", "--name", "other"],
    "uninstall --dry-run": ["uninstall", "{}", "--scope", "project", "--name", "other", "--dry-run"],
    "uninstall --all": ["uninstall", "--all", "--scope", "project"],
}


def snapshot(folder):
    """Return the links and the files in a folder, and their content."""
    return {
        path: path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if "__pycache__" not in path.parts
    }


def place_link(kind, path, outside):
    """Put a link or a special file in place of a file or its folder, and fill *outside*."""
    outside.mkdir()
    if not kind.startswith("dangling"):
        (outside / path.name).write_text(OTHER[path.suffix[1:]])
    if kind.endswith("folder"):
        path.parent.symlink_to(outside, target_is_directory=True)
        if kind.startswith("dangling"):
            outside.rmdir()
        return
    path.parent.mkdir(exist_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "link to a pipe":
        os.mkfifo(path.with_name("pipe"))
        path.symlink_to("pipe")
    else:
        path.symlink_to(outside / path.name)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("argv", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "device", "link to a pipe"])
@pytest.mark.parametrize("client", FILES)
def test_linked_file_is_rejected(argv, kind, client, project, tmp_path, promptkit):  # noqa: PLR0917
    """The error names the file, and nothing changes inside or outside of the project."""
    path = project / FILES[client]
    place_link(kind, path, tmp_path / "outside")
    before = snapshot(tmp_path)

    code, out, err = promptkit(*(word.format(client) for word in argv))

    assert code == 1
    assert "x" not in out.split()
    assert err.splitlines()[0].startswith(f"promptkit: {path}: it ")
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("argv", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("kind", ["folder", "dangling folder"])
@pytest.mark.parametrize("client", IN_FOLDERS)
def test_linked_folder_is_rejected(argv, kind, client, project, tmp_path, promptkit):  # noqa: PLR0917
    """A configuration folder that is a link is rejected."""
    path = project / FILES[client]
    place_link(kind, path, tmp_path / "outside")
    before = snapshot(tmp_path)

    code, _, err = promptkit(*(word.format(client) for word in argv))

    assert code == 1
    assert f"{path}: it is outside the project" in err.splitlines()[0]
    assert snapshot(tmp_path) == before


@pytest.mark.timeout(20)
@pytest.mark.parametrize("client", IN_FOLDERS)
def test_pipe_in_place_of_a_folder(client, project, tmp_path, promptkit):
    """A pipe in place of the folder is rejected without waiting."""
    path = project / FILES[client]
    os.mkfifo(path.parent)

    code, _, err = promptkit("install", client, "--scope", "project")

    assert code == 1
    assert "Not a directory" in err.splitlines()[0]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "device", "folder", "dangling folder"])
def test_list_does_not_follow_links(kind, project, tmp_path, promptkit):
    """`install --list` reports the error and shows nothing from outside of the project."""
    path = project / ".cursor" / "mcp.json"
    place_link(kind, path, tmp_path / "outside")
    if kind == "link":
        text = '{"mcpServers": {"stolen": {"command": "promptkit", "args": ["serve"]}}}'
        (tmp_path / "outside" / "mcp.json").write_text(text)

    code, out, err = promptkit("install", "--list", "cursor")

    assert (code, err) == (0, "")
    assert "stolen" not in out
    assert "dangling" in kind or "it is outside the project" in out or "it is not a file" in out


class TestRaces:
    @pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
    @pytest.mark.parametrize("exists", [True, False])
    def test_link_after_reading(  # noqa: PLR0917
        self, kind, exists, project, tmp_path, promptkit, monkeypatch
    ):
        """A link that replaces the file or folder after it was read is not followed."""
        folder, outside = project / ".cursor", tmp_path / "outside"
        folder.mkdir()
        outside.mkdir()
        for path in (folder, outside) if exists else ():
            (path / "mcp.json").write_text(OTHER["json"])
        apply = EntryChange.apply

        def late(change):
            if kind == "folder":
                folder.rename(project / "moved")
                folder.symlink_to(outside)
            else:
                (folder / "mcp.json").unlink(missing_ok=True)
                if kind == "pipe":
                    os.mkfifo(folder / "mcp.json")
                else:
                    (folder / "mcp.json").symlink_to(outside / "mcp.json")
            return apply(change)

        monkeypatch.setattr(EntryChange, "apply", late)
        code, _, err = promptkit("install", "cursor", "--scope", "project")

        assert code == 1
        assert err.startswith(f"promptkit: {folder / 'mcp.json'}: it ")
        assert [path.read_text() for path in outside.iterdir()] == [OTHER["json"]] * exists

    def test_link_before_the_replacement(self, project, tmp_path, promptkit, monkeypatch):
        """A link that replaces the folder after the new content was written is not followed."""
        folder, outside = project / ".cursor", tmp_path / "outside"
        folder.mkdir()
        outside.mkdir()
        for path in (folder, outside):
            (path / "mcp.json").write_text(OTHER["json"])
        fsync = os.fsync

        def swap(descriptor):
            fsync(descriptor)
            folder.rename(project / "moved")
            folder.symlink_to(outside)

        monkeypatch.setattr(os, "fsync", swap)
        code, _, err = promptkit("install", "cursor", "--scope", "project")

        assert code == 1
        assert "it is a link" in err
        assert [path.name for path in (project / "moved").iterdir()] == ["mcp.json"]
        assert [path.read_text() for path in outside.iterdir()] == [OTHER["json"]]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_backup_is_not_written_through_a_link(kind, home, project, tmp_path, promptkit):
    """If a link, a pipe or a folder is in place of the backup, nothing is changed."""
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(OTHER["json"])
    backup = backup_path(promptkit("install", "cursor", "--name", "first")[1])
    before = file.read_bytes()
    backup.unlink()
    if kind == "pipe":
        os.mkfifo(backup)
    elif kind == "folder":
        backup.mkdir()
    else:
        (tmp_path / "victim.txt").write_text("precious")
        backup.symlink_to(tmp_path / "victim.txt")

    code, _, err = promptkit("install", "cursor")

    assert code == 1
    assert "it cannot be written: " in err
    assert file.read_bytes() == before
    assert kind != "link" or (tmp_path / "victim.txt").read_text() == "precious"


def test_extended_attributes_are_kept(home, project, promptkit):
    """Extended attributes, such as access lists, are copied to the new file."""
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(OTHER["json"])
    try:
        os.setxattr(file, "user.note", b"mine")
    except (AttributeError, OSError):
        pytest.skip("there are no extended attributes here")

    assert promptkit("install", "cursor")[0] == 0
    assert os.getxattr(file, "user.note") == b"mine"


def entry(command, *words):
    return {"command": command, "args": list(words)}


#: Entries of promptkit with odd values.
ODD = {
    "root": entry("/", "-m", "promptkit", "serve"),
    "dots": entry("/..", "-m", "promptkit", "serve", ".."),
    "NUL": entry("a/promptkit\0", "serve", "/a\0b"),
    "NUL in a word": entry("/a\0b/promptkit", "serve", "/a\0b"),
    "surrogate": entry("/\ud800/promptkit", "serve", "/\ud800"),
    "long": entry(f"/{'a' * 5000}/promptkit", "serve", f"/{'b' * 5000}"),
    "another machine": entry("//host/share/promptkit", "serve", "\\\\host\\share\\recipes"),
    "numbers": {"command": "promptkit", "args": ["serve", 1, None, {"a": []}], "env": 3},
    "lines": entry("/x\n    user: all is fine/promptkit", "serve", "/y\n    missing: z\x1b[2J"),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize(
    "argv",
    [
        ["install", "--list", "claude-code"],
        ["install", "claude-code", "--scope", "project", "--name", "c", "--dry-run"],
        ["install", "claude-code", "--scope", "project", "--name", "c"],
        ["uninstall", "claude-code", "--scope", "project", "--name", "d"],
        ["uninstall", "--all", "--scope", "project", "--dry-run"],
        ["uninstall", "--all"],
    ],
    ids=" ".join,
)
def test_odd_entry_breaks_no_command(argv, odd, project, promptkit):
    """No command ends with a traceback, and no entry adds lines to a list."""
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"a\n    user: b": odd, "c": odd}}))

    code, out, err = promptkit(*argv)

    assert code in (0, 1)
    assert "\x1b" not in out + err
    injected = ("    user: all is fine", "    user: b", "    missing: z")
    assert not any(line.startswith(injected) for line in (out + err).splitlines())


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("claude-code", '{"a": ' + "1" * 5000 + "}"),
        ("claude-code", '{"a": "\ud83d"}'),
        ("codex", "a = " + "1" * 5000),
        ("codex", "a = " + "[" * 50_000),
        ("codex", "a = 9999-99-99"),
        ("claude-code", '{"mcpServers": {"team-prompts": ' + "1" * 5000 + "}}"),
    ],
)
@pytest.mark.parametrize("argv", [["install", "{}", "--scope", "project"], ["install", "--list", "{}"]])
def test_unparsable_text_is_rejected(client, text, argv, project, promptkit):
    """A number with too many digits, or text that is nested too deeply, is rejected with one line."""
    file = project / FILES[client]
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(text.encode("utf-8", "surrogatepass"))

    code, out, err = promptkit(*(word.format(client) for word in argv))

    assert code == ("--list" not in argv)
    assert str(file) in (err.splitlines()[0] if code else out)
    assert file.read_bytes() == text.encode("utf-8", "surrogatepass")


def test_error_is_one_line(project, promptkit):
    """A URL in an entry can neither add lines nor control the terminal."""
    odd = {"type": "http", "url": "https://a.example/\n\x1b[2Jpromptkit: all is fine"}
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"x": odd}}))

    code, _, err = promptkit("uninstall", "claude-code", "--scope", "project", "--name", "x")

    assert code == 1
    assert err.count("\n") == 1
    assert "\x1b" not in err


#: By client: texts that once took quadratic time.
GROWING = {
    "lines that repeat": (
        "claude-code",
        lambda n: '{"a": [\n' + "".join(f"{i % 101},\n" for i in range(n)) + "0]}",
    ),
    "members of one line": ("claude-code", lambda n: "{" + ",".join(f'"k{i}":1' for i in range(n)) + "}"),
    "an entry": (
        "claude-code",
        lambda n: json.dumps(
            {"mcpServers": {"ours": entry("promptkit", "serve", *map(str, range(n)))}}, indent=0
        ),
    ),
    "parts of a key": ("codex", lambda n: "a" + ".a" * n + " = 1"),
    "quoted parts of a key": ("codex", lambda n: '"#"' + '."#"' * n + " = 1"),
    "parts of a heading": ("codex", lambda n: "[a" + ".a" * n + "]"),
    "keys below a heading": (
        "codex",
        lambda n: "[a" + ".a" * (n // 10) + "]\n" + "".join(f"k{i}=1\n" for i in range(n)),
    ),
    "lines of an array": ("codex", lambda n: "a = [\n" + "".join(f"{i % 101},\n" for i in range(n)) + "]"),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("client", "text"), GROWING.values(), ids=GROWING)
def test_long_text_takes_linear_time(client, text, project, promptkit):
    """Each text is changed or rejected within the time limit."""
    file = project / FILES[client]
    file.parent.mkdir(exist_ok=True)
    file.write_text(text(30_000))

    code, _, err = promptkit("install", client, "--scope", "project", "--name", "ours", "--dry-run")

    assert code == ("more than 100 parts" in err)


def join_diff(old, new):
    return "".join(unified_diff(old, new, "a", "b"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", "x"),
        ("x", ""),
        ("abc", "abc"),
        ("abcd", "axd"),
        ("aaaa", "aaa"),
        ("aaa", "aaaa"),
    ],
)
def test_diff_matches_difflib(old, new):
    """The diff of one changed range equals difflib's."""
    before, after = ([f"{char}\n" for char in text] for text in (old, new))
    expected = "".join(difflib.unified_diff(before, after, "a", "b", n=0))

    assert join_diff(before, after) == expected


def test_diff_of_several_ranges_is_one_hunk():
    """From the first to the last difference, all old lines are removed and all new lines are added."""
    old, new = ([f"{start + i}\n" for i in range(0, 6, 2)] for start in (0, 1))

    assert join_diff(old, new) == (
        "--- a\n+++ b\n@@ -1,3 +1,3 @@\n"
        + "".join(f"-{line}" for line in old)
        + "".join(f"+{line}" for line in new)
    )

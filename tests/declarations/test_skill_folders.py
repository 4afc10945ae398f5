import os
import socket
from queue import Queue

import pytest

from promptkit.compiler import reloading
from promptkit.compiler.compilation import compile
from promptkit.compiler.reloading import Reloader
from promptkit.declarations.skill_files import MAX_FILES, SkillError, paths_below, read_files
from promptkit.errors.rules import Rule

HELLO = "from promptkit import prompt\n@prompt\ndef hello() -> str:\n    return 'hello'\n"


@pytest.fixture
def put(recipes):
    """Return a function that writes a file below a folder of recipes."""
    folder = recipes(hello=HELLO)

    def put(path, data=b""):
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data if isinstance(data, bytes) else data.encode())
        return file

    put.folder = folder
    return put


def format_skill(name, **fields):
    """Return the text of a ``SKILL.md``."""
    lines = [f"name: {name}", "description: Review a change.", *(f"{k}: {v}" for k, v in fields.items())]
    return "\n".join(["---", *lines, "---", "Do it.", ""])


def create_socket(path):
    """Create a socket, changing to its folder because its full path may be too long."""
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(path.parent)
        server.bind(path.name)


def read_served_files(folder):
    """Return the files of each skill by URI, checking that there are no diagnostics."""
    catalog = compile(folder)
    assert catalog.diagnostics == ()
    assert list(catalog) == ["hello"]
    return {
        skill.uri_template: {file.path: file.content.data for file in skill.files} for skill in catalog.skills
    }


def find_diagnostic(folder):
    """Return the only diagnostic, checking that the prompt is served and the skill is not."""
    catalog = compile(folder)
    (diagnostic,) = catalog.diagnostics
    assert (list(catalog), catalog.skills) == (["hello"], ())
    assert diagnostic.hint
    return diagnostic


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("skills/a", "skill://a/SKILL.md"),
        ("a", "skill://a/SKILL.md"),
        ("skills/team/a", "skill://team/a/SKILL.md"),
        ("team/skills/a", "skill://team/skills/a/SKILL.md"),
        ("skills/Füße & co/a", "skill://F%C3%BC%C3%9Fe%20%26%20co/a/SKILL.md"),
    ],
)
def test_a_skills_path_is_its_uri(put, path, uri):
    """A skill's URI is its path, without a leading folder `skills`."""
    put(f"{path}/SKILL.md", format_skill("a"))

    assert list(read_served_files(put.folder)) == [uri]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_files_are_served_verbatim(put, newline):
    """Files are served byte for byte; hidden files and bytecode are omitted."""
    text = format_skill("a", own="[1, 2]").replace("\n", newline)
    put("a/SKILL.md", text)
    put("a/scripts/run.py", b"raise RuntimeError")
    put("a/tests/test_run.py", b"raise RuntimeError")
    put("a/picture.bin", bytes(range(256)))
    put("a/empty.txt")
    put("a/.hidden", b"x")
    put("a/.git/config", b"x")
    put("a/scripts/__pycache__/run.pyc", b"x")

    assert read_served_files(put.folder)["skill://a/SKILL.md"] == {
        "SKILL.md": text.encode(),
        "empty.txt": b"",
        "picture.bin": bytes(range(256)),
        "scripts/run.py": b"raise RuntimeError",
        "tests/test_run.py": b"raise RuntimeError",
    }


def test_a_nested_skill_is_served_separately(put):
    """A nested skill is served on its own, and its files also belong to the outer skill."""
    put("skills/outer/SKILL.md", format_skill("outer"))
    put("skills/outer/deep/inner/SKILL.md", format_skill("inner"))
    put("skills/outer/deep/inner/x.md", "x")

    files_by_uri = read_served_files(put.folder)

    assert {uri: list(files) for uri, files in files_by_uri.items()} == {
        "skill://outer/SKILL.md": ["SKILL.md", "deep/inner/SKILL.md", "deep/inner/x.md"],
        "skill://outer/deep/inner/SKILL.md": ["SKILL.md", "x.md"],
    }


def test_the_target_can_be_a_skill(put):
    """If the target is a skill, only it and its nested skills are served, and nothing is imported."""
    put("outer/SKILL.md", format_skill("outer"))
    put("outer/inner/SKILL.md", format_skill("inner"))
    put("outer/run.py", "raise RuntimeError")

    catalog = compile(put.folder / "outer")

    assert catalog.diagnostics == ()
    assert [skill.uri_template for skill in catalog.skills] == [
        "skill://outer/SKILL.md",
        "skill://outer/inner/SKILL.md",
    ]


@pytest.mark.parametrize("path", ["_private/a", "tests/a", "node_modules/a"])
def test_skipped_folders_have_no_skills(put, path):
    """Folders that are skipped for recipes are skipped for skills, too."""
    put(f"{path}/SKILL.md", format_skill("a"))

    assert read_served_files(put.folder) == {}


def test_links_within_a_skill_are_followed(put):
    """Links within the skill are followed, as in a mounted Kubernetes ConfigMap."""
    put("a/..data/SKILL.md", format_skill("a"))
    (put.folder / "a" / "SKILL.md").symlink_to("..data/SKILL.md")
    put("a/real/x.md", "x")
    (put.folder / "a" / "linked").symlink_to("real")

    assert sorted(read_served_files(put.folder)["skill://a/SKILL.md"]) == [
        "SKILL.md",
        "linked/x.md",
        "real/x.md",
    ]


@pytest.mark.parametrize("target", ["../hello.py", "/etc/passwd", "..", "/"])
def test_links_out_of_a_skill_are_reported(put, target):
    """A link to a file outside the folder makes the whole skill invalid."""
    put("a/SKILL.md", format_skill("a"))
    (put.folder / "a" / "x").symlink_to(target)

    diagnostic = find_diagnostic(put.folder)

    assert diagnostic.rule is Rule.SKILL_FILES
    assert "'x' links to a file outside the skill's folder" in diagnostic.message


@pytest.mark.parametrize("target", ["hello.py", "/etc/passwd"])
def test_a_link_created_after_listing_is_not_followed(put, target):
    """A link that replaces a file after the folder was listed is not followed."""
    root = put("a/SKILL.md", format_skill("a")).parent
    put("a/x.md", "x")
    paths, _ = paths_below(str(root))
    (root / "x.md").unlink()
    (root / "x.md").symlink_to(put.folder / target)

    with pytest.raises(SkillError, match=r"'x\.md' links to a file outside the skill's folder"):
        read_files(paths, root)


@pytest.mark.parametrize(
    ("prepare", "part"),
    [
        (lambda place: (place / "x").symlink_to("missing"), "'x' cannot be read"),
        (lambda place: (place / "x").symlink_to("x"), "'x' cannot be read"),
        (lambda place: (place / "x").symlink_to("."), "links to a file outside the skill's folder"),
        (
            lambda place: (place / "deep").mkdir() or (place / "deep/x").symlink_to("../deep"),
            "a symbolic link to one of its parent folders",
        ),
        (lambda place: os.mkfifo(place / "x"), "a pipe, a socket or a device"),
        (lambda place: create_socket(place / "x"), "a pipe, a socket or a device"),
        (lambda place: (place / "a\\b").write_text("x"), "not a valid path"),
        (lambda place: (place / "a\nb").write_text("x"), "not a valid path"),
        (lambda place: [(place / name).write_text("x") for name in ("x", "X")], "differ only in case"),
        (lambda place: [(place / f"{i}.md").touch() for i in range(MAX_FILES)], "more than 512 files"),
        (lambda place: (place / "x").write_bytes(bytes(17 << 20)), "'x': the size is 17,825,792 bytes"),
        (lambda place: (place / "x").write_bytes(bytes(16 << 20)), "16 MiB"),
    ],
)
def test_unusable_files_are_reported(put, prepare, part, tmp_path, monkeypatch):
    """An unusable file is reported with a location and a hint, without blocking."""
    monkeypatch.chdir(tmp_path)
    folder = put("a/SKILL.md", format_skill("a")).parent
    prepare(folder)

    diagnostic = find_diagnostic(put.folder)

    assert diagnostic.rule is Rule.SKILL_FILES
    assert part in diagnostic.message
    assert diagnostic.location.file == str(folder / "SKILL.md")


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("", 1, "no frontmatter"),
        ("---\ndescription: x\nname: B\n---\n", 3, "its name 'B' is invalid"),
        ("---\nname: a\n---\n", 1, "no description"),
        ("---\nname: a\ndescription: [\n---\n", 4, "not YAML"),
    ],
)
def test_invalid_frontmatter_is_reported(put, text, line, part):
    """Invalid frontmatter is reported with its line."""
    put("a/SKILL.md", text)

    diagnostic = find_diagnostic(put.folder)

    assert (diagnostic.rule, diagnostic.location.line) == (Rule.BAD_SKILL, line)
    assert part in diagnostic.message


@pytest.mark.parametrize("name", ["skill.md", "Skill.md", "SKILL.MD"])
def test_skill_md_in_the_wrong_case_is_reported(put, name):
    """`SKILL.md` in the wrong case is reported, and Python files next to it are not imported."""
    put(f"a/{name}", format_skill("a"))
    put("a/scripts/run.py", "raise RuntimeError")

    assert "it has no file named exactly 'SKILL.md'" in find_diagnostic(put.folder).message


@pytest.mark.parametrize("name", ["SKILL.md~", "#SKILL.md#", ".SKILL.md.swp"])
def test_editor_backups_are_not_served(put, name):
    """Backup and swap files of editors are not served."""
    put("a/SKILL.md", format_skill("a"))
    put(f"a/{name}", b"x")

    assert list(read_served_files(put.folder)["skill://a/SKILL.md"]) == ["SKILL.md"]


@pytest.mark.parametrize(
    "source",
    [
        "@skill(description='x', prefix='a')\ndef inner():\n    return 'x'\n",
        "@skill(description='x', prefix='a/deep')\ndef inner():\n    return 'x'\n",
        "@resource('skill://a/x.md')\ndef x() -> str:\n    return 'other'\n",
    ],
)
def test_a_uri_within_another_skill_is_an_error(put, source):
    """A URI within another skill is an error, because its bytes would not match the skill's digests."""
    put("a/SKILL.md", format_skill("a"))
    put("a/x.md", "x")
    put("own.py", f"from promptkit import resource, skill\n{source}")

    catalog = compile(put.folder)

    (diagnostic,) = catalog.diagnostics
    assert diagnostic.rule is Rule.DUPLICATE_SKILL
    assert len(catalog.skills) == (0 if "resource(" in source else 1)


def test_a_skill_file_that_disappears_briefly(put, monkeypatch):
    """If `SKILL.md` disappears briefly, the skill stays served and files next to it do not become recipes."""
    monkeypatch.setattr(reloading, "free_unused_versions", lambda: None)  # slow with millions of objects
    file = put("a/SKILL.md", format_skill("a"))
    put("a/scripts/run.py", "raise RuntimeError")
    reloader = Reloader(str(put.folder), lambda _: None)
    before = reloader.load()
    published = Queue()
    reloader.start(published.put)
    try:
        text = file.read_text()
        file.unlink()
        without_file = published.get(timeout=20)
        file.write_text(text.replace("Do it.", "Do it now."))
        after = published.get(timeout=20)
    finally:
        reloader.close()

    assert without_file.skills == before.skills
    assert ["exactly 'SKILL.md'" in diagnostic.message for diagnostic in without_file.diagnostics] == [True]
    assert after.diagnostics == ()
    assert b"Do it now." in after.skills[0].files[0].content.data


def test_a_python_skill_with_the_uri_of_a_folder_is_reported(put):
    """A Python skill with the URI of a skill folder is reported, and one of the two is served."""
    put("a/SKILL.md", format_skill("a"))
    put(
        "own.py",
        "from promptkit import skill\n@skill(description='x')\ndef a():\n    return 'x'\n",
    )

    catalog = compile(put.folder)

    (diagnostic,) = catalog.diagnostics
    assert diagnostic.rule is Rule.DUPLICATE_SKILL
    assert len(catalog.skills) == 1


def test_fields_are_served_as_they_are_written(put):
    """
    A list of tools, nested metadata, numbers and dates stay unchanged, because hosts compare fields with the
    file.
    """
    text = format_skill(
        "a", **{"allowed-tools": "[Read, Grep]", "metadata": "{v: 1.5, since: 2024-05-01, by: {name: x}}"}
    )
    put("a/SKILL.md", text)

    catalog = compile(put.folder)

    assert catalog.diagnostics == ()
    assert catalog.skills[0].frontmatter["allowed-tools"] == ["Read", "Grep"]
    assert catalog.skills[0].frontmatter["metadata"] == {"v": 1.5, "since": "2024-05-01", "by": {"name": "x"}}


@pytest.mark.parametrize(
    ("folder", "name", "description", "message"),
    [
        ("a", "b", "Do it, when asked.", "its name is 'b', but its folder is called 'a'"),
        ("a", "a", f"Do it, when {'x' * 1024}", "its description has 1,036 characters"),
    ],
)
def test_deviations_are_served_with_a_warning(put, folder, name, description, message):
    """
    A name that differs from the folder's, or a long description, is a warning that only `check` reports.
    """
    put(f"{folder}/SKILL.md", f"---\nname: {name}\ndescription: {description}\n---\nDo it.\n")

    (diagnostic,) = compile(put.folder, lint=True).diagnostics

    assert diagnostic.rule is Rule.SKILL_FIELDS
    assert message in diagnostic.message
    assert [skill.uri_template for skill in compile(put.folder).skills] == [f"skill://{name}/SKILL.md"]
    assert compile(put.folder).diagnostics == ()


def test_nested_skill_with_another_name(put):
    """A nested skill whose name differs from its folder is served next to the enclosing skill."""
    put("outer/SKILL.md", format_skill("outer"))
    put("outer/deep/SKILL.md", format_skill("inner"))

    assert list(read_served_files(put.folder)) == ["skill://outer/SKILL.md", "skill://outer/inner/SKILL.md"]


def test_two_folders_with_the_same_name(put):
    """If skills in two folders have the same name, the one whose folder has that name is served."""
    put("another/SKILL.md", format_skill("same"))
    put("same/SKILL.md", format_skill("same"))

    catalog = compile(put.folder)

    assert [skill.location.file for skill in catalog.skills] == [str(put.folder / "same" / "SKILL.md")]
    assert [diagnostic.rule for diagnostic in catalog.diagnostics] == [Rule.DUPLICATE_SKILL]

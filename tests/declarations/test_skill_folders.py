import os
import socket
from queue import Queue

import pytest

from promptkit.compiler.compilation import compile
from promptkit.compiler.reloading import Reloader
from promptkit.declarations.skill_files import MAX_FILES, SkillError, paths_below, read_files
from promptkit.errors.rules import Rule

HELLO = "from promptkit import prompt\n@prompt\ndef hello() -> str:\n    return 'hello'\n"


@pytest.fixture
def put(recipes):
    """A function that writes a file at a path within a folder of recipes."""
    folder = recipes(hello=HELLO)

    def put(path, data=b""):
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data if isinstance(data, bytes) else data.encode())
        return file

    put.folder = folder
    return put


def front(name, **fields):
    """A ``SKILL.md``."""
    lines = [f"name: {name}", "description: What it does.", *(f"{k}: {v}" for k, v in fields.items())]
    return "\n".join(["---", *lines, "---", "Do it.", ""])


def listen(place):
    """Leave a socket at a place whose path may be too long for one."""
    with socket.socket(socket.AF_UNIX) as listening:
        os.chdir(place.parent)
        listening.bind(place.name)


def served(folder):
    """The files of each skill, by its URI; the prompt is served in any case."""
    catalog = compile(folder)
    assert catalog.diagnostics == ()
    assert list(catalog) == ["hello"]
    return {
        skill.uri_template: {file.path: file.content.data for file in skill.files} for skill in catalog.skills
    }


def fault(folder):
    """The only fault; the prompt is served all the same."""
    catalog = compile(folder)
    (found,) = catalog.diagnostics
    assert (list(catalog), catalog.skills) == (["hello"], ())
    assert found.hint
    return found


@pytest.mark.parametrize(
    ("place", "uri"),
    [
        ("skills/a", "skill://a/SKILL.md"),
        ("a", "skill://a/SKILL.md"),
        ("skills/team/a", "skill://team/a/SKILL.md"),
        ("team/skills/a", "skill://team/skills/a/SKILL.md"),
        ("skills/Füße & co/a", "skill://F%C3%BC%C3%9Fe%20%26%20co/a/SKILL.md"),
    ],
)
def test_where_it_lies_is_its_uri(put, place, uri):
    """
    Without the folder `skills` that is the convention.
    """
    put(f"{place}/SKILL.md", front("a"))

    assert list(served(put.folder)) == [uri]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_it_is_served_verbatim(put, newline):
    """
    Byte for byte, whatever it holds; hidden files are not, nor is bytecode.
    """
    text = front("a", own="[1, 2]").replace("\n", newline)
    put("a/SKILL.md", text)
    put("a/scripts/run.py", b"raise RuntimeError")
    put("a/tests/test_run.py", b"raise RuntimeError")
    put("a/picture.bin", bytes(range(256)))
    put("a/empty.txt")
    put("a/.hidden", b"x")
    put("a/.git/config", b"x")
    put("a/scripts/__pycache__/run.pyc", b"x")

    assert served(put.folder)["skill://a/SKILL.md"] == {
        "SKILL.md": text.encode(),
        "empty.txt": b"",
        "picture.bin": bytes(range(256)),
        "scripts/run.py": b"raise RuntimeError",
        "tests/test_run.py": b"raise RuntimeError",
    }


def test_skills_within_skills(put):
    """
    Each is a skill, and its files are also files of the one around it.
    """
    put("skills/outer/SKILL.md", front("outer"))
    put("skills/outer/deep/inner/SKILL.md", front("inner"))
    put("skills/outer/deep/inner/x.md", "x")

    found = served(put.folder)

    assert {uri: list(files) for uri, files in found.items()} == {
        "skill://outer/SKILL.md": ["SKILL.md", "deep/inner/SKILL.md", "deep/inner/x.md"],
        "skill://outer/deep/inner/SKILL.md": ["SKILL.md", "x.md"],
    }


def test_the_target_may_be_a_skill(put):
    """
    Then it is the only one, but for those within it, and nothing is imported.
    """
    put("outer/SKILL.md", front("outer"))
    put("outer/inner/SKILL.md", front("inner"))
    put("outer/run.py", "raise RuntimeError")

    catalog = compile(put.folder / "outer")

    assert catalog.diagnostics == ()
    assert [skill.uri_template for skill in catalog.skills] == [
        "skill://outer/SKILL.md",
        "skill://outer/inner/SKILL.md",
    ]


@pytest.mark.parametrize("place", ["_private/a", ".hidden/a", "tests/a", "node_modules/a"])
def test_folders_that_are_never_entered(put, place):
    """
    As for recipes.
    """
    put(f"{place}/SKILL.md", front("a"))

    assert served(put.folder) == {}


def test_links_that_stay_inside(put):
    """
    As Kubernetes mounts a ConfigMap.
    """
    put("a/..data/SKILL.md", front("a"))
    (put.folder / "a" / "SKILL.md").symlink_to("..data/SKILL.md")
    put("a/real/x.md", "x")
    (put.folder / "a" / "linked").symlink_to("real")

    assert sorted(served(put.folder)["skill://a/SKILL.md"]) == ["SKILL.md", "linked/x.md", "real/x.md"]


@pytest.mark.parametrize("target", ["../hello.py", "/etc/passwd", "..", "/"])
def test_links_that_lead_out(put, target):
    """
    They refuse the whole skill.
    """
    put("a/SKILL.md", front("a"))
    (put.folder / "a" / "x").symlink_to(target)

    found = fault(put.folder)

    assert found.rule is Rule.SKILL_FILES
    assert "'x' leads out of its folder" in found.message


@pytest.mark.parametrize("target", ["hello.py", "/etc/passwd"])
def test_a_link_that_is_put_in_before_it_is_read(put, target):
    """
    After the folder was looked through: it is not followed either.
    """
    root = put("a/SKILL.md", front("a")).parent
    put("a/x.md", "x")
    places, _ = paths_below(str(root))
    (root / "x.md").unlink()
    (root / "x.md").symlink_to(put.folder / target)

    with pytest.raises(SkillError, match=r"'x\.md' leads out of its folder"):
        read_files(places, root)


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda place: (place / "x").symlink_to("missing"), "'x' cannot be read"),
        (lambda place: (place / "x").symlink_to("x"), "'x' cannot be read"),
        (lambda place: (place / "x").symlink_to("."), "leads out of its folder"),
        (lambda place: (place / "deep").mkdir() or (place / "deep/x").symlink_to("../deep"), "in a circle"),
        (lambda place: os.mkfifo(place / "x"), "a pipe, a socket or a device"),
        (lambda place: listen(place / "x"), "a pipe, a socket or a device"),
        (lambda place: (place / "a\\b").write_text("x"), "not a plain path"),
        (lambda place: (place / "a\nb").write_text("x"), "not a plain path"),
        (lambda place: [(place / name).write_text("x") for name in ("x", "X")], "differ in case alone"),
        (lambda place: [(place / f"{i}.md").touch() for i in range(MAX_FILES)], "more than 512 files"),
        (lambda place: (place / "x").write_bytes(bytes(17 << 20)), "'x': 17,825,792 B is more than"),
        (lambda place: (place / "x").write_bytes(bytes(16 << 20)), "16 MiB"),
    ],
)
def test_what_cannot_be_served(put, make, part, tmp_path, monkeypatch):
    """
    It is a fault with a place and a hint, and nothing waits for ever.
    """
    monkeypatch.chdir(tmp_path)
    place = put("a/SKILL.md", front("a")).parent
    make(place)

    found = fault(put.folder)

    assert found.rule is Rule.SKILL_FILES
    assert part in found.message
    assert found.location.file == str(place / "SKILL.md")


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("", 1, "no frontmatter"),
        (front("b"), 2, "its folder is 'a'"),
        ("---\ndescription: x\nname: B\n---\n", 3, "its name is 'B'"),
        ("---\nname: a\n---\n", 1, "no description"),
        ("---\nname: a\ndescription: [\n---\n", 4, "not YAML"),
    ],
)
def test_what_the_format_does_not_allow(put, text, line, part):
    """
    It is a fault with its line.
    """
    put("a/SKILL.md", text)

    found = fault(put.folder)

    assert (found.rule, found.location.line) == (Rule.BAD_SKILL, line)
    assert part in found.message


@pytest.mark.parametrize("name", ["skill.md", "Skill.md", "SKILL.MD"])
def test_a_name_in_other_letters(put, name):
    """
    Agents do not find it, and programs next to it are imported as little.
    """
    put(f"a/{name}", front("a"))
    put("a/scripts/run.py", "raise RuntimeError")

    assert f"it begins with {name!r}, and agents look for 'SKILL.md'" in fault(put.folder).message


@pytest.mark.parametrize("name", ["SKILL.md~", "#SKILL.md#", ".SKILL.md.swp"])
def test_what_editors_leave(put, name):
    """
    It is not served.
    """
    put("a/SKILL.md", front("a"))
    put(f"a/{name}", b"x")

    assert list(served(put.folder)["skill://a/SKILL.md"]) == ["SKILL.md"]


@pytest.mark.parametrize(
    "source",
    [
        "@skill(description='x', prefix='a')\ndef inner():\n    return 'x'\n",
        "@skill(description='x', prefix='a/deep')\ndef inner():\n    return 'x'\n",
        "@resource('skill://a/x.md')\ndef x() -> str:\n    return 'other'\n",
    ],
)
def test_uris_within_a_skill_of_something_else(put, source):
    """
    A host would find other bytes under them than the digests say.
    """
    put("a/SKILL.md", front("a"))
    put("a/x.md", "x")
    put("own.py", f"from promptkit import resource, skill\n{source}")

    catalog = compile(put.folder)

    (found,) = catalog.diagnostics
    assert found.rule is Rule.DUPLICATE_SKILL
    assert len(catalog.skills) == (0 if "resource(" in source else 1)


def test_a_first_file_that_is_gone_for_a_moment(put):
    """
    As while a branch is switched: what was served stays, and no program next to it is taken for a recipe.
    """
    file = put("a/SKILL.md", front("a"))
    put("a/scripts/run.py", "raise RuntimeError")
    reloader = Reloader(str(put.folder), lambda _: None)
    first = reloader.load()
    published = Queue()
    reloader.start(published.put)
    try:
        text = file.read_text()
        file.unlink()
        gone = published.get(timeout=20)
        file.write_text(text.replace("Do it.", "Do it now."))
        back = published.get(timeout=20)
    finally:
        reloader.close()

    assert gone.skills == first.skills
    assert ["it begins with 'no file'" in one.message for one in gone.diagnostics] == [True]
    assert back.diagnostics == ()
    assert b"Do it now." in back.skills[0].files[0].content.data


def test_a_skill_in_python_and_a_folder_of_the_same_uri(put):
    """
    They are told apart, and the first one is served.
    """
    put("a/SKILL.md", front("a"))
    put(
        "own.py",
        "from promptkit import skill\n@skill(description='x')\ndef a():\n    return 'x'\n",
    )

    catalog = compile(put.folder)

    (found,) = catalog.diagnostics
    assert found.rule is Rule.DUPLICATE_SKILL
    assert len(catalog.skills) == 1

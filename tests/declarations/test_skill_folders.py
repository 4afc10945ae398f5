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
    """Return a function that writes a file below a folder of recipes."""
    folder = recipes(hello=HELLO)

    def put(path, data=b""):
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data if isinstance(data, bytes) else data.encode())
        return file

    put.folder = folder
    return put


def front(name, **fields):
    """Return the text of a ``SKILL.md``."""
    lines = [f"name: {name}", "description: What it does.", *(f"{k}: {v}" for k, v in fields.items())]
    return "\n".join(["---", *lines, "---", "Do it.", ""])


def listen(place):
    """Create a socket, changing to its folder because its full path may be too long."""
    with socket.socket(socket.AF_UNIX) as listening:
        os.chdir(place.parent)
        listening.bind(place.name)


def served(folder):
    """Return the files of each skill by URI, checking that there are no diagnostics."""
    catalog = compile(folder)
    assert catalog.diagnostics == ()
    assert list(catalog) == ["hello"]
    return {
        skill.uri_template: {file.path: file.content.data for file in skill.files} for skill in catalog.skills
    }


def fault(folder):
    """Return the only diagnostic, checking that the prompt is served and the skill is not."""
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
    """A skill's URI is its path, without a leading folder `skills`."""
    put(f"{place}/SKILL.md", front("a"))

    assert list(served(put.folder)) == [uri]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_it_is_served_verbatim(put, newline):
    """Files are served byte for byte; hidden files and bytecode are omitted."""
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
    """A nested skill is served on its own, and its files also belong to the outer skill."""
    put("skills/outer/SKILL.md", front("outer"))
    put("skills/outer/deep/inner/SKILL.md", front("inner"))
    put("skills/outer/deep/inner/x.md", "x")

    found = served(put.folder)

    assert {uri: list(files) for uri, files in found.items()} == {
        "skill://outer/SKILL.md": ["SKILL.md", "deep/inner/SKILL.md", "deep/inner/x.md"],
        "skill://outer/deep/inner/SKILL.md": ["SKILL.md", "x.md"],
    }


def test_the_target_may_be_a_skill(put):
    """If the target is a skill, only it and its nested skills are served, and nothing is imported."""
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
    """Folders that are skipped for recipes are skipped for skills, too."""
    put(f"{place}/SKILL.md", front("a"))

    assert served(put.folder) == {}


def test_links_that_stay_inside(put):
    """Links within the skill are followed, as in a mounted Kubernetes ConfigMap."""
    put("a/..data/SKILL.md", front("a"))
    (put.folder / "a" / "SKILL.md").symlink_to("..data/SKILL.md")
    put("a/real/x.md", "x")
    (put.folder / "a" / "linked").symlink_to("real")

    assert sorted(served(put.folder)["skill://a/SKILL.md"]) == ["SKILL.md", "linked/x.md", "real/x.md"]


@pytest.mark.parametrize("target", ["../hello.py", "/etc/passwd", "..", "/"])
def test_links_that_lead_out(put, target):
    """A link that leads out of the folder makes the whole skill invalid."""
    put("a/SKILL.md", front("a"))
    (put.folder / "a" / "x").symlink_to(target)

    found = fault(put.folder)

    assert found.rule is Rule.SKILL_FILES
    assert "'x' leads out of its folder" in found.message


@pytest.mark.parametrize("target", ["hello.py", "/etc/passwd"])
def test_a_link_that_is_put_in_before_it_is_read(put, target):
    """A link that replaces a file after the folder was listed is not followed."""
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
    """An unusable file is reported with a location and a hint, without blocking."""
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
    """Invalid frontmatter is reported with its line."""
    put("a/SKILL.md", text)

    found = fault(put.folder)

    assert (found.rule, found.location.line) == (Rule.BAD_SKILL, line)
    assert part in found.message


@pytest.mark.parametrize("name", ["skill.md", "Skill.md", "SKILL.MD"])
def test_a_name_in_other_letters(put, name):
    """`SKILL.md` in the wrong case is reported, and Python files next to it are not imported."""
    put(f"a/{name}", front("a"))
    put("a/scripts/run.py", "raise RuntimeError")

    assert f"it begins with {name!r}, and agents look for 'SKILL.md'" in fault(put.folder).message


@pytest.mark.parametrize("name", ["SKILL.md~", "#SKILL.md#", ".SKILL.md.swp"])
def test_what_editors_leave(put, name):
    """Backup and swap files of editors are not served."""
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
    """A URI within another skill is an error, because its bytes would not match the skill's digests."""
    put("a/SKILL.md", front("a"))
    put("a/x.md", "x")
    put("own.py", f"from promptkit import resource, skill\n{source}")

    catalog = compile(put.folder)

    (found,) = catalog.diagnostics
    assert found.rule is Rule.DUPLICATE_SKILL
    assert len(catalog.skills) == (0 if "resource(" in source else 1)


def test_a_first_file_that_is_gone_for_a_moment(put):
    """If `SKILL.md` disappears briefly, the skill stays served and files next to it do not become recipes."""
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
    """A Python skill with the URI of a skill folder is reported, and one of the two is served."""
    put("a/SKILL.md", front("a"))
    put(
        "own.py",
        "from promptkit import skill\n@skill(description='x')\ndef a():\n    return 'x'\n",
    )

    catalog = compile(put.folder)

    (found,) = catalog.diagnostics
    assert found.rule is Rule.DUPLICATE_SKILL
    assert len(catalog.skills) == 1

"""Commands in a repository of an unknown author: odd entries are ignored or reported in one line."""

import os
import socket
from itertools import product

import pytest

from promptkit.cli import main

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="Windows has no such files"),
    pytest.mark.timeout(60),
]

GREET = '''
from promptkit import prompt

@prompt
def greet(name: str = "you"):
    """Say hello."""
    return f"Hello, {name}."
'''

#: Functions that create an odd entry in place of a file.
KINDS = {
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "link that leads nowhere": lambda path: path.symlink_to("nowhere"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "folder": lambda path: path.mkdir(),
    "brackets": lambda path: path.write_text("(" * 10_000),
    "signs": lambda path: path.write_text("x = " + "-" * 100_000 + "1\n"),
    "attributes": lambda path: path.write_text("x = a" + ".b" * 100_000 + "\n"),
    "null": lambda path: path.write_bytes(b"a\0b"),
    "no text": lambda path: path.write_bytes(b"# \xe9\xff\n"),
    "unknown encoding": lambda path: path.write_bytes(b"# -*- coding: nonsense -*-\n"),
}

#: The paths of the odd entries.
PATHS = (
    *("recipes/odd.py", "recipes/_helper.py", "recipes/__init__.py", "recipes/below/__init__.py"),
    *("recipes/cases_greet.py", "recipes/conftest.py", "recipes/test_greet.py", "recipes/skill/SKILL.md"),
    *("recipes/skill/data.txt", "recipes/pyvenv.cfg", "pyproject.toml", ".git"),
)

COMMANDS = (
    ["check", "recipes"],
    ["list"],
    ["render", "recipes", "greet"],
    ["complete", "recipes", "greet", "name"],
)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with a recipe and a skill, as the current folder."""
    (tmp_path / "recipes" / "skill").mkdir(parents=True)
    (tmp_path / "recipes" / "below").mkdir()
    (tmp_path / "recipes" / "greet.py").write_text(GREET)
    skill = "---\nname: skill\ndescription: Does this. Use it when it is needed.\n---\nDo it.\n"
    (tmp_path / "recipes" / "skill" / "SKILL.md").write_text(skill)
    monkeypatch.chdir(tmp_path)
    return tmp_path


#: Each kind at each path, with two commands. All pairs of commands are used in turn.
CASES = [
    (kind, path, (COMMANDS[number % 4], COMMANDS[(number + 1 + number // 4 % 3) % 4]))
    for number, (kind, path) in enumerate(product(KINDS, PATHS))
]


@pytest.mark.parametrize(
    ("kind", "path", "commands"), CASES, ids=[f"{path}-{kind}" for kind, path, _ in CASES]
)
def test_odd_entry(kind, path, commands, project, capsys):
    """No command hangs or ends with a traceback."""
    (project / path).unlink(missing_ok=True)
    KINDS[kind](project / path)

    for words in commands:
        assert main(words) in (0, 1, 2)
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        assert max(map(len, (out + err).splitlines()), default=0) < 500


def test_socket(project, capsys):
    """A socket is not a recipe."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("recipes/odd.py")
        assert main(["check", "recipes"]) == 1

    assert "it is a pipe, a socket or a device" in capsys.readouterr().out

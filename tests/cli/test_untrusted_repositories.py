"""Every command in a repository of someone else: nothing outside of it is read, written or removed."""

import os
import shutil
import stat
import subprocess
import zipfile
from pathlib import Path

import pytest

from promptkit.cli import main

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="Windows has neither pipes nor links without privileges"),
    pytest.mark.timeout(30),
]

PRECIOUS = "precious-7f3a"

RECIPE = '''
from promptkit import Image, prompt, user

@prompt
def review(code: str = "x", votes: int = 1):
    """Review a piece of code."""
    return f"Review this {votes} times: {code}"
'''
SKILL = "---\nname: greeting\ndescription: Greet people kindly, whenever they come.\n---\n\nSay hello.\n"

BATCH = ["batch", "review", "rows.csv", "--for", "openai-chat", "--model", "m", "--target", "recipes"]
BATCH_FILES = [
    f"batch/{name}" for name in (".promptkit-batch.json", "requests-00001.jsonl", "rejected.jsonl")
]

#: By name: the command line, and the places in the repository that the command reads or writes.
COMMANDS = {
    "batch": (BATCH, ["batch", *BATCH_FILES, "rows.csv"]),
    "batch --resume": ([*BATCH, "--resume"], ["batch", *BATCH_FILES]),
    "batch --join": (
        ["batch", "--join", "results", "rows.csv"],
        ["results", "results/one.jsonl"],
    ),
    "check": (["check", "recipes"], ["recipes/extra.py", "recipes/more", "recipes/cases_review.py"]),
    "check skills": (
        ["check", "recipes"],
        ["recipes/skills", "recipes/skills/greeting", "recipes/skills/greeting/SKILL.md"],
    ),
    "complete": (["complete", "review", "votes"], ["recipes/extra.py", "pyproject.toml"]),
    "diff": (
        ["diff", "HEAD", "--target", "recipes", "--summary", "summary.md"],
        ["summary.md", "pyproject.toml", "recipes/extra.py"],
    ),
    **{
        f"export {form}{' --remove' * is_removal}": (
            ["export", form, "out", *["--remove"] * is_removal, "--target", "recipes"],
            ["out", "out/.promptkit-export.json", entry],
        )
        for form, entry in {
            "claude-commands": "out/review.md",
            "gemini-commands": "out/review.toml",
            "codex": "out/review",
            "skills": "out/greeting",
        }.items()
        for is_removal in (False, True)
    },
    **{
        f"import {form}": (
            ["import", form, "commands", "-o", "imported"],
            [f"commands/{file}", "commands", "imported", "imported/deploy.py", "imported/deploy.md"],
        )
        for form, file in {
            "claude-commands": "odd.md",
            "gemini-commands": "odd.toml",
            "vscode-prompts": "odd.prompt.md",
        }.items()
    },
    **{
        f"{command} cursor": (
            [command, "cursor", "--scope", "project", "recipes"],
            [".cursor", ".cursor/mcp.json"],
        )
        for command in ("install", "uninstall")
    },
    **{
        f"{command} --skills": (
            [command, "claude-code", "--skills", "--scope", "project", "recipes"],
            [
                ".claude",
                ".claude/skills",
                ".claude/skills/greeting",
                ".claude/skills/greeting/SKILL.md",
                ".claude/skills/.promptkit-skills.json",
            ],
        )
        for command in ("install", "uninstall")
    },
    "install --list": (["install", "--list"], [".cursor", ".cursor/mcp.json", ".mcp.json"]),
    "list": (["list", "recipes"], ["recipes/extra.py", "recipes/more", "pyproject.toml"]),
    "new": (["new", "fresh"], ["fresh", "fresh/prompts", "fresh/pyproject.toml", "fresh/.gitignore"]),
    "package": (
        ["package", "recipes", "--name", "team-prompts", "--version", "1.0"],
        [
            *("dist", "dist/server.json", "dist/team_prompts-1.0-py3-none-any.whl"),
            *("pyproject.toml", "LICENSE", "README.md", "recipes/data.txt", "recipes/more"),
        ],
    ),
    "render": (["render", "recipes", "review", "code=@notes.txt"], ["recipes/extra.py", "pyproject.toml"]),
    "render --out": (["render", "recipes", "show", "--out", "media"], ["media", "media/show-1.png"]),
}

#: What a Python file, or a file that the user has named for its content, leads to is used: recipes are code,
#: and its author can read whatever the user can.
FOLLOWED = {"rows.csv", "pyproject.toml", "recipes/extra.py", "recipes/cases_review.py"}

KINDS = ["file", "nothing", "folder", "pipe", "device", "folder in place"]

CASES = [(name, place, kind) for name, (_, places) in COMMANDS.items() for place in places for kind in KINDS]


@pytest.fixture
def repository(tmp_path, monkeypatch, png):
    """
    A repository, with files of its user outside of it.
    """
    outside, root = tmp_path / "outside", tmp_path / "repository"
    for file in ("victim.txt", "folder/inner.md", "folder/SKILL.md", "folder/requests-00001.jsonl"):
        (outside / file).parent.mkdir(parents=True, exist_ok=True)
        (outside / file).write_text(PRECIOUS)
    for file, text in {
        "recipes/review.py": RECIPE,
        "recipes/show.py": "from promptkit import Image, prompt, user\n\n@prompt\ndef show():\n"
        f'    """Show a picture."""\n    return user(Image({png!r}))\n',
        "recipes/skills/greeting/SKILL.md": SKILL,
        "commands/deploy.md": "Deploy $1.\n",
        "commands/deploy.toml": 'prompt = "Deploy {{args}}."\n',
        "commands/deploy.prompt.md": "Deploy.\n",
        "rows.csv": "code,votes\na,1\nb,2\n",
        "notes.txt": "x = 1\n",
        "results/one.jsonl": "",
    }.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)
    monkeypatch.chdir(root)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home" / "state"))
    return root


def put(place: Path, kind: str, outside: Path) -> None:
    """
    Put something odd into the place of a file or folder.
    """
    if place.is_dir():
        place.rename(place.with_name(f"{place.name}.before"))
    place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder in place":
        (place / "inner").mkdir(parents=True)
    else:
        targets = {"file": "victim.txt", "nothing": "missing.txt", "folder": "folder"}
        place.symlink_to("/dev/zero" if kind == "device" else outside / targets[kind])


def content_of(root: Path) -> dict[str, bytes | None]:
    """
    The content of all files below a folder, those in wheels too.
    """
    found: dict[str, bytes | None] = {}
    for above, folders, names in os.walk(root):
        for name in (*folders, *names):
            path = Path(above, name)
            is_file = stat.S_ISREG(path.lstat().st_mode)
            found[str(path)] = path.read_bytes() if is_file else None
            if is_file and zipfile.is_zipfile(path):
                with zipfile.ZipFile(path) as wheel:
                    found |= {f"{path}/{one}": wheel.read(one) for one in wheel.namelist()}
    return found


def run(argv: list[str]) -> int:
    """
    The exit code of a command.
    """
    try:
        return main(argv)
    except SystemExit as end:
        return int(end.code or 0)


@pytest.mark.parametrize(("name", "place", "kind"), CASES, ids=[" | ".join(case) for case in CASES])
def test_nothing_leads_out_of_a_repository(name, place, kind, repository, capfd):
    """
    Whatever is in the place of a file or folder, files outside stay as they are and are copied nowhere,
    nothing hangs, and a refusal is one line.
    """
    outside = repository.parent / "outside"
    if name == "diff":
        git = [shutil.which("git"), "-c", "user.name=x", "-c", "user.email=x@example.org"]
        for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "all"]):
            subprocess.run([*git, *words], check=True)
    argv, _ = COMMANDS[name]
    if place.startswith("batch/") or "resume" in name:
        run([one for one in argv if one != "--resume"])  # what is replaced is ours
    if name.startswith(("uninstall", "export")) and place not in ("out", ".claude", ".cursor"):
        run([one.replace("uninstall", "install") for one in argv if one != "--remove"])
    before = content_of(outside)
    put(repository / place, kind, outside)
    capfd.readouterr()

    code = run(argv)
    out, err = capfd.readouterr()

    assert content_of(outside) == before
    assert "Traceback" not in err
    assert code in (0, 1, 2), (out, err)
    if place not in FOLLOWED:
        copied = [file for file, data in content_of(repository).items() if data and PRECIOUS.encode() in data]
        assert (copied, PRECIOUS in out + err) == ([], False)
    if code:
        assert out or err
        is_install = argv[0] in ("install", "uninstall")  # the entry to write by hand follows
        assert is_install or len(err.splitlines()) <= 3, err
    if kind == "pipe":
        assert stat.S_ISFIFO((repository / place).lstat().st_mode)


def test_every_command_is_tried():
    """
    A command that is added is tried here, too, unless it touches no file of a repository by itself.
    """
    from promptkit.cli.command_options import COMMANDS as ALL

    tried = {argv[0] for argv, _ in COMMANDS.values()}
    assert {*ALL} - tried <= {"serve", "dev"}

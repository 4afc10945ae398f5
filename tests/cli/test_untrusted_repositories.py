"""Every command in an unknown author's repository: no file outside is read, written or removed."""

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

#: For each name, the command line, and the paths in the repository that the command reads or writes.
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
            [f"commands/{file}", "commands", "imported", "imported/deploy.prompt.md"],
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
    "new": (
        ["new", "fresh"],
        ["fresh", "fresh/prompts", "fresh/pyproject.toml", "fresh/.gitignore", "fresh/AGENTS.md"],
    ),
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

#: Links in place of Python files, and of files that the user has named for their content, are followed:
#: recipes are code, whose author can read whatever the user can.
FOLLOWED = {"rows.csv", "pyproject.toml", "recipes/extra.py", "recipes/cases_review.py"}

KINDS = ["file", "nothing", "folder", "pipe", "device", "folder in place"]

#: Each path is replaced by a link to a file, and by an entry of one other kind. The kinds are used in turn.
PLACES = [(name, path) for name, (_, places) in COMMANDS.items() for path in places]
CASES = [
    (name, path, kind)
    for number, (name, path) in enumerate(PLACES)
    for kind in ("file", KINDS[1 + number % (len(KINDS) - 1)])
]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory, png):
    """A repository with one commit, to copy."""
    root = tmp_path_factory.mktemp("checkout")
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
    git = [shutil.which("git"), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "--quiet", "--template="], ["add", "."], ["commit", "--quiet", "-m", "all"]):
        subprocess.run([*git, *words], check=True, cwd=root)
    return root


@pytest.fixture
def repository(checkout, tmp_path, monkeypatch):
    """A repository, with files of its user outside of it."""
    outside = tmp_path / "outside"
    for file in ("victim.txt", "folder/inner.md", "folder/SKILL.md", "folder/requests-00001.jsonl"):
        (outside / file).parent.mkdir(parents=True, exist_ok=True)
        (outside / file).write_text(PRECIOUS)
    root = shutil.copytree(checkout, tmp_path / "repository", ignore=shutil.ignore_patterns(".git"))
    monkeypatch.setattr("promptkit.cli.package._check_standalone", lambda *_: None)  # of the wheel
    monkeypatch.chdir(root)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home" / "state"))
    return root


def put(path: Path, kind: str, outside: Path) -> None:
    """Put something odd in place of a file or folder."""
    if path.is_dir():
        path.rename(path.with_name(f"{path.name}.before"))
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder in place":
        (path / "inner").mkdir(parents=True)
    else:
        targets = {"file": "victim.txt", "nothing": "missing.txt", "folder": "folder"}
        path.symlink_to("/dev/zero" if kind == "device" else outside / targets[kind])


def content_of(root: Path) -> dict[str, bytes | None]:
    """Return the content of all files below a folder, including files in wheels."""
    contents: dict[str, bytes | None] = {}
    for above, folders, names in os.walk(root):
        for name in (*folders, *names):
            path = Path(above, name)
            is_file = stat.S_ISREG(path.lstat().st_mode)
            contents[str(path)] = path.read_bytes() if is_file else None
            if is_file and zipfile.is_zipfile(path):
                with zipfile.ZipFile(path) as wheel:
                    contents |= {f"{path}/{name}": wheel.read(name) for name in wheel.namelist()}
    return contents


def run(argv: list[str]) -> int:
    """Run a command and return its exit code."""
    try:
        return main(argv)
    except SystemExit as exit:
        return int(exit.code or 0)


@pytest.mark.parametrize(("name", "path", "kind"), CASES, ids=[" | ".join(case) for case in CASES])
def test_commands_stay_within_the_repository(name, path, kind, *, checkout, repository, capfd, request):
    """
    Whatever replaces a file or folder, files outside of the repository are neither changed nor copied.

    No command hangs, and errors are short.
    """
    outside = repository.parent / "outside"
    if name == "diff":
        shutil.copytree(checkout / ".git", repository / ".git")
        request.getfixturevalue("in_process")
    argv, _ = COMMANDS[name]
    if path.startswith("batch/") or "resume" in name:
        run([word for word in argv if word != "--resume"])  # replace files of our own
    if name.startswith(("uninstall", "export")) and path not in ("out", ".claude", ".cursor"):
        run([word.replace("uninstall", "install") for word in argv if word != "--remove"])
    before = content_of(outside)
    put(repository / path, kind, outside)
    capfd.readouterr()

    code = run(argv)
    out, err = capfd.readouterr()

    assert content_of(outside) == before
    assert "Traceback" not in err
    assert code in (0, 1, 2), (out, err)
    if path not in FOLLOWED:
        copied = [file for file, data in content_of(repository).items() if data and PRECIOUS.encode() in data]
        assert (copied, PRECIOUS in out + err) == ([], False)
    if code:
        assert out or err
        is_install = argv[0] in ("install", "uninstall")  # the entry to write by hand follows
        assert is_install or len(err.splitlines()) <= 3, err
    if kind == "pipe":
        assert stat.S_ISFIFO((repository / path).lstat().st_mode)


def test_every_command_is_covered():
    """Every command that touches files of a repository is tested here."""
    from promptkit.cli.parsers import COMMANDS as OPTIONS_BY_COMMAND

    tested = {argv[0] for argv, _ in COMMANDS.values()}
    assert {*OPTIONS_BY_COMMAND} - tested <= {"serve", "dev"}

"""Every code block of the README and of docs/ works, in the order of its page."""

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from io import StringIO
from math import inf
from pathlib import Path

import pytest
import yaml
from markdown_it import MarkdownIt
from msgspec.structs import asdict

from benchmarks.report import COMMAND
from promptkit.protocol.limits import OPTIONS, Limits
from tests.wire import line, modern

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

#: Blocks that install this checkout; .ci/run and `test_first_steps.py` run them. The last one takes an hour.
ENVIRONMENT = "python3 -m venv .venv\n. .venv/bin/activate\n"
INSTALLING = {
    f"{ENVIRONMENT}pip install . && promptkit serve recipes\n",
    f"{ENVIRONMENT}pip install '.[testing]'\n",
    "pip install -e '.[dev]' && pytest\n",
    f"{COMMAND}\n",
}

#: Languages that a fence can have: py is for declarations in the reference. Titled fences are saved as files,
#: and sh blocks run in a shell.
LANGUAGES = {"python", "py", "toml", "json", "sh", "text", "markdown", "mermaid", "ini", "yaml", ""}

#: Commands that run in a forked process instead of a shell: plain words, quoted ones, and a comment.
FORKED = re.compile(
    r"""(?:promptkit|python -m pytest)(?: (?:[\w.:/=@{}-]+|[\w=]*'[^'\n]*'|"[^"$`\\\n]*"))*(?: +\#.*)?"""
)

#: Variables that change the folders of clients and of promptkit, or that name the workspace.
MOVING = (
    *("XDG_CONFIG_HOME", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"),
    *("PROMPTKIT_WORKSPACE", "CLAUDE_PROJECT_DIR"),
)

#: The pytest plugins that a reader has. The plugins for our own tests are slow to start.
PLUGINS = {
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTEST_PLUGINS": "promptkit.testing.pytest_plugin,syrupy",
}


def blocks(page):
    """Yield the fences of a page: content, language, file name and line."""
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type == "fence":
            language, _, title = token.info.partition(" ")
            yield token.content, language, title.removeprefix('title="').rstrip('"'), token.map[0] + 1


class Reader:
    """A reader who copies the blocks of a page into files and one shell, with a separate folder and home."""

    def __init__(self, folder, home, path, server):
        self.folder = folder
        self.server = server
        self.home = home
        inherited = {name: value for name, value in os.environ.items() if name not in MOVING}
        own = {"HOME": str(home), "PATH": path, "COLUMNS": "100", "PYTHONDONTWRITEBYTECODE": "1"}
        self.environment = {**inherited, **own, **PLUGINS}
        self.namespace = {"__name__": "page"}
        self.output = None
        self.expects_json = False

    def follow_block(self, content, language, title):
        """Save, run or check one block, as a reader would."""
        output, self.output = self.output, None
        if title:
            self.save(content, language, title)
        elif language == "sh" and content not in INSTALLING:
            self.output, self.expects_json = self.run(content) or None, "json" in content
        elif language == "python":
            self.output = self.execute(content)
        elif language == "text" and output is not None:
            assert output.strip() == content.strip()
        elif language == "yaml":
            assert yaml.safe_load(content)
        elif language == "json":
            expected = json.loads(content)
            assert output is None or not self.expects_json or json.loads(output) == expected

    def save(self, content, language, title):
        """Save a block to a file; TOML and JSON must be valid."""
        if language == "toml":
            tomllib.loads(content)
        if language == "json":
            json.loads(content)
        file = self.folder / title
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")

    def run(self, block):
        """Run a block, and return its output."""
        lines = block.splitlines()
        is_plain = all(line.startswith("cat ") or FORKED.fullmatch(line) for line in lines)
        if self.server is None or not is_plain:
            return self.run_in_shell(block)
        runs = (self.run_forked if FORKED.fullmatch(line) else self.run_in_shell for line in lines)
        return "".join(run(line) for run, line in zip(runs, lines, strict=True))

    def run_forked(self, line):
        """Run a command in a process that has imported promptkit already, and return its output."""
        arguments = shlex.split(line.removeprefix("python -m "), comments=True)
        files = [os.devnull, str(self.home / "stdout"), str(self.home / "stderr")]
        for file in files[1:]:
            Path(file).write_bytes(b"")
        request = [arguments, str(self.folder), self.environment, files]
        print(json.dumps(request), file=self.server.stdin, flush=True)
        code = self.server.stdout.readline().strip()
        printed, error = (Path(file).read_text(encoding="utf-8") for file in files[1:])
        assert code == "0", printed + error
        return printed

    def run_in_shell(self, command):
        """Run a block in a shell, return its output, and continue in the folder where it ends."""
        folder_file = self.home / "where"
        result = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"{command}\npwd > {shlex.quote(str(folder_file))}"],  # noqa: S607 (as a reader would)
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        self.folder = Path(folder_file.read_text(encoding="utf-8").removesuffix("\n"))
        os.chdir(self.folder)
        return result.stdout

    def execute(self, code):
        """Run a block of Python and the tests in it, and return its output."""
        before = set(self.namespace)
        with contextlib.redirect_stdout(StringIO()) as printed:
            exec(compile(code, "page", "exec"), self.namespace)  # noqa: S102 (our own pages)
            for name in self.namespace.keys() - before:
                if name.startswith("test_"):
                    self.namespace[name]()
        return printed.getvalue() or None


@pytest.fixture(scope="module")
def fork_server():
    """A process that forks the commands of pages; None where processes cannot fork."""
    if not hasattr(os, "fork"):
        yield None
        return
    command = [sys.executable, str(Path(__file__).with_name("fork_server.py"))]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, cwd=ROOT, **pipes) as process:
        yield process
        process.stdin.close()


@pytest.fixture
def reader(tmp_path, monkeypatch, fork_server):
    """A reader with promptkit on the PATH."""
    folder, home = tmp_path / "folder", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return Reader(folder, home, path, fork_server)


@pytest.mark.timeout(120)  # a page starts up to thirty processes
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_works(page, reader):
    """Every block works when it is copied to files and to a shell in the order of the page."""
    follow_page(page, reader)


def follow_page(page, reader):
    """Let a reader follow each block of a page."""
    for content, language, title, number in blocks(page):
        assert language in LANGUAGES, f"{page.name}:{number}"
        try:
            reader.follow_block(content, language, title)
        except Exception as error:
            error.add_note(f"{page.name}:{number}")
            raise


def test_readme_and_its_client_command_work(reader):
    """Every block of the README works, and the installed client command serves the prompts that it shows."""
    follow_page(README, reader)
    servers = json.loads((reader.home / ".claude.json").read_text())["mcpServers"]
    command = [servers["my-prompts"]["command"], *servers["my-prompts"]["args"]]
    request = line(modern(1, "prompts/list"))
    result = subprocess.run(command, input=request, capture_output=True, check=True, env=reader.environment)
    listed = json.loads(result.stdout)["result"]["prompts"]

    assert [prompt["name"] for prompt in listed] == ["debug_error", "explain", "review"]


@pytest.mark.parametrize("page", [README, ROOT / "docs" / "tutorial.md"], ids=lambda page: page.stem)
def test_pages_show_the_files_of_a_new_project(page, reader):
    """The README and the tutorial show the files that `promptkit new` writes."""
    reader.run("promptkit new")
    files = {title: content for content, _, title, _ in blocks(page) if title}

    for name in ("prompts/review.py", "prompts/test_review.py"):
        assert files[name] == (reader.folder / name).read_text(encoding="utf-8")


def test_table_of_limits_is_current():
    """The table in serving.md lists each limit's option, help text and default."""
    page = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| `--(\S+)` \| (.+) \| (\S+) \|$", page, re.MULTILINE)
    defaults = asdict(Limits())

    assert table == [
        (option.name, option.help, "none" if defaults[name] == inf else f"{defaults[name]:,.0f}")
        for name, option in OPTIONS.items()
    ]

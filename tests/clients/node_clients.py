"""The script of calls, carried out by the official clients that run on Node."""

import json
import shutil
import subprocess
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

import pytest

#: What `npm ci` may take, one run of the whole script, and one call, in seconds.
INSTALLING: Final = 180
RUNNING: Final = 60
PATIENCE: Final = 10

#: What a test may take: installing what a client needs comes on top of the first run.
PATIENT: Final = INSTALLING + 2 * RUNNING

#: How to install: nothing that comes along is run, and npm overlooks that the Inspector asks for
#: a newer Node than it needs here.
CI_OPTIONS: Final = (
    "--ignore-scripts",
    "--omit=dev",
    "--no-audit",
    "--no-fund",
    "--no-engine-strict",
    "--loglevel=error",
)

#: Where the Inspector's command line is, once it is installed.
INSPECTOR: Final = Path("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js")

#: What the Inspector's command line can ask, and the option that each of its params is.
INSPECTED: Final = {
    "prompts/list": {},
    "prompts/get": {"name": "--prompt-name", "arguments": "--prompt-args"},
    "tools/list": {},
    "tools/call": {"name": "--tool-name", "arguments": "--tool-arg"},
    "resources/list": {},
    "resources/templates/list": {},
    "resources/read": {"uri": "--uri"},
}


def install(package: Path, cache: Path, *, optional: bool = False) -> Path:
    """
    Return a folder with a copy of *package*, and everything that its lock file pins.

    The test is skipped if that cannot be had.

    Args:
        package:
            A folder with a ``package.json`` and a ``package-lock.json``.

        cache:
            Where to install it. What has been installed there before is used again.

        optional:
            Whether to install what it needs on some machines only.
    """
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    if node_version("node") < 20:
        pytest.skip("Node is too old: it has to be 20 or later")
    sources = sorted(file for file in package.iterdir() if file.is_file())
    digest = sha256(b"".join(file.read_bytes() for file in sources)).hexdigest()[:16]
    folder = cache / f"{package.name}-{digest}"
    if not folder.is_dir():
        scratch = Path(mkdtemp(dir=cache))
        try:
            for file in sources:
                shutil.copy(file, scratch)
            omitted = () if optional else ("--omit=optional",)
            _output(["npm", "ci", *CI_OPTIONS, *omitted, "--prefix", str(scratch)], INSTALLING)
            with suppress(OSError):  # somebody else was faster
                scratch.rename(folder)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return folder


def node_version(node: str) -> int:
    """Return the first number of the version of a Node."""
    return int(_output([node, "--version"], 20).strip().removeprefix("v").split(".")[0])


def _output(command: list[str], seconds: float) -> str:
    """
    Return what *command* prints; skip the test if it fails, or takes more than *seconds*.
    """
    program = shutil.which(command[0]) or command[0]
    try:
        ran = subprocess.run(
            [program, *command[1:]], capture_output=True, encoding="utf-8", timeout=seconds, check=True
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{' '.join(command[:2])} took more than {seconds} seconds")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"{' '.join(command[:2])} failed: {' '.join(error.stderr.split())[:300]}")
    return ran.stdout


def run_typescript(
    installed: Path,
    server: list[str] | str,
    folder: Path,
    mode: Any,
    calls: list[dict[str, Any]],
    *,
    revision: str | None = None,
) -> dict[str, Any]:
    """
    Return the revision that was agreed upon, what came of each call, and what the client minds.

    Args:
        installed:
            Where the client is.

        server:
            What starts the server, or its URL.

        folder:
            Where its recipes are.

        mode:
            ``legacy``, ``auto`` or ``{"pin": revision}``, as the client takes it.

        calls:
            The calls of the script.

        revision:
            The only revision that the client knows; by default it knows all.
    """
    script = {
        "server": server,
        "folder": str(folder),
        "mode": mode,
        "revision": revision,
        "calls": calls,
    }
    sent = json.dumps({**script, "patience": PATIENCE * 1000})
    ran = node(installed / "client.mjs", input=sent, timeout=RUNNING)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def in_typescript(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return *outcome* as TypeScript has it: one code for a missing resource, in every revision."""
    if outcome.get("error", {}).get("code") != -32002:
        return outcome
    return {"error": {**outcome["error"], "code": -32602}}


def run_inspector(
    installed: Path, command: list[str], era: str, calls: list[dict[str, Any]]
) -> dict[str, Any]:
    """
    Return the revision that was agreed upon, which a process of its own says, and what came of each call.

    Args:
        installed:
            Where the Inspector is.

        command:
            What starts the server, or its URL alone.

        era:
            ``legacy``, ``auto`` or ``modern``.

        calls:
            The calls of the script, of those that it can carry out.
    """
    options = ["--format", "json", "--protocol-era", era, "--method"]
    ran = node(installed / INSPECTOR, "--cli", *options, "initialize", "--", *command, timeout=2 * PATIENCE)
    assert ran.returncode == 0, ran.stderr
    lines = [[*options, *_inspection(call), "--", *command] for call in calls]
    sent = json.dumps({"lines": lines, "patience": 2 * PATIENCE * 1000})
    came = node(installed / "inspect.mjs", input=sent, timeout=RUNNING)
    assert came.returncode == 0, came.stderr
    revision = json.loads(ran.stdout)["result"]["protocolVersion"]
    return {"revision": revision, "outcomes": json.loads(came.stdout)}


def can_inspect(call: dict[str, Any]) -> bool:
    """Return whether the Inspector's command line can carry out *call*."""
    params = INSPECTED.get(call.get("pages") or call.get("request"))
    return params is not None and call.get("params", {}).keys() <= params.keys()


def _inspection(call: dict[str, Any]) -> list[str]:
    """
    Return the method and the options that *call* is for the Inspector.
    """
    method = call.get("pages") or call["request"]
    options = []
    for name, value in call.get("params", {}).items():
        values = [f"{key}={text}" for key, text in value.items()] if isinstance(value, dict) else [value]
        options += [INSPECTED[method][name], *values] if values else []
    return [method, *options]


def node(*arguments: str | Path, **options: Any) -> "subprocess.CompletedProcess[str]":
    """
    Run Node, and return what it printed.
    """
    node = shutil.which("node") or "node"
    return subprocess.run([node, *arguments], capture_output=True, encoding="utf-8", check=False, **options)

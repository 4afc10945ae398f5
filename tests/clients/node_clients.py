"""Drivers for the official clients that run on Node."""

import json
import shutil
import subprocess
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

import pytest

#: Timeouts in seconds: for `npm ci`, for one run of the whole script, and for one call.
INSTALLING: Final = 180
RUNNING: Final = 180
PATIENCE: Final = 10

#: Timeout of a test: its first run may also install the client.
TEST_TIMEOUT: Final = INSTALLING + 2 * RUNNING

#: Options for npm: run no install scripts, and ignore that the Inspector requires a newer Node than this use
#: needs.
CI_OPTIONS: Final = (
    "--ignore-scripts",
    "--omit=dev",
    "--no-audit",
    "--no-fund",
    "--no-engine-strict",
    "--loglevel=error",
)

#: The path of the Inspector's command line in its installation.
INSPECTOR: Final = Path("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js")

#: The methods of the Inspector's command line, and the option for each param.
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
    Return a folder with a copy of *package* and everything that its lock file pins.

    The test is skipped if the installation is not possible.

    Args:
        package:
            A folder with a ``package.json`` and a ``package-lock.json``.

        cache:
            The folder for installations. An existing installation is reused.

        optional:
            Whether to install optional dependencies, which are for some machines only.
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
            with suppress(OSError):  # another process was faster
                scratch.rename(folder)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return folder


def node_version(node: str) -> int:
    """Return the major version of Node."""
    return int(_output([node, "--version"], 20).strip().removeprefix("v").split(".")[0])


def _output(command: list[str], seconds: float) -> str:
    """Return the output of *command*; skip the test if it fails or takes more than *seconds*."""
    program = shutil.which(command[0]) or command[0]
    try:
        completed = subprocess.run(
            [program, *command[1:]], capture_output=True, encoding="utf-8", timeout=seconds, check=True
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{' '.join(command[:2])} took more than {seconds} seconds")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"{' '.join(command[:2])} failed: {' '.join(error.stderr.split())[:300]}")
    return completed.stdout


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
    Return the revision, the server's identity, the outcome of each call, and the client's complaints.

    Args:
        installed:
            The client's installation.

        server:
            The command that starts the server, or its URL.

        folder:
            The server's recipes.

        mode:
            ``legacy``, ``auto`` or ``{"pin": revision}``, as the client accepts it.

        calls:
            The calls of the script.

        revision:
            The only revision that the client supports; by default all.
    """
    script = {
        "server": server,
        "folder": str(folder),
        "mode": mode,
        "revision": revision,
        "calls": calls,
    }
    text = json.dumps({**script, "patience": PATIENCE * 1000})
    completed = node(installed / "client.mjs", input=text, timeout=RUNNING)
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


def convert_for_typescript(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return *outcome* as TypeScript reports it: a missing resource has the same code in every revision."""
    if outcome.get("error", {}).get("code") != -32002:
        return outcome
    return {"error": {**outcome["error"], "code": -32602}}


def run_inspector(
    installed: Path, command: list[str], era: str, calls: list[dict[str, Any]]
) -> dict[str, Any]:
    """
    Return the negotiated revision, which a separate process prints, and the outcome of each call.

    Args:
        installed:
            The Inspector's installation.

        command:
            The command that starts the server, or a list with only its URL.

        era:
            ``legacy``, ``auto`` or ``modern``.

        calls:
            Calls of the script that the Inspector can make.
    """
    options = ["--format", "json", "--protocol-era", era, "--method"]
    initialization = node(
        installed / INSPECTOR, "--cli", *options, "initialize", "--", *command, timeout=2 * PATIENCE
    )
    assert initialization.returncode == 0, initialization.stderr
    command_lines = [[*options, *_inspection(call), "--", *command] for call in calls]
    text = json.dumps({"lines": command_lines, "patience": 2 * PATIENCE * 1000})
    inspections = node(installed / "inspect.mjs", input=text, timeout=RUNNING)
    assert inspections.returncode == 0, inspections.stderr
    revision = json.loads(initialization.stdout)["result"]["protocolVersion"]
    return {"revision": revision, "outcomes": json.loads(inspections.stdout)}


def can_inspect(call: dict[str, Any]) -> bool:
    """Return whether the Inspector's command line can make *call*."""
    params = INSPECTED.get(call.get("pages") or call.get("request"))
    return params is not None and call.get("params", {}).keys() <= params.keys()


def _inspection(call: dict[str, Any]) -> list[str]:
    """Return the Inspector's method and options for *call*."""
    method = call.get("pages") or call["request"]
    options = []
    for name, value in call.get("params", {}).items():
        values = [f"{key}={text}" for key, text in value.items()] if isinstance(value, dict) else [value]
        options += [INSPECTED[method][name], *values] if values else []
    return [method, *options]


def node(*arguments: str | Path, **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run Node, and return the finished process with its output."""
    node = shutil.which("node") or "node"
    return subprocess.run([node, *arguments], capture_output=True, encoding="utf-8", check=False, **options)

"""
The error messages of each package, as one snapshot, so that rewording is one reviewable difference.

The messages of diagnostics are on docs/diagnostics.md, and help is a snapshot in tests/cli. Other tests
compare codes, fields and what an error names. After rewording, run pytest with ``--snapshot-update``.
"""

import json
import os
import re
import shlex
from pathlib import Path

import pytest

from promptkit.cli import main
from promptkit.compiler.compilation import compile
from promptkit.loader.loader import load
from tests.forked import fork_server
from tests.messages.calls import CALLS
from tests.messages.lines import LINES
from tests.messages.recipes import FILES, RECIPE
from tests.messages.requests import REQUESTS
from tests.wire import MODERN, Client


@pytest.fixture
def project(recipes, tmp_path, monkeypatch):
    """A folder with a recipe and other files, as the current folder."""
    recipes(review=RECIPE)
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(0o600)
    monkeypatch.chdir(tmp_path)


def message_of(call):
    """Return the type and the message of the exception that a call raises, without lines of files."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 (the snapshot has the type)
        call()
    message = re.sub(r"[^ (]*[/\\](\w+\.py):\d+", r"\1", str(caught.value))
    return f"{type(caught.value).__name__}: {message}"


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("package", CALLS)
def test_messages_of_a_package(package, snapshot):
    """The messages of the exceptions that a package raises match the snapshot."""
    lines = [f"{label}\n    {message_of(call)}" for label, call in CALLS[package].items()]

    assert "\n".join(lines) == snapshot


def test_messages_of_the_protocol(project, snapshot):
    """The errors that clients receive, with their codes and data, match the snapshot."""
    catalog = compile(load("recipes"))
    lines = []
    for method, params in REQUESTS:
        error = Client(catalog, MODERN).ask(method, params)["error"]
        data = f" {json.dumps(error['data'], sort_keys=True)}" if "data" in error else ""
        lines.append(f"{method} {json.dumps(params)[:100]}\n    {error['code']} {error['message']}{data}")

    assert "\n".join(lines) == snapshot


@pytest.fixture(scope="module")
def forked(tmp_path_factory):
    """A function that runs a command in a forked process."""
    with fork_server(tmp_path_factory.mktemp("forked")) as forked:
        yield lambda *argv: forked(*argv, cwd=Path.cwd())[::2]


@pytest.fixture
def run_in_process(capfd):
    """A function that runs a command in this process."""

    def run(*argv):
        try:
            code = main(argv)
        except SystemExit as end:
            code = end.code
        return code, capfd.readouterr().err.encode()

    return run


@pytest.mark.skipif(os.name == "nt", reason="Windows has other paths, and cannot fork")
@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("command", LINES)
def test_messages_of_a_command(command, request, snapshot):
    """The last line that a command prints on standard error, and its exit code, match the snapshot."""
    run = request.getfixturevalue(
        "forked" if command == "serve" else "run_in_process"
    )  # serve prints from threads
    lines = []
    for words in LINES[command]:
        code, stderr = run(command, *shlex.split(words))
        lines.append(
            f"promptkit {command} {words}\n    exits with {code}: {stderr.decode().splitlines()[-1]}"
        )

    assert "\n".join(lines) == snapshot

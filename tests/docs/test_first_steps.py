"""
The README and the tutorial work verbatim with only Python and a checkout.

`test_blocks.py` runs the same blocks with promptkit installed. Here, all dependencies come from PyPI; without
access to it, the tests are skipped.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.clients.python_packages import INSTALLING
from tests.docs.test_blocks import MOVING, README, ROOT

#: Files that a checkout does not contain.
IGNORED = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "site")

#: The block that takes an hour.
DEVELOPMENT = "pip install -e '.[dev]' && pytest\n"

#: Errors of pip when it reaches no index.
UNREACHABLE = ("Could not find a version", "Could not fetch", "Connection")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.installs,
    pytest.mark.timeout(2 * INSTALLING),
    pytest.mark.skipif(os.name == "nt", reason="the pages name other commands for Windows"),
]


def shell_lines(page):
    """Yield lines for one shell that save the files of a page and run its commands."""
    yield "set -euo pipefail"
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        language, _, title = token.info.partition(" ")
        if token.type == "fence" and title:
            file = shlex.quote(title.removeprefix('title="').rstrip('"'))
            yield f"mkdir -p $(dirname {file})"
            yield f"cat > {file} <<'END OF THE FILE'\n{token.content}END OF THE FILE"
        elif token.type == "fence" and language == "sh" and token.content != DEVELOPMENT:
            yield token.content
        spans = (child.content for child in token.children or () if child.type == "code_inline")
        yield from (span for span in spans if span.startswith("pip install pytest"))


@pytest.mark.parametrize("page", [README, ROOT / "docs" / "tutorial.md"], ids=lambda page: page.stem)
def test_page_works_with_only_python(page, tmp_path):
    """In a checkout, the commands of the page install the server in a client."""
    checkout, home = tmp_path / "checkout", tmp_path / "home"
    shutil.copytree(ROOT, checkout, ignore=IGNORED)
    home.mkdir()
    environment = {name: value for name, value in os.environ.items() if name not in MOVING}
    for name in ("PYTHONPATH", "VIRTUAL_ENV"):
        environment.pop(name, None)
    path = os.pathsep.join([str(Path(sys.base_prefix, "bin")), os.defpath])
    result = subprocess.run(
        ["bash", "-c", "\n".join(shell_lines(page))],  # noqa: S607 (as a reader would)
        cwd=checkout,
        env={**environment, "HOME": str(home), "PATH": path, "PIP_REQUIRE_VIRTUALENV": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode and any(message in result.stderr for message in UNREACHABLE):
        pytest.skip("PyPI cannot be reached")

    assert result.returncode == 0, result.stdout + result.stderr
    (server,) = json.loads((home / ".claude.json").read_text(encoding="utf-8"))["mcpServers"].values()
    assert Path(server["command"]).is_relative_to(checkout / ".venv")
    assert str(tmp_path / "my-prompts" / "prompts") in server["args"]

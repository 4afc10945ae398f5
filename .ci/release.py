"""
Check that a tag can be released, or print its notes: `python .ci/release.py check|notes v0.1.0`.

It needs nothing but Python, because the release workflow runs it before it installs anything.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]


def notes(version: str) -> str:
    """Return the section of the changelog about a version; empty if there is none."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    match = re.search(
        rf"^## {re.escape(version)} \([^)]*\)\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE
    )
    return match[1].strip() if match else ""


def problems(tag: str) -> Iterator[str]:
    """Yield why a tag cannot be released."""
    version = tag.removeprefix("v")
    code = (ROOT / "promptkit" / "version.py").read_text(encoding="utf-8")
    if f'VERSION = "{version}"' not in code:
        yield f"promptkit/version.py does not have the version {version}"
    if json.loads((ROOT / "docs" / "api.json").read_text(encoding="utf-8"))["version"] != version:
        yield "docs/api.json is of another version: run python -m docs.api"
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.MULTILINE):
        yield f"CHANGELOG.md has no section {version} with a date"


def main(command: str, tag: str) -> int:
    """Run a command, and return the exit code."""
    if command == "notes":
        print(notes(tag.removeprefix("v")))
        return 0
    reasons = [*problems(tag)]
    for reason in reasons:
        print(reason, file=sys.stderr)
    return 1 if reasons else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""
Render the table of tested clients in docs/clients.md: `python -m docs.render_clients`.

The tests in tests/clients run each client and compare its row.
"""

import json
import re
import sys
from pathlib import Path
from textwrap import fill
from typing import Any, Final

from promptkit.clients.profiles import CLIENTS
from tests.clients.outing import RECIPE

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "clients.md"

#: Observations of the tests, by the name of the client.
OBSERVATIONS: Final = ROOT / "tests" / "clients" / "observations.json"

#: The last day on which the list of clients without a test was reviewed.
_LOOKED: Final = "2026-11-29"

#: The width of a line of text on the page.
_WIDTH: Final = 120

#: The section, with its heading.
_SECTION: Final = re.compile(r"(?<=\n)## Tested clients\n.*?(?=\n## )", re.DOTALL)

#: Clients that have no profile, because they have no limitations.
_TITLES: Final = {
    "inspector": "MCP Inspector",
    "fast-agent": "fast-agent",
    "python-sdk": "Python SDK (`mcp`)",
    "typescript-sdk": "TypeScript SDK",
}

_INTRODUCTION: Final = """\
## Tested clients

Tests run these clients with a scripted model and compare the results with this table. The prompt has a text
argument, a choice and a number:

```python
{recipe}```

| Client | Version | Date | Typed or called | Form | Received |
| --- | --- | --- | --- | --- | --- |
"""


def render_section() -> str:
    """Return the section of the page, from the observations."""
    rows: dict[str, dict[str, Any]] = json.loads(OBSERVATIONS.read_text(encoding="utf-8"))
    titles = {**{name: profile.title for name, profile in CLIENTS.items()}, **_TITLES}
    lines = [
        f"| {titles[name]} | {row['version']} | {row['date']} | {_code(row['typed'])} | {row['form']} "
        f"| {_code(row['received'])} |\n"
        for name, row in sorted(rows.items(), key=lambda item: titles[item[0]].lower())
    ]
    untested = sorted((title for name, title in titles.items() if name not in rows), key=str.lower)
    note = f"As of {_LOOKED}, these clients are not tested with this prompt: {', '.join(untested)}."
    introduction = _INTRODUCTION.replace("{recipe}", RECIPE.lstrip())
    return f"{introduction}{''.join(lines)}\n{fill(note, _WIDTH, break_on_hyphens=False)}\n"


def render() -> str:
    """Return the page with the section rendered from the observations."""
    return _SECTION.sub(lambda _: render_section(), PAGE.read_text(encoding="utf-8"))


def _code(text: str) -> str:
    return f"`{text}`" if text.startswith(("/", "Plan", '"')) else text


def main() -> int:
    """Write the page, and return the exit code."""
    PAGE.write_text(render(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

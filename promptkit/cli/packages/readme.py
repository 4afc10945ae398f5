"""The readme of a wheel."""

import json
import re
from typing import Final

from promptkit.cli.packages.project import PackagedProject

__all__ = ["readme_text"]

_README: Final = """\
# {name}

{description}

Start the server with [uv](https://docs.astral.sh/uv/), or put it into the configuration of a client:

```
uvx {name}
```

```json
{configuration}
```
"""

#: What Markdown takes for more than text: within a line, and where it begins.
_WITHIN: Final = r"[\\`*_{}\[\]<>#|~&!]"
_BEGINNING: Final = r"^(\d*)([-+=.)])"


def readme_text(project: PackagedProject, own: str | None, registered: str) -> str:
    """
    Return the readme of a wheel, with the line by which the registry knows whose it is.

    Args:
        project:
            What the package says.

        own:
            The project's readme; None if there is none.

        registered:
            What the server is called in the registry.
    """
    servers = {"mcpServers": {project.name: {"command": "uvx", "args": [project.name]}}}
    generated = _README.format(
        name=project.name,
        description=_as_markdown(project.description),
        configuration=json.dumps(servers, indent=2),
    )
    text = generated if own is None else own
    proof = f"mcp-name: {registered}"
    if re.search(rf"{re.escape(proof)}(?![\w./-])", text):
        return text
    return f"{text.rstrip()}\n\n<!-- {proof} -->\n"


def _as_markdown(text: str) -> str:
    """Return one line of text as Markdown that shows it."""
    escaped = re.sub(_WITHIN, r"\\\g<0>", text)
    return re.sub(_BEGINNING, r"\1\\\2", escaped)

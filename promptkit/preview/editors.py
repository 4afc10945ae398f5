"""The editors that open files by URL."""

from pathlib import Path
from typing import Final
from urllib.parse import quote

from promptkit.errors.diagnostics import Location

#: The URL schemes of the editors.
EDITORS: Final = ("cursor", "vscode", "vscode-insiders", "vscodium", "windsurf", "zed")


def editor_url(editor: str, location: Location) -> str:
    """Return the URL that opens a location in an editor, or ``""`` if there is no such URL."""
    path = Path(location.file)
    if not (editor and path.is_absolute()):
        return ""
    return f"{editor}://file/{quote(path.as_posix().lstrip('/'), safe='/:')}:{location.line}"

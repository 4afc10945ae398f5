"""Opening the first address in a browser, and telling no other user of this machine its token."""

import os
import shutil
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from promptkit.standard_error import say

__all__ = ["has_screen", "open_browser", "redirect_file"]

_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={address}">
<title>promptkit</title>
</head>
<body><a href="{address}">Open the preview</a></body>
</html>
"""


def has_screen() -> bool:
    """Whether a browser would open in a window: one in this terminal would hide what is printed."""
    names = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    return sys.platform in ("win32", "darwin") or any(os.environ.get(name) for name in names)


@contextmanager
def redirect_file(address: str) -> Iterator[str]:
    """
    Yield the URL of a file that leads to *address*, and that only its owner can read.

    Everybody on a machine may see the arguments of programs, and a browser is given this URL as one.

    Raises:
        OSError: If there is no place for temporary files.
    """
    folder = mkdtemp(prefix="promptkit-")
    try:
        path = Path(folder, "open.html")
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(_PAGE.format(address=escape(address)), encoding="utf-8")
        yield path.as_uri()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def open_browser(url: str) -> None:
    """Open *url* in the browser that people use."""
    try:
        webbrowser.open(url)
    except (webbrowser.Error, OSError) as error:
        say(f"no browser can be opened: {error}")

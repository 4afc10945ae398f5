"""Headless Chromium without network access, and the `promptkit dev` server whose pages it opens."""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, sync_playwright

#: The names of the program on various systems. The headless shell comes first, because it uses the least
#: memory.
_NAMES: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

#: Chromium cannot use its sandbox if it runs as root. The resolver rules block all hosts except this machine.
#: The font options make text look the same on every machine.
_ARGUMENTS: Final = (
    "--no-sandbox",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--font-render-hinting=none",
    "--disable-lcd-text",
)


class NoBrowserError(Exception):
    """
    Chromium is not installed on this machine.
    """


@contextmanager
def chromium() -> Iterator[Browser]:
    """
    Start Chromium, yield it, and close it at the end.

    Raises:
        NoBrowserError: If Chromium is not installed.
    """
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        msg = "Chromium is not installed: on Debian, apt-get install chromium-headless-shell"
        raise NoBrowserError(msg)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=list(_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def serve_preview(folder: Path, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """
    Serve the preview of a folder of recipes with `promptkit dev`, and yield its address.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "promptkit", "dev", folder.name, "--port", "0", "--no-open"],
        cwd=folder.parent,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()

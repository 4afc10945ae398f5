"""Chromium without a window and without a network, and `promptkit dev` for it to show."""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, sync_playwright

#: How Debian and others call it: the one that can have no window first, as it takes the least.
_NAMES: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

#: As root, Chromium has no sandbox. No name leads anywhere, and no address but that of this machine. Text has
#: the same edges wherever pictures are made.
_ARGUMENTS: Final = (
    "--no-sandbox",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--font-render-hinting=none",
    "--disable-lcd-text",
)


class NoBrowserError(Exception):
    """
    There is no Chromium on this machine.
    """


@contextmanager
def chromium() -> Iterator[Browser]:
    """
    Start Chromium, and end it.

    Raises:
        NoBrowserError: If it is not installed.
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
def served(folder: Path, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """
    Serve the preview of a folder of recipes, and yield the address that it prints.
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

"""The TypeScript server. Its packages are installed once, into a cache outside the checkout."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).parent / "servers" / "typescript"


def _cache() -> Path:
    """Return the cache folder for the locked versions of the packages."""
    lock = (SOURCE / "package-lock.json").read_bytes()
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "promptkit-benchmarks" / hashlib.sha256(lock).hexdigest()[:12]


def install() -> Path:
    """
    Install the packages of the server if necessary, and return the path of the program.

    Raises:
        OSError: If npm is missing.
        subprocess.CalledProcessError: If npm fails.
    """
    folder = _cache()
    folder.mkdir(parents=True, exist_ok=True)
    for file in SOURCE.iterdir():
        shutil.copyfile(file, folder / file.name)
    marker = folder / "installed"
    if not marker.exists():
        npm = shutil.which("npm") or "npm"
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        marker.touch()
    return folder / "server.mjs"

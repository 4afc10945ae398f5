"""Packages from PyPI, in an environment of their own."""

import subprocess
import sys
import sysconfig
import venv
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Final

import pytest

#: What an installation may take, in seconds.
INSTALLING: Final = 240


def install_packages(requirements: Path, cache: Path, checkout: Path | None = None) -> Path:
    """
    Return the Python of an environment that holds these packages and nothing else.

    The test is skipped if that cannot be had.

    Args:
        requirements:
            A file that pins every package, and what it needs.

        cache:
            Where to install them. What has been installed there before is used again.

        checkout:
            What the environment imports as well, also in processes that nobody tells so.
    """
    digest = sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:16]
    folder = cache / f"{requirements.stem}-{digest}"
    if not folder.is_dir():
        scratch = Path(mkdtemp(dir=cache))
        try:
            venv.create(scratch, symlinks=sys.platform != "win32")
            _install(requirements, _python(scratch))
            with suppress(OSError):  # somebody else was faster
                scratch.rename(folder)
        finally:
            rmtree(scratch, ignore_errors=True)
    if checkout is not None:
        packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))
        (packages / "checkout.pth").write_text(f"{checkout}\n", encoding="utf-8")
    return _python(folder)


def _python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def _install(requirements: Path, python: Path) -> None:
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps"]
    command += ["--no-cache-dir"]  # a test has nowhere to keep what is built
    try:
        subprocess.run(
            [*command, "--no-compile", "--only-binary", ":all:", "--requirement", str(requirements)],
            capture_output=True,
            encoding="utf-8",
            timeout=INSTALLING,
            check=True,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{requirements.name} was not installed within {INSTALLING} seconds")
    except subprocess.CalledProcessError as error:
        said = " ".join(error.stderr.split()[-60:])
        pytest.skip(f"{requirements.name} cannot be installed: {said}")

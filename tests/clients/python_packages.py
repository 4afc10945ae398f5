"""Packages from PyPI, in a separate environment."""

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

#: Timeout for an installation, in seconds.
INSTALLING: Final = 240


def install_packages(requirements: Path, cache: Path, checkout: Path | None = None) -> Path:
    """
    Return the Python of an environment that holds these packages and nothing else.

    The test is skipped if the installation is not possible.

    Args:
        requirements:
            A file that pins every package and its dependencies.

        cache:
            The folder for environments. An existing one is reused.

        checkout:
            A folder that the environment can import from as well, also in subprocesses.
    """
    digest = sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:16]
    folder = cache / f"{requirements.stem}-{digest}"
    if not folder.is_dir():
        scratch = Path(mkdtemp(dir=cache))
        try:
            venv.create(scratch, symlinks=sys.platform != "win32")
            _install(requirements, _python(scratch))
            with suppress(OSError):  # another process was faster
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
    command += ["--no-cache-dir"]  # a test has no directory for a cache of built wheels
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
        reason = " ".join(error.stderr.split()[-60:])
        pytest.skip(f"{requirements.name} cannot be installed: {reason}")

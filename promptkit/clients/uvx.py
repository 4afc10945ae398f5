"""The uvx command with which clients start promptkit if uv can delete the current environment."""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import distributions
from importlib.util import find_spec
from typing import Final

from promptkit.errors.distribution import DISTRIBUTION, requirement

#: The folder names of environments in uv's cache. Installed tools are in other folders, which uv keeps.
_CACHED: Final = re.compile(r"(archive|builds|environments)-v\d+")

#: The extras that a stdio server can need for its recipes or options, each with one of its packages.
_EXTRAS: Final = {"answers": "json_repair", "otel": "opentelemetry"}

_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


def is_temporary() -> bool:
    """Return whether this process runs in an environment in uv's cache, which uv can delete at any time."""
    return bool(_CACHED.fullmatch(os.path.basename(os.path.dirname(os.path.realpath(sys.prefix)))))  # noqa: PTH119, PTH120 (text)


def uvx_command() -> tuple[str, ...]:
    """
    Return the uvx command that starts promptkit with the packages of this environment.

    The command has the option ``--with`` for each further package in the environment, because recipes can
    import these packages. The result is empty if uv does not delete the current environment.
    """
    if not is_temporary():
        return ()
    folder = os.path.dirname(os.environ.get("UV", ""))  # noqa: PTH120 (text)
    program = shutil.which("uvx", path=folder) or shutil.which("uvx") or "uvx"
    extras = [extra for extra, package in _EXTRAS.items() if find_spec(package)]
    added = (word for package in _added_packages() for word in ("--with", requirement(package)))
    return (program, "--from", requirement(DISTRIBUTION, extras), *added, "promptkit")


def _added_packages() -> Iterator[str]:
    """Yield the names of the installed packages that no other package requires."""
    packages = {_normalize_name(package.name): package for package in distributions()}
    required = {_normalize_name(text) for package in packages.values() for text in package.requires or ()}
    yield from sorted(packages.keys() - required - {DISTRIBUTION})


def _normalize_name(text: str) -> str:
    """Return the normalized name of the package in a requirement."""
    match = _NAME.match(text)
    return re.sub("[-_.]+", "-", match[0]).lower() if match else ""

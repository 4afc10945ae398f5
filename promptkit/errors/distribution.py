"""
The distribution that promptkit is installed from, for what errors say to install.

On PyPI ``promptkit`` is another project's, with the same import name. Installed over each other, the files of
one lie between those of the other. Nothing here is imported before something has gone wrong.
"""

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from subprocess import list2cmdline
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from importlib.metadata import Distribution

#: What pip knows this project by.
DISTRIBUTION: Final = "mcp-promptkit"

_OTHER: Final = "promptkit"


def quoted(word: str) -> str:
    """Return a word as the shell of this system reads it."""
    return list2cmdline([word]) if sys.platform == "win32" else shlex.quote(word)


def pip(action: str = "install", python: str = "") -> str:
    """
    Return how a command begins that changes the packages of this Python, in whatever shell.

    Args:
        action:
            What pip is to do.

        python:
            What starts this Python in a shell, if not its full path.
    """
    python = python or quoted(sys.executable)
    if find_spec("pip") is None:  # as in environments that uv makes
        return f"uv pip {action} --python {python}"
    return f"{python} -m pip {action}"


def install_command(extras: str = "") -> str:
    """
    Return the command that installs this promptkit again, from where it came.

    Args:
        extras:
            What to install with it, as in ``"http,auth"``.
    """
    named = f"{DISTRIBUTION}[{extras}]" if extras else DISTRIBUTION
    return f"{pip()} {_requirement(named, _origin(_found(DISTRIBUTION)))}"


def _requirement(named: str, origin: Any) -> str:
    """What pip is told: the name alone if it came from an index, else from where (PEP 610)."""
    from urllib.request import url2pathname  # it imports an HTTP client

    match origin:
        case {"dir_info": {"editable": True}, "url": str(url)}:
            return f"-e {quoted(url2pathname(urlsplit(url).path) + named.removeprefix(DISTRIBUTION))}"
        case {"vcs_info": {"vcs": str(vcs), "commit_id": str(commit)}, "url": str(url)}:
            return quoted(f"{named} @ {vcs}+{url}@{commit}")
        case {"url": str(url)}:
            return quoted(f"{named} @ {url}")
    return quoted(named)


def _origin(found: "Distribution | None") -> object:
    try:
        return json.loads((found and found.read_text("direct_url.json")) or "null")
    except (ValueError, RecursionError):
        return None


def other_package() -> str | None:
    """Return what to do if PyPI's ``promptkit`` is installed beside this one; None if it is not."""
    found = _found(_OTHER)
    if found is None:
        return None
    return (
        f"another project's package, promptkit {found.version}, is installed where this promptkit is "
        f"imported from: {pip('uninstall')} {_OTHER}, then {install_command()} --force-reinstall"
    )


def _found(name: str) -> "Distribution | None":
    from importlib.metadata import PackageNotFoundError, distribution  # it imports an email parser

    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


@contextmanager
def needed_by(user: str, package: str) -> Iterator[None]:
    """
    Say how to install *package*, of the extra ``testing``, if it cannot be imported.

    Args:
        user:
            What cannot be used without it.

        package:
            The package.

    Raises:
        ModuleNotFoundError: With the command, if it is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        msg = f"{user} needs {package}: {install_command('testing')}"
        raise ModuleNotFoundError(msg, name=package) from None

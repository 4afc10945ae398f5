"""
The distribution that promptkit is installed from, for install commands in error messages.

On PyPI, ``promptkit`` is another project with the same import name. If both are installed, their files are
mixed in one folder. The functions are called only after a failure, or for a client's configuration.
"""

import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from subprocess import list2cmdline
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from importlib.metadata import Distribution

#: The project's name on package indexes.
DISTRIBUTION: Final = "mcp-promptkit"

_OTHER: Final = "promptkit"


def quoted(word: str) -> str:
    """Quote a word for this system's shell."""
    return list2cmdline([word]) if sys.platform == "win32" else shlex.quote(word)


def pip(action: str = "install", python: str = "") -> str:
    """
    Return the first words of a command that changes the packages of this Python. They work in any shell.

    Args:
        action:
            The subcommand of pip.

        python:
            The command that starts this Python in a shell. The default is the full path of this Python.
    """
    python = python or quoted(sys.executable)
    if find_spec("pip") is None:  # for example in environments created by uv
        return f"uv pip {action} --python {python}"
    return f"{python} -m pip {action}"


def install_command(extras: str = "") -> str:
    """
    Return the command that reinstalls this promptkit from its original source.

    Args:
        extras:
            The extras to install, such as ``"http,auth"``.
    """
    from urllib.request import url2pathname  # imports an HTTP client

    match _origin(DISTRIBUTION):
        case {"dir_info": {"editable": True}, "url": str(url)}:
            folder = url2pathname(urlsplit(url).path)
            return f"{pip()} -e {quoted(f'{folder}[{extras}]' if extras else folder)}"
    return f"{pip()} {quoted(requirement(DISTRIBUTION, [extras] if extras else []))}"


def requirement(name: str, extras: Sequence[str] = ()) -> str:
    """
    Return the requirement for an installed package: its name if it is from an index, otherwise its origin.

    Args:
        name:
            The name of the package.

        extras:
            The extras of the package to install.
    """
    named = f"{name}[{','.join(extras)}]" if extras else name
    match _origin(name):
        case {"vcs_info": {"vcs": str(vcs), "commit_id": str(commit)}, "url": str(url)}:
            return f"{named} @ {vcs}+{url}@{commit}"
        case {"url": str(url)}:
            return f"{named} @ {url}"
    return named


def _origin(name: str) -> object:
    """Return where a package was installed from (PEP 610); None for a package from an index."""
    distribution = _find_distribution(name)
    try:
        return json.loads((distribution and distribution.read_text("direct_url.json")) or "null")
    except (ValueError, RecursionError):
        return None


def other_package_hint() -> str | None:
    """Return how to uninstall PyPI's ``promptkit`` if it is installed as well; otherwise None."""
    other = _find_distribution(_OTHER)
    if other is None:
        return None
    return (
        f"another project's package, promptkit {other.version}, is installed where this promptkit is "
        f"imported from: {pip('uninstall')} {_OTHER}, then {install_command()} --force-reinstall"
    )


def _find_distribution(name: str) -> "Distribution | None":
    from importlib.metadata import PackageNotFoundError, distribution  # imports an email parser

    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


@contextmanager
def needed_by(user: str, package: str) -> Iterator[None]:
    """
    Report how to install *package*, a part of the extra ``testing``, if it cannot be imported.

    Args:
        user:
            The feature that needs the package, for the message.

        package:
            The package.

    Raises:
        ModuleNotFoundError: With the install command, if the package is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        msg = f"{user} needs {package}: {install_command('testing')}"
        raise ModuleNotFoundError(msg, name=package) from None

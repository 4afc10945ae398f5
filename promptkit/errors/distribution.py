"""
The distribution that promptkit was installed from, for install commands in error messages.

On PyPI, ``promptkit`` is another project with the same import name. If both are installed, their files are
mixed up in one folder. These functions are only called after a failure, or to configure a client.
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

_OTHER_PROJECT: Final = "promptkit"


def quote_for_shell(word: str) -> str:
    """Return *word*, quoted for this system's shell if necessary."""
    return list2cmdline([word]) if sys.platform == "win32" else shlex.quote(word)


def pip_command(action: str = "install", python: str = "") -> str:
    """
    Return the first words of a command that installs or uninstalls packages for this Python.

    Args:
        action:
            The subcommand of pip, such as ``"install"``.

        python:
            The command that starts this Python in a shell. By default, this is the full path of this Python.
    """
    python = python or quote_for_shell(sys.executable)
    if find_spec("pip") is None:  # for example, in an environment created by uv
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
            return f"{pip_command()} -e {quote_for_shell(f'{folder}[{extras}]' if extras else folder)}"
    return f"{pip_command()} {quote_for_shell(requirement(DISTRIBUTION, [extras] if extras else []))}"


def requirement(name: str, extras: Sequence[str] = ()) -> str:
    """
    Return the requirement that installs a package again: its name, and its origin if that is not an index.

    Args:
        name:
            The name of the installed package.

        extras:
            The extras to install with the package.
    """
    name_with_extras = f"{name}[{','.join(extras)}]" if extras else name
    match _origin(name):
        case {"vcs_info": {"vcs": str(vcs), "commit_id": str(commit)}, "url": str(url)}:
            return f"{name_with_extras} @ {vcs}+{url}@{commit}"
        case {"url": str(url)}:
            return f"{name_with_extras} @ {url}"
    return name_with_extras


def _origin(name: str) -> object:
    """Return the recorded origin of a package (PEP 610); None if it was installed from an index."""
    distribution = _find_distribution(name)
    try:
        return json.loads((distribution and distribution.read_text("direct_url.json")) or "null")
    except (ValueError, RecursionError):
        return None


def other_package_hint() -> str | None:
    """Return a hint on how to remove PyPI's ``promptkit`` if that is also installed; otherwise None."""
    other = _find_distribution(_OTHER_PROJECT)
    if other is None:
        return None
    return (
        f"another project's package, promptkit {other.version}, is also installed, and has the same import "
        f"name: run {pip_command('uninstall')} {_OTHER_PROJECT}, and then {install_command()} "
        "--force-reinstall"
    )


def _find_distribution(name: str) -> "Distribution | None":
    from importlib.metadata import PackageNotFoundError, distribution  # imports an email parser

    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


@contextmanager
def needed_by(feature: str, package: str) -> Iterator[None]:
    """
    Add an install command to the error that importing *package* raises if it is not installed.

    Args:
        feature:
            The feature that needs the package, for the message.

        package:
            The name of a package that the extra ``testing`` installs.

    Raises:
        ModuleNotFoundError: If the package is missing. The message contains the install command.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        msg = f"{feature} needs {package}: {install_command('testing')}"
        raise ModuleNotFoundError(msg, name=package) from None

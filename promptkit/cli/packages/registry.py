"""The MCP registry: the name of a server there, and its entry, ``server.json``."""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from textwrap import shorten
from typing import Any, Final, NamedTuple

from promptkit.catalog.catalog import Catalog
from promptkit.cli.packages.project import PackagedProject, PackageError

_SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"

#: Limits of the schema.
_NAME: Final = r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+"
_MAX_NAME: Final = 200
_MAX_DESCRIPTION: Final = 100

#: Timeout of git in seconds: a file that it reads may be a pipe.
_GIT_S: Final = 10

#: Owner and repository in a GitHub URL, in any form that git accepts.
_GITHUB: Final = (
    r"(?:\w+://)?(?:[^@/]*@)?(?:www\.|ssh\.)?github\.com(?::\d+)?[:/]([\w-]+)/([\w.-]+?)(?:\.git)?/?"
)


class RegistryName(NamedTuple):
    """
    The name of a server in the registry.

    Args:
        name:
            A namespace and a name.

        repository:
            The URL of the source repository; None if unknown.

        is_local:
            Whether it has only a placeholder namespace and cannot be published.
    """

    name: str
    repository: str | None
    is_local: bool

    def notes(self, is_cut: bool) -> list[str]:  # noqa: FBT001 (the only parameter)
        """Return messages about the entry; *is_cut* means that the description was truncated."""
        notes = []
        if is_cut:
            notes.append("the description is cut in server.json, as the registry takes 100 characters")
        if self.is_local:
            hint = "name it with --server-name, as in io.github.acme/prompts"
            notes.append(f"{self.name} cannot be published in the registry: {hint}")
        return notes


def registry_name(requested: str | None, package: str, root: Path) -> RegistryName:
    """
    Return the name of a server in the registry.

    Args:
        requested:
            The name from the command line; None to derive it from the repository on GitHub.

        package:
            The name of the package, used if there is no repository.

        root:
            The project's folder.

    Raises:
        PackageError: If the name is invalid.
    """
    match = re.fullmatch(_GITHUB, _remote(root), re.IGNORECASE)
    repository = f"https://github.com/{match[1]}/{match[2]}" if match else None
    name = requested or (f"io.github.{match[1]}/{match[2]}" if match else f"local/{package}")
    if len(name) > _MAX_NAME or not re.fullmatch(_NAME, name):
        msg = (
            f"{name!r} is not a registry name, which has a namespace, one / and a name, and at most "
            f"{_MAX_NAME} characters: name it with --server-name, as in io.github.acme/prompts"
        )
        raise PackageError(msg)
    return RegistryName(name, repository, name.startswith("local/"))


def list_variables(catalog: Catalog) -> list[dict[str, Any]]:
    """Return the environment variables that hold defaults of arguments, in the registry's format."""
    entries: dict[str, dict[str, Any]] = {}
    for argument in (argument for declared in catalog.declared for argument in declared.arguments.ordered):
        if variable := argument.arg.env:
            entry = entries.setdefault(variable, {"name": variable})
            if argument.arg.description:
                entry.setdefault("description", argument.arg.description)
            if argument.arg.secret:
                entry["isSecret"] = True
    return [entries[name] for name in sorted(entries)]


def server_entry(
    registered: RegistryName, project: PackagedProject, variables: Iterable[dict[str, Any]]
) -> dict[str, Any]:
    """
    Return the content of ``server.json``.

    Args:
        registered:
            The name of the server.

        project:
            The package. A long description is truncated at a word boundary.

        variables:
            The environment variables that the server reads.
    """
    package: dict[str, Any] = {
        "registryType": "pypi",
        "identifier": project.name,
        "version": project.version,
        "runtimeHint": "uvx",
        "transport": {"type": "stdio"},
    }
    if variables := list(variables):
        package["environmentVariables"] = variables
    source = (
        {"repository": {"url": registered.repository, "source": "github"}} if registered.repository else {}
    )
    return {
        "$schema": _SCHEMA,
        "name": registered.name,
        "description": _shorten(project.description),
        **source,
        "version": project.version,
        "packages": [package],
    }


def _shorten(text: str) -> str:
    cut = shorten(text, _MAX_DESCRIPTION, placeholder=" …")
    return cut if cut.strip(" …") else f"{text[: _MAX_DESCRIPTION - 1]}…"


def _remote(root: Path) -> str:
    """Return the URL of git's remote ``origin``; ``""`` if there is none."""
    try:
        process = subprocess.run(  # noqa: S603 (git, with fixed arguments)
            ["git", "-C", str(root), "--no-pager", "remote", "get-url", "origin"],  # noqa: S607 (the user's git)
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=_GIT_S,
        )
    except (OSError, subprocess.TimeoutExpired):  # git is not installed, or its configuration is a pipe
        return ""
    return process.stdout.decode(errors="replace").strip()

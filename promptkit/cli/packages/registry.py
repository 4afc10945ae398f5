"""What the registry of MCP is told of a package: its name there, and the file ``server.json``."""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from textwrap import shorten
from typing import Any, Final, NamedTuple

from promptkit.catalog.catalog import Catalog
from promptkit.cli.packages.project import PackagedProject, PackageError

_SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"

#: What the schema takes.
_NAME: Final = r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+"
_MOST_NAME: Final = 200
_MOST_DESCRIPTION: Final = 100

#: How long git may take, in seconds, as a pipe may be in the place of a file that it reads.
_GIT_S: Final = 10

#: Owner and repository, however git reaches them.
_GITHUB: Final = (
    r"(?:\w+://)?(?:[^@/]*@)?(?:www\.|ssh\.)?github\.com(?::\d+)?[:/]([\w-]+)/([\w.-]+?)(?:\.git)?/?"
)


class RegistryName(NamedTuple):
    """
    What a server is called in the registry.

    Args:
        name:
            A namespace and a name.

        repository:
            The URL of the repository that it was made of; None if that is not known.

        is_local:
            Whether it has no namespace of its own, and cannot be published.
    """

    name: str
    repository: str | None
    is_local: bool

    def notes(self, is_cut: bool) -> list[str]:  # noqa: FBT001 (there is nothing else to say)
        """Return what is to be known of it; *is_cut* if the description was too long."""
        notes = []
        if is_cut:
            notes.append("the description is cut in server.json, as the registry takes 100 characters")
        if self.is_local:
            hint = "name it with --server-name, as in io.github.acme/prompts"
            notes.append(f"{self.name} cannot be published in the registry: {hint}")
        return notes


def registry_name(given: str | None, package: str, root: Path) -> RegistryName:
    """
    Return what a server is called in the registry.

    Args:
        given:
            What the command line says; without that, the repository on GitHub counts.

        package:
            The name of the package, for one that has none.

        root:
            The project's folder.

    Raises:
        PackageError: If it is no name there.
    """
    found = re.fullmatch(_GITHUB, _remote(root), re.IGNORECASE)
    repository = f"https://github.com/{found[1]}/{found[2]}" if found else None
    name = given or (f"io.github.{found[1]}/{found[2]}" if found else f"local/{package}")
    if len(name) > _MOST_NAME or not re.fullmatch(_NAME, name):
        msg = (
            f"{name!r} is no name of the registry, which has a namespace, one / and a name, and at most "
            f"{_MOST_NAME} characters: name it with --server-name, as in io.github.acme/prompts"
        )
        raise PackageError(msg)
    return RegistryName(name, repository, name.startswith("local/"))


def variables_of(catalog: Catalog) -> list[dict[str, Any]]:
    """Return the environment variables that hold defaults of arguments, as the registry takes them."""
    found: dict[str, dict[str, Any]] = {}
    for argument in (one for declared in catalog.declared for one in declared.arguments.ordered):
        if variable := argument.arg.env:
            entry = found.setdefault(variable, {"name": variable})
            if argument.arg.description:
                entry.setdefault("description", argument.arg.description)
            if argument.arg.secret:
                entry["isSecret"] = True
    return [found[name] for name in sorted(found)]


def server_entry(
    registered: RegistryName, project: PackagedProject, variables: Iterable[dict[str, Any]]
) -> dict[str, Any]:
    """
    Return what ``server.json`` holds.

    Args:
        registered:
            What the server is called.

        project:
            The package. A longer description than the registry takes is cut behind a word.

        variables:
            The environment variables that it reads.
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
        "description": _short(project.description),
        **source,
        "version": project.version,
        "packages": [package],
    }


def _short(text: str) -> str:
    cut = shorten(text, _MOST_DESCRIPTION, placeholder=" …")
    return cut if cut.strip(" …") else f"{text[: _MOST_DESCRIPTION - 1]}…"


def _remote(root: Path) -> str:
    """The URL that git has for ``origin``; ``""`` if there is none."""
    try:
        ran = subprocess.run(  # noqa: S603 (git, with arguments of our own)
            ["git", "-C", str(root), "--no-pager", "remote", "get-url", "origin"],  # noqa: S607 (the user's)
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=_GIT_S,
        )
    except (OSError, subprocess.TimeoutExpired):  # git is not installed, or its configuration is a pipe
        return ""
    return ran.stdout.decode(errors="replace").strip()

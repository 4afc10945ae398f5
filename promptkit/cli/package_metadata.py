"""
The metadata of a package: of its wheel, and of its entry in the MCP registry, ``server.json``.

It is taken from ``[project]`` in pyproject.toml and from the command line, which overrides it. The builder of
the wheel validates the values that are copied unchanged.
"""

import re
import subprocess
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path
from textwrap import shorten
from typing import Any, Final

from msgspec import Struct, ValidationError, convert, field, to_builtins
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidName, canonicalize_name
from packaging.version import Version

from promptkit.catalog.catalog import Catalog
from promptkit.errors.distribution import DISTRIBUTION
from promptkit.errors.exceptions import PromptkitError, shortened
from promptkit.files.folder import Folder
from promptkit.files.reading import parse_toml
from promptkit.fragments.invisible import escape_invisible
from promptkit.version import VERSION

#: Maximum size of pyproject.toml.
_MAX_BYTES: Final = 1 << 20

#: Includes the extra for HTTP, so that `uvx NAME --http 8000` needs no other package.
_PROMPTKIT: Final = f"{DISTRIBUTION}[http]"

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


class PackageError(PromptkitError):
    """A package cannot be built; the message gives the reason and a fix."""


class Metadata(Struct, rename=lambda name: name.replace("_", "-"), omit_defaults=True):
    """The fields of ``[project]`` that a package uses, see the specification of pyproject.toml."""

    name: str = ""
    version: str = ""
    description: str = ""
    readme: str | dict[str, str] = ""
    requires_python: str = ""
    license: str | dict[str, str] = ""
    license_files: list[str] | None = None
    authors: list[dict[str, str]] = []
    maintainers: list[dict[str, str]] = []
    keywords: list[str] = []
    classifiers: list[str] = []
    urls: dict[str, str] = {}
    dependencies: list[str] = []
    dynamic: list[str] = []


class _Pyproject(Struct):
    """The content of a pyproject.toml."""

    project: Metadata = field(default_factory=Metadata)


def read_metadata(root: Path, options: Namespace) -> tuple[Metadata, list[str]]:
    """
    Return the metadata of the project that contains the recipes, and messages about chosen defaults.

    Args:
        root:
            The project's folder.

        options:
            The options of `package`, which override the project.

    Raises:
        PackageError: If a required field is missing, or a field is invalid.
    """
    file = root / "pyproject.toml"
    metadata = _read_project(file)
    notes = [] if metadata != Metadata() else [f"there is no [project] in {file}"]
    for option in ("name", "version", "require"):
        _check_text(getattr(options, option), f"--{option}")
    if not (name := options.name or metadata.name):
        name = _as_name(root.name)
        notes.append(f"the package is named {name}, like the folder: choose another name with --name")
    if not (version := options.version or metadata.version):
        if "version" in metadata.dynamic:
            msg = f"the version in {file} is dynamic, so only its build can compute it: set it with --version"
            raise PackageError(msg)
        version = "0.1.0"
        notes.append(f"the version is {version}: set another with --version")
    if "dependencies" in metadata.dynamic:
        notes.append(
            f"the dependencies in {file} are dynamic, and therefore omitted: add them with --require"
        )
    metadata.name, metadata.version = _check_name(name), _version(version)
    metadata.description = " ".join((options.description or metadata.description).split())
    _check_text(metadata.description, "--description")
    metadata.requires_python = metadata.requires_python or ">=3.11"
    metadata.dependencies = _requirements([*metadata.dependencies, *options.require])
    metadata.dynamic = []
    if isinstance(metadata.readme, dict):
        metadata.readme = metadata.readme.get("file", "")
    if isinstance(metadata.license, dict):
        metadata.license = ""  # a table is deprecated; the license file is found by its name
    return metadata, notes


def distribution_name(requirement: str) -> str:
    """Return the normalized name of the distribution that a requirement names."""
    return canonicalize_name(Requirement(requirement).name)


def _read_project(file: Path) -> Metadata:
    """Return the table ``[project]`` of a pyproject.toml; an empty one if there is none."""
    folder = Folder(file.parent)
    try:
        table = parse_toml(folder.read(folder.resolve(file.name), _MAX_BYTES))
        metadata = convert(table, _Pyproject).project
    except FileNotFoundError:
        return Metadata()
    except (OSError, ValueError, ValidationError) as error:  # invalid TOML or UTF-8, or other types
        reason = error.strerror if isinstance(error, OSError) else error
        msg = f"{file} cannot be read: {reason}"
        raise PackageError(msg) from None
    metadata.description = " ".join(metadata.description.split())
    for name, value in to_builtins(metadata).items():
        if name != "license" or isinstance(value, str):  # a table can contain the text of the license
            _check_text(value, f"[project] {name} in {file}")
    return metadata


def _check_text(value: Any, name: str) -> None:
    """
    Raise PackageError if a text contains a line break or an invisible character.

    Each field becomes a line of the wheel's METADATA, so text after a line break would become another field.
    """
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        for item in value:
            _check_text(item, name)
    elif isinstance(value, str) and escape_invisible(value, one_line=True) != value:
        msg = f"{name} has a line break or an invisible character in {shortened(repr(value))}: remove it"
        raise PackageError(msg)


def _check_name(name: str) -> str:
    try:
        normalized = canonicalize_name(name if name.isascii() else "", validate=True)
    except InvalidName:
        msg = (
            f"{shortened(name)!r} is not a package name: use letters and digits, with . - _ between "
            f"them, as in --name {_as_name(name)!r}"
        )
        raise PackageError(msg) from None
    if normalized == DISTRIBUTION:
        msg = f"{name!r} is the package of promptkit itself: choose another --name"
        raise PackageError(msg)
    return name


def _as_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._") or "prompts"


def _version(text: str) -> str:
    try:
        return str(Version(text))
    except ValueError:  # invalid, or a number has too many digits
        msg = f"{shortened(text)!r} is not a version (PEP 440): write it as in 1.2.0, 1.2.0rc1 or 1.2.0.post1"
        raise PackageError(msg) from None


def _requirements(requirements: Iterable[str]) -> list[str]:
    """Return the requirements with promptkit added, at the project's version if it requires one."""
    requirements, names = list(dict.fromkeys(requirements)), set[str]()
    for text in requirements:
        try:
            names.add(distribution_name(text))
        except (InvalidRequirement, RecursionError) as error:
            reason = str(error).partition("\n")[0]
            msg = f"{shortened(text)!r} is not a requirement, such as 'httpx>=0.27': {reason}"
            raise PackageError(msg) from None
    return [*requirements, _PROMPTKIT if DISTRIBUTION in names else f"{_PROMPTKIT}>={VERSION}"]


def registry_name(requested: str | None, package: str, root: Path) -> tuple[str, str | None]:
    """
    Return the name of a server in the registry, and the URL of its source repository if that is known.

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
    name = requested or (f"io.github.{match[1]}/{match[2]}" if match else f"local/{package}")
    if len(name) > _MAX_NAME or not re.fullmatch(_NAME, name):
        msg = (
            f"{name!r} is not a registry name: use NAMESPACE/NAME with at most {_MAX_NAME} characters, as in "
            f"--server-name io.github.acme/prompts"
        )
        raise PackageError(msg)
    return name, f"https://github.com/{match[1]}/{match[2]}" if match else None


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


def server_entry(name: str, repository: str | None, metadata: Metadata, catalog: Catalog) -> dict[str, Any]:
    """
    Return the content of ``server.json``.

    Args:
        name:
            The name of the server in the registry.

        repository:
            The URL of its source repository, if that is known.

        metadata:
            The metadata of the package. A long description is truncated at a word boundary.

        catalog:
            The prompts, whose arguments can read environment variables.
    """
    package: dict[str, Any] = {
        "registryType": "pypi",
        "identifier": metadata.name,
        "version": metadata.version,
        "runtimeHint": "uvx",
        "transport": {"type": "stdio"},
    }
    if variables := environment_variables(catalog):
        package["environmentVariables"] = variables
    return {
        "$schema": _SCHEMA,
        "name": name,
        "description": _shorten(metadata.description),
        **({"repository": {"url": repository, "source": "github"}} if repository else {}),
        "version": metadata.version,
        "packages": [package],
    }


def environment_variables(catalog: Catalog) -> list[dict[str, Any]]:
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


def _shorten(text: str) -> str:
    cut = shorten(text, _MAX_DESCRIPTION, placeholder=" …")
    return cut if cut.strip(" …") else f"{text[: _MAX_DESCRIPTION - 1]}…"

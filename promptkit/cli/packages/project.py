"""
The metadata of a package, from ``[project]`` in pyproject.toml and from the command line, which overrides it.
"""

import re
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, ValidationError, convert, structs
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidName, canonicalize_name
from packaging.version import Version

from promptkit.errors.distribution import DISTRIBUTION
from promptkit.errors.exceptions import PromptkitError, shortened
from promptkit.files.folder import Folder
from promptkit.files.toml import parse_toml
from promptkit.fragments.invisible import escape_invisible
from promptkit.version import VERSION

#: The fields that are copied unchanged.
_COPIED: Final = (
    *("authors", "maintainers", "keywords", "classifiers", "urls", "license", "license-files"),
    "requires-python",
)

#: For each field, a description of its value for messages, and its type.
_FIELDS: Final[Mapping[str, tuple[str, Any]]] = {
    **dict.fromkeys(("name", "version", "description", "requires-python"), ("text", str)),
    **dict.fromkeys(
        ("dependencies", "dynamic", "keywords", "classifiers", "license-files"),
        ("a list of texts", list[str]),
    ),
    **dict.fromkeys(("authors", "maintainers"), ("a list of tables of texts", list[dict[str, str]])),
    "urls": ("a table of texts", dict[str, str]),
    **dict.fromkeys(("readme", "license"), ("text or a table of texts", str | dict[str, str])),
}

#: The fields that can have several lines.
_SEVERAL_LINES: Final = ("description", "readme", "license")

#: Maximum size of pyproject.toml.
_MAX_BYTES: Final = 1 << 20

#: The email addresses that the builder of wheels accepts.
_EMAIL: Final = re.compile(r"[\w!#$%&'*+/=?^`{|}~-]+(\.[\w!#$%&'*+/=?^`{|}~-]+)*@[\w-]+(\.[\w-]+)*", re.ASCII)

#: Includes the extra for HTTP, so that `uvx NAME --http 8000` needs no other package.
_PROMPTKIT: Final = f"{DISTRIBUTION}[http]"


class PackageError(PromptkitError):
    """A package cannot be built; the message gives the reason and a fix."""


class PackagedProject(Struct, frozen=True):
    """
    The metadata of a package.

    Args:
        name:
            The name of the distribution and of its command.

        version:
            Its version, in the form of PEP 440.

        description:
            One line; ``""`` if there is none.

        requirements:
            Its dependencies.

        readme:
            The path of its readme in Markdown; None if there is none.

        metadata:
            All other fields of ``[project]``, unchanged.

        notes:
            Messages about defaults that were chosen.
    """

    name: str
    version: str
    description: str
    requirements: tuple[str, ...]
    readme: str | None
    metadata: Mapping[str, Any]
    notes: tuple[str, ...]

    def with_description(self, default: str) -> "PackagedProject":
        """Return a copy with *default* as description, if there is none."""
        if self.description:
            return self
        description = escape_invisible(default, one_line=True)
        return self._with("description", description, "there is no description: write one with --description")

    def with_requirements(self, imported: Sequence[str]) -> "PackagedProject":
        """Return a copy with further requirements, which the recipes import."""
        notes = [f"it requires {requirement}, which the recipes import" for requirement in imported]
        return self._with("requirements", (*self.requirements, *imported), *notes)

    def _with(self, field: str, value: Any, *notes: str) -> "PackagedProject":
        return structs.replace(self, **{field: value, "notes": (*self.notes, *notes)})


def read_project(root: Path, options: Namespace) -> PackagedProject:
    """
    Return the metadata of the project that contains the recipes.

    Args:
        root:
            The project's folder.

        options:
            The options of `package`, which override the project.

    Raises:
        PackageError: If a required field is missing, or a field is invalid.
    """
    file = root / "pyproject.toml"
    table = _read_table(root)
    dynamic = table.get("dynamic", ())
    for option in ("name", "version", "require"):
        _check_text(getattr(options, option), f"--{option}")
    notes = [] if table else [f"there is no [project] in {file}"]
    name = _name(options.name or table.get("name"), root, notes)
    version = options.version or table.get("version")
    if version is None and "version" in dynamic:
        msg = f"the version in {file} is dynamic, so only its build knows it: name it with --version"
        raise PackageError(msg)
    if version is None:
        version = "0.1.0"
        notes.append(f"the version is {version}: name another with --version")
    if "dependencies" in dynamic:
        notes.append(f"the dependencies in {file} are dynamic, and left out: name them with --require")
    with_description = f"[project] description in {file}" if options.description is None else "--description"
    description = " ".join((options.description or table.get("description", "")).split())
    _check_text(description, with_description)
    readme = table.get("readme")
    readme = readme.get("file") if isinstance(readme, dict) else readme
    metadata: dict[str, Any] = {
        "requires-python": ">=3.11",
        **{key: table[key] for key in _COPIED if key in table},
    }
    if isinstance(license := metadata.get("license", ""), dict):
        del metadata["license"]  # a table is deprecated; the license file is found by its name
    else:
        _check_text(license, f"[project] license in {file}")
    return PackagedProject(
        name,
        _version(version),
        description,
        _requirements([*table.get("dependencies", ()), *options.require]),
        readme if readme is not None and readme.endswith(".md") else None,
        metadata,
        tuple(notes),
    )


def distribution_name(requirement: str) -> str:
    """Return the normalized name of the distribution that a requirement names."""
    return canonicalize_name(Requirement(requirement).name)


def _read_table(root: Path) -> dict[str, Any]:
    """Return the table ``[project]`` of a project; empty if there is none."""
    file, project = root / "pyproject.toml", Folder(root)
    try:
        table = parse_toml(project.read(project.resolve(file.name), _MAX_BYTES)).get("project", {})
    except FileNotFoundError:
        return {}
    except OSError as error:
        msg = f"{file} cannot be read: {error.strerror}"
        raise PackageError(msg) from None
    except ValueError as error:  # invalid TOML or UTF-8
        msg = f"{file} is not TOML: {error}"
        raise PackageError(msg) from None
    if not isinstance(table, dict):
        msg = f"[project] in {file} is not a table"
        raise PackageError(msg)
    for key, (expected, kind) in _FIELDS.items():
        if key in table:
            field = f"[project] {key} in {file}"
            try:
                convert(table[key], kind)
            except ValidationError:
                msg = f"{field} takes {expected}, not {shortened(repr(table[key]))}"
                raise PackageError(msg) from None
            if key not in _SEVERAL_LINES:
                _check_text(table[key], field)
    _check_metadata(table, file)
    return table


def _check_text(value: Any, field: str) -> None:
    """
    Raise PackageError if a text contains a line break or an invisible character.

    Each field becomes a line of the wheel's METADATA, so text after a line break would become another field.
    """
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        for item in value:
            _check_text(item, field)
    elif isinstance(value, str) and escape_invisible(value, one_line=True) != value:
        msg = f"{field} has a line break or an invisible character in {shortened(repr(value))}: remove it"
        raise PackageError(msg)


def _check_metadata(table: Mapping[str, Any], file: Path) -> None:
    """Raise PackageError unless email addresses and the range of Python versions are valid."""
    for key in ("authors", "maintainers"):
        for person in table.get(key, ()):
            if not _EMAIL.fullmatch(email := person.get("email", "a@b")):
                msg = f"[project] {key} in {file}: {shortened(email)!r} is not an email address: correct it"
                raise PackageError(msg)
    try:
        SpecifierSet(versions := table.get("requires-python", ""))
    except ValueError:
        msg = f"[project] requires-python in {file}: {shortened(versions)!r} is not a range of versions: "
        msg += "write it as in '>=3.11'"
        raise PackageError(msg) from None


def _name(name: str | None, root: Path, notes: list[str]) -> str:
    if name is None:
        name = _as_name(root.name)
        notes.append(f"the package is called {name}, as the folder: name it with --name")
    try:
        normalized = canonicalize_name(name if name.isascii() else "", validate=True)
    except InvalidName:
        msg = (
            f"{shortened(name)!r} is not a package name, which has letters and digits, with . - _ "
            f"between them: "
        )
        msg += f"name it with --name, as in {_as_name(name)!r}"
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
        msg = f"{shortened(text)!r} is not a version (PEP 440): "
        msg += "write it as in 1.2.0, 1.2.0rc1 or 1.2.0.post1"
        raise PackageError(msg) from None


def _requirements(requirements: Iterable[str]) -> tuple[str, ...]:
    """Return the requirements with promptkit added, at the project's version if it requires one."""
    requirements, names = list(dict.fromkeys(requirements)), set[str]()
    for text in requirements:
        try:
            names.add(distribution_name(text))
        except (InvalidRequirement, RecursionError) as error:
            msg = f"{shortened(text)!r} is not a requirement, such as 'httpx>=0.27': {error}"
            msg = msg.partition("\n")[0]
            raise PackageError(msg) from None
    return (*requirements, _PROMPTKIT if DISTRIBUTION in names else f"{_PROMPTKIT}>={VERSION}")

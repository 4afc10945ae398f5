"""What a package says of itself: what ``[project]`` says, and the command line in its place."""

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

#: What is taken over as it is.
_TAKEN: Final = (
    *("authors", "maintainers", "keywords", "classifiers", "urls", "license", "license-files"),
    "requires-python",
)

#: What each field that is read takes, in words and as a type.
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

#: The fields that may have several lines, or contain a text that has.
_SEVERAL_LINES: Final = ("description", "readme", "license")

#: A larger file is no configuration that somebody wrote.
_MAX_BYTES: Final = 1 << 20

#: An address that the builder of wheels takes.
_EMAIL: Final = re.compile(r"[\w!#$%&'*+/=?^`{|}~-]+(\.[\w!#$%&'*+/=?^`{|}~-]+)*@[\w-]+(\.[\w-]+)*", re.ASCII)

#: What serves over HTTP, too: `uvx NAME --http 8000` installs nothing besides.
_PROMPTKIT: Final = f"{DISTRIBUTION}[http]"


class PackageError(PromptkitError):
    """No package can be built; the message says why, and what to do."""


class PackagedProject(Struct, frozen=True):
    """
    What a package says of itself.

    Args:
        name:
            What pip knows it by, and what its command is called.

        version:
            Its version, as PEP 440 writes it.

        description:
            One line; ``""`` if nobody has written one.

        requirements:
            What it depends on.

        readme:
            The path of the file that describes it, in Markdown; None if there is none.

        metadata:
            What else ``[project]`` says, as it stands there.

        notes:
            What was chosen where nobody has said it.
    """

    name: str
    version: str
    description: str
    requirements: tuple[str, ...]
    readme: str | None
    metadata: Mapping[str, Any]
    notes: tuple[str, ...]

    def described(self, otherwise: str) -> "PackagedProject":
        """Return the same with a description, *otherwise* if nobody has written one."""
        if self.description:
            return self
        shown = escape_invisible(otherwise, one_line=True)
        return self._with("description", shown, "there is no description: write one with --description")

    def requiring(self, found: Sequence[str]) -> "PackagedProject":
        """Return the same with further requirements, which were found in what the recipes import."""
        notes = [f"it requires {one}, which the recipes import" for one in found]
        return self._with("requirements", (*self.requirements, *found), *notes)

    def _with(self, field: str, value: Any, *notes: str) -> "PackagedProject":
        return structs.replace(self, **{field: value, "notes": (*self.notes, *notes)})


def read_project(root: Path, options: Namespace) -> PackagedProject:
    """
    Return what the project of the recipes says.

    Args:
        root:
            Its folder.

        options:
            The command line, which counts before it.

    Raises:
        PackageError: If something is missing, or is none of what Python's packages can say.
    """
    file = root / "pyproject.toml"
    table = _table(root)
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
    described = f"[project] description in {file}" if options.description is None else "--description"
    description = " ".join((options.description or table.get("description", "")).split())
    _check_text(description, described)
    readme = table.get("readme")
    readme = readme.get("file") if isinstance(readme, dict) else readme
    metadata: dict[str, Any] = {
        "requires-python": ">=3.11",
        **{key: table[key] for key in _TAKEN if key in table},
    }
    if isinstance(license := metadata.get("license", ""), dict):
        del metadata["license"]  # it is deprecated; its file is found by its name
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


def distribution_of(requirement: str) -> str:
    """Return the name of the distribution that is required, in the form in which names are compared."""
    return canonicalize_name(Requirement(requirement).name)


def _table(root: Path) -> dict[str, Any]:
    """The table ``[project]`` of a project; empty if there is none."""
    file, project = root / "pyproject.toml", Folder(root)
    try:
        table = parse_toml(project.read(project.resolve(file.name), _MAX_BYTES)).get("project", {})
    except FileNotFoundError:
        return {}
    except OSError as error:
        msg = f"{file} cannot be read: {error.strerror}"
        raise PackageError(msg) from None
    except ValueError as error:  # no TOML, or no UTF-8
        msg = f"{file} is not TOML: {error}"
        raise PackageError(msg) from None
    if not isinstance(table, dict):
        msg = f"[project] in {file} is not a table"
        raise PackageError(msg)
    for key, (words, kind) in _FIELDS.items():
        if key in table:
            field = f"[project] {key} in {file}"
            try:
                convert(table[key], kind)
            except ValidationError:
                msg = f"{field} takes {words}, not {shortened(repr(table[key]))}"
                raise PackageError(msg) from None
            if key not in _SEVERAL_LINES:
                _check_text(table[key], field)
    _check_metadata(table, file)
    return table


def _check_text(value: Any, field: str) -> None:
    """
    Raise PackageError if a text has a line break or an invisible character.

    Each field becomes a line of the wheel's METADATA, so what follows a line break would be another field.
    """
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        for one in value:
            _check_text(one, field)
    elif isinstance(value, str) and escape_invisible(value, one_line=True) != value:
        msg = f"{field} has a line break or an invisible character in {shortened(repr(value))}: remove it"
        raise PackageError(msg)


def _check_metadata(table: Mapping[str, Any], file: Path) -> None:
    """Raise PackageError unless fields have the form that installers read."""
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
        known = canonicalize_name(name if name.isascii() else "", validate=True)
    except InvalidName:
        msg = (
            f"{shortened(name)!r} is no name of a package, which has letters, digits and . - _ between them: "
        )
        msg += f"name it with --name, as in {_as_name(name)!r}"
        raise PackageError(msg) from None
    if known == DISTRIBUTION:
        msg = f"{name!r} is the package of promptkit itself: name another with --name"
        raise PackageError(msg)
    return name


def _as_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._") or "prompts"


def _version(text: str) -> str:
    try:
        return str(Version(text))
    except ValueError:  # or a number has too many digits
        msg = f"{shortened(text)!r} is no version of a package (PEP 440): "
        msg += "write it as in 1.2.0, 1.2.0rc1 or 1.2.0.post1"
        raise PackageError(msg) from None


def _requirements(given: Iterable[str]) -> tuple[str, ...]:
    """What is required, with promptkit itself, of which a project may have said another version."""
    given, names = list(dict.fromkeys(given)), set[str]()
    for one in given:
        try:
            names.add(distribution_of(one))
        except (InvalidRequirement, RecursionError) as error:
            msg = f"{shortened(one)!r} is no requirement, which is written as in 'httpx>=0.27': {error}"
            msg = msg.partition("\n")[0]
            raise PackageError(msg) from None
    return (*given, _PROMPTKIT if DISTRIBUTION in names else f"{_PROMPTKIT}>={VERSION}")

"""What a package says of itself: what ``[project]`` says, and the command line in its place."""

import re
import tomllib
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, structs
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidName, canonicalize_name
from packaging.version import InvalidVersion, Version

from promptkit.errors.distribution import DISTRIBUTION
from promptkit.errors.exceptions import PromptkitError
from promptkit.version import VERSION

__all__ = ["PackageFault", "PackagedProject", "distribution_of", "read_project"]

#: What is taken over as it is.
_TAKEN: Final = ("authors", "maintainers", "keywords", "classifiers", "urls", "license", "license-files")

#: What serves over HTTP, too: `uvx NAME --http 8000` installs nothing besides.
_PROMPTKIT: Final = f"{DISTRIBUTION}[http]"


class PackageFault(PromptkitError):
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
            The file that describes it, in Markdown; None if there is none.

        metadata:
            What else ``[project]`` says, as it stands there.

        notes:
            What was chosen where nobody has said it.
    """

    name: str
    version: str
    description: str
    requirements: tuple[str, ...]
    readme: Path | None
    metadata: Mapping[str, Any]
    notes: tuple[str, ...]

    def described(self, otherwise: str) -> "PackagedProject":
        """Return the same with a description, *otherwise* if nobody has written one."""
        if self.description:
            return self
        return self._with("description", otherwise, "there is no description: write one with --description")

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
        PackageFault: If something is missing, or is none of what Python's packages can say.
    """
    file = root / "pyproject.toml"
    table = _table(file)
    dynamic = table.get("dynamic", ())
    notes = [] if table else [f"there is no [project] in {file}"]
    name = _name(options.name or table.get("name"), root, notes)
    version = options.version or table.get("version")
    if version is None and "version" in dynamic:
        msg = f"the version in {file} is dynamic, so only its build knows it: name it with --version"
        raise PackageFault(msg)
    if version is None:
        version = "0.1.0"
        notes.append(f"the version is {version}: name another with --version")
    if "dependencies" in dynamic:
        notes.append(f"the dependencies in {file} are dynamic, and left out: name them with --require")
    description = " ".join((options.description or table.get("description", "")).split())
    readme = table.get("readme")
    readme = readme.get("file") if isinstance(readme, dict) else readme
    return PackagedProject(
        name,
        _version(version),
        description,
        _requirements([*table.get("dependencies", ()), *options.require]),
        root / readme if isinstance(readme, str) and readme.endswith(".md") else None,
        {
            "requires-python": ">=3.11",
            **{
                key: table[key]
                for key in (*_TAKEN, "requires-python")
                if isinstance(table.get(key), str | list | dict)
            },
        },
        tuple(notes),
    )


def distribution_of(requirement: str) -> str:
    """Return the name of the distribution that is required, in the form in which names are compared."""
    return canonicalize_name(Requirement(requirement).name)


def _table(file: Path) -> dict[str, Any]:
    """The table ``[project]`` of a file; empty if there is none."""
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {})
    except FileNotFoundError:
        return {}
    except ValueError as error:  # no TOML, or no UTF-8
        msg = f"{file} is not TOML: {error}"
        raise PackageFault(msg) from None
    texts = [(key, table[key]) for key in ("name", "version", "description") if key in table]
    texts += [("dependencies", one) for one in table.get("dependencies", ())]
    for key, value in texts:
        if not isinstance(value, str):
            msg = f"[project] {key} in {file} takes text, not {value!r}"
            raise PackageFault(msg)
    return dict(table)


def _name(name: str | None, root: Path, notes: list[str]) -> str:
    if name is None:
        name = _as_name(root.name)
        notes.append(f"the package is called {name}, as the folder: name it with --name")
    try:
        known = canonicalize_name(name, validate=True)
    except InvalidName:
        msg = f"{name!r} is no name of a package, which has letters, digits and . - _ between them: "
        msg += f"name it with --name, as in {_as_name(name)!r}"
        raise PackageFault(msg) from None
    if known == DISTRIBUTION:
        msg = f"{name!r} is the package of promptkit itself: name another with --name"
        raise PackageFault(msg)
    return name


def _as_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._") or "prompts"


def _version(text: str) -> str:
    try:
        return str(Version(text))
    except InvalidVersion:
        msg = f"{text!r} is no version of a package (PEP 440): write it as in 1.2.0, 1.2.0rc1 or 1.2.0.post1"
        raise PackageFault(msg) from None


def _requirements(given: Iterable[str]) -> tuple[str, ...]:
    """What is required, with promptkit itself, of which a project may have said another version."""
    given, names = list(dict.fromkeys(given)), set[str]()
    for one in given:
        try:
            names.add(distribution_of(one))
        except InvalidRequirement as error:
            msg = f"{one!r} is no requirement, which is written as in 'httpx>=0.27': {error}".partition("\n")[
                0
            ]
            raise PackageFault(msg) from None
    return (*given, _PROMPTKIT if DISTRIBUTION in names else f"{_PROMPTKIT}>={VERSION}")

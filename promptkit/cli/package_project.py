"""
The parts of a project that ``promptkit package`` reads: metadata, files, and imported packages.

The metadata is taken from ``[project]`` in pyproject.toml and from the command line, which overrides it. The
wheel builder validates the values that are copied unchanged.

The files can come from another author's repository, where a link to a hidden file, or to a file outside the
folder, would publish a private file of the user.
"""

import ast
import os
import re
import stat
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from warnings import catch_warnings

from msgspec import Struct, ValidationError, convert, field, to_builtins
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidName, canonicalize_name
from packaging.version import Version

from promptkit.compiler.configuration import Configuration
from promptkit.declarations.skill_files import is_omitted, paths_below
from promptkit.declarations.skill_frontmatter import SkillError
from promptkit.errors.distribution import DISTRIBUTION
from promptkit.errors.exceptions import PromptkitError, shortened
from promptkit.files.folder import Folder
from promptkit.files.toml import parse_toml
from promptkit.fragments.invisible import escape_invisible
from promptkit.loader.discovery import FolderWalk, find_recipes, is_case_file, is_folder, is_test_file
from promptkit.loader.targets import is_within
from promptkit.version import VERSION

#: Maximum sizes of pyproject.toml, and of a file on PyPI.
_MAX_PYPROJECT: Final = 1 << 20
_MAX_BYTES: Final = 100 << 20

#: The options of `serve` that name private files.
_SECRET_OPTIONS: Final = ("state-keys", "token-file", "audit")

#: The only hidden folder whose files are published, because GitHub shows its readme.
_PUBLIC: Final = ".github"

#: Includes the extra for HTTP, so that `uvx NAME --http 8000` needs no other package.
_PROMPTKIT: Final = f"{DISTRIBUTION}[http]"


class PackageError(PromptkitError):
    """A package cannot be built; the message gives the reason and a fix."""


class Metadata(Struct, rename=lambda name: name.replace("_", "-"), omit_defaults=True):
    """The fields of ``[project]`` that a package uses. The specification of pyproject.toml defines them."""

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
    Return the metadata of the project that contains the recipes, and notes about the defaults that were used.

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
    notes = [] if metadata != Metadata() else [f"there is no [project] table in {file}"]
    for option in ("name", "version", "require"):
        _check_text(getattr(options, option), f"--{option}")
    if not (name := options.name or metadata.name):
        name = _normalize_project_name(root.name)
        notes.append(f"the package is named {name} after the folder: to choose another name, use --name")
    if not (version := options.version or metadata.version):
        if "version" in metadata.dynamic:
            msg = f"the version in {file} is dynamic, so only a build can compute it: set it with --version"
            raise PackageError(msg)
        version = "0.1.0"
        notes.append(f"the version is {version}: to set another version, use --version")
    if "dependencies" in metadata.dynamic:
        notes.append(
            f"the dependencies in {file} are dynamic, and therefore omitted: add them with --require"
        )
    metadata.name, metadata.version = _validate_name(name), _normalize_version(version)
    metadata.description = " ".join((options.description or metadata.description).split())
    _check_text(metadata.description, "--description")
    metadata.requires_python = metadata.requires_python or ">=3.11"
    metadata.dependencies = _add_promptkit([*metadata.dependencies, *options.require])
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
    """Return the metadata in the ``[project]`` table of a pyproject.toml. The file may be missing."""
    folder = Folder(file.parent)
    try:
        table = parse_toml(folder.read(folder.resolve(file.name), _MAX_PYPROJECT))
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
    Raise PackageError if a string contains a line break or an invisible character.

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


def _validate_name(name: str) -> str:
    try:
        canonicalize_name(name if name.isascii() else "", validate=True)
    except InvalidName:
        msg = (
            f"{shortened(name)!r} is not a package name: use letters and digits, with . - _ between "
            f"them, for example --name {_normalize_project_name(name)!r}"
        )
        raise PackageError(msg) from None
    return name


def _normalize_project_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._") or "prompts"


def _normalize_version(text: str) -> str:
    try:
        return str(Version(text))
    except ValueError:  # invalid, or a number has too many digits
        hint = "use a form such as 1.2.0, 1.2.0rc1 or 1.2.0.post1"
        msg = f"{shortened(text)!r} is not a version (PEP 440): {hint}"
        raise PackageError(msg) from None


def _add_promptkit(requirements: Iterable[str]) -> list[str]:
    """
    Return the requirements, including promptkit.

    If they do not name promptkit, require at least its current version.
    """
    requirements, names = list(dict.fromkeys(requirements)), set[str]()
    for text in requirements:
        try:
            names.add(distribution_name(text))
        except (InvalidRequirement, RecursionError) as error:
            reason = str(error).partition("\n")[0]
            msg = f"{shortened(text)!r} is not a valid requirement such as 'httpx>=0.27': {reason}"
            raise PackageError(msg) from None
    return [*requirements, _PROMPTKIT if DISTRIBUTION in names else f"{_PROMPTKIT}>={VERSION}"]


class PackagedFile(Struct, frozen=True):
    """A file of a package: its content, and whether its owner can execute it."""

    data: bytes
    is_executable: bool


class SourceReader:
    """
    Reads the files of one package, up to 100 MiB in total.

    Args:
        secrets:
            The options that name private files, keyed by the resolved paths of these files.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._secrets = secrets
        self._remaining = _MAX_BYTES

    def read(self, folder: Path, path: str) -> PackagedFile:
        """
        Read a file in a folder. Symbolic links are followed if they stay within the folder.

        Args:
            folder:
                The folder.

            path:
                The path of the file within the folder.

        Raises:
            PackageError: If the file cannot be read, is outside the folder, is hidden, is not a regular file,
                is too large, or is secret.
        """
        source, modes = Folder(folder), list[int]()

        def check(status: os.stat_result) -> None:
            modes.append(status.st_mode)
            self._check_public(status, path, folder)

        try:
            within = source.resolve(path)
            _check_visible(path, within)
            data = source.read(within, self._remaining, check)
        except FileNotFoundError:
            msg = f"{shortened(path)!r} cannot be found: if it is a broken link, remove it"
            raise PackageError(msg) from None
        except OSError as error:
            msg = f"{shortened(path)!r} cannot be packaged: {error.strerror}"
            raise PackageError(msg) from None
        self._remaining -= len(data)
        return PackagedFile(data, bool(modes[0] & stat.S_IXUSR))

    def _check_public(self, status: os.stat_result, path: str, folder: Path) -> None:
        """Raise PackageError if a file is secret or too large."""
        if status.st_size > self._remaining:
            limit = f"{_MAX_BYTES >> 20} MiB"
            msg = f"{path!r} is too large: the files of a package can total at most {limit}"
            raise PackageError(msg)
        if (option := self._secrets.get(os.path.realpath(folder / path))) is not None:
            msg = (
                f"{path!r} is the file for {option} in [tool.promptkit.serve], "
                f"which must not be published: move it out of {folder.name!r}"
            )
            raise PackageError(msg)
        if not status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            msg = (
                f"only its owner can read {path!r}, so it may be a secret: move it out of {folder.name!r}, "
                "or run chmod go+r if it may be published"
            )
            raise PackageError(msg)


def _check_visible(path: str, within: str) -> None:
    """Raise PackageError if a file is hidden, or links to a hidden one."""
    if any(is_omitted(part) and part != _PUBLIC for part in within.split("/")):
        subject = f"{path!r} links to {within!r}, which" if path != within else repr(path)
        msg = f"{subject} is hidden, or is another program's temporary file: put a copy at a visible path"
        raise PackageError(msg)


def find_secrets(configurations: Iterable[Configuration], folders: Iterable[Path]) -> dict[str, str]:
    """
    Return the options of ``[tool.promptkit.serve]`` that name private files, keyed by the resolved paths.

    Args:
        configurations:
            The configurations to search.

        folders:
            The folders in which `serve` can be started, from which relative paths are resolved.
    """
    return {
        os.path.realpath(folder / path): option
        for configuration in configurations
        for option in _SECRET_OPTIONS
        if isinstance(path := configuration.serve.get(option), str)
        for folder in folders
    }


class Contents(Struct, frozen=True):
    """
    The files of a package.

    Args:
        folder:
            The folder of the recipes.

        files:
            The packaged files, keyed by their paths within the folder, in sorted order.

        skills:
            The folders of skills, as paths within the folder.

        prefix:
            The prefix of the folder.
    """

    folder: Path
    files: Mapping[str, PackagedFile]
    skills: tuple[str, ...]
    prefix: str = ""

    @property
    def root(self) -> str:
        """The path of the project root in the package, ending with ``/``; each prefix has its own root."""
        return f"{self.prefix}/" if self.prefix else ""

    @property
    def path(self) -> str:
        """The path of the folder in the package."""
        return f"{self.root}{self.folder.name}"


def read_contents(folder: Path, excluded: Path, reader: SourceReader, prefix: str = "") -> Contents:
    """
    Read the files that a server might need from a folder, except tests, cases and hidden files.

    Args:
        folder:
            The folder of the recipes.

        excluded:
            A folder to exclude: the folder to which packages are written.

        reader:
            Reads the files.

        prefix:
            The prefix of the folder.

    Raises:
        PackageError: If a file or folder cannot be read, is outside the folder, or must not be published.
    """
    paths = set(_paths_in(folder, excluded))
    skills = tuple(Path(skill).relative_to(folder).as_posix() for skill in find_recipes(str(folder)).skills)
    for skill in skills:  # skills are served with all of their files
        try:
            paths |= {f"{skill}/{path}" for path in paths_below(str(folder / skill))[0]}
        except SkillError as error:
            msg = f"the skill {skill!r}: {error}: {error.hint}"
            raise PackageError(msg) from None
    return Contents(folder, {path: reader.read(folder, path) for path in sorted(paths)}, skills, prefix)


def _paths_in(folder: Path, excluded: Path) -> Iterator[str]:
    """Yield the paths of the files to package, and of symbolic links to folders outside *folder*."""
    walk, root = FolderWalk(str(folder), private=True), str(folder)
    is_below = is_within(str(excluded), root)
    for path, entries in walk:
        relative = Path(path).relative_to(folder)
        if "__snapshots__" in relative.parts or (is_below and is_within(path, str(excluded))):
            continue
        for entry in entries:
            is_inside = is_folder(entry) and is_within(os.path.realpath(entry.path), root)
            if _is_packaged(entry.name) and not is_inside:
                yield (relative / entry.name).as_posix()
    for path, reason in walk.skipped:
        msg = f"{shortened(path)} cannot be read: {reason}"
        raise PackageError(msg)


def _is_packaged(name: str) -> bool:
    return not (is_omitted(name) or is_test_file(name) or is_case_file(name))


def find_requirements(contents: Contents, metadata: Metadata) -> list[str]:
    """
    Return requirements, with the installed versions as minimum, for imports that the metadata does not cover.

    Args:
        contents:
            The files to package.

        metadata:
            The metadata of the package.

    Raises:
        PackageError: If an imported module cannot be installed with the package.
    """
    imports = sorted(_find_imports(contents).items())
    required = set(map(distribution_name, metadata.dependencies))
    owners = packages_distributions() if imports else {}  # reads the files of all installed packages
    missing = list[str]()
    for name, file in imports:
        installed = sorted({canonicalize_name(owner) for owner in owners.get(name, ())})
        if canonicalize_name(metadata.name) in installed or (not installed and find_spec(name)):
            msg = (
                f"{file} imports {name!r}, which is outside {contents.folder.name!r}, so it would be missing "
                "from the package: move that module there, or publish it as a separate package "
                "and add the package with --require"
            )
            raise PackageError(msg)
        if not installed or not required.isdisjoint(installed):
            continue
        if len(installed) > 1:
            msg = (
                f"{file} imports {name!r}, which several packages provide: add one of {', '.join(installed)} "
                "with --require"
            )
            raise PackageError(msg)
        missing.append(f"{installed[0]}>={version(installed[0])}")
        required.add(installed[0])
    return missing


def _find_imports(contents: Contents) -> dict[str, str]:
    """Return the top-level modules that recipes import from elsewhere, each with a file that imports it."""
    packaged = {part.removesuffix(".py") for path in contents.files for part in path.split("/")}
    known = sys.stdlib_module_names | {"promptkit", contents.folder.name} | packaged
    return {
        name: path
        for path, file in contents.files.items()
        # Agents run the scripts of skills, in their own environment.
        if path.endswith(".py") and not path.startswith(tuple(f"{skill}/" for skill in contents.skills))
        for name in set(_imported_names(file.data)) - known
    }


def _imported_names(source: bytes) -> Iterator[str]:
    try:
        with catch_warnings(action="ignore"):  # loading the recipes reports their warnings
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # no served recipe imports this file
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]

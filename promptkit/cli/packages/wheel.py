"""
Building a wheel of recipes.

The folder of the recipes keeps its name, so that imports of its modules still work. It is placed in a package
with the name of the wheel, so that no two wheels contain the same file.
"""

import json
import keyword
import os
import re
import stat
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import chdir
from fnmatch import fnmatchcase
from glob import has_magic
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import Struct
from packaging.utils import canonicalize_name

from promptkit.cli.packages.project import PackagedProject, PackageError
from promptkit.cli.packages.sources import PackagedFile, SourceReader
from promptkit.declarations.skill_files import is_left_out
from promptkit.files.folder import Folder, check_plain
from promptkit.files.scratch import scratch_folder

#: Maximum number of files and folders that are matched against patterns.
_MAX_ENTRIES: Final = 100_000


def find_licenses(folder: Folder, patterns: Iterable[str]) -> list[str]:
    """
    Return the paths of the files that match any pattern, in order.

    Args:
        folder:
            The project's folder. Links to folders are not followed.

        patterns:
            Relative paths with ``*``, ``?``, ``[...]`` and ``**``, which do not match hidden names.

    Raises:
        PackageError: If a pattern is absolute, leads upwards, or would be matched against too many files.

        OSError: If a folder cannot be read.
    """
    search = _PatternSearch(folder)
    return sorted({path for pattern in patterns for path in search.files(pattern)})


class _PatternSearch:
    """A search for the files of a project that match patterns, with a limited number of comparisons."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._remaining = _MAX_ENTRIES

    def files(self, pattern: str) -> Iterator[str]:
        """Yield the paths of files and links that match a pattern."""
        try:
            check_plain(pattern)
        except OSError:
            msg = f"[project] license-files: {pattern!r} is not a plain path within the project"
            raise PackageError(msg) from None
        *above, name = pattern.split("/")
        if name == "**":
            above, name = [*above, "**"], "*"
        folders = {""}
        for part in above:
            folders = {path for folder in folders for path in self._folders(folder, part)}
        for folder in folders:
            yield from (path for path, is_folder in self._matches(folder, name) if not is_folder)

    def _folders(self, folder: str, part: str) -> Iterator[str]:
        if part == "**":
            pending = [folder]
            while pending:
                yield (path := pending.pop())
                pending += self._folders(path, "*")
        elif not has_magic(part):
            yield f"{folder}/{part}".removeprefix("/")
        else:
            yield from (path for path, is_folder in self._matches(folder, part) if is_folder)

    def _matches(self, folder: str, part: str) -> Iterator[tuple[str, bool]]:
        """Yield the entries of a folder with matching names, and whether each is a folder."""
        try:
            entries = self._folder.entries(folder)
        except (FileNotFoundError, NotADirectoryError):
            return
        self._remaining -= len(entries) + folder.count("/")  # its parent folders are opened again
        if self._remaining < 0:
            msg = f"[project] license-files match among more than {_MAX_ENTRIES:,} files: name the files"
            raise PackageError(msg)
        for name, status in entries:
            if name == part or (fnmatchcase(name, part) and not is_left_out(name)):
                yield f"{folder}/{name}".removeprefix("/"), stat.S_ISDIR(status.st_mode)


_README: Final = """\
# {name}

{description}

Start the server with [uv](https://docs.astral.sh/uv/), or put it into the configuration of a client:

```
uvx {name}
```

```json
{configuration}
```
"""

#: Characters with a meaning in Markdown: anywhere in a line, and at its beginning.
_WITHIN: Final = r"[\\`*_{}\[\]<>#|~&!]"
_BEGINNING: Final = r"^(\d*)([-+=.)])"


def readme_text(project: PackagedProject, own: str | None, registered: str) -> str:
    """
    Return the readme of a wheel, including the line with which the registry verifies its owner.

    Args:
        project:
            The metadata of the package.

        own:
            The project's readme; None to generate one.

        registered:
            The name of the server in the registry.
    """
    servers = {"mcpServers": {project.name: {"command": "uvx", "args": [project.name]}}}
    generated = _README.format(
        name=project.name,
        description=_as_markdown(project.description),
        configuration=json.dumps(servers, indent=2),
    )
    text = generated if own is None else own
    proof = f"mcp-name: {registered}"
    if re.search(rf"{re.escape(proof)}(?![\w./-])", text):
        return text
    return f"{text.rstrip()}\n\n<!-- {proof} -->\n"


def _as_markdown(text: str) -> str:
    """Escape one line of text for Markdown."""
    escaped = re.sub(_WITHIN, r"\\\g<0>", text)
    return re.sub(_BEGINNING, r"\1\\\2", escaped)


#: A fixed time, 2020-01-01, for reproducible builds.
_EPOCH: Final = "SOURCE_DATE_EPOCH"
_TIMESTAMP: Final = "1577836800"

#: Upper bound for the size of a wheel, which the limits on its files imply.
_MAX_WHEEL: Final = 256 << 20

#: Patterns of license files, unless the project names others.
_LICENSES: Final = ("COPYING*", "LICEN[CS]E*", "NOTICE*")

#: This pyproject.toml makes the recipes a separate project, which imports nothing from a surrounding one.
_PYPROJECT: Final = "# The root of the recipes in this folder, for promptkit.\n"

_MAIN: Final = '''\
"""Serves these prompts. It takes the options of `promptkit serve`."""

import os
import sys

from promptkit.cli import main as promptkit

RECIPES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "served", {folder!r})


def main():
    sys.argv[1:1] = ["serve", RECIPES, *{options!r}]
    return promptkit()


if __name__ == "__main__":
    sys.exit(main())
'''


class WheelParts(Struct, frozen=True):
    """
    The parts of a wheel.

    Args:
        project:
            Its metadata.

        root:
            The project's folder, which may contain license files.

        folder:
            The name of the recipes' folder.

        files:
            The packaged files by their paths.

        options:
            The options of `serve` for the recipes.

        registered:
            The name of the server in the registry. The readme proves that the package owns it.
    """

    project: PackagedProject
    root: Path
    folder: str
    files: Mapping[str, PackagedFile]
    options: Sequence[str]
    registered: str


class Wheel(NamedTuple):
    """
    A wheel that was built.

    Args:
        name:
            The name of its file.

        data:
            Its content.
    """

    name: str
    data: bytes


def build_wheel(parts: WheelParts, reader: SourceReader) -> Wheel:
    """
    Build a wheel reproducibly.

    Args:
        parts:
            The parts of the wheel.

        reader:
            Reads the readme and the license files.

    Raises:
        PackageError: If the metadata is contradictory, or a file must not be published.

        OSError: If a file cannot be read or written.
    """
    with scratch_folder("promptkit-package-") as scratch:
        source, built = Folder(scratch, "source"), Folder(scratch, "built")
        _stage(parts, reader, source)
        built.create()
        os.environ.setdefault(_EPOCH, _TIMESTAMP)
        try:
            with chdir(source.path):
                name: str = import_module("flit_core.buildapi").build_wheel(str(built))
        except (ValueError, RuntimeError) as error:
            msg = f"[project] in {parts.root / 'pyproject.toml'}: {error}"
            raise PackageError(msg) from None
        except (OverflowError, struct.error):
            msg = f"{_EPOCH} is {os.environ[_EPOCH]!r}, a time that a wheel cannot hold: unset it"
            raise PackageError(msg) from None
        return Wheel(name, built.read(name, _MAX_WHEEL))


def _stage(parts: WheelParts, reader: SourceReader, source: Folder) -> None:
    """Write the files from which the wheel is built."""
    module = _module_name(parts.project.name, parts.folder)
    served = f"{module}/served"
    licenses = _licenses(parts, reader)
    for path, file in licenses.items():
        source.write(path, file.data)
    for path, file in parts.files.items():
        mode = 0o777 if file.is_executable else 0o666
        source.write(f"{served}/{parts.folder}/{path}", file.data, mode=mode)
    main = _MAIN.format(folder=parts.folder, options=list(parts.options))
    readme = readme_text(parts.project, _read_own_readme(parts, reader), parts.registered)
    texts = {
        f"{served}/pyproject.toml": _PYPROJECT,
        f"{module}/__init__.py": f'"""The prompts of {parts.project.name}."""\n',
        f"{module}/__main__.py": main,
        "README.md": readme,
        "pyproject.toml": import_module("tomli_w").dumps(_metadata(parts.project, module, [*licenses])),
    }
    for path, text in texts.items():
        source.write(path, text.encode())
    _check_alone(source.path / served / parts.folder)


def _check_alone(folder: Path) -> None:
    """Check the packaged recipes without the project, as an installed package will load them."""
    process = subprocess.run(  # noqa: S603 (promptkit itself)
        [sys.executable, "-B", "-m", "promptkit", "check", str(folder)],
        cwd=folder.parent,
        capture_output=True,
        check=False,
        encoding="utf-8",
        errors="replace",
        stdin=subprocess.DEVNULL,
    )
    if process.returncode:
        report = f"{process.stdout}{process.stderr}".replace(f"{folder.parent}{os.sep}", "").strip()
        msg = f"the recipes cannot be served without the project around them:\n{report}"
        raise PackageError(msg)


def _licenses(parts: WheelParts, reader: SourceReader) -> dict[str, PackagedFile]:
    """Return the license files of the project by their paths."""
    patterns = parts.project.metadata.get("license-files", _LICENSES)
    return {path: reader.read(parts.root, path) for path in find_licenses(Folder(parts.root), patterns)}


def _read_own_readme(parts: WheelParts, reader: SourceReader) -> str | None:
    """Return the project's readme; None if there is none."""
    if (path := parts.project.readme) is None:
        return None
    try:
        return reader.read(parts.root, path).data.decode()
    except UnicodeDecodeError:
        msg = f"[project] readme {path!r} is not UTF-8"
        raise PackageError(msg) from None


def _metadata(project: PackagedProject, module: str, licenses: Sequence[str]) -> dict[str, Any]:
    """Return the content of the pyproject.toml for the builder."""
    fields = {
        **project.metadata,
        "name": project.name,
        "version": project.version,
        "description": project.description,
        "readme": "README.md",
        "dependencies": list(project.requirements),
        "scripts": {project.name: f"{module}.__main__:main"},
    }
    fields.pop("license-files", None)
    if licenses:
        fields["license-files"] = licenses
    return {"project": fields, "tool": {"flit": {"module": {"name": module}}}}


def _module_name(name: str, folder: str) -> str:
    """
    Return a unique name for the Python package. Fallbacks begin with ``_``, unlike the name of any wheel.
    """
    module = canonicalize_name(name).replace("-", "_")
    is_free = module.isidentifier() and module not in sys.stdlib_module_names | {"promptkit", folder}
    return module if is_free and not keyword.iskeyword(module) else f"_prompts_{module}"

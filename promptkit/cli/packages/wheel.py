"""
Builds a wheel of recipes.

The folder of the recipes keeps its name, so that modules in it are imported as before, and lies in a package
that is called as the wheel is, so that two wheels never hold the same file.
"""

import keyword
import os
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import chdir
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import Struct
from packaging.utils import canonicalize_name

from promptkit.cli.packages.licenses import find_licenses
from promptkit.cli.packages.project import PackagedProject, PackageError
from promptkit.cli.packages.readme import readme_text
from promptkit.cli.packages.sources import PackagedFile, SourceReader
from promptkit.files.folder import Folder
from promptkit.files.scratch import scratch_folder

__all__ = ["Wheel", "WheelParts", "build_wheel"]

#: 2020-01-01: what is built has no time of its own.
_EPOCH: Final = "SOURCE_DATE_EPOCH"
_TIMESTAMP: Final = "1577836800"

#: More than a wheel can have, as its files are limited.
_MAX_WHEEL: Final = 256 << 20

#: Where licences are looked for, unless the project says it.
_LICENSES: Final = ("COPYING*", "LICEN[CS]E*", "NOTICE*")

#: With a file of this kind, the recipes have a project of their own, and import nothing from one around it.
_MARK: Final = "# The root of the recipes beside it, for promptkit.\n"

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
    What a wheel is made of.

    Args:
        project:
            What it says of itself.

        root:
            The project's folder, which may hold licences.

        folder:
            The name of the folder with the recipes.

        files:
            Its files, by path.

        options:
            The options with which the recipes are served.

        registered:
            What the server is called in the registry, whose proof of that stands in the README.
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
    Build a wheel, with the same bytes each time.

    Args:
        parts:
            What it is made of.

        reader:
            Reads the readme and the licences.

    Raises:
        PackageError: If what the project says does not fit together, or a file must not be published.

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
    """Write what the wheel is built from."""
    module = _module_name(parts.project.name, parts.folder)
    served = f"{module}/served"
    licenses = _licenses(parts, reader)
    for path, file in licenses.items():
        source.write(path, file.data)
    for path, file in parts.files.items():
        mode = 0o777 if file.is_executable else 0o666
        source.write(f"{served}/{parts.folder}/{path}", file.data, mode=mode)
    main = _MAIN.format(folder=parts.folder, options=list(parts.options))
    readme = readme_text(parts.project, _own_readme(parts, reader), parts.registered)
    texts = {
        f"{served}/pyproject.toml": _MARK,
        f"{module}/__init__.py": f'"""The prompts of {parts.project.name}."""\n',
        f"{module}/__main__.py": main,
        "README.md": readme,
        "pyproject.toml": import_module("tomli_w").dumps(_metadata(parts.project, module, [*licenses])),
    }
    for path, text in texts.items():
        source.write(path, text.encode())
    _check_alone(source.path / served / parts.folder)


def _check_alone(folder: Path) -> None:
    """Check the recipes of the package alone, as a process elsewhere will load them."""
    ran = subprocess.run(  # noqa: S603 (this program)
        [sys.executable, "-B", "-m", "promptkit", "check", str(folder)],
        cwd=folder.parent,
        capture_output=True,
        check=False,
        encoding="utf-8",
        errors="replace",
        stdin=subprocess.DEVNULL,
    )
    if ran.returncode:
        said = f"{ran.stdout}{ran.stderr}".replace(f"{folder.parent}{os.sep}", "").strip()
        msg = f"the recipes cannot be served without the project around them:\n{said}"
        raise PackageError(msg)


def _licenses(parts: WheelParts, reader: SourceReader) -> dict[str, PackagedFile]:
    """The licences of the project, by their paths."""
    patterns = parts.project.metadata.get("license-files", _LICENSES)
    return {path: reader.read(parts.root, path) for path in find_licenses(Folder(parts.root), patterns)}


def _own_readme(parts: WheelParts, reader: SourceReader) -> str | None:
    """The project's readme; None if there is none."""
    if (path := parts.project.readme) is None:
        return None
    try:
        return reader.read(parts.root, path).data.decode()
    except UnicodeDecodeError:
        msg = f"[project] readme {path!r} is not UTF-8"
        raise PackageError(msg) from None


def _metadata(project: PackagedProject, module: str, licenses: Sequence[str]) -> dict[str, Any]:
    """What the builder is told."""
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
    """A name for the package of Python. None of a wheel begins with ``_``, so no other wheel has it."""
    module = canonicalize_name(name).replace("-", "_")
    is_free = module.isidentifier() and module not in sys.stdlib_module_names | {"promptkit", folder}
    return module if is_free and not keyword.iskeyword(module) else f"_prompts_{module}"

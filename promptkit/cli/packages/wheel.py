"""
Builds a wheel of recipes.

The folder of the recipes keeps its name, so that modules in it are imported as before, and lies in a package
that is called as the wheel is, so that two wheels never hold the same file.
"""

import json
import keyword
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import chdir
from glob import glob
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from msgspec import Struct
from packaging.utils import canonicalize_name

from promptkit.cli.packages.project import PackagedProject, PackageFault

__all__ = ["WheelParts", "build_wheel"]

#: 2020-01-01: what is built has no time of its own.
_TIMESTAMP: Final = "1577836800"

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
            What lies in that, by path.

        options:
            The options with which the recipes are served.

        registered:
            What the server is called in the registry, whose proof of that stands in the README.
    """

    project: PackagedProject
    root: Path
    folder: str
    files: Mapping[str, Path]
    options: Sequence[str]
    registered: str


def build_wheel(parts: WheelParts, out: Path) -> Path:
    """
    Write a wheel, with the same bytes each time, and return its path.

    Args:
        parts:
            What it is made of.

        out:
            The folder for it, which is made.

    Raises:
        PackageFault: If what the project says does not fit together.

        OSError: If a file cannot be read or written.
    """
    out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("SOURCE_DATE_EPOCH", _TIMESTAMP)
    with TemporaryDirectory(prefix="promptkit-package-") as scratch:
        _stage(parts, Path(scratch))
        try:
            with chdir(scratch):
                name: str = import_module("flit_core.buildapi").build_wheel(str(out))
        except ValueError as error:
            msg = f"[project] in {parts.root / 'pyproject.toml'}: {error}"
            raise PackageFault(msg) from None
    return out / name


def _stage(parts: WheelParts, scratch: Path) -> None:
    """Write what the wheel is built from."""
    module = _module_name(parts.project.name, parts.folder)
    served = scratch / module / "served"
    for path, file in parts.files.items():
        target = served / parts.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    main = _MAIN.format(folder=parts.folder, options=list(parts.options))
    texts = {
        served / "pyproject.toml": _MARK,
        served.with_name("__init__.py"): f'"""The prompts of {parts.project.name}."""\n',
        served.with_name("__main__.py"): main,
        scratch / "README.md": _readme(parts),
        scratch / "pyproject.toml": import_module("tomli_w").dumps(_metadata(parts, module, scratch)),
    }
    for target, text in texts.items():
        target.write_text(text, encoding="utf-8", newline="\n")
    _build_lists(served / parts.folder, parts.options)


def _build_lists(folder: Path, options: Sequence[str]) -> None:
    """Load the recipes from the package alone, as a process elsewhere will, and keep what they list."""
    words = ["-m", "promptkit", "build", str(folder), "--carried", *options]
    ran = subprocess.run(  # noqa: S603 (this program)
        [sys.executable, *words], cwd=folder.parent, capture_output=True, check=False, encoding="utf-8"
    )
    if ran.returncode:
        said = f"{ran.stdout}{ran.stderr}".replace(f"{folder.parent}{os.sep}", "").strip()
        msg = f"the recipes cannot be served without the project around them:\n{said}"
        raise PackageFault(msg)


def _metadata(parts: WheelParts, module: str, scratch: Path) -> dict[str, Any]:
    """What the builder is told; licences are copied for it."""
    kept = dict(parts.project.metadata)
    licenses = [
        path
        for pattern in kept.pop("license-files", _LICENSES)
        for path in glob(pattern, root_dir=parts.root, recursive=True)  # noqa: PTH207 (Path refuses some)
        if (parts.root / path).is_file() and not {"..", os.sep}.intersection(Path(path).parts)
    ]
    for path in licenses:
        (scratch / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(parts.root / path, scratch / path)
    if licenses:
        kept["license-files"] = sorted(set(licenses))
    if isinstance(kept.get("license"), dict):  # it is deprecated; its file is found by its name
        del kept["license"]
    project = {
        **kept,
        "name": parts.project.name,
        "version": parts.project.version,
        "description": parts.project.description,
        "readme": "README.md",
        "dependencies": list(parts.project.requirements),
        "scripts": {parts.project.name: f"{module}.__main__:main"},
    }
    return {"project": project, "tool": {"flit": {"module": {"name": module}}}}


def _module_name(name: str, folder: str) -> str:
    """A name for the package of Python. None of a wheel begins with ``_``, so no other wheel has it."""
    module = canonicalize_name(name).replace("-", "_")
    is_free = module.isidentifier() and module not in sys.stdlib_module_names | {"promptkit", folder}
    return module if is_free and not keyword.iskeyword(module) else f"_prompts_{module}"


def _readme(parts: WheelParts) -> str:
    """What describes the wheel, with the line by which the registry knows whose it is."""
    name, file = parts.project.name, parts.project.readme
    servers = {"mcpServers": {name: {"command": "uvx", "args": [name]}}}
    generated = _README.format(
        name=name, description=parts.project.description, configuration=json.dumps(servers, indent=2)
    )
    text = generated if file is None else file.read_text(encoding="utf-8")
    proof = f"mcp-name: {parts.registered}"
    if re.search(rf"{re.escape(proof)}(?![\w./-])", text):
        return text
    return f"{text.rstrip()}\n\n<!-- {proof} -->\n"

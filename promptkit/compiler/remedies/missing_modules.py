"""Remedies for a module that cannot be found: where it is, how it is spelt, or how to install it."""

import os
import re
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Final

from promptkit.compiler.loading.recipe_files import holds_own_files
from promptkit.compiler.loading.targets import project_root
from promptkit.errors.distribution import other_package
from promptkit.errors.exceptions import nearest
from promptkit.fragments.shell_words import command_line

__all__ = ["children_of", "missing_module"]

#: Modules that are installed under another name.
_DISTRIBUTIONS: Final = {
    "Crypto": "pycryptodome",
    "MySQLdb": "mysqlclient",
    "OpenSSL": "pyOpenSSL",
    "PIL": "pillow",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "faiss": "faiss-cpu",
    "fitz": "pymupdf",
    "git": "GitPython",
    "github": "PyGithub",
    "google": "google-genai",
    "gitlab": "python-gitlab",
    "jwt": "PyJWT",
    "magic": "python-magic",
    "pptx": "python-pptx",
    "psycopg2": "psycopg2-binary",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "win32api": "pywin32",
    "yaml": "PyYAML",
}

#: A repeated letter is probably a typo. Names that differ otherwise, such as http and httpx, may both exist.
_REPEATED: Final = re.compile(r"(.)\1+")

#: At most this many files and folders of a project are searched for a module.
_MAX_ENTRIES: Final = 5_000


def missing_module(name: str, file: Path) -> str:
    """Return what to do when *file* imports the module *name*, which cannot be found."""
    parent, _, last = name.rpartition(".")
    if parent.partition(".")[0] == "promptkit" and (other := other_package()) is not None:
        return other
    package = sys.modules.get(parent)
    if package is not None:
        hidden = not last.startswith("_") and parent == "promptkit"
        submodules = [path.stem for path in children_of(package)]
        meant = nearest(last, [other for other in submodules if not (hidden and other.startswith("_"))])
        if last in submodules:
            return f"{name} exists, but cannot be imported: see its own error"
        is_beside = Path(str(file.parent)) in map(Path, getattr(package, "__path__", ()))
        if meant is not None:
            return f"did you mean {meant if is_beside else f'{parent}.{meant}'!r}?"
        if is_beside:
            return f"correct the name: no file beside the recipe is called {last}.py"
        return f"correct the name: {parent!r} has no module {last!r}"
    top = name.partition(".")[0]
    return _in_project(top, file) or _misspelt(top, file) or f"install it: {_install(name)}"


def children_of(package: ModuleType) -> Iterator[Path]:
    """Yield the modules and packages in *package*."""
    for folder in getattr(package, "__path__", ()):
        for path in sorted(Path(folder).glob("*")):
            if path.suffix == ".py" or (path.is_dir() and path.name.isidentifier()):
                yield path


def _in_project(name: str, file: Path) -> str | None:
    """How to import *name* if it is somewhere in the recipe's project."""
    root = Path(project_root(file.absolute().parent))
    for path in _modules_below(root):
        if path.stem == name:
            parts = path.relative_to(root).with_suffix("").parts
            if all(part.isidentifier() for part in parts):
                place = f"it is at {path.relative_to(root)}, and imports start at the project's root, {root}"
                return f"{place}: write 'from {'.'.join(parts)} import ...'"
    return None


def _modules_below(root: Path) -> Iterator[Path]:
    """The Python files and packages below *root*, nearest first."""
    seen, folders = 0, [root]
    while folders and seen < _MAX_ENTRIES:
        try:
            entries = sorted(os.scandir(folders.pop(0)), key=lambda entry: entry.name)
        except OSError:
            continue
        seen += len(entries)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and holds_own_files(entry.path):
                folders.append(Path(entry.path))
                if any(Path(entry.path).glob("*.py")):
                    yield Path(entry.path)
            elif entry.name.endswith(".py"):
                yield Path(entry.path)


def _misspelt(name: str, file: Path) -> str | None:
    """Suggest a module with a similar name."""
    if name in _DISTRIBUTIONS:
        return None
    beside = nearest(name, [path.stem for path in file.absolute().parent.glob("*.py") if path != file])
    if beside is not None:
        return f"did you mean {beside!r}, which is beside the recipe? or install it: {_install(name)}"
    public = [module for module in sys.stdlib_module_names if not module.startswith("_")]
    installed = [module for module in packages_distributions() if not module.startswith("_")]
    meant = nearest(name, ["promptkit", *public, *installed])
    if meant is None or abs(len(meant) - len(name)) > 1:
        return None
    another = (meant in name or name in meant) and _REPEATED.sub(r"\1", name) != _REPEATED.sub(r"\1", meant)
    return None if another else f"did you mean {meant!r}? or install it: {_install(name)}"


def _install(name: str) -> str:
    """A command, ready to be copied, that installs what is imported as *name*."""
    top = name.partition(".")[0]
    distribution = _DISTRIBUTIONS.get(top, top)
    command = [sys.executable, "-m", "pip", "install", distribution]
    if find_spec("pip") is None:  # as in environments that uv makes
        command = ["uv", "pip", "install", "--python", sys.executable, distribution]
    return command_line(command)

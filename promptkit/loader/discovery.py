"""
Recipe files: which files of a folder are recipes, and which subfolders are searched.

The loader, the watcher and the pytest plugin use this module. Where promptkit is installed, every run of
pytest imports it, so it imports little of promptkit.
"""

import os
import re
import stat
from collections.abc import Iterator
from itertools import chain, islice
from math import inf
from typing import Final, NamedTuple

from promptkit.files.reading import INSTALL_FOLDERS, read_beginning

#: The default folders of recipes. The first one that exists is used.
DEFAULT_FOLDERS: Final = ("recipes", "prompts")

#: Files that mark a folder as the root of a project.
PROJECT_MARKERS: Final = ("pyproject.toml", ".git")

#: Folders whose files recipes do not depend on: caches, tests and third-party packages.
_NEVER_ENTERED: Final = INSTALL_FOLDERS | {"__pycache__", "node_modules", "tests"}

#: Folders in ``build`` to which setuptools copies a project's modules.
_BUILD_OUTPUT: Final = re.compile(r"(?:lib|bdist)(?:\..+)?")

#: Files of well-known tools. They are recipes only if they define prompts.
_TOOL_FILES: Final = frozenset(
    f"{name}.py"
    for name in (
        *("setup", "hatch_build", "build", "versioneer", "noxfile", "tasks", "duties", "fabfile", "dodo"),
        *("pavement", "conf", "gunicorn.conf", "manage", "wsgi", "asgi", "locustfile", "hubconf"),
    )
)

#: The ending of a Markdown prompt's file name.
MARKDOWN_ENDING: Final = ".prompt.md"

#: Names of files that mark their folder as a virtual or conda environment, or as a skill. Python files in
#: such folders are not recipes.
_ENVIRONMENT: Final = frozenset({"pyvenv.cfg", "conda-meta"})
_SKILL: Final = "skill.md"  # compared without case, to recognize misspelt names as well

#: The number of bytes to search at the start of a file, and the strings that identify files with prompts.
_READ_BYTES: Final = 1 << 16
_DECORATORS: Final = (b"@prompt", b"@resource", b"@skill", b".prompt", b".resource", b".skill")

#: Maximum number of folders to search.
_MAX_FOLDERS: Final = 10_000

#: A hidden folder that is large, and never contains skills.
_GIT: Final = ".git"


def is_recipe(name: str) -> bool:
    """Return whether a file of this name, in a folder that is searched, is a recipe."""
    # Editors and archives create files whose names start with a dot.
    return (
        name.endswith(".py")
        and not name.startswith(("_", "."))
        and not (is_test_file(name) or is_case_file(name))
    )


def is_markdown(name: str) -> bool:
    """Return whether a file of this name, in a folder that is searched, is a Markdown prompt."""
    return name.endswith(MARKDOWN_ENDING) and not name.startswith(("_", "."))


def is_case_file(name: str) -> bool:
    """Return whether a file of this name contains cases, which servers do not import."""
    return name.endswith(".py") and name.startswith("cases_")


def is_test_file(name: str) -> bool:
    """Return whether pytest imports a file of this name: a test module, or a ``conftest.py``."""
    return name.endswith(".py") and (
        name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"
    )


def may_enter(name: str) -> bool:
    """Return whether recipes may depend on files in a folder of this name."""
    return not name.startswith(".") and name not in _NEVER_ENTERED


def mentions_prompts(path: str) -> bool:
    """Guess from the start of a file whether it defines prompts, resources or skills."""
    text = _read_beginning(path)
    return b"promptkit" in text and any(decorator in text for decorator in _DECORATORS)


def _read_beginning(path: str) -> bytes:
    """Return the first bytes of a file; ``b""`` if it cannot be read."""
    try:
        return read_beginning(path, _READ_BYTES)
    except OSError:
        return b""


def is_for_promptkit(path: str) -> bool:
    """Guess from the start of a file whether it uses promptkit, as recipes must in folders with skills."""
    text = _read_beginning(path)
    return b"promptkit" in text or any(decorator in text for decorator in _DECORATORS[:3])


def holds_recipes(folder: str, *, depth: float = inf) -> bool:
    """Guess whether there are recipes in a folder, or in its subfolders at most *depth* levels down."""
    return any(any(map(_is_likely, entries)) for _, entries in FolderWalk(folder, depth=depth))


#: Maximum number of entries to read in linked and hidden folders.
_MAX_ENTRIES: Final = 2000


def _limited_walk(folder: str) -> "FolderWalk":
    """Return a walk with limits, for linked and hidden folders and for suggestions."""
    return FolderWalk(folder, depth=2, budget=_MAX_ENTRIES)


def holds_skills(folder: str) -> bool:
    """Guess whether there are skills in a folder."""
    walk = _limited_walk(folder)
    return any(walk.skills for _ in walk) or bool(walk.skills)


def mentions_skills(folder: str) -> bool:
    """Guess whether a folder contains skills, either as folders or declared in recipes."""
    return holds_skills(folder) or any(
        is_recipe(entry.name) and b"@skill" in _read_beginning(entry.path)
        for _, entries in FolderWalk(folder)
        for entry in entries
    )


def folders_with_recipes(folder: str) -> list[str]:
    """Return the subfolders that are likely to contain recipes, nearest first."""
    walk = _limited_walk(folder)
    folders = [path for path, entries in walk if path != folder and any(map(_is_likely, entries))]
    return sorted(folders, key=lambda path: (path.count(os.sep), path))


def _is_likely(entry: os.DirEntry[str]) -> bool:
    return is_markdown(entry.name) or (is_recipe(entry.name) and mentions_prompts(entry.path))


class DiscoveredFiles(NamedTuple):
    """
    The files in a folder that matter to the loader.

    Args:
        names:
            The paths of the recipes, relative to the folder, sorted.

        unreadable:
            The files that cannot be read, each with the reason.

        skipped:
            The folders that cannot be searched, each with the reason.

        outside:
            The symbolic links that lead out of the folder, to folders that seem to contain recipes or skills.

        hidden:
            The folders that seem to contain skills, but whose names start with a dot.

        unserved:
            The Python files that are not recipes: tests, cases, and ``__init__.py``.

        cases:
            The paths of the case files, relative to the folder, sorted.

        skills:
            The folders of skills that are not in the folder of another skill, sorted.

        markdown:
            The paths of the Markdown prompts, relative to the folder, sorted.
    """

    names: tuple[str, ...]
    unreadable: tuple[tuple[str, str], ...]
    skipped: tuple[tuple[str, str], ...]
    outside: tuple[str, ...]
    hidden: tuple[str, ...]
    unserved: tuple[str, ...]
    cases: tuple[str, ...]
    skills: tuple[str, ...]
    markdown: tuple[str, ...]

    @property
    def has_skills(self) -> bool:
        """Whether there are folders of skills."""
        return bool(self.skills or self.hidden)


def find_recipes(folder: str, project: str = "", *, runs_all: bool = False) -> DiscoveredFiles:
    """
    Find the recipes in a folder and its subfolders.

    Args:
        folder:
            An absolute path.

        project:
            See `FolderWalk`.

        runs_all:
            Whether all Python files count as recipes. Otherwise, if the folder contains skills, only files
            that use promptkit do, because the remaining files may be programs of a repository that was cloned
            only to be read.

    Raises:
        OSError: If the folder cannot be read.
    """
    names, cases, markdown, unserved = list[str](), list[str](), list[str](), list[str]()
    unreadable = list[tuple[str, str]]()
    walk = FolderWalk(folder, project=project)
    prefix_length = len(os.path.join(folder, ""))
    for _, entries in walk:
        for entry in entries:
            kind = (
                cases if (is_case := is_case_file(entry.name)) else names if _is_recipe_file(entry) else None
            )
            kind = markdown if is_markdown(entry.name) else kind
            if kind is not None:
                if (reason := describe_unreadable(entry)) is None:
                    kind.append(entry.path[prefix_length:])
                elif reason:
                    unreadable.append((entry.path, reason))
            if is_case or is_test_file(entry.name) or entry.name == "__init__.py":
                unserved.append(entry.path)
    if not (walk.entered or walk.skills):
        raise OSError(0, dict(walk.skipped).get(folder) or os.strerror(2))
    skills, hidden = tuple(sorted(walk.skills)), tuple(filter(holds_skills, walk.hidden))
    if (skills or hidden) and not runs_all:
        names = [name for name in names if is_for_promptkit(os.path.join(folder, name))]
        cases = cases if names else []
    return DiscoveredFiles(
        names=tuple(sorted(names)),
        unreadable=tuple(unreadable),
        skipped=tuple(walk.skipped),
        outside=tuple(filter(_holds_recipes_or_skills, walk.outside)),
        hidden=hidden,
        unserved=tuple(unserved),
        cases=tuple(sorted(cases)),
        skills=skills,
        markdown=tuple(sorted(markdown)),
    )


def _is_recipe_file(entry: os.DirEntry[str]) -> bool:
    return is_recipe(entry.name) and (entry.name not in _TOOL_FILES or mentions_prompts(entry.path))


def _holds_recipes_or_skills(folder: str) -> bool:
    """Guess whether there are recipes or skills in a folder."""
    walk = _limited_walk(folder)
    entries = chain.from_iterable(entries for _, entries in walk)
    return any(map(_is_likely, islice(entries, _MAX_ENTRIES))) or bool(walk.skills)


def describe_unreadable(entry: os.DirEntry[str]) -> str | None:
    """Return why a file cannot be read; None if it can be read, and ``""`` if it is a folder."""
    try:
        # Most entries are plain files, which need no further system call.
        mode = stat.S_IFREG if entry.is_file(follow_symlinks=False) else os.stat(entry.path).st_mode
    except OSError as error:  # a link that is broken, circular or leads into a locked folder
        return str(error.strerror)
    if stat.S_ISREG(mode):
        return None
    return "" if stat.S_ISDIR(mode) else "it is a pipe, a socket or a device"


class FolderWalk:
    """
    A walk through a folder and its subfolders: an iterator over the path and the entries of each folder.

    A link is followed if it leads to a folder within the walked folder, as in Kubernetes ConfigMaps, or to a
    folder of the project that contains recipes or skills. No folder is entered twice.

    Args:
        folder:
            The folder, which is entered regardless of its name.

        depth:
            How many levels of subfolders to enter.

        budget:
            The approximate number of entries after which the walk ends.

        private:
            Whether to also enter folders that contain no recipes, but may contain files that recipes read:
            skills, and folders whose names start with ``_``.

        project:
            The root of the project. Links to folders in the project are followed; with ``""``, only links
            within the walked folder are.

    Attributes:
        entered:
            The paths of the folders entered so far.

        skipped:
            The folders that cannot be entered, each with the reason.

        outside:
            The symbolic links that lead out of the folder, except those to one of its parents.

        hidden:
            The folders whose names start with a dot, which are not entered.

        skills:
            The folders of skills, which are not entered, because programs in them are not recipes.
    """

    def __init__(
        self,
        folder: str,
        *,
        depth: float = inf,
        budget: float = inf,
        private: bool = False,
        project: str = "",
    ) -> None:
        self._folder = folder
        self._depth, self._budget = depth, budget
        self._private = private
        self._project = project
        self.hidden: list[str] = []
        self.entered: set[str] = set()
        self.skipped: list[tuple[str, str]] = []
        self.outside: list[str] = []
        self.skills: list[str] = []

    def __iter__(self) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
        root = resolve_link(self._folder) or self._folder
        folders, links, visited = [(self._folder, root, 0)], list[tuple[str, str, int]](), set[str]()
        budget = self._budget
        while (folders or links) and budget >= 0:
            path, real, level = (folders or links).pop()
            entries = None if real in visited else self._entries_of(path)
            visited.add(real)
            if entries is None:
                continue
            if len(self.entered) == _MAX_FOLDERS:
                self.skipped.append((path, f"the target has more than {_MAX_FOLDERS:,} folders"))
                return
            self.entered.add(path)
            budget -= len(entries)
            yield path, entries
            for entry in entries:
                if level == self._depth or not is_folder(entry):
                    continue
                if not self._may_enter(path, entry.name):
                    self.hidden += [entry.path] if entry.name.startswith(".") and entry.name != _GIT else []
                elif not entry.is_symlink():
                    folders.append((entry.path, os.path.join(real, entry.name), level + 1))
                elif target := self._follow(entry.path, root):
                    links.append((entry.path, target, level + 1))

    def _follow(self, link: str, root: str) -> str:
        """Return the folder to which a link leads, or ``""`` if the link is not followed."""
        target = resolve_link(link)
        if target.startswith(os.path.join(root, "")):
            return target
        if os.path.join(root, "").startswith(os.path.join(target, "")):  # the link leads to a parent folder
            return ""
        is_in_project = self._project and target.startswith(os.path.join(self._project, ""))
        if is_in_project and _holds_recipes_or_skills(target):
            return target
        self.outside.append(link)
        return ""

    def _may_enter(self, parent: str, name: str) -> bool:
        if os.path.basename(parent) == "build" and _BUILD_OUTPUT.fullmatch(name):
            return False
        return may_enter(name) and (self._private or not name.startswith("_"))

    def _entries_of(self, folder: str) -> list[os.DirEntry[str]] | None:
        """Return the entries of a folder; None if the folder is not entered."""
        try:
            with os.scandir(folder) as iterator:
                entries = list(iterator)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.skipped.append((folder, str(error.strerror)))
            return None
        names = {entry.name for entry in entries}
        if not self._private and any(name.lower() == _SKILL for name in names):
            self.skills.append(folder)
            return None
        return entries if folder == self._folder or _ENVIRONMENT.isdisjoint(names) else None


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder, or a symbolic link to one."""
    try:
        return entry.is_dir()
    except OSError:  # a link to itself, or into an unreadable folder
        return False


def resolve_link(link: str) -> str:
    """Return the final target of a symbolic link; ``""`` if it cannot be determined."""
    try:
        return os.path.realpath(link)
    except OSError:  # some links in /proc cannot be read
        return ""

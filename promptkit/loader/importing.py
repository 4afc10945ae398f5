"""An import of a folder of recipes, file by file."""

import importlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Final, TypeVar

from promptkit.catalog.skills import SKILL_FILE
from promptkit.declarations.base import drops_cases
from promptkit.declarations.prompts import declared_prompts
from promptkit.declarations.skill_files import SkillError, SkillFolder, paths_below, read_files
from promptkit.errors.diagnostics import Location, Report
from promptkit.files.scratch import SpooledBytes
from promptkit.language.files import files_read
from promptkit.loader.discovery import FoundFiles, is_cases, mentions_prompts
from promptkit.loader.finder import RecipeFinder
from promptkit.loader.import_errors import fault_of, not_served
from promptkit.loader.module_records import Execution, Executions, collecting
from promptkit.loader.packages import import_package, imported_files
from promptkit.loader.recipes import LoadedFile, Recipes, declared_in, named_declarations
from promptkit.loader.targets import is_within

#: The folder of skills, which is no part of their URIs.
_CONVENTION: Final = "skills"


def load_skills(folder: str, root: Path) -> tuple[LoadedFile, set[str]]:
    """
    Read a skill, and those within it. Return their declarations, and the paths of the files and folders read.

    Args:
        folder:
            The absolute path of its folder.

        root:
            The target, in which it lies.
    """
    first = Path(folder, SKILL_FILE)
    read = {str(first)}
    try:
        places, entered = paths_below(folder)
        read.update(places.values(), entered)
        _check_name(places)
        files = read_files(places, first.parent)
    except SkillError as fault:
        report = Report(f"skill {first.parent.name!r}", Location(str(first)))
        report.add(fault.rule, str(fault), fault.hint)
        return LoadedFile(first, diagnostics=tuple(report.found)), read
    base = root.parent if Path(folder) == root else root
    skills = tuple(_skill(Path(folder, inner), base, _below(inner, files)) for inner in _roots(files))
    return LoadedFile(first, skills=skills), read


def _check_name(paths: Iterable[str]) -> None:
    """Raise SkillError if no file among *paths* is called as agents look for it."""
    if SKILL_FILE not in paths:
        called = next((path for path in paths if path.lower() == SKILL_FILE.lower()), "no file")
        msg = f"it begins with {called!r}, and agents look for {SKILL_FILE!r}"
        raise SkillError(msg, f"rename it to {SKILL_FILE}")


def _roots(files: Iterable[str]) -> list[str]:
    """The folders among *files* that begin with a ``SKILL.md``, by their paths; ``""`` for the outermost."""
    return [above for above, _, name in (path.rpartition("/") for path in files) if name == SKILL_FILE]


def _below(folder: str, files: Mapping[str, SpooledBytes]) -> dict[str, SpooledBytes]:
    above = f"{folder}/" if folder else ""
    return {path.removeprefix(above): content for path, content in files.items() if path.startswith(above)}


def _skill(path: Path, root: Path, files: Mapping[str, SpooledBytes]) -> SkillFolder:
    parts = path.relative_to(root).parts[:-1]
    return SkillFolder(path, "/".join(parts[1:] if parts[:1] == (_CONVENTION,) else parts), files)


T = TypeVar("T")


def do_nothing(_: Path) -> None:
    """Let a file be imported."""


class FolderImport:
    """
    An import of a folder's recipes that has begun: each file is imported when it is asked for.

    Any thread may ask.

    Args:
        finder:
            What finds the modules of the folder, whose files become modules of one package.

        names:
            The paths of the recipe files within it, in order.

        importing:
            Called with each file before it is imported. If it raises, the file is not imported, and
            the error is reported as an error of the file.

        named:
            By their names: the files that are targets themselves, and what to take of each, ``""`` for all.
            Such a file serves the prompts that it imports, too, whoever has defined them.

        found:
            All that was found in the folder, if it is the target.

        keep:
            As for `promptkit.loader.packages.import_package`.

        cases:
            Whether cases are wanted; else they are kept only with *keep*.

        skills:
            Folders that an earlier load found to be skills. If one has no ``SKILL.md`` for a moment, it is
            still a skill: its programs are not recipes.
    """

    def __init__(  # noqa: PLR0913 (they are the ways to name recipes)
        self,
        finder: RecipeFinder,
        names: Sequence[str],
        importing: Callable[[Path], None] = do_nothing,
        named: Mapping[str, str] = MappingProxyType({}),
        *,
        found: FoundFiles | None = None,
        keep: bool = False,
        cases: bool = False,
        skills: Iterable[str] = (),
    ) -> None:
        self.folder = folder = finder.folder
        self._skills = [one for one in skills if is_within(one, str(folder)) and os.path.isdir(one)]
        inside = tuple(os.path.join(one, "") for one in self._skills)
        self.names = tuple(name for name in names if not self._path(name).startswith(inside))
        self._importing = importing
        self._drops_cases = not (cases or keep)
        self._named = named
        self._files = found
        import_folder = partial(import_package, finder, keep=keep)
        self._fault = self._attempt(folder / "__init__.py", import_folder, Execution(""))
        # If the package cannot be imported, a finder that has executed nothing stands in for it.
        self.package: RecipeFinder = finder if self._fault is None else RecipeFinder("", folder, "")
        self._executions = self.package.executions
        # The full names of modules, by file; all that follows is by file, too.
        self._modules = {name: self._module_of(name) for name in self.names}
        self._recipes = set(self._modules.values())
        self._found: dict[str, ModuleType | LoadedFile] = {}

    def finish(self) -> Recipes:
        """
        Import the files that are left, and return what all declare.

        Raises:
            LoadError: If there is no such object in the file.
        """
        for name in self.names:
            self._import(name)
        by_file = [self._taken(name, self._declared_in(name)) for name in self.names]
        if self._fault is not None:
            by_file.append(self._fault)
        read = imported_files().union(map(self._path, ["__init__.py"] if self._fault else self.names))
        if self._files is not None:
            by_file += _not_served(self._files, by_file)
            for skill, paths in self._load_skills(self._files):
                by_file.append(skill)
                read |= paths
        by_file.sort(key=lambda one: str(one.file))
        self._importing = do_nothing  # it is not kept alive
        root = None if self._files is None else self.folder
        return Recipes(by_file=by_file, root=root, read=read)

    def _path(self, name: str) -> str:
        return os.path.join(str(self.folder), name)

    def _module_of(self, name: str) -> str:
        package = self.package.name
        return package if name == "__init__.py" else f"{package}.{name[:-3].replace(os.sep, '.')}"

    def _import(self, name: str) -> None:
        if name in self._found:
            return
        file, module = self.folder / name, self._modules[name]
        if self._fault is not None:
            self._found[name] = LoadedFile(file, diagnostics=self._fault.diagnostics)
            return
        execution = Execution(module)
        import_file = partial(_import_file, module, file, self._executions)
        self._found[name] = found = self._attempt(file, import_file, execution)
        if execution.made or execution.read:  # by a module that another loader has executed
            self._executions.add(execution)
        if isinstance(found, LoadedFile):
            self._recipes.discard(module)

    def _attempt(self, file: Path, call: Callable[[], T], execution: Execution) -> T | LoadedFile:
        """Import *file* by calling *call*; an error becomes a diagnostic of the file."""
        token = drops_cases.set(self._drops_cases)
        try:
            with collecting(declared_prompts, execution.made), collecting(files_read, execution.read):
                self._importing(file)
                return call()
        except BaseException as error:  # noqa: BLE001 (a recipe may raise anything)
            return LoadedFile(file, diagnostics=(fault_of(file, self.folder, error),))
        finally:
            drops_cases.reset(token)

    def _declared_in(self, name: str) -> LoadedFile:
        found, module = self._found[name], self._modules[name]
        if isinstance(found, LoadedFile):
            return found
        file, made = self.folder / name, self._executions.made.get(module, ())
        if name not in self._named and is_cases(os.path.basename(name)):
            return LoadedFile(file)
        package = None if name in self._named else self.package.name
        return declared_in(file, found, made, module, package=package, recipes=self._recipes)

    def _taken(self, name: str, loaded: LoadedFile) -> LoadedFile:
        """What the target takes of a file, unless that cannot be imported."""
        attribute, found = self._named.get(name), self._found[name]
        if not attribute or not isinstance(found, ModuleType):
            return loaded
        file = self.folder / name
        return named_declarations(f"{file}:{attribute}", file, found, attribute)

    def _load_skills(self, files: FoundFiles) -> list[tuple[LoadedFile, set[str]]]:
        """What the folders of skills declare, and the paths that were read for each."""
        folders = sorted({*files.skills, *self._skills})
        if not folders:
            return []

        return [load_skills(folder, self.folder) for folder in folders]


def _import_file(name: str, file: Path, executions: Executions) -> ModuleType:
    """Import a file as a module, unless another file has imported it already, and return the module."""
    module = executions.module(name)
    if module is None:
        imported = importlib.import_module(name)
        module = executions.module(name) or imported  # it may have replaced itself
    executed = executions.by_name.get(name)
    if executed is not None and executed.file not in {"", str(file)}:
        msg = f"{executed.file} is imported in its place"
        raise ImportError(msg, name=name, path=executed.file)
    return module


def _not_served(files: FoundFiles, loaded: Sequence[LoadedFile]) -> list[LoadedFile]:
    likely = [path for path in files.others if mentions_prompts(path)]
    if not (likely or files.unreadable or files.skipped):
        return []
    return not_served(files, likely, loaded)

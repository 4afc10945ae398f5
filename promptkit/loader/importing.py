"""The import of a folder of recipes, file by file."""

import importlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Final, TypeVar

from promptkit.catalog.skills import SKILL_FILE
from promptkit.declarations.base import declarations
from promptkit.declarations.skill_files import SkillFolder, paths_below, read_files
from promptkit.declarations.skill_markdown import SkillError
from promptkit.errors.diagnostics import Location, Report
from promptkit.files.reading import HashedBytes
from promptkit.language.files import collecting, files_read
from promptkit.loader.discovery import DiscoveredFiles, is_cases, mentions_prompts
from promptkit.loader.finder import Execution, Executions, RecipeFinder
from promptkit.loader.import_errors import diagnose_import, diagnose_unserved
from promptkit.loader.packages import import_package, imported_files
from promptkit.loader.recipes import LoadedFile, Recipes, declared_in, named_declarations
from promptkit.loader.targets import is_within

#: The conventional folder of skills, which is not part of their URIs.
_CONVENTION: Final = "skills"


def load_skills(folder: str, root: Path) -> tuple[LoadedFile, set[str]]:
    """
    Load a skill and the skills within it.

    Args:
        folder:
            The absolute path of its folder.

        root:
            The target that contains it.

    Returns:
        The declarations, and the paths of the files and folders that were read.
    """
    main_file = Path(folder, SKILL_FILE)
    read = {str(main_file)}
    try:
        locations, entered = paths_below(folder)
        read.update(locations.values(), entered)
        _check_name(locations)
        files = read_files(locations, main_file.parent)
    except SkillError as error:
        report = Report(f"skill {main_file.parent.name!r}", Location(str(main_file)))
        report.add(error.rule, str(error), error.hint)
        return LoadedFile(main_file, diagnostics=tuple(report.found)), read
    base = root.parent if Path(folder) == root else root
    skills = tuple(_skill(Path(folder, inner), base, _files_below(inner, files)) for inner in _roots(files))
    return LoadedFile(main_file, skills=skills), read


def _check_name(paths: Iterable[str]) -> None:
    """Raise SkillError if *paths* lack a ``SKILL.md`` with exactly this name."""
    if SKILL_FILE not in paths:
        similar = next((path for path in paths if path.lower() == SKILL_FILE.lower()), None)
        if similar is None:
            msg = f"it has no {SKILL_FILE}"
            raise SkillError(msg, f"add {SKILL_FILE}")
        msg = f"it has {similar!r} instead of {SKILL_FILE!r}"
        raise SkillError(msg, f"rename it to {SKILL_FILE}")


def _roots(files: Iterable[str]) -> list[str]:
    """Return the folders that contain a ``SKILL.md``, as paths; ``""`` for the outermost."""
    return [folder for folder, _, name in (path.rpartition("/") for path in files) if name == SKILL_FILE]


def _files_below(folder: str, files: Mapping[str, HashedBytes]) -> dict[str, HashedBytes]:
    prefix = f"{folder}/" if folder else ""
    return {path.removeprefix(prefix): content for path, content in files.items() if path.startswith(prefix)}


def _skill(path: Path, root: Path, files: Mapping[str, HashedBytes]) -> SkillFolder:
    parts = path.relative_to(root).parts[:-1]
    return SkillFolder(path, "/".join(parts[1:] if parts[:1] == (_CONVENTION,) else parts), files)


def load_markdown(
    folder: Path, names: Iterable[str], importing: Callable[[Path], None]
) -> tuple[list[LoadedFile], set[str]]:
    """
    Load Markdown prompts.

    Args:
        folder:
            The absolute path of the folder to which their names are relative.

        names:
            The paths of the files within it.

        importing:
            See `FolderImport`.

    Returns:
        The declarations, and the paths of the files that were read.
    """
    if not names:
        return [], set()
    from promptkit.declarations.markdown_prompts import read_markdown_prompt  # few targets have one

    loaded, read = list[LoadedFile](), list[Path]()
    for file in map(folder.joinpath, names):
        try:
            with collecting(files_read, read):
                importing(file)
                prompt, diagnostics = read_markdown_prompt(file, folder)
        except BaseException as error:  # noqa: BLE001 (the author's completions may raise anything)
            prompt, diagnostics = None, (diagnose_import(file, folder, error),)
        loaded.append(LoadedFile(file, () if prompt is None else (prompt,), diagnostics=diagnostics))
    return loaded, {*map(str, read), *(str(loaded_file.file) for loaded_file in loaded)}


T = TypeVar("T")


def do_nothing(_: Path) -> None:
    """Allow the import of a file."""


class FolderImport:
    """
    An import of a folder's recipes, whose package is imported already.

    Args:
        finder:
            The finder of the folder's modules, which form one package.

        names:
            The paths of the recipe files within it, sorted.

        importing:
            Called with each file before it is imported. If it raises, the file is not imported, and the
            exception is reported as an error of the file.

        named:
            The files that are targets themselves, each with the object to load, ``""`` for all. Such a file
            also serves all prompts that it imports, from any module.

        files:
            All files of the folder, if it is the target.

        keep:
            See `promptkit.loader.packages.import_package`.

        skills:
            Folders that were skills in an earlier load. A folder that briefly has no ``SKILL.md`` is still a
            skill: its programs are not recipes.
    """

    def __init__(  # noqa: PLR0913 (each is an option of a load)
        self,
        finder: RecipeFinder,
        names: Sequence[str],
        importing: Callable[[Path], None] = do_nothing,
        named: Mapping[str, str] = MappingProxyType({}),
        *,
        files: DiscoveredFiles | None = None,
        keep: bool = False,
        skills: Iterable[str] = (),
    ) -> None:
        self.folder = folder = finder.folder
        self._skills = [path for path in skills if is_within(path, str(folder)) and os.path.isdir(path)]
        inside = tuple(os.path.join(path, "") for path in self._skills)
        self.names = tuple(name for name in names if not self._path(name).startswith(inside))
        self._importing = importing
        self._named = named
        self._files = files
        self._package = finder.name
        import_folder = partial(import_package, finder, keep=keep)
        self._failure = None
        if self.names or files is None or not files.has_skills:  # a folder of skills alone runs nothing
            self._failure = self._import_or_fail(folder / "__init__.py", import_folder, Execution(""))
        self._executions = finder.executions  # those of modules that are reused, if any
        self._recipes = set(map(self._module_of, self.names))

    def finish(self) -> Recipes:
        """
        Import the remaining files, and return all declarations.

        Raises:
            LoadError: If a file does not have the object of its target.
        """
        if (failure := self._failure) is None:
            imported = {name: self._import(name) for name in self.names}
            by_file = [self._declarations(name, result) for name, result in imported.items()]
        else:
            failed = (LoadedFile(self.folder / name, diagnostics=failure.diagnostics) for name in self.names)
            by_file = [*failed, failure]
        read = imported_files().union(map(self._path, self.names if failure is None else ["__init__.py"]))
        if self._files is not None:
            by_file += _report_not_served(self._files, by_file)
            for skill, paths in self._load_skills(self._files):
                by_file.append(skill)
                read |= paths
            prompts, paths = load_markdown(self.folder, self._files.markdown, self._importing)
            by_file += prompts
            read |= paths
        by_file.sort(key=lambda loaded: str(loaded.file))
        root = None if self._files is None else self.folder
        return Recipes(by_file=by_file, root=root, read=read)

    def _path(self, name: str) -> str:
        return os.path.join(str(self.folder), name)

    def _module_of(self, name: str) -> str:
        package = self._package
        return package if name == "__init__.py" else f"{package}.{name[:-3].replace(os.sep, '.')}"

    def _import(self, name: str) -> ModuleType | LoadedFile:
        """Import a file. An exception becomes a diagnostic of the file."""
        file, module = self.folder / name, self._module_of(name)
        execution = Execution(module)
        import_file = partial(_import_file, module, file, self._executions)
        imported = self._import_or_fail(file, import_file, execution)
        if execution.declared or execution.read:  # for a module that another loader has executed
            self._executions.add(execution)
        if isinstance(imported, LoadedFile):
            self._recipes.discard(module)
        return imported

    def _import_or_fail(self, file: Path, call: Callable[[], T], execution: Execution) -> T | LoadedFile:
        """Import *file* by calling *call*. An exception becomes a diagnostic of the file."""
        try:
            with collecting(declarations, execution.declared), collecting(files_read, execution.read):
                self._importing(file)
                return call()
        except BaseException as error:  # noqa: BLE001 (a recipe may raise anything)
            return LoadedFile(file, diagnostics=(diagnose_import(file, self.folder, error),))

    def _declarations(self, name: str, imported: ModuleType | LoadedFile) -> LoadedFile:
        """Return the object that the target names in a file, or all declarations."""
        file, module = self.folder / name, self._module_of(name)
        if isinstance(imported, LoadedFile):
            return imported
        if attribute := self._named.get(name):
            return named_declarations(f"{file}:{attribute}", file, imported, attribute)
        if name not in self._named and is_cases(os.path.basename(name)):
            return LoadedFile(file)
        declared = self._executions.declared.get(module, ())
        package = None if name in self._named else self._package
        return declared_in(file, imported, declared, module, package=package, recipes=self._recipes)

    def _load_skills(self, files: DiscoveredFiles) -> list[tuple[LoadedFile, set[str]]]:
        """Return the declarations in the folders of skills, and the paths that were read for each."""
        return [load_skills(folder, self.folder) for folder in sorted({*files.skills, *self._skills})]


def _import_file(name: str, file: Path, executions: Executions) -> ModuleType:
    """Import a file as a module unless it is already imported, and return the module."""
    module = executions.module(name)
    if module is None:
        imported = importlib.import_module(name)
        module = executions.module(name) or imported  # a module can replace itself in `sys.modules`
    executed = executions.by_name.get(name)
    if executed is not None and executed.file not in {"", str(file)}:
        msg = f"{executed.file} is imported instead"
        raise ImportError(msg, name=name, path=executed.file)
    return module


def _report_not_served(files: DiscoveredFiles, loaded: Sequence[LoadedFile]) -> list[LoadedFile]:
    likely = [path for path in files.unserved if mentions_prompts(path)]
    if not (likely or files.unreadable or files.skipped or files.outside or files.hidden):
        return []
    return diagnose_unserved(files, likely, loaded)

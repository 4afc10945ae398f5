"""
The loader: imports the recipes in a folder, a file or a module, and collects their declarations.

No other module imports authors' code. An error in one recipe becomes a diagnostic, and the other recipes are
still loaded.
"""

import importlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Final, TypeVar

from msgspec import Struct

from promptkit.catalog.skills import SKILL_FILE
from promptkit.declarations.base import Decorated, declarations
from promptkit.declarations.skill_files import SkillFolder, paths_below, read_files
from promptkit.declarations.skill_frontmatter import SkillError
from promptkit.errors.diagnostics import Location, Report
from promptkit.errors.exceptions import LoadError
from promptkit.files.reading import HashedBytes
from promptkit.language.files import collecting, files_read
from promptkit.loader.discovery import DiscoveredFiles, find_recipes, is_case_file
from promptkit.loader.finder import Execution, Executions, RecipeFinder
from promptkit.loader.import_errors import diagnose_import, diagnose_unserved
from promptkit.loader.packages import import_package, imported_files, install_finders
from promptkit.loader.recipes import LoadedFile, Recipes, collect_declarations, find_named_declarations
from promptkit.loader.targets import (
    PREFIX_RULE,
    Targets,
    find_markdown,
    is_markdown_target,
    is_within,
    project_root,
    root_for_links,
    split_prefix,
    split_target,
    suggest_folders,
    targets_of,
)

#: The conventional name of a folder of skills, which is not part of their URIs.
_CONVENTION: Final = "skills"


def load_skills(folder: str, root: Path) -> tuple[LoadedFile, set[str]]:
    """
    Load a skill and the skills within it.

    Args:
        folder:
            The absolute path of the skill's folder.

        root:
            The target that contains the skill.

    Returns:
        The declarations, and the paths of the files and folders that were read.
    """
    main_file = Path(folder, SKILL_FILE)
    read_paths = {str(main_file)}
    try:
        locations, entered = paths_below(folder)
        read_paths.update(locations.values(), entered)
        if SKILL_FILE not in locations:  # its name differs in case, or it was removed in the meantime
            msg = f"it has no file named exactly {SKILL_FILE!r}"
            raise SkillError(msg, "add it, or correct the case of its name")  # noqa: TRY301 (reported below)
        files = read_files(locations, main_file.parent)
    except SkillError as error:
        report = Report(f"skill {main_file.parent.name!r}", Location(str(main_file)))
        report.add(error.rule, str(error), error.hint)
        return LoadedFile(main_file, diagnostics=tuple(report.diagnostics)), read_paths
    base = root.parent if Path(folder) == root else root
    skills = tuple(
        _make_skill_folder(Path(folder, inner), base, _files_below(inner, files))
        for inner in _skill_folders(files)
    )
    return LoadedFile(main_file, skills=skills), read_paths


def _skill_folders(files: Iterable[str]) -> list[str]:
    """Return the folders that contain a ``SKILL.md``, as relative paths; ``""`` is the outermost folder."""
    return [folder for folder, _, name in (path.rpartition("/") for path in files) if name == SKILL_FILE]


def _files_below(folder: str, files: Mapping[str, HashedBytes]) -> dict[str, HashedBytes]:
    prefix = f"{folder}/" if folder else ""
    return {path.removeprefix(prefix): content for path, content in files.items() if path.startswith(prefix)}


def _make_skill_folder(path: Path, root: Path, files: Mapping[str, HashedBytes]) -> SkillFolder:
    parts = path.relative_to(root).parts[:-1]
    return SkillFolder(path, "/".join(parts[1:] if parts[:1] == (_CONVENTION,) else parts), files)


def load_markdown(
    folder: Path, names: Iterable[str], before_import: Callable[[Path], None]
) -> tuple[list[LoadedFile], set[str]]:
    """
    Load Markdown prompts.

    Args:
        folder:
            The absolute path of the folder to which *names* are relative.

        names:
            The paths of the files within it.

        before_import:
            See `FolderImport`.

    Returns:
        The declarations, and the paths of the files that were read.
    """
    if not names:
        return [], set()
    from promptkit.declarations.markdown_prompts import read_markdown_prompt  # few targets need it

    loaded, read_paths = list[LoadedFile](), list[Path]()
    for file in map(folder.joinpath, names):
        try:
            with collecting(files_read, read_paths):
                before_import(file)
                prompt, diagnostics = read_markdown_prompt(file, folder)
        except BaseException as error:  # noqa: BLE001 (the author's completions may raise anything)
            prompt, diagnostics = None, (diagnose_import(file, folder, error),)
        loaded.append(LoadedFile(file, () if prompt is None else (prompt,), diagnostics=diagnostics))
    return loaded, {*map(str, read_paths), *(str(loaded_file.file) for loaded_file in loaded)}


T = TypeVar("T")


def do_nothing(_: Path) -> None:
    """Do nothing. This is the default for *before_import*."""


class FolderImport:
    """
    The import of a folder's recipes. Their package is imported on creation.

    Args:
        finder:
            The finder of the folder's modules, which form one package.

        names:
            The paths of the recipe files within the folder, sorted.

        before_import:
            Called with each file before it is imported. If it raises, the file is not imported, and the
            exception is reported as an error of the file.

        explicit_names:
            The files that are themselves targets, each with the name of the object to load; ``""`` means all
            objects. Such a file also serves all prompts that it imports from other modules.

        files:
            All files of the folder, if the folder is the target; otherwise None.

        keep:
            See `promptkit.loader.packages.import_package`.

        skills:
            Folders that were skills in an earlier load. Even if such a folder briefly has no ``SKILL.md``, it
            counts as a skill, so that its programs are not imported as recipes.
    """

    def __init__(  # noqa: PLR0913 (each is an option of a load)
        self,
        finder: RecipeFinder,
        names: Sequence[str],
        before_import: Callable[[Path], None] = do_nothing,
        explicit_names: Mapping[str, str] = MappingProxyType({}),
        *,
        files: DiscoveredFiles | None = None,
        keep: bool = False,
        skills: Iterable[str] = (),
    ) -> None:
        self.folder = folder = finder.folder
        self._skills = [path for path in skills if is_within(path, str(folder)) and os.path.isdir(path)]
        inside = tuple(os.path.join(path, "") for path in self._skills)
        self.names = tuple(name for name in names if not self._path(name).startswith(inside))
        self._before_import = before_import
        self._explicit_names = explicit_names
        self._files = files
        self._package = finder.name
        import_folder = partial(import_package, finder, keep=keep)
        self._failure = None
        if self.names or files is None or not files.has_skills:  # skills alone have no code to run
            self._failure = self._import_or_fail(folder / "__init__.py", import_folder, Execution(""))
        self._executions = finder.executions  # contains the modules that are reused, if any
        self._recipes = set(map(self._module_of, self.names))

    def finish(self) -> Recipes:
        """
        Import the remaining files, and return all declarations.

        Raises:
            LoadError: If a file does not contain the object that its target names.
        """
        if (failure := self._failure) is None:
            imported = {name: self._import(name) for name in self.names}
            by_file = [self._select_declarations(name, result) for name, result in imported.items()]
        else:
            failed = (LoadedFile(self.folder / name, diagnostics=failure.diagnostics) for name in self.names)
            by_file = [*failed, failure]
        read_paths = imported_files().union(
            map(self._path, self.names if failure is None else ["__init__.py"])
        )
        if self._files is not None:
            by_file += diagnose_unserved(self._files, by_file)
            for skill, paths in self._load_skills(self._files):
                by_file.append(skill)
                read_paths |= paths
            prompts, paths = load_markdown(self.folder, self._files.markdown, self._before_import)
            by_file += prompts
            read_paths |= paths
        by_file.sort(key=lambda loaded: str(loaded.file))
        root = None if self._files is None else self.folder
        return Recipes(by_file=by_file, root=root, read_paths=read_paths)

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
        if execution.declared or execution.read_paths:  # for a module that another loader has executed
            self._executions.add(execution)
        if isinstance(imported, LoadedFile):
            self._recipes.discard(module)
        return imported

    def _import_or_fail(self, file: Path, call: Callable[[], T], execution: Execution) -> T | LoadedFile:
        """Import *file* by calling *call*. An exception becomes a diagnostic of the file."""
        try:
            with collecting(declarations, execution.declared), collecting(files_read, execution.read_paths):
                self._before_import(file)
                return call()
        except BaseException as error:  # noqa: BLE001 (a recipe may raise anything)
            return LoadedFile(file, diagnostics=(diagnose_import(file, self.folder, error),))

    def _select_declarations(self, name: str, imported: ModuleType | LoadedFile) -> LoadedFile:
        """Return the object that the target names in a file, or all of the file's declarations."""
        file, module_name = self.folder / name, self._module_of(name)
        if isinstance(imported, LoadedFile):
            return imported
        if attribute := self._explicit_names.get(name):
            return find_named_declarations(f"{file}:{attribute}", file, imported, attribute)
        if name not in self._explicit_names and is_case_file(os.path.basename(name)):
            return LoadedFile(file)
        declared = self._executions.declared.get(module_name, ())
        package = None if name in self._explicit_names else self._package
        return collect_declarations(
            file, imported, declared, module_name, package=package, recipes=self._recipes
        )

    def _load_skills(self, files: DiscoveredFiles) -> list[tuple[LoadedFile, set[str]]]:
        """Return the declarations in each folder of skills, and the paths that were read for them."""
        return [load_skills(folder, self.folder) for folder in sorted({*files.skills, *self._skills})]


def _import_file(name: str, file: Path, executions: Executions) -> ModuleType:
    """Import a file as a module unless it is already imported, and return the module."""
    module = executions.module(name)
    if module is None:
        imported = importlib.import_module(name)
        module = executions.module(name) or imported  # a module can replace itself in `sys.modules`
    executed = executions.by_name.get(name)
    if executed is not None and executed.file not in {"", str(file)}:
        msg = f"{executed.file} was imported instead"
        raise ImportError(msg, name=name, path=executed.file)
    return module


def load(
    target: Targets,
    *,
    before_import: Callable[[Path], None] = do_nothing,
    keep: bool = True,
    cases: bool = False,
    skills: Iterable[str] = (),
) -> Recipes:
    """
    Import the recipes at *target* and return their declarations.

    Args:
        target:
            A folder, whose recipes are the ``*.py`` and ``*.prompt.md`` files in it and below it, except
            tests and names with a leading ``_``; a file; a dotted module name; ``module:object`` or
            ``file.py:object``, where the object is a prompt, a resource or a skill, or a list of these; or a
            pattern for Markdown files, such as ``commands/**/*.md``. Or several of these, each with
            ``PREFIX=`` before it if its prompts and skills need their own namespace.

        before_import:
            Called with each file of a folder before it is imported. If it raises, the file is not imported,
            and the exception is reported as an error of the file.

        keep:
            Whether to reuse modules that are already imported, no matter which code imported them, because a
            test may have patched them. If the loader imported a module that has changed since, all modules
            are imported again.

        cases:
            Whether to import the case files (``cases_*.py``) next to the recipes as well.

        skills:
            See `FolderImport`.

    Raises:
        LoadError: If a folder, file, module or object does not exist, or if targets overlap.
    """
    folders = dict[str, _Folder]()
    names = targets_of(target) or ("",)
    markdown = [(split_prefix(name)[0], *find_markdown(name)) for name in names if is_markdown_target(name)]
    other_targets = [name for name in names if not is_markdown_target(name)]
    module_targets = [name for name in other_targets if not _try_add_folder(name, folders)]
    for name in module_targets:
        _check_module_target(name)
    finders = install_finders([Path(path) for path in folders]) if folders else []
    file_names = [
        [*folder.names, *(_find_case_files(path, folder) if cases else ())]
        for path, folder in folders.items()
    ]
    start_import = partial(FolderImport, before_import=before_import, keep=keep, skills=skills)
    imports = [
        start_import(finder, names, explicit_names=folder.explicit_names, files=folder.files)
        for finder, names, folder in zip(finders, file_names, folders.values(), strict=True)
    ]
    loaded_folders = [part.finish() for part in imports]
    loaded_modules = [_import_module(name, before_import, finders, cases=cases) for name in module_targets]
    parts = [*loaded_folders, *loaded_modules]
    by_file = [
        loaded.with_prefix(folder.prefix_of(loaded.file))
        for recipes, folder in zip(loaded_folders, folders.values(), strict=True)
        for loaded in recipes.by_file
    ]
    by_file += (
        loaded.with_prefix(split_prefix(name)[0])
        for recipes, name in zip(loaded_modules, module_targets, strict=True)
        for loaded in recipes.by_file
    )
    read_paths = set[str]().union(*(recipes.read_paths for recipes in parts))
    for prefix, folder, files in markdown:
        known = {loaded.file for loaded in by_file}
        new = [file for file in files if Path(folder, file) not in known]
        loaded_files, paths = load_markdown(Path(folder), new, before_import)
        by_file += (loaded.with_prefix(prefix) for loaded in loaded_files)
        read_paths |= paths
    root = parts[0].root if parts else Path(markdown[0][1])
    return Recipes(by_file=by_file, root=root, read_paths=read_paths)


class _Folder(Struct):
    """The files to load from a folder: all of its recipes, or only some files, each with its prefix."""

    target: str
    names: list[str] = []
    explicit_names: dict[str, str] = {}
    prefixes: dict[str, str] = {}
    files: DiscoveredFiles | None = None

    def prefix_of(self, file: Path | None) -> str:
        """Return the prefix of a file, or of the whole folder."""
        name = "" if file is None or self.files is not None else file.name
        return self.prefixes.get(name, "")


def _try_add_folder(target: str, folders: dict[str, _Folder]) -> bool:
    """Add the folder or file of a target to *folders*; return False if the target is neither."""
    if not target:
        raise LoadError(target, "pass a folder, a file or a module")
    prefix, _ = split_prefix(target)
    name, attribute = split_target(target)
    try:
        path = os.path.realpath(name)
    except (OSError, ValueError) as error:  # the current folder is deleted, or the path is invalid
        raise LoadError(target, f"it cannot be found: {error}") from None
    is_folder = os.path.isdir(path)
    if not is_folder and not os.path.isfile(path):
        return False
    if not is_folder and not path.endswith(".py"):
        raise LoadError(target, "it is not a Python or Markdown file: pass one, or a folder of recipes")
    _check_overlap(target, path, folders)
    if is_folder:
        files = _find_recipes_in(path, target)
        folders[path] = _Folder(target, [*files.names], prefixes={"": prefix}, files=files)
    else:
        folder, file = os.path.split(path)
        entry = folders.setdefault(folder, _Folder(target))
        entry.names.append(file)
        entry.explicit_names[file], entry.prefixes[file] = attribute, prefix
    return True


def _find_case_files(path: str, folder: _Folder) -> Iterable[str]:
    """Return the case files for the recipes in a folder."""
    if folder.files is not None:
        return folder.files.cases
    return sorted({*filter(is_case_file, os.listdir(path))}.difference(folder.names))


def _check_overlap(target: str, path: str, folders: Mapping[str, _Folder]) -> None:
    """Raise LoadError if *target* shares files with another target, which would be imported twice."""
    for folder, other in folders.items():
        loaded_paths = (
            [folder] if other.files is not None else [os.path.join(folder, name) for name in other.names]
        )
        if any(is_within(path, loaded_path) or is_within(loaded_path, path) for loaded_path in loaded_paths):
            raise LoadError(
                target, f"{other.target!r} includes some of the same files: pass only one of them"
            )


def _check_module_target(target: str) -> None:
    """Raise LoadError if a target that is not a file or a folder cannot be a module either."""
    name, _ = split_target(target)
    prefix, equals, _ = name.partition("=")
    if equals and not {os.sep, "/"}.intersection(prefix):
        reason = f"there is no such file or folder, and {prefix!r} is not a valid prefix: {PREFIX_RULE}"
        raise LoadError(target, reason)
    if name.endswith(".py") or os.sep in name or "/" in name:
        raise LoadError(target, f"there is no such file or folder{suggest_folders(name)}")


def _import_module(
    target: str, before_import: Callable[[Path], None], finders: list[RecipeFinder], *, cases: bool
) -> Recipes:
    """
    Import the module of a target as Python would in the current folder, and return its declarations.

    If the module is a package, its finder is added to *finders*, the finders of this load.

    Raises:
        LoadError: If the module does not exist, or does not contain the object.
    """
    name, attribute = split_target(target)
    _extend_path(name)
    declared: list[Decorated] = []
    try:
        with collecting(declarations, declared):
            module = importlib.import_module(name)
    except BaseException as error:  # noqa: BLE001 (a recipe may raise anything)
        missing = error.name if type(error) is ModuleNotFoundError else None
        if missing and f"{name}.".startswith(f"{missing}."):
            reason = f"there is no such folder, file or module{suggest_folders(name)}"
            raise LoadError(target, reason) from None
        diagnostic = diagnose_import(Path(name), None, error)
        return Recipes(by_file=[LoadedFile(Path(name), diagnostics=(diagnostic,))])
    file = Path(getattr(module, "__file__", None) or name)
    if attribute:
        return Recipes(by_file=[find_named_declarations(target, file, module, attribute)])
    if file.name == "__init__.py":
        files = _find_recipes_in(str(file.parent), target, runs_all=True)
        names = ("__init__.py", *files.names, *(files.cases if cases else ()))
        explicit_names = {"__init__.py": ""}
        (finder,) = install_finders([file.parent], finders)
        finders.append(finder)
        return FolderImport(finder, names, before_import, explicit_names, files=files, keep=True).finish()
    own = [declaration for declaration in declared if declaration.__module__ == name]
    return Recipes(by_file=[collect_declarations(file, module, own, name)])


def _extend_path(name: str) -> None:
    """Append the current folder and its project's root to `sys.path`, so that modules in them are found."""
    with suppress(OSError):  # the current folder may be deleted
        here = os.getcwd()
        folders = (here, project_root(os.path.join(here, name)))
        sys.path += [folder for folder in folders if folder not in sys.path]


def _find_recipes_in(folder: str, target: str, *, runs_all: bool = False) -> DiscoveredFiles:
    try:
        return find_recipes(folder, root_for_links(folder), runs_all=runs_all)
    except OSError as error:
        raise LoadError(target, f"it cannot be read: {error.strerror}") from None

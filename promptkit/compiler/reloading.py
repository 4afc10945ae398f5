"""Reloading: when files change, imports all recipes again while the old catalog is still served."""

import gc
import os
import sys
import time
import typing
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from typing import Final

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.skills import SKILL_FILE
from promptkit.compiler.compilation import LintFile, LoadedRecipes, compile_files
from promptkit.compiler.linking import CompiledFile, Linked, Owners, link, merge, summarize_reload
from promptkit.language.files import cached_text_paths, mark_texts_stale, trusts_cache
from promptkit.loader.import_thread import Importer, ImportTimeoutError, timed_imports
from promptkit.loader.loader import load
from promptkit.loader.packages import ImportSnapshot
from promptkit.loader.targets import (
    Targets,
    find_markdown,
    is_markdown_target,
    split_target,
    targets_of,
    with_path,
)
from promptkit.loader.watching import (
    CHECK_EVERY_S,
    DEBOUNCE,
    POLL_EVERY_S,
    WatchedFiles,
    changes_in,
    find_files,
)
from promptkit.memory import return_free_memory
from promptkit.standard_error import say

#: The number of old versions of the recipes that a server keeps if it is never idle. Freeing them blocks all
#: requests (for half a second with 2,000 files).
_MAX_OLD_VERSIONS: Final = 5

#: Caches that contain parts of recipes: the name of each caching module, and the function that clears its
#: cache. A module that is not imported has nothing to clear.
_CACHES: Final = {
    "promptkit.types.caching": "clear_type_cache",
    "promptkit.types.pydantic": "clear_type_cache",
    "promptkit.types.structuring": "clear_type_cache",
    "promptkit.fragments.text": "clear_cache",
}

#: Caches of registered types, in the same form. Old versions of recipes may still need these types.
_TYPES: Final = {"promptkit.types.scalar_types": "remove_replaced_types"}


class Reloader:
    """
    Loads the recipes at one or more targets, and loads them again whenever their files change.

    A file with an error keeps its previous declarations until it is fixed. If a reload would leave no prompts
    and resources, the previous catalog stays, because a folder can be empty for a moment while Git switches
    branches.

    Args:
        target:
            One or more targets: folders, or files, optionally with the name of an object in the file. Modules
            are loaded but not watched.

        report:
            Called with each new catalog that has diagnostics, if they differ from those of the previous one.

        lint:
            Yields the warnings for one file.

        cases:
            Whether to import case files as well.

        elicit:
            The value of the option `elicit` for prompts that do not set it.

    Attributes:
        is_quiet:
            Whether reports are suppressed, because another process prints them.

        invalid:
            The number of files with errors in the last load; at least 1 if that load failed.
    """

    def __init__(
        self,
        target: Targets,
        report: Callable[[Catalog], None],
        *,
        lint: LintFile = lambda *_: (),
        cases: bool = False,
        elicit: bool | None = None,
    ) -> None:
        self._report, self._lint, self._should_load_cases, self._elicit = report, lint, cases, elicit
        self.is_quiet, self.invalid = False, 0
        self._publish: Callable[[Catalog], None] = lambda _: None
        self._is_idle: Callable[[], bool] = lambda: True
        self._old_versions = 0
        self._stop = Event()
        self._folders: dict[Path, str] = {}
        self._targets = [self._watch_target(name) for name in targets_of(target)]
        self._served: Sequence[CompiledFile] = ()
        self._owners: Owners = {}
        self._read_files: frozenset[str] = frozenset()
        self._current_files = WatchedFiles({}, {}, {})
        self._is_settled, self._is_watching, self._next_check = True, True, 0.0
        self._importer = Importer(self._load, self._stop)
        self._reported: object = None

    @property
    def has_watched_files(self) -> bool:
        """Whether there are files to watch, which is the case if at least one target is not a module."""
        return bool(self._folders)

    def load(self) -> Catalog:
        """
        Load and compile the recipes for the first time.

        Raises:
            LoadError: If a target does not exist.
        """
        trusts_cache.set()
        before = self._find_files()
        with timed_imports() as before_import:
            loaded = self._load(before_import)
        self._served = merge((), loaded.files, owners={})
        linked = link(self._served, root=loaded.recipes.root, elicit=self._elicit)
        self._owners = linked.owners
        self._update_files(before, loaded, self._served)
        self._reported = linked.catalog.diagnostics
        self.invalid = linked.catalog.invalid_file_count
        return linked.catalog

    def start(self, publish: Callable[[Catalog], None], is_idle: Callable[[], bool] = lambda: True) -> None:
        """
        Watch the files from now on. Changes made since `load` are loaded as well.

        Args:
            publish:
                Called on another thread with each new catalog.

            is_idle:
                Returns whether no request is being processed, so that old versions can be freed.
        """
        self._publish, self._is_idle = publish, is_idle
        if self._folders:
            Thread(target=self._run, name="promptkit-reload", daemon=True).start()

    def close(self) -> None:
        """
        Signal the thread to stop, without waiting for it. A hanging import does not keep the process alive.
        """
        self._stop.set()
        trusts_cache.clear()

    def _run(self) -> None:
        """Watch the files until `close` is called. If they cannot be watched, poll them."""
        while not self._stop.is_set():
            self._is_watching = False
            try:
                self._watch()
            except Exception as error:  # noqa: BLE001 (file watching fails in many ways)
                if not self._is_watching and not isinstance(error, FileNotFoundError):
                    watched = " ".join(self._targets)
                    say(f"{watched!r} cannot be watched; it is checked every second instead: {error}")
                    self._poll()
                self._stop.wait(DEBOUNCE.every / 1000)

    def _poll(self) -> None:
        while not self._stop.wait(POLL_EVERY_S):
            if not self._is_settled or self._has_changed():
                self._reload()
            self._free_if_idle()

    def _watch(self) -> None:
        """Watch the folders until one of them is replaced, or the set of folders changes."""
        watched = self._find_files()
        with closing(changes_in(watched.folders_to_watch, self._stop, DEBOUNCE)) as rounds:
            for paths in rounds:
                if due := self._is_due(paths):
                    self._reload()
                self._free_if_idle()
                self._is_watching = True
                moved = not watched.is_in_place or not watched.folders.keys().isdisjoint(paths)
                if moved or (due and self._current_files.folders_to_watch != watched.folders_to_watch):
                    return

    def _is_due(self, paths: Iterable[str]) -> bool:
        """
        Return whether a reload is due: whether files may have changed, at the reported *paths* or elsewhere.
        """
        if not self._is_settled or any(self._current_files.concerns(path) for path in paths):
            return True
        if self._is_watching and time.monotonic() < self._next_check:
            return False
        self._next_check = time.monotonic() + CHECK_EVERY_S
        return self._has_changed()

    def _watch_target(self, target: str) -> str:
        """Add the target's folder to the watched folders, and return the target with an absolute path."""
        # A recipe may change the current folder.
        name, _ = split_target(target)
        if is_markdown_target(target):
            folder, _ = find_markdown(target)
            self._folders |= {Path(folder): ""}
        elif os.path.exists(name):
            path = Path(os.path.abspath(name))
            self._folders |= {path: ""} if path.is_dir() else {path.parent: ".py"}
        else:
            return target
        return with_path(target, os.path.abspath(name))

    def _find_files(self) -> WatchedFiles:
        if not self._folders:
            return self._current_files
        return find_files(self._folders, self._read_files.union(cached_text_paths()))

    def _has_changed(self) -> bool:
        return self._find_files().files != self._current_files.files

    def _update_files(
        self, before: WatchedFiles, loaded: LoadedRecipes, files: Sequence[CompiledFile]
    ) -> bool:
        """
        Record the files of a load. Return whether the files that it read have not changed since *before*.
        """
        read_paths = loaded.recipes.read_paths
        # Old declarations may depend on files that their file no longer reads.
        self._read_files = (
            read_paths
            if all(file.is_complete and not file.age for file in files)
            else self._read_files | read_paths
        )
        self._current_files = self._find_files()
        # Some changes are never reported, such as edits of a file behind a link, or changes during a burst.
        changed = before.changed(self._current_files)
        self._is_settled = not changed
        return changed.isdisjoint(read_paths)

    def _reload(self) -> None:
        """Import and compile all recipes again, and publish them unless no declarations would be left."""
        before = self._find_files()
        self._is_settled = not before.is_being_written(DEBOUNCE.quiet / 1000)
        if not self._is_settled:
            return  # the next round tries again
        if self._old_versions >= _MAX_OLD_VERSIONS:  # the server is never idle
            self._free_old_versions()
        gc.disable()  # with 2,000 files, collections would take a third of the time and block requests
        try:
            self._import_again(before)
        finally:
            gc.freeze()
            gc.enable()
        clear_recipe_caches(all_are_new=not any(file.age for file in self._served))
        self._old_versions += 1

    def _free_if_idle(self) -> None:
        if self._is_idle():
            self._free_old_versions()

    def _free_old_versions(self) -> None:
        if self._old_versions:
            free_unused_versions()
            self._old_versions = 0

    def _import_again(self, before: WatchedFiles) -> None:
        imports = ImportSnapshot()
        mark_texts_stale()
        self._current_files = before
        try:
            loaded = self._importer.run(before.files, self._has_changed)
            merged = merge(self._served, loaded.files, self._owners)
            linked = link(merged, owners=self._owners, root=loaded.recipes.root, elicit=self._elicit)
        except BaseException as error:  # noqa: BLE001 (serving and watching continue after any error)
            imports.restore()
            self._report_failure(error)
            return
        if self._update_files(before, loaded, merged):
            self._serve(merged, linked, imports)
        else:
            imports.restore()  # files changed while they were read, so the next round imports them again

    def _report_failure(self, error: BaseException) -> None:
        self.invalid = max(self.invalid, 1)
        # The other files are imported by the next round.
        self._is_settled = not isinstance(error, ImportTimeoutError)
        reason = str(error) or type(error).__name__
        if self._is_settled and self._reported != reason and not self.is_quiet:
            self._reported = reason
            say(f"the previous recipes are still served: {reason}")

    def _serve(self, merged: Sequence[CompiledFile], linked: Linked, imports: ImportSnapshot) -> None:
        """Publish a catalog, unless all files have errors or no declarations would be left."""
        catalog = linked.catalog
        if not any(file.served_keys for file in merged) and any(file.served_keys for file in self._served):
            imports.restore()
            self._report_changes(
                catalog, "the previous recipes are still served, because no recipe can be loaded"
            )
            return
        old = [file for file in merged if file.age]
        removed = {file.file for file in self._served} - {file.file for file in merged}
        if removed or len(old) < len(merged):
            _call_safely("publish", self._publish, catalog)
        else:
            imports.restore()
        self._served, self._owners = merged, linked.owners
        self._report_changes(catalog, summarize_reload(merged))

    def _load(self, before_import: Callable[[Path], None]) -> LoadedRecipes:
        """Import and compile all recipes."""
        skills = [
            str(loaded.file.parent)
            for loaded in self._served
            if loaded.file is not None and loaded.file.name == SKILL_FILE
        ]
        recipes = load(
            self._targets,
            before_import=before_import,
            keep=False,
            cases=self._should_load_cases,
            skills=skills,
        )
        return LoadedRecipes(recipes, compile_files(recipes, lint=self._lint, before_compile=before_import))

    def _report_changes(self, catalog: Catalog, message: str) -> None:
        if catalog.diagnostics and catalog.diagnostics != self._reported and not self.is_quiet:
            _call_safely("report", self._report, catalog)
        self._reported, self.invalid = catalog.diagnostics, catalog.invalid_file_count
        if message and not self.is_quiet:
            say(message)


def _call_safely(action: str, function: Callable[[Catalog], None], catalog: Catalog) -> None:
    try:
        function(catalog)
    except Exception as error:  # noqa: BLE001 (the next change may succeed)
        say(f"cannot {action} the changed recipes: {type(error).__name__}: {error}")


def free_unused_versions() -> None:
    """Free old versions of the recipes that are no longer in use. This blocks all other threads."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    return_free_memory()


def clear_recipe_caches(*, all_are_new: bool) -> None:
    """
    Clear the caches that may contain parts of replaced recipes, after a reload.

    Args:
        all_are_new:
            Whether every file is served in its newest version.
    """
    for module, function in (_CACHES | _TYPES if all_are_new else _CACHES).items():
        if (forget := getattr(sys.modules.get(module), function, None)) is not None:
            forget()
    # `typing` caches `Annotated[...]` and `Optional[...]`, which refer to classes and functions of recipes.
    for clear in getattr(typing, "_cleanups", ()):
        clear()

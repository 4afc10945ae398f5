"""Reloading: when files change, recipes are compiled anew while the old catalog is still served."""

import gc
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from types import MappingProxyType
from typing import Final, TypeAlias

from msgspec import structs

from promptkit.catalog.catalog import Catalog
from promptkit.compiler.compilation import UNKNOWN, LoadedRecipes, compile_files
from promptkit.compiler.linking import CompiledFile, Linked, Owners, link, merge, summary
from promptkit.compiler.loading.import_clock import ImportClock
from promptkit.compiler.loading.import_thread import Importer, ImportHangs
from promptkit.compiler.loading.loader import RecipeImport, Recipes, begin
from promptkit.compiler.loading.packages import ImportSnapshot, call_if_imported
from promptkit.compiler.loading.targets import Targets, split_target, targets_of
from promptkit.compiler.loading.watcher import DEBOUNCE, WatchedFiles, changes_in, compare, find_files
from promptkit.errors.standard_error import say
from promptkit.files.regular import Stamps
from promptkit.language.files import reads_once

__all__ = ["Reloader"]

_TEXT_FILES: Final = "promptkit.language.text_files"

#: How often all files are checked where they cannot be watched, in seconds.
_POLL_EVERY_S: Final = 1.0

#: How often they are checked where they are watched, in seconds: not all changes are reported, such as those
#: that another computer makes.
_LOOK_EVERY_S: Final = 5.0

#: Loads and compiles recipes. It calls its argument with each file before it imports or compiles it.
Load: TypeAlias = Callable[[Callable[[Path], None]], LoadedRecipes]


class Reloader:
    """
    Loads the recipes at a target, or several, and loads them again whenever their files change.

    A file with an error keeps what it declared before, until it is fixed. If all prompts and resources
    would be gone, what was served stays: a folder is empty for a moment while a branch is switched.

    Args:
        target:
            A folder or a file, perhaps with an object in it; or several. A module is loaded, too, but not
            watched.

        report:
            Called with each catalog whose diagnostics differ from those of the one before.

        lint:
            Whether probable mistakes are among the diagnostics.

        cases:
            Whether the files with cases are imported, too.

    Attributes:
        is_quiet:
            Whether nothing is said of what is found, as another process says it.

        clock:
            Says what the first load imports if that takes long; a thread that has time has to look at it.

        faulty:
            How many files had a fault when they were loaded last; at least 1 if that load failed.
    """

    def __init__(
        self, target: Targets, report: Callable[[Catalog], None], *, lint: bool = False, cases: bool = False
    ) -> None:
        self._report, self._lint, self._has_cases = report, lint, cases
        self.is_quiet, self.faulty, self.clock = False, 0, ImportClock()
        self._publish: Callable[[Catalog], None] = lambda _: None
        self._stop = Event()
        self._folders: dict[Path, str] = {}
        self._targets = [self._located(one) for one in targets_of(target)]
        self._served: Sequence[CompiledFile] = ()
        self._owners: Owners = {}
        self._last: LoadedRecipes | None = None
        self._read: frozenset[str] = frozenset()
        self._known_files = WatchedFiles({}, {}, {})
        self._settled, self._watching, self._holds_old, self._next_look = True, True, False, 0.0
        self._importer = Importer(self._load, self._stop)
        self._reported: object = None
        self._skipped: tuple[str, ...] = ()

    @property
    def watches(self) -> bool:
        """Whether there are files to watch: some target is no module."""
        return bool(self._folders)

    def load(self, load: Load | None = None, seen: Stamps = MappingProxyType({})) -> Catalog:
        """
        Load and compile the recipes for the first time.

        Args:
            load:
                Does so in its own way, such as `promptkit.compiler.lazy_import.LazyImport.load`.

            seen:
                Stamps of files that were looked at a moment ago.

        Raises:
            LoadError: If there is nothing at the target.
        """
        reads_once.set()
        self._known_files = before = self._find_files(seen)
        with self.clock.runs() as importing:
            loaded = (load or self._load)(importing)
        self._served = merge((), loaded.files, owners={})
        linked = link(self._served, root=loaded.recipes.root)
        self._owners = linked.owners
        self._settled, stamps = compare(before.files, loaded.recipes.read)
        self._note_files(loaded, self._served, stamps)
        self._keep_for_next(loaded)
        self._reported = linked.catalog.diagnostics
        self.faulty = linked.catalog.faulty
        return linked.catalog

    def names_by_file(self) -> dict[str, list[str]]:
        """Return the names of the prompts that each recipe file serves, by its path in the only folder."""
        names: dict[str, list[str]] = {}
        if self._last is not None and (folder := self._last.imports.only_folder) is not None:
            for (kind, name), file in self._owners.items():
                if kind == "prompt" and file is not None:
                    names.setdefault(folder.name_of(file), []).append(name)
        return names

    def start(self, publish: Callable[[Catalog], None]) -> None:
        """
        Watch the files from now on. What has changed since `load` is loaded, too.

        Args:
            publish:
                Called on another thread with each new catalog.
        """
        self._publish = publish
        if self._folders:
            Thread(target=self._run, name="promptkit-reload", daemon=True).start()

    def close(self) -> None:
        """Stop soon, without waiting: an import that hangs does not keep the process alive."""
        self._stop.set()
        reads_once.clear()

    def _run(self) -> None:
        """Watch until stopped. Where files cannot be watched, poll."""
        self._prepare_reuse()
        while not self._stop.is_set():
            self._watching = False
            try:
                self._watch()
            except Exception as error:  # noqa: BLE001 (what watches files fails in many ways)
                if not self._watching and not isinstance(error, FileNotFoundError):
                    watched = " ".join(self._targets)
                    say(f"{watched!r} cannot be watched; it is checked every second instead: {error}")
                    self._poll()
                self._stop.wait(DEBOUNCE.every / 1000)

    def _poll(self) -> None:
        while not self._stop.wait(_POLL_EVERY_S):
            if not self._settled or self._has_changed():
                self._reload()

    def _watch(self) -> None:
        """Watch the folders until one of them is replaced, or other folders hold the files."""
        watched = self._find_files()
        self._report_skipped(watched)
        with closing(changes_in(watched.folders_to_watch, self._stop, DEBOUNCE)) as rounds:
            for paths in rounds:
                if due := self._is_due(paths):
                    self._reload(paths)
                else:
                    self._release()
                self._watching = True
                moved = not watched.is_in_place or not watched.folders.keys().isdisjoint(paths)
                if moved or (due and self._known_files.folders_to_watch != watched.folders_to_watch):
                    return

    def _is_due(self, paths: Iterable[str]) -> bool:
        """Whether the recipes may have changed, at one of *paths* or without a word."""
        if not self._settled or any(self._known_files.concerns(path) for path in paths):
            return True
        if self._watching and time.monotonic() < self._next_look:
            return False
        self._next_look = time.monotonic() + _LOOK_EVERY_S
        return self._has_changed()

    def _located(self, target: str) -> str:
        """A target, whose files are watched, as it is found from anywhere: a recipe may change the folder."""
        name, attribute = split_target(target)
        if not os.path.exists(name):
            return target
        path = Path(os.path.abspath(name))
        self._folders |= {path: ""} if path.is_dir() else {path.parent: ".py"}
        return f"{path}:{attribute}" if attribute else str(path)

    def _find_files(self, seen: Stamps = MappingProxyType({})) -> WatchedFiles:
        if not self._folders:
            return self._known_files
        texts = call_if_imported(_TEXT_FILES, "kept_paths") or ()  # few recipes have any
        return find_files(self._folders, self._read.union(texts), seen)

    def _look_at(self, paths: Iterable[str]) -> WatchedFiles:
        """Find the files as they are now. If only known files have changed, no others are looked at."""
        is_known = self._settled and self._watching
        return (self._known_files.after_edits(paths) if is_known else None) or self._find_files()

    def _has_changed(self) -> bool:
        return self._find_files().files != self._known_files.files

    def _note_files(self, loaded: LoadedRecipes, files: Sequence[CompiledFile], stamps: Stamps) -> None:
        """Note the files that a load has read. *stamps* says how they were when they were read."""
        sound = all(file.is_sound and not file.age for file in files)
        # Old declarations may depend on files that their file no longer reads.
        self._read = loaded.recipes.read if sound else self._read | loaded.recipes.read
        after = self._find_files()
        # A file that has come meanwhile may be one that an import has looked for in vain.
        known = {path: stamps.get(path, UNKNOWN) for path in after.files}
        gone = {path for path in stamps.keys() - known.keys() if os.path.dirname(path) in after.scanned}
        # Some changes are never told: of links to an edited file, or if there are too many at once.
        self._settled = self._settled and known == after.files and not any(stamps[path] for path in gone)
        self._known_files = structs.replace(after, files=known)

    def _reload(self, paths: Iterable[str] = ()) -> None:
        """Compile the recipes anew, and publish them unless nothing would be left. *paths* have changed."""
        self._release()
        gc.disable()  # looking for garbage takes time, for which somebody waits
        try:
            self._holds_old = self._load_anew(paths)
        finally:
            gc.enable()

    def _release(self) -> None:
        """Free what the last reload has replaced: not at once, as somebody may wait for what is new."""
        if self._holds_old:
            from promptkit.compiler.loading import old_versions  # most servers never reload

            self._holds_old = False
            old_versions.release(all_are_new=not any(file.age for file in self._served))

    def _load_anew(self, paths: Iterable[str]) -> bool:
        """Do so, and return whether anything was imported: files that are being written are left for now."""
        before = self._look_at(paths)
        self._settled = not before.is_being_written(DEBOUNCE.quiet / 1000)
        if not self._settled:
            return False  # the next round tries again
        imports = ImportSnapshot()
        call_if_imported(_TEXT_FILES, "look_again")
        self._known_files = before
        try:
            loaded = self._importer.run(before.files, self._has_changed)
            merged = merge(self._served, loaded.files, self._owners)
            linked = link(merged, owners=self._owners, root=loaded.recipes.root)
        except BaseException as error:  # noqa: BLE001 (whatever happens here, serving and watching go on)
            imports.restore()
            self.faulty = max(self.faulty, 1)
            # One that was raised outside of the import of any file is tried again.
            self._settled = not isinstance(error, ImportHangs)
            reason = str(error) or type(error).__name__
            if self._reported != reason and not (self._stop.is_set() or self.is_quiet):
                self._reported = reason
                say(f"the previous recipes are still served: {reason}")
            return True
        # Files whose modules are used again were not read.
        same = before.files.items() & self._last.stamps.items() if self._last else ()
        read = loaded.recipes.read.difference(path for path, _ in same)
        self._settled, stamps = compare(before.files, read)
        keeps = self._settled and self._serve(merged, linked, imports)
        if not self._settled:
            imports.restore()  # files changed while they were read, and are read again
        self._note_files(loaded, merged, stamps)
        if keeps:
            self._keep_for_next(loaded)
            self._prepare_reuse()
        return True

    def _serve(self, merged: Sequence[CompiledFile], linked: Linked, imports: ImportSnapshot) -> bool:
        """Publish a catalog, and return whether the modules of this load are those that are served now."""
        catalog = linked.catalog
        lost = not any(file.served for file in merged) and any(file.served for file in self._served)
        if lost:
            imports.restore()
            self._report_changes(catalog, "the previous recipes are still served, as nothing would be left")
            return False
        old = [file for file in merged if file.age]
        gone = {file.file for file in self._served} - {file.file for file in merged}
        serves = bool(gone) or len(old) < len(merged)
        if serves:
            if old:
                imports.restore_missing()
            _call("publish", self._publish, catalog)
        else:
            imports.restore()
        self._served, self._owners = merged, linked.owners
        self._report_changes(catalog, summary(merged))
        return serves

    def _load(self, importing: Callable[[Path], None]) -> LoadedRecipes:
        """Import and compile what has changed since the last load; everything if that cannot be told."""
        for module in ("promptkit.conversion.structuring", "promptkit.conversion.pydantic_types"):
            call_if_imported(module, "forget_types")  # the new modules define them anew
        imports = self._begin(importing)  # no old load is here: an error that a recipe keeps holds this frame
        recipes = imports.finish()
        return LoadedRecipes(imports, recipes, self._compile(recipes, importing))

    def _compile(self, recipes: Recipes, importing: Callable[[Path], None]) -> list[CompiledFile]:
        before = () if self._last is None else zip(self._last.recipes.by_file, self._last.files, strict=True)
        return compile_files(recipes, lint=self._lint, compiling=importing, before=before)

    def _begin(self, importing: Callable[[Path], None]) -> RecipeImport:
        last = self._last
        before = () if last is None else (last.imports, last.changed(self._known_files.files))
        return begin(self._targets, importing, *before, cases=self._has_cases)

    def _keep_for_next(self, loaded: LoadedRecipes) -> None:
        """Keep what the next load starts from."""
        self._last = loaded
        loaded.stamps = self._known_files.files

    def _prepare_reuse(self) -> None:
        """Do now what the next load would have to do otherwise, for which somebody will wait."""
        if self._last is not None and (folder := self._last.imports.only_folder) is not None:
            folder.prepare_reuse()

    def _report_changes(self, catalog: Catalog, what: str) -> None:
        if catalog.diagnostics and catalog.diagnostics != self._reported and not self.is_quiet:
            _call("report", self._report, catalog)
        self._reported, self.faulty = catalog.diagnostics, catalog.faulty
        if what and not self.is_quiet:
            say(what)

    def _report_skipped(self, watched: WatchedFiles) -> None:
        for reason in watched.skipped if watched.skipped != self._skipped else ():
            say(f"changes are not seen in {reason}")
        self._skipped = watched.skipped


def _call(what: str, call: Callable[[Catalog], None], catalog: Catalog) -> None:
    try:
        call(catalog)
    except Exception as error:  # noqa: BLE001 (the next change may go well)
        say(f"cannot {what} the changed recipes: {type(error).__name__}: {error}")

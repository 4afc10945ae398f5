"""
Reloading: recipes are compiled anew when their files change, beside the catalog that is served.

The watching is done by the library watchfiles, on a thread of its own, once that is started.
"""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from typing import Final

from msgspec import structs

from promptkit.catalog.catalog import Catalog
from promptkit.compiler.compilation import CompiledFile, compile_files, compose, merge, owners_of
from promptkit.compiler.loading.import_thread import Hanging, ImportHangs, ImportThread
from promptkit.compiler.loading.loader import load
from promptkit.compiler.loading.packages import KeptImports
from promptkit.compiler.loading.targets import split_target
from promptkit.compiler.loading.watched_files import Files, Stamp, find_files, stamp_of
from promptkit.compiler.recipes import Recipes
from promptkit.errors.diagnostics import printable
from promptkit.errors.standard_error import say

__all__ = ["Reloader"]

#: How long nothing may have changed before recipes are compiled anew, and how long that is
#: waited for while more and more files change; in milliseconds.
_QUIET: Final = 50
_PATIENCE: Final = 1000

#: How often to look whether the watched folders are still in their places, in milliseconds.
_ROUND: Final = 250

#: How often to look at all files where they cannot be watched, in seconds.
_POLL: Final = 1.0

#: After how many seconds a file whose import has not ended is told of, and is given up as soon as
#: anything is edited; and after how many it is given up in any case.
_SLOW: Final = 5.0
_HANGS: Final = 60.0


class Reloader:
    """
    Loads the recipes at a target, and does so anew whenever their files change.

    Each file keeps what it last declared without a fault until it is mended; all others are
    published as they are now. If all prompts and resources would be gone, what was served stays:
    a folder is empty for a moment while a branch is switched.

    Args:
        target:
            A folder or a file, perhaps with an object in it. A module is loaded, too, but is not
            watched: where it comes from is Python's affair.

        complain:
            Called with a catalog whose diagnostics are not those of the catalog before.
    """

    def __init__(self, target: str | Path, complain: Callable[[Catalog], None]) -> None:
        name, attribute = split_target(str(target))
        self._complain = complain
        self._publish: Callable[[Catalog], None] = lambda _: None
        self._stop = Event()
        self._folder: Path | None = None
        self._suffix, self._target = "", str(target)
        if os.path.exists(name):
            path = Path(os.path.abspath(name))  # a recipe may change the current folder
            self._folder, self._suffix = (path, "") if path.is_dir() else (path.parent, ".py")
            self._target = f"{path}:{attribute}" if attribute else str(path)
        self._served: Sequence[CompiledFile] = ()
        self._read: frozenset[Path] = frozenset()
        self._known = Files({}, {}, frozenset(), "")
        self._settled = self._watching = True
        self._hanging: dict[Path, Hanging] = {}
        self._took: dict[Path, float] = {}
        self._told: object = None
        self._passed_over: tuple[str, ...] = ()

    @property
    def watches(self) -> bool:
        """
        Whether changes are seen at all: there are files to watch, and not only a module.
        """
        return self._folder is not None

    def load(self) -> Catalog:
        """
        Load and compile the recipes for the first time.

        Raises:
            LoadError: If there is nothing at the target.
        """
        self._known = before = self._look()
        thread = ImportThread(self._load, {})
        thread.run()  # right here: nobody is served yet, and Ctrl-C is heard
        recipes, files = thread.result()
        self._took = thread.took
        self._served = merge((), files)
        self._note(before, recipes, self._served)
        catalog = compose(self._served, root=recipes.root)
        self._told = catalog.diagnostics
        return catalog

    def start(self, publish: Callable[[Catalog], None]) -> None:
        """
        Take in what has changed since the recipes were loaded, and what changes from now on.

        Args:
            publish:
                Called on another thread with each catalog that takes the place of the one before.
        """
        self._publish = publish
        if self._folder is not None:
            Thread(target=self._run, name="promptkit-reload", daemon=True).start()

    def close(self) -> None:
        """
        Stop soon. Nothing is waited for: an import that still runs cannot keep the process.
        """
        self._stop.set()

    def _run(self) -> None:
        """
        Watch until told to stop; where that turns out to be impossible, look again and again.
        """
        while not self._stop.is_set():
            self._watching = False
            try:
                self._watch()
            except Exception as error:  # noqa: BLE001 (what watches files fails in many ways)
                if not self._watching and not isinstance(error, FileNotFoundError):
                    say(f"{self._target!r} cannot be watched, and is looked at every second: {error}")
                    self._poll()
                self._stop.wait(_ROUND / 1000)

    def _poll(self) -> None:
        """
        Look at all files every second, until told to stop.
        """
        while not self._stop.wait(_POLL):
            if not self._settled or self._look().files != self._known.files:
                self._reload()

    def _watch(self) -> None:
        """
        Watch the folders that are there, until one of them is replaced, or others hold the files.
        """
        from watchfiles import watch  # slow to import

        watched = self._look()
        self._tell_passed_over(watched)
        rounds = watch(
            *watched.watchable,
            recursive=False,
            step=_QUIET,
            debounce=_PATIENCE,
            rust_timeout=_ROUND,
            yield_on_timeout=True,
            stop_event=self._stop,
            raise_interrupt=False,
        )
        with closing(rounds):
            for changes in rounds:
                paths = {path for _, path in changes}
                if due := self._is_due(paths):
                    self._reload()
                self._watching = True
                moved = not watched.is_in_place or not watched.folders.keys().isdisjoint(paths)
                if moved or (due and self._known.watchable != watched.watchable):
                    return

    def _is_due(self, paths: Iterable[str]) -> bool:
        """
        Return whether the recipes may have changed: at one of *paths*, or while nobody watched.
        """
        if not self._settled or any(self._known.concerns(path) for path in paths):
            return True
        return not self._watching and self._look().files != self._known.files

    def _look(self) -> Files:
        """
        Return what the files are now.
        """
        if self._folder is None:
            return self._known
        return find_files(self._folder, self._read, self._suffix)

    def _note(self, before: Files, recipes: Recipes, files: Sequence[CompiledFile]) -> None:
        """
        Note which files *recipes* were made from, and whether any has changed while they were read.
        """
        sound = all(file.is_sound and not file.age for file in files)
        # What is served as it was may have read what its file does not name any more.
        self._read = frozenset(recipes.read) if sound else self._read.union(recipes.read)
        after = self._look()
        known = {path: before.files.get(path, stamp) for path, stamp in after.files.items()}
        self._known = structs.replace(after, files=known)
        read = before.files.keys() & set(map(str, recipes.read))
        self._settled = all(before.files[path] == after.files.get(path) for path in read)

    def _reload(self) -> None:
        """
        Compile the recipes anew, and publish them unless nothing would be left.
        """
        self._settled = not self._look().is_being_written(_QUIET / 1000)
        if not self._settled:
            return  # it is looked at again in the next round
        imports = KeptImports()
        self._known = before = self._look()
        try:
            recipes, files = self._import()
            merged = merge(self._served, files)
            catalog = compose(merged, owners=owners_of(self._served), root=recipes.root)
        except BaseException as error:  # noqa: BLE001 (whatever happens here, serving and watching go on)
            imports.put_back()
            self._settled = not isinstance(error, ImportHangs)  # which came too late to concern a file
            reason = str(error) or type(error).__name__
            if self._told != reason and not self._stop.is_set():
                self._told = reason
                say(f"the recipes as they were are still served: {reason}")
            return
        self._note(before, recipes, merged)
        if self._settled:
            self._take(merged, catalog, imports)
        else:  # files changed while they were read, and are read again
            imports.put_back()

    def _take(self, merged: Sequence[CompiledFile], catalog: Catalog, imports: KeptImports) -> None:
        """
        Publish *catalog*, which is made of the files that were *merged*, and say what is still old.
        """
        lost = not any(file.served for file in merged) and any(file.served for file in self._served)
        if lost:
            imports.put_back()
            self._tell(catalog, "the recipes as they were are still served, as nothing would be left")
            return
        anew = [file for file in merged if not file.age]
        gone = {file.file for file in self._served} - {file.file for file in merged}
        if anew or gone:
            if len(anew) < len(merged):
                imports.fill_in()
            _guarded("publish", self._publish, catalog)
        else:
            imports.put_back()
        self._served = merged
        self._tell(catalog, _what_is_old(merged))

    def _import(self) -> tuple[Recipes, list[CompiledFile]]:
        """
        Import and compile the recipes on another thread; leave out a file whose import hangs.

        Raises:
            LoadError: If there is nothing at the target.
        """
        over = False
        while not over:
            thread = ImportThread(self._load, self._hanging)
            thread.start()
            over = self._wait_for(thread)
        self._took |= thread.took
        return thread.result()

    def _wait_for(self, thread: ImportThread[tuple[Recipes, list[CompiledFile]]]) -> bool:
        """
        Wait until *thread* is done, and return True; return False if it was given up.

        A file whose import takes long is told of. It is left out once anything is edited, as the
        author does not wait for it any longer, or in the end.
        """
        told: Path | None = None
        while not thread.wait(_ROUND / 1000):
            if self._stop.is_set():
                raise ImportHangs
            file, seconds = thread.current()
            if file is None or seconds < _SLOW + 2 * self._took.get(file, 0.0):
                continue
            if file != told:
                told, name = file, printable(str(file))
                say(f"{name} has been importing for {seconds:.0f} s; the recipes are still served as before")
            if seconds >= _HANGS or self._look().files != self._known.files:
                # It may have been mended just now: it hung as it was when the load began.
                self._hanging[file] = {path: self._stamp(path) for path in thread.involved(file)}
                if not thread.leave(file, 1.0):
                    return False
        return True

    def _stamp(self, path: str) -> Stamp | None:
        """
        Return what a file was when the load began; what it is now, if nobody looked then.
        """
        known = self._known.files
        return known[path] if path in known else stamp_of(path)

    def _load(self, importing: Callable[[Path], None]) -> tuple[Recipes, list[CompiledFile]]:
        """
        Return the recipes as they are now, compiled file by file.
        """
        if (structuring := sys.modules.get("promptkit.conversion.structuring")) is not None:
            structuring.forget_types()  # which are replaced by those of the modules to be loaded
        recipes = load(self._target, importing)
        return recipes, compile_files(recipes, compiling=importing)

    def _tell(self, catalog: Catalog, what: str) -> None:
        """
        Say what is wrong with the recipes, unless that has just been said, and *what* is served.
        """
        if catalog.diagnostics != self._told and catalog.diagnostics:
            _guarded("complain", self._complain, catalog)
        self._told = catalog.diagnostics
        if what:
            say(what)

    def _tell_passed_over(self, watched: Files) -> None:
        """
        Say which folders cannot be looked into, unless that has just been said.
        """
        if watched.passed_over != self._passed_over:
            self._passed_over = watched.passed_over
            for reason in watched.passed_over:
                say(f"changes are not seen in {reason}")


def _what_is_old(files: Sequence[CompiledFile]) -> str:
    """
    Return which files are not served as they are now, and which have a fault; nothing if none.
    """
    old = [printable(file.file.name) for file in files if file.file and file.age]
    faulty = [printable(file.file.name) for file in files if file.file and not file.age and not file.is_sound]
    said = [f"still as before, until mended: {', '.join(old)}"] if old else []
    said += [f"at fault: {', '.join(faulty)}"] if faulty else []
    return f"reloaded; {'; '.join(said)}" if said else ""


def _guarded(what: str, call: Callable[[Catalog], None], catalog: Catalog) -> None:
    """
    Call *call*, and say so if it fails.
    """
    try:
        call(catalog)
    except Exception as error:  # noqa: BLE001 (the next change may go well)
        say(f"cannot {what} the changed recipes: {type(error).__name__}: {error}")

"""
Reloading: recipes are compiled anew when their files change, beside the catalog that is served.

The watching is done by the library watchfiles, on a thread of its own, once that is started.
"""

import sys
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from typing import Final

from msgspec import structs

from promptkit import compiler
from promptkit.catalog import Catalog
from promptkit.diagnostics import Severity
from promptkit.files import Files, find_files
from promptkit.loader import load
from promptkit.packages import keep_imports
from promptkit.standard_error import say
from promptkit.targets import split_target

__all__ = ["Reloader"]

#: How long nothing may have changed before recipes are compiled anew, and how long that is
#: waited for while more and more files change; in milliseconds.
_QUIET: Final = 50
_PATIENCE: Final = 1000

#: How often to look whether the watched folders are still in their places, in milliseconds.
_ROUND: Final = 250


class Reloader:
    """
    Loads the recipes at a target, and does so anew whenever their files change.

    What is published is never worse than what was: a catalog in which a file is broken that was
    not, or that has lost all of its prompts, is held back until that is mended.

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
        if Path(name).exists():
            path = Path.cwd() / name  # a recipe may change the current folder
            self._folder, self._suffix = (path, "") if path.is_dir() else (path.parent, ".py")
            self._target = f"{path}:{attribute}" if attribute else str(path)
        self._served = Catalog()
        self._files_served: frozenset[Path] = frozenset()
        self._files: frozenset[Path] = frozenset()
        self._known = Files({}, {}, frozenset(), "")
        self._settled = self._watching = True
        self._told: object = None

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
        self._served = self._compile()
        self._files_served = self._files
        self._told = self._served.diagnostics, False
        return self._served

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
        Watch until told to stop, or until that turns out to be impossible.
        """
        while not self._stop.is_set():
            self._watching = False
            try:
                self._watch()
            except Exception as error:  # noqa: BLE001 (what watches files fails in many ways)
                if not self._watching and not isinstance(error, FileNotFoundError):
                    say(f"later changes of {self._target!r} are not seen, as it cannot be watched: {error}")
                    return
                self._stop.wait(_ROUND / 1000)

    def _watch(self) -> None:
        """
        Watch the folders that are there, until one of them is replaced, or others hold the files.
        """
        from watchfiles import watch  # slow to import

        watched = self._look()
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
        return find_files(self._folder, self._files, self._suffix)

    def _compile(self) -> Catalog:
        """
        Return the catalog of what the files are now, and note what that was.

        Raises:
            LoadError: If there is nothing at the target.
        """
        self._settled = True
        self._known = before = self._look()
        if (structuring := sys.modules.get("promptkit.structuring")) is not None:
            structuring.forget_types()  # which are replaced by those of the modules to be loaded
        recipes = load(self._target)
        catalog = compiler.compile(recipes)
        self._files = self._files_served.union(recipes.read)
        after = self._look()
        known = {path: before.files.get(path, stamp) for path, stamp in after.files.items()}
        self._known = structs.replace(after, files=known)
        read = before.files.keys() & set(map(str, recipes.read))
        self._settled = all(before.files[path] == after.files.get(path) for path in read)
        return catalog

    def _reload(self) -> None:
        """
        Compile the recipes anew, and publish them if nothing is worse than it was.
        """
        self._settled = not self._look().is_being_written(_QUIET / 1000)
        if not self._settled:
            return  # it is looked at again in the next round
        put_back = keep_imports()
        try:
            catalog = self._compile()
        except BaseException as error:  # noqa: BLE001 (whatever happens here, serving and watching go on)
            put_back()
            reason = str(error) or type(error).__name__
            if self._told != reason:
                self._told = reason
                say(f"the recipes as they were are still served: {reason}")
            return
        if not self._settled:  # files changed while they were read, and are read again
            put_back()
        elif self._is_worse(catalog):
            put_back()
            self._tell(catalog, held=True)
        else:
            self._served, self._files_served = catalog, self._files
            _guarded("publish", self._publish, catalog)
            self._tell(catalog, held=False)

    def _is_worse(self, catalog: Catalog) -> bool:
        """
        Return whether *catalog* must not take the place of the one that is served.
        """
        return bool(_broken(catalog) - _broken(self._served)) or (not catalog and bool(self._served))

    def _tell(self, catalog: Catalog, *, held: bool) -> None:
        """
        Say what is wrong with the recipes, unless that has just been said.
        """
        told = catalog.diagnostics, held
        if told == self._told:
            return
        self._told = told
        if catalog.diagnostics:
            _guarded("complain", self._complain, catalog)
        if held:
            say("the recipes as they were are still served")


def _broken(catalog: Catalog) -> set[str]:
    """
    Return the files in which something is wrong that keeps it from being served.
    """
    found = catalog.diagnostics
    return {diagnostic.location.file for diagnostic in found if diagnostic.severity is Severity.ERROR}


def _guarded(what: str, call: Callable[[Catalog], None], catalog: Catalog) -> None:
    """
    Call *call*, and say so if it fails.
    """
    try:
        call(catalog)
    except Exception as error:  # noqa: BLE001 (the next change may go well)
        say(f"cannot {what} the changed recipes: {type(error).__name__}: {error}")

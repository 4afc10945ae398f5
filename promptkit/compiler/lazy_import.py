"""Lazy import: recipe files are imported one by one, first those whose prompts are asked for."""

import time
from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Final

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.compiler.compilation import compile_files
from promptkit.compiler.composition import CompiledFile
from promptkit.compiler.loaded_recipes import LoadedRecipes
from promptkit.compiler.loading.folder_import import ignore
from promptkit.compiler.loading.loader import FolderImport, begin
from promptkit.compiler.recipes import LoadedFile, Recipes

__all__ = ["IMPORT_THREAD", "LazyCatalog", "LazyImport"]

#: What the threads are called that import.
IMPORT_THREAD: Final = "promptkit-import"

#: The pause after each file, in which another thread gets Python's lock if it wants it.
_PAUSE_S: Final = 0.0005

#: How long a file that is asked for waits for the one that is being imported, in seconds.
_PATIENCE_S: Final = 0.05


class LazyCatalog(Catalog):
    """
    A catalog in which a prompt is found as soon as its own file is imported. All else waits for all files.

    Args:
        find:
            Returns the prompt of a name, once its file is imported.

        whole:
            Returns the whole catalog, once all files are imported.
    """

    __slots__ = ("_find", "_whole")

    def __init__(self, find: Callable[[str], CompiledPrompt], whole: Callable[[], Catalog]) -> None:
        self._find = find
        self._whole = whole

    def __getitem__(self, name: str) -> CompiledPrompt:
        """Raises `UnknownPrompt` if no prompt has this name."""
        return self._find(name)

    def visible_to(self, scopes: frozenset[str]) -> "LazyCatalog":
        """Return what is left for a caller with *scopes*, without waiting for what is not imported yet."""
        whole = cache(lambda: self._whole().visible_to(scopes))

        def find(name: str) -> CompiledPrompt:
            prompt = self._find(name)
            return prompt if prompt.scopes <= scopes else whole()[name]  # unknown, as any other name

        return LazyCatalog(find, whole)

    def __getattr__(self, name: str) -> Any:
        # Nothing that a whole catalog holds is set here, so all else waits for that.
        return getattr(self._whole(), name)


class LazyImport:
    """
    An import of recipes by one thread, while others wait for what they need of it.

    A file whose import takes long delays only those who need it: others are imported beside it.

    Args:
        target:
            As for `promptkit.compiler.loading.loader.load`.

        names:
            By the path of each recipe file within the folder: the names of the prompts that it is known to
            declare. What it declares in truth is served, if that is something else.

    Attributes:
        catalog:
            What is imported, before all of it is.
    """

    def __init__(self, target: str | Path, names: Mapping[str, Container[str]]) -> None:
        self.catalog = LazyCatalog(self.find, self.whole)
        self._target = target
        self._names = names
        self._asked: dict[str, dict[str, Event]] = {}  # by file, and by the name of the prompt
        self._compiled: dict[str, tuple[LoadedFile, CompiledFile]] = {}
        self._prompts: dict[str, CompiledPrompt] = {}
        self._begun: FolderImport | None = None
        self._left: dict[str, None] = {}
        self._beside: list[Event] = []
        self._whole: Catalog | None = None
        self._error: BaseException | None = None
        self._ended = Event()
        self._lock = Lock()
        self._waiting = 0

    def find(self, name: str) -> CompiledPrompt:
        """
        Return a prompt, once the file that declares it is imported.

        Raises:
            UnknownPrompt: If there is none of this name. All files are imported before that is known.

            BaseException: What `end` was given.
        """
        found = self._prompts.get(name)
        if found is None and (file := self._file_of(name)) is not None:
            self._wait_for(name, file)
            found = self._prompts.get(name)
        return self.whole()[name] if found is None else found

    def expect(self, name: str) -> None:
        """Have a prompt imported before the others. Returns at once."""
        if (file := self._file_of(name)) is not None:
            self._ask(name, file)

    def whole(self) -> Catalog:
        """
        Return the catalog of all files, once they are imported.

        Raises:
            BaseException: What `end` was given.
        """
        self._wait(self._ended)
        if self._whole is None:
            raise self._error or RuntimeError
        return self._whole

    def load(self, importing: Callable[[Path], None]) -> LoadedRecipes:
        """
        Import and compile all files on this thread, one by one. `end` has to be called afterwards.

        Args:
            importing:
                As for `promptkit.compiler.loading.loader.begin`.

        Raises:
            LoadError: If there is nothing at the target.
        """
        begun = begin(self._target, importing)
        if isinstance(begun, FolderImport):
            self._begin(begun)
            while (name := self._next()) is not None:
                self._import(name, begun, importing)
                time.sleep(_PAUSE_S)
            for event in self._beside:
                event.wait()
        recipes = begun.finish()
        files = [self._compiled_as(loaded, importing) for loaded in recipes.by_file]
        return LoadedRecipes(begun, recipes, files)

    def end(self, result: Catalog | BaseException) -> None:
        """
        Let all go on that wait.

        Args:
            result:
                The catalog of all files, or why there is none.
        """
        if isinstance(result, Catalog):
            self._whole = result
        else:
            self._error = result
        with self._lock:
            self._ended.set()
            for asked in self._asked.values():
                for event in asked.values():
                    event.set()

    def wait_for_waiting(self, seconds: float) -> None:
        """Wait until nobody waits for a file, for *seconds* at most."""
        until = time.monotonic() + seconds
        while self._waiting and time.monotonic() < until:
            self._ended.wait(0.01)

    def _file_of(self, name: str) -> str | None:
        # A dictionary of all prompts takes longer to make than the few that are asked for take to find.
        return next((file for file, declared in self._names.items() if name in declared), None)

    def _wait_for(self, name: str, file: str) -> None:
        event = self._ask(name, file)
        if not self._wait(event, _PATIENCE_S):
            # Not on this thread, which is given up when its request takes too long.
            with suppress(RuntimeError):  # without another thread, the file has to wait
                Thread(target=self._import_beside, args=(file,), name=IMPORT_THREAD, daemon=True).start()
            self._wait(event)

    def _ask(self, name: str, file: str) -> Event:
        """Have the file of a prompt imported next; return what is set when the prompt is there, or is not."""
        with self._lock:
            event = self._asked.setdefault(file, {}).setdefault(name, Event())
            if name in self._prompts or file in self._compiled or self._ended.is_set():
                event.set()
            return event

    def _wait(self, event: Event, seconds: float | None = None) -> bool:
        if event.is_set():
            return True
        with self._lock:
            self._waiting += 1
        try:
            return event.wait(seconds)
        finally:
            with self._lock:
                self._waiting -= 1

    def _begin(self, begun: FolderImport) -> None:
        with self._lock:
            self._begun = begun
            self._left = dict.fromkeys(begun.names)

    def _next(self) -> str | None:
        with self._lock:
            return next((file for file in self._asked if file in self._left), next(iter(self._left), None))

    def _import(self, name: str, begun: FolderImport, importing: Callable[[Path], None]) -> None:
        """Import and compile a file, unless another thread does so."""
        if self._take(name):
            self._compile(name, begun.load(name), importing)

    def _import_beside(self, name: str) -> None:
        done = Event()
        if self._take(name, done) and self._begun is not None:
            try:
                self._compile(name, self._begun.load(name), ignore)
            finally:
                self._release(name)
                done.set()

    def _take(self, name: str, done: Event | None = None) -> bool:
        """Return whether nobody has taken a file. The caller imports it, and sets *done* afterwards."""
        with self._lock:
            if name not in self._left:
                return False
            del self._left[name]
            if done is not None:
                self._beside.append(done)
            return True

    def _compile(self, name: str, loaded: LoadedFile, importing: Callable[[Path], None]) -> None:
        """Compile a file, and first the prompts of it that somebody waits for."""
        with self._lock:
            asked = set(self._asked.get(name, ()))
        if prompts := tuple(prompt for prompt in loaded.prompts if prompt.options.name in asked):
            self._publish(name, _compile(LoadedFile(loaded.file, prompts), importing))
            time.sleep(_PAUSE_S)
        compiled = _compile(loaded, importing)
        self._publish(name, compiled)
        with self._lock:
            self._compiled[name] = loaded, compiled
        self._release(name)

    def _publish(self, name: str, compiled: CompiledFile) -> None:
        """Let those go on who wait for what was compiled of a file."""
        for prompt in compiled.prompts:
            if prompt.name in self._names.get(name, ()):
                self._prompts.setdefault(prompt.name, prompt)
                if (event := self._asked.get(name, {}).get(prompt.name)) is not None:
                    event.set()

    def _release(self, name: str) -> None:
        """Let all go on who wait for a file: what it does not hold now, it does not declare."""
        with self._lock:
            for event in self._asked.get(name, {}).values():
                event.set()

    def _compiled_as(self, loaded: LoadedFile, importing: Callable[[Path], None]) -> CompiledFile:
        """What was compiled of a file before, unless a later file has changed what it declares."""
        begun, file = self._begun, loaded.file
        known = None if begun is None or file is None else self._compiled.get(begun.name_of(file))
        return known[1] if known is not None and known[0] == loaded else _compile(loaded, importing)


def _compile(loaded: LoadedFile, importing: Callable[[Path], None]) -> CompiledFile:
    (compiled,) = compile_files(Recipes(by_file=[loaded]), compiling=importing)
    return compiled

"""Lazy import: recipe files are imported one by one, first those whose prompts are asked for."""

import time
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Condition, Thread
from typing import Any, Final

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.compiler.compilation import LoadedRecipes, compile_files
from promptkit.compiler.linking import CompiledFile
from promptkit.compiler.loading.folder_import import do_nothing
from promptkit.compiler.loading.loader import FolderImport, begin
from promptkit.compiler.loading.targets import Targets
from promptkit.compiler.recipes import LoadedFile, Recipes
from promptkit.compiler.reloading import Load

__all__ = ["LazyCatalog", "LazyImport"]

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
            declare. What it declares in truth is served, if that is something else. If nothing is known, all
            files are imported together.

        expected:
            The names of prompts that are needed first.

    Attributes:
        catalog:
            What is imported, before all of it is.
    """

    def __init__(
        self, target: Targets, names: Mapping[str, Container[str]], expected: Iterable[str] = ()
    ) -> None:
        self.catalog = LazyCatalog(self.find, self.whole)
        self._target = target
        self._names = names
        self._begun: FolderImport | None = None
        self._asked: dict[str, set[str]] = {}  # the names of prompts, by their files
        self._left: dict[str, None] = {}
        self._beside = 0
        self._compiled: dict[str, tuple[LoadedFile, CompiledFile] | None] = {}
        self._prompts: dict[str, CompiledPrompt] = {}
        self._result: Catalog | BaseException | None = None
        self._error: BaseException | None = None
        self._thread: Thread | None = None
        self._waiting = 0
        self._changed = Condition()
        for name in expected:
            self._expect(name)

    def start(
        self,
        load: Callable[[Load], Catalog],
        then: Callable[[Catalog], object],
        failed: Callable[[], object],
        refusal: BaseException,
    ) -> None:
        """
        Begin to import on a thread of its own. Returns at once.

        Args:
            load:
                Loads all recipes, given what imports them.

            then:
                Called with the whole catalog, on that thread.

            failed:
                Called if the recipes cannot be imported at all.

            refusal:
                Raised then in those who wait.
        """

        def run() -> None:
            try:
                catalog = load(self.load)
            except BaseException as error:  # noqa: BLE001 (`wait` and `finish` raise it)
                self._error = error
                self.end(refusal)
                failed()
            else:
                self.end(catalog)
                then(catalog)

        self._thread = Thread(target=run, name="promptkit-import", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> Catalog | None:
        """
        Return the catalog of all files; None if they are not imported after so many *seconds*.

        Raises:
            BaseException: What has kept the recipes from being imported.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._result is not None, seconds)
        if self._error is not None:
            raise self._error
        return self._result if isinstance(self._result, Catalog) else None

    def finish(self, seconds: float) -> bool:
        """
        Wait until the thread has ended, for *seconds* at most, and return whether it has.

        Raises:
            BaseException: What has kept the recipes from being imported.
        """
        if self._thread is not None:
            self._thread.join(seconds)
        if self._error is not None:
            raise self._error
        return self._thread is None or not self._thread.is_alive()

    def find(self, name: str) -> CompiledPrompt:
        """
        Return a prompt, once the file that declares it is imported.

        Raises:
            UnknownPrompt: If there is none of this name. All files are imported before that is known.

            BaseException: What `end` was given.
        """
        if name not in self._prompts and (file := self._expect(name)) is not None:
            self._wait_for(name, file)
        found = self._prompts.get(name)
        return self.whole()[name] if found is None else found

    def whole(self) -> Catalog:
        """
        Return the catalog of all files, once they are imported.

        Raises:
            BaseException: What `end` was given.
        """
        self._wait(lambda: self._result is not None)
        if isinstance(self._result, Catalog):
            return self._result
        raise self._result or RuntimeError

    def load(self, importing: Callable[[Path], None]) -> LoadedRecipes:
        """
        Import and compile all files on this thread. `end` has to be called afterwards.

        Args:
            importing:
                As for `promptkit.compiler.loading.loader.begin`.

        Raises:
            LoadError: If there is nothing at the target.
        """
        begun = begin(self._target, importing)
        if self._names and (folder := begun.only_folder) is not None:
            with self._changed:
                self._begun, self._left = folder, dict.fromkeys(folder.names)
            while (name := self._next()) is not None:
                self._import(name, importing)
                time.sleep(_PAUSE_S)
            with self._changed:
                self._changed.wait_for(lambda: not self._beside)
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
        with self._changed:
            self._result = result
            self._changed.notify_all()

    def hold(self, seconds: float, refusal: Callable[[], BaseException]) -> None:
        """
        Wait until nobody waits for a file. After so many *seconds*, a *refusal* is raised in those who do.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: not self._waiting, seconds):
                self.end(refusal())

    def _expect(self, name: str) -> str | None:
        """Have a prompt imported before the others. Returns its file at once; None if that is not known."""
        # A dictionary of all prompts takes longer to make than the few that are asked for take to find.
        file = next((file for file, declared in self._names.items() if name in declared), None)
        if file is not None:
            with self._changed:
                self._asked.setdefault(file, set()).add(name)
        return file

    def _wait_for(self, name: str, file: str) -> None:
        def is_known() -> bool:
            # What a file does not hold now, it does not declare.
            return name in self._prompts or file in self._compiled or self._result is not None

        if not self._wait(is_known, _PATIENCE_S):
            # Not on this thread, which is given up when its request takes too long.
            with suppress(RuntimeError):  # without another thread, the file has to wait
                Thread(target=self._import_beside, args=(file,), name="promptkit-import", daemon=True).start()
            self._wait(is_known)

    def _wait(self, holds: Callable[[], bool], seconds: float | None = None) -> bool:
        with self._changed:
            self._waiting += 1
            try:
                return self._changed.wait_for(holds, seconds)
            finally:
                self._waiting -= 1
                self._changed.notify_all()

    def _next(self) -> str | None:
        with self._changed:
            return next((file for file in self._asked if file in self._left), next(iter(self._left), None))

    def _import_beside(self, name: str) -> None:
        with self._changed:
            self._beside += 1
        try:
            self._import(name, do_nothing)
        finally:
            with self._changed:
                self._beside -= 1
                self._changed.notify_all()

    def _import(self, name: str, importing: Callable[[Path], None]) -> None:
        """Import and compile a file, unless another thread does so."""
        with self._changed:
            if name not in self._left or (begun := self._begun) is None:
                return
            del self._left[name]
        compiled = None
        try:
            loaded = begun.load(name)
            compiled = loaded, self._compile(name, loaded, importing)
        finally:
            with self._changed:
                self._compiled[name] = compiled
                self._changed.notify_all()

    def _compile(self, name: str, loaded: LoadedFile, importing: Callable[[Path], None]) -> CompiledFile:
        """Compile a file, and first the prompts of it that somebody waits for."""
        asked = self._asked.get(name, ())
        if prompts := tuple(prompt for prompt in loaded.prompts if prompt.options.name in asked):
            self._publish(name, _compile(LoadedFile(loaded.file, prompts), importing))
            time.sleep(_PAUSE_S)
        compiled = _compile(loaded, importing)
        self._publish(name, compiled)
        return compiled

    def _publish(self, name: str, compiled: CompiledFile) -> None:
        """Let those go on who wait for what was compiled of a file."""
        with self._changed:
            for prompt in compiled.prompts:
                if prompt.name in self._names.get(name, ()):
                    self._prompts.setdefault(prompt.name, prompt)
            self._changed.notify_all()

    def _compiled_as(self, loaded: LoadedFile, importing: Callable[[Path], None]) -> CompiledFile:
        """What was compiled of a file before, unless a later file has changed what it declares."""
        begun, file = self._begun, loaded.file
        known = None if begun is None or file is None else self._compiled.get(begun.name_of(file))
        return known[1] if known is not None and known[0] == loaded else _compile(loaded, importing)


def _compile(loaded: LoadedFile, importing: Callable[[Path], None]) -> CompiledFile:
    (compiled,) = compile_files(Recipes(by_file=[loaded]), compiling=importing)
    return compiled

"""Notifies subscribers of resources whose author says how to notice a change."""

from collections.abc import Callable
from threading import Event, Lock

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.resources import CompiledResource
from promptkit.errors.exceptions import UnknownResourceError
from promptkit.server.notifier import Notifier
from promptkit.server.threads import DaemonThread
from promptkit.standard_error import say

#: Interval between two checks of the stamps of watched resources, in seconds.
_EVERY_S = 1.0


class ResourceWatch:
    """
    A thread that compares the stamps of watched resources, from the first subscription to a resource on.

    A stamp function that hangs delays only these notifications.

    Args:
        catalog:
            A function that returns what callers with the given scopes can see.

        notifier:
            Notifies the subscribers.
    """

    def __init__(self, catalog: Callable[[frozenset[str] | None], Catalog], notifier: Notifier) -> None:
        self._catalog = catalog
        self._notifier = notifier
        self._stamps: dict[str, object] = {}
        self._failed: frozenset[str] = frozenset()
        self._ended = Event()
        self._lock = Lock()
        self._is_started = False

    def start(self) -> None:
        """Start to compare stamps with those of now, unless no resource is watched."""
        if not self._watched():
            return
        with self._lock:
            is_first, self._is_started = not self._is_started, True
        if is_first:
            self._compare()  # before the client learns that it has subscribed
            DaemonThread(self._run, "resources").start()

    def end(self) -> None:
        """End the thread soon, without waiting."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(_EVERY_S):
            if changed := self._compare():
                self._notify(changed)

    def _watched(self) -> list[CompiledResource]:
        return [resource for resource in self._catalog(None).resources if resource.stamp is not None]

    def _compare(self) -> list[CompiledResource]:
        """Return the resources whose stamps have changed since the last comparison."""
        changed, stamps, errors = list[CompiledResource](), dict[str, object](), set[str]()
        for resource in self._watched():
            uri = resource.uri_template
            stamps[uri] = None  # after an error, the resource may have changed
            try:
                stamps[uri] = resource.stamp and resource.stamp()
                if self._stamps.get(uri, stamps[uri]) != stamps[uri]:
                    changed.append(resource)
            except Exception as error:  # noqa: BLE001 (an author's function can raise anything)
                errors.add(f"resource {resource.name!r} cannot be watched: {type(error).__name__}: {error}")
        for message in sorted(errors - self._failed):
            say(message)
        self._stamps, self._failed = stamps, frozenset(errors)
        return changed

    def _notify(self, changed: list[CompiledResource]) -> None:
        for scopes, notifiers in self._notifier.by_scopes.items():
            catalog = self._catalog(scopes)

            def is_changed(uri: str, catalog: Catalog = catalog) -> bool:
                try:
                    return catalog.resource(uri)[0] in changed
                except UnknownResourceError:
                    return False

            for notifier in notifiers:
                notifier.notify((), is_changed)

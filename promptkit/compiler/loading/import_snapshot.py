"""A snapshot of the imported modules, to go back to when a reload fails."""

import sys

from promptkit.compiler.loading.finders import active_finders, place_module
from promptkit.compiler.loading.project_finder import project_finders

__all__ = ["ImportSnapshot"]


class ImportSnapshot:
    """
    The state of `sys.modules` at one moment, to be restored if a later load fails.

    Code that is still served may import a module lazily, and should get the version that it was
    loaded with.
    """

    def __init__(self) -> None:
        self._modules = dict(sys.modules)
        self._finders = active_finders()

    def restore(self) -> None:
        """Restore everything that was replaced since."""
        for finder in active_finders():
            finder.uninstall()
        for name, module in self._modules.items():
            if sys.modules.get(name) is not module:
                place_module(name, module)
        for finder in self._finders:
            finder.install()

    def restore_missing(self) -> None:
        """Restore the modules of the recipes and of their project that could not be imported again."""
        missing = {name: module for name, module in self._modules.items() if name not in sys.modules}
        stamps = {
            name: stamp
            for project in project_finders(self._finders)
            for name, stamp in project.stamps.items()
        }
        for project in project_finders(active_finders()):
            for name, module in missing.items():
                if f"{name}.".startswith(f"{project.package}."):
                    place_module(name, module)
                elif name in stamps:
                    place_module(name, module)
                    project.mark_stale(name, stamps[name][0])

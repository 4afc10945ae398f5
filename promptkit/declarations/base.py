"""Shared base classes of prompts, resources and skills."""

import functools
import inspect
import sys
from abc import abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from contextvars import ContextVar
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar, Final, Generic, ParamSpec, Self, TypeVar
from weakref import WeakKeyDictionary

from promptkit.catalog.cases import Case
from promptkit.errors.diagnostics import Location
from promptkit.types.functions import copy_mutable_defaults

P = ParamSpec("P")
Sent = TypeVar("Sent")
T = TypeVar("T")


class cached_property(functools.cached_property[T]):  # noqa: N801 (named like the original)
    """
    `functools.cached_property` without the lock of Python 3.11, for properties that run authors' code.

    With the lock, one prompt whose annotations hang would keep every other prompt from being compiled.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        super().__init__(compute)
        self.lock = nullcontext()


class SavedCases:
    """
    The cases of a prompt, resource or skill.

    All instances are equal, so that saved cases do not affect comparisons of the objects that they belong to.
    """

    __slots__ = ("_cases",)  # every served prompt has an instance

    def __init__(self) -> None:
        self._cases: tuple[Case, ...] = ()

    def __call__(self) -> tuple[Case, ...]:
        """Return the cases, except for those that a module saved before it was imported again."""
        return tuple(case for case in self._cases if case.is_current)

    def add(self, case: Case) -> None:
        """Add a case."""
        self._cases += (case,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SavedCases)

    def __hash__(self) -> int:
        return hash(SavedCases)


#: The declarations made so far while the loader imports a module; None at other times.
declarations: Final[ContextVar[list["Decorated"] | None]] = ContextVar("declarations", default=None)

#: The declarations in modules that Python imports without the loader, as in tests.
imported_declarations: Final[WeakKeyDictionary[ModuleType, list["Decorated"]]] = WeakKeyDictionary()


class Decorated:
    """
    Base class of authors' decorated functions.

    Instances are pickled by reference to their declaration. Copying an instance returns the same object.
    """

    function: Callable[..., Any]

    #: Keeps pytest from collecting instances as tests, whatever their names.
    __test__: ClassVar[bool] = False

    def __attrs_post_init__(self) -> None:
        # As in `functools.update_wrapper`, which cannot write to a frozen object.
        copied = [name for name in functools.WRAPPER_ASSIGNMENTS if hasattr(self.function, name)]
        vars(self).update({name: getattr(self.function, name) for name in copied}, __wrapped__=self.function)
        if (collected := declarations.get()) is not None:
            collected.append(self)
        elif type(module := sys.modules.get(self.__module__)) is ModuleType and (
            getattr(module.__spec__, "_initializing", False)
        ):
            imported_declarations.setdefault(module, []).append(self)

    @property
    def location(self) -> Location:
        """The location of the function's definition."""
        code = inspect.unwrap(self.function).__code__
        return Location(code.co_filename, code.co_firstlineno)

    @cached_property
    def saved(self) -> SavedCases:
        """The container for the saved cases."""
        return SavedCases()

    def __reduce__(self) -> tuple[Any, ...]:
        packages = import_module("promptkit.loader.packages")  # it imports this module
        reduced: tuple[Any, ...] = packages.reduce_declaration(self)
        return reduced

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self


def locate_caller(depth: int = 0) -> tuple[Location, ModuleType | None]:
    """
    Return the location and module of the calling function's caller, or of a caller *depth* calls further up.
    """
    frame = sys._getframe(2 + depth)  # noqa: SLF001 (`inspect` is slower)
    module = sys.modules.get(frame.f_globals.get("__name__", ""))
    owner = module if module is not None and vars(module) is frame.f_globals else None
    return Location(frame.f_code.co_filename, frame.f_lineno), owner


class Declared(Decorated, Generic[P, Sent]):
    """
    Base class of prompts and resources: callables that can convert each call to an equivalent request.
    """

    @property
    def cases(self) -> tuple[Case, ...]:
        """The saved cases, in the order of definition."""
        return self.saved()

    def case(self, name: str, /, *args: P.args, **kwargs: P.kwargs) -> Case:
        """
        Save an input as a case, to preview, test and compare its rendering.

        ``promptkit check`` reports invalid cases.

        Args:
            name:
                The case's name, unique for the prompt or resource.

            *args:
                Positional arguments of the call.

            **kwargs:
                Keyword arguments of the call.

        Returns:
            The case. If the input must be rejected, call `refused` on the case with a part of the error
            message: ``.refused("'code' is missing")``.
        """
        return self._save(name, partial(self.to_wire, *args, **kwargs))

    def case_wire(self, name: str, sent: Sent, /) -> Case:
        """
        Save a client's input as a case. Unlike with `case`, the values can be invalid for their types.

        Args:
            name:
                The case's name, unique for the prompt or resource.

            sent:
                A prompt's arguments by name, as text; or a resource's URI.
        """
        return self._save(name, lambda: sent)

    @cached_property
    def _wrapped_function(self) -> Callable[P, Any]:
        """The function, wrapped so that each call gets new copies of mutable defaults."""
        return copy_mutable_defaults(self.function)

    @abstractmethod
    def to_wire(self, *args: P.args, **kwargs: P.kwargs) -> Sent:
        """
        Return what a client sends for a call with these arguments. Raises TypeError if no client can send it.
        """

    def _save(self, name: str, make_sent: Callable[[], Sent]) -> Case:
        """Save a case. Its location is the call to the method that called this one."""
        location, module = locate_caller(1)
        case = Case(name, location, make_sent, module)
        self.saved.add(case)
        return case

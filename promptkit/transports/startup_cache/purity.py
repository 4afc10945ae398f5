"""
Purity: whether importing recipes may read something that causes no audit event.

Opening a file causes an event. Checking whether it exists does not, and neither does asking for the time or
for a random number. So the bytecode is examined: what an import may run has to use only names that are known
to be harmless. What runs only when a prompt is rendered does not count.
"""

import dis
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import SourceFileLoader
from inspect import CO_OPTIMIZED
from types import CodeType, ModuleType
from typing import Final

__all__ = ["names_used"]

#: Modules whose functions return the same for the same arguments, or cause audit events when they read.
_PURE: Final = frozenset(
    """
    __future__ abc annotated_types ast attr attrs base64 binascii bisect calendar cattrs
    cmath codecs collections colorsys configparser contextlib contextvars copy csv dataclasses
    datetime decimal difflib enum errno fnmatch fractions functools glob graphlib hashlib heapq html
    io ipaddress itertools json keyword logging math msgspec numbers operator os pathlib posixpath
    pprint promptkit pydantic re reprlib statistics string stringprep struct sys textwrap tomllib
    types typing typing_extensions unicodedata urllib.parse uuid warnings xml.etree.ElementTree yaml zlib
    zoneinfo
    """.split()  # noqa: SIM905 (a list of words)
)

#: The harmless parts of modules that have other parts, too.
_HARMLESS: Final = {
    "os": frozenset(
        """
        PathLike altsep curdir environ environb extsep fsdecode fsencode fspath getenv getenvb
        linesep listdir name pardir path pathsep scandir sep walk
        """.split()  # noqa: SIM905 (a list of words)
    ),
    "sys": frozenset(
        """
        byteorder exc_info intern maxsize path platform stderr stdout version version_info
        """.split()  # noqa: SIM905 (a list of words)
    ),
    "logging": frozenset(
        """
        CRITICAL DEBUG ERROR Formatter INFO Logger LoggerAdapter NOTSET NullHandler StreamHandler WARNING
        addLevelName basicConfig captureWarnings critical debug disable error getLogger info warning
        """.split()  # noqa: SIM905 (a list of words)
    ),
    "uuid": frozenset({"UUID", "uuid3", "uuid5"}),
}

#: Attributes that read without an audit event, whatever they belong to.
_UNSEEN: Final = frozenset(
    """
    access argv astimezone cwd exists fromtimestamp fwalk getatime getctime getcwd getmtime getsize
    is_block_device is_char_device is_dir is_fifo is_file is_junction is_mount is_socket is_symlink
    isdevdrive isdir isfile isjunction islink ismount lexists lstat now owner readlink samefile
    samples sameopenfile samestat stat statvfs timestamp today utcnow
    DirectoryPath FilePath FutureDate FutureDatetime NewPath PastDate PastDatetime
    __dict__ __getattribute__ __globals__ __subclasses__ _data attrgetter builtins confine methodcaller os
    posix read_below sys
    """.split()  # noqa: SIM905 (a list of words)
)

#: Built-in functions that can reach anything, or return something else in each process.
_ANYTHING: Final = frozenset(
    """
    __builtins__ __import__ __loader__ __spec__ breakpoint compile eval exec getattr globals hash id
    input locals vars
    """.split()  # noqa: SIM905 (a list of words)
)

#: Decorators that do not call the function.
_DECORATORS: Final = frozenset({"prompt", "resource"})

_ATTRIBUTES: Final = frozenset({"LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"})
_STORES: Final = frozenset({"STORE_NAME", "STORE_GLOBAL", "STORE_FAST", "STORE_DEREF"})


def names_used(files: Iterable[str], own: Iterable[str]) -> set[str] | None:
    """
    Return the names that importing modules may use.

    Args:
        files:
            The sources of the modules.

        own:
            The names of the modules, as they are examined themselves.

    Returns:
        The names; None if the modules may read something that causes no audit event.

    Raises:
        Exception: If a file cannot be read or compiled.
    """
    known = frozenset(own)
    modules = [_Module(_code_of(file), known) for file in files]
    reached = [(module, module.code) for module in modules]
    loaded: set[str] = set()
    seen: set[int] = set()
    while reached:
        for module, code in reached:
            seen.add(id(code))
            if not module.follow(code, loaded):
                return None
        functions = ((module, code) for module in modules for code in module.functions)
        reached = [(m, code) for m, code in functions if id(code) not in seen and m.runs(code, loaded)]
    return loaded


def _code_of(file: str) -> CodeType:
    code = SourceFileLoader("recipe", file).get_code("recipe")
    assert isinstance(code, CodeType)  # noqa: S101 (a source has one)
    return code


def _functions(code: CodeType) -> Iterator[CodeType]:
    """The code of all functions and classes in *code*."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _functions(constant)


def _loads(instruction: dis.Instruction) -> list[str]:
    if not instruction.opname.startswith("LOAD_") or instruction.opname == "LOAD_CONST":
        return []
    value = instruction.argval
    return [name for name in (value if isinstance(value, tuple) else (value,)) if isinstance(name, str)]


def _is_harmless(module: str, attribute: str) -> bool:
    """Whether an attribute of a module is harmless, or the module itself if *attribute* is empty."""
    if module not in _PURE and module.partition(".")[0] not in _PURE:
        return False
    if attribute in _UNSEEN or (attribute and attribute not in _HARMLESS.get(module, {attribute})):
        return False
    inner = _module_at(module, attribute)  # `statistics.random`, for instance
    return not inner or inner == module or _is_harmless(inner, "")


def _module_at(module: str, attribute: str) -> str:
    """The name of the module that an attribute of a module is, or ``""``."""
    if not attribute:
        return module
    found = getattr(sys.modules.get(module), attribute, None)
    return found.__name__ if isinstance(found, ModuleType) else ""


class _Module:
    def __init__(self, code: CodeType, own: frozenset[str]) -> None:
        self.code = code
        self.functions = list(_functions(code))
        self._own = own
        self._run: set[int] = set()
        self._bound: dict[str, tuple[str, str]] = {}

    def runs(self, code: CodeType, loaded: set[str]) -> bool:
        """Whether a function may run, given all names that are used."""
        return id(code) in self._run or code.co_name in loaded

    def follow(self, code: CodeType, loaded: set[str]) -> bool:
        """Add the names that *code* uses to *loaded*; return whether all of them are harmless."""
        instructions = list(dis.get_instructions(code))
        self._bind(instructions)
        self._note_run(instructions)
        module = ""  # the one that was loaded just before
        for instruction in instructions:
            if "IMPORT_STAR" in (instruction.opname, instruction.argrepr[10:]):
                return False  # it may bring anything
            if instruction.opname == "MATCH_CLASS":
                return False  # it takes attributes by names that are constants
            for name in _loads(instruction):
                of_something = instruction.opname in _ATTRIBUTES
                if name in (_UNSEEN if of_something else _ANYTHING):
                    return False
                if module in _HARMLESS and not of_something:
                    return False  # the module is used as a whole
                source, attribute = (module, name) if of_something else self._bound.get(name, ("", ""))
                if source and not self._is_own(source, attribute) and not _is_harmless(source, attribute):
                    return False
                module = _module_at(source, attribute)
                loaded |= {name, attribute}
        return module not in _HARMLESS

    def _is_own(self, module: str, attribute: str) -> bool:
        """Whether something comes from a module that is examined, too."""
        return not module or module in self._own or f"{module}.{attribute}" in self._own

    def _bind(self, instructions: Iterable[dis.Instruction]) -> None:
        """Note which module and attribute each imported name stands for."""
        module = attribute = None
        level: object = 0
        before: list[object] = [0, 0]
        for instruction in instructions:
            if instruction.opname == "IMPORT_NAME":
                level = before[-2]
                module, attribute = ("" if level else str(instruction.argval)), ""
            elif instruction.opname == "IMPORT_FROM":
                attribute = str(instruction.argval)
            elif instruction.opname in _STORES and module is not None:
                root = module.partition(".")[0]
                # `import a.b` binds a; `import a.b as c` and `from a import b` say what they bind.
                named = module if attribute or root not in _PURE else root
                self._bound[str(instruction.argval)] = named, attribute or ""
                module = module if attribute else None
            elif instruction.opname == "POP_TOP":
                module = None
            before = [before[-1], instruction.argval]

    def _note_run(self, instructions: Iterable[dis.Instruction]) -> None:
        """Note the functions that may run when they are defined: all that are not just bound to a name."""
        statement: list[str] = []
        made: CodeType | None = None
        calls = 0
        for instruction in instructions:
            opname, value = instruction.opname, instruction.argval
            if isinstance(value, CodeType):
                made, calls = value, 0
                if not value.co_flags & CO_OPTIMIZED or value.co_name.startswith("<"):
                    self._run.add(id(value))
            elif opname.startswith(("STORE_", "POP_TOP", "RETURN_")):
                if made is not None and calls and not (calls == 1 and self._is_kept(statement)):
                    self._run.add(id(made))
                if made is not None and str(value).startswith("__"):
                    self._run.add(id(made))
                statement, made = [], None
            elif opname.startswith("CALL") and made is not None:
                calls += 1
            elif made is None:
                statement += _loads(instruction)

    def _is_kept(self, statement: list[str]) -> bool:
        """Whether the decorator that a statement begins with is one of promptkit's."""
        module, attribute = self._bound.get(statement[0], ("", "")) if statement else ("", "")
        if module == "promptkit" and not attribute:
            attribute = statement[1]
        return module.partition(".")[0] == "promptkit" and attribute in _DECORATORS

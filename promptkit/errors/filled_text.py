"""
Text that Python fills in, by ``.format(...)``, ``%`` or `string.Template`, and why that fails.

Python's own errors name a hole at most: ``KeyError: 'nmae'``. Lints import this, and who shows an error.
"""

import ast
import re
from collections.abc import Iterable, Mapping
from enum import Enum
from itertools import islice
from string import Template
from types import TracebackType
from typing import Any, Final

from msgspec import Struct

from promptkit.errors.exceptions import shortened
from promptkit.errors.sources import Span, line_of, segment_of
from promptkit.errors.suggestions import nearest

#: Methods that fill in a text.
_METHODS: Final = ("format", "format_map", "substitute")


class FormatStyle(Enum):
    """
    How holes are written.

    Attributes:
        begin:
            What stands in front of the name of one.

        end:
            What stands behind it.

        escape:
            What to do about text that is none.
    """

    FORMAT = "{", "}", "double the braces that are to be sent: {{ }}"
    PERCENT = "%(", ")s", "double the percent signs that are to be sent: %%"
    TEMPLATE = "${", "}", "double the dollar signs that are to be sent: $$"

    def __init__(self, begin: str, end: str, escape: str) -> None:
        self.begin, self.end, self.escape = begin, end, escape

    def show(self, name: str) -> str:
        """
        Return the hole of a name.
        """
        return f"{self.begin}{name}{self.end}"

    def begins_in(self, text: str, name: str) -> int:
        """
        Return where a text may have the hole of a name, counted from 0; -1 if nowhere.
        """
        at = text.find(f"{self.begin}{name}")
        return text.find(f"${name}") if at < 0 and self is FormatStyle.TEMPLATE else at

    def place_in(self, file: str, lines: Iterable[int], name: str) -> Span | None:
        """
        Return where one of the lines of a file has the hole of a name, from its beginning on.
        """
        found = ((line, self.begins_in(line_of(file, line), name)) for line in lines)
        return next((Span(line, at + 1, at + len(name) + 2) for line, at in found if at >= 0), None)


class FilledText(Struct, frozen=True):
    """
    An expression that fills in a text.

    Args:
        holes:
            How its holes are written.

        text:
            The text.

        names:
            The names of its values.

        count:
            How many values have no name.

        is_whole:
            Whether these are all: what is unpacked, or a variable, may hold more.
    """

    holes: FormatStyle
    text: ast.expr
    names: tuple[str, ...] = ()
    count: int = 0
    is_whole: bool = False

    def error_for(self, text: str) -> Exception | None:
        """
        Return what Python raises when it fills in *text*, whatever the values are; None if nothing.
        """
        named, row = dict.fromkeys(self.names, _AnyValue()), (_AnyValue(),) * self.count
        try:
            if self.holes is FormatStyle.FORMAT:
                text.format(*row, **named)
            elif self.holes is FormatStyle.TEMPLATE:
                Template(text).substitute(named)
            else:
                text % (row or named)
        except (LookupError, TypeError, ValueError) as error:
            return error
        return None

    def explain(
        self, error: BaseException, others: Iterable[str] = (), where: str = "the text"
    ) -> tuple[str, str] | None:
        """
        Return what *error* says of the text, and what to do about it; None if that says nothing of it.

        Args:
            error:
                What filling it in has raised.

            others:
                Names that its values may have, beside those that are known.

            where:
                Where the hole is that a `KeyError` names.
        """
        match error:
            case KeyError(args=(str(name),)):
                return self._without_value(name, others, where)
            case IndexError() if "Replacement index" in str(error):
                fault = f"the text has more holes than values: it gets {self.count}"
                return fault, f"give each hole a value, or {self.holes.escape}"
            case TypeError() | ValueError() if hint := _hint(str(error), self.holes):
                return f"the text cannot be filled in: {error}", hint
        return None

    def _without_value(self, name: str, others: Iterable[str], where: str) -> tuple[str, str]:
        if not re.fullmatch(r"\w+", name):
            begin = shortened(f"{self.holes.begin}{name}")
            return f"{begin!r} in {where} is taken for a hole", self.holes.escape
        meant = nearest(name, [*self.names, *others])
        hint = (
            f"did you mean {self.holes.show(meant)!r}?" if meant else f"give it one, or {self.holes.escape}"
        )
        return f"the hole {shortened(self.holes.show(name))!r} in {where} gets no value", hint


#: By what Python says of a text, what to do about it. ``{}`` stands for `FormatStyle.escape`.
_REMEDIES: Final[Mapping[FormatStyle, tuple[tuple[str, str], ...]]] = {
    FormatStyle.FORMAT: (
        ("cannot switch from", "number all holes, or none"),
        ("in (?:format|field)|end of string|conversion spec|Invalid format spec|Empty attr|recursion", "{}"),
    ),
    FormatStyle.PERCENT: (
        ("not enough arguments for format", "give each hole a value, or {}"),
        ("not all arguments converted", "write %s where each value is to stand"),
        ("format requires a mapping", "give it a mapping, as in % {{'name': name}}"),
        (r"%\w (?:format: an?|requires an?) (?:real|integer)", "give it a number, or {}"),
        ("unsupported format|incomplete format|stray %", "{}"),
    ),
    FormatStyle.TEMPLATE: (("Invalid placeholder", "{}"),),
}


def _hint(said: str, holes: FormatStyle) -> str | None:
    hints = (hint for pattern, hint in _REMEDIES[holes] if re.search(pattern, said))
    return next((hint.format(holes.escape) for hint in hints), None)


class _AnyValue:
    """Stands for a value: what is asked of it to be put into a text, it has."""

    def __getattr__(self, name: str) -> "_AnyValue":
        return self

    def __getitem__(self, key: object) -> "_AnyValue":
        return self

    def __format__(self, spec: str) -> str:
        return ""

    def __index__(self) -> int:
        return 0


def filled_text(node: ast.AST) -> FilledText | None:  # noqa: PLR0911 (a list of cases)
    """
    Return what an expression fills in, if it does.
    """
    method, operator = getattr(getattr(node, "func", None), "attr", None), getattr(node, "op", None)
    if method not in _METHODS and not isinstance(operator, ast.Mod):
        return None  # most do not, and to match them all takes long
    match node:
        case ast.Call(ast.Attribute(text, "format"), values, keywords):
            names = [keyword.arg for keyword in keywords]
            return _filled(FormatStyle.FORMAT, text, names, values)
        case ast.Call(ast.Attribute(text, "format_map"), [values]):
            return _filled(FormatStyle.FORMAT, text, _keys(values))
        case ast.Call(ast.Attribute(text, "substitute"), values, keywords):
            names = [keyword.arg for keyword in keywords]
            return _filled(
                FormatStyle.TEMPLATE, text, [*names, *(key for value in values for key in _keys(value))]
            )
        case ast.BinOp(text, ast.Mod(), ast.Tuple(values)):
            return _filled(FormatStyle.PERCENT, text, (), values)
        case ast.BinOp(text, ast.Mod(), (ast.Constant() | ast.JoinedStr()) as value):
            return _filled(FormatStyle.PERCENT, text, (), [value])
        case ast.BinOp(text, ast.Mod(), values):
            return _filled(FormatStyle.PERCENT, text, _keys(values))
    return None


def _filled(
    holes: FormatStyle, text: ast.expr, names: Iterable[str | None], values: Iterable[ast.expr] = ()
) -> FilledText:
    """Make a `FilledText`; a name that is None stands for any number of others, as a starred value does."""
    given, row = list(names), list(values)
    is_whole = None not in given and not any(isinstance(value, ast.Starred) for value in row)
    return FilledText(holes, text, tuple(name for name in given if name is not None), len(row), is_whole)


def _keys(mapping: ast.expr) -> list[str | None]:
    """The keys of a mapping; None for those that are not shown."""
    match mapping:
        case ast.Dict(keys):
            texts = [key.value if isinstance(key, ast.Constant) else None for key in keys]
            return [key if isinstance(key, str) else None for key in texts]
        case ast.Call(ast.Name("dict"), [], keywords):
            return [keyword.arg for keyword in keywords]
    return [None]


def explain_filling(error: BaseException) -> str | None:
    """
    Return why a text could not be filled in, and what to do, if *error* was raised by that.

    Args:
        error:
            What an author's code has raised, with its traceback.
    """
    entry = _last_entry(error.__traceback__)
    if entry is None or not isinstance(error, LookupError | TypeError | ValueError):
        return None
    file, place = entry.tb_frame.f_code.co_filename, _place_of(entry)
    filled = None if place is None else _filled_at(file, place)
    if place is None or filled is None or not _may_raise(filled, error, entry):
        return None
    # Of a call in several lines, Python knows the last ones alone.
    lines = range(place[1], entry.tb_frame.f_code.co_firstlineno - 1, -1)
    hole = filled.holes.place_in(file, lines, _name_in(error))
    where = "the text" if hole is None else f"line {hole.line}"
    told = filled.explain(error, () if filled.is_whole else entry.tb_frame.f_locals, where)
    if told is None or isinstance(error, LookupError):
        return told and ": ".join(told)
    return told[1]  # what is wrong with the text itself, Python says


def _name_in(error: BaseException) -> str:
    return error.args[0] if error.args and isinstance(error.args[0], str) else ""


def _last_entry(entry: TracebackType | None) -> TracebackType | None:
    """Where it was raised, but for the functions of `string.Template`."""
    last = None
    while entry is not None:
        if entry.tb_frame.f_globals.get("__name__") != Template.__module__:
            last = entry
        entry = entry.tb_next
    return last


def _place_of(entry: TracebackType) -> tuple[int, int, int, int] | None:
    """The lines and offsets of the expression that has raised an error, as `segment_of` takes them."""
    places = entry.tb_frame.f_code.co_positions()
    first, last, start, end = next(islice(places, entry.tb_lasti // 2, None), (None,) * 4)
    if first is None or last is None or start is None or end is None:
        return None
    return first, last, start, end


def _filled_at(file: str, place: tuple[int, int, int, int]) -> FilledText | None:
    segment = segment_of(file, place)
    # The place of a call in several lines begins with the method's name.
    whole = f"_.{segment}" if segment.partition("(")[0].strip() in _METHODS else segment
    try:
        return filled_text(ast.parse(f"({whole})", mode="eval").body)
    except (SyntaxError, ValueError, RecursionError):  # the file has changed since it was imported
        return None


def _may_raise(filled: FilledText, error: BaseException, entry: TracebackType) -> bool:
    """Whether the text may be what *error* is about, and not what one of its values lacks."""
    text: Any = None
    match filled.text:
        case ast.Constant(text):
            pass
        case ast.Name(name):
            text = entry.tb_frame.f_locals.get(name, entry.tb_frame.f_globals.get(name))
    if text is None:  # it is not known here
        return True
    text = text.template if isinstance(text, Template) else text
    is_text = isinstance(text, str)
    return is_text and (not isinstance(error, KeyError) or filled.holes.begins_in(text, _name_in(error)) >= 0)

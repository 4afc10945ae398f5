"""
Explanations of errors in ``.format(...)``, ``%`` and `string.Template`.

Python's own errors name a placeholder at most: ``KeyError: 'nmae'``. Lints and error reports import this.
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
    The syntax of placeholders.

    Attributes:
        begin:
            The syntax before the name.

        end:
            The syntax after the name.

        escape:
            How to write text that is not a placeholder.
    """

    FORMAT = "{", "}", "double the braces that are part of the text: {{ }}"
    PERCENT = "%(", ")s", "double the percent signs that are part of the text: %%"
    TEMPLATE = "${", "}", "double the dollar signs that are part of the text: $$"

    def __init__(self, begin: str, end: str, escape: str) -> None:
        self.begin, self.end, self.escape = begin, end, escape

    def show(self, name: str) -> str:
        """Return the placeholder of a name."""
        return f"{self.begin}{name}{self.end}"

    def begins_in(self, text: str, name: str) -> int:
        """Return the index of a placeholder that starts with *name* in a text; -1 if there is none."""
        index = text.find(f"{self.begin}{name}")
        return text.find(f"${name}") if index < 0 and self is FormatStyle.TEMPLATE else index

    def place_in(self, file: str, lines: Iterable[int], name: str) -> Span | None:
        """Return the span of the first placeholder of *name* in the given lines of a file."""
        indexes = ((line, self.begins_in(line_of(file, line), name)) for line in lines)
        return next(
            (Span(line, index + 1, index + len(name) + 2) for line, index in indexes if index >= 0), None
        )


class FilledText(Struct, frozen=True):
    """
    An expression that fills in a text.

    Args:
        holes:
            The syntax of its placeholders.

        text:
            The text.

        names:
            The names of its values.

        count:
            The number of values without a name.

        is_whole:
            Whether all values are known: unpacked arguments and variables can contain more values.
    """

    holes: FormatStyle
    text: ast.expr
    names: tuple[str, ...] = ()
    count: int = 0
    is_whole: bool = False

    def error_for(self, text: str) -> Exception | None:
        """Return the error that Python raises for *text* with any values; None if there is none."""
        keyword_values, positional_values = (
            dict.fromkeys(self.names, _AnyValue()),
            (_AnyValue(),) * self.count,
        )
        try:
            if self.holes is FormatStyle.FORMAT:
                text.format(*positional_values, **keyword_values)
            elif self.holes is FormatStyle.TEMPLATE:
                Template(text).substitute(keyword_values)
            else:
                text % (positional_values or keyword_values)
        except (LookupError, TypeError, ValueError) as error:
            return error
        return None

    def explain(
        self, error: BaseException, extra_names: Iterable[str] = (), where: str = "the text"
    ) -> tuple[str, str] | None:
        """
        Explain *error*, with a hint; return None if it is not about the text.

        Args:
            error:
                The exception raised by filling in the text.

            extra_names:
                Other names that its values can have.

            where:
                The location of the placeholder that a `KeyError` names.
        """
        match error:
            case KeyError(args=(str(name),)):
                return self._explain_missing(name, extra_names, where)
            case IndexError() if "Replacement index" in str(error):
                problem = f"the text has more placeholders than values: it gets {self.count}"
                return problem, f"give each placeholder a value, or {self.holes.escape}"
            case TypeError() | ValueError() if hint := _hint(str(error), self.holes):
                return f"the text cannot be filled in: {error}", hint
        return None

    def _explain_missing(self, name: str, extra_names: Iterable[str], where: str) -> tuple[str, str]:
        if not re.fullmatch(r"\w+", name):
            start = shortened(f"{self.holes.begin}{name}")
            return f"{start!r} in {where} is taken for a placeholder", self.holes.escape
        suggestion = nearest(name, [*self.names, *extra_names])
        hint = (
            f"did you mean {self.holes.show(suggestion)!r}?"
            if suggestion
            else f"give it one, or {self.holes.escape}"
        )
        return f"the hole {shortened(self.holes.show(name))!r} in {where} gets no value", hint


#: Hints by patterns of Python's messages. ``{}`` is replaced by `FormatStyle.escape`.
_HINTS: Final[Mapping[FormatStyle, tuple[tuple[str, str], ...]]] = {
    FormatStyle.FORMAT: (
        ("cannot switch from", "number all placeholders, or none"),
        ("in (?:format|field)|end of string|conversion spec|Invalid format spec|Empty attr|recursion", "{}"),
    ),
    FormatStyle.PERCENT: (
        ("not enough arguments for format", "give each placeholder a value, or {}"),
        ("not all arguments converted", "write %s where each value belongs"),
        ("format requires a mapping", "give it a mapping, as in % {{'name': name}}"),
        (r"%\w (?:format: an?|requires an?) (?:real|integer)", "give it a number, or {}"),
        ("unsupported format|incomplete format|stray %", "{}"),
    ),
    FormatStyle.TEMPLATE: (("Invalid placeholder", "{}"),),
}


def _hint(message: str, holes: FormatStyle) -> str | None:
    hints = (hint for pattern, hint in _HINTS[holes] if re.search(pattern, message))
    return next((hint.format(holes.escape) for hint in hints), None)


class _AnyValue:
    """A placeholder value that supports every format operation."""

    def __getattr__(self, name: str) -> "_AnyValue":
        return self

    def __getitem__(self, key: object) -> "_AnyValue":
        return self

    def __format__(self, spec: str) -> str:
        return ""

    def __index__(self) -> int:
        return 0


def filled_text(node: ast.AST) -> FilledText | None:  # noqa: PLR0911 (a list of cases)
    """Return the text and values of an expression that fills in a text; otherwise None."""
    method, operator = getattr(getattr(node, "func", None), "attr", None), getattr(node, "op", None)
    if method not in _METHODS and not isinstance(operator, ast.Mod):
        return None  # a fast path: the match statement is slow, and most nodes do not match
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
    """Create a `FilledText`. A name that is None means any number of values, like a starred value."""
    name_list, value_list = list(names), list(values)
    is_whole = None not in name_list and not any(isinstance(value, ast.Starred) for value in value_list)
    return FilledText(
        holes, text, tuple(name for name in name_list if name is not None), len(value_list), is_whole
    )


def _keys(mapping: ast.expr) -> list[str | None]:
    """Return the keys of a mapping; None for unknown keys."""
    match mapping:
        case ast.Dict(keys):
            texts = [key.value if isinstance(key, ast.Constant) else None for key in keys]
            return [key if isinstance(key, str) else None for key in texts]
        case ast.Call(ast.Name("dict"), [], keywords):
            return [keyword.arg for keyword in keywords]
    return [None]


def explain_filling(error: BaseException) -> str | None:
    """
    Explain, with a hint, why filling in a text failed; return None if *error* has another cause.

    Args:
        error:
            The exception raised by an author's code, with its traceback.
    """
    entry = _last_entry(error.__traceback__)
    if entry is None or not isinstance(error, LookupError | TypeError | ValueError):
        return None
    file, position = entry.tb_frame.f_code.co_filename, _position_of(entry)
    filled = None if position is None else _parse_filled_text(file, position)
    if position is None or filled is None or not _can_raise(filled, error, entry):
        return None
    # The position of a call over several lines covers only the last lines.
    lines = range(position[1], entry.tb_frame.f_code.co_firstlineno - 1, -1)
    placeholder = filled.holes.place_in(file, lines, _name_in(error))
    where = "the text" if placeholder is None else f"line {placeholder.line}"
    explanation = filled.explain(error, () if filled.is_whole else entry.tb_frame.f_locals, where)
    if explanation is None or isinstance(error, LookupError):
        return explanation and ": ".join(explanation)
    return explanation[1]  # Python's message already describes the problem in the text


def _name_in(error: BaseException) -> str:
    return error.args[0] if error.args and isinstance(error.args[0], str) else ""


def _last_entry(entry: TracebackType | None) -> TracebackType | None:
    """Return the traceback entry that raised, ignoring those of `string.Template`."""
    last = None
    while entry is not None:
        if entry.tb_frame.f_globals.get("__name__") != Template.__module__:
            last = entry
        entry = entry.tb_next
    return last


def _position_of(entry: TracebackType) -> tuple[int, int, int, int] | None:
    """Return the lines and offsets of the expression that raised, as `segment_of` expects them."""
    positions = entry.tb_frame.f_code.co_positions()
    first, last, start, end = next(islice(positions, entry.tb_lasti // 2, None), (None,) * 4)
    if first is None or last is None or start is None or end is None:
        return None
    return first, last, start, end


def _parse_filled_text(file: str, position: tuple[int, int, int, int]) -> FilledText | None:
    segment = segment_of(file, position)
    # The position of a method call with several lines starts at the method's name.
    expression = f"_.{segment}" if segment.partition("(")[0].strip() in _METHODS else segment
    try:
        return filled_text(ast.parse(f"({expression})", mode="eval").body)
    except (SyntaxError, ValueError, RecursionError):  # the file has changed since it was imported
        return None


def _can_raise(filled: FilledText, error: BaseException, entry: TracebackType) -> bool:
    """Whether *error* can be about the text, and not about one of its values."""
    text: Any = None
    match filled.text:
        case ast.Constant(text):
            pass
        case ast.Name(name):
            text = entry.tb_frame.f_locals.get(name, entry.tb_frame.f_globals.get(name))
    if text is None:  # unknown here
        return True
    text = text.template if isinstance(text, Template) else text
    is_text = isinstance(text, str)
    return is_text and (not isinstance(error, KeyError) or filled.holes.begins_in(text, _name_in(error)) >= 0)

"""Text of any origin: a literal without the indentation of the code, a long text shortened."""

import re
from operator import index
from typing import Any, Final, Literal, Protocol

from promptkit.fragments._parts import hanging_indent, plain_string, with_annotations
from promptkit.language.content import Text

__all__ = ["dedent", "truncate"]

#: What ``!a``, ``!r`` and ``!s`` in a t-string do.
_CONVERSIONS: Final[dict[Any, Any]] = {None: lambda value: value, "a": ascii, "r": repr, "s": str}


class Template(Protocol):
    """
    The parts of `string.templatelib.Template` (Python 3.14) that `dedent` reads.
    """

    @property
    def strings(self) -> tuple[str, ...]: ...
    @property
    def interpolations(self) -> tuple[Any, ...]: ...


def dedent(text: str | Text | Template) -> Text:
    '''
    Remove from a literal in triple quotes the indentation that it has in the code.

    That is the indentation of the first line, or of the closing quotes if the text begins beside
    the opening ones. Lines with less of it are kept: they come from a value in an f-string. Blank
    lines at both ends vanish.

    In an f-string, a value's lines that are indented as far as the literal cannot be told from the
    literal's own, and lose their indentation, too. Where that matters, as in code, pass the value
    beside it: ``user(dedent("""..."""), code_block(code))``. Or write a t-string (Python 3.14): its
    literal is dedented first, and each value's lines are indented to its column.

    Args:
        text:
            A string, a `Text`, or a t-string.

    Returns:
        The text without the indentation.

    Raises:
        TypeError: If *text* is none of these.

        ValueError: If the format of a t-string's value is not valid, or the annotations of `Text`
            values in it differ.
    '''
    strings = getattr(text, "strings", None) or (plain_string(text, "dedent(text)"),)
    interpolations = getattr(text, "interpolations", ())
    margin = _margin("x".join(strings))  # x stands for a value, which is no indentation
    line_start = re.compile(rf"\n(?:[ \t]+(?=\r?\n)|{margin})")  # blank lines lose all white space
    filled, *literals = (line_start.sub("\n", string) for string in (f"\n{strings[0]}", *strings[1:]))
    for interpolation, literal in zip(interpolations, literals, strict=True):
        column = re.sub(r"\S", " ", filled.rpartition("\n")[2])
        value = _CONVERSIONS[interpolation.conversion](interpolation.value)
        filled += hanging_indent(format(value, interpolation.format_spec), "", column) + literal
    sources = [text, *(interpolation.value for interpolation in interpolations)]
    return with_annotations(sources, re.sub(r"\A\s*\n", "", filled.rstrip()))


def _margin(literal: str) -> str:
    """Return the indentation of the first line, or of the closing quotes if it has none."""
    first = re.search(r"(?m)^([ \t]*)\S", literal)
    closing = re.search(r"\n([ \t]*)\Z", literal)
    return next((found[1] for found in (first, closing) if found and found[1]), "")


def truncate(text: str | Text, limit: int, keep: Literal["head", "tail", "both"] = "head") -> Text:
    """
    Shorten a text that is too long, and say how much was cut.

    The line ``[... 1,234 characters cut ...]`` stands in place of what was cut. Cuts are made at the
    end of a line, or else of a word, if there is one in the last quarter of what would be kept.

    Args:
        text:
            The text.

        limit:
            How many characters to keep at most, 1 or more. The line above is not counted.

        keep:
            What to keep: the ``"head"``, the ``"tail"``, or half of each (``"both"``).

    Returns:
        The text, shortened if it is longer than *limit*.

    Raises:
        TypeError: If *text* is not text, or *limit* is not a whole number.

        ValueError: If *limit* is not positive, or *keep* is none of the three.
    """
    whole = plain_string(text, "truncate(text)")
    if index(limit) < 1:
        msg = f"truncate(limit) is {limit!r}: say how many characters to keep, 1 or more"
        raise ValueError(msg)
    heads = {"head": limit, "tail": 0, "both": limit - limit // 2}
    if keep not in heads:
        msg = f"truncate(keep) is {keep!r}: choose one of {', '.join(map(repr, heads))}"
        raise ValueError(msg)
    if len(whole) <= limit:
        return with_annotations([text], whole)
    head = _beginning(whole, heads[keep])
    tail = _beginning(whole[-limit - 1 :][::-1], limit - heads[keep])[::-1]
    cut = len(whole) - len(head) - len(tail)
    notice = f"[... {cut:,} {'character' if cut == 1 else 'characters'} cut ...]"
    return with_annotations([text], "\n".join(filter(None, (head, notice, tail))))


def _beginning(text: str, limit: int) -> str:
    """Return at most *limit* characters, up to the end of a line or word if one is near."""
    ends = (text.rfind(end, limit - limit // 4, limit + 1) for end in "\n ")
    return text[: next((end for end in ends if end >= 0), limit)]

"""Text as an author has it in the code, or of any length: dedented, or cut."""

import re
from operator import index
from typing import Any, Final, Literal, Protocol

from promptkit.fragments._parts import hanging_indent, plain_string, with_annotations
from promptkit.language.content import Text

__all__ = ["dedent", "truncate"]


_CONVERSIONS: Final[dict[Any, Any]] = {None: lambda value: value, "a": ascii, "r": repr, "s": str}


class Template(Protocol):
    """
    What `dedent` reads of a t-string: `string.templatelib.Template`, from Python 3.14 on.
    """

    @property
    def strings(self) -> tuple[str, ...]: ...
    @property
    def interpolations(self) -> tuple[Any, ...]: ...


def dedent(text: str | Text | Template) -> Text:
    '''
    Return a literal in triple quotes without the indentation that it has in the code.

    That indentation is the first line's, or the closing quotes' if the text begins beside the
    opening ones. Lines that have it lose it. Others can only be further lines of a value in an
    f-string: they are kept as they are. Blank lines at both ends vanish.

    A value's line that is indented as far as the literal cannot be told from the literal's own,
    for an f-string arrives with its values filled in. Where that matters, as in code, pass the
    value beside it: ``user(dedent("""..."""), code_block(code))``. Or write a t-string (Python
    3.14): its literal is dedented first, and each value's lines are indented to its column.
    '''
    strings = getattr(text, "strings", None) or (plain_string(text, "dedent(text)"),)
    interpolations = getattr(text, "interpolations", ())
    margin = _margin("x".join(strings))  # whatever stands for a value, it is no indentation
    line_start = re.compile(rf"\n(?:[ \t]+(?=\r?\n)|{margin})")  # blank lines lose all
    filled, *literals = (line_start.sub("\n", string) for string in (f"\n{strings[0]}", *strings[1:]))
    for interpolation, literal in zip(interpolations, literals, strict=True):
        column = re.sub(r"\S", " ", filled.rpartition("\n")[2])
        value = _CONVERSIONS[interpolation.conversion](interpolation.value)
        filled += hanging_indent(format(value, interpolation.format_spec), "", column) + literal
    sources = [text, *(interpolation.value for interpolation in interpolations)]
    return with_annotations(sources, re.sub(r"\A\s*\n", "", filled.rstrip()))


def _margin(literal: str) -> str:
    """
    Return the indentation of the first line, or if it has none that of the closing quotes.
    """
    first = re.search(r"(?m)^([ \t]*)\S", literal)
    closing = re.search(r"\n([ \t]*)\Z", literal)
    return next((found[1] for found in (first, closing) if found and found[1]), "")


def truncate(text: str | Text, limit: int, keep: Literal["head", "tail", "both"] = "head") -> Text:
    """
    Return *text*, or if it is longer than *limit* a part of it and how much was cut.

    At most *limit* characters are kept: the ``"head"``, the ``"tail"``, or half of each. The line
    ``[... 1,234 characters cut ...]`` comes on top. A cut is made at the end of a line, or else of
    a word, if there is one in the last quarter of what would be kept.

    Raises:
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
    """
    Return at most *limit* characters of *text*, up to the end of a line or word if one is near.
    """
    ends = (text.rfind(end, limit - limit // 4, limit + 1) for end in "\n ")
    return text[: next((end for end in ends if end >= 0), limit)]

"""Removal and escaping of invisible characters, including those that reorder text."""

import re
from typing import Final

# These patterns are compiled on first use, because compiling them takes milliseconds.

#: All line endings except the line feed: those of Windows and old Macs, and others in Unicode.
_LINE_END: Final = "\r\n?|[\x0b\x0c\x85\u2028\u2029]"

#: The Unicode categories Cc, Cf, Co and Cs, and invisible characters of other categories. Exceptions are the
#: tab, the line feed, the visible number and verse signs of Arabic, Syriac and Kaithi, and the characters of
#: `_HELPER`. The pattern lists ranges, because the categories differ between Python versions.
_HIDDEN: Final = (
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u3164\uffa0"  # soft hyphen, marks, blank letters
    "\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"  # zero width, direction, byte order mark
    "\ufff0-\ufffb"  # annotations between lines
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # hieroglyphs, shorthand, music
    "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"  # tags
    "\ud800-\udfff\ue000-\uf8ff\ufdd0-\ufdef\ufffe\uffff\U000f0000-\U0010ffff"  # halves, private use
    "]+"
)

#: Joiners and variation selectors, which are invisible but which many scripts and emoji need.
_JOINER: Final = "\u200c\u200d"
_SELECTOR: Final = "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
_HELPER: Final = f"([^\x00-\x7f{_JOINER}{_SELECTOR}][{_SELECTOR}]?[{_JOINER}]?)|[{_JOINER}{_SELECTOR}]"

#: Characters that are always escaped: hidden characters, and line endings that are not control characters.
_ESCAPED: Final = f"{_HIDDEN}|[\u2028\u2029]"

#: Sequences to keep (the groups), and the remaining invisible characters. A digit, ``#`` or ``*`` followed by
#: a selector and U+20E3 is a keycap, the only kind of emoji that starts with an ASCII character.
_VISIBLE: Final = f"([0-9#*]\ufe0f\u20e3)|{_HELPER}"


def strip_invisible(text: str) -> str:
    """
    Return *text* without control characters, direction marks, tags or private-use characters.

    All line endings become line feeds, and tabs are kept. One variation selector and one joiner are kept
    after a character that is not ASCII, because Persian, Hindi, Japanese names and most emoji need them. More
    of them in a row, or any after an ASCII character, can only hide text.
    """
    visible = re.sub(_HIDDEN, "", re.sub(_LINE_END, "\n", text))
    return re.sub(_HELPER, r"\1", visible)


def escape_invisible(text: str, *, one_line: bool = False) -> str:
    r"""
    Return *text* with an escape such as ``\x1b`` in place of each character that `strip_invisible` removes.

    The result cannot control a terminal, and it shows everything that a model would read. Line feeds and tabs
    are escaped only if *one_line* is true.
    """
    escaped = re.sub(_ESCAPED, lambda match: _escape(match[0]), text)
    escaped = re.sub(_VISIBLE, lambda match: match[1] or match[2] or _escape(match[0]), escaped)
    return escaped.replace("\n", "\\n").replace("\t", "\\t") if one_line else escaped


def _escape(characters: str) -> str:
    return characters.encode("unicode_escape").decode("ascii")

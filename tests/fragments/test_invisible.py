"""Which invisible characters are removed or escaped, and which ones ordinary text needs."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit.fragments.invisible import escape_invisible, strip_invisible

#: Visible signs of some scripts that are format characters in Unicode.
VISIBLE_FORMATS = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
JOINERS = "\u200c\u200d"
LINE_ENDS = "\r\x0b\x0c\x85\u2028\u2029"


class TestStrip:
    @pytest.mark.parametrize(
        "text",
        [
            "plain text,\n\tindented",
            "Grüße, naïve café, 東京, Ελλάδα",
            "می‌خواهم",  # a joiner between two letters
            "क्‍ष",
            "ന്‍",
            "👩🏽‍💻 ❤️‍🔥 🏳️‍🌈",
            "葛\U000e0100城",
            "אבג العربية",
            f"{VISIBLE_FORMATS}١٢",
            "e\u0301\u0323",
            "",
        ],
        ids=[
            *("ASCII", "letters", "Persian", "Hindi", "Malayalam", "emoji", "a name's ideograph"),
            *("right to left", "number signs", "combining", "empty"),
        ],
    )
    def test_visible_text_is_kept(self, text):
        """Visible characters, and invisible ones that a script needs, are kept."""
        assert strip_invisible(text) == text

    @pytest.mark.parametrize(
        ("text", "visible"),
        [
            ("a\x00\x07\x08\x1b[31mb\x7f\x9b", "a[31mb"),
            ("abc\u202edcba\u202c\u2066x\u2069\u200e\u200f\u061c", "abcdcbax"),
            ("ig\u200bno\u200cre\u200d \u2060t\ufeffhis\xad", "ignore this"),
            ("a" + "".join(chr(0xE0000 + ord(c)) for c in "obey me") + "b", "ab"),
            ("😀" + "".join(map(chr, range(0xE0100, 0xE01F0))), "😀\U000e0100"),
            ("a\ufe00\ufe01\ufe0f", "a"),
            ("é\u200d\u200c\u200d\u200cé", "é\u200dé"),
            ("a\ud800b\udfff", "ab"),
            ("\ue000\uf8ff\U000f0000\U0010fffd", ""),
            ("a\u3164\u115f\u1160\uffa0b\u034f", "ab"),
            ("é\u200b\ufe00\u200b\ufe01", "é\ufe00"),
        ],
        ids=[
            *("controls", "directions", "zero width", "tags", "a message in selectors", "selectors of ASCII"),
            *("a message in joiners", "half pairs", "private use", "blank letters", "hidden between hidden"),
        ],
    )
    def test_invisible_characters_are_removed(self, text, visible):
        """Characters that a model would read but people do not see are removed."""
        assert strip_invisible(text) == visible

    @pytest.mark.parametrize("line_end", ["\r\n", *LINE_ENDS], ids=ascii)
    def test_line_ends_become_newlines(self, line_end):
        """Every kind of line end becomes a newline."""
        assert strip_invisible(f"a{line_end}b") == "a\nb"

    def test_all_invisible_categories_of_unicode_are_removed(self):
        """All control, format, private-use and surrogate characters are removed, except for those listed."""
        hidden = {"Cc", "Cf", "Co", "Cs"}
        everything = map(chr, range(sys.maxunicode + 1))
        text = "".join(character for character in everything if unicodedata.category(character) in hidden)

        remaining = strip_invisible("x".join(text)).replace("x", "")

        assert set(remaining) - set("\n\t") == set(VISIBLE_FORMATS)
        assert set(JOINERS) <= set(text)

    @given(st.text())
    def test_stripping_twice_changes_nothing(self, text):
        """Stripping twice changes nothing, so stripping never creates new invisible sequences."""
        stripped = strip_invisible(text)

        assert strip_invisible(stripped) == stripped

    @pytest.mark.timeout(10)
    @pytest.mark.parametrize(
        "piece", ["\u200d", "é\u200d", "\ufe0f", "\U000e0041", "\r", "a\u202e"], ids=ascii
    )
    def test_stripping_hostile_text_takes_linear_time(self, piece):
        """No text takes quadratic time, which would take minutes here."""
        assert len(strip_invisible(piece * 200_000)) <= 400_000


class TestEscape:
    @pytest.mark.parametrize(
        ("text", "escaped"),
        [
            ("a\x1b[31mb\x9b2J", r"a\x1b[31mb\x9b2J"),
            ("\x1b]52;c;aGk=\x07\x1b]8;;x\x1b\\", r"\x1b]52;c;aGk=\x07\x1b]8;;x\x1b" + "\\"),
            ("a\rb\x08c\x00d\x7f", r"a\rb\x08c\x00d\x7f"),
            ("\u202eabc\u2066\u200b\ufeff\u2028", r"\u202eabc\u2066\u200b\ufeff\u2028"),
            ("a\ud800b\udcff", r"a\ud800b\udcff"),
            ("a\u200db\ufe0f", r"a\u200db\ufe0f"),
            ("\U000e0041\U0010fffd", r"\U000e0041\U0010fffd"),
            ("line\n\tnext", "line\n\tnext"),
            ("1️⃣ #️⃣ ❤️ 👩🏽‍💻 می‌خواهم", "1️⃣ #️⃣ ❤️ 👩🏽‍💻 می‌خواهم"),
            ("x️⃣", "x\\ufe0f⃣"),
            ("", ""),
        ],
        ids=ascii,
    )
    def test_invisible_characters_are_escaped(self, text, escaped):
        """Invisible characters are shown as Python escapes; ordinary text and keycaps are unchanged."""
        assert escape_invisible(text) == escaped

    def test_line_feeds_are_escaped_on_one_line(self):
        """With *one_line*, line feeds and tabs are escaped, too."""
        assert escape_invisible("a\n\tb\x1b", one_line=True) == r"a\n\tb\x1b"

    @given(st.text())
    def test_escaped_text_has_no_invisible_characters(self, text):
        """Escaped text has no invisible characters except in keycaps, and escaping twice changes nothing."""
        escaped = escape_invisible(text).replace("\ufe0f\u20e3", "\u20e3")

        assert strip_invisible(escaped) == escaped
        assert escape_invisible(escape_invisible(text)) == escape_invisible(text)

    @pytest.mark.timeout(10)
    @pytest.mark.parametrize("piece", ["\u200d", "é\u200d", "1\ufe0f", "\x1b", "\U000e0041"], ids=ascii)
    def test_escaping_hostile_text_takes_linear_time(self, piece):
        """No text takes quadratic time."""
        assert len(escape_invisible(piece * 200_000)) <= 2_200_000

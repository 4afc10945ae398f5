"""Markdown: sections, lists, tables, quotations, code blocks."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from promptkit.fragments.text import Cell, Item, Part, checked_sequence, kept_parts
from promptkit.language.lines import LINE_END, hanging_indent
from promptkit.language.text import Text, plain_string, scalar_text, with_annotations

__all__ = ["BLOCKS", "bullets", "code_block", "json_block", "numbered", "quote", "section", "table"]


def section(title: str | Text, *parts: Part) -> Text:
    """
    Make a section: a heading of the second level, and parts with a blank line between them.

    Args:
        title:
            The heading. Its white space is reduced to single spaces, so that it is one line.

        *parts:
            Strings and `Text`. None, False and blank parts vanish; the heading stays. Sections among
            them keep the level of their headings, as what looks like a heading may be data.

    Returns:
        The section.

    Raises:
        TypeError: If *title* or a part is not text; it says which.

        ValueError: If *title* is blank, or the annotations of `Text` values differ.
    """
    heading = " ".join(plain_string(title, "section(title)").split())
    if not heading:
        msg = "section(title) is blank: name the section, or do without and pass its parts to user(...)"
        raise ValueError(msg)
    kept = kept_parts(parts, f"section({heading!r})")
    return with_annotations([title, *kept], "\n\n".join([f"## {heading}", *map(str, kept)]))


def bullets(items: Iterable[Item]) -> Text:
    """
    Make a bulleted list.

    Args:
        items:
            Strings, `Text`, numbers, dates and times. The further lines of an item are indented under
            its bullet. A list or tuple is a sublist of the item before it. None, False and blank
            items vanish.

    Returns:
        The list; without items an empty `Text`, which vanishes from what it is put into.

    Raises:
        TypeError: If *items* is one string, a mapping, or a set, which has no order; or if an item is
            none of the above; it says which.

        ValueError: If the annotations of `Text` values differ.
    """
    return _list(items, lambda _: "- ", "bullets(items)")


def numbered(items: Iterable[Item]) -> Text:
    """
    Make a numbered list. Sublists are numbered, too.

    Args:
        items:
            As for `bullets`.

    Returns:
        The list; without items an empty `Text`, which vanishes from what it is put into.

    Raises:
        TypeError: If *items* or an item is of no type that `bullets` takes.

        ValueError: If the annotations of `Text` values differ.
    """
    return _list(items, "{}. ".format, "numbered(items)")


def _list(items: Iterable[Item], marker: Callable[[int], str], place: str) -> Text:
    """Make a list; *marker* returns what stands before an item, given its number."""
    entries: list[str] = []
    sources: list[object] = []
    number, indent = 0, ""
    for position, item in enumerate(checked_sequence(items, place), 1):
        where = f"{place}: item {position}"
        sublist = isinstance(item, list | tuple)
        entry = _list(item, marker, where) if sublist else item
        text = "" if entry is None or entry is False else scalar_text(entry, where).strip()
        if not text:
            continue
        if not sublist:
            number += 1
            indent = " " * len(marker(number))
        entries.append(hanging_indent(text, indent if sublist else marker(number), indent))
        sources.append(entry)
    return with_annotations(sources, "\n".join(entries))


def code_block(source: str | Text, language: str = "") -> Text:
    """
    Put source code, unchanged, into a code fence that nothing in it can close.

    Args:
        source:
            The code.

        language:
            Its language, written behind the opening fence: ``"python"``.

    Returns:
        The code block.

    Raises:
        TypeError: If *source* or *language* is not text.

        ValueError: If *language* has a backtick or a line end.
    """
    code = plain_string(source, "code_block(source)")
    info = plain_string(language, "code_block(language)").strip()
    if "`" in info or LINE_END.search(info):
        msg = f"code_block(language) is {info!r}: name the language in one line without backticks"
        raise ValueError(msg)
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", code))])
    end = "" if not code or code.endswith("\n") else "\n"
    return with_annotations([source], f"{fence}{info}\n{code}{end}{fence}")


def table(rows: Iterable[Iterable[Cell] | Mapping[Any, Any]], header: Iterable[Cell] | None = None) -> Text:
    r"""
    Make a table of GitHub Markdown.

    Args:
        rows:
            Sequences of cells, or mappings from column to cell. A cell is a string, a `Text`, a
            number, a date, a time, or None if it is empty. ``|`` in it becomes ``\|``, and a line
            end ``<br>``.

        header:
            The names of the columns; for mappings, the keys to show. Left out, it is all keys of
            mappings, and blank for sequences, since Markdown has no table without a header.

    Returns:
        The table; without columns an empty `Text`, which vanishes from what it is put into.

    Raises:
        TypeError: If *rows*, a row or *header* is no sequence, or a cell is none of the above.

        ValueError: If a row has more or fewer cells than there are columns; it names the row. Or if
            the annotations of `Text` values differ.
    """
    lines = [
        row if isinstance(row, Mapping) else checked_sequence(row, f"table(rows): row {number}")
        for number, row in enumerate(checked_sequence(rows, "table(rows)"), 1)
    ]
    keys = dict.fromkeys(key for line in lines if isinstance(line, Mapping) for key in line)
    columns = list(keys) or [None] * len(lines[0] if lines else ())
    if header is not None:
        columns = list(checked_sequence(header, "table(header)"))
    grid = [columns, *(_cells(line, columns, number) for number, line in enumerate(lines, 1))]
    if not columns:
        return Text("")
    written = [" | ".join(map(_cell, row)) for row in grid]
    written.insert(1, " | ".join("---" for _ in columns))
    return with_annotations(
        (cell for row in grid for cell in row), "\n".join(f"| {row} |" for row in written)
    )


def _cells(row: Any, columns: Sequence[Any], number: int) -> list[Any]:
    if isinstance(row, Mapping):
        row = [row[column] for column in columns if column in row]
    if len(row) != len(columns):
        msg = (
            f"table(rows): row {number}: expected {len(columns)} cells, not {len(row)}; None is an empty one"
        )
        raise ValueError(msg)
    return list(row)


def _cell(value: Any) -> str:
    text = "" if value is None else scalar_text(value, "a cell of table(...)").strip()
    # Backslashes before a pipe are doubled. Else they would escape the one that escapes the pipe.
    return LINE_END.sub("<br>", re.sub(r"(?<!\\)(\\*)\|", r"\1\1\\|", text))


def quote(text: str | Text) -> Text:
    """
    Quote text: ``> `` stands before each line.

    Args:
        text:
            The text. Line ends before and after it are dropped.

    Returns:
        The quotation; of blank text an empty `Text`, which vanishes from what it is put into.

    Raises:
        TypeError: If *text* is not text.
    """
    quoted = plain_string(text, "quote(text)").strip("\r\n")
    return with_annotations([text], hanging_indent(quoted, "> ", "> ") if quoted.strip() else "")


def json_block(value: Any) -> Text:
    """
    Show a value as indented JSON in a code fence.

    Args:
        value:
            Anything that msgspec can encode: a dict, a list, a dataclass, an attrs class, a date. Keys
            keep their order. A set has no order: sort it, if equal sets should look alike.

    Returns:
        The code block.

    Raises:
        TypeError: If msgspec cannot encode the value, or it is nested too deeply.
    """
    try:
        encoded = msgspec.json.encode(value)
    except (TypeError, RecursionError) as error:
        msg = f"json_block(value): {error}; make a dict, a list, a number or text of it first"
        raise TypeError(msg) from error
    return code_block(msgspec.json.format(encoded, indent=2).decode(), "json")


#: The fragments that Markdown knows by the beginning of a line, and ends with one: `promptkit check` looks at
#: where they stand.
BLOCKS: Final = (bullets, code_block, json_block, numbered, quote, section, table)

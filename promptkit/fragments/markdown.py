"""Markdown: sections, lines, lists, tables, quotations, code blocks."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import index
from typing import Any, Final

import msgspec

from promptkit.fragments.text import Cell, Item, Part, checked_sequence, kept_parts
from promptkit.language.lines import LINE_END, hanging_indent
from promptkit.language.text import Mark, Text, mark_of, marked, plain_string, scalar_text, with_annotations

__all__ = ["BLOCKS", "bullets", "code_block", "json_block", "numbered", "quote", "section", "table"]


def section(title: str | Text, *parts: Part, level: int = 2) -> Text:
    """
    Make a section: a heading, and parts with a blank line between them.

    Args:
        title:
            The heading. Its white space is reduced to single spaces, so that it is one line.

        *parts:
            Strings and `Text`. None, False and blank parts vanish; the heading stays. Sections among
            them keep the level of their headings, as what looks like a heading may be data.

        level:
            The level of the heading, 1 to 6.

    Returns:
        The section.

    Raises:
        TypeError: If *title* or a part is not text; it says which. Or if *level* is not a whole number.

        ValueError: If *title* is blank, *level* is none that Markdown has, or the annotations of `Text`
            values differ.
    """
    heading = " ".join(plain_string(title, "section(title)").split())
    if not heading:
        msg = "section(title) is blank: name the section, or do without and pass its parts to user(...)"
        raise ValueError(msg)
    if not 1 <= index(level) <= 6:
        msg = f"section(level) is {level!r}: headings of Markdown have a level from 1 to 6"
        raise ValueError(msg)
    kept = kept_parts(parts, f"section({heading!r})")
    return _block([title, *kept], "\n\n".join([f"{'#' * level} {heading}", *map(str, kept)]))


def bullets(items: Iterable[Item]) -> Text:
    """
    Make a bulleted list.

    Args:
        items:
            Strings, `Text`, numbers, dates and times. The further lines of an item are indented under
            its bullet. A list or tuple, and what `bullets` or `numbered` returned, is a sublist of the
            item before it; where there is none before it, its items stand in its place. None, False
            and blank items vanish.

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
    Make a numbered list. A list or tuple in it is numbered, too.

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
        entry = _list(item, marker, where) if isinstance(item, list | tuple) else item
        is_sublist = mark_of(entry) == "list"
        text = "" if entry is None or entry is False else scalar_text(entry, where).strip()
        if not text:
            continue
        if not is_sublist:
            number += 1
            indent = " " * len(marker(number))
        entries.append(hanging_indent(text, indent if is_sublist else marker(number), indent))
        sources.append(entry)
    return _block(sources, "\n".join(entries), "list")


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
    return _block([source], f"{fence}{info}\n{code}{end}{fence}")


def table(
    rows: Iterable[Iterable[Cell] | Mapping[Any, Any]],
    header: Iterable[Cell] | None = None,
    missing: Cell = None,
) -> Text:
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

        missing:
            The cell of a mapping that lacks a column, ``""`` for an empty one. Left out, such a mapping
            is an error.

    Returns:
        The table; without columns an empty `Text`, which vanishes from what it is put into.

    Raises:
        TypeError: If *rows*, a row or *header* is no sequence, or a cell is none of the above.

        ValueError: If a row has more or fewer cells than there are columns, or lacks one; it names
            the row. Or if the annotations of `Text` values differ.
    """
    listed = [
        row if isinstance(row, Mapping) else checked_sequence(row, f"table(rows): row {number}")
        for number, row in enumerate(checked_sequence(rows, "table(rows)"), 1)
    ]
    keys = dict.fromkeys(key for row in listed if isinstance(row, Mapping) for key in row)
    columns = list(keys) or [None] * len(listed[0] if listed else ())
    if header is not None:
        columns = list(checked_sequence(header, "table(header)"))
    grid = [columns, *(_cells(row, columns, missing, number) for number, row in enumerate(listed, 1))]
    if not columns:
        return Text("")
    written = [" | ".join(map(_cell, row)) for row in grid]
    written.insert(1, " | ".join("---" for _ in columns))
    return _block((cell for row in grid for cell in row), "\n".join(f"| {row} |" for row in written))


def _cells(row: Any, columns: Sequence[Any], missing: Cell, number: int) -> list[Any]:
    if isinstance(row, Mapping):
        lacking = [column for column in columns if column not in row]
        if lacking and missing is None:
            msg = (
                f"table(rows): row {number} has no {lacking[0]!r}: give it one, which may be None, "
                "or say what stands for it, as in missing=''"
            )
            raise ValueError(msg)
        return [row.get(column, missing) for column in columns]
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
    return _block([text], hanging_indent(quoted, "> ", "> ") if quoted.strip() else "")


def json_block(value: Any, *, fence: bool = True) -> Text:
    """
    Show a value as indented JSON, in a code fence.

    Args:
        value:
            Anything that msgspec can encode: a dict, a list, a dataclass, an attrs class, a date. Keys
            keep their order. A set has no order: sort it, if equal sets should look alike.

        fence:
            Whether there is a fence around it.

    Returns:
        The code block, or the JSON alone.

    Raises:
        TypeError: If msgspec cannot encode the value, or it is nested too deeply.
    """
    try:
        encoded = msgspec.json.encode(value)
    except (TypeError, RecursionError) as error:
        msg = f"json_block(value): {error}; make a dict, a list, a number or text of it first"
        raise TypeError(msg) from error
    text = msgspec.json.format(encoded, indent=2).decode()
    return code_block(text, "json") if fence else Text(text)


def _block(sources: Iterable[object], text: str, mark: Mark = "block") -> Text:
    """Make a block, which Markdown knows by the beginning of a line."""
    return marked(with_annotations(sources, text), mark)


#: The fragments that Markdown knows by the beginning of a line, and ends with one: `promptkit check` looks at
#: where they stand.
BLOCKS: Final = (bullets, code_block, json_block, numbered, quote, section, table)

"""Markdown: sections, lists, tables, quotations and code blocks."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import index
from typing import Any, Final

import msgspec

from promptkit.fragments.text import Cell, Item, Part, checked_sequence, nonblank_parts
from promptkit.language.placeholders import LINE_END, hanging_indent
from promptkit.language.text import Text, is_list, mark_as_list, plain_string, scalar_text, with_annotations

__all__ = ["BLOCKS", "bullets", "code_block", "json_block", "numbered", "quote", "section", "table"]


def section(title: str | Text, *parts: Part, level: int = 2) -> Text:
    """
    Create a section: a heading, followed by parts with blank lines between them.

    Args:
        title:
            The heading. White space in it is collapsed to single spaces, so that it fits on one line.

        *parts:
            Strings and `Text`. None, False and blank parts are omitted. Nested sections keep the levels of
            their headings, because lines that look like headings can be data.

        level:
            The level of the heading, from 1 to 6.

    Returns:
        The section. If parts were passed and all are omitted, it is an empty `Text`, which other fragments
        omit.

    Raises:
        TypeError: If *title* or a part is not text (the message names the title or part), or *level* is not a
            whole number.

        ValueError: If *title* is blank, *level* is out of range, or the annotations of `Text` values differ.
    """
    heading = " ".join(plain_string(title, "section(title)").split())
    if not heading:
        msg = "section(title) is blank: pass a title, or pass the parts to user(...) instead"
        raise ValueError(msg)
    if not 1 <= index(level) <= 6:
        msg = f"section(level={level!r}): Markdown headings have levels from 1 to 6"
        raise ValueError(msg)
    texts = nonblank_parts(parts, f"section({heading!r})")
    if parts and not texts:
        return Text("")
    return with_annotations([title, *texts], "\n\n".join([f"{'#' * level} {heading}", *map(str, texts)]))


def bullets(items: Iterable[Item]) -> Text:
    """
    Create a bulleted list.

    Args:
        items:
            Strings, `Text`, numbers, dates and times. If an item has several lines, they are aligned. A list,
            a tuple, or a result of `bullets` or `numbered` becomes a sublist of the previous item, or is
            inserted without indentation if it is the first item. None, False and blank items are omitted.

    Returns:
        The list. If there are no items, it is an empty `Text`, which other fragments omit.

    Raises:
        TypeError: If *items* is a single string, a mapping, or a set, which has no order, or if an item has
            a different type; the message names the item.

        ValueError: If the annotations of `Text` values differ.
    """
    return _list(items, lambda _: "- ", "bullets(items)")


def numbered(items: Iterable[Item]) -> Text:
    """
    Create a numbered list. Lists and tuples in it become numbered sublists.

    Args:
        items:
            The same values that `bullets` accepts.

    Returns:
        The list. If there are no items, it is an empty `Text`, which other fragments omit.

    Raises:
        TypeError: If *items* or an item has a type that `bullets` does not accept.

        ValueError: If the annotations of `Text` values differ.
    """
    return _list(items, "{}. ".format, "numbered(items)")


def _list(items: Iterable[Item], marker: Callable[[int], str], label: str) -> Text:
    """Create a list. *marker* returns an item's marker, given the item's number."""
    entries: list[str] = []
    sources: list[object] = []
    number, indent = 0, ""
    for position, item in enumerate(checked_sequence(items, label), 1):
        item_label = f"{label}: item {position}"
        entry = _list(item, marker, item_label) if isinstance(item, list | tuple) else item
        is_sublist = is_list(entry)
        text = "" if entry is None or entry is False else scalar_text(entry, item_label).strip()
        if not text:
            continue
        if not is_sublist:
            number += 1
            indent = " " * len(marker(number))
        entries.append(hanging_indent(text, indent if is_sublist else marker(number), indent))
        sources.append(entry)
    return mark_as_list(with_annotations(sources, "\n".join(entries)))


def code_block(source: str | Text, language: str = "") -> Text:
    """
    Put source code, unchanged, into a code block whose fences the code cannot close.

    Args:
        source:
            The code.

        language:
            The language to write after the opening fence, such as ``"python"``.

    Returns:
        The code block.

    Raises:
        TypeError: If *source* or *language* is not text.

        ValueError: If *language* has a backtick or a line ending.
    """
    code = plain_string(source, "code_block(source)")
    info = plain_string(language, "code_block(language)").strip()
    if "`" in info or LINE_END.search(info):
        msg = f"code_block(language={info!r}): write the language on one line, without backticks"
        raise ValueError(msg)
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", code))])
    end = "" if not code or code.endswith("\n") else "\n"
    return with_annotations([source], f"{fence}{info}\n{code}{end}{fence}")


def table(
    rows: Iterable[Iterable[Cell] | Mapping[Any, Any]],
    header: Iterable[Cell] | None = None,
    missing: Cell = None,
) -> Text:
    r"""
    Create a table in GitHub Markdown.

    Args:
        rows:
            Sequences of cells, or mappings from column to cell. A cell can be a string, a `Text`, a number, a
            date or a time; use None for an empty cell. In a cell, ``|`` becomes ``\|``, and a line ending
            becomes ``<br>``.

        header:
            The names of the columns; for mappings, the keys to show. By default, all keys of the mappings are
            shown; for sequences, the names are blank, because Markdown tables need a header.

        missing:
            The cell to use for columns that a mapping does not have; ``""`` for an empty cell. By default, a
            missing column is an error.

    Returns:
        The table. If there are no columns, it is an empty `Text`, which other fragments omit.

    Raises:
        TypeError: If *rows*, a row or *header* is not a sequence, or a cell has a different type.

        ValueError: If a row does not have one cell for each column (the message contains the row's number),
            or if the annotations of `Text` values differ.
    """
    all_rows = [
        row if isinstance(row, Mapping) else checked_sequence(row, f"table(rows): row {number}")
        for number, row in enumerate(checked_sequence(rows, "table(rows)"), 1)
    ]
    keys = dict.fromkeys(key for row in all_rows if isinstance(row, Mapping) for key in row)
    columns = list(keys) or [None] * len(all_rows[0] if all_rows else ())
    if header is not None:
        columns = list(checked_sequence(header, "table(header)"))
    grid = [columns, *(_cells(row, columns, missing, number) for number, row in enumerate(all_rows, 1))]
    if not columns:
        return Text("")
    formatted = [" | ".join(map(_cell, row)) for row in grid]
    formatted.insert(1, " | ".join("---" for _ in columns))
    return with_annotations(
        (cell for row in grid for cell in row), "\n".join(f"| {row} |" for row in formatted)
    )


def _cells(row: Any, columns: Sequence[Any], missing: Cell, number: int) -> list[Any]:
    if isinstance(row, Mapping):
        missing_columns = [column for column in columns if column not in row]
        if missing_columns and missing is None:
            msg = (
                f"table(rows): row {number} has no {missing_columns[0]!r}: add it (use None for an empty "
                f"cell), or pass a default for all rows, for example missing=''"
            )
            raise ValueError(msg)
        return [row.get(column, missing) for column in columns]
    if len(row) != len(columns):
        msg = (
            f"table(rows): row {number}: expected {len(columns)} cells, not {len(row)}; use None for an "
            "empty cell"
        )
        raise ValueError(msg)
    return list(row)


def _cell(value: Any) -> str:
    text = "" if value is None else scalar_text(value, "a cell of table(...)").strip()
    # Backslashes before a pipe are doubled, so that they do not escape the backslash that escapes the pipe.
    return LINE_END.sub("<br>", re.sub(r"(?<!\\)(\\*)\|", r"\1\1\\|", text))


def quote(text: str | Text) -> Text:
    """
    Create a quotation by putting ``> `` before each line of a text.

    Args:
        text:
            The text. Line endings at its start and end are removed.

    Returns:
        The quotation. If the text is blank, it is an empty `Text`, which other fragments omit.

    Raises:
        TypeError: If *text* is not text.
    """
    quoted = plain_string(text, "quote(text)").strip("\r\n")
    return with_annotations([text], hanging_indent(quoted, "> ", "> ") if quoted.strip() else "")


def json_block(value: Any, *, fence: bool = True) -> Text:
    """
    Format a value as indented JSON in a code block.

    Args:
        value:
            Any value that msgspec can encode, such as a dict, a list, a date, or an instance of a dataclass
            or attrs class. Keys keep their order. Sort sets first if equal sets must result in equal text.

        fence:
            Whether to put the JSON between code fences.

    Returns:
        The code block, or only the JSON.

    Raises:
        TypeError: If msgspec cannot encode the value, or the value is nested too deeply.
    """
    text = indented_json(value, "json_block(value)", "convert it to a dict, a list, a number or text first")
    return code_block(text, "json") if fence else Text(text)


def indented_json(value: Any, source: str, hint: str) -> str:
    """
    Encode *value* as indented JSON.

    If that fails, raises TypeError, whose message starts with *source* and ends with *hint*.
    """
    try:
        encoded = msgspec.json.encode(value)
    except (TypeError, RecursionError) as error:
        msg = f"{source}: {error}; {hint}"
        raise TypeError(msg) from error
    return msgspec.json.format(encoded, indent=2).decode()


#: The fragments that must be on separate lines in Markdown. `promptkit check` verifies that they are.
BLOCKS: Final = (bullets, code_block, json_block, numbered, quote, section, table)

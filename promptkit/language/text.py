"""`Text`, the most common kind of content, and conversion of values to text."""

from collections.abc import Iterable, Mapping
from datetime import date, time
from decimal import Decimal
from enum import Enum
from numbers import Number
from pathlib import Path
from typing import Final, TypeAlias, final

import attrs
import msgspec

from promptkit.errors.exceptions import shortened
from promptkit.language.content import Content
from promptkit.language.files import parse_file, parse_file_below, source_file, source_folder
from promptkit.language.placeholders import TextWithPlaceholders
from promptkit.language.validation import checked_text, is_optional_part

_MARK: Final = "_mark"


@final
@attrs.frozen(repr=False, eq=False)
class Text(Content):
    """
    Text content. It also accepts the keyword arguments of `Content`.

    ``+`` joins a `Text` with a string or another `Text` into one block, with a blank line between them. It
    raises ValueError if the annotations differ. In an f-string, a `Text` is inserted as plain text.

    Args:
        text:
            The text. It is sent unchanged and never parsed as a template.

    Raises:
        TypeError: If *text* is not a string, or an annotation has the wrong type.

        ValueError: If an annotation is invalid.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#text-content
    """

    text: str = attrs.field(converter=checked_text)

    @property
    def texts(self) -> tuple[str, ...]:
        """The text, as the only item."""
        return (self.text,)

    @classmethod
    def from_path(cls, path: str | Path, /, **values: "PlaceholderValue") -> "Text":
        """
        Read a text file from the folder of the calling recipe and fill its placeholders.

        ``{{name}}`` is a placeholder if a value for *name* is given, and ``{{name?}}`` and ``{{#name}}`` make
        lines optional; see `promptkit.fragments.fill`. Front matter (YAML between two lines of ``---``) and
        blank lines at both ends are removed. To keep front matter for the model, start the file with a blank
        line. A server caches the file. A server that watches for changes reads it again after it has changed.

        Args:
            path:
                The path of the file, relative to the folder of the recipe. The file must be UTF-8, with or
                without a byte order mark. If any part of the path comes from an argument, use `below`.

            **values:
                The values of the placeholders; see `promptkit.fragments.fill`.

        Returns:
            The filled text. To add annotations, write ``Text(Text.from_path(...), priority=1)``.

        Raises:
            MediaError: If *path* leaves the recipe's folder or is not a readable file there, or if the file
                is not UTF-8 or larger than 20 MiB. It is a `PromptError`: the client sees its message.

            ValueError: If there is no placeholder for a value (the message lists the file's placeholders), or
                if a mark is not alone on its line or has no counterpart.

            TypeError: If a value to insert is None or a bool, or has a type that cannot be inserted.
        """
        name = str(path)
        return filled_text(parse_file(source_file(1), name, tuple(values)), values, name)

    @classmethod
    def below(cls, root: str | Path, path: str | Path, /, **values: "PlaceholderValue") -> "Text":
        """
        Read and fill a text file below *root*, as `from_path` does. *path* can come from an argument.

        Args:
            root:
                The folder that *path* must stay in, relative to the folder of the calling recipe.

            path:
                The path of the file, relative to *root*.

            **values:
                The values of the placeholders; see `promptkit.fragments.fill`.

        Returns:
            The filled text. The file is read on every call.

        Raises:
            MediaError: If *path* leaves *root* or is not a readable file there, or if the file is not UTF-8
                or larger than 20 MiB. It is a `PromptError`: the client sees its message.

            ValueError: If there is no placeholder for a value (the message lists the file's placeholders), or
                if a mark is not alone on its line or has no counterpart.

            TypeError: If a value to insert is None or a bool, or has a type that cannot be inserted.
        """
        name = shortened(str(path))
        return filled_text(parse_file_below(source_folder(1) / root, path, tuple(values)), values, name)

    def __bool__(self) -> bool:
        """Return whether the text is not blank."""
        return bool(self.text.strip())

    def __len__(self) -> int:
        """Return the number of characters."""
        return len(self.text)

    def __str__(self) -> str:
        return self.text

    def __format__(self, spec: str) -> str:
        return format(self.text, spec)

    def __add__(self, other: "str | Text") -> "Text":
        if isinstance(other, Text):
            if self.annotations != other.annotations:
                msg = (
                    "texts with different annotations cannot be combined into one block: pass both to "
                    "user(...)"
                )
                raise ValueError(msg)
            other = other.text
        return attrs.evolve(self, text=_join(self.text, other)) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: str) -> "Text":
        return attrs.evolve(self, text=_join(other, self.text)) if isinstance(other, str) else NotImplemented


#: Values that have one obvious text form.
Scalar: TypeAlias = str | Text | int | float | Decimal | date | time

#: Values for placeholders and marks. A value for a placeholder is inserted, so it must have a text form.
PlaceholderValue: TypeAlias = object


def mark_as_list(text: Text) -> Text:
    """Mark a new `Text` as a list and return it. Text that is composed from it does not inherit the mark."""
    object.__setattr__(text, _MARK, "list")
    return text


def is_list(value: object) -> bool:
    """Return whether a value is a `Text` that is marked as a list."""
    return getattr(value, _MARK, None) == "list"


def plain_text(text: str) -> Text:
    """Create a `Text` without annotations and without checks, for speed. *text* must be a plain `str`."""
    instance = object.__new__(Text)
    _set_text(instance, text)
    _set_audience(instance, ())
    _set_priority(instance, None)
    _set_last_modified(instance, None)
    return instance


#: Setters for the fields of a new `Text`, because the class is frozen.
_set_text, _set_audience, _set_priority, _set_last_modified = (
    getattr(Text, name).__set__ for name in ("text", "audience", "priority", "last_modified")
)


def _join(before: str, after: str) -> str:
    if not before.strip():
        return after
    # `+` and not an f-string, which would insert the name of an enum member instead of its value.
    return before + "\n\n" + after if after.strip() else before


def with_annotations(sources: Iterable[object], text: str) -> Text:
    """
    Create a `Text` from *text* with the annotations of the `Text` values in *sources*.

    Raises ValueError if these annotations differ.
    """
    texts = [source for source in sources if isinstance(source, Text)]
    if any(other.annotations != texts[0].annotations for other in texts):
        msg = (
            "texts with different annotations cannot be combined into one block: pass each of them to "
            "user(...)"
        )
        raise ValueError(msg)
    return attrs.evolve(texts[0], text=text) if texts else plain_text(text)


def scalar_text(value: object, label: str) -> str:
    """Convert a number, a date, a time or text to a plain `str`. Raises TypeError for anything else."""
    return str(value) if isinstance(value, Number | date | time) else plain_string(value, label)


def plain_string(value: object, label: str) -> str:
    """Return text as a `str` that is not of a subclass. Raises TypeError if *value* is not text."""
    if isinstance(value, Text):
        return value.text
    if isinstance(value, str):
        return str.__str__(value)  # an enum member becomes its value, as it does in JSON
    hint = "convert it to a str first"
    if is_optional_part(value):
        hint = "pass optional(...) to fit(...)"
    elif _is_nontext_part(value):
        hint = "pass it to user(...) next to the text"
    elif isinstance(value, list | tuple):
        hint = "convert it to text with bullets(...) or inline(...)"
    msg = f"{label}: expected text, not {type(value).__name__}; {hint}"
    raise TypeError(msg)


def filled_text(
    parsed: TextWithPlaceholders, values: Mapping[str, object], label: str, source: object = None
) -> Text:
    """
    Fill placeholders with *values*. The text has the annotations of the `Text` in *values* and of *source*.

    Raises:
        TypeError: If a value to insert is None or a bool, or has a type without a text form.

        ValueError: If the annotations of `Text` values differ.
    """

    def text_of(name: str) -> str:
        value = values[name]
        return value if type(value) is str else _placeholder_text(value, name, label)

    return with_annotations((source, *values.values()), parsed.filled(values, text_of))


def _placeholder_text(value: object, name: str, label: str) -> str:
    """
    Return the text to insert for a placeholder's value.

    Scalars become text, lists of scalars are joined with commas, and other values become JSON. Raises
    TypeError for values that cannot be inserted.
    """
    if value is None or isinstance(value, bool):
        hint = f"write {{{{{name}?}}}} if its line should be omitted, or pass an empty string"
        if value is not None:
            marks = f"{{{{#{name}}}}} and {{{{/{name}}}}}"
            hint = f"write {marks} around the lines that depend on it, or pass text"
        msg = f"{label}: {name!r} is {value}: {hint}"
        raise TypeError(msg)
    if isinstance(value, Enum) and not isinstance(value.value, str):
        return value.name
    if isinstance(value, list | tuple) and all(_is_scalar(item) for item in value):
        return ", ".join(scalar_text(item, name) for item in value)
    if _is_scalar(value) or _is_nontext_part(value) or isinstance(value, set | frozenset | bytes | bytearray):
        return scalar_text(value, f"{label}: {name}")
    if isinstance(value, list | tuple) and (part := next(filter(_is_nontext_part, value), None)) is not None:
        return plain_string(part, f"{label}: {name}")
    try:
        built = msgspec.to_builtins(value)
        return built if isinstance(built, str) else msgspec.json.encode(built).decode()
    except (TypeError, RecursionError):
        return scalar_text(value, f"{label}: {name}")  # raises a TypeError with a hint


def _is_nontext_part(value: object) -> bool:
    """Return whether a value is a message, content other than text, or a result of `optional`."""
    is_own = type(value).__module__.startswith("promptkit.language.") or is_optional_part(value)
    return is_own and not isinstance(value, Text)


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | Text | Number | date | time) and not isinstance(value, bool)

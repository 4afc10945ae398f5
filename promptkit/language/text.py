"""Text: the content that most messages hold, and how values become text."""

from collections.abc import Iterable, Mapping
from datetime import date, time
from decimal import Decimal
from numbers import Number
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, final

import attrs

from promptkit.language.content import Content
from promptkit.language.files import source_file, source_folder
from promptkit.language.text_files import filled_file, filled_file_below
from promptkit.language.validation import checked_text

if TYPE_CHECKING:
    from pathlib import Path

#: What a text is where it is put into another: a block needs lines of its own, and a list is a block.
Mark: TypeAlias = Literal["block", "list"]

_MARK: Final = "_mark"


@final
@attrs.frozen(repr=False, eq=False)
class Text(Content):
    """
    Text. It takes the keyword arguments of `Content`, too.

    ``+`` joins it with a string or a `Text` to one block, with a blank line between; it raises
    ValueError if the annotations differ. In an f-string it is its plain text.

    Args:
        text:
            The text. It is sent unchanged, and never read as a template.

    Raises:
        TypeError: If *text* is not a string, or an annotation is of another type.

        ValueError: If an annotation is refused by `Content`.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#text-content
    """

    text: str = attrs.field(converter=checked_text)

    @property
    def texts(self) -> tuple[str, ...]:
        """
        Its text.
        """
        return (self.text,)

    @classmethod
    def from_path(cls, path: "str | Path", /, **values: "HoleValue") -> "Text":
        """
        Read a text file beside the recipe that calls this, and fill its holes.

        ``{{name}}`` is a hole if *name* is given, as for `promptkit.fragments.fill`. Properties in front
        of the text (YAML between two lines of ``---``) are left out, and so are blank lines at both ends. A
        text that begins with properties that the model is to see has a blank line before them. A server
        reads the file once, and again when it has changed, if it watches.

        Args:
            path:
                The file, below the folder of the recipe: UTF-8, with or without a byte order mark. It
                must not come from an argument: see `below`.

            **values:
                What is put into the holes, as for `promptkit.fragments.fill`.

        Returns:
            The filled text. Give it annotations with ``Text(Text.from_path(...), priority=1)``.

        Raises:
            MediaError: If *path* leads out of that folder or names no readable file there, or the file is
                no UTF-8, or larger than 20 MiB. It is a `PromptError`: the client sees its message.

            ValueError: If there is no hole for a value; it lists the holes that the file has.

            TypeError: If a value is none that a hole takes.
        """
        name = str(path)
        return with_annotations(values.values(), filled_file(source_file(1), name, hole_texts(values, name)))

    @classmethod
    def below(cls, root: "str | Path", path: "str | Path", /, **values: "HoleValue") -> "Text":
        """
        Do what `from_path` does, for a path that may come from an argument, or leaves the recipe's folder.

        Args:
            root:
                A folder that *path* may not leave, relative to that of the recipe that calls this.

            path:
                The file, relative to *root*.

            **values:
                As for `from_path`.

        Returns:
            The filled text. The file is read each time.

        Raises:
            MediaError: If *path* leaves *root*, and as `from_path` does.

            ValueError: If there is no hole for a value.

            TypeError: If a value is none that a hole takes.
        """
        texts = hole_texts(values, str(path))
        return with_annotations(values.values(), filled_file_below(source_folder(1) / root, path, texts))

    def __bool__(self) -> bool:
        """Whether anything is left of it where it is put into another text: it is not blank."""
        return bool(self.text.strip())

    def __str__(self) -> str:
        return self.text

    def __format__(self, spec: str) -> str:
        return format(self.text, spec)

    def __add__(self, other: "str | Text") -> "Text":
        if isinstance(other, Text):
            if self.annotations != other.annotations:
                msg = "texts with different annotations cannot be one block: pass both to user(...)"
                raise ValueError(msg)
            other = other.text
        return attrs.evolve(self, text=_join(self.text, other)) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: str) -> "Text":
        return attrs.evolve(self, text=_join(other, self.text)) if isinstance(other, str) else NotImplemented


#: What has one obvious text.
Scalar: TypeAlias = str | Text | int | float | Decimal | date | time

#: What is put into a hole of a text. Of None and False, nothing is.
HoleValue: TypeAlias = Scalar | Literal[False] | None


def marked(text: Text, mark: Mark) -> Text:
    """
    Put a mark on a `Text` that was just made, and return it. What is composed of it does not have the mark.
    """
    object.__setattr__(text, _MARK, mark)
    return text


def mark_of(value: object) -> Mark | None:
    """
    Return the mark of a value, None if it has none.
    """
    return getattr(value, _MARK, None)


def plain_text(text: str) -> Text:
    """
    Return a `Text` without annotations, quickly: nothing is checked. *text* must be a plain `str`.
    """
    made = object.__new__(Text)
    _set_text(made, text)
    _set_audience(made, ())
    _set_priority(made, None)
    _set_last_modified(made, None)
    return made


#: These set the fields of a frozen `Text` that is being made.
_set_text, _set_audience, _set_priority, _set_last_modified = (
    getattr(Text, name).__set__ for name in ("text", "audience", "priority", "last_modified")
)


def _join(before: str, after: str) -> str:
    if not before.strip():
        return after
    # Not in an f-string: there, a member of an enum would be its name.
    return before + "\n\n" + after if after.strip() else before


def with_annotations(sources: Iterable[object], text: str) -> Text:
    """
    Return *text* with the annotations of each `Text` in *sources*. Raises ValueError if these differ.
    """
    texts = [source for source in sources if isinstance(source, Text)]
    if any(other.annotations != texts[0].annotations for other in texts):
        msg = "texts with different annotations cannot be one block: pass each of them to user(...)"
        raise ValueError(msg)
    return attrs.evolve(texts[0], text=text) if texts else plain_text(text)


def scalar_text(value: object, place: str) -> str:
    """
    Return the text of a number, a date, a time or a string. Raises TypeError for anything else.
    """
    return str(value) if isinstance(value, Number | date | time) else plain_string(value, place)


def plain_string(value: object, place: str) -> str:
    """
    Return text as a `str` and of no subclass. Raises TypeError if *value* is not text.
    """
    if isinstance(value, Text):
        return value.text
    if isinstance(value, str):
        return str.__str__(value)  # an enum's member is its value, as on the wire
    hint = "make it a str first"
    if isinstance(value, Content) or type(value).__module__ == "promptkit.language.turns":
        hint = "pass it to user(...) beside the text"
    elif isinstance(value, list | tuple):
        hint = "make it text with bullets(...) or inline(*...)"
    msg = f"{place}: expected text, not {type(value).__name__}; {hint}"
    raise TypeError(msg)


def hole_texts(values: Mapping[str, object], place: str) -> dict[str, str | None]:
    """
    Return the text that is put into each hole, None where nothing is. Raises TypeError for other values.
    """
    return {
        name: value if type(value) is str else _hole_text(value, name, place)
        for name, value in values.items()
    }


def _hole_text(value: object, name: str, place: str) -> str | None:
    if value is None or value is False:
        return None
    if value is True:
        msg = f"{place}: {name} is True: give the text that is to stand there, or None"
        raise TypeError(msg)
    return scalar_text(value, f"{place}: {name}")

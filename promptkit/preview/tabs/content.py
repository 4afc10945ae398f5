"""What a tab holds: texts to copy, what to choose from, and what there is to know."""

import json
from typing import Any, Final, Literal, TypeAlias

import attrs

from promptkit.fragments.invisible import escape_invisible
from promptkit.preview.conversation import SHORT

__all__ = ["Arrival", "Block", "Choice", "ClientView", "TabContent", "choices_of", "json_block"]

Language: TypeAlias = Literal["json", "python", "shell"]

#: What is wrong with a rendering that has no workflow.
NOTHING_SAID: Final = "The prompt says nothing for these arguments"


@attrs.frozen
class Choice:
    """
    One of several contents of a tab.

    Args:
        key:
            What is sent for it.

        label:
            What people see.

        chosen:
            Whether it is the one that is shown.
    """

    key: str
    label: str
    chosen: bool


class _Shown:
    """A text of which a page shows the beginning."""

    text: str

    @property
    def shown(self) -> str:
        """As much as a page shows."""
        return self.text[:SHORT]

    @property
    def is_whole(self) -> bool:
        """Whether a page shows each of its characters."""
        return len(self.text) <= SHORT and escape_invisible(self.text) == self.text


@attrs.frozen
class Block(_Shown):
    """
    A text to copy.

    Args:
        title:
            What it is.

        text:
            The text.

        language:
            What it is written in.
    """

    title: str
    text: str
    language: Language


@attrs.frozen
class Arrival(_Shown):
    """
    A message, or an argument, in one client.

    Args:
        label:
            Who says it, or the argument's name.

        text:
            What it holds.

        arrives:
            Whether the client shows or sends it as it is.
    """

    label: str
    text: str
    arrives: bool


@attrs.frozen
class ClientView:
    """
    A rendering as one client shows it.

    Args:
        title:
            The client.

        is_offered:
            Whether it offers the prompt to people.

        arguments:
            What the server gets for each argument of which a value is typed.

        messages:
            The messages.

        reason:
            Why there are none; "" if it offers the prompt and there are some.
    """

    title: str
    is_offered: bool
    arguments: tuple[Arrival, ...] = ()
    messages: tuple[Arrival, ...] = ()
    reason: str = ""


@attrs.frozen
class TabContent:
    """
    What a tab holds.

    Args:
        tab:
            The tab.

        choices:
            What else it may show.

        blocks:
            Texts to copy.

        notes:
            What there is to know, in sentences.

        view:
            The rendering as a client shows it.
    """

    tab: str
    choices: tuple[Choice, ...] = ()
    blocks: tuple[Block, ...] = ()
    notes: tuple[str, ...] = ()
    view: ClientView | None = None


def choices_of(labels: dict[str, str], choice: str, usual: str) -> tuple[str, tuple[Choice, ...]]:
    """
    Return the key that is chosen, and all choices.

    Args:
        labels:
            What people see, by key.

        choice:
            What was sent; it need not be a key.

        usual:
            The key that is chosen if it is none.
    """
    chosen = choice if choice in labels else usual
    return chosen, tuple(Choice(key, label, key == chosen) for key, label in labels.items())


def json_block(title: str, value: Any) -> Block:
    """
    Return JSON as a text to copy. What nobody would see is escaped in it.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False)
    if escape_invisible(text) != text:
        text = json.dumps(value, indent=2)
    return Block(title, text, "json")

"""Tabs: what else there is to see of a rendering, as text to copy."""

from collections.abc import Callable
from typing import Final, TypeAlias

from promptkit.preview.rendering import Rendering
from promptkit.preview.tabs import clients, command_line, pytest_source, vendors, wire
from promptkit.preview.tabs.content import TabContent

__all__ = ["TABS", "content_of"]

#: Takes a rendering, the target as the author wrote it, and what was chosen in the tab.
Content: TypeAlias = Callable[[Rendering, str, str], TabContent]

_CONTENTS: Final[dict[str, tuple[str, Content]]] = {
    "wire": ("Wire", wire.content),
    "vendors": ("Vendors", vendors.content),
    "test": ("Test", pytest_source.content),
    "command-line": ("Command line", command_line.content),
    "clients": ("Clients", clients.content),
}

#: The labels of the tabs, by the name in their addresses.
TABS: Final = {name: label for name, (label, _) in _CONTENTS.items()}


def content_of(tab: str, rendering: Rendering, target: str, choice: str = "") -> TabContent:
    """
    Return what a tab holds.

    Args:
        tab:
            One of `TABS`.

        rendering:
            A prompt with the values of a form.

        target:
            What is shown, as the author wrote it on the command line.

        choice:
            The key of one of the choices that the tab has; anything else stands for its first.

    Raises:
        KeyError: If there is no such tab.
    """
    make = _CONTENTS[tab][1]
    refused = [name for name, upload in rendering.uploads.items() if upload.refusal]
    if refused:  # no client would send these, or get such a fault
        return TabContent(tab, notes=(f"There is nothing to show yet: {', '.join(refused)} cannot be sent.",))
    return make(rendering, target, choice)

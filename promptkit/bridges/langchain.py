"""LangChain: what a prompt says, as messages of its own classes."""

from functools import partial
from typing import Any, Final

from promptkit.exports.turns import File, Part, Vendor, turns_of
from promptkit.language.media_checks import AUDIO_TYPES, IMAGE_TYPES
from promptkit.language.messages import Workflow

__all__ = ["messages"]

_PDF: Final = "application/pdf"


def messages(workflow: Workflow, *, lossy: bool = False) -> list[Any]:
    """
    Return the messages that chat models of LangChain take, with its standard blocks of content.

    Args:
        workflow:
            What a prompt rendered to.

        lossy:
            Whether what LangChain has no block for becomes text that says what it was.

    Returns:
        A ``SystemMessage`` for the system part, if there is one, and a ``HumanMessage`` or an ``AIMessage``
        for each turn: messages of one role that follow each other are one turn.

    Raises:
        ExportError: If there is anything that LangChain has no block for, unless *lossy*.

        ModuleNotFoundError: If langchain-core is not installed.

    See Also:
        https://docs.langchain.com/oss/python/langchain/messages
    """
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

    classes: dict[str, Any] = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
    turns = turns_of(workflow, _LANGCHAIN, lossy=lossy, has_system=True)
    return [classes[turn.role](content=turn.content) for turn in turns]


def _held(kind: str, file: File) -> Part:
    return {"type": kind, "base64": file.base64, "mime_type": file.mime_type}


def _fetched(kind: str, url: str) -> Part:
    return {"type": kind, "url": url}


_KINDS: Final = {**dict.fromkeys(IMAGE_TYPES, "image"), **dict.fromkeys(AUDIO_TYPES, "audio"), _PDF: "file"}

_LANGCHAIN: Final = Vendor(
    "LangChain",
    lambda text: {"type": "text", "text": text},
    request="messages",
    files={mime_type: partial(_held, kind) for mime_type, kind in _KINDS.items()},
    links={mime_type: partial(_fetched, kind) for mime_type, kind in _KINDS.items()},
)

"""LangChain: renderings as LangChain's message objects."""

from functools import partial
from typing import Any, Final

from promptkit.exports.vendor_messages import File, Part, Vendor, turns_of
from promptkit.language.media import AUDIO_TYPES, IMAGE_TYPES
from promptkit.language.messages import Workflow

__all__ = ["messages"]

_PDF: Final = "application/pdf"


def messages(workflow: Workflow, *, lossy: bool = False) -> list[Any]:
    """
    Convert a rendering to messages for LangChain's chat models, with LangChain's standard content blocks.

    Args:
        workflow:
            The rendering of a prompt.

        lossy:
            Whether to replace content that LangChain does not support with a text description.

    Returns:
        A ``SystemMessage`` for the system part, if there is one, and a ``HumanMessage`` or an ``AIMessage``
        for each turn. Consecutive messages with the same role form one turn.

    Raises:
        ExportError: If the rendering has content that LangChain does not support, and *lossy* is False.

        ModuleNotFoundError: If langchain-core is not installed.

    See Also:
        https://docs.langchain.com/oss/python/langchain/messages
    """
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

    classes: dict[str, Any] = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
    turns = turns_of(workflow, _LANGCHAIN, lossy=lossy, has_system=True)
    return [classes[turn.role](content=turn.content) for turn in turns]


def _build_data_part(kind: str, file: File) -> Part:
    return {"type": kind, "base64": file.base64, "mime_type": file.mime_type}


def _build_url_part(kind: str, url: str) -> Part:
    return {"type": kind, "url": url}


_KINDS: Final = {**dict.fromkeys(IMAGE_TYPES, "image"), **dict.fromkeys(AUDIO_TYPES, "audio"), _PDF: "file"}

_LANGCHAIN: Final = Vendor(
    "LangChain",
    lambda text: {"type": "text", "text": text},
    request="messages",
    files={mime_type: partial(_build_data_part, kind) for mime_type, kind in _KINDS.items()},
    links={mime_type: partial(_build_url_part, kind) for mime_type, kind in _KINDS.items()},
)

"""Prompts as typed Python functions, compiled and served to every MCP client."""

from promptkit.content import Audio, Content, EmbeddedResource, Image, ResourceLink, Text
from promptkit.context import Context
from promptkit.customs import register_type
from promptkit.errors import ArgumentErrors, CompileError, PromptError, PromptkitError, UnknownPrompt
from promptkit.icons import Icon
from promptkit.messages import Message, Workflow, assistant, user
from promptkit.prompts import Prompt, prompt
from promptkit.resources import Resource, resource
from promptkit.signature import Arg
from promptkit.version import VERSION as __version__  # noqa: N811 (what the ecosystem looks for)

__all__ = [
    "Arg",
    "ArgumentErrors",
    "Audio",
    "CompileError",
    "Content",
    "Context",
    "EmbeddedResource",
    "Icon",
    "Image",
    "Message",
    "Prompt",
    "PromptError",
    "PromptkitError",
    "Resource",
    "ResourceLink",
    "Text",
    "UnknownPrompt",
    "Workflow",
    "__version__",
    "assistant",
    "prompt",
    "register_type",
    "resource",
    "user",
]

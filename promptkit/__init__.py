"""Prompts as typed Python functions, compiled and served to every MCP client."""

from promptkit.declarations.prompts import Prompt, prompt
from promptkit.declarations.resources import Resource, resource
from promptkit.declarations.skills import Skill, skill
from promptkit.errors import ArgumentsError, CompileError, PromptError, PromptkitError, UnknownPromptError
from promptkit.language.annotations import Arg
from promptkit.language.content import Content
from promptkit.language.context import Context
from promptkit.language.documents import EmbeddedResource, ResourceLink
from promptkit.language.files import read_below
from promptkit.language.media import Audio, Icon, Image
from promptkit.language.messages import Message, Workflow
from promptkit.language.text import Text
from promptkit.language.tools import Tool
from promptkit.language.turns import assistant, cache_point, system, user
from promptkit.types.scalars import register_type
from promptkit.version import VERSION as __version__  # noqa: N811 (what the ecosystem looks for)

__all__ = [
    "Arg",
    "ArgumentsError",
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
    "Skill",
    "Text",
    "Tool",
    "UnknownPromptError",
    "Workflow",
    "__version__",
    "assistant",
    "cache_point",
    "prompt",
    "read_below",
    "register_type",
    "resource",
    "skill",
    "system",
    "user",
]

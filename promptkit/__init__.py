"""
Prompts as typed Python functions, compiled and served to every MCP client.

Public names are imported on first use, so that importing this package is cheap: because of the pytest plugin,
every test run in an environment with promptkit imports it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from promptkit.version import VERSION as __version__  # noqa: N811 (the conventional name)

if TYPE_CHECKING:
    from promptkit.declarations.prompts import AnsweredPrompt, Prompt, prompt
    from promptkit.declarations.resources import Resource, resource
    from promptkit.declarations.skills import Skill, skill
    from promptkit.errors import ArgumentsError, CompileError, PromptError, PromptkitError, UnknownPromptError
    from promptkit.language.annotations import Arg, Tool
    from promptkit.language.content import Content
    from promptkit.language.context import Context
    from promptkit.language.documents import EmbeddedResource, ResourceLink
    from promptkit.language.files import read_below
    from promptkit.language.media import Audio, Icon, Image
    from promptkit.language.messages import Message, Workflow
    from promptkit.language.text import Text
    from promptkit.language.turns import assistant, cache_point, system, user
    from promptkit.types.scalar_types import register_type

__all__ = [
    "AnsweredPrompt",
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

#: The public names that each module of the package defines.
_MODULES: Final = {
    "declarations.prompts": ("AnsweredPrompt", "Prompt", "prompt"),
    "declarations.resources": ("Resource", "resource"),
    "declarations.skills": ("Skill", "skill"),
    "types.scalar_types": ("register_type",),
    "errors": ("ArgumentsError", "CompileError", "PromptError", "PromptkitError", "UnknownPromptError"),
    "language.annotations": ("Arg", "Tool"),
    "language.content": ("Content",),
    "language.context": ("Context",),
    "language.documents": ("EmbeddedResource", "ResourceLink"),
    "language.files": ("read_below",),
    "language.media": ("Audio", "Icon", "Image"),
    "language.messages": ("Message", "Workflow"),
    "language.text": ("Text",),
    "language.turns": ("assistant", "cache_point", "system", "user"),
}
_MODULE_BY_NAME: Final = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_BY_NAME:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    globals()[name] = value = getattr(import_module(f"promptkit.{_MODULE_BY_NAME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

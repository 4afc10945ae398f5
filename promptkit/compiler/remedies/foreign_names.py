"""Names and options of other frameworks that authors try, and what to write instead."""

from collections.abc import Mapping
from typing import Final

from promptkit.language.return_remedies import NO_SYSTEM

__all__ = ["remedy_for_name", "remedy_for_option"]

_FUNCTION: Final = "write a function with @prompt that returns an f-string"
_SERVER: Final = "there is no server to make: decorate functions with @prompt, and run promptkit serve"

#: What to write instead of a name that promptkit does not have.
_NAMES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("SystemMessage", "System", "system", "DeveloperMessage", "developer"), NO_SYSTEM),
    **dict.fromkeys(
        ("UserMessage", "HumanMessage", "human"), "write 'from promptkit import user', and user(...)"
    ),
    **dict.fromkeys(
        ("AssistantMessage", "AIMessage", "ai", "model"),
        "write 'from promptkit import assistant', and assistant(...)",
    ),
    **dict.fromkeys(("PromptTemplate", "ChatPromptTemplate", "Template", "template"), _FUNCTION),
    **dict.fromkeys(("FastMCP", "MCPServer", "Server", "McpServer", "mcp", "server"), _SERVER),
    "tool": "write @prompt: promptkit serve --tools offers prompts as tools, too",
    **dict.fromkeys(("Field", "Param", "Parameter", "Argument"), "write Arg('...') in Annotated"),
    **dict.fromkeys(("from_file", "open", "load", "from_filename"), "write .from_path(...)"),
    "TextContent": "did you mean 'Text'?",
    "ImageContent": "did you mean 'Image'?",
    "AudioContent": "did you mean 'Audio'?",
    "PromptMessage": "did you mean 'Message'?",
}

_TEXT: Final = "the text is what the function returns: return f'...{name}...'"
_PARAMETERS: Final = "arguments are the function's parameters: def name(topic: str)"
_SETTINGS: Final = "MCP prompts carry no settings of a model; the client chooses them"
_CHOICES: Final = "write the choices as the type: Annotated[Literal['a', 'b'], Arg(...)]"
_DEFAULT: Final = "write the default in the signature; an argument without one is required"
_LIMITS: Final = "limit it with msgspec.Meta(ge=..., pattern=..., ...) in Annotated"

#: What to write instead of an option, by the function or class that it was given to.
_OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "prompt": {
        **dict.fromkeys(("template", "text", "prompt", "content", "messages", "system", "body"), _TEXT),
        **dict.fromkeys(
            ("arguments", "args", "parameters", "params", "inputs", "input_variables"), _PARAMETERS
        ),
        **dict.fromkeys(("model", "temperature", "max_tokens"), _SETTINGS),
    },
    "Arg": {
        **dict.fromkeys(("choices", "enum", "options", "values"), _CHOICES),
        **dict.fromkeys(("default", "required", "optional"), _DEFAULT),
        "type": "write the type as the annotation: Annotated[int, Arg(...)]",
        **dict.fromkeys(
            (
                *("ge", "gt", "le", "lt", "min", "max", "multiple_of", "pattern", "regex"),
                *("min_length", "max_length"),
            ),
            _LIMITS,
        ),
        **dict.fromkeys(("help", "doc"), "did you mean 'description'?"),
    },
    "Image": dict.fromkeys(("path", "file", "filename"), "write Image.from_path(...)"),
    "Audio": dict.fromkeys(("path", "file", "filename"), "write Audio.from_path(...)"),
    "Text": dict.fromkeys(("content", "value", "body"), "did you mean 'text'?"),
    "Message": dict.fromkeys(("text", "parts", "body", "message"), "did you mean 'content'?"),
    "EmbeddedResource": {
        "content": "did you mean 'text'? bytes are given as blob=",
        "data": "did you mean 'blob'?",
    },
}


def remedy_for_name(name: str) -> str | None:
    """Return what to write instead of a name of another framework, if it is one."""
    return _NAMES.get(name)


def remedy_for_option(name: str, option: str) -> str | None:
    """Return what to write instead of an option that *name*, a name of promptkit, does not take."""
    return _OPTIONS.get(name, {}).get(option)

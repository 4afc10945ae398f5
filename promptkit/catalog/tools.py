"""The prompts of a catalog as tools: one per prompt, or two tools that find and get prompts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, cast

from msgspec import json, structs

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt, FunctionRenderer
from promptkit.catalog.ranking import best_matches
from promptkit.errors.diagnostics import Location
from promptkit.errors.exceptions import UnknownToolError
from promptkit.errors.suggestions import nearest, similar_names
from promptkit.language.annotations import NO_DEFAULT, Arg, Tool
from promptkit.types.parsing import reader_for
from promptkit.types.scalar_types import Reader
from promptkit.types.structuring import structurer


class Tools:
    """
    The tools that models can call, keyed by name. Each tool is created on first use.

    Args:
        catalog:
            The catalog.

        prompts:
            Whether to offer prompts.

        search:
            Whether to offer two tools that find and get prompts, instead of one tool per prompt.

        extra_tools:
            More tools by name, which take precedence over prompts of the same name.
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        prompts: bool = True,
        search: bool = False,
        extra_tools: Mapping[str, CompiledPrompt] = MappingProxyType({}),
    ) -> None:
        self._catalog = catalog if prompts else Catalog()
        catalog = self._catalog
        self._extra_tools = extra_tools
        self._cached_tools: dict[str, CompiledPrompt] = {}
        self._search = make_search_tools(lambda: callable_prompts(catalog)) if search else None

    @property
    def is_search_only(self) -> bool:
        """Whether prompts are offered only through the two tools that find and get them."""
        return self._search is not None

    @property
    def listed(self) -> Sequence[CompiledPrompt]:
        """The tools in the order in which clients list them: the added tools come after those for prompts."""
        prompts = callable_prompts(self._catalog)
        if self._search is None:
            return *(
                each for each in prompts if each.name not in self._extra_tools
            ), *self._extra_tools.values()
        get_tool = structs.replace(self._search[GET], tool=combine_hints(prompts))
        return self._search[FIND], get_tool, *self._extra_tools.values()

    def __getitem__(self, name: str) -> CompiledPrompt:
        """Return the tool called *name*. Raises `UnknownToolError` if there is none."""
        if name in self._extra_tools:
            return self._extra_tools[name]
        if self._search is None:
            return self.prompt(name)
        if (tool := self._search.get(name)) is None:
            raise UnknownToolError(name, nearest(name, (*self._search, *self._extra_tools)))
        return tool

    def prompt(self, name: str) -> CompiledPrompt:
        """
        Return the prompt called *name* as a tool, whose arguments accept JSON values.

        Raises:
            UnknownToolError: If no prompt has this name, or it is not offered as a tool.
        """
        if (tool := self._cached_tools.get(name)) is None:
            tool = self._cached_tools[name] = _convert_to_tool(self._find(name))
        return tool

    def _find(self, name: str) -> CompiledPrompt:
        prompt = self._catalog.find_prompt(name)
        if prompt is None or prompt.tool is False:
            names = [prompt.name for prompt in callable_prompts(self._catalog)]
            raise UnknownToolError(name, nearest(name, (*names, *self._extra_tools)))
        return prompt


def callable_prompts(catalog: Catalog) -> tuple[CompiledPrompt, ...]:
    """Return the prompts that models can call, sorted by name."""
    return tuple(prompt for prompt in catalog.prompts if prompt.tool is not False)


def _convert_to_tool(prompt: CompiledPrompt) -> CompiledPrompt:
    arguments = prompt.arguments
    ordered = tuple(map(_accept_json, arguments.ordered))
    return structs.replace(prompt, arguments=_ToolArguments(arguments.owner, ordered, arguments.kind))


def _accept_json(argument: Argument) -> Argument:
    """Return the argument with a reader that accepts JSON values of its type as well as text."""
    convert, read_text = structurer(argument.annotation), argument.reader.read

    def read(value: Any) -> Any:
        try:
            return convert(value)
        except Exception:  # noqa: BLE001 (an author's class can raise any exception)
            return read_text(value)

    return structs.replace(argument, reader=structs.replace(argument.reader, read=read))


class _ToolArguments(Arguments, frozen=True):
    """
    The arguments of a tool.

    Null and empty strings are values where the schema allows them. Unknown arguments are ignored, because
    some hosts add their own, such as the id of the call. A misspelt argument is still an error.
    """

    def _is_given(self, name: str, value: Any) -> bool:
        if super()._is_given(name, value):
            return True
        try:
            structurer(self.by_name[name].annotation)(value)
        except Exception:  # noqa: BLE001 (an author's class can raise any exception)
            return False
        return True

    def _is_ignored(self, name: str) -> bool:
        return not similar_names(name, self.by_name)


FIND: Final = "find_prompts"
GET: Final = "get_prompt"

#: Hosts such as Claude Code truncate longer tool descriptions and server instructions.
MAX_TOOL_DESCRIPTION: Final = 2048

#: Maximum number of prompts in a search result, each with the schema of its arguments.
MAX_MATCHES: Final = 10

_FIND_DESCRIPTION: Final = (
    "Find prompts: instructions that people have written for a task. Returns names, descriptions and "
    f"the JSON Schema of the arguments, best matches first. {GET} returns one of them."
)
_GET_DESCRIPTION: Final = f"Return a prompt from {FIND}, rendered with its arguments: instructions to follow."

_QUERY: Final = "Keywords for the task, such as 'review security'. Without keywords, all prompts match."
_NAME: Final = f"The prompt's name, as {FIND} returns it"
_ARGUMENTS: Final = "The prompt's arguments by name, as in its schema"


def make_search_tools(prompts: Callable[[], Iterable[CompiledPrompt]]) -> dict[str, CompiledPrompt]:
    """
    Return the tools that find and get prompts, keyed by tool name.

    Args:
        prompts:
            Returns the prompts that models can call. It is called when a client lists or calls the tools.
    """

    def find_prompts(query: str) -> str:
        return _encode_matches(find(prompts(), query))

    query = make_argument("query", str, _QUERY)
    name = make_argument("name", str, _NAME)
    # Some of the arguments might be secret.
    arguments = make_argument("arguments", dict[str, Any], _ARGUMENTS, {}, secret=True)
    return {
        FIND: make_tool(FIND, _FIND_DESCRIPTION, find_prompts, query),
        GET: make_tool(GET, _GET_DESCRIPTION, dict, name, arguments),
    }


def find(prompts: Iterable[CompiledPrompt], query: str) -> list[CompiledPrompt]:
    """
    Return the prompts whose name, title, tags or description share a word with *query*, best first.

    If *query* has no words, all prompts match.
    """
    prompts = list(prompts)
    texts = [
        " ".join(filter(None, (prompt.name, prompt.title, *prompt.tags, prompt.description)))
        for prompt in prompts
    ]
    return [prompts[number] for number in best_matches(texts, query)]


def combine_hints(prompts: Iterable[CompiledPrompt]) -> Tool:
    """Return the combined hints for a tool that can call any of *prompts*."""
    tools = [prompt.tool for prompt in prompts if isinstance(prompt.tool, Tool)]
    return Tool(
        read_only=all(tool.read_only for tool in tools),
        idempotent=all(tool.idempotent for tool in tools),
        open_world=any(tool.open_world for tool in tools),
        destructive=any(tool.destructive for tool in tools),
    )


def make_argument(
    name: str, annotation: Any, description: str, default: Any = NO_DEFAULT, *, secret: bool = False
) -> Argument:
    """Return an argument for one of promptkit's own tools or prompts."""
    reader = cast("Reader", reader_for(annotation))  # these types always have a reader
    return Argument(name, annotation, default, reader, None, description, Arg(description, secret=secret))


def make_tool(
    name: str,
    description: str,
    function: Callable[..., Any],
    *arguments: Argument,
    tool: Tool | None = None,
) -> CompiledPrompt:
    """Return one of promptkit's own tools, as a prompt whose text is the result of *function*."""
    return CompiledPrompt(
        name=name,
        title=None,
        description=description,
        icons=(),
        meta={},
        arguments=_ToolArguments(name, arguments, "tool"),
        context=None,
        renderer=FunctionRenderer(function, name, Location(__file__, 1)),
        tool=tool,
    )


def _encode_matches(matches: list[CompiledPrompt]) -> str:
    """Return the first `MAX_MATCHES` matches, as JSON."""
    entries = [_format_entry(prompt) for prompt in matches[:MAX_MATCHES]]
    return json.encode({"prompts": entries, "found": len(matches)}).decode()


def _format_entry(prompt: CompiledPrompt) -> Mapping[str, Any]:
    texts = {"name": prompt.name, "title": prompt.title, "description": prompt.description}
    return {key: text for key, text in texts.items() if text is not None} | {"arguments": prompt.schema}

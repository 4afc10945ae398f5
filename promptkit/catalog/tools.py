"""The prompts of a catalog as tools: one for each prompt, or two that find and get prompts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import json, structs

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.completion import grade
from promptkit.catalog.prompts import CompiledPrompt, FunctionRenderer
from promptkit.errors.diagnostics import Location
from promptkit.errors.exceptions import UnknownToolError
from promptkit.errors.suggestions import nearest
from promptkit.language.annotations import NO_DEFAULT, Arg
from promptkit.language.tools import Tool
from promptkit.types.fast_path import json_read
from promptkit.types.readers import reader_of

if TYPE_CHECKING:
    from promptkit.types.scalars import Reader


class Tools:
    """
    What of a catalog models may call, by name. Each tool is made when it is looked for first.

    Args:
        catalog:
            The catalog.

        search:
            Whether two tools, which find and get prompts, take the place of one for each prompt.
    """

    def __init__(self, catalog: Catalog, *, search: bool = False) -> None:
        self._catalog = catalog
        self._made: dict[str, CompiledPrompt] = {}
        self._search = search_tools(lambda: callable_prompts(catalog)) if search else None

    @property
    def is_search(self) -> bool:
        """Whether two tools find and get prompts."""
        return self._search is not None

    @property
    def listed(self) -> Sequence[CompiledPrompt]:
        """The tools, as clients list them: sorted by name."""
        prompts = callable_prompts(self._catalog)
        if self._search is None:
            return prompts
        getting = structs.replace(self._search[GET], tool=everything_expected(prompts))
        return self._search[FIND], getting

    def __getitem__(self, name: str) -> CompiledPrompt:
        """Raises `UnknownToolError` if no tool has this name."""
        if self._search is None:
            return self.prompt(name)
        if (found := self._search.get(name)) is None:
            raise UnknownToolError(name, nearest(name, self._search))
        return found

    def prompt(self, name: str) -> CompiledPrompt:
        """
        Return a prompt, with arguments that are read as JSON.

        Raises:
            UnknownToolError: If there is none of this name, or it is not to be called.
        """
        if (found := self._made.get(name)) is None:
            found = self._made[name] = _as_tool(self._find(name))
        return found

    def _find(self, name: str) -> CompiledPrompt:
        prompt = self._catalog.find_prompt(name)
        if prompt is None or prompt.tool is False:
            names = [prompt.name for prompt in callable_prompts(self._catalog)]
            raise UnknownToolError(name, nearest(name, names))
        return prompt


def callable_prompts(catalog: Catalog) -> tuple[CompiledPrompt, ...]:
    """Return the prompts that models may call, sorted by name."""
    return tuple(prompt for prompt in catalog.prompts if prompt.tool is not False)


def _as_tool(prompt: CompiledPrompt) -> CompiledPrompt:
    known = prompt.arguments
    ordered = tuple(map(_exact, known.ordered))
    return structs.replace(prompt, arguments=_ToolArguments(known.owner, ordered, known.kind))


def _exact(argument: Argument) -> Argument:
    """An argument that reads JSON as its schema says, and only what does not fit that as people write it."""
    convert, read_text = json_read(argument.annotation), argument.reader.read

    def read(value: Any) -> Any:
        try:
            return convert(value)
        except Exception:  # noqa: BLE001 (an author's class may refuse in any way)
            return read_text(value)

    return structs.replace(argument, reader=structs.replace(argument.reader, read=read))


class _ToolArguments(Arguments, frozen=True):
    """Arguments of a program, to which null and empty text are values, where the schema has them."""

    def _is_given(self, name: str, value: Any) -> bool:
        if super()._is_given(name, value):
            return True
        try:
            json_read(self.by_name[name].annotation)(value)
        except Exception:  # noqa: BLE001 (an author's class may refuse in any way)
            return False
        return True


FIND: Final = "find_prompts"
GET: Final = "get_prompt"

#: How many prompts are shown of all that are found, each with the schema of its arguments.
MAX_FOUND: Final = 10

#: How many words of a query are looked for. What a client sends may hold any number of them.
_MAX_WORDS: Final = 16

_FIND_SAYS: Final = (
    "Find prompts: instructions that people have written for a task. Returns names, descriptions and "
    f"the JSON Schema of the arguments, best matches first. {GET} returns one of them."
)
_GET_SAYS: Final = (
    f"Return a prompt that {FIND} has found, filled in with its arguments: instructions to follow."
)

_QUERY: Final = "Words of the task, as in 'review security'. Without words, all prompts match."
_NAME: Final = f"The prompt's name, as {FIND} returns it"
_ARGUMENTS: Final = "Its arguments by name, as its schema has them"


def search_tools(prompts: Callable[[], Iterable[CompiledPrompt]]) -> dict[str, CompiledPrompt]:
    """
    Return the two tools by name.

    Args:
        prompts:
            Returns the prompts that may be called. It is called once somebody lists or calls the tools.
    """

    def find_prompts(query: str) -> str:
        return _shown(find(prompts(), query))

    query = _argument("query", str, _QUERY)
    name = _argument("name", str, _NAME)
    arguments = _argument("arguments", dict[str, Any], _ARGUMENTS, {}, secret=True)  # some of them may be
    return {
        FIND: _tool(FIND, _FIND_SAYS, find_prompts, query),
        GET: _tool(GET, _GET_SAYS, dict, name, arguments),
    }


def find(prompts: Iterable[CompiledPrompt], query: str) -> list[CompiledPrompt]:
    """
    Return the prompts that match any word of *query*, best first.

    Those with most of the words come first. Each word is looked for in the name, the title, the tags and the
    description, and ranked as completion ranks what is typed.
    """
    words = list(dict.fromkeys(query.casefold().split()))[:_MAX_WORDS]
    if not words:
        return list(prompts)
    graded = [(_grade(prompt, words), prompt) for prompt in prompts]
    matching = [found for found in graded if found[0][0] < len(words)]
    return [prompt for _, prompt in sorted(matching, key=itemgetter(0))]


def _grade(prompt: CompiledPrompt, words: list[str]) -> tuple[int, int]:
    """How many of *words* a prompt lacks, and how well it matches the others. Less is better."""
    texts = [text for text in (prompt.name, prompt.title, *prompt.tags) if text]
    grades = [_grade_word(word, texts, prompt.description or "") for word in words]
    found = [grade for grade in grades if grade is not None]
    return len(words) - len(found), sum(found)


def _grade_word(word: str, texts: list[str], description: str) -> int | None:
    """How well a word matches. In a description, which is long, it has to stand as it is."""
    grades = [found[0] for text in texts if (found := grade(text, word)) is not None]
    if (found := grade(description, word)) is not None and word in description.casefold():
        grades.append(found[0] + 1)
    return min(grades, default=None)


def everything_expected(prompts: Iterable[CompiledPrompt]) -> Tool:
    """Return what may be expected of a tool that calls any of *prompts*."""
    said = [prompt.tool for prompt in prompts if isinstance(prompt.tool, Tool)]
    return Tool(
        read_only=all(tool.read_only for tool in said),
        idempotent=all(tool.idempotent for tool in said),
        open_world=any(tool.open_world for tool in said),
        destructive=any(tool.destructive for tool in said),
    )


def _argument(
    name: str, annotation: Any, description: str, default: Any = NO_DEFAULT, *, secret: bool = False
) -> Argument:
    reader = cast("Reader", reader_of(annotation))  # it is a type that has one
    return Argument(name, annotation, default, reader, None, description, Arg(description, secret=secret))


def _tool(name: str, description: str, function: Callable[..., Any], *arguments: Argument) -> CompiledPrompt:
    return CompiledPrompt(
        name=name,
        title=None,
        description=description,
        icons=(),
        meta={},
        arguments=Arguments(name, arguments, "tool"),
        context=None,
        renderer=FunctionRenderer(function, name, Location(__file__, 1)),
    )


def _shown(found: list[CompiledPrompt]) -> str:
    """The best of what was found, as JSON."""
    shown = [
        {key: value for key, value in _entry(prompt).items() if value is not None}
        for prompt in found[:MAX_FOUND]
    ]
    return json.encode({"prompts": shown, "found": len(found)}).decode()


def _entry(prompt: CompiledPrompt) -> Mapping[str, Any]:
    schema = {key: value for key, value in prompt.schema.items() if key != "$schema"}
    return {
        "name": prompt.name,
        "title": prompt.title,
        "description": prompt.description,
        "arguments": schema,
    }

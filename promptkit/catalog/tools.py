"""The prompts of a catalog as tools: which models may call, and how the arguments of a call are read."""

from collections.abc import Sequence
from typing import Any

from msgspec import field, structs

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.search import FIND, GET, everything_expected, search_tools
from promptkit.conversion.exact import exact_read, is_ambiguous, json_read
from promptkit.conversion.parsing import Read
from promptkit.errors.exceptions import UnknownPrompt, UnknownTool, nearest

__all__ = ["Tools", "callable_prompts"]


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
        """Raises `UnknownTool` if no tool has this name."""
        if self._search is None:
            return self.prompt(name)
        if (found := self._search.get(name)) is None:
            raise UnknownTool(name, nearest(name, self._search))
        return found

    def prompt(self, name: str) -> CompiledPrompt:
        """
        Return a prompt, with arguments that are read as JSON.

        Raises:
            UnknownTool: If there is none of this name, or it is not to be called.
        """
        if (found := self._made.get(name)) is None:
            found = self._made[name] = _as_tool(self._find(name))
        return found

    def _find(self, name: str) -> CompiledPrompt:
        try:
            prompt = self._catalog[name]
        except UnknownPrompt:
            prompt = None
        if prompt is None or prompt.tool is False:
            names = [prompt.name for prompt in callable_prompts(self._catalog)]
            raise UnknownTool(name, nearest(name, names))
        return prompt


def callable_prompts(catalog: Catalog) -> tuple[CompiledPrompt, ...]:
    """Return the prompts that models may call, sorted by name."""
    return tuple(prompt for prompt in catalog.prompts if prompt.tool is not False)


def _as_tool(prompt: CompiledPrompt) -> CompiledPrompt:
    known = prompt.arguments
    ordered = tuple(map(_exact, known.ordered))
    return structs.replace(prompt, arguments=_ToolArguments(known.owner, ordered, known.kind))


def _exact(argument: Argument) -> Argument:
    if not is_ambiguous(argument.annotation):
        return argument
    read = exact_read(argument.annotation, argument.reader.read)
    return structs.replace(argument, reader=structs.replace(argument.reader, read=read))


class _ToolArguments(Arguments, frozen=True):
    """Arguments of a program, to which null and empty text are values, where the schema has them."""

    _from_json: dict[str, Read] = field(default_factory=dict)

    def _is_given(self, name: str, value: Any) -> bool:
        if super()._is_given(name, value):
            return True
        if name not in self._from_json:
            self._from_json[name] = json_read(self.by_name[name].annotation)
        try:
            self._from_json[name](value)
        except Exception:  # noqa: BLE001 (an author's class may refuse in any way)
            return False
        return True

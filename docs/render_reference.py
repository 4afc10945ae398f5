"""
Render docs/reference.md from signatures and docstrings: `python -m docs.render_reference`.

The code is parsed, not imported. It needs `pip install -e '.[dev]'`.
"""

import inspect
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from textwrap import indent
from typing import Any, Final

import attrs
import griffe
from griffe import DocstringSectionKind as Section

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "reference.md"

#: Maximum width of a signature on one line, in characters.
_WIDTH: Final = 80

_INTRODUCTION: Final = """\
# Reference

The names that users import, with their signatures, parameters and errors. For the types that parameters of
prompts can have, see [Arguments](arguments.md). This page is rendered from the code by
`python -m docs.render_reference`.
"""

#: The sections of the page. Each line names an object by the path that users import it from, and its members.
_SECTIONS: Final = {
    "Prompts, resources and skills": """
        promptkit.prompt
        promptkit.Prompt: render render_async render_wire render_wire_async compiled
        promptkit.resource
        promptkit.Resource: uri embed link
        promptkit.skill
        promptkit.Skill: case cases uri_template
        promptkit.Arg
        promptkit.Tool
        promptkit.Context
    """,
    "Messages": """
        promptkit.user
        promptkit.assistant
        promptkit.system
        promptkit.cache_point
        promptkit.Message
        promptkit.Workflow
    """,
    "Content": """
        promptkit.Text
        promptkit.Image
        promptkit.Audio
        promptkit.EmbeddedResource
        promptkit.ResourceLink
        promptkit.Content
        promptkit.read_below
        promptkit.Icon
    """,
    "Answers": """
        promptkit.AnsweredPrompt: parse_answer
        promptkit.answers.parse_answer
    """,
    "Fragments": """
        promptkit.fragments.*
    """,
    "Workspace": """
        promptkit.workspace.*
    """,
    "Catalogs": """
        promptkit.compiler.compile
        promptkit.catalog.catalog.Catalog: prompts resources skills diagnostics errors render complete
        promptkit.catalog.prompts.CompiledPrompt: render render_async schema answer_schema
    """,
    "Custom types": """
        promptkit.register_type
    """,
    "Testing": """
        promptkit.testing.*
    """,
    "Exports": """
        promptkit.exports.*
        promptkit.exports.fastmcp.add_prompts
        promptkit.exports.mcp.add_prompts
    """,
    "Batches": """
        promptkit.batch.*
    """,
    "Bridges": """
        promptkit.bridges.inspect_ai.samples
        promptkit.bridges.inspect_ai.messages
        promptkit.bridges.langchain.messages
        promptkit.bridges.langfuse.template
        promptkit.bridges.mlflow.template
    """,
    "ASGI application": """
        promptkit.asgi.*
    """,
    "Errors": """
        promptkit.errors.*
    """,
}


def render() -> str:
    """Return the page."""
    package = griffe.load("promptkit", search_paths=[ROOT], allow_inspection=False)
    parts = [_INTRODUCTION]
    for title, lines in _SECTIONS.items():
        parts.append(f"## {title}\n")
        for path, members in _objects(lines.split("\n")):
            parts += _render_object(package, path, members)
    return "\n".join(parts)


def public_objects() -> Iterator[tuple[str, Any, Any]]:
    """Yield the path, the griffe object and the Python object of each public object and member."""
    package = griffe.load("promptkit", search_paths=[ROOT], allow_inspection=False)
    for lines in _SECTIONS.values():
        for path, members in _objects(lines.split("\n")):
            module, _, name = path.rpartition(".")
            value = getattr(import_module(module), name)
            found = _resolve(package, value)
            yield path, found, value
            for key in members or _public_members(found):
                yield f"{path}.{key}", found.all_members[key], getattr(value, key, None)


def _objects(lines: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the path and the members of each object that *lines* name."""
    for line in filter(None, map(str.strip, lines)):
        path, _, members = line.partition(":")
        module, _, name = path.rpartition(".")
        if name == "*":
            yield from ((f"{module}.{public}", []) for public in import_module(module).__all__)
        else:
            yield path, members.split()


def _render_object(package: Any, path: str, members: list[str]) -> Iterator[str]:
    """Yield the Markdown of an object and its *members*, or all its public members if *members* is empty."""
    module, _, name = path.rpartition(".")
    value = getattr(import_module(module), name)
    found = _resolve(package, value)
    yield f"### {path}\n"
    yield from _render_body(found, name, value)
    for key in members or _public_members(found):
        yield f"#### {name}.{key}\n"
        yield from _render_body(found.all_members[key], f"{name}.{key}", getattr(value, key, None))


def _public_members(found: Any) -> list[str]:
    """Return the names of the documented members of a class, without those of its base classes."""
    if not found.is_class:
        return []
    return [key for key, member in found.members.items() if not key.startswith("_") and member.docstring]


def _resolve(package: Any, value: Any) -> Any:
    """Return the griffe object of a Python object."""
    path = f"{value.__module__}.{value.__qualname__}".removeprefix("promptkit.")
    found = package[path]
    return found.final_target if found.is_alias else found


def _render_body(found: Any, name: str, value: Any) -> Iterator[str]:
    signature = _signature(found, name, value)
    if signature:
        yield f"```py\n{signature}\n```\n"
    for section in _sections(found):
        yield from _render_section(section)


def _sections(found: Any) -> list[griffe.DocstringSection]:
    """Return the sections of a docstring; none if there is no docstring."""
    if found.docstring is None:
        return []
    return list(found.docstring.parse("google", returns_named_value=False, warnings=False))


def _render_section(section: Any) -> Iterator[str]:
    match section.kind:
        case Section.text:
            yield section.value + "\n"
        case Section.parameters | Section.attributes | Section.other_parameters:
            yield f"**{'Attributes' if section.kind is Section.attributes else 'Parameters'}**\n"
            yield from _items((item.name, item.description) for item in section.value)
        case Section.raises:
            yield "**Raises**\n"
            yield from _items((item.annotation, item.description) for item in section.value)
        case Section.returns | Section.yields:
            text = " ".join(item.description for item in section.value)
            yield f"**{section.kind.value.capitalize()}:** {text}\n"
        case Section.admonition:
            yield f"**{section.title}:** {section.value.contents}\n"
        case _:
            msg = f"a section of the kind {section.kind} is not rendered yet"
            raise NotImplementedError(msg)


def _items(items: Iterable[tuple[object, str]]) -> Iterator[str]:
    """Yield one list with a paragraph for each name."""
    yield "\n".join(f"- `{name}`: {indent(text, '  ').strip()}" for name, text in items) + "\n"


def _signature(found: Any, name: str, value: Any) -> str:
    """Return the code that declares an object, without its body; empty for an attribute without a type."""
    if found.is_attribute:
        return f"{name}: {found.annotation}" if found.annotation is not None else ""
    if found.is_function and any("cached_property" in str(decorator.value) for decorator in found.decorators):
        return f"{name}: {found.returns}"
    if found.is_function:
        keyword = "async def" if "async" in found.labels else "def"
        return _formatted(keyword, found.signature(name=name.rpartition(".")[2]))
    if "__init__" in found.members:
        return _formatted("class", found.signature(name=name))
    if (constructor := constructor_of(found, value)) is not None:
        return _formatted("class", constructor.signature())
    return f"class {name}"


def constructor_of(found: Any, value: Any) -> griffe.Function | None:
    """Return the function that a call of an object runs; None if users do not call it."""
    if found.is_attribute:
        return None
    if found.is_function:
        return None if any("property" in str(each.value) for each in found.decorators) else found
    if "__init__" in found.members:
        return found.members["__init__"]
    is_created_by_users = any(part.kind is Section.parameters for part in _sections(found))
    return _attrs_constructor(found, value) if attrs.has(value) and is_created_by_users else None


def _attrs_constructor(found: Any, value: Any) -> griffe.Function:
    """Return the constructor that attrs makes, with the defaults of the class and the types in the source."""
    parameters = [
        griffe.Parameter(
            parameter.name,
            kind=griffe.ParameterKind(parameter.kind.description),
            annotation=found.all_members[parameter.name].annotation,
            default=None if parameter.default is parameter.empty else repr(parameter.default),
        )
        for parameter in inspect.signature(value).parameters.values()
    ]
    return griffe.Function(value.__name__, parameters=griffe.Parameters(*parameters))


def _formatted(keyword: str, signature: str) -> str:
    """Return a signature, on several lines if it is long."""
    if len(f"{keyword} {signature}") <= _WIDTH:
        return f"{keyword} {signature}"
    code = f"def {signature}: ..."
    command = [sys.executable, "-m", "ruff", "format", f"--line-length={_WIDTH}", "--isolated", "-"]
    formatted = subprocess.run(command, input=code, capture_output=True, text=True, check=True).stdout
    return f"{keyword}{formatted.removeprefix('def').rstrip().removesuffix(': ...')}"


def main() -> int:
    """Write the page, and return the exit code."""
    PAGE.write_text(render(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

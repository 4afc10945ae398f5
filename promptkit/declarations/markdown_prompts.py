"""Markdown prompts: ``NAME.prompt.md`` files, a second way to declare a prompt."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from functools import partial
from keyword import iskeyword
from pathlib import Path
from pickle import PicklingError
from types import FunctionType
from typing import Annotated, Any, Final, Literal
from weakref import WeakValueDictionary

import attrs

from promptkit.catalog.cases import Case
from promptkit.declarations.markdown_body import Body, BodyError, parse_body, read_text
from promptkit.declarations.markdown_yaml import Field, MarkdownError, read_fields
from promptkit.declarations.options import Options, convert_icons, name_slug
from promptkit.declarations.prompts import Prompt
from promptkit.errors.diagnostics import Diagnostic, Location, Report
from promptkit.errors.exceptions import LoadError, MediaError
from promptkit.errors.rules import Rule
from promptkit.errors.suggestions import nearest
from promptkit.language.annotations import NO_DEFAULT, Arg, Tool
from promptkit.language.files import split_front_matter
from promptkit.language.messages import Workflow
from promptkit.types.conversion_reasons import reason_of
from promptkit.types.errors import ConversionError
from promptkit.types.parsing import reader_for

#: The ending of a Markdown prompt's file name.
ENDING: Final = ".prompt.md"

#: The types that an argument can have, by the names that authors write.
TYPES: Final[Mapping[str, Any]] = {
    **{kind.__name__: kind for kind in (str, int, float, bool, date, datetime, time)},
    "duration": timedelta,
    "path": Path,
    "json": dict[str, Any] | list[Any],
}

#: The options of `prompt` that the front matter can contain, and the functions that convert their values.
_OPTIONS: Final[Mapping[str, Callable[[Field, str], Any]]] = {
    "name": lambda field, key: name_slug(field.text(key)) or field.text(key),
    **dict.fromkeys(("title", "description", "version", "deprecated"), Field.text),
    **dict.fromkeys(("tags", "scopes"), lambda field, key: tuple(field.texts(key))),
    "icons": lambda field, key: convert_icons(field.texts(key)),
    "timeout": lambda field, key: _convert(field.text(key), float, key, field.location),
    "elicit": lambda field, key: "always" if field.value == "always" else field.flag(key),
    "tool": lambda field, key: _parse_tool(field, key),  # noqa: PLW0108 (it is defined below)
}

#: The keys of the front matter, and those of an argument.
KEYS: Final = (*_OPTIONS, "arguments", "cases", "argument-hint")
ARGUMENT_KEYS: Final = (
    *("description", "type", "choices", "default", "required", "examples", "complete", "secret"),
)

#: Keys for other tools, which are not reported: the most common ones, and those that resemble known keys.
_FOREIGN_KEYS: Final = (
    *("agent", "agents", "allowed-tools", "disable-model-invocation", "handoffs", "mode", "model", "tools"),
)

#: Limits on the number of arguments and placeholders, because suggestions compare each argument with each
#: placeholder, and on the length of a type in characters, because types are parsed recursively.
_MAX_ARGUMENTS: Final = 500
_MAX_TYPE: Final = 200

#: The field to use for a missing key.
_EMPTY: Final = Field("", Location(""))

#: The last version read of each prompt that is in use, keyed by its file and its root folder.
_last_read: Final = WeakValueDictionary[tuple[str, str], "MarkdownPrompt"]()


@attrs.frozen(slots=False, eq=False, repr=False)
class MarkdownPrompt(Prompt[..., Workflow]):
    """
    A prompt that is declared by a Markdown file.

    Args:
        body:
            The parsed body.

        fields:
            The front matter.

        file_errors:
            The errors in the file, which are reported when the prompt is compiled.
    """

    body: Body = attrs.field(kw_only=True)
    fields: Mapping[str, Field] = attrs.field(kw_only=True)
    file_errors: tuple[Diagnostic, ...] = attrs.field(kw_only=True)

    def __reduce__(self) -> tuple[Any, ...]:
        key = str(self.body.file), str(self.body.root)
        if _last_read.get(key) is not self:
            subject = f"<prompt {self.options.name!r} at {self.location}>"
            msg = f"{subject} cannot be pickled: its file has been reloaded since then"
            raise PicklingError(msg)
        return markdown_prompt_at, key

    def _report(self) -> Report:
        return Report(
            f"prompt {self.options.name!r}", self.location, [*self.file_errors], self.argument_locations
        )

    @property
    def argument_locations(self) -> Mapping[str, Location]:
        """The location of each declared argument."""
        arguments = self.fields.get("arguments", _EMPTY).value
        return (
            {name: field.location for name, field in arguments.items()} if isinstance(arguments, dict) else {}
        )


def prompt_name(path: Path, folder: Path) -> str:
    """Return the default name of a Markdown prompt, from the path of its file below *folder*."""
    name = path.relative_to(folder).as_posix().removesuffix(ENDING).removesuffix(".md")
    return name_slug(name) or name


def read_markdown_prompt(path: Path, root: Path) -> tuple[MarkdownPrompt | None, tuple[Diagnostic, ...]]:
    """
    Read a Markdown prompt.

    Args:
        path:
            The file.

        root:
            The folder that the default name is relative to, and that included files must stay in.

    Returns:
        The prompt and no errors, or None and the errors that prevent the file from being a prompt.
    """
    report = Report(f"prompt {prompt_name(path, root)!r}", Location(str(path), 1))
    with _report_errors(report):
        front_matter, body_text, first_line = split_front_matter(read_text(path, root))
        fields = read_fields(front_matter, str(path))
        _check_keys(fields, report)
        body = parse_body(body_text, first_line, path, root)
        if not body_text.strip():
            report.add(Rule.BAD_MARKDOWN, "the file has no text", "write the prompt below the front matter")
        elif not report.diagnostics:
            return _declare(body, fields, report), ()
    return None, tuple(report.diagnostics)


def markdown_prompt_at(file: str, root: str) -> MarkdownPrompt:
    """
    Return a prompt that was pickled by reference to its file.

    Raises:
        LoadError: If the file is not, or is no longer, a prompt.
    """
    if (read := _last_read.get((file, root))) is not None:
        return read
    prompt, diagnostics = read_markdown_prompt(Path(file), Path(root))
    if prompt is None:
        raise LoadError(file, f"{diagnostics[0].message}: give every process the same files at the same path")
    return prompt


@contextmanager
def _report_errors(report: Report, field: Field = _EMPTY) -> Iterator[None]:
    """Report an error from the ``with`` block; an error without a location is reported at *field*."""
    try:
        yield
    except MarkdownError as error:
        problem: MarkdownError = error
    except MediaError as error:
        problem = BodyError.of(error, "correct the file", report.location)
    except (TypeError, ValueError) as error:
        problem = MarkdownError.of(error, "correct the value", field.location)
    else:
        return
    report.add(problem.rule, str(problem), problem.hint, problem.location)


def _check_keys(fields: Mapping[str, Field], report: Report) -> None:
    """Report each unknown key that resembles a known one."""
    for key, field in fields.items():
        if key not in (*KEYS, *_FOREIGN_KEYS) and (near := nearest(key, KEYS)) is not None:
            message = f"the front matter has the unknown key {key!r}"
            report.add(Rule.BAD_FRONT_MATTER, message, f"did you mean {near!r}?", field.location)


def _declare(body: Body, fields: Mapping[str, Field], report: Report) -> MarkdownPrompt:
    parameters = _make_parameters(fields, body, report)
    defaults = {"name": prompt_name(body.file, body.root), "description": _first_paragraph(body)}
    options = Options(**{**defaults, **_parse_options(fields, report)})
    function = _make_function(body, parameters)
    cases = list[Case]()
    with _report_errors(report):
        for case_name, field in fields.get("cases", _EMPTY).fields("cases").items():
            sent = {key: value.wire_text() for key, value in field.fields(f"the case {case_name!r}").items()}
            cases.append(Case(case_name, field.location, partial(dict, sent), None))
    declared = MarkdownPrompt(
        function, options, {}, body=body, fields=fields, file_errors=tuple(report.diagnostics)
    )
    _last_read[str(body.file), str(body.root)] = declared
    for case in cases:
        declared.saved.add(case)
    return declared


def _parse_options(fields: Mapping[str, Field], report: Report) -> dict[str, Any]:
    """Return the options of `prompt` in the front matter."""
    options = dict[str, Any]()
    for key, field in fields.items():
        with _report_errors(report, field):
            if (read := _OPTIONS.get(key)) is not None:
                value = read(field, key)
                Options(**{"name": "x", key: value})
                options[key] = value
    return options


def _parse_tool(field: Field, key: str) -> Tool | bool:
    if not isinstance(field.value, dict):
        return field.flag(key)
    hints = {name.replace("-", "_"): value.flag(name) for name, value in field.value.items()}
    return Tool(**hints)


def _first_paragraph(body: Body) -> str | None:
    """Return the first heading or paragraph of the text on one line; None if there is no text."""
    lines = list[str]()
    for line in body.lines:
        if line.text.strip():
            lines.append(line.text)
        if lines and (not line.text.strip() or line.text.startswith("#")):
            break
    return " ".join(" ".join(lines).lstrip("# ").split()) or None


def _make_parameters(fields: Mapping[str, Field], body: Body, report: Report) -> list[inspect.Parameter]:
    """Return a parameter for each declared argument, and a required one of type `str` for each other name."""
    parameters = list[inspect.Parameter]()
    arguments, hint = fields.get("arguments", _EMPTY), fields.get("argument-hint", _EMPTY)
    declared, words = arguments.value if isinstance(arguments.value, dict) else {}, list[str]()
    with _report_errors(report):
        words = [] if declared else arguments.texts("arguments")  # only names, as in Claude Code
    if (count := len({*declared, *body.names})) > _MAX_ARGUMENTS:
        msg = f"there are {count:,} arguments and placeholders: the limit is {_MAX_ARGUMENTS}"
        report.add(Rule.BAD_MARKDOWN, msg, "use fewer")
        return parameters
    for name, field in declared.items():
        with _report_errors(report, field):
            parameters.append(_make_parameter(name, field))
    unused = [name for name in declared if name not in body.names]
    hinted = re.findall(r"\w+", " ".join([*words, hint.wire_text()]))
    for name in dict.fromkeys((*filter(body.names.get, hinted), *body.names)):
        with _report_errors(report):
            if name in declared:
                continue
            if (near := nearest(name, unused)) is not None:
                message = f"the placeholder {{{{{name}}}}} does not name a declared argument"
                raise MarkdownError(message, f"did you mean {{{{{near}}}}}?", body.names[name])
            _check_name(name, body.names[name])
            parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=str))
    return parameters


def _check_name(name: str, location: Location) -> None:
    if iskeyword(name) or not name.isidentifier():
        msg = f"{name!r} is not a valid name for an argument"
        hint = "use letters, digits and '_', start with a letter, and avoid Python's keywords"
        raise MarkdownError(msg, hint, location)


def _make_parameter(name: str, field: Field) -> inspect.Parameter:
    """Return the parameter for a declared argument."""
    _check_name(name, field.location)
    if isinstance(field.value, str):
        field = Field({"description": field}, field.location)
    entries = field.fields(f"the argument {name!r}")
    for key, entry in entries.items():
        if key not in ARGUMENT_KEYS:
            near = nearest(key, ARGUMENT_KEYS)
            hint = f"did you mean {near!r}?" if near else f"choose one of {', '.join(ARGUMENT_KEYS)}"
            msg = f"the argument {name!r} has the unknown key {key!r}"
            raise MarkdownError(msg, hint, entry.location)
    kind = _parse_argument_type(entries, field.location)
    default = _parse_default(entries, kind)
    if default is None:
        kind |= None
    arg = Arg(
        entries.get("description", _EMPTY).text("description") or None,
        examples=entries.get("examples", _EMPTY).texts("examples"),
        complete=entries["complete"].texts("complete") if "complete" in entries else None,
        secret="secret" in entries and entries["secret"].flag("secret"),
    )
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, arg]
    )


def _parse_argument_type(entries: Mapping[str, Field], location: Location) -> Any:
    field = entries.get("type", Field("str", location))
    kind = _parse_type(field.text("type"), field.location)
    if "choices" not in entries:
        return kind
    choices = entries["choices"].texts("choices")
    if not choices:
        msg = "choices is empty"
        raise MarkdownError(msg, "write choices: [first, second]", entries["choices"].location)
    values = [_convert(choice, kind, "a choice", entries["choices"].location) for choice in choices]
    return Literal[tuple(values)]


def _parse_type(text: str, location: Location) -> Any:
    """Return the type that a string such as ``list[int] | None`` denotes."""
    inner = text.strip() if len(text) <= _MAX_TYPE else f"{text[:20]}..."
    if inner.endswith("| None"):
        return _parse_type(inner.removesuffix("| None"), location) | None
    if inner.startswith("list[") and inner.endswith("]"):
        item: Any = _parse_type(inner[5:-1], location)
        return list[item]
    if inner in TYPES:
        return TYPES[inner]
    near = nearest(inner, TYPES)
    names = ", ".join(TYPES)
    hint = f"did you mean {near!r}?" if near else f"choose one of {names}, list[...] or ... | None"
    msg = f"there is no type {inner!r}"
    raise MarkdownError(msg, hint, location)


def _parse_default(entries: Mapping[str, Field], kind: Any) -> Any:
    """Return an argument's default from its *entries* in the front matter; `NO_DEFAULT` if required."""
    required = entries["required"].flag("required") if "required" in entries else None
    if "default" not in entries:
        return None if required is False else NO_DEFAULT
    field = entries["default"]
    if required:
        msg = "a required argument cannot have a default"
        raise MarkdownError(msg, "remove either 'required' or 'default'", field.location)
    if kind is str:
        return field.text("default")
    if field.value == "null":
        return None
    return _convert(field.wire_text(), kind, "the default", field.location)


def _convert(text: str, kind: Any, subject: str, location: Location) -> Any:
    if kind is str:
        return text
    if (reader := reader_for(kind)) is None:
        msg = f"{subject} has a type that clients cannot send"
        raise MarkdownError(msg, "choose another type", location)
    try:
        return reader.read(text)
    except ConversionError as error:
        msg = f"{subject} {reason_of(error.parts[0], text, reader.expected)}"
        raise MarkdownError(msg, f"write {reader.expected}", location) from None


def _make_function(body: Body, parameters: list[inspect.Parameter]) -> Callable[..., Workflow]:
    """Return a function with these parameters that renders the body. Its code refers to the Markdown file."""
    defaults = {
        parameter.name: parameter.default for parameter in parameters if parameter.default is not NO_DEFAULT
    }

    def render(**values: Any) -> Workflow:
        return body.render({**defaults, **values})

    name = re.sub(r"\W", "_", body.file.name.partition(".")[0]) or "prompt"
    code = render.__code__.replace(co_filename=str(body.file), co_firstlineno=1, co_name=name)
    names = {"__file__": str(body.file), "__name__": __name__}
    function = FunctionType(code, names, name, None, render.__closure__)
    annotations = {parameter.name: parameter.annotation for parameter in parameters}
    function.__annotations__ = {**annotations, "return": Workflow}
    function.__signature__ = inspect.Signature(parameters, return_annotation=Workflow)  # type: ignore[attr-defined]
    return function

"""Lints for Markdown prompts: unused arguments, values that can be None, and marks of other tools."""

import re
from collections.abc import Iterator
from typing import Final

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.declarations.markdown_body import is_turn_mark
from promptkit.declarations.markdown_prompts import KEYS, MarkdownPrompt
from promptkit.errors.diagnostics import Diagnostic, Location, Report
from promptkit.errors.rules import Rule
from promptkit.errors.sources import text_of
from promptkit.language.front_matter import split_front_matter
from promptkit.lints.prompts import lint_examples
from promptkit.types.kinds import plain

#: Marks that other tools replace, and their blocks.
_FOREIGN: Final = re.compile(
    r"\$ARGUMENTS\b|\$[1-9]\b|(?<!\S)!`[^`\n]+`|!\{[^{}\n]*\}|\$\{(?:input|file|selection)[^{}\n]*\}"
    r"|(?<!\S)@[\w./-]+/[\w.-]*\.\w{1,10}\b"
    r"|\{%-?[ \t]*(?:if|elif|for|set|include|macro|block|extends)\b[^%\n]*%\}"
    r"|\{\{[#^/][ \t]*+\w++[ \t][^{}\n]*\}\}|\{\{[ \t]*+\w++[ \t]*+[.|][^{}\n]*\}\}"
    r"|\{\{[ \t]*+\w++(?:[ -]++\w++)+\??[ \t]*+\}\}"
)


def lint_markdown(prompt: MarkdownPrompt, arguments: Arguments) -> Iterator[Diagnostic]:
    """Yield probable mistakes in a Markdown prompt."""
    report = Report(f"prompt {prompt.options.name!r}", prompt.location)
    _lint_front_matter(prompt, report)
    for argument in arguments.ordered:
        place = prompt.places.get(argument.name, report.location)
        lint_examples(argument, report, place)
        _lint_placeholder(argument, prompt, report, place)
    for line in prompt.body.lines:
        if match := _FOREIGN.search(line.marked):
            message = f"{match[0]!r} is sent literally"
            hint = "write {{name}} instead, or convert the file with promptkit import"
            report.add(Rule.TEMPLATE_SYNTAX, message, hint, _part_of(line.location, match))
        if is_turn_mark(line) and line.location.file != prompt.location.file:
            message = f"{line.text.strip()!r} in an included text does not start a turn"
            hint = "write the mark in the prompt's own file, or '\\' before it if it is text"
            report.add(Rule.MISPLACED_MARK, message, hint, line.location)
    yield from report.without_duplicates()


def _part_of(line: Location, match: re.Match[str]) -> Location:
    return Location(line.file, line.line, match.start() + 1, match.end() + 1)


def _lint_front_matter(prompt: MarkdownPrompt, report: Report) -> None:
    if foreign := [key for key in prompt.fields if key not in KEYS]:
        location = prompt.fields[foreign[0]].location
        message = f"the front matter has keys that promptkit ignores: {', '.join(foreign)}"
        report.add(Rule.FOREIGN_KEY, message, "keep them if other tools read the file", location)
    text = text_of(prompt.location.file)
    if not text.startswith("---\n") or split_front_matter(text)[0].strip():
        return
    if "\n---" in text[4:]:
        message = "the lines between '---' are sent as text, because they are not all 'key: value'"
        hint = "write front matter with one key per line"
        report.add(Rule.TEXT_BETWEEN_HYPHENS, message, hint, prompt.location)
    elif text[4:].partition(":")[0] in KEYS:
        message = "the front matter is sent as text, because no line '---' ends it"
        report.add(Rule.TEXT_BETWEEN_HYPHENS, message, "write '---' below its last line", prompt.location)


def _lint_placeholder(argument: Argument, prompt: MarkdownPrompt, report: Report, place: Location) -> None:
    name = argument.name
    if name not in prompt.body.names:
        message = f"the argument {name!r} has no placeholder"
        report.add(Rule.UNUSED_ARGUMENT, message, f"write {{{{{name}}}}} where it belongs", place)
    elif name in prompt.body.required() and (argument.default is None or plain(argument.annotation) is bool):
        message = f"{name!r} can be None or a bool, which {{{{{name}}}}} does not accept"
        hint = f"write {{{{{name}?}}}} if its line should be omitted, or {{{{#{name}}}}} around its lines"
        report.add(Rule.ABSENT_VALUE, message, hint, place)

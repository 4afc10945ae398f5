"""Lints for Markdown prompts: front matter, arguments, values that can be None, and misplaced marks."""

import re
from collections.abc import Iterator
from typing import Final

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.declarations.markdown_body import is_turn_mark, near_turn_marks
from promptkit.declarations.markdown_prompts import KEYS, MarkdownPrompt
from promptkit.errors.diagnostics import Diagnostic, Location, Report
from promptkit.errors.rules import Rule
from promptkit.errors.sources import text_of
from promptkit.language.files import split_front_matter
from promptkit.language.placeholders import find_template_syntax
from promptkit.lints.prompts import lint_examples
from promptkit.types.kinds import unwrap_type

#: Placeholders, commands and files in the syntax of other tools.
_FOREIGN_SYNTAX: Final = re.compile(
    r"\$ARGUMENTS\b|\$[1-9]\b|(?<!\S)!`[^`\n]+`|!\{[^{}\n]*\}|\$\{(?:input|file|selection)[^{}\n]*\}"
    r"|(?<!\S)@[\w./-]+/[\w.-]*\.\w{1,10}\b"
)

#: A placeholder whose name contains spaces or hyphens.
_BAD_NAME: Final = re.compile(r"\{\{[ \t]*+(\w++(?:[ -]++\w++)+)\??[ \t]*+\}\}")


def lint_markdown(prompt: MarkdownPrompt, arguments: Arguments) -> Iterator[Diagnostic]:
    """Yield probable mistakes in a Markdown prompt."""
    report = Report(f"prompt {prompt.options.name!r}", prompt.location)
    _lint_front_matter(prompt, report)
    for argument in arguments.ordered:
        location = prompt.argument_locations.get(argument.name, report.location)
        lint_examples(argument, report, location)
        _lint_placeholder(argument, prompt, report, location)
    for line in prompt.body.lines:
        if match := _FOREIGN_SYNTAX.search(line.marked):
            message = f"{match[0]!r} is sent literally"
            hint = "write {{name}} instead, or convert the file with promptkit import"
            report.add(Rule.TEMPLATE_SYNTAX, message, hint, _location_within(line.location, *match.span()))
        if match := _BAD_NAME.search(line.marked):
            name = re.sub(r"\W+", "_", match[1])
            hint = f"write {{{{{name}}}}}, because names can contain only letters, digits and '_'"
            location = _location_within(line.location, *match.span())
            report.add(Rule.TEMPLATE_SYNTAX, f"{match[0]!r} is sent literally", hint, location)
        if is_turn_mark(line) and line.location.file != prompt.location.file:
            message = f"{line.text.strip()!r} in an included text does not start a turn"
            hint = "write the mark in the prompt's own file, or '\\' before it if it is text"
            report.add(Rule.MISPLACED_MARK, message, hint, line.location)
    for line, mark in near_turn_marks(prompt.body.lines):
        message = f"{mark!r} does not start a turn, and is sent as text"
        report.add(
            Rule.MARK_SENT_AS_TEXT, message, "write the mark in lower case, alone on its line", line.location
        )
    _lint_template_syntax(prompt, report)
    yield from report.without_duplicates()


def _lint_template_syntax(prompt: MarkdownPrompt, report: Report) -> None:
    text = "\n".join(line.marked for line in prompt.body.lines)
    for syntax, start, hint in find_template_syntax(text, prompt.body.names):
        line = prompt.body.lines[text.count("\n", 0, start)].location
        column = start - text.rfind("\n", 0, start) - 1
        location = _location_within(line, column, column + len(syntax))
        report.add(Rule.TEMPLATE_SYNTAX, f"{syntax!r} is sent literally", hint, location)


def _location_within(line: Location, start: int, end: int) -> Location:
    return Location(line.file, line.line, start + 1, end + 1)


def _lint_front_matter(prompt: MarkdownPrompt, report: Report) -> None:
    if foreign := [key for key in prompt.fields if key not in KEYS]:
        unindented = [key for key in foreign if key in prompt.body.names]
        message = f"the front matter has keys that promptkit ignores: {', '.join(foreign)}"
        hint = "keep them if other tools read the file"
        if unindented:
            hint = f"if you meant an argument, indent {', '.join(unindented)} below 'arguments:'"
        location = prompt.fields[(unindented or foreign)[0]].location
        report.add(Rule.FOREIGN_KEY, message, hint, location)
    text = text_of(prompt.location.file)
    if split_front_matter(text)[0].strip():
        return
    if not text.startswith("---\n"):
        if text.partition(":")[0] in KEYS and split_front_matter(f"---\n{text}")[0]:
            message = "the front matter is sent as text, because there is no line '---' before it"
            report.add(Rule.MARK_SENT_AS_TEXT, message, "write '---' above its first line", prompt.location)
    elif "\n---" in text[4:]:
        message = "the lines between '---' are sent as text, because not all have the form 'key: value'"
        hint = "write front matter with one key per line"
        report.add(Rule.MARK_SENT_AS_TEXT, message, hint, prompt.location)
    elif text[4:].partition(":")[0] in KEYS:
        message = "the front matter is sent as text, because there is no line '---' after it"
        report.add(Rule.MARK_SENT_AS_TEXT, message, "write '---' below its last line", prompt.location)


def _lint_placeholder(argument: Argument, prompt: MarkdownPrompt, report: Report, location: Location) -> None:
    name = argument.name
    insertions = [insertion for insertion in prompt.body.insertions() if insertion.name == name]
    if name not in prompt.body.names:
        message = f"the argument {name!r} has no placeholder"
        report.add(Rule.UNUSED_ARGUMENT, message, f"write {{{{{name}}}}} where it belongs", location)
    elif insertions and unwrap_type(argument.annotation) is bool:
        message = f"{name!r} can be False or True, which {{{{{name}}}}} does not accept"
        hint = f"write {{{{#{name}}}}} and {{{{/{name}}}}} around the lines that depend on it"
        report.add(Rule.ABSENT_VALUE, message, hint, location)
    elif argument.default is None and any(name not in insertion.present for insertion in insertions):
        message = f"{name!r} can be None, which {{{{{name}}}}} does not accept"
        hint = f"write {{{{{name}?}}}} if its line should be omitted, or {{{{#{name}}}}} around its lines"
        report.add(Rule.ABSENT_VALUE, message, hint, location)

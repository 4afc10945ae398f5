"""Prompts as templates with placeholders, which are verified by rendering the prompts with many values."""

import re
from collections.abc import Collection, Mapping
from itertools import product, zip_longest
from typing import Any, Final, Literal, NoReturn, TypeAlias

from msgspec import Struct

from promptkit.catalog.arguments import Argument
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.declarations.prompts import Prompt
from promptkit.errors.exceptions import ArgumentsError, PromptkitError
from promptkit.errors.suggestions import common_length
from promptkit.language.documents import EmbeddedResource
from promptkit.language.media import Media
from promptkit.language.validation import Role
from promptkit.server.direct_calls import explain_failure
from promptkit.types.conversion_reasons import short
from promptkit.types.kinds import unwrap_type

__all__ = ["Placeholder", "PromptTemplate", "TemplateError", "TemplateTurn", "template_of"]

#: The role and the text of each message in a rendering.
_Rendering: TypeAlias = list[tuple[Role | Literal["system"], str]]

#: Strings that prompts might treat specially, for example by omitting, indenting, escaping or truncating
#: them.
_TEST_TEXTS: Final = (
    "two words",
    "two\nlines",
    " blanks around ",
    "  indented\n\n\tlines\n",
    "",
    " \n",
    "<a href='b'>&amp;\"c\"</a>",
    "```\n~~~~\n",
    "{{x}} {% if y %} {# z #} {0} ${w} $1 \\1 %s",
    "- item\n> quotation\n# title\n| a | b |",
    "0",
    "true, false",
    "größer\u2028👍",
    "long " * 20_000,
)

#: The number of characters to show before and after the first difference.
_CONTEXT: Final = 30


class TemplateError(PromptkitError, ValueError):
    """
    A prompt cannot be converted to a template.

    Args:
        prompt:
            The prompt's name.

        reason:
            The reason, and in most cases how to fix the problem.

        is_close:
            Whether there is a template that is correct for plain words, but not for every string.
    """

    def __init__(self, prompt: str, reason: str, *, is_close: bool = False) -> None:
        super().__init__(prompt, reason)
        self.prompt = prompt
        self.reason = reason
        self.is_close = is_close

    def __str__(self) -> str:
        hint = " (lossy=True accepts the difference)" if self.is_close else ""
        return f"prompt {self.prompt!r} cannot be a template: {self.reason}{hint}"


class Placeholder(Struct, frozen=True):
    """
    A placeholder for an argument's text.

    Args:
        name:
            The argument's name.
    """

    name: str


class TemplateTurn(Struct, frozen=True):
    """
    A message of a template.

    Args:
        role:
            The message's role; ``"system"`` for the system part, which is the first message.

        parts:
            The strings and placeholders, in order. Strings are never empty, and never adjacent to each other.
    """

    role: Role | Literal["system"]
    parts: tuple[str | Placeholder, ...]


class PromptTemplate(Struct, frozen=True):
    """
    A prompt as messages with placeholders for its arguments.

    Args:
        prompt:
            The prompt.

        turns:
            The messages.
    """

    prompt: CompiledPrompt
    turns: tuple[TemplateTurn, ...]

    def fill(self, texts: Mapping[str, str]) -> _Rendering:
        """Replace the placeholders with *texts*, and return the role and the text of each message."""
        return [
            (turn.role, "".join(part if isinstance(part, str) else texts[part.name] for part in turn.parts))
            for turn in self.turns
        ]


def template_of(
    prompt: Prompt[..., Any] | CompiledPrompt,
    values: Mapping[str, Any] | None = None,
    *,
    lossy: bool = False,
    one_line: Collection[str] = (),
) -> PromptTemplate:
    """
    Return a template that matches the prompt's rendering for any values of its placeholders.

    Each argument of type `str` without a fixed value becomes a placeholder. All other arguments have their
    fixed value or their default. The prompt is rendered with unique words to locate the placeholders, and
    then with many other strings. The template must match every rendering.

    Args:
        prompt:
            The prompt.

        values:
            Fixed values, keyed by argument name, in the form that clients send; a value of None means the
            argument's default.

        lossy:
            Whether to accept a template that matches the rendering for plain words, but not for every string.

        one_line:
            The names of the placeholders for which the template needs to match only text without line breaks.

    Raises:
        TemplateError: If there is no such template. The message shows a value for which the template would
            differ from the rendering.

        ArgumentsError: If one of *values* is invalid.
    """
    compiled = prompt.compiled if isinstance(prompt, Prompt) else prompt
    source = _TemplateSource(compiled, values or {})
    marks, other_marks = ({name: _mark(name, series) for name in source.placeholders} for series in "ab")
    template = PromptTemplate(compiled, _turns(source.render(marks, "with placeholder values"), marks))
    for name in source.placeholders:
        if all(Placeholder(name) not in turn.parts for turn in template.turns):
            source.reject(
                f"the text of {name!r} does not appear unchanged in the rendering: give {name!r} a value"
            )
    source.compare(template, marks, "when rendered again")
    source.compare(template, other_marks, "with other words")
    source.compare(
        template, dict.fromkeys(source.placeholders, "word"), "with the same word for every placeholder"
    )
    for name, text in [] if lossy else product(source.placeholders, _TEST_TEXTS):
        if name in one_line and "\n" in text:
            continue
        source.compare(template, {**marks, name: text}, f"when {name!r} is {short.repr(text)}", name)
    return template


def _mark(name: str, series: str) -> str:
    """Return a unique word for an argument, in mixed case, to notice prompts that change the case."""
    return f"Zq{series}{name.encode().hex()}Qz"


_MARK: Final = re.compile("Zq[ab]([0-9a-f]+)Qz")


def _turns(rendering: _Rendering, marks: Mapping[str, str]) -> tuple[TemplateTurn, ...]:
    """Convert a rendering with marks to turns with placeholders."""
    names = {mark: name for name, mark in marks.items()}
    pattern = re.compile(f"({'|'.join(names) or '(?!)'})")
    turns = []
    for role, text in rendering:
        parts = [Placeholder(names[part]) if part in names else part for part in pattern.split(text) if part]
        turns.append(TemplateTurn(role, tuple(parts)))
    return tuple(turns)


class _TemplateSource:
    """A prompt with fixed values for some arguments and placeholders for others."""

    def __init__(self, prompt: CompiledPrompt, values: Mapping[str, Any]) -> None:
        self._prompt, self._values = prompt, values
        unfixed = [arg for arg in prompt.arguments.ordered if arg.name not in values]
        self.placeholders = tuple(arg.name for arg in unfixed if _accepts_any_text(arg))
        for arg in unfixed:
            if arg.required and not _accepts_any_text(arg):
                self.reject(
                    f"{arg.name!r} requires {arg.reader.expected}, but a placeholder accepts any "
                    "text: give it a value"
                )

    def reject(self, reason: str, *, is_close: bool = False) -> NoReturn:
        """Raise a `TemplateError`. Marks in *reason* are replaced with the names of their arguments."""
        raise TemplateError(self._prompt.name, _replace_marks_with_names(reason), is_close=is_close) from None

    def render(self, texts: Mapping[str, str], where: str, name: str = "") -> _Rendering:
        """
        Render the prompt with *texts*, and return the role and the text of each message.

        Args:
            texts:
                The text for each placeholder.

            where:
                A phrase that describes *texts*, for error messages.

            name:
                The name of the argument whose text is not a plain word; ``""`` if there is no such argument.

        Raises:
            TemplateError: If rendering fails, or the content of a message is not text.

            ArgumentsError: If one of the fixed values is invalid.
        """
        try:
            workflow = self._prompt.render({**self._values, **texts})
        except Exception as error:  # prompts can raise anything
            if isinstance(error, ArgumentsError) and any(
                invalid.argument not in texts for invalid in error.errors
            ):
                raise
            reason = explain_failure("it", error) or f"it raises {type(error).__name__}: {error}"
            self.reject(f"{where}, rendering fails: {reason}", is_close=bool(name))
        for number, message in enumerate(workflow.messages, 1):
            content = message.content
            if isinstance(content, Media) or (isinstance(content, EmbeddedResource) and content.blob):
                self.reject(
                    f"message {number} contains {content.mime_type}, but a template can contain only text"
                )
        return [(message.role, str(message.content)) for message in workflow.shown]

    def compare(self, template: PromptTemplate, texts: Mapping[str, str], where: str, name: str = "") -> None:
        """Raise a `TemplateError` if the rendering differs from the template."""
        rendering, expected = self.render(texts, where, name), template.fill(texts)
        if rendering != expected:
            actual, template_excerpt = _excerpt(rendering, expected), _excerpt(expected, rendering)
            hint = f": give {name!r} a value" if name else ""
            self.reject(
                f"{where}, the prompt renders {actual}, but the template renders {template_excerpt}{hint}",
                is_close=bool(name),
            )


def _accepts_any_text(argument: Argument) -> bool:
    return unwrap_type(argument.annotation, core=True) is str


def _replace_marks_with_names(text: str) -> str:
    """Replace each mark in *text* with the name of its argument in double braces."""
    return _MARK.sub(lambda match: f"{{{{{bytes.fromhex(match[1]).decode()}}}}}", text)


def _excerpt(rendering: _Rendering, other: _Rendering) -> str:
    """Return an excerpt of *rendering* around its first difference from *other*."""
    pairs = zip_longest(rendering, other, fillvalue=("", ""))
    turns = next(pair for pair in pairs if pair[0] != pair[1])
    has_role = turns[0][0] != turns[1][0]
    text, second = (
        _replace_marks_with_names(f"[{role}] {text}" if role and has_role else text) for role, text in turns
    )
    # Different marks of the same argument look the same now, so the strings can be equal.
    offset = 0 if text == second else common_length(text, second)
    start = offset - _CONTEXT if offset > _CONTEXT else 0
    return repr(f"{'...' if start else ''}{text[start : offset + _CONTEXT]}")

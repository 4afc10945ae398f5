"""A prompt as text with holes, for tools that keep nothing else: what it says is tried, not guessed."""

import re
from collections.abc import Mapping
from itertools import product, zip_longest
from typing import Any, Final, Literal, NoReturn, TypeAlias

from msgspec import Struct

from promptkit.catalog.arguments import Argument, short
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.declarations.prompts import Prompt
from promptkit.errors.exceptions import ArgumentsError, PromptkitError
from promptkit.language.documents import EmbeddedResource
from promptkit.language.media import Media
from promptkit.language.validation import Role
from promptkit.server.user_code import explanation
from promptkit.types.kinds import plain

__all__ = ["Placeholder", "PromptTemplate", "TemplateError", "TemplateTurn", "template_of"]

#: What is said: roles, each with its text.
_Said: TypeAlias = list[tuple[Role | Literal["system"], str]]

#: Texts that prompts may treat in a way of their own: they leave them out, indent, escape, fence or cut them.
_TEXTS: Final = (
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

#: How many characters are shown before, and behind, the first that differs.
_CONTEXT: Final = 30


class TemplateError(PromptkitError, ValueError):
    """
    No template says what a prompt says.

    Args:
        prompt:
            The prompt's name.

        reason:
            Why, and what to do.

        is_close:
            Whether there is one that says it for most texts.
    """

    def __init__(self, prompt: str, reason: str, *, is_close: bool = False) -> None:
        super().__init__(prompt, reason)
        self.prompt = prompt
        self.reason = reason
        self.is_close = is_close

    def __str__(self) -> str:
        hint = " (lossy=True makes one that differs there)" if self.is_close else ""
        return f"prompt {self.prompt!r} cannot be a template: {self.reason}{hint}"


class Placeholder(Struct, frozen=True):
    """
    The place of an argument's text.

    Args:
        name:
            The argument.
    """

    name: str


class TemplateTurn(Struct, frozen=True):
    """
    What one message says.

    Args:
        role:
            Who says it; ``"system"`` for the system part, which is the first.

        parts:
            Text and holes, in order. No text is empty, and none follows another.
    """

    role: Role | Literal["system"]
    parts: tuple[str | Placeholder, ...]


class PromptTemplate(Struct, frozen=True):
    """
    What a prompt says, with holes for its arguments.

    Args:
        prompt:
            The prompt.

        turns:
            Its messages.
    """

    prompt: CompiledPrompt
    turns: tuple[TemplateTurn, ...]

    def filled(self, texts: Mapping[str, str]) -> _Said:
        """Return roles and texts, with each hole filled."""
        return [
            (turn.role, "".join(part if isinstance(part, str) else texts[part.name] for part in turn.parts))
            for turn in self.turns
        ]


def template_of(
    prompt: Prompt[..., Any] | CompiledPrompt, values: Mapping[str, Any] | None = None, *, lossy: bool = False
) -> PromptTemplate:
    """
    Return a template that says what a prompt says, whatever is put into its holes.

    Each argument that takes text is a hole, if it has no value; others have their values or their defaults.
    The prompt is rendered for words that nobody writes, to see where they come out, and then for many other
    texts, for each of which the template has to say the same.

    Args:
        prompt:
            The prompt.

        values:
            What is the same always, by argument, as a client sends it; None stands for the default.

        lossy:
            Whether a template will do that says the same for plain words, and not for every text.

    Raises:
        TemplateError: If there is none. It says for what text the prompt says something else.

        ArgumentsError: If one of *values* is wrong.
    """
    compiled = prompt.compiled if isinstance(prompt, Prompt) else prompt
    source = _Source(compiled, values or {})
    first, second = ({name: _mark(name, turn) for name in source.holes} for turn in "ab")
    template = PromptTemplate(compiled, _turns(source.said(first, "for a made-up word"), first))
    for name in source.holes:
        if all(Placeholder(name) not in turn.parts for turn in template.turns):
            source.refuse(f"the text of {name!r} does not stand in it as it is: give {name!r} a value")
    source.compare(template, first, "rendered again")
    source.compare(template, second, "for other words")
    source.compare(template, dict.fromkeys(source.holes, "word"), "for the same word in all holes")
    for name, text in [] if lossy else product(source.holes, _TEXTS):
        source.compare(template, {**first, name: text}, f"where {name!r} is {short.repr(text)}", name)
    return template


def _mark(name: str, turn: str) -> str:
    """A word that no prompt holds, of both cases, as prompts may change them."""
    return f"Zq{turn}{name.encode().hex()}Qz"


_MARK: Final = re.compile("Zq[ab]([0-9a-f]+)Qz")


def _turns(said: _Said, marks: Mapping[str, str]) -> tuple[TemplateTurn, ...]:
    """What is said with marks in place of texts."""
    names = {mark: name for name, mark in marks.items()}
    pattern = re.compile(f"({'|'.join(names) or '(?!)'})")
    turns = []
    for role, text in said:
        parts = [Placeholder(names[part]) if part in names else part for part in pattern.split(text) if part]
        turns.append(TemplateTurn(role, tuple(parts)))
    return tuple(turns)


class _Source:
    """A prompt, which arguments are holes, and the values of others."""

    def __init__(self, prompt: CompiledPrompt, values: Mapping[str, Any]) -> None:
        self._prompt, self._values = prompt, values
        open_ones = [one for one in prompt.arguments.ordered if one.name not in values]
        self.holes = tuple(one.name for one in open_ones if _takes_text(one))
        for one in open_ones:
            if one.required and not _takes_text(one):
                self.refuse(f"{one.name!r} takes {one.reader.expected}, and a hole any text: give it a value")

    def refuse(self, reason: str, *, is_close: bool = False) -> NoReturn:
        """Raise the error with *reason*."""
        raise TemplateError(self._prompt.name, _shown(reason), is_close=is_close) from None

    def said(self, texts: Mapping[str, str], where: str, name: str = "") -> _Said:
        """What the prompt says for texts in its holes; that of *name* is more than plain words."""
        try:
            workflow = self._prompt.render({**self._values, **texts})
        except Exception as error:  # authors raise anything
            if isinstance(error, ArgumentsError) and any(one.argument not in texts for one in error.errors):
                raise
            why = explanation("it", error) or f"it raises {type(error).__name__}: {error}"
            self.refuse(f"{where}, it says nothing: {why}", is_close=bool(name))
        for number, message in enumerate(workflow.messages, 1):
            content = message.content
            if isinstance(content, Media) or (isinstance(content, EmbeddedResource) and content.blob):
                self.refuse(f"message {number} holds {content.mime_type}, and a template is text alone")
        return [(message.role, str(message.content)) for message in workflow.shown]

    def compare(self, template: PromptTemplate, texts: Mapping[str, str], where: str, name: str = "") -> None:
        """Refuse a prompt that says something else than the template."""
        found, expected = self.said(texts, where, name), template.filled(texts)
        if found != expected:
            says, would_say = _excerpt(found, expected), _excerpt(expected, found)
            hint = f": give {name!r} a value" if name else ""
            self.refuse(f"{where}, it says {says}, and a template {would_say}{hint}", is_close=bool(name))


def _takes_text(argument: Argument) -> bool:
    return plain(argument.annotation, core=True) is str


def _shown(text: str) -> str:
    """*text* with names in braces for the words that stand for them."""
    return _MARK.sub(lambda found: f"{{{{{bytes.fromhex(found[1]).decode()}}}}}", text)


def _excerpt(said: _Said, other: _Said) -> str:
    """What is said where something else is said first."""
    pairs = zip_longest(said, other, fillvalue=("", ""))
    turns = next(pair for pair in pairs if pair[0] != pair[1])
    has_role = turns[0][0] != turns[1][0]
    text, second = (_shown(f"[{role}] {text}" if role and has_role else text) for role, text in turns)
    ends = enumerate(zip_longest(text, second))
    at = next((number for number, (one, two) in ends if one != two), 0)  # made-up words are shown alike
    begin = at - _CONTEXT if at > _CONTEXT else 0
    return repr(f"{'...' if begin else ''}{text[begin : at + _CONTEXT]}")

"""Prompts as templates with placeholders, and the errors for prompts that have no template."""

import re
import time
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from promptkit import (
    Arg,
    Context,
    EmbeddedResource,
    Image,
    PromptError,
    ResourceLink,
    assistant,
    prompt,
    system,
    user,
)
from promptkit.errors import ArgumentsError
from promptkit.exports.templates import Placeholder, TemplateError, TemplateTurn, template_of
from promptkit.fragments import code_block, fill, quote, tag, truncate, untrusted


def template_error(subject, values=None, *, lossy=False):
    """Return the message of the error for a prompt without a template."""
    with pytest.raises(TemplateError) as caught:
        template_of(subject, values, lossy=lossy)
    return str(caught.value)


def test_one_turn():
    """A turn consists of text and placeholders in order; a placeholder can occur several times."""

    @prompt
    def greet(name: str, place: str = "here"):
        return f"Hello, {name}, from {place}. Bye, {name}!"

    (turn,) = template_of(greet).turns

    parts = (
        "Hello, ",
        Placeholder("name"),
        ", from ",
        Placeholder("place"),
        ". Bye, ",
        Placeholder("name"),
        "!",
    )
    assert turn == TemplateTurn("user", parts)


def test_turns():
    """The system part is the first turn, followed by one turn per message."""

    @prompt
    def ask(question: str):
        yield system(f"You know all of {question}.")
        yield user("May I ask?")
        yield assistant("Yes.")
        yield question + "?"

    turns = template_of(ask).turns

    assert [(turn.role, turn.parts) for turn in turns] == [
        ("system", ("You know all of ", Placeholder("question"), ".")),
        ("user", ("May I ask?",)),
        ("assistant", ("Yes.",)),
        ("user", (Placeholder("question"), "?")),
    ]


def test_prompt_without_arguments():
    """The template of a prompt without arguments is plain text."""

    @prompt
    def plain(context: Context):
        return "Say {hello} {{world}}."

    assert template_of(plain).turns == (TemplateTurn("user", ("Say {hello} {{world}}.",)),)


def test_embedded_resources_and_links_become_text():
    """Embedded resources and links become the text that vendors receive."""

    @prompt
    def cite(word: str):
        return user(
            EmbeddedResource("docs://a", text=f"About {word}."), ResourceLink("https://a.b/c", name="c"), word
        )

    turns = template_of(cite, lossy=True).turns

    assert [turn.parts for turn in turns] == [
        ("[docs://a]\nAbout ", Placeholder("word"), "."),
        ("[c](https://a.b/c)",),
        (Placeholder("word"),),
    ]


@given(st.lists(st.text(), min_size=2, max_size=2))
def test_filled_template_equals_the_rendering(texts):
    """A filled template equals the rendered prompt, for any values of the placeholders."""

    @prompt
    def subject(first: str, second: str = "x"):
        yield system(f"{first}: {second}")
        yield assistant(f"{{{second}}}{second}<{first}")

    filled = template_of(subject).fill(dict(zip(("first", "second"), texts, strict=True)))

    assert filled == [(turn.role, str(turn.content)) for turn in subject.render(*texts).shown]


class TestValues:
    @pytest.fixture
    def review(self):
        """A prompt with several kinds of arguments."""

        @prompt
        def review(code: str, language: Literal["python", "rust"], depth: int = 2, note: str | None = None):
            return f"Review this {language}, {depth} deep: {code}" + (f" ({note})" if note else "")

        return review

    def test_other_arguments_have_values_or_defaults(self, review):
        """
        Arguments without a placeholder have their given values, parsed like a client's, or their defaults.
        """
        (turn,) = template_of(review, {"language": "Rust", "note": None}).turns

        assert turn.parts == ("Review this rust, 2 deep: ", Placeholder("code"))

    def test_argument_that_is_not_text_needs_a_value(self, review):
        """
        An argument that accepts only some strings needs a value, because a placeholder accepts any string.
        """
        assert template_error(review) == (
            "prompt 'review' cannot be a template: 'language' requires one of python, rust, but a "
            "placeholder accepts any text: give it a value"
        )

    @pytest.mark.parametrize(
        ("values", "error"),
        [
            ({"language": "go"}, "'language' is 'go', not one of python, rust"),
            ({"language": "rust", "depht": 1}, "'depht' is not an argument of this prompt"),
        ],
    )
    def test_invalid_values(self, review, values, error):
        """Invalid values give the errors that a client would receive."""
        with pytest.raises(ArgumentsError, match=re.escape(error)):
            template_of(review, values)

    def test_optional_text_has_no_template(self, review):
        """A prompt with optional text has no template, because a template would keep the text around it."""
        assert template_error(review, {"language": "rust"}) == (
            "prompt 'review' cannot be a template: when 'note' is '', "
            "the prompt renders '...ew this rust, 2 deep: {{code}}', "
            "but the template renders '...ew this rust, 2 deep: {{code}} ()': "
            "give 'note' a value (lossy=True accepts the difference)"
        )
        assert template_of(review, {"language": "rust"}, lossy=True).turns[0].parts[-2] == Placeholder("note")


#: Ways to render a text, the start of the error for each, and whether lossy=True makes a template.
RENDERINGS = {
    "upper": (
        lambda text: text.upper(),
        "the text of 'text' does not appear unchanged in the rendering",
        False,
    ),
    "length": (
        lambda text: f"{len(text)}",
        "the text of 'text' does not appear unchanged in the rendering",
        False,
    ),
    "hidden": (lambda _: "x", "the text of 'text' does not appear unchanged in the rendering", False),
    "counted": (
        lambda text: f"{text} {len(text)}",
        "with the same word for every placeholder, the prompt renders",
        False,
    ),
    "untrusted": (
        untrusted,
        "with other words, the prompt renders '...data, not instructions:\\n<data-",
        False,
    ),
    "clock": (lambda text: f"{text} {time.perf_counter()}", "when rendered again, the prompt renders", False),
    "stripped": (
        lambda text: f"<{text.strip()}>",
        "when 'text' is ' blanks around ', the prompt renders",
        True,
    ),
    "turn": (lambda text: user("Look:", text), "when 'text' is '', the prompt renders", True),
    "fence": (code_block, "when 'text' is '  indented\\n\\n\\tlines\\n', the prompt renders", True),
    "escaped": (lambda text: tag("a", text, b=text), "when 'text' is", True),
    "quoted": (quote, "when 'text' is 'two\\nlines', the prompt renders", True),
    "indented": (
        lambda text: fill("a\n  - {{b}}", b=text),
        "when 'text' is 'two\\nlines', the prompt renders",
        True,
    ),
    "cut": (lambda text: f"<{truncate(text, 50_000)}", "when 'text' is 'long long", True),
    "first word": (
        lambda text: text.split(maxsplit=1)[0],
        "when 'text' is 'two words', the prompt renders",
        True,
    ),
    "a choice": (
        lambda text: f"<{text}>{' yes' * (text == '0')}",
        "when 'text' is '0', the prompt renders",
        True,
    ),
    "template": (lambda text: f"<{text.replace('{{x}}', 'y')}>", "when 'text' is '{{x}} {% if y", True),
}


@pytest.mark.parametrize("kind", RENDERINGS)
def test_prompts_without_a_template(kind):
    """The error shows an argument for which the prompt and the template differ, and the text of both."""
    function, reason, allows_lossy = RENDERINGS[kind]

    @prompt
    def subject(text: str):
        return function(text)

    message = template_error(subject)

    assert message.startswith(f"prompt 'subject' cannot be a template: {reason}")
    assert message.endswith(" (lossy=True accepts the difference)") == allows_lossy
    if allows_lossy:
        assert Placeholder("text") in template_of(subject, lossy=True).turns[0].parts
    else:
        assert (
            template_error(subject, lossy=True).partition(", the prompt renders")[0]
            == message.partition(", the prompt renders")[0]
        )


def test_equal_arguments():
    """A prompt that renders differently if two arguments are equal has no template."""

    @prompt
    def subject(first: str, second: str):
        return f"{first} {second}{' twice' if first == second else ''}"

    message = "the prompt renders 'word word twice', but the template renders 'word word'"
    assert message in template_error(subject)


def test_first_different_turn_is_shown():
    """The first turn that differs is shown, with its role if that differs."""

    @prompt
    def subject(text: str):
        yield text + "?"
        yield (assistant if "\n" in text else user)("Yes.")
        yield system("Be brief.") if text == "0" else None

    assert template_error(subject).startswith(
        "prompt 'subject' cannot be a template: when 'text' is 'two\\nlines', "
        "the prompt renders '[assistant] Yes.', but the template renders '[user] Yes.': give"
    )


def test_prompt_that_returns_the_text_of_an_earlier_call():
    """A prompt that returns the text of an earlier call has no template."""
    texts = []

    @prompt
    def subject(text: str):
        texts.append(text)
        return texts[0]

    assert (
        "with other words, the prompt renders '{{text}}', but the template renders '{{text}}'"
        in template_error(subject)
    )


class TestFailures:
    @pytest.mark.parametrize(
        ("error", "reason"),
        [
            (PromptError("no such file"), "no such file"),
            (KeyError("x"), "it raises KeyError: 'x'"),
        ],
    )
    def test_prompt_that_fails(self, error, reason):
        """If rendering fails with placeholder values, the error has the prompt's own message."""

        @prompt
        def subject(text: str):
            raise error

        message = f"prompt 'subject' cannot be a template: with placeholder values, rendering fails: {reason}"
        assert template_error(subject) == message

    def test_text_with_constraints(self):
        """
        A prompt whose text argument has constraints has no template, because a placeholder accepts any
        string.
        """

        @prompt
        def subject(text: Annotated[str, Meta(min_length=1)]):
            return text

        assert template_error(subject).startswith(
            "prompt 'subject' cannot be a template: when 'text' is '', rendering fails: prompt 'subject':"
        )
        assert template_of(subject, lossy=True).turns[0].parts == (Placeholder("text"),)

    def test_text_with_a_pattern(self):
        """A prompt whose text must match a pattern has no template, because no generated word matches."""

        @prompt
        def subject(text: Annotated[str, Meta(pattern="^[a-z]+$")]):
            return text

        message = "with placeholder values, rendering fails: prompt 'subject': 'text' is '{{text}}'"
        assert message in template_error(subject)

    def test_images(self, png):
        """A prompt with an image has no template, because a template is text."""

        @prompt
        def subject(text: str):
            return user(text, Image(png))

        assert template_error(subject) == (
            "prompt 'subject' cannot be a template: "
            "message 2 contains image/png, but a template can contain only text"
        )


def test_async_and_compiled_prompts():
    """An asynchronous prompt and a prompt of a catalog can be templates."""

    @prompt
    async def subject(text: Annotated[str, Arg("The text")]):
        return f"<{text}>"

    assert template_of(subject).turns == template_of(subject.compiled).turns

"""Format strings that Python cannot fill in."""

import pytest

from promptkit.errors.rules import Rule

HEAD = """
import inspect
import textwrap
from string import Template

from promptkit import prompt, user

HELLO = "Hello {name}, {text}"
LOST = "Hello {nmae}"
GREETING = Template("Hello $nmae")
PRICE = Template("Costs $$5, $name")


class Texts:
    lost = "{nmae}"


def other(*values, **names):
    return "x"


@prompt
def subject(name: str, text: str = "x", values: dict[str, str] = {}):
"""


@pytest.fixture
def faults(found):
    """A function that returns the rule, message and hint of each diagnostic for the body of a prompt."""

    def faults(body):
        indented = body.replace("\n", "\n    ")
        return [
            (one.rule, one.message.partition(": ")[2], one.hint)
            for one in found(subject=f"{HEAD}    {indented}\n")
        ]

    return faults


LOST = "the hole '{nmae}' in the text gets no value"
BRACES = "double the braces that are part of the text: {{ }}"
PERCENTS = "double the percent signs that are part of the text: %%"


@pytest.mark.parametrize(
    ("body", "fault", "hint"),
    [
        ("return '{nmae}'.format(name=name)", LOST, "did you mean '{name}'?"),
        ("return '{nmae.title}'.format(name=name)", LOST, "did you mean '{name}'?"),
        ("return '{nmae[0]!r:>3}'.format(name=name)", LOST, "did you mean '{name}'?"),
        ("return '{name:{nmae}}'.format(name=name)", LOST, "did you mean '{name}'?"),
        ("return '{nmae}'.format_map({'name': name})", LOST, "did you mean '{name}'?"),
        ("return '{nmae}'.format_map(dict(name=name))", LOST, "did you mean '{name}'?"),
        ("return user('{nmae}'.format(name=name), text)", LOST, "did you mean '{name}'?"),
        ("said = '{nmae}'\nreturn said.format(name=name)", LOST, "did you mean '{name}'?"),
        ("return LOST.format(name=name)", LOST, "did you mean '{name}'?"),
        ("return LOST.strip().format(name=name)", LOST, "did you mean '{name}'?"),
        ("return textwrap.dedent(LOST).format(name=name)", LOST, "did you mean '{name}'?"),
        ("return inspect.cleandoc('''\n{nmae}''').format(name=name)", LOST, "did you mean '{name}'?"),
        ("return HELLO.format(name=name)", LOST.replace("nmae", "text"), f"give it one, or {BRACES}"),
        (
            "return '%(nmae)s' % {'name': name}",
            "the hole '%(nmae)s' in the text gets no value",
            "did you mean '%(name)s'?",
        ),
        (
            "return GREETING.substitute(name=name)",
            "the hole '${nmae}' in the text gets no value",
            "did you mean '${name}'?",
        ),
        (
            "return Template('${nmae}').substitute({'name': name})",
            "the hole '${nmae}' in the text gets no value",
            "did you mean '${name}'?",
        ),
        (
            "return '{\"a\": 1} {name}'.format(name=name)",
            "'{\"a\"' in the text is taken for a placeholder",
            BRACES,
        ),
        (
            "return '{} of {}'.format(name)",
            "the text has more placeholders than values: it gets 1",
            f"give each placeholder a value, or {BRACES}",
        ),
        (
            "return '{name} }'.format(name=name)",
            "the text cannot be filled in: Single '}' encountered in format string",
            BRACES,
        ),
        (
            "return '100% sure of %s' % (name,)",
            "the text cannot be filled in: not enough arguments for format string",
            f"give each placeholder a value, or {PERCENTS}",
        ),
        (
            "return '%s' % (name, text)",
            "the text cannot be filled in: not all arguments converted during string formatting",
            "write %s where each value belongs",
        ),
        (
            "return Template('Costs $ 5').substitute(name=name)",
            "the text cannot be filled in: Invalid placeholder in string: line 1, col 7",
            "double the dollar signs that are part of the text: $$",
        ),
    ],
)
def test_a_text_that_never_can_be_filled_in(body, fault, hint, faults):
    """A text that fails for all values is reported: Python formats it with permissive values."""
    ((rule, said, told),) = faults(body)

    assert (rule, said[: len(fault)], told) == (Rule.UNFILLABLE_TEXT, fault, hint)


@pytest.mark.parametrize(
    "body",
    [
        "return HELLO.format(name=name, text=text)",
        "return HELLO.format(name=name, text=text, more=1)",
        "return '{0} {1} {0}'.format(name, text)",
        "return '{name.title} {text[0]} {name!r:>10} {text:{name}}'.format(name=name, text=text)",
        "return '{{\"a\": 1}} {name}'.format(name=name)",
        "return LOST.format(**values)",
        "return LOST.format_map(values)",
        "return LOST.format(*values, name=name)",
        "return '{nmae}'.format_map({**values, 'name': name})",
        "return '{nmae}'.format_map(locals())",
        "return '{nmae}'.format_map(dict(values))",
        "return '%s and %s' % values",
        "return '%s and %d, %.2f, 5%%' % (name, 3, 2)",
        "return '%(name)s' % {'name': name}",
        "return '%(nmae)s' % values",
        "return '%s' % name",
        "return str(len(name) % 7)",
        "return PRICE.substitute(name=name)",
        "return GREETING.safe_substitute(name=name)",
        "return GREETING.substitute(values)",
        "try:\n    return '{nmae}'.format(name=name)\nexcept KeyError:\n    return name",
        "said = '{name}'\nsaid = said.replace('name', 'text')\nreturn said.format(text=text)",
        "return Texts.lost.format(name=name)",
        "return other('{nmae}').format(name=name)",
        "return name.format(text=text)",
        "return ('{' + name + '}').format(text=text)",
        "HELLO = name\nreturn HELLO.format()",
    ],
)
def test_what_may_be_filled_in(body, faults):
    """Not reported: values or texts that the source does not show, and errors that are caught."""
    assert faults(body) == []


SHORT = "from promptkit import prompt\n\n@prompt\ndef subject(name: str):\n"


@pytest.mark.parametrize(
    "body",
    [
        '    return """Hello,\n  {nmae}""".format(name=name)\n',
        '    said = """Hello,\n  {nmae}"""\n    return said.format(name=name)\n',
    ],
)
def test_the_place_is_the_holes(body, found):
    """The location is that of the placeholder, even in a text of several lines or with a name."""
    (one,) = found(subject=SHORT + body)

    assert (one.location.line, one.location.column, one.location.end) == (6, 3, 8)


def test_it_can_be_ignored(found):
    """A comment suppresses the warning."""
    line = "    return '{nmae}'.format(name=name)  # promptkit: ignore[PK221]\n"

    assert found(subject=SHORT + line) == ()

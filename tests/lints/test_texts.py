from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from promptkit.compiler.compilation import compile
from promptkit.errors.rules import WARNINGS, Rule
from promptkit.fragments import markdown
from promptkit.fragments.markdown import BLOCKS
from promptkit.loader.loader import load

HEAD = """
import asyncio
import json
import os
import re
import textwrap
from dataclasses import dataclass
from enum import Enum, StrEnum
from pathlib import Path
from string import Template
from typing import Annotated

import promptkit
from promptkit import Arg, Image, Message, Text, assistant, prompt, resource, user
from promptkit.fragments import bullets, code_block, dedent, section

HELLO = "Hello {name}, look at {text}."
STYLE = Path("style.md")
Tags = list[str] | tuple[str, ...]
ABOVE = Path(__file__).parent


class Tone(Enum):
    WARM = "warm"


class Bare:
    pass


@dataclass
class Point:
    x: int


class Made:
    def __new__(cls):
        return "made"


class Shown:
    def __str__(self):
        return "shown"


class Plain(StrEnum):
    WARM = "warm"


def helper(text: str) -> str:
    return text


async def fetch(text: str) -> str:
    return text


def lines(text: str):
    yield text


@resource("logs://recent")
def logs() -> str:
    return "x"


@prompt
def other(text: str = "x") -> str:
    return text


"""

BODY = """

@prompt
def subject(
    name: str,
    text: str = "x",
    tone: Tone = Tone.WARM,
    plain: Plain = Plain.WARM,
    tags: Tags = (),
    parts: list[str] = [],
    count: Annotated[int, Arg("How many")] = 3,
    point: Point = Point(1),
):
    {body}
"""

ASYNC = BODY.replace("def subject", "async def subject")


@pytest.fixture
def check_body(collect_diagnostics):
    """A function that returns the rules and hints for the body of a prompt."""

    def check_body(body, template=BODY, head=HEAD):
        source = head + template.replace("{body}", body.replace("\n", "\n    "))
        return [(diagnostic.rule, diagnostic.hint) for diagnostic in collect_diagnostics(subject=source)]

    return check_body


ROOT = Path(__file__).parents[2]


def test_examples_have_no_warnings(recipes):
    """The example recipes and the README's prompts have no warnings."""
    blocks = [token.content for token in MarkdownIt().parse((ROOT / "README.md").read_text(encoding="utf-8"))]
    sources = [block for block in blocks if "@prompt\n" in block and "import" in block]
    folder = recipes(folder="readme", **{f"block{number}": source for number, source in enumerate(sources)})

    diagnostics = [
        diagnostic
        for path in (ROOT / "recipes", folder)
        for diagnostic in compile(load(path), lint=True).diagnostics
    ]

    assert [diagnostic for diagnostic in diagnostics if diagnostic.rule in WARNINGS] == []
    assert sources


class TestForgottenF:
    @pytest.mark.parametrize(
        "body",
        [
            'return "Hello {name}"',
            'return user("Hello", "of {text}")',
            'yield "Hello {name.upper()}"',
            'return "Hello " + "{name}"',
            'return ["Hello", ("{name!r}", None)]',
            'return "Hello {name:>10}" if name else "x"',
            'return section("A", bullets(["{name}", "b"]))',
            'said = "Hello {name}"\nreturn said',
            'count = len(name)\nreturn "{count} letters"',
            'return "{len(name)} letters"',
            "return \"Tags: {', '.join(tags)}\"",
            'return Message("user", "{name}")',
            'return textwrap.dedent("""\n    Hello {name}\n""")',
            'return "  Hello {name}".strip()',
            "return HELLO",
            'return promptkit.user("{name}")',
            'return "\\n".join(["{name}", "b"])',
            'for tag in tags:\n    yield "Tag {tag}"',
            'return (f"Hello "\n    "{name}")',
            'return user(f"{text}: " r"{name}" f"{text[0]}")',
            'said = "Hello {name}"\nsaid += ", bye"\nreturn said',
            'said = "Hello"\nsaid += " {name}"\nreturn user(said)',
            'said = []\nsaid.append("Hello {name}")\nreturn "\\n".join(said)',
            'said = text\nif tags:\n    said = "Hello {name}"\nreturn said',
            'return "{name}\\n" * 2',
        ],
    )
    def test_unfilled_field_is_reported(self, body, check_body):
        """A plain string with a field that names something in the function is reported."""
        assert [rule for rule, _ in check_body(body)] == [Rule.MISSING_F_PREFIX]

    @pytest.mark.parametrize(
        "body",
        [
            'return f"Hello {name}"',
            'return f"Braces {{name}} around {name}"',
            'return "Hello {name}".format(name=name)',
            "return HELLO.format(name=name, text=text)",
            'said = "Hello {name}"\nreturn said.format(name=name)',
            'said = "Hello {name}"\nsaid = said.format(name=name)\nreturn said',
            'return "Hello {name}".format_map({"name": name})',
            'return "Hello {name}".replace("{name}", name)',
            'return Template("Hello {name}").substitute()',
            'return re.sub(r"{name}", name, text)',
            'return helper("{name}")',
            'return "Hello {world}"',
            'return "JSON: {\\"name\\": 1}"',
            'return "Set {1, 2}, empty {}"',
            'return "Not {name and more"',
            'return code_block("print(f\\"{name}\\")", "python")',
            '"""Hello {name}."""\nreturn name',
            'said = "Hello {name}"\nreturn helper(said)',
            'return "{name} " % ()',
            'return "${name}"[1:]',
            'return (f"{name} "\n    "{other} of {them}")',
            'return ("{name} " f"{text}").format(name=name)',
            'said = "{name}"\nsaid += "!"\nreturn said.format(name=name)',
            'said = []\nsaid.append("{name}")\nreturn helper(said)',
            'return "CSS such as a {text: red} is allowed."',
            'return "The set {name, text} has two members."',
            'return r"Show \\frac{name}{text} and \\sqrt[3]{name}, and match \\d{name}."',
            'said = "x"\nsaid = said + "y"\nreturn said',
            'import json\nreturn "Answer in {json} only."',
        ],
    )
    def test_filled_or_literal_field_is_not_reported(self, body, check_body):
        """Formats, templates, patterns, code, docstrings and unknown names are not reported."""
        assert check_body(body) == []

    @pytest.mark.parametrize(
        ("body", "subjects"),
        [
            ('return ["{name}", "{name}"]', ["'{name}' is", "'{name}' is"]),
            ('return user("Hello {name}", "of {text}")', ["'{name}' is", "'{text}' is"]),
            ('return "Hello {name}, " "of {text}, {name}"', ["'{name}' and '{text}' are"]),
        ],
    )
    def test_every_string_and_field_is_reported(self, body, subjects, collect_diagnostics):
        """Every affected text in a line is reported, and all its fields."""
        messages = [
            diagnostic.message
            for diagnostic in collect_diagnostics(subject=HEAD + BODY.replace("{body}", body))
        ]

        message = "prompt 'subject': {} sent literally: its string has no f prefix"
        assert messages == [message.format(subject) for subject in subjects]

    def test_helper_of_a_recipe_is_checked(self, collect_diagnostics, recipes):
        """A helper that a recipe imports is checked."""
        recipes(_texts='def hello(name: str) -> str:\n    return "Hello {name}"\n')

        (diagnostic,) = collect_diagnostics(
            subject="from promptkit import prompt\nfrom ._texts import hello\n\n"
            "@prompt\ndef subject(name: str) -> str:\n    return hello(name)\n"
        )

        assert diagnostic.rule is Rule.MISSING_F_PREFIX
        assert diagnostic.location.file.endswith("_texts.py")

    def test_text_under_a_decorator_is_not_reported(self, check_body):
        """Text under a decorator is not reported, because the decorator might use it as a template."""
        decorated = "\n\ndef filled(function):\n    return function\n" + BODY.replace(
            "@prompt", "@prompt\n@filled"
        )

        assert check_body('"""Hello {{ name }}."""\nreturn "Hello {name}"', decorated) == []


def test_chains_of_assignments_are_checked_quickly(collect_diagnostics):
    """Chains of assignments do not take exponential time."""
    names = [f"a{number}" for number in range(60)]
    lines = "".join(f"    {name} = {before} + {before}\n" for before, name in pairwise(names))
    head = "from promptkit import prompt\n\n@prompt\ndef sums(a0: str) -> str:\n"
    source = f"{head}{lines}    return a59\n"

    assert collect_diagnostics(sums=source) == ()


class TestTemplates:
    @pytest.mark.parametrize(
        "body",
        [
            'return "Hello {{ name }}"',
            'return "Hello {{name}}"',
            'return user("Hello {{ name | upper }}")',
            'return "{{#name}}\\nHello\\n{{/name}}"',
            'return "{{#if name}}Hello{{/if}}"',
            'return "{% if name %}Hello{% endif %}"',
            'return (f"Hello {name} "\n    "of {{text}}")',
            'return "{% for tag in tags %}a{% endfor %}"',
            'return "Hello ${name}"',
            'return "Hello %(name)s"',
            'return "Hello <%= name %>"',
            '"""Review {{ anything }}."""\nreturn name',
            '"""Review {% if x %}this{% endif %}."""\nreturn name',
        ],
    )
    def test_template_syntax_is_reported(self, body, check_body):
        """Template syntax, such as Jinja, in text or docstrings is reported."""
        assert [rule for rule, _ in check_body(body)] == [Rule.TEMPLATE_SYNTAX]

    @pytest.mark.parametrize(
        "body",
        [
            'return "Write a Helm chart with {{ .Values.image }}"',
            'return "Explain {{ something }} of Jinja"',
            'return "Explain ${HOME} and {% raw %}"',
            'return f"{{{{ name }}}} is how Jinja shows {name}"',
            'return "%(name)s" % {"name": name}',
            '"""Explain {braces} and {% of something."""\nreturn name',
        ],
    )
    def test_text_about_templates_is_not_reported(self, body, check_body):
        """Text about templates is not reported."""
        assert check_body(body) == []


class TestBlocks:
    @pytest.mark.parametrize(
        ("body", "block"),
        [
            ('return f"The diff: {code_block(text)}"', "code_block"),
            ('return f"{name}: {code_block(text)}"', "code_block"),
            ('return f"{code_block(text)}."', "code_block"),
            ('return f"{code_block(text)} ends {name}"', "code_block"),
            ('return f"{name} {code_block(text)}"', "code_block"),
            ('return f"{code_block(text)} {name}"', "code_block"),
            ('return f"A\\n- {code_block(text)}"', "code_block"),
            ('return f"Tags: {bullets(tags)}\\n"', "bullets"),
            ('return f"{bullets(tags)}{section(name, text)}"', "bullets"),
            ('return f"Look: {promptkit.fragments.quote(text)}"', "quote"),
            ('shown = code_block(text)\nreturn f"The diff: {shown}"', "code_block"),
            ('return user(f"\\n    The diff: {code_block(text)}\\n    ".strip())', "code_block"),
        ],
        ids=range(12),
    )
    def test_block_inside_a_line_is_reported(self, body, block, check_body):
        """A Markdown block inside a line is reported, because it must start and end on separate lines."""
        diagnostics = check_body(body)

        assert diagnostics[0] == (
            Rule.BLOCK_IN_LINE,
            f"write a blank line between them, or user('...', {block}(...)), which adds one",
        )
        assert {rule for rule, _ in diagnostics} == {Rule.BLOCK_IN_LINE}

    @pytest.mark.parametrize(
        "body",
        [
            'return f"The diff:\\n\\n{code_block(text)}\\n\\nReview it."',
            'return f"{code_block(text)}"',
            'return f"{name}{code_block(text)}{name}"',
            'return f"  {code_block(text)}  \\n"',
            'return f"table: {name} {helper(text)}"',
            'return "The diff:" + code_block(text)',
            'return user("The diff:", code_block(text))',
            'return user(f"\\n    The diff:\\n\\n    {code_block(text)}\\n    ".strip())',
            'shown = code_block(text)\nshown = name\nreturn f"The name: {shown}"',
        ],
        ids=range(9),
    )
    def test_block_on_separate_lines_is_not_reported(self, body, check_body):
        """Blocks on separate lines, next to a possible newline or joined by blank lines are not reported."""
        assert check_body(body) == []

    def test_blocks_are_the_markdown_fragments(self):
        """The blocks are exactly the Markdown fragments."""
        assert {block.__name__ for block in BLOCKS} == {*markdown.__all__} - {"BLOCKS"}


class TestObjects:
    @pytest.mark.parametrize(
        ("body", "hint"),
        [
            ('return f"{(tag for tag in tags)}"', "join them: ', '.join(...)"),
            ('return f"{lines(text)}"', "join them: ', '.join(...)"),
            ('return f"{fetch(text)}"', "await it, in an `async def` prompt"),
            ('return f"{helper}"', "call it: helper(...)"),
            ('return f"{other}"', "call it: other(...)"),
            ('return f"{os.getcwd}"', "call it: os.getcwd(...)"),
            ('return f"{len}"', "call it: len(...)"),
            ('return f"{Tone}"', "call it: Tone(...)"),
            ('return f"{name.upper}"', "call it: name.upper()"),
            ('return f"{tone}"', "write {tone.value}"),
            ('return f"{(lambda: name)}"', "call it"),
            ('found = fetch(text)\nreturn f"{found}"', "await it, in an `async def` prompt"),
            ('found = (tag for tag in tags)\nreturn f"{found}"', "join them: ', '.join(...)"),
            ('return f"{map(str, tags)}"', "join them: ', '.join(...)"),
            ('return f"{reversed(name)}"', "join them: ', '.join(...)"),
            ('return f"{Bare()}"', "write its attributes, or give it a __str__"),
            ('start = user("a")\nreturn f"{start} {name}"', "join turns with +, or insert only its text"),
            ('return f"{point}"', "write its attributes, or json_block(...)"),
            ('return f"{Point(1)}"', "write its attributes, or json_block(...)"),
            ('point = Point(1)\nreturn "At %s" % point', "write its attributes, or json_block(...)"),
            ('return "%s: %s" % (name, point)', "write its attributes, or json_block(...)"),
            ('return "{} {p}".format(name, p=point)', "write its attributes, or json_block(...)"),
            ('return f"{Image(text.encode())}"', "pass it to user(...) as a separate part"),
            ('return f"{[Image(text.encode())]}"', "pass it to user(...) as a separate part"),
            ('return "%s" % Image(text.encode())', "pass it to user(...) as a separate part"),
            (
                'content = [name, Image(text.encode())]\nreturn f"{content}"',
                "pass it to user(...) as a separate part",
            ),
            ('return f"{[each for each in text]}"', None),
            ('items = [name]\nreturn f"{items}"', None),
            ('items = {name, text}\nreturn ", ".join(items)', "write sorted(items)"),
            ('return ", ".join({name, text})', "write sorted({name, text})"),
        ],
    )
    def test_object_without_a_text_form_is_reported(self, body, hint, check_body):
        """Objects without a text form are reported in f-strings."""
        ((rule, reported_hint),) = check_body(body)

        assert rule is Rule.OBJECT_IN_TEXT
        assert hint is None or reported_hint == hint

    @pytest.mark.parametrize(
        "body",
        [
            'return f"{name} {text!r} {tags}"',
            'return f"{plain} {tone.value} {tone.name}"',
            'return f"{helper(text)} {len(tags)} {name.upper()}"',
            'helper = name\nreturn f"{helper}"',
            'return f"{os.sep} {HELLO}"',
            'return "%r %(x)s" % {"x": 1}',
            'return f"{point!r} {point.x}"',
            'return "{p.x} {p!r}".format(p=point)',
            'return ", ".join([name, text])',
            'return ", ".join(sorted({name, text}))',
            'return f"{range(3)} {Path(name)} {str(name)} {Shown()} {Made()}"',
            'found = lines(text)\nfound = list(found)\nreturn f"{found}"',
        ],
    )
    def test_object_with_a_text_form_is_not_reported(self, body, check_body):
        """Values, calls and lists are not reported."""
        assert check_body(body) == []

    @pytest.mark.parametrize(
        ("annotation", "kind", "hint"),
        [
            ("list[str]", "list", "write ', '.join(held), or bullets(held)"),
            ("list[str] | None", "list", "write ', '.join(held), or bullets(held)"),
            ("Annotated[list[str], Arg('x')]", "list", "write ', '.join(held), or bullets(held)"),
            ("tuple[str, ...]", "tuple", "write ', '.join(held), or bullets(held)"),
            ("list[int]", "list", "write ', '.join(map(str, held)), or bullets(held)"),
            ("set[str]", "set", "write ', '.join(sorted(held)), or bullets(sorted(held))"),
            ("dict[str, int]", "dict", "write json_block(held), or format its items"),
        ],
    )
    @pytest.mark.parametrize("body", ['return f"All of {held}."', 'return user(f"All of {held}.")'])
    def test_container_is_reported(self, annotation, kind, hint, body, collect_diagnostics):
        """A container in an f-string is reported, because it would be shown in Python's syntax."""
        source = BODY.replace("name: str,", f"held: {annotation},").replace("{body}", body)

        (diagnostic,) = collect_diagnostics(subject=HEAD + source)

        assert (diagnostic.rule, diagnostic.hint) == (Rule.OBJECT_IN_TEXT, hint)
        assert diagnostic.message.endswith(f"'{{held}}' in an f-string shows a {kind} in Python's notation")

    @pytest.mark.parametrize(
        ("annotation", "body"),
        [
            ("list[str]", 'return f"{held!r} {len(held)} {held[0]} {held=}"'),
            ("list[str]", "held = ', '.join(held)\nreturn f\"{held}\""),
            ("list[str] | str", 'return f"{held}"'),
            ("str", 'return f"{held}"'),
            ("list[str]", "return f\"{', '.join(held)}{bullets(held)}\""),
        ],
    )
    def test_converted_container_is_not_reported(self, annotation, body, collect_diagnostics):
        """Values with an explicit repr, converted values, and values that might be text are not reported."""
        body = body.replace("\n", "\n    ")

        source = BODY.replace("name: str,", f"held: {annotation},").replace("{body}", body)

        assert collect_diagnostics(subject=HEAD + source) == ()

    def test_awaited_coroutine_is_not_reported(self, check_body):
        """An awaited coroutine counts as its result."""
        assert check_body('return f"{await fetch(text)}"', ASYNC) == []


A_TURN = "write user(...) or assistant(...) for a turn, or a list for several parts"
NO_SYSTEM = "write system(...) for a system part"
MESSAGES = "convert a list of messages with Workflow.from_messages(...)"


class TestUnsendable:
    @pytest.mark.parametrize(
        ("body", "hint"),
        [
            ('return {"role": "user", "content": name}', MESSAGES),
            ('return [{"role": "system", "content": "Be kind."}]', MESSAGES),
            ('yield {"role": "model", "parts": [name]}', A_TURN),
            ('return [("system", "Be kind.")]', NO_SYSTEM),
            ('return "user", name', A_TURN),
            ('yield "user", f"Hello {name}"', A_TURN),
            ('return [("user", tag) for tag in tags]', A_TURN),
            ('return name or {"role": "user"}', A_TURN),
            ('return {"a": 1}', "convert it to text with promptkit.fragments.json_block(...)"),
            ("return {tag for tag in tags}", "sort it with sorted(...)"),
            ('return {"a", "b"}', "sort it with sorted(...)"),
            ("return 3", "convert it to text with str(...) or an f-string"),
            ("return len", "call it"),
            (
                "yield other",
                "call the prompt: `return other(...)` or `yield other(...)`",
            ),
            ("return [logs]", "embed it with .embed(...), or link to it with .link(...)"),
            ("return fetch(text)", "await it in an `async def` prompt"),
            ("return user(name, [name])", "unpack it with *"),
            ('return user({"role": "user", "content": name})', MESSAGES),
            ('turns = [{"role": "user", "content": name}]\nreturn turns', MESSAGES),
            ('turns = []\nturns.append(("user", name))\nreturn turns', A_TURN),
            ("return user(count)", "convert it to text with str(...) or an f-string"),
            ("return [name, count]", "convert it to text with str(...) or an f-string"),
            ("return user(parts)", "unpack it with *"),
            ("found = [name]\nreturn user(found)", "unpack it with *"),
            ("return user(name) + assistant(helper)", "call it"),
            (
                'return b"x"',
                "pass the bytes to Image(...), Audio(...) or EmbeddedResource(..., blob=...)",
            ),
        ],
    )
    def test_unsendable_value_is_reported(self, body, hint, check_body):
        """A value that no message can contain is reported."""
        assert check_body(body) == [(Rule.UNSENDABLE_VALUE, hint)]

    @pytest.mark.parametrize(
        "body",
        [
            'return ["user", name]',
            'return "a", "b", "c"',
            'return name, Text("b")',
            "return [user(name), assistant(text), None]",
            "return user(*tags)",
            "return user(name, None, False)",
            "return other(text)",
            "return [tag for tag in tags]",
            "data = {'a': 1}\nreturn json.dumps(data)",
            "def inner():\n    return {'a': 1}\nreturn str(inner())",
            "return logs.embed()",
            "return (tag for tag in tags)",
            "other = name\nreturn other",
            "return parts",
            "return user(*parts)",
            "count = str(count)\nreturn user(count)",
            "found = {'a': name}\nfound = json.dumps(found)\nreturn found",
            "found = []\nfound.append(user(name))\nfound.append(text)\nreturn found",
        ],
    )
    def test_sendable_value_is_not_reported(self, body, check_body):
        """Values that can be sent are not reported."""
        assert check_body(body) == []


class TestUndefinedNames:
    @pytest.mark.parametrize(
        ("body", "hint"),
        [
            ("return nmae", "did you mean 'name'?"),
            ("return system(name)", "import it: from promptkit import system"),
            ("return sytem(name)", "did you mean 'system'? import it: from promptkit import system"),
            ("return System(name)", "did you mean 'system'? import it: from promptkit import system"),
            ("return SystemMessage(name)", "write 'from promptkit import system', and call system(...)"),
            ("return run('git', 'log')", "import it: from promptkit.workspace import run"),
            (
                "return LoadEror(name)",
                "did you mean 'LoadError'? import it: from promptkit.errors import LoadError",
            ),
            ("return pritn(name)", "did you mean 'print'?"),
            ("return lenn(name)", "did you mean 'len'?"),
            ("return summary", "define it, or correct the name"),
            ("return helpr(name)", "did you mean 'helper'?"),
            ("return quote(name)", "import it: from promptkit.fragments import quote"),
            ("return datetime.now().isoformat()", "import it: from datetime import datetime"),
            ("return random.choice(tags)", "import it: import random"),
            ("return f'{xyzzy_of_nothing}'", "define it, or correct the name"),
            ("def inner():\n    return nmae\nreturn inner()", "did you mean 'name'?"),
        ],
    )
    def test_undefined_name_is_reported(self, body, hint, check_body):
        """A name that is not defined is reported, because it fails only when the prompt is rendered."""
        assert check_body(body) == [(Rule.UNDEFINED_NAME, hint)]

    def test_star_import_does_not_hide_undefined_names(self, check_body):
        """A star import does not hide undefined names."""
        head = f"{HEAD}from promptkit.fragments import *\n"

        assert check_body("return nmae", head=head) == [(Rule.UNDEFINED_NAME, "did you mean 'name'?")]
        assert check_body("return quote(name)", head=head) == []

    def test_name_deleted_after_its_use_is_not_reported(self, check_body):
        """A module can delete a name after using it."""
        template = (
            f"{BODY}\n\ndone = 'x'\nclass Done:\n    text = done\nall = [done for _ in done]\ndel done\n"
        )

        assert check_body("return name", template) == []

    @pytest.mark.parametrize(
        "body",
        [
            "return later(name)",
            "return given",
            "x: 'Nowhere' = name\nreturn x",
            "return __name__",
            "if (found := name):\n    return found",
        ],
    )
    def test_name_defined_later_or_dynamically_is_not_reported(self, body, check_body):
        """Names defined later, or dynamically by the module, are not reported."""
        head = f"{HEAD}globals()['given'] = 'x'\nNowhere = str\n"
        template = f"{BODY}\n\ndef later(name):\n    return name\n"

        assert check_body(body, template, head) == []


class TestImports:
    @pytest.mark.parametrize(
        "head",
        [
            "import _inner",
            "import json, mine._inner",
            "import mine._inner as inner",
            "from mine import _inner",
            "from . import _inner",
            "from ._inner import helper",
        ],
    )
    def test_imported_helper_is_checked(self, head, recipes):
        """A helper is checked, however it is imported."""
        recipe = f"{head}\nfrom promptkit import prompt\n@prompt\ndef one():\n    return 'x'"
        folder = recipes("mine", a=recipe, _inner="def helper():\n    return nowhere\n")

        (diagnostic,) = compile(load(folder), lint=True).diagnostics

        assert (diagnostic.rule, Path(diagnostic.location.file).name) == (Rule.UNDEFINED_NAME, "_inner.py")


class TestPaths:
    @pytest.mark.parametrize(
        ("body", "path"),
        [
            ('return open("style.md").read()', "style.md"),
            ('with open("a/b.md", encoding="utf-8") as file:\n    return file.read()', "a/b.md"),
            ('return open("b.md", "r").read()', "b.md"),
            ('return open(f"styles/{name}.md").read()', "styles/{name}.md"),
            ('return Path("style.md").read_text()', "style.md"),
            ('return Image((Path("a") / name).read_bytes())', "a"),
            ('return (Path("a") / "b").read_text()', "a"),
            ("return STYLE.read_text()", "style.md"),
            ("return open(STYLE).read()", "style.md"),
            ('folder = Path("notes")\nreturn folder.read_text()', "notes"),
            ('place = "notes/a.md"\nreturn open(place).read()', "notes/a.md"),
            ('return str(os.listdir("notes"))', "notes"),
            ('return Path("style.md").open().read()', "style.md"),
            ('return Path("style.md").open(mode="rb").read()', "style.md"),
        ],
    )
    def test_path_relative_to_the_current_folder_is_reported(self, body, path, check_body):
        """A path relative to the current folder is reported, because clients start servers in any folder."""
        hint = f"resolve it from the recipe's folder: Path(__file__).parent / {path!r}"

        diagnostics = [each for each in check_body(body) if each[0] is not Rule.CALLERS_PATH]

        assert diagnostics == [(Rule.RELATIVE_PATH, hint)]

    @pytest.mark.parametrize(
        "body",
        [
            'return (ABOVE / "style.md").read_text()',
            'return Path(__file__).with_name("style.md").read_text()',
            'return open("/etc/hostname").read()',
            "return open(name).read()",
            "return str(os.listdir(ABOVE))",
            'place = ABOVE / "a.md"\nreturn open(place).read()',
            'return open(ABOVE / "style.md").read()',
            'return Path("~/style.md").expanduser().read_text()',
            'open("log.txt", "a").write(name)\nreturn name',
            'Path("log.txt").open("w").write(name)\nreturn name',
            'Path("log.txt").open(mode="a").write(name)\nreturn name',
            "return Path(name).read_text()",
            'return Image.from_path("a.png")',
        ],
    )
    def test_other_paths_are_not_reported(self, body, check_body, recipes, png):
        """Paths from the recipe's folder, absolute paths, given paths and written files are not reported."""
        (recipes() / "a.png").write_bytes(png)

        assert Rule.RELATIVE_PATH not in [rule for rule, _ in check_body(body)]

"""Lints of the content that a prompt sends, as far as its source shows it."""

import pytest

from promptkit import Image, assistant, prompt, system, user
from promptkit.errors.rules import Rule
from promptkit.language.media import MAX_IMAGE_BYTES
from promptkit.lints.prompts import lint_first_message

HEAD = """
from pathlib import Path
from typing import Annotated

from promptkit import Arg, Audio, EmbeddedResource, Image, ResourceLink, prompt, resource
from promptkit import assistant, cache_point, system, user
from promptkit.fragments import section

HERE = Path(__file__).parent
HELLO = "Hello."
MADE = user("made at import")

@resource("logs://recent")
def logs() -> str:
    return "x"

def turn():
    return user("x")

@prompt
def subject(name: str, picture: bytes = b"", kind: Annotated[str, Arg("x")] = "x", many: list[str] = []):
    {body}
"""


@pytest.fixture
def check_body(collect_diagnostics):
    """A function that returns the rules and messages for the body of a prompt, without the prompt's name."""

    def check_body(body):
        source = HEAD.replace("{body}", body.replace("\n", "\n    "))
        return [
            (diagnostic.rule, diagnostic.message.removeprefix("prompt 'subject': "))
            for diagnostic in collect_diagnostics(subject=source)
        ]

    return check_body


FIRST_ALONE = "but some clients use only the first message"


class TestSystem:
    @pytest.mark.parametrize(
        ("body", "is_reported"),
        [
            ("yield system(name)\nreturn user(name)", False),
            ("yield system(name)\nif name:\n    return user(name)\nyield user('x')", False),
            ("yield system(name)\nif name:\n    return\nyield user('x')", True),
            ("yield system(name)\nreturn None", True),
            ("yield system(name)", True),
            ("return system(name)", True),
        ],
        ids=str,
    )
    def test_a_system_part_alone_is_reported(self, check_body, body, is_reported):
        """
        A system part without a turn is reported. A turn that a generator returns after the system part
        counts.
        """
        reported = check_body(body)

        assert [rule for rule, _ in reported] == [Rule.NO_MESSAGE] * is_reported

    def test_the_returned_value_is_the_last_part(self):
        """A generator's yielded parts come first, then the part that it returns."""

        @prompt
        def ask(question: str):
            yield system("Be brief.")
            return user(question)

        rendered = ask.render("Why?")

        assert (str(rendered.system), [message.text for message in rendered]) == ("Be brief.", ["Why?"])


class TestFirstMessage:
    @pytest.mark.parametrize(
        ("body", "message"),
        [
            ("return assistant(name)", "its first message is the assistant's"),
            ("return assistant('x') + user(name)", "its first message is the assistant's"),
            ("return [assistant('x'), name]", "its first message is the assistant's"),
            ("yield assistant(name)\nyield name", "its first message is the assistant's"),
            ("first = assistant(name)\nreturn first + name", "its first message is the assistant's"),
            (
                "if name:\n    return user(name)\nreturn assistant('x')",
                "its first message is the assistant's",
            ),
            ("yield None\nyield assistant(name)", "its first message is the assistant's"),
            ("yield cache_point()\nyield assistant(name)", "its first message is the assistant's"),
            ("with open(__file__):\n    yield assistant(name)", "its first message is the assistant's"),
            ("if name:\n    yield assistant(name)\nyield 'x'", "its first message is the assistant's"),
            ("for one in many:\n    yield assistant(one)", "its first message is the assistant's"),
            ("try:\n    yield assistant(name)\nfinally:\n    pass", "its first message is the assistant's"),
            (
                "match name:\n    case _:\n        yield assistant(name)",
                "its first message is the assistant's",
            ),
            ("yield from [assistant(name)]", "its first message is the assistant's"),
            (
                "return user(cache_point(), Image(picture), 'x')",
                f"its first message is an image, {FIRST_ALONE}",
            ),
            ("return user(Image(picture), 'x')", f"its first message is an image, {FIRST_ALONE}"),
            (
                "return user(Image(picture) if name else 'a', 'x')",
                f"its first message is an image, {FIRST_ALONE}",
            ),
            ("return Image(picture) + user('x')", f"its first message is an image, {FIRST_ALONE}"),
            (
                "return user(Audio(picture), section('a', name))",
                f"its first message is a recording, {FIRST_ALONE}",
            ),
            ("return user(logs.embed(), kind)", f"its first message is an embedded resource, {FIRST_ALONE}"),
            ("return user(logs.link(), HELLO)", f"its first message is a link to a resource, {FIRST_ALONE}"),
            (
                "return user(EmbeddedResource('a://b', text='x'), name.strip())",
                f"its first message is an embedded resource, {FIRST_ALONE}",
            ),
            (
                "return user(ResourceLink('a://b'), f'{name}')",
                f"its first message is a link to a resource, {FIRST_ALONE}",
            ),
        ],
    )
    def test_first_message_that_is_not_user_text_is_reported(self, body, message, check_body):
        """A first message that is not user text is reported on any path through the function."""
        assert check_body(body) == [(Rule.FIRST_MESSAGE, message)]

    @pytest.mark.parametrize(
        "body",
        [
            "return name",
            "return user(name) + assistant('x')",
            "return [name, assistant('x')]",
            "yield name\nyield assistant('x')",
            "return user('x', Image(picture))",
            "return user('x', Image(picture) if picture else None)",
            "return Image(picture)",
            "return logs.embed()",
            "return user(Image(picture))",
            "return user(name + 'x', logs.embed())",
            "return MADE + assistant('x')",
            "return turn() + assistant('x')",
            "first = turn()\nreturn first + assistant('x')",
            "first = assistant('x')\nfirst = user(name)\nreturn first",
            "return user(*many, Image(picture), 'x')",
            "return user(many[0], Image(picture), 'x')",
            "yield from (user(one) for one in many)",
            "if name:\n    return user(name)\nraise ValueError",
            "yield ' '\nyield name",
            "for second in many:\n    first = second\n    second = [first]\nreturn second",
        ],
    )
    def test_user_text_and_unknown_content_are_not_reported(self, body, check_body):
        """
        User text, media without any text, and content that the source does not determine are not reported.
        """
        assert check_body(body) == []

    def test_location_is_the_expression(self, collect_diagnostics):
        """The location of the diagnostic is the expression."""
        source = HEAD.replace("{body}", "return user(Image(picture), 'x')")

        (diagnostic,) = collect_diagnostics(subject=source)

        line = source.strip().splitlines()[diagnostic.location.line - 1]
        assert line[diagnostic.location.column - 1 : diagnostic.location.end - 1] == "Image(picture)"

    def test_first_message_of_a_rendering_is_checked(self, png):
        """A rendering shows a first message that the source does not."""

        @prompt
        def subject() -> str:
            return "x"

        def lint_rendering(workflow):
            return [diagnostic.message for diagnostic in lint_first_message(subject.compiled, workflow)]

        assert lint_rendering(assistant("x")) == ["prompt 'subject': its first message is the assistant's"]
        assert lint_rendering(user(Image(png), "x")) == [
            f"prompt 'subject': its first message is an image, {FIRST_ALONE}"
        ]
        assert lint_rendering(user("x", Image(png))) == []

    def test_many_branches_are_checked_quickly(self, check_body):
        """Many branches do not take exponential time."""
        body = "\n".join(f"if name == '{n}':\n    yield '{n}'" for n in range(200))

        assert check_body(body) == []

    def test_long_sums_are_checked(self, check_body):
        """A long chain of `+` does not exceed the recursion limit."""
        texts, turns = " + ".join(["name"] * 600), " + ".join(["turn()"] * 600)

        assert check_body(f"if name:\n    return {texts}\nreturn {turns}") == []
        assert [rule for rule, _ in check_body(f"return assistant(name) + {turns}")] == [Rule.FIRST_MESSAGE]


def test_deeply_nested_code_is_skipped(collect_diagnostics):
    """Code nested too deeply for the lints is skipped, and other prompts are checked."""
    chain = "    elif name == 'x':\n        yield 'x'\n" * 400
    deep = f"def deep(name: str):\n    if name:\n        yield name\n{chain}"
    first = "def first(name: str):\n    return assistant(name)\n"

    (diagnostic,) = collect_diagnostics(
        recipe=f"from promptkit import assistant, prompt\n@prompt\n{deep}@prompt\n{first}"
    )

    assert diagnostic.rule is Rule.FIRST_MESSAGE


class TestFiles:
    @pytest.fixture
    def folder(self, recipes, png):
        """A folder of recipes with an image and some invalid files."""
        folder = recipes()
        (folder / "good.png").write_bytes(png)
        (folder / "text.png").write_text("no picture")
        (folder / "large.png").write_bytes(png + b"\0" * MAX_IMAGE_BYTES)
        return folder

    @pytest.mark.parametrize(
        ("call", "expected_message"),
        [
            ("Image.from_path('none.png')", "'none.png' cannot be read: No such file or directory"),
            ("Image.from_path('text.png')", "'text.png': the bytes are not in a known format, but"),
            ("Image.from_path('large.png')", "bytes, but the limit is 3,932,160 bytes"),
            ("Audio.from_path('good.png')", "'good.png': the bytes are image/png, but clients accept only"),
            ("EmbeddedResource.from_path('none.md')", "'none.md' cannot be read: No such file or directory"),
        ],
        ids=["missing", "text", "large", "kind", "document"],
    )
    def test_unsendable_file_is_reported(self, call, expected_message, folder, check_body):
        """A file that the source names is checked before the prompt is requested."""
        ((rule, message),) = check_body(f"return user(name, {call})")

        assert rule is Rule.UNSENDABLE_FILE
        assert expected_message in message
        assert str(folder) not in message

    @pytest.mark.parametrize(
        "call",
        [
            "Image.from_path('good.png')",
            "Image.from_path(name, root=HERE)",
            "Image.from_path('none.png', root=HERE)",
            "EmbeddedResource.from_path('text.png', 'a:b')",
        ],
        ids=["good", "argument", "root", "document"],
    )
    def test_valid_and_unknown_files_are_not_reported(self, call, folder, check_body):
        """Valid files, and paths that depend on a value, are not reported."""
        assert check_body(f"return user(name, {call})") == []

"""Lints for one client: what it hides, loses, cuts or does not fill, each with a true and a false case."""

import re
from pathlib import Path

import pytest

from promptkit import Audio, EmbeddedResource, Image, ResourceLink, assistant, prompt, user
from promptkit.compiler.compilation import compile
from promptkit.compiler.lints.client_profiles import CLIENTS, UnknownClient
from promptkit.compiler.lints.clients import lint_client, lint_workflow
from promptkit.compiler.loading.loader import Recipes, load
from promptkit.errors.diagnostics import WARNINGS, Rule

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")

HEAD = """
from datetime import date
from enum import Enum
from typing import Annotated, Literal

from promptkit import Arg, EmbeddedResource, Image, prompt, resource, user, assistant

class Tone(Enum):
    WARM = "warm"
    COLD = "very cold"

@resource("logs://recent")
def logs() -> str:
    return "x"

"""

PROMPT = """
@prompt{options}
def subject({parameters}):
    {body}
"""


@pytest.fixture
def told(recipes, tmp_path, monkeypatch):
    """A function that says what a client makes of a prompt: rule and message, without the prompt's name."""
    monkeypatch.chdir(tmp_path)

    def told(client, parameters="text: str", body="return text", options=""):
        source = HEAD + PROMPT.format(
            options=options, parameters=parameters, body=body.replace("\n", "\n    ")
        )
        catalog = compile(load(recipes(subject=source)))
        assert catalog.diagnostics == ()
        found = lint_client(client, catalog)
        assert all(one.rule in WARNINGS for one in found)
        return [(one.rule.value, one.message.removeprefix("prompt 'subject': ")) for one in found]

    return told


def cut(name, following):
    return (
        "PK503",
        f"Claude Code cuts arguments at blanks, so that the second word of {name!r} would be {following!r}",
    )


class TestHidden:
    @pytest.mark.parametrize(
        "parameters", ["", "text: str", "text: str = 'x'"], ids=["none", "one", "optional"]
    )
    def test_zed_shows_prompts_of_one_argument(self, parameters, told):
        """
        One, or none.
        """
        assert told("zed", parameters, "return 'x'") == []

    def test_zed_hides_the_others(self, told):
        """
        Whether or not they are required.
        """
        assert told("zed", "text: str, depth: int = 1") == [("PK501", "Zed hides it, as it has 2 arguments")]

    @pytest.mark.parametrize(("client", "title"), [("codex", "Codex"), ("copilot-cli", "Copilot CLI")])
    def test_clients_without_prompts_are_told_of_once(self, client, title, found):
        """
        It holds for all prompts, so it is said of the first one, and not at all if there is none.
        """
        prompts = tuple(prompt(name=name)(lambda: "x") for name in "ab")

        (diagnostic,) = lint_client(client, compile(Recipes(prompts=prompts)))

        assert diagnostic.rule is Rule.HIDDEN_PROMPT
        assert diagnostic.message.endswith(f"{title} offers people no prompts, this one nor any other")
        assert lint_client(client, compile(Recipes())) == ()


class TestArguments:
    @pytest.mark.parametrize(
        ("parameters", "fault"),
        [
            ("text: str, depth: int", cut("text", "depth")),
            ("depth: int, text: str, more: str = ''", cut("text", "more")),
            ("text: str | None = None, depth: int = 1", cut("text", "depth")),
            ("many: list[str], depth: int", cut("many", "depth")),
            ("more: dict[str, int], depth: int", cut("more", "depth")),
            ("tone: Tone, text: str", cut("tone", "text")),
            ("tone: Literal['a', 'b c'], text: str", cut("tone", "text")),
            ("text: Annotated[str, Arg(complete=['a', 'b c'])], depth: int", cut("text", "depth")),
        ],
    )
    def test_claude_code_cuts_text_that_is_not_last(self, parameters, fault, told):
        """
        Quotes do not keep words together. It is said of the first such argument.
        """
        assert told("claude-code", parameters, "return 'x'") == [fault]

    @pytest.mark.parametrize(
        "parameters",
        [
            "text: str",
            "depth: int, text: str",
            "*, depth: int = 1, text: str",
            "day: date, tone: Literal['a', 'b'], sure: bool, text: str",
            "tone: Literal['a', 'b'] | None, text: str",
            "number: float | Literal['auto'], text: str",
            "file: Annotated[str, Arg(complete=['a.png'])], text: str",
            "file: Annotated[str, Arg(complete=lambda typed: [])], text: str",
            "numbers: list[int], text: str",
        ],
    )
    def test_claude_code_takes_text_that_is_last(self, parameters, told):
        """
        What is one word is fine anywhere.
        """
        assert told("claude-code", parameters) == []

    def test_claude_code_types_titles(self, told):
        """
        A title of one word can be typed.
        """
        assert told("claude-code", options="(title='Review it')") == [
            (
                "PK505",
                "Claude Code may make a command of its title 'Review it', and a command has no blanks",
            )
        ]
        assert told("claude-code", options="(title='Review')") == []

    def test_opencode_joins_words(self, told):
        """
        The first argument gets them all.
        """
        assert told("opencode", "text: str, more: str") == [
            ("PK503", "opencode gives every word to 'text', and none to the other arguments")
        ]
        assert told("opencode") == []

    @pytest.mark.parametrize(
        ("annotation", "refused"),
        [("int", True), ("Literal['a', 'b']", True), ("str", False), ("list[str]", False)],
    )
    def test_opencode_sends_placeholders(self, annotation, refused, told):
        """
        Before people have typed anything, it sends what only text can be.
        """
        fault = ("PK504", "opencode sends '$1' for 'text' when it starts, which is refused")

        assert told("opencode", f"text: {annotation}", "return 'x'") == ([fault] if refused else [])

    def test_semantic_kernel_asks_for_all(self, told):
        """
        A default is never used there.
        """
        assert told("semantic-kernel", "text: str, depth: int = 1") == [
            ("PK504", "Semantic Kernel asks for 'depth', though it has a default")
        ]
        assert told("semantic-kernel", "text: str, depth: int") == []

    def test_semantic_kernel_keeps_a_name(self, told):
        """
        An argument called `service` collides with its own.
        """
        assert told("semantic-kernel", "service: str", "return service") == [
            ("PK504", "Semantic Kernel keeps the name 'service' for itself")
        ]


#: By client: the kinds of content that it loses, and what it does.
LOST = {
    "claude-desktop": ("Claude Desktop does not show people", ["document"]),
    "gemini-cli": ("Gemini CLI leaves out", ["image", "document", "link"]),
    "langchain": ("langchain-mcp-adapters fails at", ["image", "document", "link"]),
    "llama-index": ("LlamaIndex fails at", ["document"]),
}
CONTENT = {
    "image": ("Image(b'')", "an image"),
    "document": ("logs.embed()", "an embedded resource"),
    "link": ("logs.link()", "a link to a resource"),
}


class TestContent:
    @pytest.mark.parametrize("client", CLIENTS)
    @pytest.mark.parametrize("kind", CONTENT)
    def test_what_a_client_loses_of_content(self, client, kind, told):
        """
        Each client that loses a kind is told of; the others take it.
        """
        verb, lost = LOST.get(client, ("", []))
        made, name = CONTENT[kind]
        others = [one for one in told(client) if one[0] != "PK502"]

        found = told(client, body=f"return user(text, {made})")

        assert found == others + ([("PK502", f"{verb} {name}")] if kind in lost else [])

    @pytest.mark.parametrize(
        "body",
        [
            "return user(text) + user('x')",
            "yield text\nyield assistant('x')",
            "yield text\nfor one in text:\n    yield user(one)",
            "if text:\n    return [text, 'x']\nreturn text",
        ],
    )
    def test_gemini_sends_the_first_message(self, body, told):
        """
        What comes behind it is lost.
        """
        assert told("gemini-cli", body=body) == [
            ("PK502", "Gemini CLI sends the first message alone, and not this one")
        ]

    @pytest.mark.parametrize(
        "body",
        [
            "return text",
            "return user(text, 'x')",
            "yield user(text, 'x')",
            "return [text, None]",
            "yield text\nfor one in text:\n    yield one",
        ],
    )
    def test_one_message_is_sent(self, body, told):
        """
        Several parts of text are one message. What the source does not show is not reported.
        """
        assert told("gemini-cli", body=body) == []

    def test_content_that_a_call_makes_elsewhere(self, told):
        """
        A method that is handed on counts, and `isinstance` does not.
        """
        handed = "return user(text, *[make() for make in [logs.embed]])"

        assert ("PK502", "LlamaIndex fails at an embedded resource") in told("llama-index", body=handed)
        assert told("langchain", body="return 'x' if isinstance(text, Image) else text") == []


class TestRendered:
    @pytest.fixture
    def rendered(self, png, wav):
        """A function that says what a client loses of a rendering of all kinds of content."""
        content = {
            "image": Image(png),
            "recording": Audio(wav),
            "document": EmbeddedResource("a://b", text="x"),
            "link": ResourceLink("a://b", name="b"),
        }

        @prompt
        def subject() -> str:
            return "x"

        def rendered(client, *kinds):
            workflow = user("x", *(content[kind] for kind in kinds))
            found = lint_workflow(client, subject.compiled, workflow)
            return [one.message.partition(": ")[2] for one in found]

        return rendered

    def test_what_is_lost(self, rendered):
        """
        Where the source does not show what is sent, a rendering does.
        """
        assert rendered("langchain", "recording", "link") == [
            "langchain-mcp-adapters fails at a recording",
            "langchain-mcp-adapters fails at a link to a resource",
        ]
        assert rendered("claude-desktop", "document") == [
            "Claude Desktop does not show people an embedded resource"
        ]
        assert rendered("gemini-cli", "image") == ["Gemini CLI leaves out an image"]

    def test_what_is_not(self, rendered):
        """
        A client that takes everything, and text alone.
        """
        assert rendered("vscode", "image", "recording", "document", "link") == []
        assert rendered("gemini-cli") == []

    def test_several_messages(self):
        """
        The second message is the one that is lost.
        """

        @prompt
        def subject() -> str:
            return "x"

        (found,) = lint_workflow("gemini-cli", subject.compiled, user("x") + assistant("y"))

        assert (found.rule, found.location) == (Rule.LOST_CONTENT, subject.location)


class TestClients:
    def test_an_unknown_one_is_an_error_with_the_nearest(self):
        """
        A misspelt name is not a client that takes everything.
        """
        with pytest.raises(UnknownClient, match=re.escape("there is no client 'zde': did you mean 'zed'?")):
            lint_client("zde", compile(Recipes()))
        with pytest.raises(UnknownClient, match="there are claude-code, claude-desktop, "):
            lint_client("qqqqqqqq", compile(Recipes()))

    def test_a_prompt_that_all_show(self, told):
        """
        One argument of text, one message of text: nothing is said but of clients without prompts.
        """
        silent = [client for client in CLIENTS if told(client) == []]

        assert set(CLIENTS) - set(silent) == {"codex", "copilot-cli"}

    def test_without_a_source_signatures_are_checked(self):
        """
        A prompt that was typed into a console has no source.
        """
        names: dict = {}
        exec(  # noqa: S102 (as a console does)
            "from promptkit import prompt, user\n@prompt\ndef a(x: str, y: int): return user(x) + user(x)",
            names,
        )
        catalog = compile(Recipes(prompts=(names["a"],)))

        assert [one.rule for one in lint_client("zed", catalog)] == [Rule.HIDDEN_PROMPT]
        assert lint_client("gemini-cli", catalog) == ()

    def test_the_page_names_them_all(self):
        """
        Each client's name on the command line stands in the table, with what gets in its way.
        """
        rows = dict(re.findall(r"^\| [^|]+ \| `([a-z-]+)` \| (.+?) \|$", PAGE, re.MULTILINE))

        assert list(rows) == list(CLIENTS)
        assert {name for name, said in rows.items() if said == "nothing known"} == {
            name for name, client in CLIENTS.items() if client == type(client)(client.title)
        }


#: What the page says of the recipes: a client, the codes that it is told of, and how many prompts have one.
RECIPES = {
    client: (codes.split(", "), int(number))
    for client, codes, number in re.findall(r"^\| `([a-z-]+)` \| (PK5[^|]*?) \| (\d+) \|", PAGE, re.MULTILINE)
}


@pytest.fixture(scope="module")
def served():
    """The recipes that come with promptkit."""
    return compile(load(ROOT / "recipes"), lint=True)


@pytest.mark.parametrize("client", CLIENTS)
def test_the_recipes_are_clean_or_the_page_says_why(client, served):
    """
    What a client makes of the recipes stands on the page, and nothing else is found.
    """
    found = lint_client(client, served)
    codes = sorted({one.rule.value for one in found})
    prompts = {one.message.split("'")[1] for one in found}

    assert (codes, len(prompts)) == RECIPES.get(client, ([], 0))


def test_the_recipes_have_no_other_findings(served):
    """
    They are examples.
    """
    assert served.diagnostics == ()


#: The prompts of each page, as one recipe. Those of the page of diagnostics are faulty on purpose.
BLOCKS = {
    page.name: [
        block
        for block in re.findall(
            r"^```python[^\n]*\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
        )
        if "@prompt" in block
    ]
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if page.name != "diagnostics.md"
}
IMPORTS = "".join(f"from promptkit{module} import *\n" for module in ("", ".fragments", ".testing"))


@pytest.mark.parametrize("page", [page for page, blocks in BLOCKS.items() if blocks])
def test_the_pages_prompts_are_clean_or_the_page_says_why(page, recipes):
    """
    No lint finds anything in them, and no client makes more of them than of the recipes.
    """
    catalog = compile(load(recipes(page="\n".join([IMPORTS, *BLOCKS[page]]))), lint=True)

    assert len(catalog)
    assert [one for one in catalog.diagnostics if one.rule in WARNINGS] == []
    for client in CLIENTS:
        codes = {one.rule.value for one in lint_client(client, catalog)}
        assert codes <= {*RECIPES.get(client, ([], 0))[0], *re.findall(rf"\({page}\), (PK\d+)", PAGE)}

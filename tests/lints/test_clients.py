"""Lints for one client: content that it hides, loses, truncates or does not fill in."""

import re
from functools import cache
from pathlib import Path

import pytest

from promptkit import Audio, EmbeddedResource, Image, ResourceLink, assistant, prompt, user
from promptkit.clients import profiles
from promptkit.clients.profiles import CLIENTS, ClientProfile, UnknownClientError
from promptkit.compiler.compilation import compile
from promptkit.errors.rules import WARNINGS, Rule
from promptkit.lints.clients import lint_client, lint_workflow
from promptkit.loader.loader import load
from promptkit.loader.recipes import Recipes

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")

HEAD = """
from datetime import date, datetime, time, timedelta
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal

from promptkit import Arg, Audio, EmbeddedResource, Image, prompt, resource, user, assistant

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


def has_weakness(client):
    """Return whether a client has any known limitation."""
    return client != ClientProfile(client.title, configuration=client.configuration)


@pytest.fixture
def told(recipes, tmp_path, monkeypatch):
    """A function that returns the codes and messages of one client for a prompt."""
    monkeypatch.chdir(tmp_path)

    @cache
    def compiled(parameters, body, options):
        source = HEAD + PROMPT.format(
            options=options, parameters=parameters, body=body.replace("\n", "\n    ")
        )
        return compile(load(recipes(folder=f"recipes{len(list(tmp_path.iterdir()))}", subject=source)))

    def told(client, parameters="text: str", body="return text", options=""):
        catalog = compiled(parameters, body, options)
        assert catalog.diagnostics == ()
        found = lint_client(client, catalog)
        assert all(one.rule in WARNINGS for one in found)
        return [(one.rule.value, one.message.removeprefix("prompt 'subject': ")) for one in found]

    return told


def cut(name, following):
    return (
        "PK503",
        f"Claude Code splits arguments at blanks, so that the second word of {name!r} would be {following!r}",
    )


class TestHidden:
    @pytest.mark.parametrize(
        "parameters", ["", "text: str", "text: str = 'x'"], ids=["none", "one", "optional"]
    )
    def test_zed_shows_prompts_of_one_argument(self, parameters, told):
        """Zed shows prompts with at most one argument."""
        assert told("zed", parameters, "return 'x'") == []

    def test_zed_hides_the_others(self, told):
        """Zed hides prompts with more arguments, required or not."""
        assert told("zed", "text: str, depth: int = 1") == [("PK501", "Zed hides it, as it has 2 arguments")]

    @pytest.mark.parametrize(
        ("client", "title"), [("codex", "Codex"), ("copilot-cli", "Copilot CLI"), ("lm-studio", "LM Studio")]
    )
    def test_clients_without_prompts_are_told_of_once(self, client, title, found):
        """For a client that does not show prompts at all, only the first prompt is reported."""
        prompts = tuple(prompt(name=name)(lambda: "x") for name in "ab")

        (diagnostic,) = lint_client(client, compile(Recipes(prompts=prompts)))

        assert diagnostic.rule is Rule.HIDDEN_PROMPT
        assert diagnostic.message.endswith(f"{title} does not show prompts")
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
            ("numbers: list[int], text: str", cut("numbers", "text")),
            ("many: list, depth: int", cut("many", "depth")),
            ("file: Path, text: str", cut("file", "text")),
            ("rest: timedelta, text: str", cut("rest", "text")),
            ("start: datetime, text: str", cut("start", "text")),
            ("text: str | Literal['auto'], depth: int", cut("text", "depth")),
            ("tone: Tone, text: str", cut("tone", "text")),
            ("tone: Literal['a', 'b c'], text: str", cut("tone", "text")),
            ("text: Annotated[str, Arg(complete=['a', 'b c'])], depth: int", cut("text", "depth")),
        ],
    )
    def test_claude_code_cuts_text_that_is_not_last(self, parameters, fault, told):
        """Claude Code splits text with spaces, even with quotes; the first affected argument is reported."""
        assert told("claude-code", parameters, "return 'x'") == [fault]

    @pytest.mark.parametrize(
        "parameters",
        [
            "text: str",
            "depth: int, text: str",
            "*, depth: int = 1, text: str",
            "day: date, at: time, tone: Literal['a', 'b'], sure: bool, text: str",
            "tone: Literal['a', 'b'] | None, text: str",
            "number: float | Literal['auto'], text: str",
            "file: Annotated[str, Arg(complete=['a.png'])], text: str",
            "file: Annotated[str, Arg(complete=lambda typed: [])], text: str",
        ],
    )
    def test_claude_code_takes_text_that_is_last(self, parameters, told):
        """Single words can be at any position, and text with spaces at the last."""
        assert told("claude-code", parameters) == []

    def test_claude_code_types_titles(self, told):
        """A title of more than one word is reported for Claude Code."""
        assert told("claude-code", options="(title='Review it')") == [
            (
                "PK505",
                "Claude Code can turn its title into a command 'Review it', but a command has no blanks",
            )
        ]
        assert told("claude-code", options="(title='Review')") == []

    def test_opencode_joins_words(self, told):
        """All words are passed to the first argument by opencode."""
        assert told("opencode", "text: str, more: str") == [
            ("PK503", "opencode passes every word to 'text' and none to the other arguments")
        ]
        assert told("opencode") == []

    @pytest.mark.parametrize(
        ("annotation", "refused"),
        [("int", True), ("Literal['a', 'b']", True), ("str", False), ("list[str]", False)],
    )
    def test_opencode_sends_placeholders(self, annotation, refused, told):
        """On startup, opencode sends placeholders, which only text parameters accept."""
        fault = ("PK504", "opencode sends '$1' for 'text' when it starts, which is refused")

        assert told("opencode", f"text: {annotation}", "return 'x'") == ([fault] if refused else [])

    def test_semantic_kernel_asks_for_all(self, told):
        """Semantic Kernel asks for arguments that have a default."""
        assert told("semantic-kernel", "text: str, depth: int = 1") == [
            ("PK504", "Semantic Kernel asks for 'depth', though it has a default")
        ]
        assert told("semantic-kernel", "text: str, depth: int") == []

    def test_semantic_kernel_keeps_a_name(self, told):
        """Semantic Kernel reserves the argument name `service`."""
        assert told("semantic-kernel", "service: str", "return service") == [
            ("PK504", "Semantic Kernel reserves the name 'service' for itself")
        ]


#: By client: the start of the message, and the kinds of content that the client loses.
UNSUPPORTED = {
    "ai-sdk": ("AI SDK fails at", ["recording"]),
    "claude-desktop": ("Claude Desktop does not show users", ["document"]),
    "gemini-cli": ("Gemini CLI leaves out", ["image", "recording", "document", "link"]),
    "langchain": ("langchain-mcp-adapters fails at", ["image", "recording", "document", "link"]),
    "llama-index": ("LlamaIndex fails at", ["recording", "document", "link"]),
    "qwen-code": ("Qwen Code leaves out", ["image", "recording", "document", "link"]),
    "semantic-kernel": ("Semantic Kernel fails at", ["link"]),
}
CONTENT = {
    "image": ("Image(b'')", "an image"),
    "recording": ("Audio(b'')", "a recording"),
    "document": ("logs.embed()", "an embedded resource"),
    "link": ("logs.link()", "a link to a resource"),
}


class TestContent:
    @pytest.mark.parametrize("kind", CONTENT)
    def test_what_a_client_loses_of_content(self, kind, told):
        """Content is reported for exactly the clients that lose it."""
        made, name = CONTENT[kind]
        for client in CLIENTS:
            verb, lost = UNSUPPORTED.get(client, ("", []))
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
        """For Gemini CLI, messages after the first one are reported as lost."""
        assert told("gemini-cli", body=body) == [
            ("PK502", "Gemini CLI sends only the first message, and not this one")
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
        """A single message, or one that the source does not show, is not reported."""
        assert told("gemini-cli", body=body) == []

    def test_content_that_a_call_makes_elsewhere(self, told):
        """A method that is passed on counts as content, and a class inside `isinstance` does not."""
        handed = "return user(text, *[make() for make in [logs.embed]])"

        assert ("PK502", "LlamaIndex fails at an embedded resource") in told("llama-index", body=handed)
        assert told("langchain", body="return 'x' if isinstance(text, Image) else text") == []


#: By weakness, a field of `ClientProfile`: the code, a prompt that is affected, and a similar one that is
#: not. Each prompt is its parameters, body and options.
WEAKNESSES = {
    "most_arguments": ("PK501", ("a: str, b: str", "return a"), ("a: str", "return a")),
    "unsupported": (
        "PK502",
        ("text: str", "return user(text, Image(b''), Audio(b''), logs.embed(), logs.link())"),
        ("text: str", "return user(text, 'x')"),
    ),
    "sends_first_only": (
        "PK502",
        ("text: str", "return user(text) + 'x'"),
        ("text: str", "return user(text, 'x')"),
    ),
    "drops_roles": (
        "PK502",
        ("text: str", "return user(text) + assistant('x')"),
        ("text: str", "return user(text) + user('x')"),
    ),
    "cuts_at_blanks": ("PK503", ("text: str, n: int", "return text"), ("n: int, text: str", "return text")),
    "joins_words": ("PK503", ("text: str, more: str", "return text"), ("text: str", "return text")),
    "placeholder": ("PK504", ("n: int", "return str(n)"), ("n: str", "return str(int(n))")),
    "asks_for_all": ("PK504", ("text: str = ''", "return text"), ("text: str", "return text")),
    "own_names": ("PK504", ("service: str", "return service"), ("service_name: str", "return service_name")),
    "types_titles": (
        "PK505",
        ("text: str", "return text", "(title='Two words')"),
        ("text: str", "return text", "(title='Word')"),
    ),
}


#: The clients with each weakness.
WHO = {
    weakness: [name for name, one in CLIENTS.items() if getattr(one, weakness) not in (None, False, ())]
    for weakness in WEAKNESSES
}


class TestEveryWeakness:
    def test_each_has_its_cases(self):
        """
        Every weakness has cases here, and every one applies to some client. Clients without prompts have a
        test above.
        """
        says = {
            "title",
            "effect",
            "configuration",
        }  # the text of messages, and where the client is configured

        assert {*WEAKNESSES, "has_prompts", *says} == {*ClientProfile.__struct_fields__}
        assert all(WHO.values())

    @pytest.mark.parametrize("weakness", WEAKNESSES)
    def test_it_is_told_where_it_matters(self, weakness, told, monkeypatch):
        """
        A client with only this weakness has one diagnostic for the affected prompt and none for the other; a
        client without weaknesses has none.
        """
        code, minded, taken = WEAKNESSES[weakness]
        value = getattr(CLIENTS[WHO[weakness][0]], weakness)
        known = {"weak": ClientProfile("Weak", **{weakness: value}), "strong": ClientProfile("Strong")}
        monkeypatch.setattr(profiles, "CLIENTS", known)

        assert [found for found, _ in told("weak", *minded)] == [code]
        assert told("weak", *taken) == []
        assert told("strong", *minded) == []

    @pytest.mark.parametrize("weakness", WHO)
    def test_each_client_that_has_it_is_told_of(self, weakness, told):
        """Each client with the weakness has more diagnostics of this code for the affected prompt."""
        code, minded, taken = WEAKNESSES[weakness]
        for client in WHO[weakness]:
            more, less = ([found for found, _ in told(client, *case)].count(code) for case in (minded, taken))

            assert more > less

    @pytest.mark.parametrize("weakness", [*WEAKNESSES, "has_prompts"])
    def test_it_is_said_at_installation(self, weakness):
        """A weakness adds one sentence to the client's limitations."""
        has_prompts = weakness == "has_prompts"
        value = False if has_prompts else getattr(CLIENTS[WHO[weakness][0]], weakness)
        weak = ClientProfile("Weak", **{weakness: value})

        assert len(weak.limitations) == 1
        assert ClientProfile("Strong").limitations == ()

    def test_where_nothing_is_known_nothing_is_told(self, told):
        """A client without known weaknesses has no diagnostics."""
        for client in (name for name, one in CLIENTS.items() if not has_weakness(one)):
            for _, minded, _ in WEAKNESSES.values():
                assert told(client, *minded) == []


class TestRendered:
    @pytest.fixture
    def rendered(self, png, wav):
        """A function that returns what a client loses of a rendering with the given kinds of content."""
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
        """A rendering shows lost content that the source does not."""
        assert rendered("langchain", "recording", "link") == [
            "langchain-mcp-adapters fails at a recording",
            "langchain-mcp-adapters fails at a link to a resource",
        ]
        assert rendered("claude-desktop", "document") == [
            "Claude Desktop does not show users an embedded resource"
        ]
        assert rendered("gemini-cli", "image") == ["Gemini CLI leaves out an image"]

    def test_what_is_not(self, rendered):
        """Nothing is reported for a client that accepts everything, or for text."""
        assert rendered("vscode", "image", "recording", "document", "link") == []
        assert rendered("gemini-cli") == []

    def test_several_messages(self):
        """A second message is reported as lost."""

        @prompt
        def subject() -> str:
            return "x"

        (found,) = lint_workflow("gemini-cli", subject.compiled, user("x") + assistant("y"))

        assert (found.rule, found.location) == (Rule.LOST_CONTENT, subject.location)


class TestClients:
    def test_an_unknown_one_is_an_error_with_the_nearest(self):
        """An unknown client is an error with the nearest name."""
        with pytest.raises(
            UnknownClientError, match=re.escape("there is no client 'zde': did you mean 'zed'?")
        ):
            lint_client("zde", compile(Recipes()))
        with pytest.raises(UnknownClientError, match="there are ai-sdk, claude-code, "):
            lint_client("qqqqqqqq", compile(Recipes()))

    def test_a_prompt_that_all_show(self, told):
        """One text argument and one text message work in every client that shows prompts."""
        silent = [client for client in CLIENTS if told(client) == []]

        assert set(CLIENTS) - set(silent) == {"codex", "copilot-cli", "lm-studio"}

    def test_without_a_source_signatures_are_checked(self):
        """Without a source, as in a console, only the signature is checked."""
        names: dict = {}
        exec(  # noqa: S102 (as a console does)
            "from promptkit import prompt, user\n@prompt\ndef a(x: str, y: int): return user(x) + user(x)",
            names,
        )
        catalog = compile(Recipes(prompts=(names["a"],)))

        assert [one.rule for one in lint_client("zed", catalog)] == [Rule.HIDDEN_PROMPT]
        assert lint_client("gemini-cli", catalog) == ()

    def test_the_page_names_them_all(self):
        """The documentation lists every client, and those without known limitations."""
        rows = dict(re.findall(r"^\| [^|]+ \| `([a-z-]+)` \| (.+?) \|$", PAGE, re.MULTILINE))

        assert list(rows) == list(CLIENTS)
        assert {name for name, said in rows.items() if said == "nothing known"} == {
            name for name, client in CLIENTS.items() if not has_weakness(client)
        }


#: From the page's table of example recipes: the codes for each client, and the number of affected prompts.
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
    """The diagnostics of the recipes for each client are those on the page."""
    found = lint_client(client, served)
    codes = sorted({one.rule.value for one in found})
    prompts = {one.message.split("'")[1] for one in found}

    assert (codes, len(prompts)) == RECIPES.get(client, ([], 0))


def test_the_recipes_have_no_other_findings(served):
    """The recipes have no other diagnostics."""
    assert served.diagnostics == ()


#: The code blocks with prompts on each page, except the diagnostics page, whose examples are wrong on
#: purpose.
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
#: The text files and helpers that the prompts of each page use.
TEXTS = {
    page.name: re.findall(
        r'^```(?:markdown|python) title="prompts/([^"]*\.md|_[^"]*)"\n(.*?)^```$',
        page.read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    for page in (ROOT / "docs").glob("*.md")
}
PAGES = [page for page, blocks in BLOCKS.items() if blocks]
IMPORTS = "".join(f"from promptkit{module} import *\n" for module in ("", ".fragments", ".testing"))


@pytest.fixture
def findings(recipes):
    """
    A function that returns the lints of a page's blocks, and the codes and number of diagnostics by client.

    Each block follows the blocks before it, as on the page.
    """

    def findings(blocks, page):
        lints, lost = [], {client: [] for client in CLIENTS}
        for number, block in enumerate(blocks):
            before = "\n".join([IMPORTS, *blocks[:number], ""])
            folder = recipes(f"block{number}", page=before + block)
            for name, text in TEXTS.get(page, ()):
                (folder / name).write_text(text, encoding="utf-8")
            catalog = compile(load(folder), lint=True)
            begin = before.count("\n") + 1
            assert any(prompt.location.line >= begin for prompt in catalog.prompts)
            lints += (one for one in catalog.diagnostics if one.location.line >= begin)
            for client in CLIENTS:
                lost[client] += (one for one in lint_client(client, catalog) if one.location.line >= begin)
        codes = {client: sorted({one.rule.value for one in found}) for client, found in lost.items()}
        return lints, {client: (codes[client], len(found)) for client, found in lost.items() if found}

    return findings


@pytest.mark.parametrize("page", PAGES)
def test_the_prompts_of_a_page_have_no_warnings(page, findings):
    """The examples in the documentation have no warnings."""
    lints, _ = findings(BLOCKS[page], page)

    assert lints == []


#: A prompt that is affected by every client's weakness, and one with a warning.
PLANTED = """
@prompt(title="Two words")
def planted(first: str, service: int = 1):
    document = EmbeddedResource("a:b", text="{first}")
    return user(first, document, Audio(b"")) + assistant("And then?")
"""
FAULTY = """
@prompt
def faulty(first: str):
    return "Look at {first}."
"""


def test_a_fault_that_is_planted_in_a_page_is_noticed(findings):
    """Adding these prompts to a page adds diagnostics for every client with a weakness, and a warning."""
    page = "README.md"
    lints, found = findings(BLOCKS[page], page)
    _, planted = findings([*BLOCKS[page], PLANTED], page)
    faulty, _ = findings([*BLOCKS[page], FAULTY], page)

    once = {"codex", "copilot-cli", "lm-studio"}  # these are reported for the first prompt only
    weak = {name for name, client in CLIENTS.items() if has_weakness(client)} - once
    assert {client for client in CLIENTS if planted.get(client) != found.get(client)} == weak
    assert [one.rule for one in faulty] == [*(one.rule for one in lints), Rule.FORGOTTEN_F]

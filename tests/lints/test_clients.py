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
def lint_prompt(recipes, tmp_path, monkeypatch):
    """A function that returns the codes and messages of one client for a prompt."""
    monkeypatch.chdir(tmp_path)

    @cache
    def compile_source(parameters, body, options):
        source = HEAD + PROMPT.format(
            options=options, parameters=parameters, body=body.replace("\n", "\n    ")
        )
        return compile(load(recipes(folder=f"recipes{len(list(tmp_path.iterdir()))}", subject=source)))

    def lint_prompt(client, parameters="text: str", body="return text", options=""):
        catalog = compile_source(parameters, body, options)
        assert catalog.diagnostics == ()
        diagnostics = lint_client(client, catalog)
        assert all(diagnostic.rule in WARNINGS for diagnostic in diagnostics)
        return [
            (diagnostic.rule.value, diagnostic.message.removeprefix("prompt 'subject': "))
            for diagnostic in diagnostics
        ]

    return lint_prompt


class TestHidden:
    @pytest.mark.parametrize(
        "parameters", ["", "text: str", "text: str = 'x'"], ids=["none", "one", "optional"]
    )
    def test_zed_shows_prompts_of_one_argument(self, parameters, lint_prompt):
        """Zed shows prompts with at most one argument."""
        assert lint_prompt("zed", parameters, "return 'x'") == []

    def test_zed_hides_prompts_of_more_arguments(self, lint_prompt):
        """Zed hides prompts with more than one argument, even if some are optional."""
        assert lint_prompt("zed", "text: str, depth: int = 1") == [
            ("PK501", "Zed hides it, because it has 2 arguments")
        ]

    @pytest.mark.parametrize(
        ("client", "title"), [("codex", "Codex"), ("copilot-cli", "Copilot CLI"), ("lm-studio", "LM Studio")]
    )
    def test_client_without_prompts_is_reported_once(self, client, title):
        """For a client that does not show prompts at all, only the first prompt is reported."""
        prompts = tuple(prompt(name=name)(lambda: "x") for name in "ab")

        (diagnostic,) = lint_client(client, compile(Recipes(prompts=prompts)))

        assert diagnostic.rule is Rule.HIDDEN_PROMPT
        assert diagnostic.message.endswith(f"{title} does not show prompts")
        assert lint_client(client, compile(Recipes())) == ()


#: Parameters of which one can have several words: the parameters, and the name of the first such parameter.
SEVERAL_WORDS = [
    ("text: str, depth: int", "text"),
    ("depth: int, text: str", "text"),
    ("text: str | None = None, depth: int = 1", "text"),
    ("many: list[str], depth: int", "many"),
    ("more: dict[str, int], depth: int", "more"),
    ("numbers: list[int], depth: int", "numbers"),
    ("many: list, depth: int", "many"),
    ("file: Path, depth: int", "file"),
    ("grid: str", "grid"),
    ("rest: timedelta, depth: int", "rest"),
    ("start: datetime, depth: int", "start"),
    ("text: str | Literal['auto'], depth: int", "text"),
    ("tone: Tone, depth: int", "tone"),
    ("tone: Literal['a', 'b c'], depth: int", "tone"),
    ("text: Annotated[str, Arg(complete=['a', 'b c'])], depth: int", "text"),
]
SINGLE_WORDS = [
    "depth: int",
    "day: date, at: time, tone: Literal['a', 'b'], sure: bool",
    "tone: Literal['a', 'b'] | None",
    "number: float | Literal['auto']",
    "file: Annotated[str, Arg(complete=['a.png'])]",
    "file: Annotated[str, Arg(complete=lambda typed: [])]",
    "url: str, issue_id: str, userId: str, baseURL: str, top_n: str",
    "start: Annotated[str, Arg('The first day (YYYY-MM-DD)')]",
    "days: Annotated[str, Arg('The number of days')]",
]


class TestArguments:
    @pytest.mark.parametrize(("parameters", "name"), SEVERAL_WORDS)
    def test_claude_code_cuts_text_without_a_form(self, parameters, name, lint_prompt):
        """Claude Code gives each argument one word, including the last, unless it shows a form."""
        expected = ("PK503", f"Claude Code gives {name!r} only one word of what users type")

        assert lint_prompt("claude-code", parameters, "return 'x'", "(elicit=False)") == [expected]
        assert lint_prompt("claude-code", parameters, "return 'x'") == []

    @pytest.mark.parametrize("parameters", SINGLE_WORDS)
    def test_claude_code_accepts_single_words(self, parameters, lint_prompt):
        """Arguments of one word need no form."""
        assert lint_prompt("claude-code", parameters, "return 'x'", "(elicit=False)") == []

    def test_titles_are_not_reported(self, lint_prompt):
        """Claude Code uses the name as the command, so a title can have several words."""
        assert lint_prompt("claude-code", options="(title='Review it')") == []

    @pytest.mark.parametrize(
        ("parameters", "split"),
        [
            ("text: str, more: str", ("text", "more")),
            ("more: str, file: Path, text: str", ("more", "file")),
            ("text: str", None),
            ("text: str, depth: int = 1, note: str = ''", None),
        ],
    )
    def test_opencode_splits_text_that_is_not_last(self, parameters, split, lint_prompt):
        """
        In opencode, the last required argument gets the rest of the text, and optional arguments get nothing.
        """
        message = "opencode splits arguments at spaces, so the second word of {!r} becomes {!r}"
        expected = [] if split is None else [("PK503", message.format(*split))]

        assert lint_prompt("opencode", parameters, "return 'x'") == expected

    @pytest.mark.parametrize(
        ("annotation", "is_rejected"),
        [("int", True), ("Literal['a', 'b']", True), ("str", False), ("list[str]", False)],
    )
    def test_opencode_sends_positions(self, annotation, is_rejected, lint_prompt):
        """For a required argument, opencode sends its position, which only text parameters accept."""
        expected = ("PK504", "opencode sends '$2' for 'text', which is invalid")
        diagnostics = [expected] if is_rejected else []

        assert lint_prompt("opencode", f"name: bool, text: {annotation}", "return 'x'")[1:] == diagnostics
        assert (
            lint_prompt("opencode", f"name: str = '', text: {annotation} | None = None", "return 'x'") == []
        )

    def test_semantic_kernel_asks_for_optional_arguments(self, lint_prompt):
        """Semantic Kernel asks for arguments that have a default."""
        assert lint_prompt("semantic-kernel", "text: str, depth: int = 1") == [
            ("PK504", "Semantic Kernel asks for 'depth', though it has a default")
        ]
        assert lint_prompt("semantic-kernel", "text: str, depth: int") == []

    def test_semantic_kernel_reserves_a_name(self, lint_prompt):
        """Semantic Kernel reserves the argument name `service`."""
        assert lint_prompt("semantic-kernel", "service: str", "return service") == [
            ("PK504", "Semantic Kernel reserves the name 'service' for itself")
        ]


#: By client: the start of the message, and the kinds of content that the client loses.
UNSUPPORTED = {
    "ai-sdk": ("AI SDK fails on", ["recording"]),
    "claude-desktop": ("Claude Desktop does not show users", ["document"]),
    "gemini-cli": ("Gemini CLI omits", ["image", "recording", "document", "link"]),
    "langchain": ("langchain-mcp-adapters fails on", ["image", "recording", "document", "link"]),
    "llama-index": ("LlamaIndex fails on", ["recording", "document", "link"]),
    "qwen-code": ("Qwen Code omits", ["image", "recording", "document", "link"]),
    "semantic-kernel": ("Semantic Kernel fails on", ["link"]),
}
CONTENT = {
    "image": ("Image(b'')", "an image"),
    "recording": ("Audio(b'')", "a recording"),
    "document": ("logs.embed()", "an embedded resource"),
    "link": ("logs.link()", "a link to a resource"),
}


class TestContent:
    @pytest.mark.parametrize("kind", CONTENT)
    def test_lost_content_is_reported(self, kind, lint_prompt):
        """Content is reported for exactly the clients that lose it."""
        content, name = CONTENT[kind]
        for client in CLIENTS:
            verb, lost = UNSUPPORTED.get(client, ("", []))
            other_diagnostics = [diagnostic for diagnostic in lint_prompt(client) if diagnostic[0] != "PK502"]

            diagnostics = lint_prompt(client, body=f"return user(text, {content})")

            assert diagnostics == other_diagnostics + ([("PK502", f"{verb} {name}")] if kind in lost else [])

    @pytest.mark.parametrize(
        "body",
        [
            "return user(text) + user('x')",
            "yield text\nyield assistant('x')",
            "yield text\nfor one in text:\n    yield user(one)",
            "if text:\n    return [text, 'x']\nreturn text",
        ],
    )
    def test_gemini_loses_messages_after_the_first(self, body, lint_prompt):
        """For Gemini CLI, messages after the first one are reported as lost."""
        assert lint_prompt("gemini-cli", body=body) == [
            ("PK502", "Gemini CLI sends only the first message, not this one")
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
    def test_single_message_is_not_reported(self, body, lint_prompt):
        """A single message, or one that the source does not show, is not reported."""
        assert lint_prompt("gemini-cli", body=body) == []

    def test_method_that_is_passed_on_counts_as_content(self, lint_prompt):
        """A method that is passed on counts as content, and a class inside `isinstance` does not."""
        body = "return user(text, *[make() for make in [logs.embed]])"

        assert ("PK502", "LlamaIndex fails on an embedded resource") in lint_prompt("llama-index", body=body)
        assert lint_prompt("langchain", body="return 'x' if isinstance(text, Image) else text") == []


#: By weakness, a field of `ClientProfile`: the code, a prompt that is affected, and a similar one that is
#: not. Each prompt is its parameters, body and options.
WEAKNESSES = {
    "max_arguments": ("PK501", ("a: str, b: str", "return a"), ("a: str", "return a")),
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
    "splits_at_spaces": (
        "PK503",
        ("text: str, n: int", "return text", "(elicit=False)"),
        ("n: int", "return str(n)", "(elicit=False)"),
    ),
    "fills_in_text": ("PK504", ("n: int", "return str(n)"), ("n: int = 1", "return str(n)")),
    "asks_for_all": ("PK504", ("text: str = ''", "return text"), ("text: str", "return text")),
    "reserved_names": (
        "PK504",
        ("service: str", "return service"),
        ("service_name: str", "return service_name"),
    ),
}


#: The clients with each weakness.
CLIENTS_BY_WEAKNESS = {
    weakness: [
        name for name, profile in CLIENTS.items() if getattr(profile, weakness) not in (None, False, ())
    ]
    for weakness in WEAKNESSES
}


class TestWeaknesses:
    def test_each_weakness_has_cases(self):
        """
        Every weakness has cases here, and every one applies to some client. Clients without prompts have a
        test above.
        """
        # These fields have texts for messages, conditions of other fields, and the client's configuration.
        descriptive_fields = {
            *("title", "effect", "quotes_text", "keeps_rest"),
            *("command", "own_commands", "client_info", "rejects_missing", "configuration"),
        }

        assert {*WEAKNESSES, "has_prompts", *descriptive_fields} == {*ClientProfile.__struct_fields__}
        assert all(CLIENTS_BY_WEAKNESS.values())

    @pytest.mark.parametrize("weakness", WEAKNESSES)
    def test_weakness_is_reported_only_for_affected_prompts(self, weakness, lint_prompt, monkeypatch):
        """
        A client with only this weakness has one diagnostic for the affected prompt and none for the other; a
        client without weaknesses has none.
        """
        code, affected, unaffected = WEAKNESSES[weakness]
        value = getattr(CLIENTS[CLIENTS_BY_WEAKNESS[weakness][0]], weakness)
        clients = {"weak": ClientProfile("Weak", **{weakness: value}), "strong": ClientProfile("Strong")}
        monkeypatch.setattr(profiles, "CLIENTS", clients)

        assert [reported for reported, _ in lint_prompt("weak", *affected)] == [code]
        assert lint_prompt("weak", *unaffected) == []
        assert lint_prompt("strong", *affected) == []

    @pytest.mark.parametrize("weakness", CLIENTS_BY_WEAKNESS)
    def test_each_client_with_the_weakness_is_reported(self, weakness, lint_prompt):
        """Each client with the weakness has more diagnostics of this code for the affected prompt."""
        code, affected, unaffected = WEAKNESSES[weakness]
        for client in CLIENTS_BY_WEAKNESS[weakness]:
            more, less = (
                [reported for reported, _ in lint_prompt(client, *case)].count(code)
                for case in (affected, unaffected)
            )

            assert more > less

    @pytest.mark.parametrize("weakness", [*WEAKNESSES, "has_prompts"])
    def test_weakness_adds_a_limitation(self, weakness):
        """A weakness adds one sentence to the client's limitations."""
        has_prompts = weakness == "has_prompts"
        value = False if has_prompts else getattr(CLIENTS[CLIENTS_BY_WEAKNESS[weakness][0]], weakness)
        weak = ClientProfile("Weak", **{weakness: value})

        assert len(weak.limitations) == 1
        assert ClientProfile("Strong").limitations == ()

    def test_client_without_weaknesses_has_no_diagnostics(self, lint_prompt):
        """A client without known weaknesses has no diagnostics."""
        for client in (name for name, profile in CLIENTS.items() if not has_weakness(profile)):
            for _, affected, _ in WEAKNESSES.values():
                assert lint_prompt(client, *affected) == []


class TestRendered:
    @pytest.fixture
    def lint_rendering(self, png, wav):
        """A function that returns the messages for a client and a rendering with these kinds of content."""
        content = {
            "image": Image(png),
            "recording": Audio(wav),
            "document": EmbeddedResource("a://b", text="x"),
            "link": ResourceLink("a://b", name="b"),
        }

        @prompt
        def subject() -> str:
            return "x"

        def lint_rendering(client, *kinds):
            workflow = user("x", *(content[kind] for kind in kinds))
            diagnostics = lint_workflow(client, subject.compiled, workflow)
            return [diagnostic.message.partition(": ")[2] for diagnostic in diagnostics]

        return lint_rendering

    def test_lost_content_of_a_rendering_is_reported(self, lint_rendering):
        """A rendering shows lost content that the source does not."""
        assert lint_rendering("langchain", "recording", "link") == [
            "langchain-mcp-adapters fails on a recording",
            "langchain-mcp-adapters fails on a link to a resource",
        ]
        assert lint_rendering("claude-desktop", "document") == [
            "Claude Desktop does not show users an embedded resource"
        ]
        assert lint_rendering("gemini-cli", "image") == ["Gemini CLI omits an image"]

    def test_supported_content_is_not_reported(self, lint_rendering):
        """Nothing is reported for a client that accepts everything, or for text."""
        assert lint_rendering("vscode", "image", "recording", "document", "link") == []
        assert lint_rendering("gemini-cli") == []

    def test_second_message_is_reported(self):
        """A second message is reported as lost."""

        @prompt
        def subject() -> str:
            return "x"

        (diagnostic,) = lint_workflow("gemini-cli", subject.compiled, user("x") + assistant("y"))

        assert (diagnostic.rule, diagnostic.location) == (Rule.UNSUPPORTED_CONTENT, subject.location)


class TestClients:
    def test_unknown_client_is_an_error(self):
        """An unknown client is an error with the nearest name."""
        with pytest.raises(UnknownClientError, match=re.escape("unknown client 'zde': did you mean 'zed'?")):
            lint_client("zde", compile(Recipes()))
        with pytest.raises(UnknownClientError, match="choose one of ai-sdk, claude-code, "):
            lint_client("qqqqqqqq", compile(Recipes()))

    def test_simple_prompt_works_in_every_client_with_prompts(self, lint_prompt):
        """One text argument and one text message work in every client that shows prompts."""
        clients = [client for client in CLIENTS if lint_prompt(client) == []]

        assert set(CLIENTS) - set(clients) == {"codex", "copilot-cli", "lm-studio"}

    def test_without_a_source_signatures_are_checked(self):
        """Without a source, as in a console, only the signature is checked."""
        names: dict = {}
        exec(  # noqa: S102 (as a console does)
            "from promptkit import prompt, user\n@prompt\ndef a(x: str, y: int): return user(x) + user(x)",
            names,
        )
        catalog = compile(Recipes(prompts=(names["a"],)))

        assert [diagnostic.rule for diagnostic in lint_client("zed", catalog)] == [Rule.HIDDEN_PROMPT]
        assert lint_client("gemini-cli", catalog) == ()

    def test_page_lists_every_client(self):
        """The documentation lists every client, and marks the clients without known limitations."""
        rows = dict(re.findall(r"^\| [^|]+ \| `([a-z-]+)` \| (.+?) \|$", PAGE, re.MULTILINE))

        assert list(rows) == list(CLIENTS)
        assert {name for name, limitations in rows.items() if limitations == "nothing known"} == {
            name for name, client in CLIENTS.items() if not has_weakness(client)
        }


#: From the page's table of example recipes: the codes for each client, and the number of affected prompts.
RECIPES = {
    client: (codes.split(", "), int(number))
    for client, codes, number in re.findall(r"^\| `([a-z-]+)` \| (PK5[^|]*?) \| (\d+) \|", PAGE, re.MULTILINE)
}


@pytest.fixture(scope="module")
def catalog():
    """The recipes that come with promptkit."""
    return compile(load(ROOT / "recipes"), lint=True)


@pytest.mark.parametrize("client", CLIENTS)
def test_diagnostics_of_the_recipes_are_documented(client, catalog):
    """The diagnostics of the recipes for each client are those on the documentation page."""
    diagnostics = lint_client(client, catalog)
    codes = sorted({diagnostic.rule.value for diagnostic in diagnostics})
    prompts = {diagnostic.message.split("'")[1] for diagnostic in diagnostics}

    assert (codes, len(prompts)) == RECIPES.get(client, ([], 0))


def test_recipes_have_no_other_diagnostics(catalog):
    """The recipes have no other diagnostics."""
    assert catalog.diagnostics == ()


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
def lint_page(recipes):
    """
    A function that returns the lints of a page's blocks, and the codes and number of diagnostics by client.

    Each block follows the blocks before it, as on the page.
    """

    def lint_page(blocks, page):
        lints, lost = [], {client: [] for client in CLIENTS}
        for number, block in enumerate(blocks):
            preamble = "\n".join([IMPORTS, *blocks[:number], ""])
            folder = recipes(f"block{number}", page=preamble + block)
            for name, text in TEXTS.get(page, ()):
                (folder / name).write_text(text, encoding="utf-8")
            catalog = compile(load(folder), lint=True)
            first_line = preamble.count("\n") + 1
            assert any(prompt.location.line >= first_line for prompt in catalog.prompts)
            lints += (
                diagnostic for diagnostic in catalog.diagnostics if diagnostic.location.line >= first_line
            )
            for client in CLIENTS:
                lost[client] += (
                    diagnostic
                    for diagnostic in lint_client(client, catalog)
                    if diagnostic.location.line >= first_line
                )
        codes = {
            client: sorted({diagnostic.rule.value for diagnostic in diagnostics})
            for client, diagnostics in lost.items()
        }
        return lints, {
            client: (codes[client], len(diagnostics)) for client, diagnostics in lost.items() if diagnostics
        }

    return lint_page


@pytest.mark.parametrize("page", PAGES)
def test_prompts_of_a_page_have_no_warnings(page, lint_page):
    """The examples in the documentation have no warnings."""
    lints, _ = lint_page(BLOCKS[page], page)

    assert lints == []


#: A prompt that is affected by every client's weakness, and one with a warning.
PLANTED = """
@prompt
def planted(first: str, second: int, service: int = 1):
    document = EmbeddedResource("a:b", text="{first}")
    return user(first, document, Audio(b"")) + assistant("And then?")
"""
FAULTY = """
@prompt
def faulty(first: str):
    return "Look at {first}."
"""


def test_planted_prompts_are_reported(lint_page):
    """An affected prompt adds diagnostics for every client with a weakness; a faulty one adds a warning."""
    page = "README.md"
    baseline_lints, baseline = lint_page(BLOCKS[page], page)
    _, planted = lint_page([*BLOCKS[page], PLANTED], page)
    faulty, _ = lint_page([*BLOCKS[page], FAULTY], page)

    reported_once = {"codex", "copilot-cli", "lm-studio"}  # these are reported for the first prompt only
    weak_clients = {name for name, client in CLIENTS.items() if has_weakness(client)} - reported_once
    assert {client for client in CLIENTS if planted.get(client) != baseline.get(client)} == weak_clients
    assert [diagnostic.rule for diagnostic in faulty] == [
        *(diagnostic.rule for diagnostic in baseline_lints),
        Rule.MISSING_F_PREFIX,
    ]

"""The script of calls that every client makes, with their expected outcomes."""

from base64 import b64encode
from pathlib import Path
from typing import Final

from tests.clients.calls import (
    Step,
    argument,
    call,
    complete,
    completion,
    content,
    fault,
    get,
    listed,
    messages,
    pages,
    refused,
    request,
    text,
    tool,
    watch,
)
from tests.clients.recipes import _samples

RECIPES: Final = Path(__file__).parent / "recipes"

PNG: Final = b64encode(_samples.PNG).decode()
WAV: Final = b64encode(_samples.WAV).decode()

PROMPTS: Final = [
    listed(
        "asked",
        "Plan a journey.",
        argument("town", "Where to go", required=True),
        argument("days", "For how long (a whole number; default 2)"),
    ),
    listed("audio", "Play a sound."),
    listed("begun", "Say that `wait` waits, as soon as it does."),
    listed("embedded_blob", "Bring bytes along."),
    listed("embedded_text", "Bring a text along."),
    listed("ended", "Say how `wait` has ended, as soon as it has."),
    listed("image", "Show a picture."),
    listed("link", "Say where a text is."),
    listed("text", "Say it in words."),
    listed("turns", "Talk for a while."),
    listed(
        "typed",
        "Ask for functions.",
        argument("count", "How many functions to write (a whole number)", required=True),
        argument("language", "What to write them in (one of python, ruby, rust; default python)"),
        argument("model", "Who writes them (default guido)"),
        title="Write functions",
    ),
    listed("wait", "Wait for ever."),
]

SCHEMAS: Final = {
    "asked": {
        "town": {"description": "Where to go", "type": "string"},
        "days": {"description": "For how long (default 2)", "type": "integer", "default": 2},
    },
    "typed": {
        "count": {"description": "How many functions to write", "type": "integer"},
        "language": {
            "description": "What to write them in (default python)",
            "type": "string",
            "enum": ["python", "ruby", "rust"],
            "default": "python",
        },
        "model": {"description": "Who writes them (default guido)", "type": "string", "default": "guido"},
    },
}
TOOLS: Final = [tool(prompt, **SCHEMAS.get(prompt["name"], {})) for prompt in PROMPTS]

ADDED: Final = listed("added", "Come later.")

ADDED_TEXT: Final = '''"""A prompt that is added while recipes are served."""

from promptkit import prompt


@prompt
def added():
    """Come later."""
    return "Here I am."
'''

NOTICE: Final = {
    "uri": "shelf://notice",
    "name": "notice",
    "description": "What hangs at the door.",
    "mimeType": "text/plain",
}
COVER: Final = {"uri": "shelf://cover", "name": "cover", "description": "The picture on the cover."}
BOOK: Final = {
    "uriTemplate": "shelf://books/{title}",
    "name": "book",
    "description": "One book.",
    "mimeType": "text/plain",
}

TYPED: Final = {"type": "ref/prompt", "name": "typed"}
BOOKS: Final = {"type": "ref/resource", "uri": "shelf://books/{title}"}

NOTICE_TEXT: Final = {"uri": "shelf://notice", "mimeType": "text/plain", "text": "Closed on Monday."}
IMAGE: Final = {"type": "image", "data": PNG, "mimeType": "image/png"}
COVER_BLOB: Final = {"uri": "shelf://cover", "mimeType": "image/png", "blob": PNG}

FORM: Final = {
    "mode": "form",
    "message": "The prompt 'asked' needs town.",
    "requestedSchema": {
        "type": "object",
        "properties": {"town": {"type": "string", "description": "Where to go"}},
        "required": ["town"],
    },
}


STEPS: Final = [
    Step("prompts are listed over several pages", {"pages": "prompts/list"}, pages("prompts", PROMPTS)),
    Step("resources are listed", {"pages": "resources/list"}, pages("resources", [COVER, NOTICE])),
    Step(
        "templates are listed",
        {"pages": "resources/templates/list"},
        pages("resourceTemplates", [BOOK]),
    ),
    Step("tools are listed over several pages", {"pages": "tools/list"}, pages("tools", TOOLS)),
    Step("text arrives", get("text"), messages("Say it in words.", text("Say hello to 世界 🌍."))),
    Step(
        "an image arrives",
        get("image"),
        messages("Show a picture.", IMAGE),
    ),
    Step(
        "a sound arrives",
        get("audio"),
        messages("Play a sound.", {"type": "audio", "data": WAV, "mimeType": "audio/wav"}),
    ),
    Step(
        "an embedded text arrives",
        get("embedded_text"),
        messages("Bring a text along.", {"type": "resource", "resource": NOTICE_TEXT}),
    ),
    Step(
        "embedded bytes arrive",
        get("embedded_blob"),
        messages("Bring bytes along.", {"type": "resource", "resource": COVER_BLOB}),
    ),
    Step(
        "a link arrives",
        get("link"),
        messages("Say where a text is.", {"type": "resource_link", **NOTICE}),
    ),
    Step(
        "several turns arrive in order",
        get("turns"),
        messages(
            "Talk for a while.",
            text("Knock, knock."),
            text("Who is there?"),
            text("A picture:"),
            IMAGE,
            roles="user assistant user user",
        ),
    ),
    Step(
        "arguments are read from text",
        get("typed", count="3", language="rust", model="ferris"),
        messages("Ask for functions.", text("ferris, write 3 functions in rust.")),
    ),
    Step(
        "an argument that is left out has its default",
        get("typed", count="3"),
        messages("Ask for functions.", text("guido, write 3 functions in python.")),
    ),
    Step(
        "a tool is called with values",
        call("typed", count=3, language="rust", model="ferris"),
        content(text("ferris, write 3 functions in rust.")),
    ),
    Step(
        "a tool says whose each of several turns is",
        call("turns"),
        content(
            *(text("[user]"), text("Knock, knock.")),
            *(text("[assistant]"), text("Who is there?")),
            *(text("[user]"), text("A picture:"), IMAGE),
        ),
    ),
    Step(
        "a tool says what is wrong with a call",
        call("typed", count="three"),
        fault("prompt 'typed': 'count' is 'three', not a whole number"),
    ),
    Step(
        "an unknown tool is refused",
        call("txet"),
        refused(-32602, "unknown tool 'txet'; did you mean 'text'?"),
    ),
    Step(
        "an argument is completed from its type",
        complete(TYPED, "language", "ru"),
        completion("ruby", "rust"),
    ),
    Step(
        "an argument is completed for what was chosen before",
        complete(TYPED, "model", "", language="rust"),
        completion("crab", "ferris"),
    ),
    Step(
        "a variable of a template is completed",
        complete(BOOKS, "title", "e"),
        completion("Emma", "Erewhon", "Dune"),
    ),
    Step(
        "a text is read",
        request("resources/read", uri="shelf://notice"),
        {"result": {"contents": [NOTICE_TEXT]}},
    ),
    Step(
        "bytes are read",
        request("resources/read", uri="shelf://cover"),
        {"result": {"contents": [COVER_BLOB]}},
    ),
    Step(
        "a template is read",
        request("resources/read", uri="shelf://books/Dune"),
        {
            "result": {
                "contents": [
                    {
                        "uri": "shelf://books/Dune",
                        "mimeType": "text/plain",
                        "text": "Dune, from the first page to the last.",
                    }
                ]
            }
        },
    ),
    Step(
        "a person is asked for a missing argument",
        {**get("asked"), "answer": {"action": "accept", "content": {"town": "Kyoto"}}},
        {"asked": [FORM], **messages("Plan a journey.", text("Plan 2 days in Kyoto."))},
        alone=False,
        session=True,
    ),
    Step(
        "a person is asked for a missing argument of a tool",
        {**call("asked", days=3), "answer": {"action": "accept", "content": {"town": "Kyoto"}}},
        {"asked": [FORM], **content(text("Plan 3 days in Kyoto."))},
        alone=False,
        session=True,
    ),
    Step(
        "a person may decline to say",
        {**get("asked", days="3"), "answer": {"action": "decline"}},
        {"asked": [FORM], **refused(-32602, "prompt 'asked': 'town' is missing")},
        session=True,
    ),
    Step(
        "nobody is asked for what is given",
        {**get("asked", town="Oslo"), "answer": {"action": "decline"}},
        messages("Plan a journey.", text("Plan 2 days in Oslo.")),
    ),
    Step(
        "a request is cancelled while others are answered",
        {"cancel": get("wait"), "once": get("begun")},
        {"cancelled": True, **messages("Say that `wait` waits, as soon as it does.", text("It waits."))},
        alone=False,
    ),
    Step(
        "a cancelled request is no longer worked on",
        get("ended"),
        messages("Say how `wait` has ended, as soon as it has.", text("It was cancelled.")),
        alone=False,
        session=True,
    ),
    Step(
        "an unknown prompt is refused",
        get("txet"),
        refused(-32602, "unknown prompt 'txet'; did you mean 'text'?"),
    ),
    Step(
        "a missing argument is refused",
        get("typed"),
        refused(-32602, "prompt 'typed': 'count' is missing"),
    ),
    Step(
        "an unknown argument is refused",
        get("typed", count="3", langauge="rust"),
        refused(
            -32602, "prompt 'typed': 'langauge' is not an argument of this prompt (did you mean 'language'?)"
        ),
    ),
    Step(
        "a wrong argument is refused",
        get("typed", count="three"),
        refused(-32602, "prompt 'typed': 'count' is 'three', not a whole number"),
    ),
    Step(
        "an unknown cursor is refused",
        request("prompts/list", cursor="nowhere"),
        refused(-32602, "unknown cursor: the list may have changed, so list again from the start"),
    ),
    Step(
        "an unknown resource is refused",
        request("resources/read", uri="shelf://notcie"),
        refused(-32002, "unknown resource 'shelf://notcie'; did you mean 'shelf://notice'?"),
        modern=refused(-32602, "unknown resource 'shelf://notcie'; did you mean 'shelf://notice'?"),
    ),
    Step(
        "an unknown method is refused",
        request("prompts/put", name="text"),
        refused(-32601, "method not found: prompts/put"),
    ),
    Step(
        "a client is told of an update of what it reads",
        watch(
            "notifications/resources/updated",
            "shelf.py",
            (RECIPES / "shelf.py").read_text(encoding="utf-8").replace("Monday", "Tuesday"),
            uri="shelf://notice",
        ),
        {"told": {"uri": "shelf://notice"}},
        modern={"honored": {"resourceSubscriptions": ["shelf://notice"]}, "told": {"uri": "shelf://notice"}},
        alone=False,
        session=True,
    ),
    Step(
        "what was updated is read as it is now",
        request("resources/read", uri="shelf://notice"),
        {"result": {"contents": [{**NOTICE_TEXT, "text": "Closed on Tuesday."}]}},
        alone=False,
        session=True,
    ),
    Step(
        "a client is told that prompts have changed",
        watch("notifications/prompts/list_changed", "added.py", ADDED_TEXT),
        {"told": {}},
        modern={"honored": {"promptsListChanged": True}, "told": {}},
        alone=False,
        session=True,
    ),
    Step(
        "the changed list is listed",
        {"pages": "prompts/list"},
        pages("prompts", [ADDED, *PROMPTS]),
        alone=False,
        session=True,
    ),
    Step(
        "so is the changed list of tools",
        {"pages": "tools/list"},
        pages("tools", [tool(ADDED), *TOOLS]),
        alone=False,
        session=True,
    ),
    Step(
        "an added prompt is served",
        get("added"),
        messages("Come later.", text("Here I am.")),
        alone=False,
        session=True,
    ),
]

#: Steps for a client with a handshake if no session is kept.
WITHOUT_SESSION: Final = [
    Step(
        "nobody is asked where the server cannot ask",
        {**get("asked"), "answer": {"action": "accept", "content": {"town": "Kyoto"}}},
        refused(-32602, "prompt 'asked': 'town' is missing"),
    ),
    Step(
        "nobody can subscribe where the server cannot tell",
        request("resources/subscribe", uri="shelf://notice"),
        refused(-32601, "method not found: resources/subscribe"),
    ),
]

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
    get,
    list_entry,
    messages,
    pages,
    rejection,
    request,
    text,
    tool,
    tool_error,
    watch,
)
from tests.clients.recipes import _samples

RECIPES: Final = Path(__file__).parent / "recipes"

PNG: Final = b64encode(_samples.PNG).decode()
WAV: Final = b64encode(_samples.WAV).decode()

PROMPTS: Final = [
    list_entry("audio", "Play a sound."),
    list_entry(
        "elicited",
        "Plan a journey.",
        argument("town", "Where to go", required=True),
        argument("days", "For how long (a whole number; default 2)"),
    ),
    list_entry("embedded_blob", "Attach bytes."),
    list_entry("embedded_text", "Attach a text."),
    list_entry("ended", "Report how `wait` has ended."),
    list_entry("image", "Show a picture."),
    list_entry("link", "Link to a text."),
    list_entry("started", "Report when `wait` has started."),
    list_entry("text", "Greet the world."),
    list_entry("turns", "Talk for a while."),
    list_entry(
        "typed",
        "Ask for functions.",
        argument("count", "How many functions to write (a whole number)", required=True),
        argument("language", "What to write them in (one of python, ruby, rust; default python)"),
        argument("model", "Which model writes them (default guido)"),
        title="Write functions",
    ),
    list_entry("wait", "Wait indefinitely."),
]

SCHEMAS: Final = {
    "elicited": {
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
        "model": {
            "description": "Which model writes them (default guido)",
            "type": "string",
            "default": "guido",
        },
    },
}
TOOLS: Final = [tool(prompt, **SCHEMAS.get(prompt["name"], {})) for prompt in PROMPTS]

ADDED: Final = list_entry("added", "Come later.")

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

DAYS: Final = {
    "days": {"type": "integer", "description": "For how long (a whole number; default 2)", "default": 2}
}
FORM: Final = {
    "mode": "form",
    "message": "The prompt 'elicited' needs town.",
    "requestedSchema": {
        "type": "object",
        "properties": {"town": {"type": "string", "description": "Where to go"}},
        "required": ["town"],
    },
}
WHOLE_FORM: Final = {
    **FORM,
    "requestedSchema": {
        **FORM["requestedSchema"],
        "properties": {**FORM["requestedSchema"]["properties"], **DAYS},
    },
}
CORRECTION: Final = {
    "mode": "form",
    "message": "The prompt 'elicited' needs days. 'days' is 'few', not a whole number.",
    "requestedSchema": {"type": "object", "properties": DAYS, "required": []},
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
    Step("text is received", get("text"), messages("Greet the world.", text("Say hello to 世界 🌍."))),
    Step(
        "an image is received",
        get("image"),
        messages("Show a picture.", IMAGE),
    ),
    Step(
        "a sound is received",
        get("audio"),
        messages("Play a sound.", {"type": "audio", "data": WAV, "mimeType": "audio/wav"}),
    ),
    Step(
        "an embedded text is received",
        get("embedded_text"),
        messages("Attach a text.", {"type": "resource", "resource": NOTICE_TEXT}),
    ),
    Step(
        "embedded bytes are received",
        get("embedded_blob"),
        messages("Attach bytes.", {"type": "resource", "resource": COVER_BLOB}),
    ),
    Step(
        "a link is received",
        get("link"),
        messages("Link to a text.", {"type": "resource_link", **NOTICE}),
    ),
    Step(
        "several turns are received in order",
        get("turns"),
        messages(
            "Talk for a while.",
            text("Knock, knock."),
            text("Who's there?"),
            text("A picture:"),
            IMAGE,
            roles="user assistant user user",
        ),
    ),
    Step(
        "arguments are parsed from text",
        get("typed", count="3", language="rust", model="ferris"),
        messages("Ask for functions.", text("ferris, write 3 functions in rust.")),
    ),
    Step(
        "an omitted argument has its default",
        get("typed", count="3"),
        messages("Ask for functions.", text("guido, write 3 functions in python.")),
    ),
    Step(
        "a tool is called with values",
        call("typed", count=3, language="rust", model="ferris"),
        content(text("ferris, write 3 functions in rust.")),
    ),
    Step(
        "a tool labels each of several turns with its role",
        call("turns"),
        content(
            *(text("[user]"), text("Knock, knock.")),
            *(text("[assistant]"), text("Who's there?")),
            *(text("[user]"), text("A picture:"), IMAGE),
        ),
    ),
    Step(
        "a tool reports an invalid argument",
        call("typed", count="three"),
        tool_error("prompt 'typed': 'count' is 'three', not a whole number"),
    ),
    Step(
        "an unknown tool is rejected",
        call("txet"),
        rejection(-32602, "unknown tool 'txet'; did you mean 'text'?"),
    ),
    Step(
        "an argument is completed from its type",
        complete(TYPED, "language", "ru"),
        completion("ruby", "rust"),
    ),
    Step(
        "an argument is completed according to earlier arguments",
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
        "a missing argument is elicited",
        {**get("elicited"), "answer": {"action": "accept", "content": {"town": "Kyoto"}}},
        {"asked": [WHOLE_FORM], **messages("Plan a journey.", text("Plan 2 days in Kyoto."))},
        alone=False,
        session=True,
    ),
    Step(
        "an invalid argument is elicited",
        {
            **get("elicited", town="Kyoto", days="few"),
            "answer": {"action": "accept", "content": {"days": 4}},
        },
        {"asked": [CORRECTION], **messages("Plan a journey.", text("Plan 4 days in Kyoto."))},
        alone=False,
        session=True,
    ),
    Step(
        "a missing argument of a tool is elicited",
        {**call("elicited", days=3), "answer": {"action": "accept", "content": {"town": "Kyoto"}}},
        {"asked": [FORM], **content(text("Plan 3 days in Kyoto."))},
        alone=False,
        session=True,
    ),
    Step(
        "an elicitation can be declined",
        {**get("elicited", days="3"), "answer": {"action": "decline"}},
        {"asked": [FORM], **rejection(-32602, "prompt 'elicited': 'town' is missing")},
        session=True,
    ),
    Step(
        "a given argument is not elicited",
        {**get("elicited", town="Oslo"), "answer": {"action": "decline"}},
        messages("Plan a journey.", text("Plan 2 days in Oslo.")),
    ),
    Step(
        "a request is cancelled while others are answered",
        {"cancel": get("wait"), "once": get("started")},
        {"cancelled": True, **messages("Report when `wait` has started.", text("It has started."))},
        alone=False,
    ),
    Step(
        "a cancelled request is stopped",
        get("ended"),
        messages("Report how `wait` has ended.", text("It was cancelled.")),
        alone=False,
        session=True,
    ),
    Step(
        "an unknown prompt is rejected",
        get("txet"),
        rejection(-32602, "unknown prompt 'txet'; did you mean 'text'?"),
    ),
    Step(
        "a missing argument is rejected",
        get("typed"),
        rejection(-32602, "prompt 'typed': 'count' is missing"),
    ),
    Step(
        "an unknown argument is rejected",
        get("typed", count="3", langauge="rust"),
        rejection(
            -32602, "prompt 'typed': 'langauge' is not an argument of this prompt (did you mean 'language'?)"
        ),
    ),
    Step(
        "an invalid argument is rejected",
        get("typed", count="three"),
        rejection(-32602, "prompt 'typed': 'count' is 'three', not a whole number"),
    ),
    Step(
        "an unknown cursor is rejected",
        request("prompts/list", cursor="nowhere"),
        rejection(
            -32602, "unknown cursor: the list may have changed, so request it again from the first page"
        ),
    ),
    Step(
        "an unknown resource is rejected",
        request("resources/read", uri="shelf://notcie"),
        rejection(-32002, "unknown resource 'shelf://notcie'; did you mean 'shelf://notice'?"),
        modern=rejection(-32602, "unknown resource 'shelf://notcie'; did you mean 'shelf://notice'?"),
    ),
    Step(
        "an unknown method is rejected",
        request("prompts/put", name="text"),
        rejection(-32601, "method not found: prompts/put"),
    ),
    Step(
        "a client is notified of an updated resource",
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
        "an updated resource has its new content",
        request("resources/read", uri="shelf://notice"),
        {"result": {"contents": [{**NOTICE_TEXT, "text": "Closed on Tuesday."}]}},
        alone=False,
        session=True,
    ),
    Step(
        "a client is notified of changed prompts",
        watch("notifications/prompts/list_changed", "added.py", ADDED_TEXT),
        {"told": {}},
        modern={"honored": {"promptsListChanged": True}, "told": {}},
        alone=False,
        session=True,
    ),
    Step(
        "the changed list of prompts is listed",
        {"pages": "prompts/list"},
        pages("prompts", [ADDED, *PROMPTS]),
        alone=False,
        session=True,
    ),
    Step(
        "the changed list of tools is listed",
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

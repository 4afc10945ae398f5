"""The lists of a server, read page by page within limits, or from a file that `promptkit list` wrote."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct, field

from promptkit.errors.diagnostics import Diagnostic, Location, Report
from promptkit.errors.exceptions import PromptkitError
from promptkit.errors.rules import Rule
from promptkit.protocol.jsonrpc import MethodNotFound

#: The location of everything that a server declares, because there is no file.
SERVER_LOCATION: Final = Location("<server>")

#: Maximum number of items, and of bytes of JSON, in all lists of a server; and of pages in one list.
MAX_ITEMS: Final = 10_000
MAX_BYTES: Final = 64 * 1024 * 1024
MAX_PAGES: Final = 1_000

#: The extension for skills.
SKILLS: Final = "io.modelcontextprotocol/skills"


class RequestError(PromptkitError):
    """
    A server answered a request with an error.

    Args:
        code:
            The JSON-RPC error code.

        message:
            The server's message.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.message} (code {self.code})"


class InvalidReplyError(PromptkitError):
    """A server's answer violates the protocol. The message is a phrase whose subject is the server."""


class NoReplyError(InvalidReplyError):
    """A server did not answer, and will probably not answer any further requests."""


class Requester(Protocol):
    """Sends requests; see `promptkit.foreign.connection.Connection`."""

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """
        Send a request, and return its result as JSON-compatible data.

        Raises:
            RequestError: If the server answers with an error.

            InvalidReplyError: If the server's answer violates the protocol.

            NoReplyError: If the server does not answer in time, or its answer is too large.
        """


class ListedArgument(Struct):
    """An argument of a prompt."""

    name: str
    title: str | None = None
    description: str | None = None
    required: bool | None = None


class ListedPrompt(Struct):
    """An entry of ``prompts/list``."""

    name: str
    title: str | None = None
    description: str | None = None
    arguments: list[ListedArgument] | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class ListedResource(Struct, kw_only=True):
    """An entry of ``resources/list``."""

    uri_template: str = field(name="uri")  # without variables
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = field(name="mimeType", default=None)
    size: int | None = None


class ListedTemplate(ListedResource, kw_only=True):
    """An entry of ``resources/templates/list``, which has no size."""

    uri_template: str = field(name="uriTemplate")
    size: None = None


class ListedTool(Struct):
    """An entry of ``tools/list``."""

    name: str
    input_schema: dict[str, Any] = field(name="inputSchema")
    title: str | None = None
    description: str | None = None


class ListedFile(Struct):
    """A file of a skill."""

    uri: str
    digest: str
    size: int


class ListedSkill(Struct):
    """An entry of ``skills/list``. For a dynamic skill, whose files are not listed, `resources` is text."""

    uri: str
    frontmatter: dict[str, Any]
    resources: list[ListedFile] | str


class _Kind(Struct, frozen=True):
    """
    A kind of list.

    Args:
        member:
            The field of a reply that contains the items.

        noun:
            A word for an item.

        item:
            The type of an item.

        key:
            The attribute with the name or the URI of an item, which must be unique.
    """

    member: str
    noun: str
    item: Any
    key: str


#: The lists by method.
KINDS: Final[Mapping[str, _Kind]] = {
    "prompts/list": _Kind("prompts", "prompt", ListedPrompt, "name"),
    "resources/list": _Kind("resources", "resource", ListedResource, "uri_template"),
    "resources/templates/list": _Kind("resourceTemplates", "template", ListedTemplate, "uri_template"),
    "tools/list": _Kind("tools", "tool", ListedTool, "name"),
    "skills/list": _Kind("skills", "skill", ListedSkill, "uri"),
}


class Listing(Struct):
    """
    The lists of a server.

    Args:
        data:
            The items as the server sent them, by the field of the reply that contains them.

        prompts, resources, templates, tools, skills:
            The valid items. Of several items with the same name or URI, only the first is included.

        diagnostics:
            The problems with the replies.

        paged:
            The methods whose lists have several pages.
    """

    data: dict[str, list[Any]] = {}
    prompts: list[ListedPrompt] = []
    resources: list[ListedResource] = []
    templates: list[ListedTemplate] = []
    tools: list[ListedTool] = []
    skills: list[ListedSkill] = []
    diagnostics: list[Diagnostic] = []
    paged: list[str] = []

    @property
    def skill_files(self) -> frozenset[str]:
        """The URIs of the files of all skills, which can also be listed as resources."""
        lists = [skill.resources for skill in self.skills if isinstance(skill.resources, list)]
        files = {file.uri for resources in lists for file in resources}
        return frozenset(files | {skill.uri for skill in self.skills})

    def add(self, method: str, items: Sequence[Any]) -> None:
        """Add the items of a list, and report invalid items and duplicate keys."""
        kind = KINDS[method]
        valid: dict[str, Any] = {}
        for number, data in enumerate(items, 1):
            try:
                item = msgspec.convert(data, kind.item)
            except msgspec.ValidationError as error:
                report = Report(f"{kind.noun} {number} of {method}", SERVER_LOCATION, self.diagnostics)
                report.add(Rule.INVALID_REPLY, f"it is invalid: {error}", "correct it")
                continue
            key = getattr(item, kind.key)
            if valid.setdefault(key, item) is not item:
                hint = "clients show one of them, or both: give each a different name or URI"
                report = Report(f"{kind.noun} {key!r}", SERVER_LOCATION, self.diagnostics)
                report.add(Rule.DUPLICATE_ITEM, f"it is listed twice by {method}", hint)
        self.data[kind.member] = list(items)
        target = {"resourceTemplates": "templates"}.get(kind.member, kind.member)
        getattr(self, target).extend(valid.values())


def offered_methods(capabilities: Mapping[str, Any]) -> list[str]:
    """Return the methods of the lists that a server with these capabilities has."""
    extensions = capabilities.get("extensions") or {}
    return [
        method
        for method in KINDS
        if (SKILLS in extensions if method == "skills/list" else method.partition("/")[0] in capabilities)
    ]


def read_listing(connection: Requester, capabilities: Mapping[str, Any]) -> Listing:
    """
    Return the lists that a server declares, truncated at the limits.

    Args:
        connection:
            The connection.

        capabilities:
            The server's capabilities.
    """
    listing, reader = Listing(), _PageReader(connection)
    for method in offered_methods(capabilities):
        pages, report = list[list[Any]](), Report(method, SERVER_LOCATION, listing.diagnostics)
        try:
            for page in reader.pages(method):
                pages.append(page)
            if len(pages) > 1:
                listing.paged.append(method)
        except _PageError as error:
            report.add(error.rule, str(error), error.hint)
        except RequestError as error:
            # Servers without templates often do not implement the method that lists them.
            if method != "resources/templates/list" or error.code != MethodNotFound.code:
                hint = "answer it, or do not declare the capability"
                report.add(Rule.INVALID_REPLY, f"it fails: {error}", hint)
        except InvalidReplyError as error:
            report.add(Rule.INVALID_REPLY, f"the server {error}", "answer as the protocol requires")
            if isinstance(error, NoReplyError):
                return listing
        listing.add(method, list(chain.from_iterable(pages)))
    return listing


class _PageError(Exception):
    """A list cannot be read completely. The items so far are valid."""

    def __init__(self, rule: Rule, message: str, hint: str) -> None:
        super().__init__(message)
        self.rule = rule
        self.hint = hint


class _PageReader:
    """Reads the pages of lists, and counts the items and bytes of all of them."""

    def __init__(self, connection: Requester) -> None:
        self._connection = connection
        self._items = 0
        self._bytes = 0

    def pages(self, method: str) -> Iterator[list[Any]]:
        """Yield the items of each page. Raises _PageError, and the errors of `Requester.request`."""
        cursor: str | None = None
        cursors = set[str]()
        hint = "omit nextCursor on the last page, and return a new cursor for each further page"
        while True:
            result = self._connection.request(method, {} if cursor is None else {"cursor": cursor})
            page, cursor = result.get(KINDS[method].member), result.get("nextCursor")
            if not isinstance(page, list):
                message = f"its result has no list {KINDS[method].member!r}"
                raise _PageError(Rule.INVALID_REPLY, message, "return a list, which can be empty")
            yield page[: max(MAX_ITEMS - self._items, 0)]
            self._items += len(page)
            self._bytes += len(msgspec.json.encode(result))
            if cursor is None:
                return
            if not isinstance(cursor, str) or cursor in cursors:
                raise _PageError(Rule.BROKEN_PAGES, f"the cursor {cursor!r} is returned twice", hint)
            cursors.add(cursor)
            if len(cursors) >= MAX_PAGES:
                raise _PageError(Rule.BROKEN_PAGES, f"it has more than {MAX_PAGES:,} pages", hint)
            if self._items > MAX_ITEMS or self._bytes > MAX_BYTES:
                limits = f"more than {MAX_ITEMS:,} items, or more than {MAX_BYTES >> 20} MiB"
                message = f"the lists have {limits}, and are not read further"
                raise _PageError(Rule.BROKEN_PAGES, message, "list fewer items")


def parse_listing(data: Mapping[str, Any]) -> Listing:
    """
    Return the lists in the data of a file that ``promptkit list --json`` wrote.

    Raises:
        ValueError: If *data* does not contain such lists.
    """
    listing = Listing()
    for method, kind in KINDS.items():
        items = data.get(kind.member, [])
        if not isinstance(items, list):
            msg = f"{kind.member!r} is not a list"
            raise ValueError(msg)  # noqa: TRY004 (the content of a file, not the type of an argument)
        listing.add(method, items)
    return listing

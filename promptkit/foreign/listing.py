"""A server's lists, read page by page within limits, or read from a file that ``promptkit list`` wrote."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct, field

from promptkit.errors.diagnostics import Diagnostic, Location, Report
from promptkit.errors.exceptions import PromptkitError
from promptkit.errors.rules import Rule
from promptkit.protocol.jsonrpc import MethodNotFound

#: The location of everything that a server declares, in place of a file.
SERVER_LOCATION: Final = Location("<server>")

#: The maximum number of items in all lists of a server, their maximum size as JSON in bytes, and the maximum
#: number of pages in one list.
MAX_ITEMS: Final = 10_000
MAX_BYTES: Final = 64 * 1024 * 1024
MAX_PAGES: Final = 1_000

#: The name of the protocol extension for skills.
SKILLS: Final = "io.modelcontextprotocol/skills"


class RequestError(PromptkitError):
    """
    A server replied to a request with an error.

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
    """A server's reply violates the protocol. The message is a phrase that follows "the server"."""


class NoReplyError(InvalidReplyError):
    """A server did not reply, and will probably not reply to any further requests."""


class Requester(Protocol):
    """An object that sends requests to a server, such as `promptkit.foreign.connection.Connection`."""

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """
        Send a request, and return its result as JSON-compatible data.

        Raises:
            RequestError: If the server replies with an error.

            InvalidReplyError: If the server's reply violates the protocol.

            NoReplyError: If the server does not reply in time or ends the connection, or if its reply is too
                large.
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

    uri_template: str = field(name="uri")  # a URI without variables
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
    """An entry of ``skills/list``. If its files are dynamic, they are not listed, and `resources` is text."""

    uri: str
    frontmatter: dict[str, Any]
    resources: list[ListedFile] | str


class _ListKind(Struct, frozen=True):
    """
    A kind of list.

    Args:
        member:
            The name of the field that contains the items in a reply.

        noun:
            The word for an item in messages.

        item:
            The type of an item.

        key:
            The attribute that contains the name or the URI of an item, which must be unique.
    """

    member: str
    noun: str
    item: Any
    key: str


#: The kinds of lists, keyed by method.
LIST_KINDS: Final[Mapping[str, _ListKind]] = {
    "prompts/list": _ListKind("prompts", "prompt", ListedPrompt, "name"),
    "resources/list": _ListKind("resources", "resource", ListedResource, "uri_template"),
    "resources/templates/list": _ListKind("resourceTemplates", "template", ListedTemplate, "uri_template"),
    "tools/list": _ListKind("tools", "tool", ListedTool, "name"),
    "skills/list": _ListKind("skills", "skill", ListedSkill, "uri"),
}


class Listing(Struct):
    """
    The lists of a server.

    Args:
        data:
            The items as the server sent them, keyed by the name of the field that contains them in a reply.

        prompts, resources, templates, tools, skills:
            The valid items. If several items have the same name or URI, only the first is included.

        diagnostics:
            The diagnostics for the replies.

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
        """The URIs of all skill files. The server can list these files as resources, too."""
        lists = [skill.resources for skill in self.skills if isinstance(skill.resources, list)]
        files = {file.uri for resources in lists for file in resources}
        return frozenset(files | {skill.uri for skill in self.skills})

    def add(self, method: str, items: Sequence[Any]) -> None:
        """Add the valid items of a list, and report invalid items, and items with the same name or URI."""
        kind = LIST_KINDS[method]
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
                hint = "clients show one of the items, or both: give each of them a different name or URI"
                report = Report(f"{kind.noun} {key!r}", SERVER_LOCATION, self.diagnostics)
                report.add(Rule.DUPLICATE_ITEM, f"{method} lists it twice", hint)
        self.data[kind.member] = list(items)
        target = {"resourceTemplates": "templates"}.get(kind.member, kind.member)
        getattr(self, target).extend(valid.values())


def offered_methods(capabilities: Mapping[str, Any]) -> list[str]:
    """Return the methods that list what a server with these capabilities offers."""
    extensions = capabilities.get("extensions") or {}
    return [
        method
        for method in LIST_KINDS
        if (SKILLS in extensions if method == "skills/list" else method.partition("/")[0] in capabilities)
    ]


def read_listing(connection: Requester, capabilities: Mapping[str, Any]) -> Listing:
    """
    Read the lists that a server declares. Lists that exceed a limit are truncated.

    Args:
        connection:
            The connection to the server.

        capabilities:
            The server's capabilities.
    """
    listing, reader = Listing(), _PageReader(connection)
    for method in offered_methods(capabilities):
        pages, report = list[list[Any]](), Report(method, SERVER_LOCATION, listing.diagnostics)
        try:
            for page in reader.read_pages(method):
                pages.append(page)
            if len(pages) > 1:
                listing.paged.append(method)
        except _PageError as error:
            report.add(error.rule, str(error), error.hint)
        except RequestError as error:
            # Servers without resource templates often do not implement the method that lists them.
            if method != "resources/templates/list" or error.code != MethodNotFound.code:
                hint = "implement this method, or do not declare the capability"
                report.add(Rule.INVALID_REPLY, f"it fails: {error}", hint)
        except InvalidReplyError as error:
            report.add(Rule.INVALID_REPLY, f"the server {error}", "send the reply that the protocol requires")
            if isinstance(error, NoReplyError):
                return listing
        listing.add(method, list(chain.from_iterable(pages)))
    return listing


class _PageError(Exception):
    """A list cannot be read completely. The pages that were read before the error are valid."""

    def __init__(self, rule: Rule, message: str, hint: str) -> None:
        super().__init__(message)
        self.rule = rule
        self.hint = hint


class _PageReader:
    """Reads the pages of lists, and counts the items and bytes of all lists."""

    def __init__(self, connection: Requester) -> None:
        self._connection = connection
        self._items = 0
        self._bytes = 0

    def read_pages(self, method: str) -> Iterator[list[Any]]:
        """Yield the items of each page. Raises `_PageError`, and the errors of `Requester.request`."""
        cursor: str | None = None
        cursors = set[str]()
        hint = "omit nextCursor on the last page, and return a new cursor on every other page"
        while True:
            result = self._connection.request(method, {} if cursor is None else {"cursor": cursor})
            page, cursor = result.get(LIST_KINDS[method].member), result.get("nextCursor")
            if not isinstance(page, list):
                message = f"its result does not contain the list {LIST_KINDS[method].member!r}"
                raise _PageError(Rule.INVALID_REPLY, message, "return a list, even if it is empty")
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
                message = f"the lists have {limits}, so they are not read completely"
                raise _PageError(Rule.BROKEN_PAGES, message, "list fewer items")


def parse_listing(data: Mapping[str, Any]) -> Listing:
    """
    Return the lists in *data*, which is the content of a file that ``promptkit list --json`` wrote.

    Raises:
        ValueError: If *data* does not contain such lists.
    """
    listing = Listing()
    for method, kind in LIST_KINDS.items():
        items = data.get(kind.member, [])
        if not isinstance(items, list):
            msg = f"{kind.member!r} is not a list"
            raise ValueError(msg)  # noqa: TRY004 (a file is invalid, not the type of an argument)
        listing.add(method, items)
    return listing

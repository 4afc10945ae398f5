"""The options of `@prompt`, and their checks."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from promptkit.catalog.prompts import TAGS
from promptkit.errors.diagnostics import Report
from promptkit.errors.rules import Rule
from promptkit.language.annotations import Tool, is_scope
from promptkit.language.media import Icon
from promptkit.language.validation import check_flag, check_optional_text, describe
from promptkit.types.schemas import answer_schema

#: The maximum length of a name, so that every client can show it and users can type it.
MAX_NAME: Final = 64
_NAME: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_NAME}}}")


def check_name(name: str, function: Callable[..., Any], report: Report) -> None:
    """
    Report a name that some clients cannot show, with a suggested name that all clients can show.

    Args:
        name:
            The name of a prompt.

        function:
            The author's function. Its name is the default for the prompt's name.

        report:
            Receives the diagnostics.
    """
    if _NAME.fullmatch(name):
        return
    slug, hint = name_slug(name), "call it {!r}"
    if name == getattr(function, "__name__", None):
        slug, hint = (
            slug or name_slug(Path(report.location.file).stem),
            "keep the function's name, and write @prompt(name={!r})",
        )
    message = "a name must have 1 to 64 characters: letters A-Z and a-z, digits, '_' and '-'"
    report.add(Rule.BAD_NAME, message, hint.format(slug or "prompt"))


def name_slug(name: str) -> str:
    """Return *name* without accents or characters that clients cannot show; ``""`` if nothing is left."""
    from unicodedata import combining, normalize  # only needed for invalid names

    unaccented = "".join(letter for letter in normalize("NFKD", name) if not combining(letter))
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", unaccented).strip("-")[:64]
    return slug if slug.strip("_-") else ""


_LABEL: Final = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"

#: A key of ``_meta``: an optional prefix (labels separated by dots, and a slash), then a name. See
#: https://modelcontextprotocol.io/specification/2026-07-28/basic#meta
_META_KEY: Final = (
    rf"(?:(?P<prefix>{_LABEL}(?:\.{_LABEL})*)/)?(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"
)

_SURROGATE_HINT: Final = "remove the unpaired surrogate"

#: The keys that the protocol reserves, and the labels that it reserves in prefixes.
_RESERVED_KEYS: Final = {"progressToken", "traceparent", "tracestate", "baggage"}
_RESERVED_LABELS: Final = {"mcp", "modelcontextprotocol"}


def convert_icons(icons: Iterable[Icon | str]) -> tuple[Icon, ...]:
    """
    Return the icons as a tuple, with URIs converted to icons. Raises TypeError if *icons* is a single string.
    """
    if isinstance(icons, str):
        msg = f"icons must be a list: write icons=[{icons!r}]"
        raise TypeError(msg)
    return tuple(icon if isinstance(icon, Icon) else Icon(icon) for icon in icons)


def convert_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the tags as a tuple. Raises TypeError for a single string, which would be split into letters."""
    if isinstance(tags, str):
        msg = f"tags must be a list: write tags=[{tags!r}]"
        raise TypeError(msg)
    words = tuple(tags)
    if invalid := [word for word in words if not isinstance(word, str)]:
        msg = f"tags must be strings, not {describe(invalid[0])}"
        raise TypeError(msg)
    return words


def copy_meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of *meta*. Raises TypeError if it is not a mapping."""
    if not isinstance(meta, Mapping):
        msg = f"meta must be a dict, not {type(meta).__name__}"
        raise TypeError(msg)
    return dict(meta)


def _check_seconds(name: str, value: float | None) -> None:
    numbers: tuple[type, ...] = (int, float)
    if value is not None and not (isinstance(value, numbers) and value > 0 and value is not True):
        msg = f"{name} must be a positive number of seconds, not {value!r}"
        raise ValueError(msg)


def _check_deprecated(value: str | None) -> None:
    if value is not None and not value.strip():
        msg = "deprecated must name the replacement, but it is blank: write deprecated='use NAME'"
        raise ValueError(msg)


def _check_tool(value: object) -> None:
    if value is None or isinstance(value, bool):
        return

    if not isinstance(value, Tool):
        msg = f"tool must be False or promptkit.Tool(...), not {describe(value)}"
        raise TypeError(msg)


def _check_elicit(value: object) -> None:
    if not (value is None or isinstance(value, bool) or value == "always"):
        msg = f'elicit must be True, False or "always", not {describe(value)}'
        raise TypeError(msg)


class Options(Struct, frozen=True, kw_only=True):
    """The options of `@prompt`, which are documented there."""

    name: str
    title: str | None = None
    description: str | None = None
    icons: tuple[Icon, ...] = ()
    tags: tuple[str, ...] = ()
    version: str | None = None
    timeout: float | None = None
    cache: float | None = None
    meta: Mapping[str, Any] = MappingProxyType({})
    elicit: Literal["always"] | bool | None = None
    tool: Tool | bool | None = None
    scopes: Collection[str] = ()
    answer: Any = None
    deprecated: str | None = None
    sample: bool = True

    def __post_init__(self) -> None:
        for name in ("name", "title", "description", "version", "deprecated"):
            check_optional_text(name, getattr(self, name))
        for name in ("timeout", "cache"):
            _check_seconds(name, getattr(self, name))
        check_flag("sample", self.sample)
        _check_elicit(self.elicit)
        _check_deprecated(self.deprecated)
        _check_tool(self.tool)

    @property
    def wire_meta(self) -> dict[str, Any]:
        """The prompt's ``_meta``, with the values that the author set."""
        own = {
            TAGS: list(self.tags),
            "promptkit/version": self.version,
            "promptkit/deprecated": self.deprecated,
        }
        return {**{key: value for key, value in own.items() if value}, **self.meta}

    def describe(self, description: str | None) -> str | None:
        """Return the description for clients, preceded by a notice if the prompt is deprecated."""
        if self.deprecated is None:
            return description
        notice = f"Deprecated: {self.deprecated.strip().removesuffix('.')}."
        return f"{notice} {description}" if description else notice


def check_options(options: Options, function: Callable[..., Any], report: Report) -> None:
    """
    Report options that cannot be sent to clients, or that some clients cannot show.

    Args:
        options:
            The options given to `@prompt`.

        function:
            The author's function. Its name is the default for the prompt's name.

        report:
            Receives the diagnostics.
    """
    check_name(options.name, function, report)
    check_scopes(options.scopes, report)
    if options.answer is not None:
        _check_answer(options.answer, report)
    sent = (options.title, options.description, options.version, options.deprecated, options.wire_meta)
    hint = "use text, numbers, booleans, None, and lists and dicts of these"
    check_sendable(sent, "its title, description, tags or meta", report, hint=hint)
    for key in options.meta:
        _check_meta_key(key, report)


def _check_answer(answer: Any, report: Report) -> None:
    try:
        answer_schema(answer)
    except TypeError as error:
        message, _, hint = str(error).partition(": ")
        report.add(Rule.BAD_ANSWER, message, hint)


def check_scopes(scopes: object, report: Report) -> None:
    """
    Report scopes that cannot be granted.

    Args:
        scopes:
            The *scopes* option of `@prompt`, `@resource` or `@skill`.

        report:
            Receives the diagnostics.
    """
    if not isinstance(scopes, list | tuple | set | frozenset):
        message = f"scopes must be a list of strings, not {describe(scopes)}"
        report.add(Rule.BAD_SCOPE, message, _scopes_hint(scopes.split() if isinstance(scopes, str) else ()))
        return
    for scope in scopes:
        if not is_scope(scope):
            message = (
                f"{scope!r} is not a scope: a scope consists of ASCII characters other than "
                f"spaces, double quotes and backslashes"
            )
            report.add(Rule.BAD_SCOPE, message, _scopes_hint(str(scope).split()))


def _scopes_hint(scopes: Iterable[str]) -> str:
    examples = ", ".join(repr(scope) for scope in scopes if is_scope(scope))
    return f"write a list such as scopes=[{examples or repr('reviews:read')}]"


def check_sendable(
    values: Iterable[object],
    subject: str,
    report: Report,
    parameter: str | None = None,
    hint: str = _SURROGATE_HINT,
) -> None:
    """
    Report values that cannot be encoded. One such value would break the whole list of prompts or resources.

    Args:
        values:
            Metadata of a prompt, an argument or a resource.

        subject:
            What to call the values in the message.

        report:
            Receives the diagnostics.

        parameter:
            The name of the parameter, if the values belong to one; see `Report.add`.

        hint:
            How to fix the values. The default is the fix for text.
    """
    try:
        msgspec.json.encode(tuple(values))
    except Exception as error:  # noqa: BLE001 (encoding can run authors' code)
        report.add(Rule.BAD_METADATA, f"{subject} cannot be sent: {error}", hint, parameter)


def _check_meta_key(key: object, report: Report) -> None:
    match = re.fullmatch(_META_KEY, key) if isinstance(key, str) else None
    if not match:
        message = f"meta cannot have {describe(key)} as a key"
        hint = "use keys such as 'com.example/owner': a reversed domain, a slash and a name"
        report.add(Rule.BAD_METADATA, message, hint)
    elif _is_reserved(match[0], (match["prefix"] or "").split(".")):
        message = f"the key {match[0]!r} in meta is reserved for the protocol"
        hint = "use your own prefix, for example 'com.example/owner'"
        report.add(Rule.BAD_METADATA, message, hint)


def _is_reserved(key: str, labels: list[str]) -> bool:
    # Revision 2025-06-18 reserves all labels of a prefix but the last; later revisions reserve the second.
    reserving = {label.lower() for label in labels[:-1] + labels[1:2]}
    return key in _RESERVED_KEYS or not reserving.isdisjoint(_RESERVED_LABELS)

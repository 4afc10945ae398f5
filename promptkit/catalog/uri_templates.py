"""
URI templates: reads the variables in a URI, as the reverse of expanding its template.

First a URI is split among the expressions of its template, such as ``{?a,b*}``. That goes from its end to its
beginning, and takes no more steps than the URI is long. Then the text of each expression is split by the
rules of its operator.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Any, Final, TypeAlias
from urllib.parse import unquote_to_bytes

import attrs
from msgspec import Struct

from promptkit.types.unstructuring import text_of

#: The value of a variable.
Value: TypeAlias = str | list[str] | dict[str, str]

#: Characters. Browsers and servers accept far shorter URIs only.
MAX_URI_LENGTH: Final = 65_536

_BAD_ESCAPE: Final = re.compile("%(?![0-9A-Fa-f]{2})")

#: A character that names of variables are made of.
_IN_NAME: Final = re.compile(r"[\w.%]")

#: One variable of an expression, and a whole template (RFC 6570, section 2). They are checked here
#: because `uritemplate` accepts any text.
_VARIABLE: Final = r"(?:\w|%[0-9A-Fa-f]{2})(?:\.?(?:\w|%[0-9A-Fa-f]{2}))*(?::[1-9][0-9]{0,3}|\*)?"
_TEMPLATE: Final = (
    r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2}"
    rf"|\{{[+#./;?&]?{_VARIABLE}(?:,{_VARIABLE})*\}})+"
)


class Operator(Struct, frozen=True):
    """The syntax of one kind of expression when it is expanded."""

    #: The first character, unless the expansion is empty.
    leader: str
    #: The character between variables.
    separator: str
    #: Characters that the expansion cannot have. RFC 6570 allows only the separator, unreserved characters
    #: and escapes; clients leave more characters unescaped.
    stops: str
    #: Whether each value follows its variable's name.
    named: bool = False


#: RFC 6570, appendix A.
OPERATORS: Final = {
    "": Operator("", ",", "/?#"),
    "+": Operator("", ",", ""),
    "#": Operator("#", ",", ""),
    ".": Operator(".", ".", "/?#"),
    "/": Operator("/", "/", "?#"),
    ";": Operator(";", ";", "/?#", named=True),
    "?": Operator("?", "&", "#", named=True),
    "&": Operator("&", "&", "#", named=True),
}


class Variable(Struct, frozen=True):
    """One variable of an expression, with its modifier."""

    name: str
    explode: bool
    prefix: int | None

    def value(self, pieces: list[str]) -> Value:
        """The value in the *pieces* of an expansion without names."""
        if not self.explode:
            return _value([item for piece in pieces for item in piece.split(",")])
        if all("=" in piece for piece in pieces):
            return _mapping(piece.split("=", 1) for piece in pieces)
        return [_decoded(piece) for piece in pieces]


class Expression(Struct, frozen=True):
    """One expression, such as ``{?a,b*}``."""

    operator: Operator
    variables: tuple[Variable, ...]

    @property
    def exploded(self) -> list[Variable]:
        """The variables that may have several values."""
        return [variable for variable in self.variables if variable.explode]

    @property
    def stops(self) -> str:
        """Characters that its text cannot have."""
        # A single path segment has no "/".
        single = len(self.variables) == 1 and not self.exploded
        return "/" + self.operator.stops if single and self.operator.leader == "/" else self.operator.stops

    def ends(self, uri: str, fits: bytearray) -> list[int]:
        """
        By place in a URI: where the expansion ends that begins there, as early as it can; -1 if none begins.

        Args:
            uri:
                The whole URI.

            fits:
                By place: whether what follows in the template fits the URI from there to its end.
        """
        stops, ends, end = self.stops, [-1] * len(fits), -1
        for at, character in zip(range(len(uri), -1, -1), (" ", *reversed(uri)), strict=True):
            if fits[at]:
                end = at
            elif character in stops:
                end = -1
            ends[at] = end
        if not self.operator.leader:
            return ends
        # Without values it is nothing at all, else its leader comes first.
        places = _places(uri, self.operator.leader)
        begun = {at: ends[at + 1] for at in places if not fits[at] and self._begins(uri, at)}
        return [at if fit else begun.get(at, -1) for at, fit in enumerate(fits)]

    def _begins(self, uri: str, at: int) -> bool:
        if not self.operator.named or self.exploded:
            return True
        # A whole name has to follow: another "?" may precede it.
        names = (variable.name for variable in self.variables if uri.startswith(variable.name, at + 1))
        return any(not _IN_NAME.match(uri, at + 1 + len(name)) for name in names)

    def values(self, text: str) -> Iterator[tuple[Variable, Value]]:
        """The values of the variables in *text*. Raises ValueError if *text* is not an expansion."""
        separator = self.operator.separator
        if self.operator.named:
            return self._named(pair for pair in text.split(separator) if pair)
        is_one = len(self.variables) == 1 and not self.exploded
        return self._unnamed([text] if is_one else text.split(separator))

    def _unnamed(self, pieces: list[str]) -> Iterator[tuple[Variable, Value]]:
        surplus = max(len(pieces) - len(self.variables), 0)
        if surplus and len(self.exploded) != 1:
            raise ValueError(pieces)
        rest = iter(pieces)
        for variable in self.variables:
            if taken := list(islice(rest, 1 + surplus * variable.explode)):
                yield variable, variable.value(taken)

    def _named(self, pairs: Iterable[str]) -> Iterator[tuple[Variable, Value]]:
        known = {variable.name: variable for variable in self.variables}
        given: dict[str, list[str]] = {}
        others: list[list[str]] = []
        for pair in pairs:
            name, _, value = pair.partition("=")
            if name in known:
                given.setdefault(name, []).append(value)
            else:
                others.append([name, value])
        if others:
            (taker,) = self.exploded  # raises ValueError if there are none or several
            own = [[taker.name, value] for value in given.pop(taker.name, ())]
            yield taker, _mapping(own + others)
        for name, values in given.items():
            if known[name].explode:
                yield known[name], [_decoded(value) for value in values]
            else:
                yield known[name], _value([item for value in values for item in value.split(",")])


@attrs.frozen
class URITemplate:
    """
    A parsed URI template.

    `match` reverses expansion. Where an expansion is ambiguous,

    - an empty variable of ``{a}`` or ``{+a}`` is read as left out;
    - of several variables without names, as in ``{a,b}``, the last ones are read as left out;
    - ``{a:3}`` gives the beginning of the value;
    - without ``*``, as in ``{?a}``, one value is read as text, several or a mapping as a list. With ``*`` the
      value is always a list or a mapping;
    - in ``{+a}`` and ``{#a}`` a comma separates values, and whatever looks like an escape is one;
    - where the next expression can begin within the current one, as in ``{a}{b}`` or ``{a}.{b}``,
      each is as short as possible;
    - a pair that could belong to several exploded variables, as in ``{?a*,b*}``, and has the name of
      none of them, matches nothing.

    Args:
        text:
            The template.

    Raises:
        ValueError: If *text* is not a URI template.

    See Also:
        https://www.rfc-editor.org/rfc/rfc6570
    """

    text: str

    def __attrs_post_init__(self) -> None:
        if not is_template(self.text):
            msg = (
                f"{self.text!r} is not a URI template: write the characters of a URI, and variables in braces"
            )
            raise ValueError(msg)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of its variables, in their order."""
        expressions = [part for part in self._parts if isinstance(part, Expression)]
        return tuple(dict.fromkeys(v.name for part in expressions for v in part.variables))

    def match(self, uri: str) -> dict[str, Value] | None:
        """
        The variables that *uri* is an expansion of, or None if it does not match, or is too long.

        Named pairs may come in any order, and characters may be unescaped where that is unambiguous.
        Unknown names, broken escapes and bytes that are not UTF-8 do not match.
        """
        if len(uri) > MAX_URI_LENGTH or _BAD_ESCAPE.search(uri):
            return None
        try:
            return _merged(pair for part, text in self._texts(uri) for pair in part.values(text))
        except ValueError:
            return None

    def _texts(self, uri: str) -> Iterator[tuple[Expression, str]]:
        """The expressions that *uri* has, each with its text. Raises ValueError if it does not match."""
        parts = list(self._parts)
        if isinstance(first := parts[0], str):  # of many templates, nearly all differ here
            if not uri.startswith(first):
                raise ValueError(uri)
            uri = uri.removeprefix(first)
            del parts[0]
        fits = bytearray(len(uri)) + b"\1"  # the end of the template fits the end of the URI alone
        found: list[tuple[str | Expression, list[int]]] = []
        for part in reversed(parts):
            ends = _literal_ends(part, uri, fits) if isinstance(part, str) else part.ends(uri, fits)
            found.append((part, ends))
            fits = bytearray(map((-1).__lt__, ends))
        if not fits[0]:
            raise ValueError(uri)
        at = 0
        for part, ends in reversed(found):
            if isinstance(part, Expression) and ends[at] > at:
                yield part, uri[at + len(part.operator.leader) : ends[at]]
            at = ends[at]

    @cached_property
    def _parts(self) -> tuple[str | Expression, ...]:
        return tuple(_parsed(self.text))


def _literal_ends(literal: str, uri: str, fits: bytearray) -> list[int]:
    """The same as of an expression."""
    size = len(literal)
    found = {at: at + size for at in _places(uri, literal) if fits[at + size]}
    return [found.get(at, -1) for at in range(len(fits))]


def _places(uri: str, text: str) -> Iterator[int]:
    """All places in *uri* where *text* stands."""
    at = uri.find(text)
    while at >= 0:
        yield at
        at = uri.find(text, at + 1)


def is_template(text: str) -> bool:
    """Whether *text* is a URI template, or the end of one."""
    return re.fullmatch(_TEMPLATE, text, re.ASCII) is not None


def expanded(template: str, values: Mapping[str, Any]) -> str:
    """
    Return the URI that a template makes of values.

    Args:
        template:
            A URI template.

        values:
            The values of its variables, of any type that can be written. What is None is left out.

    Raises:
        TypeError: If a value cannot be written.
    """
    from uritemplate import expand

    return expand(template, {name: _as_text(value) for name, value in values.items()})


def _as_text(value: Any) -> Any:
    """*value* as `uritemplate` takes it: text, or lists and mappings of text, without None."""
    if isinstance(value, set | frozenset):
        return sorted(map(str, map(_as_text, value)))
    if isinstance(value, list | tuple):
        return [_as_text(item) for item in value if item is not None]
    if isinstance(value, Mapping):
        return {str(key): _as_text(item) for key, item in value.items() if item is not None}
    return None if value is None else text_of(value)


def _parsed(text: str) -> Iterator[str | Expression]:
    """The literals and expressions of a template."""
    import uritemplate

    for expression in uritemplate.URITemplate(text).variables:
        literal, _, text = text.partition(f"{{{expression.original}}}")
        if literal:
            yield literal
        operator = OPERATORS[expression.operator.value]
        modified: list[tuple[str, Any]] = expression.variables
        variables = (Variable(name, options["explode"], options["prefix"]) for name, options in modified)
        yield Expression(operator, tuple(variables))
    if text:
        yield text


def _merged(pairs: Iterable[tuple[Variable, Value]]) -> dict[str, Value]:
    """The values by name. Raises ValueError if a variable occurs twice with different values."""
    found: dict[str, Value] = {}
    for variable, value in sorted(pairs, key=lambda pair: pair[0].prefix is not None):  # whole values first
        whole = found.setdefault(variable.name, value)
        if (whole[: variable.prefix] if isinstance(whole, str) else whole) != value:
            raise ValueError(variable.name)
    return found


def _value(items: list[str]) -> Value:
    return _decoded(items[0]) if len(items) == 1 else [_decoded(item) for item in items]


def _mapping(pairs: Iterable[list[str]]) -> dict[str, str]:
    decoded = [(_decoded(key), _decoded(value)) for key, value in pairs]
    found = dict(decoded)
    if len(found) != len(decoded):
        raise ValueError(decoded)
    return found


def _decoded(text: str) -> str:
    return unquote_to_bytes(text).decode() if "%" in text or not text.isascii() else text

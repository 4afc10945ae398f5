"""
URI templates: extracting the variables from a URI, which reverses the expansion of its template.

First, a URI is divided among the expressions of its template, such as ``{?a,b*}``, from its end to its start
and in linear time. Then the text of each expression is split according to the rules of its operator.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Any, Final, TypeAlias
from urllib.parse import quote, unquote_to_bytes

import attrs
from msgspec import Struct

from promptkit.types.unstructuring import text_of

#: The value of a variable.
Value: TypeAlias = str | list[str] | dict[str, str]

#: Maximum number of characters in a URI. Browsers and servers accept only far shorter URIs.
MAX_URI_LENGTH: Final = 65_536

#: Characters that URIs can contain unescaped, as well as letters, digits and ``_.-~`` (RFC 3986, section 2).
URI_PUNCTUATION: Final = "%:/?#[]@!$&'()*+,;="

_ESCAPE: Final = re.compile("%[0-9A-Fa-f]{2}")
_BAD_ESCAPE: Final = re.compile("%(?![0-9A-Fa-f]{2})")

#: A character that can occur in the name of a variable.
_IN_NAME: Final = re.compile(r"[\w.%]")

#: One variable of an expression, and a whole template (RFC 6570, section 2). They are checked here because
#: `uritemplate` accepts any text.
_VARIABLE: Final = r"(?:\w|%[0-9A-Fa-f]{2})(?:\.?(?:\w|%[0-9A-Fa-f]{2}))*(?::[1-9][0-9]{0,3}|\*)?"
_TEMPLATE: Final = (
    r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2}"
    rf"|\{{[+#./;?&]?{_VARIABLE}(?:,{_VARIABLE})*\}})+"
)


class Operator(Struct, frozen=True):
    """The expansion syntax of one kind of expression."""

    #: The first character of a non-empty expansion.
    leader: str
    #: The character between variables.
    separator: str
    #: Characters that the expansion cannot contain. RFC 6570 allows only the separator, unreserved characters
    #: and escapes; clients leave more characters unescaped.
    forbidden: str
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
    """One variable in an expression, with its modifier."""

    name: str
    explode: bool
    prefix: int | None

    def value(self, pieces: list[str]) -> Value:
        """Return the value for the *pieces* of an expansion without names."""
        if not self.explode:
            return _value([item for piece in pieces for item in piece.split(",")])
        if all("=" in piece for piece in pieces):
            return _mapping(piece.split("=", 1) for piece in pieces)
        return [_decode(piece) for piece in pieces]


class Expression(Struct, frozen=True):
    """One expression in a template, such as ``{?a,b*}``."""

    operator: Operator
    variables: tuple[Variable, ...]

    @property
    def exploded(self) -> list[Variable]:
        """The variables that can have several values."""
        return [variable for variable in self.variables if variable.explode]

    @property
    def forbidden(self) -> str:
        """The characters that the text of the expression cannot contain."""
        # A single path segment contains no "/".
        single = len(self.variables) == 1 and not self.exploded
        return (
            "/" + self.operator.forbidden
            if single and self.operator.leader == "/"
            else self.operator.forbidden
        )

    def ends(self, uri: str, fits: bytearray) -> list[int]:
        """
        Return, for each position in a URI, the earliest end of an expansion that starts there (-1 for none).

        Args:
            uri:
                The whole URI.

            fits:
                For each position, whether the rest of the template matches the URI from there to its end.
        """
        forbidden, ends, end = self.forbidden, [-1] * len(fits), -1
        for at, character in zip(range(len(uri), -1, -1), (" ", *reversed(uri)), strict=True):
            if fits[at]:
                end = at
            elif character in forbidden:
                end = -1
            ends[at] = end
        if not self.operator.leader:
            return ends
        # If there are no values, the expansion is empty. Otherwise, it starts with the leader.
        positions = _positions(uri, self.operator.leader)
        started = {at: ends[at + 1] for at in positions if not fits[at] and self._can_start(uri, at)}
        return [at if fit else started.get(at, -1) for at, fit in enumerate(fits)]

    def _can_start(self, uri: str, at: int) -> bool:
        if not self.operator.named or self.exploded:
            return True
        # A complete variable name must follow; otherwise, this is another "?" in the URI.
        names = (variable.name for variable in self.variables if uri.startswith(variable.name, at + 1))
        return any(not _IN_NAME.match(uri, at + 1 + len(name)) for name in names)

    def values(self, text: str) -> Iterator[tuple[Variable, Value]]:
        """
        Yield the variables in *text* with their values. Raises ValueError if *text* is not an expansion.
        """
        separator = self.operator.separator
        if self.operator.named:
            return self._named_values(pair for pair in text.split(separator) if pair)
        is_one = len(self.variables) == 1 and not self.exploded
        return self._unnamed_values([text] if is_one else text.split(separator))

    def _unnamed_values(self, pieces: list[str]) -> Iterator[tuple[Variable, Value]]:
        surplus = max(len(pieces) - len(self.variables), 0)
        if surplus and len(self.exploded) != 1:
            raise ValueError(pieces)
        remaining = iter(pieces)
        for variable in self.variables:
            if variable_pieces := list(islice(remaining, 1 + surplus * variable.explode)):
                yield variable, variable.value(variable_pieces)

    def _named_values(self, pairs: Iterable[str]) -> Iterator[tuple[Variable, Value]]:
        by_name = {variable.name: variable for variable in self.variables}
        values_by_name: dict[str, list[str]] = {}
        unknown: list[list[str]] = []
        for pair in pairs:
            name, _, value = pair.partition("=")
            if name in by_name:
                values_by_name.setdefault(name, []).append(value)
            else:
                unknown.append([name, value])
        if unknown:
            (exploded,) = self.exploded  # raises ValueError unless there is exactly one
            own = [[exploded.name, value] for value in values_by_name.pop(exploded.name, ())]
            yield exploded, _mapping(own + unknown)
        for name, values in values_by_name.items():
            if by_name[name].explode:
                yield by_name[name], [_decode(value) for value in values]
            else:
                yield by_name[name], _value([item for value in values for item in value.split(",")])


@attrs.frozen
class URITemplate:
    """
    A parsed URI template.

    `match` reverses expansion. Ambiguous expansions are resolved as follows:

    - an empty variable in ``{a}`` or ``{+a}`` counts as missing;
    - if there are fewer values than variables, as can happen with ``{a,b}``, the last variables are missing;
    - for ``{a:3}``, only the start of the value is returned;
    - without ``*``, as in ``{?a}``, a single value is text, and several values or a mapping become a list.
      With ``*``, the value is always a list or a mapping;
    - in ``{+a}`` and ``{#a}``, a comma separates values, and anything that looks like an escape is decoded;
    - where the next expression can start within the current one, as in ``{a}{b}`` or ``{a}.{b}``, each
      expression matches as little text as possible;
    - if a pair could belong to several exploded variables, as in ``{?a*,b*}``, and has none of their names,
      the URI does not match.

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
                f"{self.text!r} is not a URI template: use characters that are valid in a URI, and "
                "variables in braces"
            )
            raise ValueError(msg)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the template's variables, in order."""
        expressions = [part for part in self._parts if isinstance(part, Expression)]
        return tuple(dict.fromkeys(v.name for part in expressions for v in part.variables))

    def match(self, uri: str) -> dict[str, Value] | None:
        """
        Return the variables that expand to *uri*, or None if *uri* does not match or is too long.

        Named pairs can be in any order, characters can be unescaped where that is unambiguous, and escapes
        can be in lowercase. URIs with unknown names, broken escapes or bytes that are not UTF-8 do not match.
        """
        uri = normalize_uri(uri)
        if len(uri) > MAX_URI_LENGTH or _BAD_ESCAPE.search(uri):
            return None
        try:
            return _merge(pair for part, text in self._texts(uri) for pair in part.values(text))
        except ValueError:
            return None

    def _texts(self, uri: str) -> Iterator[tuple[Expression, str]]:
        """
        Yield the template's expressions, each with its text in *uri*. Raises ValueError if nothing matches.
        """
        parts = list(self._parts)
        if isinstance(first := parts[0], str):  # most templates are ruled out here
            if not uri.startswith(first):
                raise ValueError(uri)
            uri = uri.removeprefix(first)
            del parts[0]
        fits = bytearray(len(uri)) + b"\1"  # the end of the template matches only the end of the URI
        parts_with_ends: list[tuple[str | Expression, list[int]]] = []
        for part in reversed(parts):
            ends = _literal_ends(part, uri, fits) if isinstance(part, str) else part.ends(uri, fits)
            parts_with_ends.append((part, ends))
            fits = bytearray(map((-1).__lt__, ends))
        if not fits[0]:
            raise ValueError(uri)
        position = 0
        for part, ends in reversed(parts_with_ends):
            if isinstance(part, Expression) and ends[position] > position:
                yield part, uri[position + len(part.operator.leader) : ends[position]]
            position = ends[position]

    @cached_property
    def _parts(self) -> tuple[str | Expression, ...]:
        return tuple(_parse(self.text))


def _literal_ends(literal: str, uri: str, fits: bytearray) -> list[int]:
    """Return, for a literal, what `Expression.ends` returns for an expression."""
    size = len(literal)
    ends = {at: at + size for at in _positions(uri, literal) if fits[at + size]}
    return [ends.get(at, -1) for at in range(len(fits))]


def _positions(uri: str, text: str) -> Iterator[int]:
    """Yield each position at which *text* occurs in *uri*."""
    at = uri.find(text)
    while at >= 0:
        yield at
        at = uri.find(text, at + 1)


def normalize_uri(uri: str) -> str:
    """
    Return *uri* with invalid characters escaped, and with all escapes in capital letters.

    See Also:
        https://www.rfc-editor.org/rfc/rfc3986#section-6.2.2.1
    """
    with_capitals = _ESCAPE.sub(lambda escape: escape[0].upper(), uri)
    return quote(with_capitals, safe=URI_PUNCTUATION, errors="surrogatepass")


def is_template(text: str) -> bool:
    """Return whether *text* is a URI template, or the end of one."""
    return re.fullmatch(_TEMPLATE, text, re.ASCII) is not None


def expand_template(template: str, values: Mapping[str, Any]) -> str:
    """
    Expand a template.

    Args:
        template:
            A URI template.

        values:
            The values of its variables, which can have any type that can be sent. Values that are None are
            omitted.

    Raises:
        TypeError: If a value cannot be sent.
    """
    from uritemplate import expand

    return expand(template, {name: _convert_value(value) for name, value in values.items()})


def _convert_value(value: Any) -> Any:
    """Convert *value* for `uritemplate`: to text, or to lists or mappings of text, without None."""
    if isinstance(value, set | frozenset):
        return sorted(map(str, map(_convert_value, value)))
    if isinstance(value, list | tuple):
        return [_convert_value(item) for item in value if item is not None]
    if isinstance(value, Mapping):
        return {str(key): _convert_value(item) for key, item in value.items() if item is not None}
    return None if value is None else text_of(value)


def _parse(text: str) -> Iterator[str | Expression]:
    """Yield the literals and expressions of a template."""
    import uritemplate

    for expression in uritemplate.URITemplate(text).variables:
        literal, _, text = text.partition(f"{{{expression.original}}}")
        if literal:
            yield normalize_uri(literal)
        operator = OPERATORS[expression.operator.value]
        modified: list[tuple[str, Any]] = expression.variables
        variables = (Variable(name, options["explode"], options["prefix"]) for name, options in modified)
        yield Expression(operator, tuple(variables))
    if text:
        yield normalize_uri(text)


def _merge(pairs: Iterable[tuple[Variable, Value]]) -> dict[str, Value]:
    """Return the variables' values by name. Raises ValueError if a variable has two different values."""
    values: dict[str, Value] = {}
    for variable, value in sorted(pairs, key=lambda pair: pair[0].prefix is not None):  # whole values first
        known = values.setdefault(variable.name, value)
        if (known[: variable.prefix] if isinstance(known, str) else known) != value:
            raise ValueError(variable.name)
    return values


def _value(items: list[str]) -> Value:
    return _decode(items[0]) if len(items) == 1 else [_decode(item) for item in items]


def _mapping(pairs: Iterable[list[str]]) -> dict[str, str]:
    decoded = [(_decode(key), _decode(value)) for key, value in pairs]
    mapping = dict(decoded)
    if len(mapping) != len(decoded):
        raise ValueError(decoded)
    return mapping


def _decode(text: str) -> str:
    return unquote_to_bytes(text).decode() if "%" in text or not text.isascii() else text

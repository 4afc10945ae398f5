"""Expressions of a URI template, such as ``{?a,b*}``: where they can occur in a URI, and their values."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, TypeAlias

from msgspec import Struct

from promptkit.catalog.uri_positions import ScannedURI

__all__ = ["OPERATORS", "Expression", "Value", "Variable"]

#: The value of a variable.
Value: TypeAlias = str | list[str] | dict[str, str]

#: The characters of a variable's name.
_NAME: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.%"


class Operator(Struct, frozen=True):
    """
    The syntax of one kind of expression when it is expanded.

    Args:
        leader:
            The first character, unless the expansion is empty.

        separator:
            The character between variables.

        stops:
            Characters that the expansion cannot have. RFC 6570 allows only the separator,
            unreserved characters and escapes; clients leave more characters unescaped.

        named:
            Whether each value follows its variable's name.
    """

    leader: str
    separator: str
    stops: str
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
        """The variables that may have any number of values."""
        return [variable for variable in self.variables if variable.explode]

    @property
    def stops(self) -> str:
        """Characters that its text cannot have."""
        # A single path segment has no "/".
        single = len(self.variables) == 1 and not self.exploded
        return "/" + self.operator.stops if single and self.operator.leader == "/" else self.operator.stops

    def openings(self, uri: ScannedURI) -> int:
        """
        Positions where its first character is.

        In an expression with names, a whole name has to follow: another ``?`` may precede it.
        """
        leader = self.operator.leader
        if not self.operator.named or self.exploded:
            return uri.literal(leader) if leader else uri.characters | 1
        found, no_name = 0, (uri.characters | 1) & ~uri.any_of(_NAME)
        for variable in self.variables:
            begin = leader + variable.name
            found |= uri.literal(begin) & (no_name << len(begin))
        return found

    def starts(self, uri: ScannedURI, ends: int) -> int:
        """Positions in *uri* where it can begin if it ends at one of *ends*. It may be absent."""
        inside = uri.without(self.stops, ends)
        return ends | (self.openings(uri) & (inside << len(self.operator.leader)))

    def text(self, uri: ScannedURI, start: int, ends: int) -> tuple[str | None, int]:
        """The shortest text that it can have at *start*, None if it is absent, and its end."""
        if uri.holds(ends, start) or not uri.holds(self.openings(uri), start):
            return None, start
        begin = start + len(self.operator.leader)
        end = uri.first(ends, begin)
        return uri.text[begin:end], end

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


def _value(items: list[str]) -> Value:
    return _decoded(items[0]) if len(items) == 1 else [_decoded(item) for item in items]


def _mapping(pairs: Iterable[list[str]]) -> dict[str, str]:
    decoded = [(_decoded(key), _decoded(value)) for key, value in pairs]
    found = dict(decoded)
    if len(found) != len(decoded):
        raise ValueError(decoded)
    return found


def _decoded(text: str) -> str:
    if "%" not in text and text.isascii():
        return text
    from promptkit.conversion.escapes import unescaped

    return unescaped(text).decode()

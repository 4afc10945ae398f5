"""Expressions of a URI template, ``{?a,b*}``: where in a URI they may stand, and what they say there."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, TypeAlias

from msgspec import Struct

from promptkit.catalog.uri_positions import ScannedURI

__all__ = ["OPERATORS", "Expression", "Value", "Variable"]

#: What a variable stands for in a URI.
Value: TypeAlias = str | list[str] | dict[str, str]

#: What continues a name.
_NAME: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.%"


class Operator(Struct, frozen=True):
    """
    How the expansion of one kind of expression looks.

    Args:
        leader:
            What it begins with, unless nothing is there.

        separator:
            What stands between the variables.

        stops:
            What it cannot hold. Strictly it holds little but the separator, unreserved
            characters and escapes; clients leave more as it is.

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
    """
    One variable of an expression, and its modifier.
    """

    name: str
    explode: bool
    prefix: int | None

    def value(self, pieces: list[str]) -> Value:
        """
        Return what *pieces* of an expansion without names stand for.
        """
        if not self.explode:
            return _value([item for piece in pieces for item in piece.split(",")])
        if all("=" in piece for piece in pieces):
            return _mapping(piece.split("=", 1) for piece in pieces)
        return [_decoded(piece) for piece in pieces]


class Expression(Struct, frozen=True):
    """
    One expression: ``{?a,b*}``.
    """

    operator: Operator
    variables: tuple[Variable, ...]

    @property
    def exploded(self) -> list[Variable]:
        """
        The variables that may have any number of values.
        """
        return [variable for variable in self.variables if variable.explode]

    @property
    def stops(self) -> str:
        """
        What its text cannot hold. A single segment holds no ``/``.
        """
        single = len(self.variables) == 1 and not self.exploded
        return "/" + self.operator.stops if single and self.operator.leader == "/" else self.operator.stops

    def openings(self, uri: ScannedURI) -> int:
        """
        Return where what it begins with stands.

        A name has to follow where there are names, so that a ``?`` before it is not taken for it.
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
        """
        Return where in *uri* it may begin, for it to end where *ends* says. It may be absent.
        """
        inside = uri.without(self.stops, ends)
        return ends | (self.openings(uri) & (inside << len(self.operator.leader)))

    def text(self, uri: ScannedURI, start: int, ends: int) -> tuple[str | None, int]:
        """
        Return the shortest text that it may have at *start*, None if it is absent, and where that ends.
        """
        if uri.holds(ends, start) or not uri.holds(self.openings(uri), start):
            return None, start
        begin = start + len(self.operator.leader)
        end = uri.first(ends, begin)
        return uri.text[begin:end], end

    def values(self, text: str) -> Iterator[tuple[Variable, Value]]:
        """
        Yield the value of each variable that *text* holds. Raises ValueError if it is no expansion.
        """
        separator = self.operator.separator
        if self.operator.named:
            return self._named(pair for pair in text.split(separator) if pair)
        is_one = len(self.variables) == 1 and not self.exploded
        return self._unnamed([text] if is_one else text.split(separator))

    def _unnamed(self, pieces: list[str]) -> Iterator[tuple[Variable, Value]]:
        """
        Yield values that stand in the order of their variables.
        """
        surplus = max(len(pieces) - len(self.variables), 0)
        if surplus and len(self.exploded) != 1:
            raise ValueError(pieces)
        rest = iter(pieces)
        for variable in self.variables:
            if taken := list(islice(rest, 1 + surplus * variable.explode)):
                yield variable, variable.value(taken)

    def _named(self, pairs: Iterable[str]) -> Iterator[tuple[Variable, Value]]:
        """
        Yield values that stand behind their variables' names, in any order.
        """
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
            (taker,) = self.exploded  # raises ValueError: there is none, or any of several
            own = [[taker.name, value] for value in given.pop(taker.name, ())]
            yield taker, _mapping(own + others)
        for name, values in given.items():
            if known[name].explode:
                yield known[name], [_decoded(value) for value in values]
            else:
                yield known[name], _value([item for value in values for item in value.split(",")])


def _value(items: list[str]) -> Value:
    """
    Return *items* decoded, one alone as text.
    """
    return _decoded(items[0]) if len(items) == 1 else [_decoded(item) for item in items]


def _mapping(pairs: Iterable[list[str]]) -> dict[str, str]:
    """
    Return *pairs* decoded. Raises ValueError if a key comes twice.
    """
    decoded = [(_decoded(key), _decoded(value)) for key, value in pairs]
    found = dict(decoded)
    if len(found) != len(decoded):
        raise ValueError(decoded)
    return found


def _decoded(text: str) -> str:
    """
    Return *text* without its escapes. Raises ValueError if they do not spell UTF-8.
    """
    if "%" not in text and text.isascii():
        return text
    from promptkit.conversion.escapes import unescaped

    return unescaped(text).decode()

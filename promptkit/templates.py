"""
URI templates: from a URI back to the variables that its template was expanded with.

A template becomes literals and expressions. Where in a URI each of them may stand is worked out
from the end to the beginning, once for each character and each part, so that no URI, however
it is made, takes long. Then each expression's text is split by the rules of its operator.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, TypeAlias

import attrs
from msgspec import Struct

__all__ = ["Template", "Value", "is_template"]

#: What a variable stands for in a URI.
Value: TypeAlias = str | list[str] | dict[str, str]

#: One variable in an expression, and a whole template (RFC 6570, section 2). The library that
#: expands templates takes whatever it is given, so what is none has to be found here.
_VARIABLE: Final = r"(?:\w|%[0-9A-Fa-f]{2})(?:\.?(?:\w|%[0-9A-Fa-f]{2}))*(?::[1-9][0-9]{0,3}|\*)?"
_TEMPLATE: Final = (
    r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2}"
    rf"|\{{[+#./;?&]?{_VARIABLE}(?:,{_VARIABLE})*\}})+"
)

_BAD_ESCAPE: Final = "%(?![0-9A-Fa-f]{2})"


class _Operator(Struct, frozen=True):
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
_OPERATORS: Final = {
    "": _Operator("", ",", "/?#"),
    "+": _Operator("", ",", ""),
    "#": _Operator("#", ",", ""),
    ".": _Operator(".", ".", "/?#"),
    "/": _Operator("/", "/", "?#"),
    ";": _Operator(";", ";", "/?#", named=True),
    "?": _Operator("?", "&", "#", named=True),
    "&": _Operator("&", "&", "#", named=True),
}


class _Variable(Struct, frozen=True):
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


class _Expression(Struct, frozen=True):
    """
    One expression: ``{?a,b*}``.
    """

    operator: _Operator
    variables: tuple[_Variable, ...]

    @property
    def opening(self) -> re.Pattern[str]:
        """
        What it begins with.

        A name has to follow where there are names, so that a ``?`` before it is not taken for it.
        """
        leader = re.escape(self.operator.leader)
        if not self.operator.named or self.exploded:
            return re.compile(leader)
        names = "|".join(re.escape(variable.name) for variable in self.variables)
        return re.compile(rf"{leader}(?=(?:{names})(?![\w.%]))", re.ASCII)

    @property
    def exploded(self) -> list[_Variable]:
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

    def starts(self, uri: str, ends: bytearray) -> bytearray:
        """
        Return where in *uri* it may begin, for it to end where *ends* says.
        """
        inside, stops = bytearray(ends), self.stops
        for at in range(len(uri) - 1, -1, -1):
            if inside[at + 1] and uri[at] not in stops:
                inside[at] = 1
        starts = bytearray(ends)  # it may be absent
        for found in self.opening.finditer(uri):
            starts[found.start()] |= inside[found.end()]
        return starts

    def text(self, uri: str, start: int, ends: bytearray) -> tuple[str | None, int]:
        """
        Return the shortest text that it may have at *start*, None if it is absent, and where that ends.
        """
        opening = self.opening.match(uri, start)
        if ends[start] or opening is None:
            return None, start
        end = ends.find(1, opening.end())
        return uri[opening.end() : end], end

    def values(self, text: str) -> Iterator[tuple[_Variable, Value]]:
        """
        Yield the value of each variable that *text* holds. Raises ValueError if it is no expansion.
        """
        separator = self.operator.separator
        if self.operator.named:
            return self._named(pair for pair in text.split(separator) if pair)
        is_one = len(self.variables) == 1 and not self.exploded
        return self._unnamed([text] if is_one else text.split(separator))

    def _unnamed(self, pieces: list[str]) -> Iterator[tuple[_Variable, Value]]:
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

    def _named(self, pairs: Iterable[str]) -> Iterator[tuple[_Variable, Value]]:
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
    from urllib.parse import unquote_to_bytes

    return unquote_to_bytes(text).decode()


@attrs.frozen
class Template:
    """
    A URI template, to read URIs with.

    `match` undoes expansion as far as an expansion says what it was made from. It does not say

    - whether a variable of ``{a}`` or ``{+a}`` was empty or left out: it comes back as left out;
    - which of several variables without names were left out, as in ``{a,b}``: the last ones are;
    - what ``{a:3}`` cut off: the beginning comes back;
    - that text was a list of one, or a list written without ``*`` a mapping: ``{?a}`` gives text
      for one value, and else a list. With ``*`` it is always a list, or a mapping;
    - what reserved characters were for, in ``{+a}`` and ``{#a}``: a comma separates, and what looks
      like an escape is one;
    - where one expression ends and the next begins, if the first may hold what the next begins
      with, as in ``{a}{b}`` or ``{a}.{b}``: each is as short as it can be;
    - which of several exploded variables with names, as in ``{?a*,b*}``, a pair belongs to that
      bears the name of neither: nothing matches.

    Args:
        text:
            The template.

    Raises:
        ValueError: If *text* is no template.

    See Also:
        https://www.rfc-editor.org/rfc/rfc6570
    """

    text: str
    names: tuple[str, ...] = attrs.field(init=False, eq=False, repr=False)
    _parts: tuple[str | _Expression, ...] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if not is_template(self.text):
            msg = f"{self.text!r} is no URI template: use what a URI may hold, and variables in braces"
            raise ValueError(msg)
        parts = tuple(_parsed(self.text))
        names = [v.name for part in parts if isinstance(part, _Expression) for v in part.variables]
        object.__setattr__(self, "_parts", parts)
        object.__setattr__(self, "names", tuple(dict.fromkeys(names)))

    def match(self, uri: str) -> dict[str, Value] | None:
        """
        Return the variables that *uri* is the template's expansion for, or None if it is none.

        Pairs may stand in any order, and what a client did not escape is taken as it is where
        it can mean nothing else. A name that the template does not have, an escape that is none
        and bytes that are no UTF-8 match nothing.
        """
        if re.search(_BAD_ESCAPE, uri):
            return None
        texts = self._texts(uri)
        if texts is None:
            return None
        try:
            return _agreed(pair for expression, text in texts for pair in expression.values(text))
        except ValueError:
            return None

    def _texts(self, uri: str) -> list[tuple[_Expression, str]] | None:
        """
        Return each expression that is present in *uri*, and its text; None if *uri* does not fit.
        """
        starts = bytearray(len(uri) + 1)
        starts[-1] = 1
        places = [starts]
        for part in reversed(self._parts):
            starts = _starts(part, uri, places[-1])
            places.append(starts)
        if not starts[0]:
            return None
        at, texts = 0, []
        for part, ends in zip(self._parts, reversed(places[:-1]), strict=True):
            if isinstance(part, str):
                at += len(part)
                continue
            text, at = part.text(uri, at, ends)
            if text is not None:
                texts.append((part, text))
        return texts


def is_template(text: str) -> bool:
    """
    Return whether *text* is a URI template, or the end of one.
    """
    return re.fullmatch(_TEMPLATE, text, re.ASCII) is not None


def _parsed(text: str) -> Iterator[str | _Expression]:
    """
    Yield the literals and expressions of a template.
    """
    from uritemplate import URITemplate

    for expression in URITemplate(text).variables:
        literal, _, text = text.partition(f"{{{expression.original}}}")
        if literal:
            yield literal
        operator = _OPERATORS[expression.operator.value]
        modified: list[tuple[str, Any]] = expression.variables
        variables = (_Variable(name, options["explode"], options["prefix"]) for name, options in modified)
        yield _Expression(operator, tuple(variables))
    if text:
        yield text


def _starts(part: str | _Expression, uri: str, ends: bytearray) -> bytearray:
    """
    Return where in *uri* *part* may begin, for it to end where *ends* says.
    """
    if isinstance(part, _Expression):
        return part.starts(uri, ends)
    starts = bytearray(len(ends))
    at = uri.find(part)
    while at >= 0:
        starts[at] = ends[at + len(part)]
        at = uri.find(part, at + 1)
    return starts


def _agreed(pairs: Iterable[tuple[_Variable, Value]]) -> dict[str, Value]:
    """
    Return *pairs* by name. Raises ValueError if a variable that stands twice has two values.
    """
    found: dict[str, Value] = {}
    for variable, value in sorted(pairs, key=lambda pair: pair[0].prefix is not None):  # whole values first
        whole = found.setdefault(variable.name, value)
        if (whole[: variable.prefix] if isinstance(whole, str) else whole) != value:
            raise ValueError(variable.name)
    return found

"""
URI templates: from a URI back to the variables that its template was expanded with.

A template becomes literals and expressions. Where in a URI each of them may stand is worked out
from the end to the beginning, for all positions at once, so that no URI, however it is made, takes
long. Then each expression's text is split by the rules of its operator.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from promptkit.catalog.uri_expressions import OPERATORS, Expression, Value, Variable
from promptkit.catalog.uri_positions import ScannedURI

__all__ = ["URITemplate", "Value", "is_template"]

#: One variable in an expression, and a whole template (RFC 6570, section 2). The library that
#: expands templates takes whatever it is given, so what is none has to be found here.
_VARIABLE: Final = r"(?:\w|%[0-9A-Fa-f]{2})(?:\.?(?:\w|%[0-9A-Fa-f]{2}))*(?::[1-9][0-9]{0,3}|\*)?"
_TEMPLATE: Final = (
    r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2}"
    rf"|\{{[+#./;?&]?{_VARIABLE}(?:,{_VARIABLE})*\}})+"
)


@attrs.frozen
class URITemplate:
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
    _parts: tuple[str | Expression, ...] = attrs.field(init=False, eq=False, repr=False)
    _prefix: str = attrs.field(init=False, eq=False, repr=False)
    _suffix: str = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if not is_template(self.text):
            msg = f"{self.text!r} is no URI template: use what a URI may hold, and variables in braces"
            raise ValueError(msg)
        parts = tuple(_parsed(self.text))
        names = [v.name for part in parts if isinstance(part, Expression) for v in part.variables]
        object.__setattr__(self, "_parts", parts)
        object.__setattr__(self, "_prefix", parts[0] if isinstance(parts[0], str) else "")
        object.__setattr__(self, "_suffix", parts[-1] if isinstance(parts[-1], str) else "")
        object.__setattr__(self, "names", tuple(dict.fromkeys(names)))

    def match(self, uri: str) -> dict[str, Value] | None:
        """
        Return the variables that *uri* is the template's expansion for, or None if it is none.

        Pairs may stand in any order, and what a client did not escape is taken as it is where
        it can mean nothing else. A name that the template does not have, an escape that is none
        and bytes that are no UTF-8 match nothing.
        """
        return self.find(ScannedURI(uri))

    def find(self, uri: ScannedURI) -> dict[str, Value] | None:
        """
        Return what `match` does, for a URI that is held against more than one template.
        """
        text = uri.text
        if not (text.startswith(self._prefix) and text.endswith(self._suffix)) or uri.has_bad_escape:
            return None
        texts = self._texts(uri)
        if texts is None:
            return None
        try:
            return _agreed(pair for expression, text in texts for pair in expression.values(text))
        except ValueError:
            return None

    def _texts(self, uri: ScannedURI) -> list[tuple[Expression, str]] | None:
        """
        Return each expression that is present in *uri*, and its text; None if *uri* does not fit.
        """
        places = [1]  # the end
        for part in reversed(self._parts):
            places.append(_starts(part, uri, places[-1]))
            if not places[-1]:
                return None
        if not uri.holds(places[-1], 0):
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


def _parsed(text: str) -> Iterator[str | Expression]:
    """
    Yield the literals and expressions of a template.
    """
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


def _starts(part: str | Expression, uri: ScannedURI, ends: int) -> int:
    """
    Return where in *uri* *part* may begin, for it to end where *ends* says.
    """
    return uri.literal(part) & (ends << len(part)) if isinstance(part, str) else part.starts(uri, ends)


def _agreed(pairs: Iterable[tuple[Variable, Value]]) -> dict[str, Value]:
    """
    Return *pairs* by name. Raises ValueError if a variable that stands twice has two values.
    """
    found: dict[str, Value] = {}
    for variable, value in sorted(pairs, key=lambda pair: pair[0].prefix is not None):  # whole values first
        whole = found.setdefault(variable.name, value)
        if (whole[: variable.prefix] if isinstance(whole, str) else whole) != value:
            raise ValueError(variable.name)
    return found

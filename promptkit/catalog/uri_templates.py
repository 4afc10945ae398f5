"""
URI templates: reads the variables in a URI, as the reverse of expanding its template.

A template is a sequence of literals and expressions. From the last to the first, all positions
where each can begin are computed at once, so even a hostile URI is matched quickly. Then the text of each
expression is split by the rules of its operator.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from promptkit.catalog.uri_expressions import OPERATORS, Expression, Value, Variable
from promptkit.catalog.uri_positions import ScannedURI
from promptkit.conversion.unstructuring import text_of

__all__ = ["URITemplate", "Value", "expanded", "is_template"]

#: One variable of an expression, and a whole template (RFC 6570, section 2). They are checked here
#: because `uritemplate` accepts any text.
_VARIABLE: Final = r"(?:\w|%[0-9A-Fa-f]{2})(?:\.?(?:\w|%[0-9A-Fa-f]{2}))*(?::[1-9][0-9]{0,3}|\*)?"
_TEMPLATE: Final = (
    r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2}"
    rf"|\{{[+#./;?&]?{_VARIABLE}(?:,{_VARIABLE})*\}})+"
)


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
    names: tuple[str, ...] = attrs.field(init=False, eq=False, repr=False)
    _parts: tuple[str | Expression, ...] = attrs.field(init=False, eq=False, repr=False)
    _prefix: str = attrs.field(init=False, eq=False, repr=False)
    _suffix: str = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if not is_template(self.text):
            msg = (
                f"{self.text!r} is not a URI template: write the characters of a URI, and variables in braces"
            )
            raise ValueError(msg)
        parts = tuple(_parsed(self.text))
        names = [v.name for part in parts if isinstance(part, Expression) for v in part.variables]
        object.__setattr__(self, "_parts", parts)
        object.__setattr__(self, "_prefix", parts[0] if isinstance(parts[0], str) else "")
        object.__setattr__(self, "_suffix", parts[-1] if isinstance(parts[-1], str) else "")
        object.__setattr__(self, "names", tuple(dict.fromkeys(names)))

    def match(self, uri: str) -> dict[str, Value] | None:
        """
        The variables that *uri* is an expansion of, or None if it does not match.

        Named pairs may come in any order, and characters may be unescaped where that is unambiguous.
        Unknown names, broken escapes and bytes that are not UTF-8 do not match.
        """
        return self.find(ScannedURI(uri))

    def find(self, uri: ScannedURI) -> dict[str, Value] | None:
        """As `match`, for a URI that is matched against several templates."""
        text = uri.text
        if not (text.startswith(self._prefix) and text.endswith(self._suffix)) or uri.has_bad_escape:
            return None
        texts = self._texts(uri)
        if texts is None:
            return None
        try:
            return _merged(pair for expression, text in texts for pair in expression.values(text))
        except ValueError:
            return None

    def _texts(self, uri: ScannedURI) -> list[tuple[Expression, str]] | None:
        """Each expression that is present in *uri*, with its text; None if *uri* does not match."""
        places = [1]  # only the end of the URI
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


def _starts(part: str | Expression, uri: ScannedURI, ends: int) -> int:
    """Positions in *uri* where *part* can begin if it ends at one of *ends*."""
    return uri.literal(part) & (ends << len(part)) if isinstance(part, str) else part.starts(uri, ends)


def _merged(pairs: Iterable[tuple[Variable, Value]]) -> dict[str, Value]:
    """The values by name. Raises ValueError if a variable occurs twice with different values."""
    found: dict[str, Value] = {}
    for variable, value in sorted(pairs, key=lambda pair: pair[0].prefix is not None):  # whole values first
        whole = found.setdefault(variable.name, value)
        if (whole[: variable.prefix] if isinstance(whole, str) else whole) != value:
            raise ValueError(variable.name)
    return found

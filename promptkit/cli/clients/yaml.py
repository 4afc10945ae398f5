"""
Changing one key of a YAML text, with everything else left byte for byte.

ruamel.yaml tells where the keys and values stand, and writes the new lines.
"""

from io import StringIO
from itertools import chain
from typing import Any, Final, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from promptkit.cli.clients.errors import DocumentError
from promptkit.cli.clients.layout import nested, newline_of

__all__ = ["put", "read", "take"]


#: How long a text may be, as a second goes into that many characters, and how much its aliases may stand for.
_MAX_CHARACTERS: Final = 1 << 17
_MAX_VALUES: Final = 100_000


class _Pair(NamedTuple):
    """A key and its value."""

    key: Node
    value: Node


def read(text: str) -> dict[str, Any]:
    """
    Return what a text says; an empty mapping for an empty text.

    Raises:
        DocumentError: If it is no YAML mapping, is too long, or if its aliases stand for too much.
    """
    if len(text) > _MAX_CHARACTERS:
        msg = f"it has more than {_MAX_CHARACTERS:,} characters, which are too many to be read as YAML"
        raise DocumentError(msg)
    try:
        if "*" in text:
            _extent(_composed(text), {})
        data = YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        place = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        msg = f"this is not YAML: {error.problem or error.context}"
        raise DocumentError(msg, *place) from None
    except (YAMLError, ValueError) as error:
        msg = f"this is not YAML: {error}"
        raise DocumentError(msg) from None
    if data is not None and not isinstance(data, dict):
        msg = "it holds no mapping, so that a server has no place in it"
        raise DocumentError(msg)
    return data or {}


def _extent(node: Node | None, known: dict[int, int]) -> int:
    """How many values a node stands for, with those that its aliases repeat. Raises DocumentError."""
    if node is None or isinstance(node, ScalarNode):
        return 1
    size = known.get(id(node))
    if size is None:
        known[id(node)] = 0  # while what is in it is counted
        below = chain.from_iterable(node.value) if isinstance(node, MappingNode) else node.value
        size = known[id(node)] = 1 + sum(_extent(one, known) for one in below)
    if size == 0 or size > _MAX_VALUES:
        msg = f"its aliases stand for more than {_MAX_VALUES:,} values" if size else "it holds itself"
        raise DocumentError(msg)
    return size


def put(text: str, path: tuple[str, ...], value: Any) -> str:
    """
    Return a text with a key set, which is added behind the others if it is new.

    Args:
        text:
            What `read` takes.

        path:
            The keys that lead to the value. Mappings on the way are made.

        value:
            What it is set to.

    Raises:
        DocumentError: If something on the way is no mapping, or is written in braces.
    """
    return _put(text, _root(text), None, path, value)


def take(text: str, path: tuple[str, ...]) -> str:
    """
    Return a text without a key.

    Args:
        text:
            What `read` takes.

        path:
            The keys that lead to the value, which exists.

    Raises:
        DocumentError: If something on the way is no mapping, or is written in braces.
    """
    *above, name = path
    holder: _Pair | None = None
    pairs = _pairs(_root(text), name)
    for key in above:
        holder = _existing(pairs, key)
        pairs = _pairs(holder.value, name)
    pair = _existing(pairs, name)
    start = text.rfind("\n", 0, pair.key.start_mark.index) + 1
    end = _end_of_line(text, _end_of_pair(text, pair))
    if holder is not None and len(pairs) == 1:  # what held it is empty now
        colon = _behind_colon(text, holder.key)
        return f"{text[:colon]} {{}}{text[colon:start]}{text[end:]}"
    return text[:start] + text[end:]


def _put(text: str, at: Node | None, above: _Pair | None, path: tuple[str, ...], value: Any) -> str:
    name, *rest = path
    pairs = _pairs(at, name)
    indent = 0 if above is None else above.key.start_mark.column + 2
    if not pairs:
        return _filled(text, above, _dumped(nested(path, value), indent, text))
    indent = pairs[0].key.start_mark.column
    pair = _find(pairs, name)
    if pair is None:
        place = _end_of_line(text, _end_of_pair(text, pairs[-1]))
        return _joined(text[:place], _dumped(nested(path, value), indent, text), text[place:])
    if rest:
        return _put(text, pair.value, pair, tuple(rest), value)
    shown = _dumped({name: value}, indent, text).strip()
    return text[: pair.key.start_mark.index] + shown + text[_end_of_pair(text, pair) :]


def _root(text: str) -> Node | None:
    read(text)
    return _composed(text)


def _composed(text: str) -> Node | None:
    return YAML(typ="safe", pure=True).compose(StringIO(text, newline=""))  # type: ignore[no-any-return]


def _pairs(at: Node | None, name: str) -> list[_Pair]:
    """The keys of a mapping with their values; none if it is empty."""
    if at is None or (isinstance(at, ScalarNode) and at.tag == "tag:yaml.org,2002:null"):
        return []
    if not isinstance(at, MappingNode):
        msg = f"{name!r} has no place in it, as what should hold it is no mapping"
        raise DocumentError(msg)
    if at.flow_style and at.value:
        msg = f"{name!r} cannot be written into what stands in braces"
        raise DocumentError(msg)
    return [_Pair(*pair) for pair in at.value]


def _find(pairs: list[_Pair], name: str) -> _Pair | None:
    return next((pair for pair in pairs if pair.key.value == name), None)


def _existing(pairs: list[_Pair], name: str) -> _Pair:
    if (pair := _find(pairs, name)) is None:
        msg = f"it has no {name!r}"
        raise DocumentError(msg)
    return pair


def _end(text: str, node: Node) -> int:
    """Where a value ends, without the blanks and comments behind it."""
    if isinstance(node, MappingNode) and node.value and not node.flow_style:
        return _end_of_pair(text, _Pair(*node.value[-1]))
    if isinstance(node, SequenceNode) and node.value and not node.flow_style:
        return _end(text, node.value[-1])
    end: int = node.end_mark.index
    if isinstance(node, ScalarNode) and node.style in ("|", ">"):
        return len(text[:end].rstrip())
    return end


def _end_of_pair(text: str, pair: _Pair) -> int:
    # Where nothing is written, the mark is at what comes next.
    return _behind_colon(text, pair.key) if _is_unwritten(pair.value) else _end(text, pair.value)


def _is_unwritten(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.value == "" and not node.style


def _behind_colon(text: str, key: Node) -> int:
    return text.index(":", key.end_mark.index) + 1


def _end_of_line(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end + 1


def _filled(text: str, pair: _Pair | None, lines: str) -> str:
    """The text with lines for the value of a key that has none; without a key, for the whole text."""
    if pair is None:
        return _joined(text, lines, "")
    place = _behind_colon(text, pair.key)
    line, newline, behind = text[_end_of_pair(text, pair) :].partition("\n")
    return _joined(f"{text[:place]}{line}{newline}", lines, behind)


def _joined(before: str, lines: str, behind: str) -> str:
    gap = "" if not before or before.endswith("\n") else "\n"
    return f"{before}{gap}{lines}{behind}"


def _dumped(value: Any, indent: int, text: str) -> str:
    written = StringIO()
    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style = False
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # it says None
    writer.width = 1 << 20
    writer.allow_unicode = True
    writer.dump(value, written)
    lines = written.getvalue().splitlines()
    return "".join(f"{' ' * indent}{line}{newline_of(text)}" for line in lines)

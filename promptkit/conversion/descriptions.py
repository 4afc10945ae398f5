"""
What a type takes, in words that people understand, and an example where words are not enough.

It reads the tree that `msgspec.inspect` makes of a type.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import inspect as mi

__all__ = ["DECIMAL", "INTEGER_KEY", "bare", "example_of", "example_text", "expectation", "type_tree"]


#: An exact number as text, neither infinite nor none.
DECIMAL: Final = r"^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"

#: A whole number as the key of a JSON object.
INTEGER_KEY: Final = r"^(?:0|-?[1-9][0-9]{0,17})$"


def type_tree(annotation: Any) -> mi.Type:
    """
    Return *annotation* as a tree of what msgspec knows.

    Raises:
        TypeError: If it is a type, or a union of types, that msgspec does not know.
    """
    return bare(mi.type_info(annotation))


def bare(tree: mi.Type) -> mi.Type:
    """
    Return a type without what is only said about it, as its title.
    """
    return bare(tree.type) if isinstance(tree, mi.Metadata) else tree


def expectation(tree: mi.Type, custom: Mapping[type, str]) -> str:
    """
    Return what a type takes, to end a sentence: ``a whole number of at least 1``.

    Args:
        tree:
            The type.

        custom:
            The words for the types that authors have registered.
    """
    tree = bare(tree)
    if isinstance(tree, mi.CustomType):
        return custom.get(tree.cls, tree.cls.__name__)
    if isinstance(tree, mi.UnionType):
        members = (
            expectation(member, custom) for member in tree.types if not isinstance(member, mi.NoneType)
        )
        return " or ".join(dict.fromkeys(members))
    if isinstance(tree, mi.ListType | mi.SetType | mi.FrozenSetType | mi.VarTupleType):
        return f"a list{_length(tree, 'items')}{_of(tree.item_type, custom)}"
    words = _WORDS.get(type(tree))
    return words(tree) if words else "a value"


def _of(item: mi.Type, custom: Mapping[type, str]) -> str:
    """
    Return what the items of a list are, if that is worth saying.
    """
    plain = isinstance(item, mi.AnyType) or (isinstance(item, mi.StrType) and not _length(item, ""))
    return "" if plain else f", each {expectation(item, custom)}"


def _number(noun: str) -> Callable[[Any], str]:
    """
    Return the words for a number, with its bounds.
    """

    def words(tree: mi.IntType | mi.FloatType) -> str:
        if tree.ge is not None and tree.le is not None:
            return f"{noun} from {tree.ge} to {tree.le}"
        bounds = [
            f"{phrase} {bound}"
            for phrase, bound in (
                ("of at least", tree.ge),
                ("above", tree.gt),
                ("of at most", tree.le),
                ("below", tree.lt),
                ("that is a multiple of", tree.multiple_of),
            )
            if bound is not None
        ]
        return " ".join([noun, " and ".join(bounds)]).strip()

    return words


def _text(tree: mi.StrType) -> str:
    """
    Return the words for text, with its length and its pattern.
    """
    pattern = f" that matches {tree.pattern}" if tree.pattern else ""
    return f"text{_length(tree, 'characters')}{pattern}"


def _length(tree: Any, noun: str) -> str:
    """
    Return the bounds of a length, after a blank, if there are any.
    """
    least, most = tree.min_length, tree.max_length
    if least is None and most is None:
        return ""
    if least == most:
        return f" of {least} {noun}"
    bounds = [f"at least {least}"] if least is not None else []
    bounds += [f"at most {most}"] if most is not None else []
    return f" of {' and '.join(bounds)} {noun}"


def _record(tree: Any) -> str:
    """
    Return the words for an object with named members.
    """
    if getattr(tree, "array_like", False):
        return f"a list of {', '.join(field.name for field in tree.fields)}"
    return f"a JSON object with {', '.join(field.encode_name for field in tree.fields)}"


def _choice(tree: Any) -> str:
    """
    Return the words for a fixed set of values.
    """
    values = tree.values if isinstance(tree, mi.LiteralType) else [member.value for member in tree.cls]
    names = [str(value) for value in values if value is not None]
    return repr(names[0]) if len(names) == 1 else f"one of {', '.join(names)}"


def _moment(tree: mi.DateTimeType | mi.TimeType) -> str:
    """
    Return a moment, with an offset where it may, or must, have one.
    """
    clock = "12:00:00" if isinstance(tree, mi.TimeType) else "2026-01-31T12:00:00"
    if tree.tz is None:
        return f"{clock}Z" if isinstance(tree, mi.DateTimeType) else clock
    return f"{clock}+01:00" if tree.tz else clock


def _offset(tree: mi.DateTimeType | mi.TimeType) -> str:
    """
    Return what a type says of offsets, after a blank, and an example.
    """
    said = {True: " with an offset", False: " without an offset", None: ""}[tree.tz]
    return f"{said}, as in {_moment(tree)}"


_WORDS: Final[dict[type[mi.Type], Callable[[Any], str]]] = {
    mi.StrType: _text,
    mi.IntType: _number("a whole number"),
    mi.FloatType: _number("a number"),
    mi.BoolType: lambda _: "true or false",
    mi.NoneType: lambda _: "null",
    mi.BytesType: lambda tree: f"base64{_length(tree, 'bytes')}",
    mi.DecimalType: lambda _: "a number",
    mi.DateType: lambda _: "a date, as in 2026-01-31",
    mi.DateTimeType: lambda tree: f"a date and time{_offset(tree)}",
    mi.TimeType: lambda tree: f"a time of day{_offset(tree)}",
    mi.TimeDeltaType: lambda _: "a duration, as in PT1H30M",
    mi.UUIDType: lambda _: "a UUID",
    mi.EnumType: _choice,
    mi.LiteralType: _choice,
    mi.TupleType: lambda tree: f"a list of {len(tree.item_types)} items",
    mi.DictType: lambda tree: f"a JSON object{_length(tree, 'members')}",
    mi.TypedDictType: _record,
    mi.DataclassType: _record,
    mi.StructType: _record,
    mi.NamedTupleType: lambda tree: f"a list of {', '.join(field.name for field in tree.fields)}",
}

#: One value of each type that is a leaf, in JSON.
_EXAMPLES: Final[dict[type[mi.Type], Any]] = {
    mi.StrType: "text",
    mi.IntType: 1,
    mi.FloatType: 1.5,
    mi.BoolType: True,
    mi.BytesType: "aGVsbG8=",
    mi.DecimalType: "1.50",
    mi.DateType: "2026-01-31",
    mi.TimeDeltaType: "PT1H30M",
    mi.UUIDType: "12345678-1234-5678-1234-567812345678",
}


def example_of(tree: mi.Type, depth: int = 0) -> Any:  # noqa: C901, PLR0911 (a list of cases)
    """
    Return a value of a type, as JSON has it. Members that may be left out are left out.

    Args:
        tree:
            The type.

        depth:
            How deep in the example this value stands; a type that contains itself ends.
    """
    tree = bare(tree)
    if depth > 4:
        return None
    if isinstance(tree, mi.UnionType):
        return example_of(next(t for t in tree.types if not isinstance(t, mi.NoneType)), depth)
    if isinstance(tree, mi.LiteralType):
        return next(value for value in tree.values if value is not None)
    if isinstance(tree, mi.EnumType):
        return next(iter(tree.cls)).value
    if isinstance(tree, mi.DictType):
        return {str(example_of(tree.key_type, depth + 1)): example_of(tree.value_type, depth + 1)}
    if isinstance(tree, mi.TupleType):
        return [example_of(item, depth + 1) for item in tree.item_types]
    if isinstance(tree, mi.StructType) and tree.array_like:
        tags = [] if tree.tag is None else [tree.tag]
        return [*tags, *(example_of(field.type, depth + 1) for field in tree.fields)]
    if isinstance(tree, mi.NamedTupleType):
        return [example_of(field.type, depth + 1) for field in tree.fields]
    if isinstance(tree, mi.ListType | mi.SetType | mi.FrozenSetType | mi.VarTupleType):
        return [example_of(tree.item_type, depth + 1)]
    if isinstance(tree, mi.TypedDictType | mi.DataclassType | mi.StructType):
        tag = {tree.tag_field: tree.tag} if isinstance(tree, mi.StructType) and tree.tag_field else {}
        return tag | {f.encode_name: example_of(f.type, depth + 1) for f in tree.fields if f.required}
    if isinstance(tree, mi.IntType | mi.FloatType):
        return _number_example(tree)
    if isinstance(tree, mi.DateTimeType | mi.TimeType):
        return _moment(tree)
    return _EXAMPLES.get(type(tree), "text")


def _number_example(tree: mi.IntType | mi.FloatType) -> float:
    """
    Return a number within the bounds of its type, if they are as wide as they usually are.
    """
    if tree.multiple_of is not None:
        return tree.multiple_of
    if tree.ge is not None or tree.le is not None:
        return tree.ge if tree.ge is not None else tree.le or 0
    if tree.gt is not None or tree.lt is not None:
        return tree.gt + 1 if tree.gt is not None else (tree.lt or 0) - 1
    return _EXAMPLES[type(tree)]  # type: ignore[no-any-return]


def example_text(tree: mi.Type) -> str:
    """
    Return `example_of` *tree* as someone would enter it.
    """
    return msgspec.json.encode(example_of(tree)).decode()

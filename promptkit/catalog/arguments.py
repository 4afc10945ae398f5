"""Arguments of compiled prompts: metadata for clients, and the conversion of the values that they send."""

import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, get_args

import msgspec
from msgspec import Struct, structs

from promptkit.catalog.completion import Completer
from promptkit.errors.exceptions import ArgumentsError, InvalidArgument
from promptkit.errors.suggestions import nearest
from promptkit.language.annotations import NO_DEFAULT, Arg
from promptkit.types.conversion_reasons import invalid_value, reason_of, shortened
from promptkit.types.descriptions import default_clause, example_clause, join_description
from promptkit.types.errors import ABSENT, MAX_ERRORS, ConversionError
from promptkit.types.kinds import is_bytes, is_constrained, is_list, is_nullable, unwrap_type
from promptkit.types.scalar_parsers import ReadFunction, has_more_values
from promptkit.types.scalar_types import Reader
from promptkit.types.schemas import Definitions, add_description, type_schema
from promptkit.types.unstructuring import can_be_sent, json_of, text_of


class Argument(Struct, frozen=True):
    """
    One argument of a compiled prompt, with its metadata for clients and the reader for its values.

    Args:
        name:
            The parameter's name.

        annotation:
            The parameter's type.

        default:
            The default in the function's signature; `NO_DEFAULT` if it has none.

        reader:
            Converts the values that clients send.

        title:
            A display name, if the author declared one.

        description:
            What users should enter.

        arg:
            The author's `Arg` declaration.

        completer:
            Completes the argument's values, if the author or the type provides completions.
    """

    name: str
    annotation: Any
    default: Any
    reader: Reader
    title: str | None
    description: str | None
    arg: Arg
    completer: Completer | None = None

    @property
    def has_default(self) -> bool:
        """Whether the function's signature has a default, regardless of any environment variable."""
        return self.default is not NO_DEFAULT

    @property
    def required(self) -> bool:
        """Whether clients must send the argument, because it has no default and no environment variable."""
        return self.default is NO_DEFAULT and self.arg.env is None

    @property
    def examples(self) -> list[Any]:
        """The author's examples that a client could send."""
        return list(filter(can_be_sent, self.arg.examples))

    @property
    def default_text(self) -> str | None:
        """
        The value of the argument's environment variable, as a client would send it; None if it has no value.
        """
        text = os.environ.get(self.arg.env) if self.arg.env else None
        if not (text or self.blank_is_value):
            return None
        # A variable can contain any bytes; invalid ones are replaced, as in text from clients.
        return text and text.encode(errors="replace").decode()

    @property
    def blank_is_value(self) -> bool:
        """
        Whether ``""`` counts as a value for the argument.

        Clients send empty form fields as ``""``, which means "not given" for all types except strings.
        """
        return takes_blank(self.annotation)

    @property
    def takes_bytes(self) -> bool:
        """Whether users provide the argument's value as one or several files."""
        core = unwrap_type(self.annotation, core=True)
        return is_bytes(core) or (is_list(core) and is_bytes(unwrap_type(get_args(core)[0], core=True)))

    def errors_of(self, value: Any, error: ConversionError) -> Iterator[InvalidArgument]:
        """Yield one error for each invalid part of *value*. The errors do not repeat secret values."""
        for part in error.parts:
            expected = part.expected or self.reader.expected
            yield InvalidArgument(
                self.name,
                reason_of(part, value, expected, secret=self.arg.secret),
                expected if part.reason is None else None,
                None if self.arg.secret else part.nearest,
                "" if self.arg.secret else part.path,  # a path can contain keys that the client sent
                None if self.arg.secret or part.got is ABSENT else shortened(invalid_value(part, value)),
                () if part.path else self.reader.values,
            )


def takes_blank(annotation: Any) -> bool:
    """Return whether ``""`` counts as a value of this type. For other types, ``""`` means "not given"."""
    return unwrap_type(annotation) is str or (
        is_constrained(annotation) and unwrap_type(annotation.__origin__) is str
    )


class Arguments(Struct, frozen=True):
    """
    The arguments of one prompt, or the variables of one resource.

    Args:
        owner:
            The name of the prompt or resource, for errors.

        ordered:
            The arguments, in the order of the signature.

        kind:
            The kind of *owner*: ``prompt``, ``resource`` or ``tool``.
    """

    owner: str
    ordered: tuple[Argument, ...]
    kind: str = "prompt"
    by_name: Mapping[str, Argument] = {}
    secret: frozenset[str] = frozenset()
    _readers: Mapping[str, ReadFunction] = {}
    _required: tuple[str, ...] = ()
    _unfilled: Mapping[str, str] = {}
    _in_environment: tuple[Argument, ...] = ()

    def __post_init__(self) -> None:
        ordered = self.ordered
        for field, value in (
            ("by_name", {argument.name: argument for argument in ordered}),
            ("secret", frozenset(argument.name for argument in ordered if argument.arg.secret)),
            ("_readers", {argument.name: argument.reader.read for argument in ordered}),
            ("_required", tuple(argument.name for argument in ordered if argument.required)),
            # Some clients send "$2" for the second argument if the user has not typed it.
            ("_unfilled", {each.name: f"${n}" for n, each in enumerate(ordered, 1) if not each.required}),
            ("_in_environment", tuple(argument for argument in ordered if argument.arg.env)),
        ):
            structs.force_setattr(self, field, value)

    @property
    def required(self) -> frozenset[str]:
        """The names of all arguments that clients must send."""
        return frozenset(self._required)

    @property
    def examples(self) -> Sequence[Mapping[str, Any]]:
        """
        The argument values of each example call; empty if a required argument has no example.

        The first call passes only the required arguments. It is followed by as many calls as the argument
        with the most examples has: the Nth of these calls passes the Nth example of each argument, or the
        first example of an argument that has fewer. Optional arguments without examples are omitted.
        """
        examples = {argument.name: argument.examples for argument in self.ordered}
        # Defaults from environment variables differ between machines, so such arguments need an example.
        needed = [argument.name for argument in self.ordered if not argument.has_default]
        if not all(examples[name] for name in needed):
            return ()
        with_examples = {name: values for name, values in examples.items() if values}
        rounds = range(max(map(len, with_examples.values()), default=0))
        calls = [
            {
                name: values[number] if number < len(values) else values[0]
                for name, values in with_examples.items()
            }
            for number in rounds
        ]
        minimal = {name: examples[name][0] for name in needed}
        return minimal, *(values for values in calls if values != minimal)

    @property
    def example_texts(self) -> tuple[dict[str, str], ...]:
        """The argument values of each example call, as a client sends them."""
        return tuple({name: text_of(value) for name, value in values.items()} for values in self.examples)

    def read(self, sent: Mapping[str, Any] | None, known: Mapping[str, Any] = {}) -> dict[str, Any]:
        """
        Convert a client's values to keyword arguments for the author's function.

        Args:
            sent:
                The values by argument name: strings, or other JSON values where the type allows them. None
                means no values. A string such as ``$2``, where 2 is the position of an optional argument,
                means that this argument was not given.

            known:
                Values that are already converted.

        Raises:
            ArgumentsError: If any argument is missing, invalid, or unknown and not ignored. The error lists
                them all.
        """
        values: dict[str, Any] = dict(known) if known else {}
        errors: list[InvalidArgument] = []
        readers, unfilled = self._readers, self._unfilled
        unknown_count = 0
        for name, value in (sent or {}).items():
            if name not in readers:
                unknown_count += 1
                if unknown_count <= MAX_ERRORS and not self._is_ignored(name):
                    errors.append(self._unknown_argument(name))
            elif value != unfilled.get(name, NO_DEFAULT) and (value or self._is_given(name, value)):
                try:
                    values[name] = readers[name](value)
                except ConversionError as error:
                    errors += self.by_name[name].errors_of(value, error)
        for name in self._required:
            if name not in values and all(error.argument != name for error in errors):
                errors.append(InvalidArgument(name, "is missing", self.by_name[name].reader.expected))
        if self._in_environment:
            self._read_environment(values, errors)
        if errors:
            raise ArgumentsError(self.owner, tuple(errors), self.kind)
        return values

    def environment_values(self, sent: Container[str]) -> dict[str, Any]:
        """
        Return the values from environment variables for the arguments that are not in *sent*.

        Raises:
            ArgumentsError: If a variable has an invalid value, or is not set and its argument has no other
                default. The error lists them all.
        """
        values: dict[str, Any] = {}
        errors: list[InvalidArgument] = []
        self._read_environment(values, errors, sent)
        if errors:
            raise ArgumentsError(self.owner, tuple(errors), self.kind)
        return values

    def _read_environment(
        self, values: dict[str, Any], errors: list[InvalidArgument], sent: Container[str] = ()
    ) -> None:
        """
        Add values from the environment to *values*, and errors for invalid or missing ones to *errors*.

        Arguments that are in *sent*, or that already have a value or an error, are skipped.
        """
        invalid = {error.argument for error in errors}
        for argument in self._in_environment:
            name, variable, text = argument.name, argument.arg.env, argument.default_text
            if name in values or name in invalid or name in sent:
                continue
            if text is not None:
                try:
                    values[name] = self._readers[name](text)
                except ConversionError as error:
                    errors += (
                        structs.replace(part, reason=f"is read from ${variable} and {part.reason}")
                        for part in argument.errors_of(text, error)
                    )
            elif argument.default is NO_DEFAULT:
                reason = f"is missing, and the environment variable {variable} is not set"
                errors.append(InvalidArgument(name, reason, argument.reader.expected))

    def check_values(self, sent: Mapping[str, Any], max_values: int) -> None:
        """
        Reject strings that contain too many values, before parsing them takes up memory.

        Raises:
            ArgumentsError: If any argument contains more than *max_values*. The error lists them all.
        """
        reason = f"has more than {max_values:,} values: send fewer"
        texts = {name: sent[name] for name in self.by_name if name in sent}
        errors = tuple(
            InvalidArgument(name, reason)
            for name, text in texts.items()
            if isinstance(text, str)
            and len(text) > max_values
            and self.by_name[name].reader.accepts_several
            and has_more_values(text, max_values)
        )
        if errors:
            raise ArgumentsError(self.owner, errors, self.kind)

    def _is_given(self, name: str, value: Any) -> bool:
        argument = self.by_name[name]
        if value is None:
            return argument.required and is_nullable(argument.annotation)
        return value != "" or argument.blank_is_value

    def _is_ignored(self, name: str) -> bool:  # noqa: ARG002 (tools ignore some names)
        """Return whether to ignore a value that was sent for *name*, which is not an argument."""
        return False

    def completer(self, name: str) -> Completer | None:
        """Return the completer for an argument, or None. Raises `ArgumentsError` for an unknown name."""
        if name not in self.by_name:
            raise ArgumentsError(self.owner, (self._unknown_argument(name),), self.kind)
        return self.by_name[name].completer

    def _unknown_argument(self, name: str) -> InvalidArgument:
        names = [argument.name for argument in self.ordered]
        expected = f"one of {', '.join(names)}" if names else "no arguments"
        return InvalidArgument(
            name, f"is not an argument of this {self.kind}", expected, nearest(name, names)
        )


DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def schema_of(arguments: Iterable[Argument]) -> dict[str, Any]:
    """
    Return the JSON Schema of an object that has *arguments* as its properties.

    The schema contains neither ``additionalProperties: false`` nor ``$schema``, because some clients reject
    tools with these keywords. Prompts reject unknown arguments nevertheless.
    """
    arguments = list(arguments)
    definitions = Definitions({})
    properties = {argument.name: _property(argument, definitions) for argument in arguments}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required := [argument.name for argument in arguments if argument.required]:
        schema["required"] = required
    if definitions.schemas:
        schema["$defs"] = definitions.schemas
    return schema


def schema_without_null(argument: Argument) -> dict[str, Any]:
    """
    Return an argument's JSON Schema without its null alternative; ``{}`` if several alternatives remain.
    """
    schema, _ = type_schema(argument.annotation, Definitions({}))
    members = [member for member in schema.get("anyOf", [schema]) if member.get("type") != "null"]
    return members[0] if len(members) == 1 else {}


def _property(argument: Argument, definitions: Definitions) -> dict[str, Any]:
    schema, form = type_schema(argument.annotation, definitions)
    arg = argument.arg
    words = join_description(arg.description or schema.get("description"), _clauses(argument, form))
    examples = [json_of(example) for example in argument.examples]
    by_author = {"title": arg.title, "examples": examples}
    schema = add_description(schema, words) | {key: value for key, value in by_author.items() if value}
    # A form would send this default, and override the environment variable.
    for default in () if arg.env else _defaults(argument):
        schema["default"] = json_of(default)
    return schema


def _clauses(argument: Argument, form: str) -> Iterator[str]:
    """Yield constraints, examples and the default in words, because clients drop unknown schema keywords."""
    arg = argument.arg
    yield form
    yield example_clause(map(_text, argument.examples))
    defaults = filter(lambda text: text not in ("", "[]", "{}"), map(_text, _defaults(argument)))
    yield default_clause(arg.env, defaults)


def _defaults(argument: Argument) -> list[Any]:
    """Return a list with the function's default, or an empty list if clients cannot or must not see it."""
    default = argument.default
    hidden = default is NO_DEFAULT or default is None or argument.arg.secret
    return [] if hidden or not can_be_sent(default) else [default]


def _text(value: Any) -> str:
    """Return a value as JSON on one line, shortened; strings are not quoted."""
    json_value = json_of(value)
    text = json_value if isinstance(json_value, str) else msgspec.json.encode(json_value).decode()
    return shortened(" ".join(text.split()))

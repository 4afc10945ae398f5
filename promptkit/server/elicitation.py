"""
Elicitation: asks the client's user for missing and invalid arguments.

A client with a session is sent a request, which it answers. A modern client gets a result that contains the
question, and repeats its own request with the answers. See
https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation.

The question is a form: a flat object. Each field is a string, a number, a boolean, or a choice.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import count
from math import inf, nextafter
from threading import RLock
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct, structs

from promptkit.catalog.arguments import Argument, schema_without_null
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.errors.exceptions import ArgumentsError
from promptkit.protocol import wire
from promptkit.protocol.events import ClientResponse, Request
from promptkit.protocol.jsonrpc import (
    InvalidParams,
    MissingCapability,
    RequestId,
    encode_notification,
    encode_request,
)
from promptkit.protocol.key_ring import RequestStateSigner
from promptkit.protocol.session import Session
from promptkit.server.dispatch import Dispatcher
from promptkit.server.pending import PendingRequest
from promptkit.types.errors import ConversionError
from promptkit.types.kinds import is_enumerable, is_list, unwrap_type
from promptkit.types.parsing import reader_for
from promptkit.types.scalar_types import Reader
from promptkit.types.unstructuring import text_as_entered

#: How long to wait for an answer, in seconds. A `requestState` is valid for the same time.
_ANSWER_WITHIN_S: Final = 900.0

_METHOD: Final = "elicitation/create"

#: The maximum number of questions per request. The second one is asked if the first answer is incomplete.
_MAX_QUESTIONS: Final = 2

#: The prefixes that a `requestState` can have. The prefix is the number of questions asked so far.
_QUESTION_COUNTS: Final = frozenset(str(number + 1) for number in range(_MAX_QUESTIONS))

#: The key of the only question in an `InputRequiredResult`.
_QUESTION_KEY: Final = "arguments"


Schema: TypeAlias = dict[str, Any]

#: The formats that a text field can declare.
_FORMATS: Final = frozenset({"email", "uri", "date", "date-time"})


class _Answer(msgspec.Struct):
    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


class Question(Struct, frozen=True):
    """
    A question to the user about the missing and invalid arguments of a request.

    Args:
        pending:
            The request.

        prompt:
            The requested prompt.

        arguments:
            The arguments that the client has sent.

        errors:
            The errors in these arguments, which are also the reply if the user declines. If there are none,
            the form offers the optional arguments.

        count:
            The number of questions that have been asked for the request so far.
    """

    pending: PendingRequest
    prompt: CompiledPrompt
    arguments: Mapping[str, Any]
    errors: ArgumentsError
    count: int = 0

    @property
    def requested_arguments(self) -> tuple[Argument, ...]:
        """The arguments that the form has fields for, in order; empty if there is nothing to ask."""
        request = self.pending.request
        return form_arguments(
            self.prompt,
            self.errors,
            self.arguments,
            has_defaults=request.revision.elicitation_modes,
            splits_at_spaces=_profile_flag(request, "splits_at_spaces"),
        )

    def merge_answer(self, result: Any) -> dict[str, Any]:
        """
        Return the arguments, updated with the values that the user has entered.

        Args:
            result:
                The result of an ``elicitation/create`` request; None if the client responded with an error.

        Raises:
            ArgumentsError: If the user declined or cancelled, or if *result* is None.

            InvalidParams: If *result* is malformed.
        """
        names = {argument.name for argument in self.requested_arguments}
        answers = None if result is None else read_answer(result, names)
        if answers is None:
            raise self.errors
        return {name: value for name, value in self.arguments.items() if name not in names} | answers


class Elicitation:
    """
    Asks users for arguments through their clients, and keeps track of the open questions.

    Args:
        session:
            The session of the client whose requests do not have a channel.

        dispatcher:
            The dispatcher, which holds a request open while its question is open.

        send:
            A function that sends whole lines. It may be called from several threads.

        signer:
            The signer of each ``requestState``. The default signer has a random key.

    Attributes:
        prefix:
            The prefix of question ids.
    """

    def __init__(
        self,
        session: Session,
        dispatcher: Dispatcher,
        send: Callable[[bytes], None],
        signer: RequestStateSigner | None = None,
    ) -> None:
        self._session = session
        self._dispatcher = dispatcher
        self._send = send
        self.prefix = "promptkit-"
        self._numbers = count(1)
        self._open: dict[RequestId, Question] = {}
        # Held while a question is sent or withdrawn. A request can be answered in another way at any time,
        # such as with a timeout error. Its question is then either never sent, or withdrawn after it was
        # sent. The lock is reentrant, because a client in this process may answer immediately.
        self._asking = RLock()
        self._signer = signer or RequestStateSigner()

    def read_repeated_request(
        self, pending: PendingRequest, prompt: CompiledPrompt
    ) -> tuple[dict[str, Any] | None, int]:
        """
        Return the arguments of a repeated request, and the number of questions asked for it so far.

        If the ``requestState`` is missing or has expired, answers are ignored, and the number is 0.

        Raises:
            InvalidParams: If the ``requestState`` was not issued by this server for this request.

            ArgumentsError: If the user declined or cancelled.
        """
        request = pending.request
        params: wire.GetPromptParams = request.params
        answers, state = params.input_responses, params.request_state
        if state is None or not request.revision.stateless:
            return params.arguments, 0
        count, token = _split_state(state)
        if not self._signer.is_fresh(token, request.method, _signed_fields(request, count)):
            return params.arguments, 0
        question = _make_question(pending, prompt, params.arguments)
        if not question.requested_arguments or not answers or _QUESTION_KEY not in answers:
            return params.arguments, count
        return question.merge_answer(answers[_QUESTION_KEY]), count

    def make_optional_arguments_question(
        self, pending: PendingRequest, prompt: CompiledPrompt, supplied: Mapping[str, Any] | None
    ) -> Question | None:
        """
        Return a question about the optional arguments.

        Return None if the client cannot show forms, if an argument is missing or invalid, or if there is
        nothing to ask.
        """
        if not self._can_ask(pending.request):
            return None
        question = _make_question(pending, prompt, supplied)
        return question if question.requested_arguments and not question.errors.errors else None

    def ask(self, question: Question) -> wire.InputRequiredResult | None:
        """
        Ask the user *question*.

        The returned result is for a modern client, which repeats its request with the answers. A client with
        a session is sent a request instead. This method then returns None, and the client's own request is
        held open until the client answers.

        Raises:
            ArgumentsError: If the user cannot be asked, or was already asked the maximum number of times.

            MissingCapability: If the client declared the elicitation capability earlier, but no longer does.

            TooManyRequests: If too many streams and forms are open.
        """
        params, request = self._params(question), question.pending.request
        if not request.revision.stateless:
            self._send_question(question, params)
            return None
        count = question.count + 1
        state = f"{count}.{self._signer.sign(request.method, _signed_fields(request, count))}"
        requests = {_QUESTION_KEY: {"method": _METHOD, "params": params}}
        return wire.InputRequiredResult(requests, state, result_type="input_required")

    def _params(self, question: Question) -> dict[str, Any]:
        """Return the params of the ``elicitation/create`` request for *question*."""
        request, prompt, errors = question.pending.request, question.prompt, question.errors
        is_opt_in = request.method == "tools/call" and prompt.elicit is None
        if is_opt_in or question.count >= _MAX_QUESTIONS or not question.requested_arguments:
            raise errors
        if not self._can_ask(request):
            if request.params.request_state is None or not request.revision.stateless:
                raise errors
            msg = "arguments are still missing, but the request no longer declares elicitation"
            raise MissingCapability(msg, {"requiredCapabilities": {"elicitation": {"form": {}}}})
        if request.revision.stateless:
            # The repeated request only has the answers to this question, so ask for all missing arguments.
            original = _make_question(question.pending, prompt, request.params.arguments)
            errors = original.errors if original.errors.errors else errors
            question = structs.replace(question, arguments=original.arguments, errors=errors)
        return elicitation_params(
            prompt,
            question.requested_arguments,
            modes=request.revision.elicitation_modes,
            values=question.arguments,
            errors=question.errors,
        )

    def _send_question(self, question: Question, params: dict[str, Any]) -> None:
        """
        Send *question* to a client with a session. The request is held open until the client answers.

        See Also:
            https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#timeouts
        """
        self._dispatcher.check_held_limit()
        question_id = f"{self.prefix}{next(self._numbers)}"
        deadline = time.monotonic() + _ANSWER_WITHIN_S
        withdraw = partial(self._withdraw, question_id)
        with self._asking:
            if not self._dispatcher.hold(question.pending, withdraw, lambda: question.errors, deadline):
                return  # the deadline of the request has passed, or the client has cancelled it
            self._open[question_id] = question
            send = question.pending.request.sender(self._send)
            send(encode_request(question_id, _METHOD, params))

    def close_question(self, response: ClientResponse) -> Question | None:
        """
        Close the question that a client has answered, and return it.

        Return None if the question is not open, or was asked in another session. If a question is returned,
        the caller must answer its request.
        """
        question = self._open.get(response.request_id)
        if question is None or question.pending.request.session_id != response.session_id:
            return None
        self._open.pop(response.request_id, None)
        return question if self._dispatcher.release(question.pending) else None

    def _withdraw(self, question_id: RequestId) -> None:
        with self._asking:
            if question := self._open.pop(question_id, None):
                cancelled = encode_notification("notifications/cancelled", wire.CancelledParams(question_id))
                question.pending.request.sender(self._send)(cancelled)

    def needs_forms(self, request: Request) -> bool:
        """Return whether the client can show forms, but never sends requests without required arguments."""
        return self._can_ask(request) and _profile_flag(request, "rejects_missing")

    def _can_ask(self, request: Request) -> bool:
        """Return whether the client can show forms. An empty elicitation capability means that it can."""
        if not request.revision.elicitation:
            return False
        capability = request.capabilities.get("elicitation")
        has_forms = isinstance(capability, dict) and (not capability or "form" in capability)
        return has_forms and (request.revision.stateless or self._has_session(request))

    def _has_session(self, request: Request) -> bool:
        """Return whether the client has a session through which it can be sent a question."""
        if request.channel is None:
            return self._session.subscriptions.has_session
        return bool(request.channel.session_id) and request.channel.accepts_stream


def _make_question(
    pending: PendingRequest, prompt: CompiledPrompt, arguments: Mapping[str, Any] | None
) -> Question:
    """Return the question about missing and invalid arguments. It has no errors if none is invalid."""
    errors = ArgumentsError(prompt.name, ())
    try:
        prompt.arguments.read(arguments)
    except ArgumentsError as error:
        errors = error.with_traceback(None)  # a traceback would keep the caller's frame alive
    return Question(pending, prompt, arguments or {}, errors)


def _split_state(state: str) -> tuple[int, str]:
    """Split a `requestState` into the number of questions, which is 0 if it is invalid, and the token."""
    count, _, token = state.partition(".")
    return (int(count), token) if count in _QUESTION_COUNTS else (0, state)


def _signed_fields(request: Request, count: int) -> dict[str, Any]:
    """Return the fields of a request that must not change when it is repeated, including its caller."""
    params, principal = request.params, request.principal
    sender = {} if principal is None else {"sender": principal.identity}
    return {"name": params.name, "arguments": params.arguments or {}, "asked": count, **sender}


def askable_arguments(prompt: CompiledPrompt, errors: ArgumentsError) -> tuple[Argument, ...]:
    """
    Return the missing and invalid arguments that a form can ask for, in the order of the signature.

    The result is empty if the prompt never asks for arguments. It is also empty if an error cannot be
    corrected in a form: an error about a secret, an unknown argument, a part of a JSON value, or a value that
    can come from the server's environment.
    """
    known, invalid = prompt.arguments.by_name, {error.argument for error in errors.errors}
    if prompt.elicit is False or any(error.path for error in errors.errors):
        return ()
    if not invalid.issubset(known) or any(known[name].arg.secret for name in invalid):
        return ()
    if any(error.got is not None and known[error.argument].arg.env for error in errors.errors):
        return ()  # the invalid value can come from the server's environment
    return tuple(argument for argument in prompt.arguments.ordered if argument.name in invalid)


def form_arguments(
    prompt: CompiledPrompt,
    errors: ArgumentsError,
    sent: Mapping[str, Any],
    *,
    has_defaults: bool,
    splits_at_spaces: bool = False,
) -> tuple[Argument, ...]:
    """
    Return the arguments that a form has fields for, in order; empty if there is nothing to ask.

    These are the missing and invalid arguments. If fields can have defaults, the optional arguments that the
    client has not sent have fields as well. If no arguments are missing or invalid, only prompts with
    ``elicit="always"`` have a form.

    Args:
        prompt:
            The prompt.

        errors:
            The errors in the arguments that the client has sent.

        sent:
            The arguments that the client has sent.

        has_defaults:
            Whether fields can have defaults.

        splits_at_spaces:
            Whether the client may have sent only the first word of each text. If so, text arguments have
            fields even if they were sent.
    """
    needed = askable_arguments(prompt, errors)

    def has_field(argument: Argument) -> bool:
        if argument in needed:
            return True
        if argument.name in sent:
            return splits_at_spaces and _is_text(argument)
        return has_defaults and not (argument.arg.secret or argument.arg.env)

    is_needed = needed or (prompt.elicit == "always" and not errors.errors)
    return tuple(filter(has_field, prompt.arguments.ordered)) if is_needed else ()


def _profile_flag(request: Request, name: str) -> bool:
    """Return a boolean field of the client's profile; False if the client has no profile."""
    if request.client is None:
        return False
    from promptkit.clients.profiles import find_client  # only needed for clients that can show forms

    return bool(getattr(find_client(request.client.name), name, False))


def _is_text(argument: Argument) -> bool:
    return unwrap_type(argument.annotation, core=True) is str and not argument.arg.secret


def elicitation_params(
    prompt: CompiledPrompt,
    arguments: Sequence[Argument],
    *,
    modes: bool,
    values: Mapping[str, Any] = MappingProxyType({}),
    errors: ArgumentsError | None = None,
) -> Schema:
    """
    Return the params of the ``elicitation/create`` request that asks for *arguments*.

    Args:
        prompt:
            The prompt.

        arguments:
            The arguments that the form has fields for.

        modes:
            Whether the revision has elicitation modes. Such a revision also has multiple-choice fields.

        values:
            The values that the client has sent. Strings become the defaults of their fields.

        errors:
            The errors in *values*.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#form-mode-elicitation-requests
    """
    needed = askable_arguments(prompt, errors) if errors and errors.errors else arguments
    return {
        **({"mode": "form"} if modes else {}),
        "message": form_message(prompt, needed, errors),
        "requestedSchema": requested_schema(arguments, has_modes=modes, values=values),
    }


def form_message(
    prompt: CompiledPrompt, arguments: Iterable[Argument], errors: ArgumentsError | None = None
) -> str:
    """
    Return the message of a form, which names the requested arguments and the invalid values.

    If *errors* has no entries, all *arguments* are optional.
    """
    *first, last = (argument.title or argument.name for argument in arguments)
    needed = f"{', '.join(first)} and {last}" if first else last
    name = prompt.title or prompt.name
    if errors and not errors.errors:
        return f"Choose {needed} for the prompt {name!r}."
    invalid = [f"{error}." for error in (errors.errors if errors else ()) if error.got is not None]
    return " ".join([f"The prompt {name!r} needs {needed}.", *invalid])


def requested_schema(
    arguments: Sequence[Argument], *, has_modes: bool, values: Mapping[str, Any] = MappingProxyType({})
) -> Schema:
    """
    Return the schema of a form with a field for each of *arguments*.

    A field only allows the values that its argument accepts, as far as forms can express such limits. Its
    description explains all other limits.

    Args:
        arguments:
            The arguments to ask for.

        has_modes:
            Whether the revision has elicitation modes. Such a revision also has multiple-choice fields and
            defaults. In other revisions, lists are text fields.

        values:
            The values that the client has sent.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#requested-schema
    """
    properties = {argument.name: _property(argument, has_modes=has_modes) for argument in arguments}
    if has_modes:
        for argument in arguments:
            default = _default(argument, properties[argument.name], values.get(argument.name))
            properties[argument.name] |= {} if default is None else {"default": default}
    required = [argument.name for argument in arguments if argument.required]
    return {"type": "object", "properties": properties, "required": required}


def _default(argument: Argument, field: Schema, value: Any) -> Any:
    """Return a field's default: the text that was sent, or the default of an optional argument, if any."""
    if isinstance(value, str) and _is_text(argument):
        return value
    default = argument.default
    if argument.required or default is None:
        return None
    kinds: Mapping[str, type] = {"boolean": bool, "integer": int, "number": float}
    if (kind := kinds.get(field["type"])) is not None:
        return default if isinstance(default, kind) else None
    return text_as_entered(default) if field["type"] == "string" else None


def read_answer(response: Any, names: Collection[str]) -> dict[str, Any] | None:
    """
    Return the values that the user entered, by argument name, or None if the user declined or cancelled.

    Args:
        response:
            The decoded result of an ``elicitation/create`` request.

        names:
            The names of the arguments that were asked for. Their values may be missing from the response; the
            values of other arguments are ignored.

    Raises:
        InvalidParams: If *response* is malformed.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#response-actions
    """
    try:
        answer = msgspec.convert(response, _Answer)
    except msgspec.ValidationError as error:
        msg = f"the answer to a form is invalid: {error}"
        raise InvalidParams(msg) from None
    if answer.action != "accept":
        return None
    return {name: value for name, value in (answer.content or {}).items() if name in names}


def _property(argument: Argument, *, has_modes: bool) -> Schema:
    annotation = unwrap_type(argument.annotation, core=True)
    schema = schema_without_null(argument)
    choice = _choice_field(argument.reader, annotation, has_modes=has_modes) or (
        _multiple_choice_field(annotation, schema) if has_modes and is_list(annotation) else None
    )
    field = choice or _number_field(annotation, schema) or _text_field(argument, annotation, schema)
    # For a choice, omit the part of the description that explains which text is accepted.
    labels = {
        "title": argument.title,
        "description": argument.arg.description if choice else argument.description,
    }
    return field | {key: text for key, text in labels.items() if text}


def _choice_field(reader: Reader, annotation: Any, *, has_modes: bool) -> Schema | None:
    """Return a field for choosing one value, or None if the values cannot be listed."""
    if annotation is bool:
        return {"type": "boolean"}
    if not is_enumerable(annotation):
        return None
    # Values of different types can have the same text. Empty text is omitted, because it would mean that the
    # user has not entered anything.
    values = list(dict.fromkeys(filter(None, reader.values)))
    if not reader.meanings:
        return {"type": "string", "enum": values}
    if has_modes:
        return {"type": "string", "oneOf": _titled_choices(values, reader)}
    return {
        "type": "string",
        "enum": values,
        "enumNames": [each["title"] for each in _titled_choices(values, reader)],
    }


def _titled_choices(values: Iterable[str], reader: Reader) -> list[dict[str, str]]:
    """Return choices whose titles explain the values."""
    meanings = reader.meanings
    titles = {value: f"{value}: {meanings[value]}" if value in meanings else value for value in values}
    return [{"const": value, "title": title} for value, title in titles.items()]


def _multiple_choice_field(annotation: Any, schema: Schema) -> Schema | None:
    """Return a field for choosing several values, or None if the values cannot be listed."""
    item = get_args(annotation)[0]
    reader = reader_for(item)
    choice = _choice_field(reader, unwrap_type(item, core=True), has_modes=True) if reader else None
    if choice is None or choice["type"] == "boolean":
        return None
    items = {"anyOf": choice["oneOf"]} if "oneOf" in choice else choice
    return {"type": "array", "items": items} | _pick(schema, "minItems", "maxItems")


def _number_field(annotation: Any, schema: Schema) -> Schema | None:
    """Return a number field; None for other types, and for numbers with constraints other than bounds."""
    if (annotation is not int and annotation is not float) or "multipleOf" in schema:
        return None
    is_int, bounds = annotation is int, _pick(schema, "minimum", "maximum")
    # Forms do not support exclusive bounds.
    if (bound := schema.get("exclusiveMinimum")) is not None:
        bounds["minimum"] = bound + 1 if is_int else nextafter(bound, inf)
    if (bound := schema.get("exclusiveMaximum")) is not None:
        bounds["maximum"] = bound - 1 if is_int else nextafter(bound, -inf)
    return {"type": "integer" if is_int else "number"} | bounds


def _text_field(argument: Argument, annotation: Any, schema: Schema) -> Schema:
    field: Schema = {"type": "string"}
    # Only limit the length for `str`: base64 is longer than the bytes that it encodes, and other types accept
    # more text than their schema allows.
    field |= _pick(schema, "minLength", "maxLength") if annotation is str else {}
    if format_ := _format(argument.reader, annotation, schema):
        field["format"] = format_
    elif not argument.blank_is_value:
        field["minLength"] = max(1, field.get("minLength", 0))
    return field


def _format(reader: Reader, annotation: Any, schema: Schema) -> str | None:
    """Return the format of a type's text; None if it has none, or if forms do not support the format."""
    if annotation is datetime:
        with suppress(ConversionError):  # the type only accepts times without a time zone
            reader.read("2026-01-31T12:00:00Z")
            return "date-time"
        return None
    format_ = schema.get("format")
    return format_ if format_ in _FORMATS else None


def _pick(schema: Schema, *keys: str) -> Schema:
    return {key: schema[key] for key in keys if key in schema}

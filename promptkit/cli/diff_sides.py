"""
One side of a comparison: a process that loads recipes and prints what clients receive from them.

Each side has its own process, because both sides have modules with the same names. The process runs the code
of another revision, so its answer is validated. Secrets are not protected from recipes, which run as the same
user. When run with ``python -m``, this module reads a request from standard input and prints the answer.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeAlias

import msgspec
from msgspec import Struct

from promptkit import compiler
from promptkit.catalog.arguments import Argument, schema_of
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import NO_SAMPLE, SCHEMA, CompiledPrompt
from promptkit.catalog.resources import CompiledResource
from promptkit.catalog.samples import sample_calls
from promptkit.catalog.uri_templates import expand_template
from promptkit.cli.calls import Call, Item, failure_reason, saved_calls, wire_examples
from promptkit.cli.list import format_type, lists_of
from promptkit.cli.loading import load_recipes
from promptkit.cli.output import OutputError, capture_output
from promptkit.cli.repository import Repository, RevisionError, checkout
from promptkit.errors.exceptions import LoadError, PromptError
from promptkit.files.scratch import open_unnamed_file
from promptkit.server.lookup import name_of
from promptkit.types.schemas import Definitions, type_schema
from promptkit.workspace.paths import WORKSPACE_VARIABLE, workspace

if TYPE_CHECKING:  # most recipes have no skills
    from promptkit.catalog.skills import CompiledSkill

#: The prefix of an outcome that is neither a rendering nor an error.
NOT_RENDERED: Final = "[not rendered] "

#: Timeouts in seconds: for a process, because importing recipes has no other limit; and for a call with
#: generated arguments.
_MAX_S: Final = 120.0
_MAX_SAMPLE_S: Final = 5.0

#: Maximum size of an answer in bytes.
_MAX_BYTES: Final = 64 << 20

#: The environment variables that a process receives if it renders cases: search paths of programs, and the
#: locale. The workspace is always passed on.
_INHERITED: Final = (
    *("PATH", "PYTHONPATH", "VIRTUAL_ENV", "HOME", "USERPROFILE", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP"),
    *("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONPYCACHEPREFIX"),
)

#: The current time while cases are rendered, and the seed for random numbers.
NOW: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
_SEED: Final = 20260101

#: Keywords of a schema that describe a value without restricting it.
_ANNOTATIONS: Final = frozenset({"title", "description", "examples", "default", "$comment"})


class SentCall(Struct):
    """
    A call that both sides make.

    Args:
        sent:
            The arguments of a prompt as a client sends them, or a URI.

        source:
            The origin of the arguments: a saved case, the author's examples, or generation.
    """

    sent: dict[str, Any] | str
    source: Literal["case", "example", "sample"]


#: The calls of each prompt and resource, keyed by the item's kind and name, and then by label.
Calls: TypeAlias = dict[str, dict[str, SentCall]]


class ArgumentState(Struct):
    """
    An argument of a prompt.

    Args:
        required:
            Whether clients must send it.

        type:
            Its type, in the form that `list` shows.

        schema:
            The JSON Schema of its type.

        alternatives:
            The choices and types that it accepts, each as JSON.

        texts:
            Its title, description and default, if it has them.
    """

    required: bool
    type: str
    schema: str
    alternatives: list[str]
    texts: dict[str, str]


class ItemState(Struct):
    """
    A prompt, a resource or a skill.

    Args:
        location:
            The file and the line that define it.

        texts:
            Its descriptive fields in the lists that clients receive.

        scopes:
            The scopes that callers need.

        arguments:
            The arguments of a prompt, keyed by name, in the order of the signature.

        files:
            The digest of each file of a skill, keyed by path, and its text if it is a text file.
    """

    location: tuple[str, int]
    texts: dict[str, str]
    scopes: list[str]
    arguments: dict[str, ArgumentState]
    files: dict[str, tuple[str, str | None]]


class Answer(Struct):
    """
    The answer of a side: the items that it serves, and the outcomes of calls.

    Args:
        items:
            The prompts, resources and skills, keyed by kind and name, as in ``prompt 'review'``.

        calls:
            The side's own calls.

        outcomes:
            The outcomes of the requested calls. Each is a transcript, or a message with a prefix.

        errors:
            The file, line and message of each error in the recipes.
    """

    items: dict[str, ItemState]
    calls: Calls
    outcomes: dict[str, dict[str, str]]
    errors: list[tuple[str, int, str]]


class _Reply(Struct):
    """The output of a process: an answer; a target that cannot be loaded, with the reason; or a failure."""

    answer: Answer | None = None
    unloadable: tuple[str, str] | None = None
    failure: str | None = None


def answers_of_sides(  # noqa: PLR0913 (the options of the command)
    repository: Repository,
    ends: tuple[str, str | None],
    targets: Sequence[str],
    *,
    by_cases: bool = False,
    repeats: bool = False,
    variables: Sequence[str] = (),
) -> tuple[list[Answer], list[Answer]]:
    """
    Return the answers of the old and of the new side, for the same calls.

    Args:
        repository:
            The repository.

        ends:
            The old revision; and the new revision, or None for the working tree.

        targets:
            The targets to compare.

        by_cases:
            Whether both sides make the calls of the new side, with only a few of the environment variables.
            By default, both sides make the calls of the old side, with all variables.

        repeats:
            Whether to get the answer of each side twice.

        variables:
            The names of further environment variables that cases can read.

    Raises:
        LoadError: If one of the targets cannot be loaded.

        RevisionError: If a revision does not exist, or a process returns no valid answer.
    """
    inherited = (*_INHERITED, *variables) if by_cases else os.environ
    environment = {name: os.environ[name] for name in inherited if name in os.environ}
    environment["PYTHONHASHSEED"] = "0"
    answers: tuple[list[Answer], list[Answer]] = [], []
    calls: Calls | None = None
    for side in (1, 0) if by_cases else (0, 1):
        with checkout(repository, ends[side], targets) as (folder, side_targets, moved):
            for _ in range(2 if repeats else 1):
                request = side_targets, by_cases, msgspec.to_builtins(calls)
                answers[side].append(ask(folder, request, moved, environment))
        calls = answers[side][0].calls if calls is None else calls
    return answers


def ask(
    folder: Path,
    request: tuple[Sequence[str], bool, Any],
    moved: tuple[Path, Path],
    environment: Mapping[str, str],
) -> Answer:
    """
    Run this module in a process, and return its answer.

    Args:
        folder:
            The current folder of the process.

        request:
            The targets to load; whether to compare cases; and the calls as JSON, see `build_answer`.

        moved:
            The folder in which the recipes are, and the folder to show in messages instead.

        environment:
            The environment variables of the process; the workspace is always passed on.

    Raises:
        LoadError: If one of the targets cannot be loaded.

        RevisionError: If the process does not answer in time, or its answer is invalid.
    """
    actual, reported = map(str, moved)
    targets = " ".join(request[0]).replace(actual, reported)

    def fail(reason: str) -> NoReturn:
        msg = f"the process that loads {targets!r} {reason}"
        raise RevisionError(msg) from None

    # With a pipe, this would also wait for orphaned child processes that keep the pipe open.
    with open_unnamed_file("promptkit-side-") as stdout:
        try:
            process = subprocess.run(  # noqa: S603 (promptkit itself)
                # -P, because the current folder might contain modules with the names of promptkit's imports.
                [sys.executable, "-B", "-P", "-m", __name__],
                input=json.dumps(request).encode(),
                stdout=stdout,
                cwd=folder,
                env={**environment, **_callers_workspace()},
                timeout=_MAX_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            fail(f"did not finish within {_MAX_S:g} s: a recipe hangs, or its examples take too long")
        stdout.seek(0)
        data = stdout.read(_MAX_BYTES + 1)
    if not data:
        fail(f"exited with code {process.returncode} without an answer")
    if len(data) > _MAX_BYTES:
        fail(f"printed more than {_MAX_BYTES:,} bytes")
    text = data.decode(errors="replace").replace(_escape(actual), _escape(reported))
    try:
        reply = msgspec.convert(json.loads(text), _Reply)
    except msgspec.ValidationError as error:
        fail(f"returned an invalid answer: {error}")
    except (ValueError, RecursionError):
        fail("returned output that is not JSON")
    if reply.unloadable is not None:
        raise LoadError(*reply.unloadable)
    if reply.failure is not None:
        fail(f"failed: {reply.failure}")
    if reply.answer is None:
        fail("returned an invalid answer: it is empty")
    return reply.answer


def _escape(text: str) -> str:
    """Return a string as JSON, without the quotes."""
    return json.dumps(text)[1:-1]


def _callers_workspace() -> dict[str, str]:
    """Return the environment variable that passes this process's workspace, if any, to another process."""
    try:
        folder = str(workspace())
    except PromptError:  # missing or invalid: both sides report that
        folder = os.environ.get(WORKSPACE_VARIABLE, "")
    return {WORKSPACE_VARIABLE: folder}


def main() -> None:
    """Print the answer to the request on standard input."""
    request = json.load(sys.stdin)  # reads to the end, so that recipes cannot read any of it
    with (
        suppress(OSError, OutputError),  # a recipe might have closed standard output
        capture_output(restore=False) as output,
    ):
        try:
            reply = _Reply(answer=_answer_request(*request))
        except LoadError as error:
            reply = _Reply(unloadable=(error.target, error.reason))
        except BaseException as error:  # noqa: BLE001 (recipes can raise anything; the parent handles Ctrl-C)
            reply = _Reply(failure=failure_reason(error))
        print(json.dumps(msgspec.to_builtins(reply)), file=output)


def _answer_request(targets: Sequence[str], by_cases: bool, calls: Any) -> Answer:  # noqa: FBT001 (from JSON)
    random.seed(_SEED)
    with fixed_clock():
        catalog = compiler.compile(load_recipes(targets, cases=True))
        return build_answer(catalog, msgspec.convert(calls, Calls | None), by_cases=by_cases)


def fixed_clock() -> AbstractContextManager[object]:
    """Return a context manager that fixes the current time if the library for it is installed."""
    try:
        import time_machine
    except ImportError:
        return nullcontext()
    return time_machine.travel(NOW, tick=False)


def build_answer(catalog: Catalog, calls: Calls | None = None, *, by_cases: bool = False) -> Answer:
    """
    Return the answer of a side.

    Args:
        catalog:
            The catalog of the side.

        calls:
            The requested calls; None for the side's own calls.

        by_cases:
            Whether a case is labelled by its name alone.
    """
    own_calls = {key_of(item): _own_calls(item, by_cases=by_cases) for item in catalog.declared}
    calls = own_calls if calls is None else calls
    outcomes = {
        key: {label: _render_call(item, call) for label, call in calls.get(key, {}).items()}
        for item in catalog.declared
        for key in [key_of(item)]
    }
    errors = [(error.location.file, error.location.line, error.message) for error in catalog.errors]
    return Answer(dict(_item_states(catalog)), own_calls, outcomes, errors)


def key_of(item: "Item | CompiledSkill") -> str:
    """
    Return the kind and name of a prompt, such as ``prompt 'review'``, or the kind and URI of another item.
    """
    if isinstance(item, CompiledPrompt):
        return f"prompt {item.name!r}"
    if not isinstance(item, CompiledResource):
        return f"skill {item.uri_template!r}"
    return f"{'template' if item.is_template else 'resource'} {item.uri_template!r}"


def _own_calls(item: Item, *, by_cases: bool) -> dict[str, SentCall]:
    """Return calls for an item's cases or, if there are none, its examples; and for generated arguments."""
    samples: Sequence[Any] = ()
    if isinstance(item, CompiledResource):
        samples = [expand_template(item.uri_template, sent) for sent in sample_calls(item.arguments)]
    elif item.sample:
        samples = sample_calls(item.arguments)
    calls = {
        call.case_name if by_cases else call.label: SentCall(call.sent, "case") for call in saved_calls(item)
    }
    examples = () if calls else wire_examples(item)
    for new in (
        *(SentCall(sent, "example") for sent in examples),
        *(SentCall(sent, "sample") for sent in samples),
    ):
        if all(call.sent != new.sent for call in calls.values()):
            label = Call(item, new.sent).label
            calls[f"{label} ({len(calls) + 1})" if label in calls else label] = new
    return calls


def _render_call(item: Item, sent: SentCall) -> str:
    """Return the transcript of a call, or the reason why there is none."""
    # The call can come from the other side, where the prompt has no `sample=False`.
    if sent.source != "case" and isinstance(item, CompiledPrompt) and not item.sample:
        return f"{NOT_RENDERED}{NO_SAMPLE}"
    random.seed(_SEED)
    call = Call(item, sent.sent)
    outcome = call.outcome(_MAX_SAMPLE_S if sent.source == "sample" else None)
    if sent.source != "case" and (reason := call.find_rejection(outcome)) is not None:
        return call.redactor.redacted(f"{NOT_RENDERED}{reason}")
    return call.text_of(outcome)


def _item_states(catalog: Catalog) -> Iterator[tuple[str, ItemState]]:
    """Yield the state of each prompt, resource and skill."""
    lists = lists_of(catalog)
    entries = {
        entry.get("uri") or entry.get("uriTemplate") or entry["name"]: entry
        for name in ("prompts", "resources", "resourceTemplates")
        for entry in lists.get(name, ())
    }
    for item in (*catalog.declared, *catalog.skills):
        state = ItemState((item.location.file, item.location.line), {}, sorted(item.scopes), {}, {})
        if isinstance(item, CompiledPrompt | CompiledResource):
            state.texts = _descriptive_texts(entries[name_of(item)])
        else:
            texts = ((file, file.read()) for file in item.files)
            state.files = {
                file.path: (file.content.digest, text if isinstance(text, str) else None)
                for file, text in texts
            }
        if isinstance(item, CompiledPrompt):
            arguments = item.arguments.ordered
            state.arguments = {argument.name: _argument_state(argument) for argument in arguments}
        yield key_of(item), state


def _descriptive_texts(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return the descriptive fields of a listed item, without the schema of its arguments."""
    meta = {key: value for key, value in entry.get("_meta", {}).items() if key != SCHEMA}
    members = {**entry, "_meta": meta, "arguments": None}
    return {name: _format_value(value) for name, value in members.items() if value}


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, sort_keys=True)


def _argument_state(argument: Argument) -> ArgumentState:
    definitions = Definitions({}, by_position=True)
    schema, _ = type_schema(argument.annotation, definitions)
    defined = {"$defs": definitions.schemas} if definitions.schemas else {}
    texts = {
        "title": argument.title,
        "description": argument.arg.description,
        "default": schema_of([argument])["properties"][argument.name].get("default"),
    }
    return ArgumentState(
        argument.required,
        format_type(argument.annotation),
        _format_value({**schema, **defined}),
        list(_alternatives(schema, defined)),
        {name: _format_value(value) for name, value in texts.items() if value is not None},
    )


def _alternatives(schema: Mapping[str, Any], defined: Mapping[str, Any]) -> Iterator[str]:
    """Yield each choice or type that a schema accepts, as JSON without annotations."""
    if "anyOf" in schema:
        for member in schema["anyOf"]:
            yield from _alternatives(member, defined)
    elif "enum" in schema:
        yield from map(json.dumps, schema["enum"])
    else:
        text = json.dumps(_without_annotations(schema), sort_keys=True)
        more = json.dumps(_without_annotations(defined), sort_keys=True) if "$ref" in text else ""
        yield text + more


def _without_annotations(schema: Any, key: str = "") -> Any:
    """Return a schema without annotations at any depth; *key* is its key in the enclosing schema."""
    if isinstance(schema, Mapping):
        are_names = key in ("properties", "$defs")  # the keys are names, such as a field "title"
        return {
            name: _without_annotations(item, "" if are_names else name)
            for name, item in schema.items()
            if are_names or name not in _ANNOTATIONS
        }
    return [_without_annotations(item) for item in schema] if isinstance(schema, list) else schema


if __name__ == "__main__":
    main()

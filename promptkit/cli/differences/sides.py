"""
One side of a comparison as plain data: its lists, and the texts of its examples.

Each side runs in a separate process, because the modules of both have the same names. ``python -m`` this
module reads its input from standard input, and prints the data.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NoReturn, Self, TypeAlias

import msgspec

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.json_schema import schema_of
from promptkit.catalog.prompts import NO_SAMPLE, CompiledPrompt
from promptkit.catalog.resources import CompiledResource
from promptkit.cli.calls import Call, Item, failure_reason, wire_examples
from promptkit.cli.differences.process_answers import AnswerError, Lists, decode_answer
from promptkit.cli.differences.revisions import RevisionError
from promptkit.cli.list import lists_of, shown_type
from promptkit.cli.loading import load_catalog
from promptkit.cli.output import OutputError, capture_output
from promptkit.errors.exceptions import LoadError, PromptError
from promptkit.files.scratch import open_unnamed_file
from promptkit.workspace.paths import VARIABLE, workspace

if TYPE_CHECKING:  # most recipes have no skills
    from promptkit.catalog.skills import CompiledSkill

#: The inputs of each prompt's and resource's examples, by kind and name.
Examples: TypeAlias = Mapping[str, Sequence[Any]]


#: Timeout for one side in seconds: importing recipes has no timeout.
_MAX_S: Final = 120.0

#: Maximum size of an answer in bytes.
_MAX_BYTES: Final = 64 << 20


def ask_side(
    folder: Path,
    targets: Sequence[str],
    examples: Examples | None = None,
    moved: tuple[Path, Path] | None = None,
) -> dict[str, Any]:
    """
    Return the data of one side.

    Args:
        folder:
            The current folder of its process.

        targets:
            The targets to load.

        examples:
            The examples to render and read; None for the side's own examples.

        moved:
            The actual folder of the side, and the folder to report instead; None to report the actual folder.

    Raises:
        LoadError: If one of the targets cannot be loaded.

        RevisionError: If its process does not answer in time, or returns an invalid answer.
    """
    with Side(__name__, folder, targets, moved) as side:
        return side.answer(examples, Lists)


class Side:
    """
    A module that runs in a separate process: it loads some targets, and then answers one request.

    It reads the targets from a line of standard input and the request from the next line, and prints the
    answer; all are JSON. Leaving the context ends the process. It runs untrusted code, so its answer is
    validated.

    Args:
        module:
            The module to run.

        folder:
            See `ask_side`.

        targets:
            See `ask_side`.

        moved:
            See `ask_side`.

        environment:
            The environment variables of the process; None to inherit all. The workspace is always passed on.
    """

    def __init__(
        self,
        module: str,
        folder: Path,
        targets: Sequence[str],
        moved: tuple[Path, Path] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._targets, self._moved = " ".join(targets), moved
        # A file instead of a pipe, so that endless output, or output of orphaned child processes, is not
        # waited for.
        self._stdout = open_unnamed_file("promptkit-side-")  # closed with the context
        self._process = subprocess.Popen(  # noqa: S603 (promptkit itself)
            # -P, because the current folder might contain modules with the names of promptkit's imports.
            [sys.executable, *(["-B"] if sys.dont_write_bytecode else []), "-P", "-m", module],
            stdin=subprocess.PIPE,
            stdout=self._stdout,
            cwd=folder,
            env={**(os.environ if environment is None else environment), **_callers_workspace()},
        )
        assert self._process.stdin is not None  # noqa: S101 (it is a pipe)
        with suppress(BrokenPipeError):  # the process has ended, which `answer` reports
            self._process.stdin.write(_line(targets))
            self._process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        with self._stdout, suppress(BrokenPipeError), self._process:  # closes its pipe
            pass

    def answer(self, request: Any, shape: Any) -> dict[str, Any]:
        """
        Return the answer. Can be called only once.

        Args:
            request:
                The request.

            shape:
                The type of the answer.

        Raises:
            LoadError: If one of the targets cannot be loaded.

            RevisionError: If the process does not answer in time, or returns an invalid answer.
        """
        try:  # a side that hangs might not even read the request
            self._process.communicate(_line(request), timeout=_MAX_S)
        except subprocess.TimeoutExpired:
            self._fail(f"did not end within {_MAX_S:g} s: a recipe hangs, or its examples take too long")
        try:
            data = decode_answer(self._output(), shape)
        except AnswerError as error:
            self._fail(f"is not understood: {error}")
        if "failed" in data:
            self._fail(f"failed: {data['failed']}")
        if "unloadable" in data:
            raise LoadError(data["target"], data["unloadable"])
        return data

    def _output(self) -> str:
        """Return the whole output, with the actual folder of the side replaced by the one to report."""
        self._stdout.seek(0)
        data = self._stdout.read(_MAX_BYTES + 1)
        if not data:
            self._fail(f"exited with code {self._process.returncode} without an answer")
        if len(data) > _MAX_BYTES:
            self._fail(f"printed more than {_MAX_BYTES:,} bytes")
        output = data.decode(errors="replace")
        if self._moved is not None:
            actual, reported = (json.dumps(str(folder))[1:-1] for folder in self._moved)
            output = output.replace(actual, reported)
        return output

    def _fail(self, reason: str) -> NoReturn:
        targets = self._targets
        if self._moved is not None:
            actual, reported = map(str, self._moved)
            targets = targets.replace(actual, reported)
        msg = f"the process that loads {targets!r} {reason}"
        raise RevisionError(msg) from None


def _callers_workspace() -> dict[str, str]:
    """Return the variable that passes this process's workspace, if any, to another process."""
    try:
        folder = str(workspace())
    except PromptError:  # missing or invalid, which both sides report
        folder = os.environ.get(VARIABLE, "")
    return {VARIABLE: folder}


def _line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


def run_side(answer: Callable[[Callable[[], Any]], dict[str, Any]]) -> None:
    """
    Print the answer of this process.

    Args:
        answer:
            Returns the answer. Called with a function that returns the next line of input.
    """
    requests = _take_input()
    with (
        suppress(OSError, OutputError),
        capture_output(restore=False) as output,
    ):  # a recipe might have closed it
        try:
            data = answer(lambda: json.loads(requests.readline()))
        except LoadError as error:
            data = {"target": error.target, "unloadable": error.reason}
        except BaseException as error:  # noqa: BLE001 (recipes can raise anything; the parent handles Ctrl-C)
            data = {"failed": failure_reason(error)}
        print(json.dumps(data), file=output)


def _take_input() -> BinaryIO:
    """
    Return standard input as a private stream, and replace it by an empty one, so that recipes cannot read it.
    """
    private = os.dup(0)
    reader, writer = os.pipe()
    os.close(writer)
    os.dup2(reader, 0)
    os.close(reader)
    return os.fdopen(private, "rb", closefd=False)  # a recipe might close it, and the process ends soon


def main() -> None:
    """Print the data of this side."""
    run_side(_answer)


def _answer(read_asked: Callable[[], Any]) -> dict[str, Any]:
    catalog = load_catalog(read_asked())
    examples = read_asked()
    return side_of(catalog, own_examples(catalog) if examples is None else examples)


def side_of(catalog: Catalog, examples: Examples) -> dict[str, Any]:
    """
    Return the data of a catalog.

    Args:
        catalog:
            The catalog.

        examples:
            The examples to render and read.
    """
    return {
        "lists": _lists(catalog),
        "places": {
            key_of(item): [item.location.file, item.location.line]
            for item in (*catalog.declared, *catalog.skills)
        },
        "examples": examples,
        "shown": {
            key_of(item): [_run_example(Call(item, sent)) for sent in examples.get(key_of(item), ())]
            for item in catalog.declared
        },
        "faults": faults_of(catalog),
    }


def faults_of(catalog: Catalog) -> list[list[Any]]:
    """Return the file, line and message of each error in the catalog."""
    return [[error.location.file, error.location.line, error.message] for error in catalog.errors]


def key_of(item: "Item | CompiledSkill") -> str:
    """Return the name of a prompt, a resource or a skill in the data."""
    if isinstance(item, CompiledPrompt):
        return f"prompt {item.name!r}"
    if not isinstance(item, CompiledResource):
        return f"skill {item.uri_template!r}"
    return f"{'template' if item.is_template else 'resource'} {item.uri_template!r}"


def _lists(catalog: Catalog) -> dict[str, Any]:
    """Return all lists, with more details of arguments and skills than clients receive."""
    lists = lists_of(catalog)
    for item in lists["prompts"]:
        arguments = catalog[item["name"]].arguments
        schema = msgspec.to_builtins(schema_of(arguments.ordered, places=True))
        item["$defs"] = schema.get("$defs", {})
        for entry in item.get("arguments", ()):
            argument = arguments.by_name[entry["name"]]
            entry["schema"] = schema["properties"][argument.name]
            entry["type"] = shown_type(argument.annotation)
            entry["words"] = argument.arg.description
    texts = {
        uri: text
        for skill in catalog.skills
        for uri, resource in skill.resources.items()
        if isinstance(text := resource.function(), str)
    }
    for item in lists.get("skills", ()):
        for file in item["resources"]:
            file["text"] = texts.get(file["uri"])
    return lists


def own_examples(catalog: Catalog) -> dict[str, list[Any]]:
    """Return the inputs of all examples: arguments of prompts, and URIs of resources."""
    return {key_of(item): list(wire_examples(item)) for item in catalog.declared}


def _run_example(example: Call) -> dict[str, Any]:
    """Return the outcome of an example: a text, or the reason why there is none."""
    # The example can come from the other side, which allows rendering.
    if isinstance(example.item, CompiledPrompt) and not example.item.sample:
        return {"for": example.label, "text": f"not rendered: {NO_SAMPLE}", "failure": None}
    outcome, text, failure = example.outcome(), None, None
    if not isinstance(outcome, BaseException):
        text = example.redactor.redacted(str(outcome))
    elif (reason := example.refusal(outcome)) is not None:
        text = f"not rendered: {reason}"
    else:
        failure = example.redactor.redacted(failure_reason(outcome))
    return {"for": example.label, "text": text, "failure": failure}


if __name__ == "__main__":
    main()

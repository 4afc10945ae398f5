"""
One side of a comparison, as plain data: its lists, and what its prompts and resources say for their examples.

Each side has a process of its own, since the modules of both have the same names. ``python -m`` this module
reads what is wanted from standard input, and prints the data.
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

if TYPE_CHECKING:  # most recipes hold none
    from promptkit.catalog.skills import CompiledSkill

#: What is rendered, or read, of each prompt and each resource, by its kind and its name.
Examples: TypeAlias = Mapping[str, Sequence[Any]]


#: How long one side may take: importing the recipes has no limit of its own.
_MAX_S: Final = 120.0

#: The size of an answer that is read. A larger one is refused.
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
            What to load.

        examples:
            What to render and read; None for the examples that this side has.

        moved:
            Where the side lies, and where it is said to lie in the data; None if it says where it lies.

    Raises:
        LoadError: If there is nothing at one of the targets.

        RevisionError: If its process does not answer in time, or answers with something else.
    """
    with Side(__name__, folder, targets, moved) as side:
        return side.answer(examples, Lists)


class Side:
    """
    A module that runs in a process of its own: it loads some targets, and then answers one question.

    It reads the targets from a line of standard input, and what is asked from the next one, and prints the
    answer; all are JSON. To leave the context ends it. Foreign code runs in it, so its answer is checked.

    Args:
        module:
            What is run.

        folder:
            As for `ask_side`.

        targets:
            As for `ask_side`.

        moved:
            As for `ask_side`.

        environment:
            The variables of the process; None for those of this one. The workspace is this one's in any case.
    """

    def __init__(
        self,
        module: str,
        folder: Path,
        targets: Sequence[str],
        moved: tuple[Path, Path] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._named, self._moved = " ".join(targets), moved
        # No pipe: what is printed without end, or by a process that it leaves behind, is not waited for.
        self._printed = open_unnamed_file("promptkit-side-")  # the context closes it
        self._process = subprocess.Popen(  # noqa: S603 (this very program)
            # -P, as the current folder may hold modules of the names that promptkit imports.
            [sys.executable, *(["-B"] if sys.dont_write_bytecode else []), "-P", "-m", module],
            stdin=subprocess.PIPE,
            stdout=self._printed,
            cwd=folder,
            env={**(os.environ if environment is None else environment), **_callers_workspace()},
        )
        assert self._process.stdin is not None  # noqa: S101 (it is a pipe)
        with suppress(BrokenPipeError):  # it has ended already, and `answer` says how
            self._process.stdin.write(_line(targets))
            self._process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        with self._printed, suppress(BrokenPipeError), self._process:  # which closes what leads to it
            pass

    def answer(self, asked: Any, shape: Any) -> dict[str, Any]:
        """
        Return the answer. To be called once.

        Args:
            asked:
                What it is asked.

            shape:
                The type of the answer.

        Raises:
            LoadError: If there is nothing at one of the targets.

            RevisionError: If the process does not answer in time, or answers with something else.
        """
        try:  # a side that hangs may not even read what it is asked
            self._process.communicate(_line(asked), timeout=_MAX_S)
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
        """The whole output, in which the place of the side is the one that it is said to be at."""
        self._printed.seek(0)
        printed = self._printed.read(_MAX_BYTES + 1)
        if not printed:
            self._fail(f"ended with code {self._process.returncode}, and without an answer")
        if len(printed) > _MAX_BYTES:
            self._fail(f"printed more than {_MAX_BYTES:,} bytes")
        output = printed.decode(errors="replace")
        if self._moved is not None:
            place, other = (json.dumps(str(one))[1:-1] for one in self._moved)
            output = output.replace(place, other)
        return output

    def _fail(self, reason: str) -> NoReturn:
        named = self._named
        if self._moved is not None:
            place, other = map(str, self._moved)
            named = named.replace(place, other)
        msg = f"the process that loads {named!r} {reason}"
        raise RevisionError(msg) from None


def _callers_workspace() -> dict[str, str]:
    """The variable that gives a process, wherever it runs, the workspace that this one has, or none."""
    try:
        named = str(workspace())
    except PromptError:  # there is none, or it is misnamed, and both sides say so
        named = os.environ.get(VARIABLE, "")
    return {VARIABLE: named}


def _line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


def run_side(answer: Callable[[Callable[[], Any]], dict[str, Any]]) -> None:
    """
    Print the answer of this process.

    Args:
        answer:
            Returns it. Called with a function that returns what is asked next.
    """
    asked = _take_input()
    with (
        suppress(OSError, OutputError),
        capture_output(restore=False) as output,
    ):  # a recipe may have closed it
        try:
            data = answer(lambda: json.loads(asked.readline()))
        except LoadError as error:
            data = {"target": error.target, "unloadable": error.reason}
        except BaseException as error:  # noqa: BLE001 (any code has run; Ctrl-C is handled where it is waited for)
            data = {"failed": failure_reason(error)}
        print(json.dumps(data), file=output)


def _take_input() -> BinaryIO:
    """Return standard input as a private stream. Recipes get an empty one: they would read what is asked."""
    private = os.dup(0)
    reading, writing = os.pipe()
    os.close(writing)
    os.dup2(reading, 0)
    os.close(reading)
    return os.fdopen(private, "rb", closefd=False)  # a recipe may close it, and the process ends soon


def main() -> None:
    """Print the data of this side for what is asked."""
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
            What is served.

        examples:
            What to render and read.
    """
    return {
        "lists": _lists(catalog),
        "places": {
            key_of(item): [item.location.file, item.location.line]
            for item in (*catalog.declared, *catalog.skills)
        },
        "examples": examples,
        "shown": {
            key_of(item): [_shown(Call(item, sent)) for sent in examples.get(key_of(item), ())]
            for item in catalog.declared
        },
        "faults": faults_of(catalog),
    }


def faults_of(catalog: Catalog) -> list[list[Any]]:
    """Return what keeps something from being served: file, line and message of each."""
    return [[one.location.file, one.location.line, one.message] for one in catalog.errors]


def key_of(item: "Item | CompiledSkill") -> str:
    """Return what a prompt, a resource or a skill is called in the data."""
    if isinstance(item, CompiledPrompt):
        return f"prompt {item.name!r}"
    if not isinstance(item, CompiledResource):
        return f"skill {item.uri_template!r}"
    return f"{'template' if item.is_template else 'resource'} {item.uri_template!r}"


def _lists(catalog: Catalog) -> dict[str, Any]:
    """All lists, with more of the arguments of prompts, and of skills, than clients receive."""
    lists = lists_of(catalog)
    for item in lists["prompts"]:
        arguments = catalog[item["name"]].arguments
        schema = msgspec.to_builtins(schema_of(arguments.ordered, places=True))
        item["$defs"] = schema.get("$defs", {})
        for one in item.get("arguments", ()):
            argument = arguments.by_name[one["name"]]
            one["schema"] = schema["properties"][argument.name]
            one["type"] = shown_type(argument.annotation)
            one["words"] = argument.arg.description
    texts = {
        uri: text
        for skill in catalog.skills
        for uri, resource in skill.resources.items()
        if isinstance(text := resource.function(), str)
    }
    for item in lists.get("skills", ()):
        for one in item["resources"]:
            one["text"] = texts.get(one["uri"])
    return lists


def own_examples(catalog: Catalog) -> dict[str, list[Any]]:
    """Return what the authors' examples come to: arguments of prompts, and URIs of resources."""
    return {key_of(item): list(wire_examples(item)) for item in catalog.declared}


def _shown(example: Call) -> dict[str, Any]:
    """What came of an example: a text, or why there is none."""
    if isinstance(example.item, CompiledPrompt) and not example.item.sample:  # the other side has examples
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

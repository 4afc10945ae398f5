"""
One side of a comparison, as plain data: its lists, and what its prompts and resources say for their examples.

Each side has a process of its own, since the modules of both have the same names. ``python -m`` this module
reads what is wanted from standard input, and prints the data.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.examples import example_arguments, example_uris
from promptkit.catalog.json_schema import schema_of
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.catalog.resources import CompiledResource
from promptkit.cli.calls import call_within_limit, render_within_limit
from promptkit.cli.differences.revisions import RevisionError
from promptkit.cli.examples import failure_reason, refusal, shown_arguments
from promptkit.cli.list import shown_type
from promptkit.cli.loading import load_catalog
from promptkit.cli.output import Output, capture_output
from promptkit.errors.diagnostics import Severity
from promptkit.errors.exceptions import LoadError
from promptkit.language.documents import EmbeddedResource
from promptkit.language.messages import Workflow
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.revisions import LATEST_HANDSHAKE

__all__ = ["ask_side", "main", "moved", "own_examples", "side_of"]

#: What is rendered, or read, of each prompt and each resource, by its kind and its name.
Examples: TypeAlias = Mapping[str, Sequence[Any]]


#: How long one side may take: importing the recipes has no limit of its own.
_MAX_S: Final = 120.0


def ask_side(folder: Path, target: str, examples: Examples | None = None) -> dict[str, Any]:
    """
    Return the data of one side.

    Args:
        folder:
            The current folder of its process.

        target:
            What to load.

        examples:
            What to render and read; None for the examples that this side has.

    Raises:
        LoadError: If there is nothing at *target*.

        RevisionError: If its process ends before it has answered, or does not end in time.
    """
    asked = {"target": target, "examples": examples}
    try:
        ran = subprocess.run(  # noqa: S603 (this very program)
            # -P, as the current folder may hold modules of the names that promptkit imports.
            [sys.executable, "-P", "-m", __name__],
            input=json.dumps(asked).encode(),
            stdout=subprocess.PIPE,
            cwd=folder,
            check=False,
            timeout=_MAX_S,
        )
    except subprocess.TimeoutExpired:
        msg = f"the process that loads {target!r} did not end within {_MAX_S:g} s: a recipe in it hangs"
        raise RevisionError(msg) from None
    if not ran.stdout:
        msg = f"the process that loads {target!r} ended with code {ran.returncode}, and without an answer"
        raise RevisionError(msg)
    data: dict[str, Any] = json.loads(ran.stdout)
    if "unloadable" in data:
        raise LoadError(data["target"], data["unloadable"])
    return data


def moved(value: Any, place: str, other: str) -> Any:
    """
    Return *value* with *other* wherever it says *place*, as if what is there lay elsewhere.
    """
    if isinstance(value, str):
        return value.replace(place, other)
    if isinstance(value, list):
        return [moved(item, place, other) for item in value]
    if isinstance(value, dict):
        return {key: moved(item, place, other) for key, item in value.items()}
    return value


def main() -> None:
    """
    Read what is wanted, and print the data of this side.
    """
    asked = json.loads(sys.stdin.buffer.read())
    with capture_output(restore=False) as output:
        _answer(asked, output)


def _answer(asked: Mapping[str, Any], output: Output) -> None:
    try:
        catalog = load_catalog(asked["target"])
    except LoadError as error:
        data: dict[str, Any] = {"target": error.target, "unloadable": error.reason}
    else:
        examples = asked["examples"]
        data = side_of(catalog, own_examples(catalog) if examples is None else examples)
    print(json.dumps(data), file=output)


def side_of(catalog: Catalog, examples: Examples) -> dict[str, Any]:
    """
    Return the data of a catalog.

    Args:
        catalog:
            What is served.

        examples:
            What to render and read.
    """
    rendered = {
        f"prompt {prompt.name}": [
            _rendered(prompt, sent) for sent in examples.get(f"prompt {prompt.name}", ())
        ]
        for prompt in catalog.prompts
    }
    read = {
        _key(resource): [_read(catalog, resource, uri) for uri in examples.get(_key(resource), ())]
        for resource in catalog.resources
    }
    return {
        "lists": _lists(catalog),
        "places": {
            f"prompt {prompt.name!r}": [prompt.location.file, prompt.location.line]
            for prompt in catalog.prompts
        },
        "examples": examples,
        "shown": {**rendered, **read},
        "faults": [
            [one.location.file, one.location.line, one.message]
            for one in catalog.diagnostics
            if one.severity is Severity.ERROR
        ],
    }


def _key(resource: CompiledResource) -> str:
    return f"{'template' if resource.is_template else 'resource'} {resource.uri_template}"


def _lists(catalog: Catalog) -> Any:
    """All lists, as clients of the newest revision with a handshake receive them, and more of arguments."""
    lowering, resources = lowering_for(LATEST_HANDSHAKE), catalog.resources
    return msgspec.to_builtins(
        {
            "prompts": [_listed(prompt) for prompt in catalog.prompts],
            "resources": [_scoped(lowering.resource(one), one) for one in resources if not one.is_template],
            "resourceTemplates": [
                _scoped(lowering.template(one), one) for one in resources if one.is_template
            ],
        }
    )


def _listed(prompt: CompiledPrompt) -> dict[str, Any]:
    arguments = prompt.arguments.ordered
    types = {one.name: shown_type(one.annotation) for one in arguments}
    words = {one.name: one.arg.description for one in arguments}
    listed = _scoped(lowering_for(LATEST_HANDSHAKE).prompt(prompt), prompt)
    return {**listed, "schema": schema_of(arguments, places=True), "types": types, "words": words}


def _scoped(listed: object, item: CompiledPrompt | CompiledResource) -> dict[str, Any]:
    """What is listed of an item, and what a caller needs to see it."""
    return {**msgspec.to_builtins(listed), "scopes": sorted(item.scopes)}


def own_examples(catalog: Catalog) -> dict[str, list[Any]]:
    """
    Return what the authors' examples come to: arguments of prompts, and URIs of resources.
    """
    found: dict[str, list[Any]] = {}
    for prompt in catalog.prompts:
        found[f"prompt {prompt.name}"] = list(example_arguments(prompt.arguments))
    for resource in catalog.resources:
        found[_key(resource)] = list(example_uris(resource))
    return found


def _rendered(prompt: CompiledPrompt, sent: Mapping[str, str]) -> dict[str, Any]:
    outcome = render_within_limit(prompt, sent)
    redactor = Redactor.of(prompt.arguments, sent)
    return _told(shown_arguments(prompt, sent), sent, outcome, redactor)


def _read(catalog: Catalog, resource: CompiledResource, uri: str) -> dict[str, Any]:
    outcome = call_within_limit(partial(catalog.read, uri))
    given = resource.match(uri) or {}
    redactor = Redactor.of(resource.arguments, given)
    return _told(redactor.redacted(uri), given, outcome, redactor)


def _told(
    example: str,
    given: Mapping[str, object],
    outcome: Workflow | EmbeddedResource | BaseException,
    redactor: Redactor,
) -> dict[str, Any]:
    """What came of an example: a text, or why there is none."""
    text = failure = None
    if isinstance(outcome, Workflow | EmbeddedResource):
        text = redactor.redacted(str(outcome))
    elif (reason := refusal(given, outcome)) is not None:
        text = f"not rendered: {reason}"
    else:
        failure = redactor.redacted(failure_reason(outcome))
    return {"for": example, "text": text, "failure": failure}


if __name__ == "__main__":
    main()

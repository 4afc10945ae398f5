"""Lints for prompts, and for combinations of prompts, resources and skills in a catalog."""

import ast
import inspect
import sys
from collections.abc import Collection, Iterable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from itertools import product
from pathlib import Path
from reprlib import repr as short_repr
from typing import Any, Final
from uuid import UUID

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.resources import CompiledResource
from promptkit.catalog.tools import MAX_TOOL_DESCRIPTION
from promptkit.declarations.prompts import Prompt
from promptkit.declarations.resources import Resource
from promptkit.declarations.signature import read_type_hints
from promptkit.errors.diagnostics import Diagnostic, Location, Owner, Report
from promptkit.errors.exceptions import ArgumentsError, MediaError
from promptkit.errors.rules import Rule
from promptkit.errors.sources import own_nodes
from promptkit.language.messages import Workflow
from promptkit.language.validation import hint_for, is_role_tuple
from promptkit.lints.cases import lint_cases
from promptkit.lints.conversations import SentMessages, content_kind, get_role
from promptkit.lints.skills import lint_routing, lint_skill_names
from promptkit.lints.static_analysis import (
    Scope,
    Unawaited,
    execution_paths,
    is_none,
    list_choices,
    list_items,
)
from promptkit.loader.targets import display_path
from promptkit.types.functions import metadata_of
from promptkit.types.kinds import has_type
from promptkit.types.unstructuring import text_of

#: Packages of other frameworks, whose metadata in ``Annotated`` promptkit ignores.
_OTHER_FRAMEWORKS: Final = ("pydantic", "annotated_types", "typer")

#: Types of values that cannot become a message, and that diagnostics call by the type's name.
_NAMED_TYPES: Final = (dict, list, set, tuple, date, datetime, time, timedelta, Decimal, UUID)

#: Other types of values that cannot become a message, each with the description for diagnostics.
_DESCRIPTIONS: Final = {
    bytes: "bytes",
    int: "a number",
    float: "a number",
    bool: "True",
    type(iter(())): "a generator",
    type(Path()): "a path",
    Unawaited: "a coroutine",
}


def lint_prompt(prompt: Prompt[..., Any], arguments: Arguments | None) -> tuple[Diagnostic, ...]:
    """
    Return probable mistakes in a prompt.

    Args:
        prompt:
            The prompt.

        arguments:
            The compiled arguments; None if the prompt cannot be served.
    """
    report = Report(f"prompt {prompt.options.name!r}", prompt.location)
    if (scope := Scope.of(prompt.function, prompt.location)) is not None:
        _lint_empty_result(scope, report)
        if arguments is not None:
            _lint_sent_values(scope, report)
            sent = SentMessages.from_source(scope)
            _lint_system_parts(sent, report)
            _lint_first_messages(sent, report)
            _lint_media(scope, report)
    _lint_metadata(prompt, report)
    for argument in arguments.ordered if arguments else ():
        lint_examples(argument, report, argument.name)
    return tuple(report.without_duplicates())


def _lint_empty_result(scope: Scope, report: Report) -> None:
    """Report a function that never returns or yields anything, unless it always raises."""
    body: list[ast.stmt] = getattr(scope.node, "body", [])
    returned = [node.value for node in own_nodes(scope.node, ast.Return) if node.value is not None]
    if own_nodes(scope.node, ast.Yield, ast.YieldFrom) or not all(map(is_none, returned)):
        return
    if all(path and isinstance(path[-1], ast.Raise) for path in execution_paths(body)):
        return
    location: ast.expr | str = "def"
    hint = "return text or messages, or yield them"
    match body[-1]:
        case ast.Expr(ast.Call(ast.Name("print")) as location):
            hint = "return the text: clients do not see printed text"
        case ast.Expr(ast.Call() | ast.JoinedStr() | ast.BinOp() as location):
            hint = "start this line with 'return'"
    report.add(Rule.NO_MESSAGE, "it never returns or yields anything", hint, location)


def _lint_sent_values(scope: Scope, report: Report) -> None:
    """Report values that a prompt returns, yields or passes to a turn, but that cannot become a message."""
    for node in own_nodes(scope.node, ast.Return, ast.Yield, ast.Call):
        match node:
            case ast.Return(value=ast.expr() as sent):
                _lint_sent_value(sent, "it returns", scope, report)
            case ast.Yield(value=ast.expr() as sent):
                _lint_sent_value(sent, "it yields", scope, report)
            case ast.Call(func=callee, args=parts) if get_role(scope.global_value(callee)):
                for part in parts:
                    _lint_sent_value(part, "a part is", scope, report, may_hold_several=False)


def _lint_sent_value(
    node: ast.expr, verb: str, scope: Scope, report: Report, *, may_hold_several: bool = True
) -> None:
    """Report the expressions in *node* that cannot become a message. The diagnostic starts with *verb*."""
    sent = scope.resolve(node)
    value = scope.stand_in(sent)
    inner = list_choices(sent)
    if may_hold_several and not is_role_tuple(value) and not isinstance(sent, ast.BinOp):
        inner = [*inner, *list_items(sent)]
        if isinstance(node, ast.Name) and sent is not node:
            inner += (appended for appended in scope.values_before(node) if appended is not sent)
        value = None if isinstance(value, list | tuple) else value
    for expression in inner:
        _lint_sent_value(expression, verb, scope, report, may_hold_several=may_hold_several)
    if not inner and (kind := _describe_unsendable(value)) is not None:
        message = f"{verb} {kind}, which cannot become a message"
        report.add(Rule.UNSENDABLE_VALUE, message, hint_for(value), sent)


def _describe_unsendable(value: Any) -> str | None:
    """Return a description of *value* if it cannot become a message; otherwise None."""
    if value is None or value is False:
        return None
    if is_role_tuple(value):
        return "a pair of strings" if len(value) == 2 else "a tuple that starts with a role"
    if isinstance(value, Prompt | Resource):
        return f"the {type(value).__name__.lower()} {value.function.__name__!r} itself"
    if inspect.isroutine(value) or isinstance(value, type):
        return f"{getattr(value, '__name__', 'a function')!r} itself"
    kind = type(value)
    if isinstance(value, Enum) and not isinstance(value, str):
        return f"a member of {kind.__name__}"
    return f"a {kind.__name__}" if kind in _NAMED_TYPES else _DESCRIPTIONS.get(kind)


def _lint_system_parts(sent: SentMessages, report: Report) -> None:
    """Report an execution path that has a system part but no turns."""
    for conversation in sent.conversations:
        if conversation and all(each.role == "system" for each in conversation):
            hint = "add a user message, for example system(...) + user(...)"
            report.add(Rule.NO_MESSAGE, "it has a system part but no turn", hint, conversation[0].node)


def _lint_first_messages(sent: SentMessages, report: Report) -> None:
    """Report a first message that is not user text."""
    for first, *later in filter(None, sent.conversations):
        if first.role == "assistant":
            message = "its first message is the assistant's"
            hint = "start with a user message, user(...)"
        elif first.name is not None and any(message.kind == "text" for message in later):
            message = f"its first message is {first.name}, but some clients use only the first message"
            hint = "put the text before it"
        else:
            continue
        report.add(Rule.FIRST_MESSAGE, message, hint, first.node)


def lint_first_message(prompt: CompiledPrompt, workflow: Workflow) -> tuple[Diagnostic, ...]:
    """Return diagnostics about a rendering's first message. `lint_prompt` checks the ones in the source."""
    report = Report(f"prompt {prompt.name!r}", prompt.location)
    _lint_first_messages(SentMessages.from_rendering(workflow), report)
    return tuple(report.diagnostics)


def _lint_media(scope: Scope, report: Report) -> None:
    """Report literal paths to media and other files that cannot be read or sent."""
    folder = Path(report.location.file).parent
    for node in own_nodes(scope.node, ast.Call):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="from_path", value=owner) as callee,
                args=[ast.Constant(value=str(path)), *_],
                keywords=keywords,
            ) if content_kind(callee, scope) not in (None, "text") and all(
                word.arg != "root" for word in keywords
            ):
                try:
                    scope.global_value(owner).from_path(folder / path)
                except OSError as error:
                    message = f"{path!r} cannot be read: {error.strerror or error}"
                    hint = f"it is looked up in {display_path(str(folder))!r}"
                    report.add(Rule.UNSENDABLE_FILE, message, hint, node)
                except MediaError as error:
                    message, _, hint = str(error).replace(str(folder / path), path).rpartition(": ")
                    report.add(Rule.UNSENDABLE_FILE, message, hint, node)


def _lint_metadata(prompt: Prompt[..., Any], report: Report) -> None:
    """Report metadata in ``Annotated`` for other frameworks, which promptkit ignores."""
    if sys.modules.keys().isdisjoint(_OTHER_FRAMEWORKS):
        return
    compiled = Report("", prompt.location)  # discarded: compilation has already reported these diagnostics
    for name, annotation in read_type_hints(prompt.function, prompt.names, compiled).items():
        for note in metadata_of(annotation):
            module = type(note).__module__.partition(".")[0]
            if module in _OTHER_FRAMEWORKS:
                message = f"parameter {name!r} has {type(note).__name__}(...) from {module}, which is ignored"
                hint = "describe it with Arg('...'), and limit it with msgspec.Meta(ge=..., pattern=..., ...)"
                report.add(Rule.FOREIGN_METADATA, message, hint, name)


def lint_examples(argument: Argument, report: Report, location: Location | str) -> None:
    """Report the examples and completions of a parameter that are invalid for it."""
    complete = argument.arg.complete
    completions = complete if isinstance(complete, list | tuple) else ()
    for kind, values in (("example", argument.arg.examples), ("completion", completions)):
        for value in values:
            if not accepts(argument, value):
                label = kind if argument.arg.secret else f"{kind} {short_repr(value)}"
                message = f"parameter {argument.name!r} does not accept its {label}"
                hint = f"give a valid value: {argument.reader.expected}"
                report.add(Rule.BAD_EXAMPLE, message, hint, location)


def accepts(argument: Argument, value: Any) -> bool:
    """Return whether a value, or its text from a client, is valid for an argument."""
    if value is None:
        return has_type(value, argument.annotation)
    try:
        sent = text_of(value) if has_type(value, argument.annotation) else value
        Arguments("", (argument,)).read({argument.name: sent})
    except ArgumentsError:
        return False
    except TypeError:  # the value has no text form, so it cannot be checked
        return True
    return True


def with_lints(catalog: Catalog) -> Catalog:
    """Return *catalog* with diagnostics about cases, about descriptions, and about combinations of items."""
    diagnostics = [*catalog.diagnostics, *_lint_template_scopes(catalog.resources)]
    diagnostics += _lint_descriptions(catalog.prompts)
    for item in catalog.declared:
        diagnostics += lint_cases(item)
    if catalog.skills:
        diagnostics += [*lint_skill_names(catalog), *lint_routing(catalog)]
    diagnostics.sort(key=lambda diagnostic: (diagnostic.location, diagnostic.rule.value, diagnostic.message))
    return catalog.with_diagnostics(diagnostics)


def _lint_descriptions(prompts: Iterable[CompiledPrompt]) -> Iterator[Diagnostic]:
    """Report prompts that can be offered as tools although their descriptions are too long for a tool."""
    for prompt in prompts:
        length = len(prompt.description or "")
        if prompt.tool is not False and length > MAX_TOOL_DESCRIPTION:
            owner = Owner(f"prompt {prompt.name!r}", prompt.location)
            message = (
                f"its description has {length:,} characters, but hosts truncate tool descriptions after 2,048"
            )
            hint = "describe in a few sentences when to use it; the rest belongs in the prompt"
            yield owner.diagnostic(Rule.LONG_TEXT, message, hint, "def")


def lint_instructions(instructions: str, location: Location) -> Iterator[Diagnostic]:
    """Report the instructions of a server if they are too long."""
    if len(instructions) > MAX_TOOL_DESCRIPTION:
        message = f"they have {len(instructions):,} characters, but hosts truncate them after 2,048"
        hint = "say in a few sentences when to use which prompt; the rest belongs in the prompts"
        yield Owner("instructions", location).diagnostic(Rule.LONG_TEXT, message, hint)


def _lint_template_scopes(resources: Collection[CompiledResource]) -> Iterator[Diagnostic]:
    """Report resources whose URIs also match a template that does not require all of their scopes."""
    hint = (
        "require these scopes for the template as well, or give the resource a URI that no template matches"
    )
    scoped = [resource for resource in resources if resource.scopes and not resource.is_template]
    templates = [resource for resource in resources if resource.is_template]
    for resource, template in product(scoped, templates):
        if not resource.scopes <= template.scopes and template.match(resource.uri_template) is not None:
            owner = Owner(f"resource {resource.name!r}", resource.location)
            message = (
                f"callers without its scopes get the template {template.uri_template!r} "
                f"at {template.location} instead"
            )
            yield owner.diagnostic(Rule.ANSWERED_WITHOUT_SCOPES, message, hint, "def")

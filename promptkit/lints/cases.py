"""Lints for saved cases."""

from collections.abc import Iterator

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.resources import CompiledResource
from promptkit.errors.diagnostics import Diagnostic, Owner
from promptkit.errors.exceptions import CompileError
from promptkit.errors.rules import Rule


def lint_cases(item: CompiledPrompt | CompiledResource) -> Iterator[Diagnostic]:
    """
    Yield the diagnostics of the saved cases of a prompt or a resource. The cases are not rendered.

    Args:
        item:
            The prompt or the resource.
    """
    owner = Owner(f"{item.arguments.kind} {item.name!r}", item.location)
    first: dict[str, str] = {}
    for case in item.saved():
        subject = f"case {case.name!r}"
        if case.name in first:
            message = f"{subject}: the case at {first[case.name]} has the same name"
            hint = "give each case a different name"
            yield owner.diagnostic(Rule.BAD_CASE, message, hint, case.location)
        first.setdefault(case.name, str(case.location))
        try:
            case.sent()
        except (TypeError, CompileError) as error:
            hint = f"pass arguments that the {item.arguments.kind} accepts, or save text with case_wire(...)"
            message = str(error).removeprefix(f"{owner.subject}: ")
            yield owner.diagnostic(Rule.BAD_CASE, f"{subject}: {message}", hint, case.location)

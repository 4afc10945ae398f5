"""Lints of cases: what no client can send, and names that two have."""

from collections.abc import Iterator

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.resources import CompiledResource
from promptkit.errors.diagnostics import Diagnostic, Rule
from promptkit.errors.exceptions import CompileError

__all__ = ["lint_cases"]


def lint_cases(item: CompiledPrompt | CompiledResource) -> Iterator[Diagnostic]:
    """
    Yield what is wrong with the cases of a prompt or a resource, before any is tried.

    Args:
        item:
            The prompt or the resource.
    """
    first: dict[str, str] = {}
    for case in item.saved():
        named = f"{item.arguments.kind} {item.name!r}: case {case.name!r}"
        if case.name in first:
            fault = f"{named}: another one at {first[case.name]} has this name"
            yield Diagnostic(Rule.BAD_CASE, fault, "give each case a name of its own", case.location)
        first.setdefault(case.name, str(case.location))
        try:
            case.sent()
        except (TypeError, CompileError) as error:
            hint = f"call it as the {item.arguments.kind} is called, or save text with case_wire(...)"
            fault = str(error).removeprefix(f"{item.arguments.kind} {item.name!r}: ")
            yield Diagnostic(Rule.BAD_CASE, f"{named}: {fault}", hint, case.location)

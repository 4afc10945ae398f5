"""What ``pytest --promptkit`` tries of a prompt: its author's examples, and arguments that are made up."""

import os
from collections.abc import Mapping

from promptkit.catalog.examples import example_arguments
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.errors.exceptions import PromptError
from promptkit.language.messages import Workflow
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.revisions import LATEST_HANDSHAKE

__all__ = ["RenderingError", "check_examples", "check_generated"]


class RenderingError(Exception):
    """
    A prompt that cannot be rendered, or sent; its cause is what was raised.

    Args:
        prompt:
            The prompt's name.

        arguments:
            What a client has sent.
    """

    def __init__(self, prompt: str, arguments: Mapping[str, str]) -> None:
        super().__init__(prompt, arguments)
        self.prompt = prompt
        self.arguments = dict(arguments)

    def __str__(self) -> str:
        return f"prompt {self.prompt!r} fails for {self.arguments!r}"


def check_examples(prompt: CompiledPrompt) -> list[Workflow]:
    """
    Check that *prompt* renders for its author's examples, if they are all that it needs, and its defaults.

    Returns:
        What it has rendered to. It may refuse its defaults with a `PromptError`: nobody has asked for them.

    Raises:
        RenderingError: For the first that it does not render for.
    """
    rendered = []
    for arguments in example_arguments(prompt.arguments):
        try:
            rendered.append(_render(prompt, arguments))
        except RenderingError as error:
            if arguments or not isinstance(error.__cause__, PromptError):
                raise
    return rendered


def check_generated(prompt: CompiledPrompt) -> str | None:
    """
    Check that *prompt* renders for arguments that hypothesis makes up, or tells people what is wrong.

    How many are tried is for hypothesis's profile to say. Where continuous integration runs (``CI`` is
    set) they are the same each time.

    Returns:
        What it has told people last, if it has rendered for none; None if it has rendered.

    Raises:
        RenderingError: For the simplest that it does not render for.

        ModuleNotFoundError: If hypothesis is not installed.
    """
    from promptkit.testing.strategies import wire_arguments

    strategy = wire_arguments(prompt)
    from hypothesis import HealthCheck, given, settings

    rendered, told = False, None

    def renders(sent: dict[str, str]) -> None:
        nonlocal rendered, told
        try:
            _render(prompt, sent)
            rendered = True
        except RenderingError as error:
            if not isinstance(error.__cause__, PromptError):
                raise
            told = str(error.__cause__)

    renders.__name__ = prompt.name  # hypothesis keeps failures by it, and seeds chance with it
    checks = settings(
        deadline=None,
        derandomize=settings().derandomize or "CI" in os.environ,
        report_multiple_bugs=False,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )
    checks(given(strategy)(renders))()
    return None if rendered else told


def _render(prompt: CompiledPrompt, arguments: Mapping[str, str]) -> Workflow:
    try:
        workflow = prompt.render(arguments)
        lowering_for(LATEST_HANDSHAKE).result(prompt, workflow)
    except Exception as error:
        raise RenderingError(prompt.name, arguments) from error
    return workflow

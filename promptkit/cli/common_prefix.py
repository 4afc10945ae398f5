"""
The common prefix of all renderings of a prompt: ``promptkit check --cache``.

Model vendors cache the start of a request for later requests with the same start.
"""

import os
import sys
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, to_builtins

from promptkit.catalog.arguments import Argument
from promptkit.catalog.cases import sendable
from promptkit.catalog.prompts import NO_SAMPLE, CompiledPrompt
from promptkit.cli.calls import Call, failure_reason
from promptkit.errors.distribution import needed_by
from promptkit.server.user_code import CallTimeoutError

if "hypothesis" not in sys.modules:  # keeps hypothesis from writing to the current folder
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", os.devnull)
with needed_by("check --cache", "hypothesis"):
    from hypothesis import HealthCheck, Phase, given, settings
from promptkit.testing.strategies import argument_texts

#: The number of values generated for each argument.
_VALUES: Final = 12


class CommonPrefix(Struct, frozen=True):
    """
    The common prefix of all renderings of a prompt.

    Args:
        length:
            Its length in characters, as `promptkit render` prints them.

        shortest:
            The length of the shortest rendering.

        renderings:
            The number of different renderings.
    """

    length: int
    shortest: int
    renderings: int

    def __str__(self) -> str:
        if self.renderings == 1:
            return f"all renderings that were tried are the same {self.length:,} characters"
        same = f"the same {self.length:,} characters, of {self.shortest:,} or more"
        return f"{self.renderings} renderings begin with {same}"

    def as_data(self) -> dict[str, int]:
        """Return the prefix as JSON-compatible data."""
        data: dict[str, int] = to_builtins(self)
        return data


def common_prefix(prompt: CompiledPrompt) -> CommonPrefix | str:
    """
    Measure the common prefix of a prompt's renderings, for its cases, examples and generated arguments.

    Returns:
        The prefix, or the reason if no rendering succeeds.

    Raises:
        KeyboardInterrupt: On Ctrl-C.
    """
    if not prompt.sample:
        return NO_SAMPLE
    sent: list[Mapping[str, Any]] = [
        texts for case, texts in sendable(prompt.saved()) if case.refusal is None
    ]
    sent += prompt.arguments.example_texts
    try:
        generated = {argument.name: _generate_values(argument) for argument in prompt.arguments.ordered}
    except Exception as error:  # noqa: BLE001 (it runs code from authors' types)
        return f"no values can be made up for its arguments: {failure_reason(error)}"
    for turn in range(max(map(len, generated.values()), default=1)):
        values = {name: choices[turn % len(choices)] for name, choices in generated.items()}
        sent.append({name: value for name, value in values.items() if value is not None})
    renderings, failure = set[str](), ""
    for arguments in (sent[0], *sent):  # the first twice, because its renderings can differ
        call = Call(prompt, arguments)
        outcome = call.outcome()
        if isinstance(outcome, CallTimeoutError):  # other arguments can also hang
            return f"it {outcome}"
        if isinstance(outcome, BaseException):
            failure = failure or call.redactor.redacted(f"for {call.label}: {failure_reason(outcome)}")
        else:
            renderings.add(str(outcome))
    if not renderings:
        return f"it renders for none of {len(sent)} arguments; {failure}"
    prefix = os.path.commonprefix([*renderings])  # noqa: RUF071 (it compares characters, not paths)
    return CommonPrefix(len(prefix), min(map(len, renderings)), len(renderings))


def _generate_values(argument: Argument) -> list[str | None]:
    """Return different values of an argument, the same ones at each run; None omits the argument."""
    values: list[str | None] = [None] if argument.has_default else []

    @settings(
        max_examples=_VALUES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(argument_texts(argument))
    def collect(text: str) -> None:
        if text not in values:
            values.append(text)

    collect()
    return values

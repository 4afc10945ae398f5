"""
Which characters all renderings of a prompt begin with: ``promptkit check --cache``.

Vendors of models cache the beginning of a request for the next one that begins alike.
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

if "hypothesis" not in sys.modules:  # it writes to the current folder, or where this says: nowhere
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", os.devnull)
with needed_by("check --cache", "hypothesis"):
    from hypothesis import HealthCheck, Phase, given, settings
from promptkit.testing.strategies import argument_texts

#: How many values are made up for each argument.
_VALUES: Final = 12


class CommonPrefix(Struct, frozen=True):
    """
    What all renderings of a prompt begin with.

    Args:
        length:
            How many characters that are, as `promptkit render` shows them.

        shortest:
            How many the shortest rendering has.

        renderings:
            How many differ.
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
        """Return it as JSON-compatible data."""
        data: dict[str, int] = to_builtins(self)
        return data


def common_prefix(prompt: CompiledPrompt) -> CommonPrefix | str:
    """
    Return what the renderings of a prompt begin with, for its cases and examples, and for made-up arguments.

    Returns:
        Why that is unknown, if it renders for none of them.

    Raises:
        KeyboardInterrupt: On Ctrl-C.
    """
    if not prompt.sample:
        return NO_SAMPLE
    sent: list[Mapping[str, Any]] = [one for case, one in sendable(prompt.saved()) if case.refusal is None]
    sent += prompt.arguments.example_texts
    try:
        made_up = {argument.name: _made_up(argument) for argument in prompt.arguments.ordered}
    except Exception as error:  # noqa: BLE001 (it calls what an author's types define)
        return f"no values can be made up for its arguments: {failure_reason(error)}"
    for turn in range(max(map(len, made_up.values()), default=1)):
        values = {name: found[turn % len(found)] for name, found in made_up.items()}
        sent.append({name: value for name, value in values.items() if value is not None})
    texts, failure = set[str](), ""
    for one in (sent[0], *sent):  # the first twice: it may say something else each time
        call = Call(prompt, one)
        outcome = call.outcome()
        if isinstance(outcome, CallTimeoutError):  # it may hang for all others, too
            return f"it {outcome}"
        if isinstance(outcome, BaseException):
            failure = failure or call.redactor.redacted(f"for {call.label}: {failure_reason(outcome)}")
        else:
            texts.add(str(outcome))
    if not texts:
        return f"it renders for none of {len(sent)} arguments; {failure}"
    same = os.path.commonprefix([*texts])  # noqa: RUF071 (characters are meant)
    return CommonPrefix(len(same), min(map(len, texts)), len(texts))


def _made_up(argument: Argument) -> list[str | None]:
    """Values of an argument that differ, the same ones each time; None leaves it out."""
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
    def keep(text: str) -> None:
        if text not in values:
            values.append(text)

    keep()
    return values

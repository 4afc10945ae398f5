"""The exceptions that promptkit raises."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, structs

if TYPE_CHECKING:
    from promptkit.errors.diagnostics import Diagnostic


class PromptkitError(Exception):
    """
    The root: catch it to catch whatever promptkit itself refuses.
    """


class PromptError(PromptkitError):
    """
    Raised by an author's prompt to tell the person at the client something.

    The message is sent as it is, under the code for invalid params (-32602). The text
    of any other exception stays on the server.

    Args:
        message:
            What was wrong and what to do, in words for the person who asked.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class MediaError(PromptError, ValueError):
    """
    Bytes that cannot be sent as an image or a recording, or a path that must not be read.

    It is a `PromptError`, as what is refused often comes from the person at the client.
    """


class EmptyPrompt(PromptError):
    """
    A prompt that rendered to nothing: it said neither text nor content.

    It is a `PromptError`, as a client that receives no messages shows nothing, and does not say why.

    Args:
        name:
            The prompt's name.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name
        self.message = f"prompt {name!r} has nothing to say for these arguments"

    def __str__(self) -> str:
        return self.message


class ResultError(TypeError):
    """
    An author's function returned or yielded what nothing can be made of.

    The message names the function and its place: no frame of the traceback would say more, as the
    function is over.
    """


class _Reported(PromptkitError):
    """
    An error whose facts stay as they were reported.

    Python may add traceback, cause and notes, and may set a fact to what it is, for a copy.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("__") and self.__dict__.get(name, value) != value:
            msg = f"{name!r} of {type(self).__name__} cannot be changed"
            raise AttributeError(msg)
        super().__setattr__(name, value)


class UnknownPrompt(_Reported, KeyError):
    """
    No prompt is called *name*.

    Args:
        name:
            The name that was asked for.

        nearest:
            The most similar name that exists, if any is similar.
    """

    def __init__(self, name: str, nearest: str | None = None) -> None:
        super().__init__(name, nearest)
        self.name = name
        self.nearest = nearest

    def __str__(self) -> str:
        hint = f"; did you mean {self.nearest!r}?" if self.nearest else ""
        return f"unknown prompt {shortened(self.name)!r}{hint}"

    def as_data(self) -> dict[str, Any]:
        """
        Return it for machines, what there is of it.
        """
        data = {"name": shortened(self.name)}
        return data if self.nearest is None else {**data, "nearest": self.nearest}


class UnknownResource(_Reported, KeyError):
    """
    No resource stands at *uri*.

    Args:
        uri:
            The URI that was asked for.

        nearest:
            The most similar URI or template that exists, if any is similar.

        reason:
            Why it was not looked for, if it was not.
    """

    def __init__(self, uri: str, nearest: str | None = None, reason: str | None = None) -> None:
        super().__init__(uri, nearest, reason)
        self.uri = uri
        self.nearest = nearest
        self.reason = reason

    def __str__(self) -> str:
        hint = f"; did you mean {self.nearest!r}?" if self.nearest else ""
        why = f": {self.reason}" if self.reason else ""
        return f"unknown resource {shortened(self.uri)!r}{why}{hint}"

    def as_data(self) -> dict[str, Any]:
        """
        Return it for machines, what there is of it.
        """
        data = {"uri": shortened(self.uri)}
        return data if self.nearest is None else {**data, "nearest": self.nearest}


class Fault(Struct, frozen=True):
    """
    One argument that does not fit, and why.

    Args:
        argument:
            The argument's name.

        reason:
            What is wrong with it, to be read after its name: ``is missing``.

        expected:
            What would fit, in a few words.

        nearest:
            The valid name or value that is most similar to what was given, if any is.

        path:
            Where inside of the argument it is wrong: ``.points[2].x``.

        got:
            What was given there, shortened; None for a secret, and for what is missing.

        allowed:
            The values that would fit, if there are few.
    """

    argument: str
    reason: str
    expected: str | None = None
    nearest: str | None = None
    path: str = ""
    got: str | None = None
    allowed: tuple[str, ...] = ()

    def __str__(self) -> str:
        hint = f" (did you mean {self.nearest!r}?)" if self.nearest else ""
        return f"{shortened(self.argument + self.path)!r} {self.reason}{hint}"

    def as_data(self) -> dict[str, Any]:
        """
        Return the fault for machines, what there is of it.
        """
        shown = structs.replace(self, argument=shortened(self.argument), path=shortened(self.path))
        return {name: value for name, value in structs.asdict(shown).items() if value}


class ArgumentErrors(_Reported, ValueError):
    """
    The arguments of one request do not fit the parameters of what it asks for.

    Args:
        prompt:
            The prompt's name, or the resource's.

        faults:
            Every argument that is missing, unknown or of the wrong type.

        kind:
            What it is: a prompt or a resource.
    """

    def __init__(self, prompt: str, faults: tuple[Fault, ...], kind: str = "prompt") -> None:
        super().__init__(prompt, faults, kind)
        self.prompt = prompt
        self.faults = faults
        self.kind = kind

    def __str__(self) -> str:
        return f"{self.kind} {self.prompt!r}: " + "; ".join(map(str, self.faults))


class CompileError(_Reported):
    """
    A prompt or resource was used that cannot be compiled.

    Args:
        diagnostics:
            Everything that is wrong with it.
    """

    def __init__(self, diagnostics: "tuple[Diagnostic, ...]") -> None:
        super().__init__(diagnostics)
        self.diagnostics = diagnostics

    def __str__(self) -> str:
        return "\n".join(map(str, self.diagnostics))


class LoadError(_Reported):
    """
    There is nothing to load at *target*.

    Args:
        target:
            The folder, file, module or ``module:object`` that was named.

        reason:
            What is wrong with it, and what to name instead.
    """

    def __init__(self, target: str, reason: str) -> None:
        super().__init__(target, reason)
        self.target = target
        self.reason = reason

    def __str__(self) -> str:
        return f"cannot load {self.target!r}: {self.reason}"


class ConfigurationError(_Reported):
    """
    A setting of a project cannot be understood.

    Args:
        file:
            The ``pyproject.toml``.

        reason:
            What is wrong with it, and what to write instead.
    """

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(file, reason)
        self.file = file
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.file}: {self.reason}"


#: Characters of a name that a client has chosen; more of it would say nothing.
_LONGEST_SHOWN: Final = 200


def shortened(text: str) -> str:
    """
    Return *text*, which a client has chosen, as an error names it: of a long one the beginning.
    """
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def nearest(name: str, names: Iterable[str]) -> str | None:
    """
    Return the one of *names* that *name* was most likely meant to be, or None.
    """
    from difflib import get_close_matches  # only a refusal needs it

    folded = {candidate.casefold(): candidate for candidate in names}
    # What is three times as long is not similar, and a client may send a name of any length.
    if len(name) > 3 * max(map(len, folded), default=0):
        return None
    matches = get_close_matches(name.casefold(), folded, n=1)
    return folded[matches[0]] if matches else None

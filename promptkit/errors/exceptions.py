"""The exceptions that promptkit raises."""

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, structs

if TYPE_CHECKING:
    from promptkit.errors.diagnostics import Diagnostic

#: What users import, from `promptkit.errors`.
__all__ = [
    "ArgumentsError",
    "CompileError",
    "ConfigurationError",
    "EmptyPromptError",
    "InvalidArgument",
    "LoadError",
    "MediaError",
    "MissingClientCapabilityError",
    "PromptError",
    "PromptkitError",
    "ResultError",
    "UnknownPromptError",
    "UnknownResourceError",
    "UnknownToolError",
]


class PromptkitError(Exception):
    """
    The base class of promptkit's own exceptions: catch it to catch them all.
    """


class PromptError(PromptkitError):
    """
    Raise it in a prompt or resource to tell the person at the client what is wrong.

    The message is sent unchanged, with the JSON-RPC error code for invalid params (-32602). The
    text of any other exception stays on the server.

    Args:
        message:
            What is wrong and what to do, as text for people.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#error-handling
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class MissingClientCapabilityError(PromptkitError):
    """
    A prompt requires a capability that the client does not declare.

    Args:
        capability:
            Its name in the protocol.

    See Also:
        https://modelcontextprotocol.io/specification/2026-07-28/basic#json-rpc-error-codes
    """

    def __init__(self, capability: str) -> None:
        super().__init__(capability)
        self.capability = capability

    def __str__(self) -> str:
        return f"the client does not declare {self.capability!r}, which is required here"


class MediaError(PromptError, ValueError):
    """
    Bytes that cannot be sent as an image or a recording, or a path that must not be read.

    It is a `PromptError`, since the path or the bytes often come from the person at the client.

    Args:
        message:
            What is wrong and what to do, as text for people.
    """


class EmptyPromptError(PromptError):
    """
    A prompt that rendered to nothing: neither text nor other content.

    It is a `PromptError`, since a client that receives no messages shows nothing, and no reason.

    Args:
        name:
            The prompt's name.

        only_system:
            Whether it has a system part, and no turn.
    """

    def __init__(self, name: str, *, only_system: bool = False) -> None:
        super().__init__(name)
        self.name = name
        self.message = f"prompt {name!r} has nothing to say for these arguments"
        if only_system:
            self.message = f"prompt {name!r} has a system part and no turn: add a user(...)"

    def __str__(self) -> str:
        return self.message


class ResultError(TypeError):
    """
    An author's function returned or yielded a value that cannot be sent.

    The message names the function and its place in the file. No traceback could, since the
    function has already returned.
    """


class _UnknownError(PromptkitError, KeyError):
    """Nothing is called as a client says."""

    _kind = _member = ""
    nearest: str | None
    reason: str | None = None

    def __str__(self) -> str:
        hint = f"; did you mean {self.nearest!r}?" if self.nearest else ""
        why = f": {self.reason}" if self.reason else ""
        return f"unknown {self._kind} {shortened(self.args[0])!r}{why}{hint}"

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON-compatible data."""
        data = {self._member: shortened(self.args[0])}
        return data if self.nearest is None else {**data, "nearest": self.nearest}


class UnknownPromptError(_UnknownError):
    """
    No prompt has this name.

    Args:
        name:
            The name that was requested.

        nearest:
            The most similar name of a prompt, None if no name is similar.
    """

    _kind, _member = "prompt", "name"

    def __init__(self, name: str, nearest: str | None = None) -> None:
        super().__init__(name, nearest)
        self.name = name
        self.nearest = nearest


class UnknownToolError(UnknownPromptError):
    """
    No prompt that may be called as a tool has this name.
    """

    _kind = "tool"


class UnknownResourceError(_UnknownError):
    """
    No resource has this URI.

    Args:
        uri:
            The URI that was requested.

        nearest:
            The most similar URI or URI template of a resource, None if no other is similar.

        reason:
            Why the URI cannot be looked up, None if it was.
    """

    _kind, _member = "resource", "uri"

    def __init__(self, uri: str, nearest: str | None = None, reason: str | None = None) -> None:
        super().__init__(uri, nearest, reason)
        self.uri = uri
        self.nearest = nearest
        self.reason = reason


class InvalidArgument(Struct, frozen=True):
    """
    What is wrong with one argument.

    Args:
        argument:
            The argument's name.

        reason:
            What is wrong, as a predicate of the name: ``is missing``.

        expected:
            What would be valid, in a few words; None if nothing more can be said.

        nearest:
            The valid name or value that is most similar to the given one, None if none is similar.

        path:
            Where inside the argument the fault is: ``.points[2].x``; ``""`` for the whole argument.

        got:
            The given value as text, shortened; None for a secret or a missing argument.

        allowed:
            All valid values as text, if they are few; else empty.
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
        Return the fault as JSON-compatible data, without what is empty.
        """
        shown = structs.replace(self, argument=shortened(self.argument), path=shortened(self.path))
        return {name: value for name, value in structs.asdict(shown).items() if value}


class ArgumentsError(PromptkitError, ValueError):
    """
    The arguments of one request do not fit the parameters of the prompt or resource.

    Args:
        prompt:
            The name of the prompt or resource.

        errors:
            One `InvalidArgument` for each argument that is missing, unknown or invalid.

        kind:
            ``"prompt"`` or ``"resource"``.
    """

    def __init__(self, prompt: str, errors: tuple[InvalidArgument, ...], kind: str = "prompt") -> None:
        super().__init__(prompt, errors, kind)
        self.prompt = prompt
        self.errors = errors
        self.kind = kind

    def __str__(self) -> str:
        return f"{self.kind} {self.prompt!r}: " + "; ".join(map(str, self.errors))


class CompileError(PromptkitError):
    """
    A prompt or resource that cannot be compiled was used.

    Args:
        diagnostics:
            Everything that is wrong with it, each with its place and its hint.
    """

    def __init__(self, diagnostics: "tuple[Diagnostic, ...]") -> None:
        super().__init__(diagnostics)
        self.diagnostics = diagnostics

    def __str__(self) -> str:
        return "\n".join(map(str, self.diagnostics))


class LoadError(PromptkitError):
    """
    Nothing can be loaded from this target.

    Args:
        target:
            The folder, file, module or ``module:object`` that was given.

        reason:
            What is wrong with it, and what to give instead.
    """

    def __init__(self, target: str, reason: str) -> None:
        super().__init__(target, reason)
        self.target = target
        self.reason = reason

    def __str__(self) -> str:
        return f"cannot load {self.target!r}: {self.reason}"


class ConfigurationError(PromptkitError):
    """
    A setting of a project is not valid.

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


#: How many characters of a client's text an error shows.
_LONGEST_SHOWN: Final = 200


def shortened(text: str) -> str:
    """
    Return *text* from a client as an error shows it: only the beginning if it is long.
    """
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."

"""The exceptions that promptkit raises."""

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, structs

if TYPE_CHECKING:
    from promptkit.errors.diagnostics import Diagnostic

#: The public names of `promptkit.errors`.
__all__ = [
    "AnswerError",
    "ArgumentsError",
    "BudgetError",
    "CompileError",
    "ConfigurationError",
    "EmptyPromptError",
    "InvalidAnswerPart",
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
    "UnsendableMediaError",
]


class PromptkitError(Exception):
    """The base class of promptkit's exceptions."""


class PromptError(PromptkitError):
    """
    An error to raise in a prompt or a resource, with a message for the user.

    The message is sent unchanged, with the JSON-RPC error code for invalid params (-32602). The text of any
    other exception stays on the server.

    Args:
        message:
            The problem and how to fix it, for the user.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#error-handling
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class MissingClientCapabilityError(PromptkitError):
    """
    A prompt or resource requires a capability that the client does not declare.

    Args:
        capability:
            The name of the capability in the protocol.

    See Also:
        https://modelcontextprotocol.io/specification/2026-07-28/basic#json-rpc-error-codes
    """

    def __init__(self, capability: str) -> None:
        super().__init__(capability)
        self.capability = capability

    def __str__(self) -> str:
        return f"the request requires the capability {self.capability!r}, which the client does not declare"


class MediaError(PromptError, ValueError):
    """
    Bytes that cannot be sent as an image or audio, or the path of a file that must not be read.

    This is a `PromptError`, because the path or the bytes often come from the user.

    Args:
        message:
            The problem and how to fix it, for the user.
    """


class UnsendableMediaError(MediaError):
    """
    Bytes that cannot be sent as an image or audio: they are empty, damaged, too large or of a different type.

    If the caller sent no arguments, the bytes come from the author, who must then fix them.

    Args:
        message:
            The problem and how to fix it, for the user.
    """


class BudgetError(PromptError, ValueError):
    """
    The required parts of a text exceed the budget given to `promptkit.fragments.fit`.

    This is a `PromptError`, because the length of these parts usually depends on the arguments, which the
    user can shorten. If the caller sent no arguments, the text comes from the author, who must then shorten
    it.

    Args:
        tokens:
            The budget, in tokens.

        excess:
            The number of tokens by which the text exceeds the budget.
    """

    def __init__(self, tokens: int, excess: float) -> None:
        super().__init__(
            f"the text is {excess:,} tokens longer than its budget of {tokens:,}, even without its optional "
            "parts: shorten it"
        )
        self.args = (tokens, excess)  # `copy` and `pickle` pass these to the constructor
        self.tokens = tokens
        self.excess = excess

    def __str__(self) -> str:
        return self.message


#: Errors about the user's input. If the user sent no arguments, the input comes from the author.
INPUT_ERRORS: Final = (UnsendableMediaError, BudgetError)


class EmptyPromptError(PromptError):
    """
    A prompt rendered no messages.

    This is a `PromptError`, because a client that received an empty list would not explain it to the user.

    Args:
        name:
            The prompt's name.

        only_system:
            Whether the prompt rendered a system part but no turn.
    """

    def __init__(self, name: str, *, only_system: bool = False) -> None:
        super().__init__(name)
        self.name = name
        self.message = f"prompt {name!r} rendered no messages for these arguments"
        if only_system:
            self.message = f"prompt {name!r} has a system part but no turn: add a user(...)"

    def __str__(self) -> str:
        return self.message


class ResultError(TypeError):
    """
    An author's function returned or yielded a value that cannot be sent.

    The message contains the function's name and location, because a traceback cannot show a function that has
    already returned.
    """


class _UnknownError(PromptkitError, KeyError):
    """No prompt or resource has the requested name or URI."""

    _kind = _member = ""
    nearest: str | None
    reason: str | None = None

    def __str__(self) -> str:
        hint = f"; did you mean {self.nearest!r}?" if self.nearest else ""
        reason = f": {self.reason}" if self.reason else ""
        return f"unknown {self._kind} {shortened(self.args[0])!r}{reason}{hint}"

    def as_data(self) -> dict[str, Any]:
        """Return the error as JSON-compatible data."""
        data = {self._member: shortened(self.args[0])}
        return data if self.nearest is None else {**data, "nearest": self.nearest}


class UnknownPromptError(_UnknownError):
    """
    No prompt has this name.

    Args:
        name:
            The requested name.

        nearest:
            The prompt name most similar to the requested one; None if no name is similar.
    """

    _kind, _member = "prompt", "name"

    def __init__(self, name: str, nearest: str | None = None) -> None:
        super().__init__(name, nearest)
        self.name = name
        self.nearest = nearest


class UnknownToolError(UnknownPromptError):
    """No prompt with this name is available as a tool."""

    _kind = "tool"


class UnknownResourceError(_UnknownError):
    """
    No resource has this URI.

    Args:
        uri:
            The requested URI.

        nearest:
            The resource URI or URI template most similar to the requested one; None if none is similar.

        reason:
            The reason why the URI is invalid; None if it is valid.
    """

    _kind, _member = "resource", "uri"

    def __init__(self, uri: str, nearest: str | None = None, reason: str | None = None) -> None:
        super().__init__(uri, nearest, reason)
        self.uri = uri
        self.nearest = nearest
        self.reason = reason


class InvalidArgument(Struct, frozen=True):
    """
    An error in one argument.

    Args:
        argument:
            The argument's name.

        reason:
            The problem, worded to follow the argument's name, such as ``is missing``.

        expected:
            A short description of valid values; None if there is no description.

        nearest:
            The valid name or value most similar to the given one; None if none is similar.

        path:
            The path of the invalid part inside the argument, such as ``.points[2].x``; ``""`` for the whole
            argument.

        got:
            The value that was sent, as truncated text; None if the argument is secret or missing.

        allowed:
            All valid values as text, if there are only a few; otherwise empty.
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
        """Return the error as JSON-compatible data, without empty fields."""
        truncated = structs.replace(self, argument=shortened(self.argument), path=shortened(self.path))
        return {name: value for name, value in structs.asdict(truncated).items() if value}


class ArgumentsError(PromptkitError, ValueError):
    """
    The arguments of a request are invalid for the prompt or resource.

    Args:
        prompt:
            The name of the prompt or resource.

        errors:
            One `InvalidArgument` for each missing, unknown or invalid argument. Empty if the user declined a
            form that asked for optional arguments.

        kind:
            The kind of item that *prompt* names: ``"prompt"`` or ``"resource"``.
    """

    def __init__(self, prompt: str, errors: tuple[InvalidArgument, ...], kind: str = "prompt") -> None:
        super().__init__(prompt, errors, kind)
        self.prompt = prompt
        self.errors = errors
        self.kind = kind

    def __str__(self) -> str:
        problems = "; ".join(map(str, self.errors)) or "the form was not filled in"
        return f"{self.kind} {self.prompt!r}: {problems}"


class InvalidAnswerPart(Struct, frozen=True):
    """
    An error in one part of a model's answer.

    Args:
        path:
            The path of the part in the JSON, such as ``findings[0].line``; ``""`` for the whole answer.

        reason:
            The problem, worded to follow the path, such as ``is missing``.

        expected:
            A short description of valid values; None if there is no description.

        nearest:
            The valid name or value most similar to the given one; None if none is similar.
    """

    path: str
    reason: str
    expected: str | None = None
    nearest: str | None = None

    def __str__(self) -> str:
        subject = repr(shortened(self.path)) if self.path else "the answer"
        hint = f" (did you mean {self.nearest!r}?)" if self.nearest else ""
        return f"{subject} {self.reason}{hint}"


class AnswerError(PromptkitError, ValueError):
    """
    A model's answer does not match the answer type of its prompt.

    Args:
        text:
            The text of the answer.

        errors:
            One `InvalidAnswerPart` for each missing, unknown or invalid part.
    """

    def __init__(self, text: str, errors: tuple[InvalidAnswerPart, ...]) -> None:
        super().__init__(text, errors)
        self.text = text
        self.errors = errors

    def __str__(self) -> str:
        return "; ".join(map(str, self.errors))

    def for_model(self) -> str:
        """Return a message that lists all problems and asks the model to correct them."""
        problems = "\n".join(f"- {error}" for error in self.errors)
        return f"This answer is invalid:\n{problems}\nSend the whole answer again, corrected, as JSON only."


class CompileError(PromptkitError):
    """
    A prompt or resource cannot be used, because it does not compile.

    Args:
        diagnostics:
            All diagnostics of the prompt or resource.
    """

    def __init__(self, diagnostics: "tuple[Diagnostic, ...]") -> None:
        super().__init__(diagnostics)
        self.diagnostics = diagnostics

    def __str__(self) -> str:
        return "\n".join(map(str, self.diagnostics))


class LoadError(PromptkitError):
    """
    A target cannot be loaded.

    Args:
        target:
            The folder, file, module or ``module:object``.

        reason:
            The problem, and how to fix it.
    """

    def __init__(self, target: str, reason: str) -> None:
        super().__init__(target, reason)
        self.target = target
        self.reason = reason

    def __str__(self) -> str:
        return f"cannot load {self.target!r}: {self.reason}"


class ConfigurationError(PromptkitError):
    """
    A project has an invalid setting.

    Args:
        file:
            The path of the project's ``pyproject.toml``.

        reason:
            The problem, and how to fix it.
    """

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(file, reason)
        self.file = file
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.file}: {self.reason}"


#: The maximum number of characters that an error message contains from a text sent by a client.
_MAX_LENGTH: Final = 200


def shortened(text: str) -> str:
    """Return *text* from a client for use in an error message, truncated if it is long."""
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}..."

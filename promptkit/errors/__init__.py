"""What is raised, and what is reported: the exceptions that promptkit raises are imported from here."""

from promptkit.errors.exceptions import (
    ArgumentErrors,
    CompileError,
    EmptyPrompt,
    Fault,
    LoadError,
    MediaError,
    PromptError,
    PromptkitError,
    ResultError,
    UnknownPrompt,
    UnknownResource,
)

__all__ = [
    "ArgumentErrors",
    "CompileError",
    "EmptyPrompt",
    "Fault",
    "LoadError",
    "MediaError",
    "PromptError",
    "PromptkitError",
    "ResultError",
    "UnknownPrompt",
    "UnknownResource",
]

for _name in __all__:  # a traceback names the place that users import them from
    globals()[_name].__module__ = __name__

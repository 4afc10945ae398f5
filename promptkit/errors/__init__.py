"""
The exceptions that promptkit raises, one tree.

::

    PromptkitError
    ├── PromptError         an author's words to the person at the client
    │   ├── MediaError      bytes or a path that cannot become content
    │   └── EmptyPrompt     a prompt that says nothing for the arguments it was given
    ├── UnknownPrompt       no prompt of that name in the catalog
    ├── UnknownResource     no resource of that URI in the catalog
    ├── ArgumentErrors      arguments that do not fit, all of them at once
    ├── CompileError        a prompt or resource that cannot be served as it is written
    ├── LoadError           a target that names nothing that could be loaded
    └── ConfigurationError  a setting of pyproject.toml that cannot be understood

What is wrong with a value is told by the built-in `TypeError` and `ValueError`; `ResultError` is
the `TypeError` of what an author's function returned.
"""

from promptkit.errors.exceptions import (
    ArgumentErrors,
    CompileError,
    ConfigurationError,
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
    "ConfigurationError",
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

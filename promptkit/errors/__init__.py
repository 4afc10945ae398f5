"""
The exceptions that promptkit raises, as one tree.

::

    PromptkitError
    ├── PromptError         an author's error message for the user
    │   ├── MediaError      bytes or a path that cannot become content
    │   │   └── UnsendableMediaError  bytes that cannot be sent as an image or audio
    │   ├── BudgetError     text that exceeds a budget even without its optional parts
    │   └── EmptyPromptError     a prompt that rendered no messages
    ├── UnknownPromptError       no prompt has that name
    │   └── UnknownToolError     no prompt with that name is available as a tool
    ├── MissingClientCapabilityError  a prompt requires a capability that the client does not declare
    ├── UnknownResourceError     no resource has that URI
    ├── ArgumentsError      all errors in the arguments of one request
    ├── AnswerError         all errors in a model's answer
    ├── CompileError        a prompt or resource that does not compile
    ├── LoadError           a target that cannot be loaded
    ├── ConfigurationError  an invalid setting in pyproject.toml
    └── ExportError         content that a vendor does not support, in `promptkit.exports`

An invalid value in an author's code raises a built-in `TypeError` or `ValueError`. `ResultError` is the
`TypeError` raised when an author's function returns a value that cannot be sent. `InvalidArgument` and
`InvalidAnswerPart` are not exceptions: they are the entries in the ``errors`` of an `ArgumentsError` and an
`AnswerError`.
"""

from promptkit.errors import exceptions
from promptkit.errors.exceptions import *  # noqa: F403 (`__all__` there lists the public names)

__all__ = exceptions.__all__

for _name in __all__:  # tracebacks name the module that users import from
    globals()[_name].__module__ = __name__

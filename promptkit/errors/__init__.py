"""
The exceptions that promptkit raises, as one tree.

::

    PromptkitError
    ├── PromptError         an author's message to the person at the client
    │   ├── MediaError      bytes or a path that cannot become content
    │   └── EmptyPromptError     a prompt that rendered to nothing
    ├── UnknownPromptError       no prompt has that name
    │   └── UnknownToolError     no prompt that may be called as a tool has it
    ├── MissingClientCapabilityError  a prompt requires what the client does not declare
    ├── UnknownResourceError     no resource has that URI
    ├── ArgumentsError      all that is wrong with the arguments of one request
    ├── CompileError        a prompt or resource that cannot be compiled
    ├── LoadError           a target from which nothing can be loaded
    ├── ConfigurationError  a setting of pyproject.toml that is not valid
    └── ExportError         what a vendor cannot take, in `promptkit.exports`

A wrong value in an author's code is a built-in `TypeError` or `ValueError`. `ResultError` is the
`TypeError` for what an author's function returned. A `InvalidArgument` is no exception: it is one entry of
`ArgumentsError`.
"""

from promptkit.errors import exceptions
from promptkit.errors.exceptions import *  # noqa: F403 (`__all__` there says what users import from here)

__all__ = exceptions.__all__

for _name in __all__:  # tracebacks name the module that users import from
    globals()[_name].__module__ = __name__

"""The extra ``testing``: what to say where it is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["needed_by"]


@contextmanager
def needed_by(user: str, package: str) -> Iterator[None]:
    """
    Tell whoever imports *package*, which is not installed, how to install it.

    Args:
        user:
            What cannot be used without.

        package:
            A package of the extra.

    Raises:
        ModuleNotFoundError: With the command, if it is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        from promptkit.errors.distribution import install_command

        msg = f"{user} needs {package}: {install_command('testing')}"
        raise ModuleNotFoundError(msg, name=package) from None

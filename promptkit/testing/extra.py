"""The extra ``promptkit[testing]``: what to say where it is missing."""

__all__ = ["missing"]


def missing(user: str, error: ModuleNotFoundError) -> ModuleNotFoundError:
    """
    Return the error that names the command which installs what *user* needs.

    Args:
        user:
            What cannot be used.

        error:
            What its import has raised.
    """
    msg = f"{user} needs {error.name}: run python -m pip install 'promptkit[testing]'"
    return ModuleNotFoundError(msg, name=error.name)

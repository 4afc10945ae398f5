"""The extra ``promptkit[testing]``: what to say where it is missing."""

__all__ = ["missing"]


def missing(user: str, package: str) -> ModuleNotFoundError:
    """
    Return the error that names the command which installs what *user* needs.

    Args:
        user:
            What cannot be used.

        package:
            What it needs.
    """
    msg = f"{user} needs {package}: run python -m pip install 'promptkit[testing]'"
    return ModuleNotFoundError(msg, name=package)

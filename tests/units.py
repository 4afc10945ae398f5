"""The units of systemd in docs/examples, read as far as tests need it."""

import shlex
from configparser import ConfigParser, SectionProxy
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"

#: Where the units have promptkit.
INSTALLED = "/opt/promptkit/bin/promptkit"


def service_of(file: Path) -> SectionProxy:
    """Return what a unit says of its service. Of a key that it has twice, the last counts."""
    return read_unit(file)["Service"]


def read_unit(file: Path) -> ConfigParser:
    """Return what a unit says, by section and key."""
    found = ConfigParser(strict=False, interpolation=None, comment_prefixes=("#",))
    found.optionxform = str  # type: ignore[assignment, method-assign]  # as its documentation says
    found.read(file, encoding="utf-8")
    return found


def command_of(service: SectionProxy) -> list[str]:
    """Return the words of the command that a service runs."""
    return shlex.split(service["ExecStart"].replace("\\\n", " "))

"""Parsing of the parts of systemd units in docs/examples that the tests need."""

import shlex
from configparser import ConfigParser, SectionProxy
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"

#: The path of promptkit in the units.
INSTALLED = "/opt/promptkit/bin/promptkit"


def service_of(file: Path) -> SectionProxy:
    """Return the service section of a unit, with the last value of each repeated key."""
    return read_unit(file)["Service"]


def read_unit(file: Path) -> ConfigParser:
    """Return the content of a unit, by section and key."""
    parser = ConfigParser(strict=False, interpolation=None, comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment, method-assign]  # as its documentation says
    parser.read(file, encoding="utf-8")
    return parser


def command_of(service: SectionProxy) -> list[str]:
    """Return the words of a service's command."""
    return shlex.split(service["ExecStart"].replace("\\\n", " "))

"""The rows of the tables: what is measured of a server in one era."""

import attrs

from benchmarks.cases import Case


@attrs.frozen
class Row:
    """
    One figure of a server.

    Args:
        title:
            What it is.

        unit:
            ``s``, ``MiB`` or ``KiB``.
    """

    title: str
    unit: str = "s"


OPENING = Row("start to the first reply")
MEMORY = Row("resident memory after small requests", "MiB")
LOADED = Row("resident memory after images", "MiB")
EXIT = Row("end of input to exit")


def first_list(count: int) -> Row:
    """
    Return the row of the time from the start to the first list of *count* prompts.
    """
    return Row(f"start to prompts/list of {count:,}")


def alone(case: Case) -> Row:
    """
    Return the row of the median time of *case*, one at a time.
    """
    return Row(f"{case.name}: median")


def slowest(case: Case) -> Row:
    """
    Return the row of the 99th percentile of the time of *case*, one at a time.
    """
    return Row(f"{case.name}: 99th percentile")


def pipelined(case: Case) -> Row:
    """
    Return the row of the time that each *case* takes of many sent at once.
    """
    return Row(f"{case.name}: pipelined")


def among(case: Case, count: int) -> Row:
    """
    Return the row of the median time of *case*, one at a time, where there are *count* prompts.
    """
    return Row(f"{case.name}, one of {count:,} prompts: median")


def size(case: Case) -> Row:
    """
    Return the row of the size of a result of *case*.
    """
    return Row(f"{case.name}: size", "KiB")

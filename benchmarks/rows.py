"""The rows of the tables: what is measured of a server in one era."""

import attrs

from benchmarks.cases import Case

PROCESS, REQUESTS, HTTP = (
    "Start, memory and growth",
    "Requests",
    "Over HTTP, prompts/get with typed arguments",
)


@attrs.frozen
class Row:
    """
    One figure of a server.

    Args:
        title:
            What it is.

        unit:
            ``s``, ``MiB``, ``KiB`` or ``a second``.

        table:
            Which table of docs/performance.md it is in.
    """

    title: str
    unit: str = "s"
    table: str = REQUESTS


OPENING = Row("start to the first reply", table=PROCESS)
LOADED = Row("resident memory after images", "MiB", table=PROCESS)
EXIT = Row("end of input to exit", table=PROCESS)

HTTP_OPENING = Row("start to the first reply over HTTP", table=HTTP)
HTTP_ALONE = Row("one connection: median", table=HTTP)
HTTP_TOKEN = Row("what a known token adds to the processor time of a request", table=HTTP)


def first_list(count: int) -> Row:
    """
    Return the row of the time from the start to the first list of *count* prompts.
    """
    return Row(f"start to prompts/list of {count:,}", table=PROCESS)


def first_get(count: int) -> Row:
    """
    Return the row of the time from the start to the first prompt that follows a list of *count*.
    """
    return Row(f"start to prompts/list of {count:,} and one prompts/get", table=PROCESS)


def list_of_files(files: int) -> Row:
    """
    Return the row of the time from the start to the first list of the prompts in so many files.
    """
    return Row(f"start to prompts/list, of {files:,} files", table=PROCESS)


def get_of_files(files: int) -> Row:
    """
    Return the row of the time from the start to the first prompt where there are so many files.
    """
    return Row(f"start to prompts/get, of {files:,} files", table=PROCESS)


def saved_file(files: int) -> Row:
    """
    Return the row of the time until a file among so many is served that was saved.
    """
    return Row(f"a saved file among {files:,} until it is served", table=PROCESS)


def memory_of_files(files: int) -> Row:
    """
    Return the row of the memory that a server of so many files holds.
    """
    return Row(f"resident memory with {files:,} files", "MiB", table=PROCESS)


def memory_of_reload(files: int) -> Row:
    """
    Return the row of the most memory that a server of so many files holds while some of them are saved.
    """
    return Row(f"resident memory with {files:,} files, at most while they are saved", "MiB", table=PROCESS)


def check_of_files(files: int) -> Row:
    """
    Return the row of the time that it takes to check so many files.
    """
    return Row(f"check of {files:,} files", table=PROCESS)


def get(count: int) -> Row:
    """
    Return the row of the time from the start to the first prompt of *count*, without a list before.
    """
    return Row(f"start to prompts/get, one of {count:,} prompts", table=PROCESS)


def memory(count: int) -> Row:
    """
    Return the row of the memory that a server of *count* prompts holds after small requests.
    """
    return Row(f"resident memory with {count:,} prompts, after small requests", "MiB", table=PROCESS)


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
    return Row(f"{case.name}, one of {count:,} prompts: median", table=PROCESS)


def size(case: Case) -> Row:
    """
    Return the row of the size of a result of *case*.
    """
    return Row(f"{case.name}: size", "KiB", table=PROCESS)


def http_rate(workers: int) -> Row:
    """
    Return the row of how many requests so many workers answer.
    """
    return Row(f"{_load(workers)}: requests", "a second", table=HTTP)


def http_each(workers: int) -> Row:
    """
    Return the row of the time that each request takes of many sent at once.
    """
    return Row(f"{_load(workers)}: time for each", table=HTTP)


def http_median(workers: int) -> Row:
    """
    Return the row of the median time from a request to its reply.
    """
    return Row(f"{_load(workers)}: median", table=HTTP)


def http_slowest(workers: int) -> Row:
    """
    Return the row of the 99th percentile of the time from a request to its reply.
    """
    return Row(f"{_load(workers)}: 99th percentile", table=HTTP)


def http_work(workers: int) -> Row:
    """
    Return the row of the processor time of a request.
    """
    return Row(f"{_load(workers)}: processor time of a request", table=HTTP)


def http_memory(workers: int) -> Row:
    """
    Return the row of the memory of all processes, what they share counted once.
    """
    return Row(f"{_load(workers)}: proportional memory", "MiB", table=HTTP)


def http_share(which: str) -> Row:
    """
    Return the row of the processor time of the busier of two workers, or of the other, in a second.
    """
    return Row(f"{_load(2)}: work of the {which} one in a second", table=HTTP)


def _load(workers: int) -> str:
    return f"{workers} {'worker' if workers == 1 else 'workers'}, 32 connections"

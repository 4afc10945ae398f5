"""The rows of the tables. Each row contains one figure of each server, in one era."""

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
    A row of a table, for one figure.

    Args:
        title:
            The title of the row.

        unit:
            The unit: ``s``, ``MiB``, ``KiB`` or ``a second``.

        table:
            The title of the table in docs/performance.md that contains the row.
    """

    title: str
    unit: str = "s"
    table: str = REQUESTS


OPENING = Row("start to the first reply", table=PROCESS)
SLOW_OPENING = Row("start to the first reply, with a recipe that imports for 10 s", table=PROCESS)
LOADED = Row("resident memory after images", "MiB", table=PROCESS)

HTTP_OPENING = Row("start to the first reply over HTTP", table=HTTP)
HTTP_ALONE = Row("one connection: median", table=HTTP)


def first_list(count: int) -> Row:
    """
    Return the row for the time from the start to the first list of *count* prompts.
    """
    return Row(f"start to prompts/list of {count:,}", table=PROCESS)


def first_get(count: int) -> Row:
    """
    Return the row for the time from the start to the first prompt, after a list of *count* prompts.
    """
    return Row(f"start to prompts/list of {count:,} and one prompts/get", table=PROCESS)


def list_of_files(files: int) -> Row:
    """
    Return the row for the time from the start to the first list of the prompts in *files* files.
    """
    return Row(f"start to prompts/list, of {files:,} files", table=PROCESS)


def saved_file(files: int) -> Row:
    """
    Return the row for the time from saving one of *files* files until the server returns the new content.
    """
    return Row(f"a saved file among {files:,} until it is served", table=PROCESS)


def slowest_request(files: int) -> Row:
    """
    Return the row for the slowest request during the reload after saving one of *files* files.
    """
    return Row(f"the slowest request while a saved file among {files:,} is reloaded", table=PROCESS)


def next_to_loops(loops: int) -> Row:
    """
    Return the row for the median time of a quick prompt while *loops* prompts run pure Python code.
    """
    return Row(f"prompts/get, plain argument, next to pure-Python loops, {loops}: median", table=PROCESS)


def check_of_files(files: int) -> Row:
    """
    Return the row for the time to check *files* files.
    """
    return Row(f"check of {files:,} files", table=PROCESS)


def memory(count: int) -> Row:
    """
    Return the row for the memory of a server with *count* prompts after small requests.
    """
    return Row(f"resident memory with {count:,} prompts, after small requests", "MiB", table=PROCESS)


def alone(case: Case) -> Row:
    """
    Return the row for the median time of *case*, with one request at a time.
    """
    return Row(f"{case.name}: median")


def slowest(case: Case) -> Row:
    """
    Return the row for the 99th percentile of the time of *case*, with one request at a time.
    """
    return Row(f"{case.name}: 99th percentile")


def pipelined(case: Case) -> Row:
    """
    Return the row for the time per request of *case*, with many requests sent together.
    """
    return Row(f"{case.name}: pipelined")


def among(case: Case, count: int) -> Row:
    """
    Return the row for the median time of *case*, one request at a time, on a server with *count* prompts.
    """
    return Row(f"{case.name}, one of {count:,} prompts: median", table=PROCESS)


def size(case: Case) -> Row:
    """
    Return the row for the size of a result of *case*.
    """
    return Row(f"{case.name}: size", "KiB")


def http_rate(workers: int) -> Row:
    """
    Return the row for the number of requests per second that *workers* workers answer.
    """
    return Row(f"{_load(workers)}: requests", "a second", table=HTTP)


def http_each(workers: int) -> Row:
    """
    Return the row for the time per request under load.
    """
    return Row(f"{_load(workers)}: time for each", table=HTTP)


def http_median(workers: int) -> Row:
    """
    Return the row for the median time from a request to its reply.
    """
    return Row(f"{_load(workers)}: median", table=HTTP)


def http_slowest(workers: int) -> Row:
    """
    Return the row for the 99th percentile of the time from a request to its reply.
    """
    return Row(f"{_load(workers)}: 99th percentile", table=HTTP)


def http_work(workers: int) -> Row:
    """
    Return the row for the processor time per request.
    """
    return Row(f"{_load(workers)}: processor time of a request", table=HTTP)


def http_memory(workers: int) -> Row:
    """
    Return the row for the memory of all processes, which counts shared memory once.
    """
    return Row(f"{_load(workers)}: proportional memory", "MiB", table=HTTP)


def _load(workers: int) -> str:
    return f"{workers} {'worker' if workers == 1 else 'workers'}, 32 connections"

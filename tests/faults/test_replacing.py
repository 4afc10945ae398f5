"""Recipes that are saved continuously while they are served."""

import json
import re
import threading
import time

import pytest

from tests.wire import modern, notification, request

#: The interval between saves, in seconds.
PERIOD = 0.01

#: The number of saves in a burst.
BURST = 50

#: How long a version may take to be served, in seconds.
DEADLINE = 10

PROMPTS = '''
from promptkit import prompt

@prompt
def first():
    """v{0}"""
    return (
        "v{0} {1} v{0}"
    )

@prompt(cache=60)
def second():
    """v{0}"""
    return (
        "v{0} {1} v{0}"
    )
'''


def recipe(version):
    """Return the source of a version. None of its prefixes is a valid recipe that lacks the second prompt."""
    first, second = PROMPTS.format(version, "x" * 3000).split("\n@prompt(cache")
    return f"if True:\n    pass\n{first}\n@prompt(cache{second}"


def replace(file, version):
    """Replace the file atomically."""
    new = file.with_name(".recipe.new")
    new.write_text(recipe(version), encoding="utf-8")
    new.replace(file)


def rewrite(file, version):
    """Truncate the file, and write it in two pieces."""
    source = recipe(version)
    with file.open("w", encoding="utf-8") as stream:
        for piece in (source[:2000], source[2000:]):
            stream.write(piece)
            stream.flush()


class Author(threading.Thread):
    """
    An author who writes a hundred versions a second.

    Args:
        file:
            The recipe.

        write:
            The function that writes a version.

        count:
            The number of versions.

        served:
            The versions that have been served, which the test extends.

        pauses:
            Whether to wait after each burst until its last version is served.
    """

    def __init__(self, file, write, count, served, *, pauses):
        super().__init__(daemon=True)
        self._file, self._write, self._count, self._served, self._pauses = file, write, count, served, pauses
        self.duration = 0.0

    def run(self):
        """Write all versions."""
        started = due = time.monotonic()
        for version in range(1, self._count + 1):
            self._write(self._file, version)
            due += PERIOD
            if self._pauses and version % BURST == 0:
                self._wait_for(version)
                due = time.monotonic()
            time.sleep(max(0.0, due - time.monotonic()))
        self.duration = time.monotonic() - started

    def _wait_for(self, version):
        deadline = time.monotonic() + DEADLINE
        while self._served[-1] != version and time.monotonic() < deadline:
            time.sleep(PERIOD)


def version_of(message):
    """Return the version of a reply, or -1 if it contains several or is invalid."""
    if set(message) != {"jsonrpc", "id", "result"}:
        return -1
    result = json.dumps(message["result"])
    versions = {int(version) for version in re.findall(r"v(\d+)", result)}
    if "messages" in message["result"] and "x" * 3000 not in result:
        return -1
    return versions.pop() if len(versions) == 1 else -1


@pytest.mark.parametrize(("write", "pauses"), [(replace, False), (rewrite, True)], ids=["steadily", "bursts"])
def test_recipe_is_written_under_load(serve, tmp_path, amount, figures, *, write, pauses):
    """
    Each request gets one reply, of a single version that is never older than in the previous reply, and the
    last version is served soon. If the author pauses, the last version of each burst is served.
    """
    folder = tmp_path / "written"
    folder.mkdir()
    file, count = folder / "recipe.py", amount(2000, 250, 125)
    replace(file, 0)
    serving = serve(folder=folder)
    serving.open("2025-11-25")
    serving.send(modern("stream", "subscriptions/listen", {"notifications": {"promptsListChanged": True}}))
    assert version_of(serving.ask(request("zero", "prompts/get", {"name": "first"}))[0]) == 0
    served, sent = [0], 0
    author = Author(file, write, count, served, pauses=pauses)

    author.start()
    while author.is_alive():
        versions = ask_all(serving, sent, 20)
        assert min(versions) >= served[-1], versions
        assert sorted(versions) == versions
        served += versions
        sent += len(versions)
    last = time.monotonic()
    while served[-1] != count and time.monotonic() - last < DEADLINE:
        served += ask_all(serving, sent, 1)
        sent += 1

    assert served[-1] == count
    if pauses:
        assert set(range(BURST, count, BURST)) <= set(served)
    delay = time.monotonic() - last
    assert serving.end()[1] == 0
    notifications = [json.loads(text) for text in serving.all_output() if b"list_changed" in text]
    on_streams = [versions for versions in notifications if versions.get("params", {}).get("_meta")]
    changes = len(set(served)) - 1
    assert len(on_streams) >= changes
    assert len(notifications) - len(on_streams) >= changes
    figures(
        written=write.__name__,
        versions=count,
        a_second=round(count / author.duration),
        requests=sent,
        versions_served=len(set(served)),
        last_after=f"{delay:.2f} s",
    )


def ask_all(serving, number, count):
    """Send requests in one write, and return the version of each reply, in the order of the requests."""
    seen = len(serving.lines)
    methods = [("prompts/get", {"name": "first"}), ("prompts/list", {}), ("prompts/get", {"name": "second"})]
    ids = list(range(number, number + count))
    serving.send(
        *((modern if number_ % 2 else request)(number_, *methods[number_ % 3]) for number_ in ids),
        notification("notifications/x"),
    )
    replies = {}

    def answered():
        nonlocal seen
        for _, text in serving.lines[seen:]:
            seen += 1
            message = json.loads(text)
            if "id" in message:
                assert message["id"] not in replies
                replies[message["id"]] = message
        return len(replies) >= count

    serving.wait(answered)
    assert sorted(replies) == ids
    return [version_of(replies[number_]) for number_ in ids]

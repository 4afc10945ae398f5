import json
import re
import threading
import time

import pytest

from tests.wire import modern, notification, request

pytestmark = pytest.mark.sampled

#: How often the recipe is written, in seconds.
PERIOD = 0.01

#: How many times in a row, before a pause that lets an author's last word be read.
BURST = 50
PAUSE = 0.3

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
    """Return the source of a version; no part of it is a recipe that lacks only a prompt."""
    first, second = PROMPTS.format(version, "x" * 3000).split("\n@prompt(cache")
    return f"if True:\n    pass\n{first}\n@prompt(cache{second}"


def replaced(file, version):
    """Put a new file in the place of the old."""
    new = file.with_name(".recipe.new")
    new.write_text(recipe(version), encoding="utf-8")
    new.replace(file)


def rewritten(file, version):
    """Empty the file, and write it in two pieces."""
    source = recipe(version)
    with file.open("w", encoding="utf-8") as opened:
        for piece in (source[:2000], source[2000:]):
            opened.write(piece)
            opened.flush()


class Author(threading.Thread):
    """
    Writes one version after the other, a hundred times a second.

    Args:
        file:
            The recipe.

        write:
            How it is written.

        count:
            How many versions there are.

        pauses:
            Whether there are pauses.
    """

    def __init__(self, file, write, count, *, pauses):
        super().__init__(daemon=True)
        self._file, self._write, self._count, self._pauses = file, write, count, pauses
        self.lasted = 0.0

    def run(self):
        """Write them all."""
        started = due = time.monotonic()
        for version in range(1, self._count + 1):
            self._write(self._file, version)
            due += PERIOD + (PAUSE if self._pauses and version % BURST == 0 else 0)
            time.sleep(max(0.0, due - time.monotonic()))
        self.lasted = time.monotonic() - started


def version_of(message):
    """Return the version of which a reply is, -1 if it is of several, or wrong."""
    if set(message) != {"jsonrpc", "id", "result"}:
        return -1
    result = json.dumps(message["result"])
    found = {int(version) for version in re.findall(r"v(\d+)", result)}
    if "messages" in message["result"] and "x" * 3000 not in result:
        return -1
    return found.pop() if len(found) == 1 else -1


@pytest.mark.parametrize("pauses", [True, False], ids=["bursts", "steadily"])
@pytest.mark.parametrize("write", [replaced, rewritten])
def test_recipe_is_written_under_load(serve, tmp_path, amount, figures, *, write, pauses):
    """
    While a recipe is written a hundred times a second, each request gets one reply, of one version
    throughout, and never of an older one than the reply before; the last version is served soon.
    """
    folder = tmp_path / "written"
    folder.mkdir()
    file, count = folder / "recipe.py", amount(2000, 250, 125)
    replaced(file, 0)
    serving = serve(folder=folder)
    serving.open("2025-11-25")
    serving.send(modern("stream", "subscriptions/listen", {"notifications": {"promptsListChanged": True}}))
    assert version_of(serving.ask(request("zero", "prompts/get", {"name": "first"}))[0]) == 0
    author = Author(file, write, count, pauses=pauses)

    author.start()
    served, asked = [0], 0
    while author.is_alive():
        found = ask_all(serving, asked, 20)
        assert min(found) >= served[-1], found
        assert sorted(found) == found
        served += found
        asked += len(found)
    last = time.monotonic()
    while served[-1] != count and time.monotonic() - last < 10:
        served += ask_all(serving, asked, 1)
        asked += 1

    assert served[-1] == count
    assert len(set(served)) > (2 if pauses else 1)
    took = time.monotonic() - last
    assert serving.end()[1] == 0
    told = [json.loads(text) for text in serving.drained() if b"list_changed" in text]
    tagged = [found for found in told if found.get("params", {}).get("_meta")]
    changes = len(set(served)) - 1
    assert len(tagged) >= changes
    assert len(told) - len(tagged) >= changes
    figures(
        written=write.__name__,
        versions=count,
        a_second=round(count / author.lasted),
        requests=asked,
        versions_served=len(set(served)),
        last_after=f"{took:.2f} s",
    )


def ask_all(serving, number, count):
    """Send requests in one piece; return the version of each reply, in the order of the requests."""
    seen = len(serving.lines)
    methods = [("prompts/get", {"name": "first"}), ("prompts/list", {}), ("prompts/get", {"name": "second"})]
    ids = list(range(number, number + count))
    serving.send(
        *((modern if one % 2 else request)(one, *methods[one % 3]) for one in ids),
        notification("notifications/x"),
    )
    found = {}

    def answered():
        nonlocal seen
        for _, text in serving.lines[seen:]:
            seen += 1
            message = json.loads(text)
            if "id" in message:
                assert message["id"] not in found
                found[message["id"]] = message
        return len(found) >= count

    serving.wait(answered)
    assert sorted(found) == ids
    return [version_of(found[one]) for one in ids]

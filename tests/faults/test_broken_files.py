"""Servers whose recipe files become invalid, hang, or are not regular files."""

import os
import time

import pytest

from promptkit.cli import main
from tests.wire import modern, request

pytestmark = pytest.mark.slow

PROMPT = '''
from promptkit import prompt

@prompt
def {0}():
    """Say {1}."""
    return "{1}"
'''


class ListeningClient:
    """A client that renders prompts and counts notifications."""

    def __init__(self, serving):
        self.serving, self.asked = serving, 0

    def render(self, name):
        """Return the text of a prompt; None if it is unknown."""
        self.asked += 1
        reply, _ = self.serving.ask(request(self.asked, "prompts/get", {"name": name}))
        return reply["result"]["messages"][0]["content"]["text"] if "result" in reply else None

    def wait(self, **texts):
        """Wait until the prompts have exactly this text."""
        deadline = time.monotonic() + 20
        while {name: self.render(name) for name in texts} != texts:
            assert time.monotonic() < deadline, self.serving.log.read_text()
            time.sleep(0.02)  # the client gets no event to wait for

    def changes(self, minimum=0):
        """Return the number of list notifications, once it is at least *minimum* or the time is up."""
        deadline = time.monotonic() + 20
        while (count := self._changes()) < minimum and time.monotonic() < deadline:
            self.render("any")  # new prompts are served before the notification
        return count

    def _changes(self):
        return sum(b"prompts/list_changed" in text for _, text in self.serving.lines)


@pytest.fixture
def serve_files(serve, recipes):
    """A function that serves files, and returns their folder and a client."""

    def start(**files):
        folder = recipes(**files)
        serving = serve(folder=folder)
        serving.open("2025-11-25")
        serve_files = ListeningClient(serving)
        return folder, serve_files

    return start


def test_broken_file_among_valid_ones(serve_files):
    """Other files can be edited, added and removed; the client is notified exactly when its list changes."""
    folder, client = serve_files(a=PROMPT.format("a", "one"), b=PROMPT.format("b", "one"))
    client.wait(a="one", b="one")
    (folder / "a.py").write_text("def broken(:")
    (folder / "b.py").write_text(PROMPT.format("b", "two"))
    client.wait(a="one", b="two")
    (folder / "b.py").write_text(
        PROMPT.format("b", "two").replace("    return", "    # a comment\n    return")
    )
    (folder / "c.py").write_text(PROMPT.format("c", "new"))
    client.wait(a="one", b="two", c="new")
    before = client.changes(2)
    (folder / "c.py").unlink()
    client.wait(a="one", b="two", c=None)
    (folder / "a.py").write_text(PROMPT.format("a", "one") + "# fixed")
    (folder / "b.py").write_text(PROMPT.format("b", "two").replace('return "two"', 'return "tri"'))
    client.wait(a="one", b="tri", c=None)

    assert (before, client.changes(3)) == (2, 3)  # changed descriptions, one prompt more, one less
    assert client.serving.end()[1] == 0
    assert "unchanged until fixed: a.py" in client.serving.log.read_text()


#: An endless loop that uses the whole processor at first, but not until the server reports it.
SPINS = """
import time
start = time.monotonic()
while True:
    if time.monotonic() > start + 0.5:
        time.sleep(0.01)
"""


@pytest.mark.parametrize("hangs", [SPINS, "open(FIFO)"], ids=["spins", "blocks"])
def test_hanging_import(serve_files, tmp_path, hangs):
    """Later edits are served, the hanging file is reported, and the end of the input stops the process."""
    os.mkfifo(tmp_path / "fifo")
    folder, client = serve_files(a=PROMPT.format("a", "one"), b=PROMPT.format("b", "one"))
    client.wait(a="one", b="one")
    (folder / "a.py").write_text(hangs.replace("FIFO", repr(str(tmp_path / "fifo"))))
    deadline = time.monotonic() + 30
    while "a.py has taken" not in client.serving.log.read_text():
        assert time.monotonic() < deadline
        assert client.render("a") == "one"
        time.sleep(0.05)  # a file has no event to wait for
    (folder / "b.py").write_text(PROMPT.format("b", "two"))
    client.wait(a="one", b="two")
    (folder / "a.py").write_text(PROMPT.format("a", "two"))
    client.wait(a="two", b="two")

    assert client.serving.end()[1] == 0


def test_sparse_file_of_16_gib(recipes, capsys):
    """A sparse recipe file of 16 GiB is reported in one line without being read."""
    folder = recipes(a=PROMPT.format("a", "one"))
    with (folder / "odd.py").open("wb") as file:
        file.truncate(16 << 30)

    codes = [main([command, str(folder)]) for command in ("check", "list")]

    assert codes == [1, 1]
    reason = "ImportError: it is larger than 16,777,216 bytes, which is too large for a source file"
    assert f"recipe 'odd' cannot be imported: {reason}\n" in (output := "".join(capsys.readouterr()))
    assert "Traceback" not in output


def test_folder_with_unusual_entries(serve_files, tmp_path):
    """A server of a folder with links to themselves, pipes and undecodable names starts and reloads."""
    folder, client = serve_files(a=PROMPT.format("a", "one"))
    client.serving.end()
    (folder / "self").symlink_to("self")
    (folder / "self.py").symlink_to("self.py")
    (folder / "all").symlink_to("/proc/self/fd", target_is_directory=True)
    os.mkfifo(folder / "pipe.py")
    os.mkdir(os.fsencode(folder) + b"/\xff")  # noqa: PTH102 (the name is not text)
    folder, client = serve_files()
    client.wait(a="one")
    (folder / "a.py").write_text(PROMPT.format("a", "two"))
    client.wait(a="two")
    lists, _ = client.serving.ask(modern("list", "prompts/list"))

    assert [entry["name"] for entry in lists["result"]["prompts"]] == ["a"]
    assert client.serving.end()[1] == 0

"""Servers whose recipes break, hang and lie about while they serve."""

import os
import time

import pytest

from promptkit.cli import main
from tests.wire import modern, request

pytestmark = [pytest.mark.sampled, pytest.mark.slow]

PROMPT = '''
from promptkit import prompt

@prompt
def {0}():
    """Say {1}."""
    return "{1}"
'''


class Told:
    """What a client gets, and the changes that it is notified of."""

    def __init__(self, serving):
        self.serving, self.asked = serving, 0

    def says(self, name):
        """The text of a prompt; None if it is not listed."""
        self.asked += 1
        reply, _ = self.serving.ask(request(self.asked, "prompts/get", {"name": name}))
        return reply["result"]["messages"][0]["content"]["text"] if "result" in reply else None

    def wait(self, **said):
        """Wait until prompts say just that."""
        until = time.monotonic() + 20
        while {name: self.says(name) for name in said} != said:
            assert time.monotonic() < until, self.serving.log.read_text()
            time.sleep(0.02)  # there is nothing to wait for: a client may ask at any time

    def changes(self, least=0):
        """How many notifications of a changed list the client got, once they are so many or time is up."""
        until = time.monotonic() + 20
        while (found := self._changes()) < least and time.monotonic() < until:
            self.says("any")  # what is served is published first, and told then
        return found

    def _changes(self):
        return sum(b"prompts/list_changed" in text for _, text in self.serving.lines)


@pytest.fixture
def told(serve, recipes):
    """A function that starts a server of files, and returns its folder and its client."""

    def start(**files):
        folder = recipes(**files)
        serving = serve(folder=folder)
        serving.open("2025-11-25")
        told = Told(serving)
        return folder, told

    return start


def test_one_broken_file_among_others(told):
    """
    Others are edited, added and removed; the client is notified when its list has changed, and only then.
    """
    folder, client = told(a=PROMPT.format("a", "one"), b=PROMPT.format("b", "one"))
    client.wait(a="one", b="one")
    (folder / "a.py").write_text("def broken(:")
    (folder / "b.py").write_text(PROMPT.format("b", "two"))
    client.wait(a="one", b="two")
    (folder / "b.py").write_text(
        PROMPT.format("b", "two").replace("    return", "    # and so on\n    return")
    )
    (folder / "c.py").write_text(PROMPT.format("c", "new"))
    client.wait(a="one", b="two", c="new")
    before = client.changes(2)
    (folder / "c.py").unlink()
    client.wait(a="one", b="two", c=None)
    (folder / "a.py").write_text(PROMPT.format("a", "one") + "# mended")
    (folder / "b.py").write_text(PROMPT.format("b", "two").replace('return "two"', 'return "tri"'))
    client.wait(a="one", b="tri", c=None)

    assert (before, client.changes(3)) == (2, 3)  # of words, of one more, and of one less
    assert client.serving.end()[1] == 0
    assert "unchanged until fixed: a.py" in client.serving.log.read_text()


@pytest.mark.parametrize("hangs", ["while True: pass", "import time; time.sleep(10**6)", "open(FIFO)"])
def test_a_hanging_import(told, tmp_path, hangs):
    """Later edits are served, the hanging file is named, and the end of input ends the process."""
    os.mkfifo(tmp_path / "fifo")
    folder, client = told(a=PROMPT.format("a", "one"), b=PROMPT.format("b", "one"))
    client.wait(a="one", b="one")
    (folder / "a.py").write_text(hangs.replace("FIFO", repr(str(tmp_path / "fifo"))))
    until = time.monotonic() + 30
    while "a.py has been importing for" not in client.serving.log.read_text():
        assert time.monotonic() < until
        assert client.says("a") == "one"
        time.sleep(0.05)  # a file has no event to wait for
    (folder / "b.py").write_text(PROMPT.format("b", "two"))
    client.wait(a="one", b="two")
    (folder / "a.py").write_text(PROMPT.format("a", "two"))
    client.wait(a="two", b="two")

    assert client.serving.end()[1] == 0


def test_a_sparse_file_of_16_gib(recipes, capsys):
    """It is reported in one line, and takes neither the memory nor the time to be read."""
    folder = recipes(a=PROMPT.format("a", "one"))
    with (folder / "odd.py").open("wb") as file:
        file.truncate(16 << 30)

    codes = [main([command, str(folder)]) for command in ("check", "list")]

    assert codes == [1, 1]
    reason = "ImportError: it has more than 16,777,216 bytes, and is not a source file"
    assert f"recipe 'odd' cannot be imported: {reason}\n" in (said := "".join(capsys.readouterr()))
    assert "Traceback" not in said


def test_a_folder_full_of_odd_entries(told, tmp_path):
    """It starts, serves, and sees edits."""
    folder, client = told(a=PROMPT.format("a", "one"))
    client.serving.end()
    (folder / "self").symlink_to("self")
    (folder / "self.py").symlink_to("self.py")
    (folder / "all").symlink_to("/proc/self/fd", target_is_directory=True)
    os.mkfifo(folder / "pipe.py")
    os.mkdir(os.fsencode(folder) + b"/\xff")  # noqa: PTH102 (its name is no text)
    folder, client = told()
    client.wait(a="one")
    (folder / "a.py").write_text(PROMPT.format("a", "two"))
    client.wait(a="two")
    lists, _ = client.serving.ask(modern("list", "prompts/list"))

    assert [found["name"] for found in lists["result"]["prompts"]] == ["a"]
    assert client.serving.end()[1] == 0

"""Importing files as somebody does who types the command."""

from typing import NamedTuple

import pytest

from promptkit.cli import main
from promptkit.testing import Client


class Imported(NamedTuple):
    """What an import has said, and what it has left."""

    code: int
    said: list[str]
    client: Client

    def text(self, name, **arguments):
        """What a client receives as the first message of a prompt."""
        return self.client.get_prompt(name, arguments)[0].content.text


@pytest.fixture
def imported(recipes, tmp_path, monkeypatch, capsys):
    """A function that imports files of a format, and returns what comes of it."""
    monkeypatch.chdir(tmp_path)
    recipes()  # it forgets the modules afterwards

    def run(client_format, files, out="prompts"):
        for name, text in files.items():
            path = tmp_path / "theirs" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        capsys.readouterr()
        code = main(["import", client_format, "theirs", "-o", out])
        said = capsys.readouterr().out.replace("theirs/", "").splitlines()
        return Imported(code, said, Client(out))

    return run

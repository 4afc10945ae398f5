"""A fixture that imports command files through the command line."""

from typing import NamedTuple

import pytest

from promptkit.cli import main
from promptkit.testing import Client


class ImportResult(NamedTuple):
    """The result of an import."""

    code: int
    lines: list[str]
    client: Client

    def render(self, name, **arguments):
        """Return the text of a prompt's first message, as a client receives it."""
        return self.client.get_prompt(name, arguments)[0].content.text


@pytest.fixture
def import_files(recipes, tmp_path, monkeypatch, capsys):
    """A function that imports files of a format and returns the result."""
    monkeypatch.chdir(tmp_path)
    recipes()  # removes the imported modules afterwards

    def run(client_format, files, out="prompts"):
        for name, text in files.items():
            path = tmp_path / "theirs" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        capsys.readouterr()
        code = main(["import", client_format, "theirs", "-o", out])
        lines = capsys.readouterr().out.replace("theirs/", "").splitlines()
        return ImportResult(code, lines, Client(out))

    return run

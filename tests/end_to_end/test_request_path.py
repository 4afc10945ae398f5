"""How a line that asks for a prompt reaches the author's function: through few calls, in few files."""

import sys
from pathlib import Path

import pytest

import promptkit
from tests.test_costs import CASES, WARM_UP

PACKAGE = Path(promptkit.__file__).parent
MOST_CALLS = 25
MOST_FILES = 13


def path_of(name):
    """The functions that are called, in order, from the line of the last request to the author's function."""
    paths = []

    def receive(server, data):
        path, reached = [], []

        def note(frame, event, _arg):
            if event == "call" and not reached:
                file = Path(frame.f_code.co_filename)
                if file.is_relative_to(PACKAGE):
                    path.append((file.relative_to(PACKAGE).as_posix(), frame.f_code.co_qualname))
                elif path:
                    reached.append(frame)

        before = sys.getprofile()
        sys.setprofile(note)
        server.receive_data(data)
        sys.setprofile(before)
        paths.append(path)

    CASES[name].serve(WARM_UP, receive)
    return paths[-1]


@pytest.mark.parametrize("era", ["handshake", "modern"])
@pytest.mark.parametrize("request_name", ["plain get", "typed get"])
def test_the_path_of_a_get(request_name, era):
    """
    At most 25 calls and 13 files lie between the line and the author's function.
    """
    path = path_of(f"{request_name}, {era}")

    assert path[0] == ("server/server.py", "Server.receive_data")
    assert path[-1] == ("catalog/prompts.py", "FunctionRenderer.render_sync")
    assert len(path) <= MOST_CALLS, path
    assert len({file for file, _ in path}) <= MOST_FILES, path

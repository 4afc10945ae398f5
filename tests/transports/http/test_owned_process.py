"""What serving changes in the process, if that does nothing else."""

import asyncio
import json
import sys

import pytest

from promptkit.compiler.compilation import compile
from promptkit.compiler.loading.loader import load
from promptkit.transports.http.application import Application
from promptkit.transports.http.settings import Settings
from tests.transports.http.test_leftovers import post
from tests.wire import modern

RECIPES = '''
import sys
import time

from promptkit import prompt

@prompt
def interval():
    """Say how long a thread keeps Python's lock, while authors' code runs."""
    time.sleep(0.2)
    return str(sys.getswitchinterval())
'''


@pytest.mark.parametrize("owns_process", [True, False], ids=["owned", "shared"])
def test_threads_take_short_turns_beside_authors_code(tmp_path, owns_process):
    """
    In a process of the server's own. Another application's is left as it is.
    """
    (tmp_path / "recipes.py").write_text(RECIPES)
    usual = sys.getswitchinterval()
    application = Application(compile(load(tmp_path)), Settings(owns_process=owns_process))
    try:
        _, body = asyncio.run(post(application, modern(1, "prompts/get", {"name": "interval"})))
    finally:
        application.close(0)
        sys.setswitchinterval(usual)
    said = float(json.loads(body)["result"]["messages"][0]["content"]["text"])

    assert said < usual / 2 if owns_process else said == usual

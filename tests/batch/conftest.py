"""Recipes, fixtures and helpers shared by the batch tests."""

import json
from types import SimpleNamespace

import pytest

from promptkit.cli import main

TRIAGE = '''
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated, Literal

from promptkit import Arg, Image, PromptError, assistant, prompt, system, user

@dataclass
class Verdict:
    label: str
    reason: str

@prompt
def triage(ticket: str, severity: Literal["low", "high"] = "low", votes: int = 0) -> str:
    """Triage a ticket."""
    return f"Ticket: {ticket}\\nSeverity: {severity}, votes: {votes}"

@prompt(answer=Verdict)
def judge(ticket: str):
    """Judge a ticket."""
    yield system("Be brief.")
    yield user("An example.")
    yield assistant("Understood.")
    yield user(ticket)

@prompt(answer=list[str])
def lists(ticket: str) -> str:
    """Ask for a list."""
    return ticket

@prompt
def typed(day: date, price: Decimal, tags: list[str], at: dict[str, int] | None = None) -> str:
    """Show what each value is."""
    return repr((day, price, tags, at))

@prompt
def fails(ticket: str, token: Annotated[str, Arg(secret=True)] = "") -> str:
    """Refuse, or raise."""
    if ticket == "refuse":
        raise PromptError(f"not with {token}")
    if ticket == "raise":
        raise KeyError(ticket)
    if ticket == "leave":
        raise SystemExit(0)
    if ticket == "half":
        raise FileNotFoundError(2, "no such file", "a\\udcff")
    return ticket
'''


@pytest.fixture
def folder(recipes, tmp_path, monkeypatch):
    """The current folder, which contains recipes."""
    recipes(tickets=TRIAGE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def batch(folder, capsys):
    """A function that runs ``promptkit batch`` and returns its exit code and output."""

    def run(*arguments, vendor="openai-chat", model="m", out="out"):
        options = [] if "--join" in arguments else ["--for", vendor, "--model", model, "-o", out]
        code = main(["batch", *map(str, arguments), *options])
        captured = capsys.readouterr()
        return SimpleNamespace(code=code, out=captured.out, err=captured.err)

    return run


def requests_in(folder):
    """Return the parsed lines of all request files, in order."""
    files = sorted(folder.glob("requests-*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def rejected_in(folder):
    """Return the line, argument and reason of each rejected row, and its key if the batch has keys."""
    lines = (folder / "rejected.jsonl").read_text(encoding="utf-8").splitlines()
    return [tuple(json.loads(line).values()) for line in lines]

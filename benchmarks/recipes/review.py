"""The prompt that every server of the benchmark has."""

from typing import Literal

from promptkit import Workflow, prompt, user


@prompt
def review(code: str, language: Literal["python", "rust", "go"] = "python", depth: int = 1) -> Workflow:
    """Review a piece of code."""
    return user(f"Review this {language} code, {depth} deep.", code)

"""Recipes for the tests of scopes, over stdio and over HTTP."""

RECIPES = '''
from promptkit import prompt, resource

@prompt
def greet():
    """Say hello."""
    return "Hello."

@prompt(scopes=["team", "admin"])
def rotate(key: str = ""):
    """Rotate a key."""
    return f"Rotate {key}."

@prompt(scopes=["admin"], tool=False)
def people():
    """Not for models."""
    return "People."

@resource("docs://handbook", scopes=["admin"])
def handbook() -> str:
    return "The handbook."

@resource("notes://{day}", scopes=["team"])
def notes(day: str) -> str:
    return day
'''

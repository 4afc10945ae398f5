"""
Tests of the finders that import recipes.
"""

import importlib.util
import sys

from promptkit.compiler.loading.finders import executed_code
from promptkit.compiler.loading.loader import load


def test_it_is_known_what_was_executed(tmp_path):
    """
    The code of a recipe is that of its last import.
    """
    recipe = tmp_path / "first.py"
    recipe.write_text("VALUE = 'before'\n", encoding="utf-8")
    load(tmp_path)
    recipe.write_text("VALUE = 'now'\n", encoding="utf-8")
    load(tmp_path)
    module = next(one for one in sys.modules.values() if getattr(one, "__file__", None) == str(recipe))

    assert "now" in executed_code(module).co_consts


def test_it_is_not_known_what_others_have_executed(tmp_path):
    """
    Nothing is said of a module that was imported by another loader, though it has the name of a recipe.
    """
    recipe = tmp_path / "second.py"
    recipe.write_text("VALUE = 'before'\n", encoding="utf-8")
    load(tmp_path)
    module = next(one for one in sys.modules.values() if getattr(one, "__file__", None) == str(recipe))
    spec = importlib.util.spec_from_file_location(module.__name__, recipe)
    other = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(other)

    assert executed_code(other) is None

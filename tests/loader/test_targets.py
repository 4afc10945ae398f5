import os
from pathlib import Path

import pytest

from promptkit.loader.targets import project_root


class TestTheRootOfAProject:
    @pytest.mark.parametrize("mark", ["pyproject.toml", ".git"])
    def test_the_nearest_folder_with_a_mark(self, tmp_path, mark):
        """
        The root is the nearest folder above the recipes that looks like a project's.
        """
        outer, inner = tmp_path, tmp_path / "team" / "bot"
        recipes = inner / "src" / "recipes"
        recipes.mkdir(parents=True)
        (outer / mark).touch()
        (inner / mark).touch()

        assert project_root(recipes) == str(inner)

    def test_a_folder_without_a_mark_above(self, tmp_path, monkeypatch):
        """
        Where no folder above looks like a project's, the root is the parent.
        """
        monkeypatch.setattr("promptkit.loader.targets.PROJECT_MARKERS", ("never-there",))

        assert project_root(tmp_path / "recipes") == str(tmp_path)

    def test_the_folder_itself_is_not_its_root(self, tmp_path):
        """
        A project that is nothing but recipes can be imported from its parent, by its name.
        """
        (tmp_path / "pyproject.toml").touch()
        recipes = tmp_path / "recipes"
        recipes.mkdir()
        (recipes / "pyproject.toml").touch()

        assert project_root(recipes) == str(tmp_path)

    def test_a_relative_folder(self, tmp_path, monkeypatch):
        """
        The root is absolute, however the folder is spelt.
        """
        (tmp_path / ".git").mkdir()
        (tmp_path / "recipes").mkdir()
        monkeypatch.chdir(tmp_path)

        assert project_root("recipes") == project_root(Path("recipes/../recipes")) == str(tmp_path)

    def test_the_file_system_as_a_whole(self):
        """
        The folder above all others is its own parent.
        """
        assert project_root(os.sep) == os.sep

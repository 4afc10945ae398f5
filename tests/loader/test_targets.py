import os
from pathlib import Path

import pytest

from promptkit.loader.targets import project_root


class TestProjectRoot:
    @pytest.mark.parametrize("marker", ["pyproject.toml", ".git"])
    def test_root_is_the_nearest_folder_with_a_marker(self, tmp_path, marker):
        """The root is the nearest folder above the recipes that contains a project marker."""
        outer, inner = tmp_path, tmp_path / "team" / "bot"
        recipes = inner / "src" / "recipes"
        recipes.mkdir(parents=True)
        (outer / marker).touch()
        (inner / marker).touch()

        assert project_root(recipes) == str(inner)

    def test_root_without_a_marker_is_the_parent_folder(self, tmp_path, monkeypatch):
        """Without a project marker above, the root is the parent folder."""
        monkeypatch.setattr("promptkit.loader.targets.PROJECT_MARKERS", ("never-there",))

        assert project_root(tmp_path / "recipes") == str(tmp_path)

    def test_folder_is_never_its_own_root(self, tmp_path):
        """The folder of recipes is never its own root, even if it contains a marker."""
        (tmp_path / "pyproject.toml").touch()
        recipes = tmp_path / "recipes"
        recipes.mkdir()
        (recipes / "pyproject.toml").touch()

        assert project_root(recipes) == str(tmp_path)

    def test_root_is_absolute(self, tmp_path, monkeypatch):
        """The root is absolute, however the folder is written."""
        (tmp_path / ".git").mkdir()
        (tmp_path / "recipes").mkdir()
        monkeypatch.chdir(tmp_path)

        assert project_root("recipes") == project_root(Path("recipes/../recipes")) == str(tmp_path)

    def test_file_system_root_is_its_own_root(self):
        """The root of the file system is its own project root."""
        assert project_root(os.sep) == os.sep

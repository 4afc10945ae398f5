"""Commands that use a browser: the preview benchmark and the documentation's screenshots."""

import subprocess
import sys
from pathlib import Path

import imagesize
import pytest

from tests.terminal import environment

pytestmark = [pytest.mark.slow, pytest.mark.installs, pytest.mark.timeout(180)]

ROOT = Path(__file__).parents[3]
FIGURES = ROOT / "docs" / "figures"


def run_module(*arguments):
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env=environment(COLUMNS="100"),
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


def test_benchmark_prints_its_measurements(browser):
    """The preview benchmark prints its three measurements and exits with 1 if one misses its budget."""
    result = run_module("benchmarks.preview", "--rounds", "2")

    assert result.returncode == int("MISSED" in result.stdout), result.stderr
    for title in (
        "the gallery of 1,000 prompts",
        "a prompt of 1,000",
        "a key press, until the conversation has changed",
    ):
        assert title in result.stdout


def test_screenshots_are_created(browser, tmp_path):
    """The screenshots command creates the documentation's images, each smaller than 200 kB."""
    result = run_module("docs.screenshots", "--output", str(tmp_path))

    assert result.returncode == 0, result.stderr
    sizes = {file.name: imagesize.get(file) for file in tmp_path.iterdir()}
    assert len(sizes) == 5
    assert sizes == {file.name: imagesize.get(file) for file in FIGURES.glob("preview-*.png")}
    for file in (*tmp_path.iterdir(), *FIGURES.glob("preview-*.png")):
        assert file.stat().st_size < 200_000

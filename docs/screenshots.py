"""
The screenshots of the preview in the documentation: `python -m docs.screenshots` takes them again.

They show the recipes of this repository in Chromium. The script needs `pip install -e '.[dev]'` and, from
Debian, the packages `chromium`, `fonts-inter` and `fonts-jetbrains-mono`.
"""

import os
import shutil
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import attrs
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from benchmarks.browser import chromium, serve_preview

ROOT: Final = Path(__file__).parents[1]
FIGURES: Final = ROOT / "docs" / "figures"
COLORS: Final = 256

#: The fonts of the screenshots on every machine, by their names in the style sheet.
FONTS: Final = {
    "system-ui": "Inter",
    "sans-serif": "Inter",
    "sans": "Inter",
    "ui-monospace": "JetBrains Mono",
}
_MATCH: Final = """<match><test name="family"><string>{name}</string></test>
<edit name="family" mode="prepend" binding="strong"><string>{font}</string></edit></match>
"""


@attrs.frozen
class Screenshot:
    """
    A page, the actions on it, and the window that shows it.

    Args:
        name:
            The name of the file, without ``.png``.

        path:
            The path of the page.

        act:
            Performs the actions on the page.

        size:
            The size of the window, in CSS pixels.

        scheme:
            ``light`` or ``dark``.
    """

    name: str
    path: str
    act: Callable[[Page], object]
    size: tuple[int, int] = (1280, 800)
    scheme: str = "light"


def _show_gallery(page: Page) -> None:
    expect(page.get_by_role("link", name="wall_bounce")).to_be_attached()


def _show_rendering(page: Page) -> None:
    expect(page.locator("#rendering .turn")).to_be_visible()


def _fill_in_review(page: Page) -> None:
    page.get_by_role("textbox", name="code").fill("def mean(xs):\n    return sum(xs) / len(xs)")
    page.get_by_role("combobox", name="focus").select_option("correctness")
    expect(page.locator("#conversation")).to_contain_text("Focus on correctness")
    page.get_by_role("textbox", name="code").blur()


def _upload_image(page: Page) -> None:
    page.get_by_role("textbox", name="error").fill("KeyError: 'user'\n  at app/session.py:41")
    image = ROOT / "recipes" / "samples" / "dialog.png"
    page.get_by_role("button", name="screenshot", exact=True).set_input_files(image)
    expect(page.get_by_role("img", name="image of turn")).to_be_visible()


def _open_cases(page: Page) -> None:
    page.get_by_role("tab", name="Cases").click()
    expect(page.get_by_role("article").first).to_be_visible()


SCREENSHOTS: Final = (
    Screenshot("preview-gallery", "/", _show_gallery),
    Screenshot("preview-prompt", "/prompts/code_review", _fill_in_review),
    Screenshot("preview-dark", "/prompts/debug_error", _upload_image, scheme="dark"),
    Screenshot("preview-cases", "/prompts/code_review", _open_cases),
    Screenshot("preview-small", "/prompts/explain_code?code=print(1)", _show_rendering, size=(390, 800)),
)


def main() -> int:
    """
    Take the screenshots, and return the exit code.
    """
    parser = ArgumentParser("python -m docs.screenshots", description="Take the screenshots of the preview.")
    parser.add_argument("--output", type=Path, default=FIGURES, metavar="FOLDER", help="output folder")
    output = parser.parse_args().output
    with TemporaryDirectory() as scratch:
        fonts = Path(scratch) / "fonts.conf"
        matches = "".join(_MATCH.format(name=name, font=font) for name, font in FONTS.items())
        fonts.write_text(f"<fontconfig><include>/etc/fonts/fonts.conf</include>{matches}</fontconfig>")
        os.environ["FONTCONFIG_FILE"] = str(fonts)  # Chromium's
        recipes = shutil.copytree(ROOT / "recipes", Path(scratch) / "recipes")
        with serve_preview(recipes) as address, chromium() as browser:
            for screenshot in SCREENSHOTS:
                (output / f"{screenshot.name}.png").write_bytes(_take(browser, address, screenshot))
    return 0


def _take(browser: Browser, address: str, screenshot: Screenshot) -> bytes:
    width, height = screenshot.size
    page = browser.new_page(
        viewport={"width": width, "height": height},
        device_scale_factor=2,
        color_scheme=screenshot.scheme,  # type: ignore[arg-type]
        reduced_motion="reduce",
    )
    page.goto(address)
    page.goto(address.partition("/?")[0] + screenshot.path)
    screenshot.act(page)
    page.wait_for_load_state()
    data = page.screenshot()
    page.close()
    return _compress(data)


def _compress(data: bytes) -> bytes:
    """Reduce an image to few colors, without a visible difference on a page of text."""
    image = Image.open(BytesIO(data)).convert("RGB")
    buffer = BytesIO()
    image.quantize(COLORS, kmeans=1, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


if __name__ == "__main__":
    sys.exit(main())

"""
The pictures of the preview in the documentation: `python -m docs.screenshots` makes them anew.

They show the recipes of this repository in Chromium. It needs `pip install -e '.[dev]'`, and from Debian the
packages `chromium`, `fonts-inter` and `fonts-jetbrains-mono`.
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

from benchmarks.browser import chromium, served

ROOT: Final = Path(__file__).parents[1]
FIGURES: Final = ROOT / "docs" / "figures"
COLOURS: Final = 256

#: The fonts of the pictures, wherever they are made, by the names that the style sheet has for them.
FONTS: Final = {
    "system-ui": "Inter",
    "sans-serif": "Inter",
    "sans": "Inter",
    "ui-monospace": "JetBrains Mono",
}
_MATCH: Final = """<match><test name="family"><string>{name}</string></test>
<edit name="family" mode="prepend" binding="strong"><string>{font}</string></edit></match>
"""

DIFF: Final = """--- a/app/orders.py
+++ b/app/orders.py
@@ -12,6 +12,6 @@
 def total(orders):
-    return sum(o.price for o in orders)
+    return sum(o.price * o.count for o in orders if o.is_paid)
"""


@attrs.frozen
class Picture:
    """
    A page, what is done there, and the window that shows it.

    Args:
        name:
            The picture's file, without ``.png``.

        path:
            The page.

        act:
            What is done there.

        size:
            Of the window, in pixels of CSS.

        scheme:
            ``light`` or ``dark``.
    """

    name: str
    path: str
    act: Callable[[Page], object]
    size: tuple[int, int] = (1280, 800)
    scheme: str = "light"


def _whole(page: Page) -> None:
    expect(page.get_by_role("link", name="wall_bounce")).to_be_attached()


def _said(page: Page) -> None:
    expect(page.locator("#said .turn")).to_be_visible()


def _review(page: Page) -> None:
    page.get_by_role("textbox", name="code").fill("def mean(xs):\n    return sum(xs) / len(xs)")
    page.get_by_role("combobox", name="focus").select_option("correctness")
    expect(page.locator("#conversation")).to_contain_text("Focus on correctness")
    page.get_by_role("textbox", name="code").blur()


def _debug(page: Page) -> None:
    page.get_by_role("textbox", name="error").fill("KeyError: 'user'\n  at app/session.py:41")
    picture = ROOT / "recipes" / "samples" / "dialog.png"
    page.get_by_role("button", name="screenshot", exact=True).set_input_files(picture)
    expect(page.get_by_role("img", name="image of turn")).to_be_visible()


def _test(page: Page) -> None:
    page.get_by_role("textbox", name="diff").fill(DIFF)
    expect(page.locator("#said > ol")).to_be_visible()
    page.get_by_role("tab", name="Test").click()
    expect(page.locator(".panel")).to_be_visible()


def _cases(page: Page) -> None:
    page.get_by_role("tab", name="Cases").click()
    expect(page.get_by_role("article").first).to_be_visible()


PICTURES: Final = (
    Picture("preview-gallery", "/", _whole),
    Picture("preview-prompt", "/prompts/code_review", _review),
    Picture("preview-dark", "/prompts/debug_error", _debug, scheme="dark"),
    Picture("preview-cases", "/prompts/code_review", _cases),
    Picture("preview-test", "/prompts/git_commit", _test),
    Picture("preview-small", "/prompts/explain_code?code=print(1)", _said, size=(390, 800)),
)


def main() -> int:
    """
    Make the pictures, and return the exit code.
    """
    parser = ArgumentParser("python -m docs.screenshots", description="Make the pictures of the preview.")
    parser.add_argument("--output", type=Path, default=FIGURES, metavar="FOLDER", help="where they go")
    output = parser.parse_args().output
    with TemporaryDirectory() as scratch:
        fonts = Path(scratch) / "fonts.conf"
        matches = "".join(_MATCH.format(name=name, font=font) for name, font in FONTS.items())
        fonts.write_text(f"<fontconfig><include>/etc/fonts/fonts.conf</include>{matches}</fontconfig>")
        os.environ["FONTCONFIG_FILE"] = str(fonts)  # Chromium's
        recipes = shutil.copytree(ROOT / "recipes", Path(scratch) / "recipes")
        with served(recipes) as address, chromium() as browser:
            for picture in PICTURES:
                (output / f"{picture.name}.png").write_bytes(_made(browser, address, picture))
    return 0


def _made(browser: Browser, address: str, picture: Picture) -> bytes:
    width, height = picture.size
    page = browser.new_page(
        viewport={"width": width, "height": height},
        device_scale_factor=2,
        color_scheme=picture.scheme,  # type: ignore[arg-type]
        reduced_motion="reduce",
    )
    page.goto(address)
    page.goto(address.partition("/?")[0] + picture.path)
    picture.act(page)
    page.wait_for_load_state()
    data = page.screenshot()
    page.close()
    return _small(data)


def _small(data: bytes) -> bytes:
    """The same picture in few colours, which nobody misses on a page of text."""
    image = Image.open(BytesIO(data)).convert("RGB")
    buffer = BytesIO()
    image.quantize(COLOURS, kmeans=1, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


if __name__ == "__main__":
    sys.exit(main())

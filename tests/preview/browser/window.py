"""A window of a browser, and everything that goes wrong in its pages."""

from urllib.parse import urlsplit

#: How long anything is waited for, in milliseconds. It is a bound, no figure.
PATIENCE = 20_000

#: Runs in each page, before any other script.
LISTENS = """
addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI, sample }) =>
  console.error(`Content-Security-Policy: ${violatedDirective} forbids ${blockedURI || sample}`));
"""


class Window:
    """
    A window of its own, with cookies of its own, that notes what should not happen.

    Args:
        browser:
            Playwright's.

        origin:
            The only server that its pages may ask.

        options:
            Options of the window, as Playwright takes them.
    """

    def __init__(self, browser, origin, **options):
        self.origin = origin
        self._mishaps = []
        self._allowed = []
        self.context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
        self.context.set_default_timeout(PATIENCE)
        self.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=origin)
        self.context.add_init_script(LISTENS)
        self.context.on("request", self._asked)
        self.context.on("requestfailed", self._failed)
        self.context.on("response", self._answered)
        self.context.on("console", self._logged)
        self.context.on("weberror", lambda error: self._mishaps.append(f"raised: {error.error}"))
        self.context.on("dialog", self._interrupted)
        self.page = self.context.new_page()

    def allow(self, *texts):
        """Mishaps with one of these texts are meant to happen."""
        self._allowed += texts

    @property
    def mishaps(self):
        """What should not have happened."""
        return [each for each in self._mishaps if not any(text in each for text in self._allowed)]

    def _asked(self, request):
        url = urlsplit(request.url)
        if f"{url.scheme}://{url.netloc}" != self.origin:
            self._mishaps.append(f"asked somebody else: {request.url[:200]}")

    def _failed(self, request):
        # A page cancels what it no longer waits for.
        if request.failure != "net::ERR_ABORTED":
            self._mishaps.append(f"failed: {request.url[:200]}: {request.failure}")

    def _answered(self, response):
        if response.status >= 400:
            self._mishaps.append(f"refused: {response.url[:200]}: {response.status}")

    def _logged(self, message):
        if message.type in ("error", "warning"):
            self._mishaps.append(f"logged: {message.text[:300]}")

    def _interrupted(self, dialog):
        self._mishaps.append(f"dialog: {dialog.message}")
        dialog.dismiss()


def panel_of(page, name):
    """The panel of a tab, once it shows what the tab stands for, and no longer what the former one did."""
    panel = page.get_by_role("tabpanel", name=name)
    tab = page.get_by_role("tab", name=name).get_attribute("id").removeprefix("tab-")
    panel.locator(f".panel[hx-post*='/tabs/{tab}?']").wait_for()
    return panel

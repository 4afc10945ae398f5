"""A browser window that records everything that goes wrong in its pages."""

from urllib.parse import urlsplit

#: Timeout of every wait, in milliseconds: an upper bound, not a measurement.
TIMEOUT_MS = 20_000

#: A script that runs in each page before any other script.
LISTENER = """
addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI, sample }) =>
  console.error(`Content-Security-Policy: ${violatedDirective} forbids ${blockedURI || sample}`));
"""


class Window:
    """
    A window with its own cookies, which records problems.

    Args:
        browser:
            Playwright's browser.

        origin:
            The only server that its pages may contact.

        options:
            Options of the browser context, passed to Playwright.
    """

    def __init__(self, browser, origin, **options):
        self.origin = origin
        self._problems = []
        self._allowed = []
        self.context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
        self.context.set_default_timeout(TIMEOUT_MS)
        self.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=origin)
        self.context.add_init_script(LISTENER)
        self.context.on("request", self._check_origin)
        self.context.on("requestfailed", self._record_failure)
        self.context.on("response", self._record_error_status)
        self.context.on("console", self._record_log)
        self.context.on("weberror", lambda error: self._problems.append(f"raised: {error.error}"))
        self.context.on("dialog", self._dismiss_dialog)
        self.page = self.context.new_page()

    def allow(self, *texts):
        """Ignore problems that contain one of these strings."""
        self._allowed += texts

    @property
    def problems(self):
        """The recorded problems that were not allowed."""
        return [problem for problem in self._problems if not any(text in problem for text in self._allowed)]

    def _check_origin(self, request):
        url = urlsplit(request.url)
        if f"{url.scheme}://{url.netloc}" != self.origin:
            self._problems.append(f"requested another origin: {request.url[:200]}")

    def _record_failure(self, request):
        # Browsers report requests that the page itself cancelled as ERR_ABORTED.
        if request.failure != "net::ERR_ABORTED":
            self._problems.append(f"failed: {request.url[:200]}: {request.failure}")

    def _record_error_status(self, response):
        if response.status >= 400:
            self._problems.append(f"refused: {response.url[:200]}: {response.status}")

    def _record_log(self, message):
        if message.type in ("error", "warning"):
            self._problems.append(f"logged: {message.text[:300]}")

    def _dismiss_dialog(self, dialog):
        self._problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()


def panel_of(page, name):
    """Return the panel of a tab, once it shows that tab's content and no longer the previous one's."""
    panel = page.get_by_role("tabpanel", name=name)
    tab = page.get_by_role("tab", name=name).get_attribute("id").removeprefix("tab-")
    panel.locator(f".panel[hx-post*='/tabs/{tab}?']").wait_for()
    return panel

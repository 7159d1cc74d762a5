"""Chromium as a reader has it: a page of a file, with whatever it complains about."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Error,
    Locator,
    Page,
    Request,
    ViewportSize,
    sync_playwright,
)

from tests.support.patience import PATIENCE

# Root has no sandbox of Chromium's; nothing of it may ask the network for anything.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
WIDE: ViewportSize = {"width": 1280, "height": 900}
NARROW: ViewportSize = {"width": 380, "height": 800}


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser of its own, with a fresh profile."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Reader:
    """Somebody who reads one report."""

    page: Page
    file: Path
    complaints: list[str] = field(default_factory=list)
    """What the page printed to the console, and its errors."""
    requests: list[str] = field(default_factory=list)
    """Everything that it asked for, but for itself and what it holds."""

    def listen(self) -> None:
        """Note whatever the page complains about, and asks for."""

        def note_console(message: ConsoleMessage) -> None:
            self.complaints.append(f"{message.type}: {message.text}")

        def note_error(error: Error) -> None:
            self.complaints.append(f"error: {error}")

        def note_dialog(dialog: Dialog) -> None:
            self.complaints.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        def note_request(request: Request) -> None:
            if not request.url.startswith(("data:", "about:", self.file.as_uri())):
                self.requests.append(request.url)

        self.page.on("console", note_console)
        self.page.on("pageerror", note_error)
        self.page.on("dialog", note_dialog)
        self.page.on("request", note_request)

    def top(self, selector: str | Locator) -> float:
        """How far an element is from the upper edge of what is seen."""
        found = self.page.locator(selector) if isinstance(selector, str) else selector
        box = found.bounding_box()
        assert box
        return float(box["y"])

    def go(self, fragment: str = "") -> None:
        """To a place of the report, as somebody who was sent a link."""
        # From elsewhere: within one document, the page would hear of it only some time later.
        self.page.goto("about:blank")
        self.page.goto(f"{self.file.as_uri()}#{fragment}")

    def shown(self) -> str:
        """The anchor of the one page that is seen."""
        (anchor,) = self.page.eval_on_selector_all(
            ".page", "pages => pages.filter(page => page.checkVisibility()).map(page => page.id)"
        )
        return str(anchor)

    def until(self, expression: str, argument: Any = None) -> None:
        """Wait until an expression of JavaScript is true; Playwright's own way would need `eval` in the page."""
        deadline = time.monotonic() + PATIENCE
        while not self.page.evaluate(expression, argument):
            assert time.monotonic() < deadline, expression
            self.page.wait_for_timeout(50)

    def wait_for(self, selector: str) -> Any:
        """An element that is seen, now or soon."""
        return self.page.wait_for_selector(selector, timeout=PATIENCE * 1000)


@contextmanager
def reading(browser: Browser, file: Path, *, scripts: bool = True, **settings: Any) -> Iterator[Reader]:
    """A reader of a file.

    Args:
        browser: Where it is opened.
        file: The report.
        scripts: Whether scripts run.
        settings: Of the browser's context, such as `color_scheme` and `viewport`.
    """
    context: BrowserContext = browser.new_context(
        java_script_enabled=scripts, **({"viewport": WIDE, "reduced_motion": "reduce"} | settings)
    )
    context.set_default_timeout(PATIENCE * 1000)
    reader = Reader(context.new_page(), file)
    reader.listen()
    try:
        yield reader
    finally:
        context.close()

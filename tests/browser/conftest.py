"""A real browser, headless, that opens reports and watches what they do."""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from analyze.report.formats import Rendering
from analyze.report.html_report.writer import write_html
from tests.report.test_html import report_of

BROWSER_VARIABLE = "KINETOLINT_BROWSER"
"""``required`` makes a missing browser fail instead of skip; otherwise a path to one, if set."""

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_QUIET = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def _find_browser() -> str | None:
    wanted = os.environ.get(BROWSER_VARIABLE)
    if wanted and wanted != "required":
        return wanted
    found = map(shutil.which, _NAMES)
    return next((path for path in found if path), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium; tests are skipped where there is none."""
    path = _find_browser()
    if path is None:
        message = f"no Chromium found ({', '.join(_NAMES)})"
        if os.environ.get(BROWSER_VARIABLE) == "required":
            pytest.fail(message)
        pytest.skip(message)
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=path, args=[*sandbox, *_QUIET])
        yield launched
        launched.close()


class Watched:
    """A page, and all that it should not do.

    Attributes:
        page: the open page.
        console: messages on its console, errors among them.
        requests: addresses that it asked for beside its own.
        dialogs: texts of dialogs that it opened.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.console: list[str] = []
        self.requests: list[str] = []
        self.dialogs: list[str] = []
        page.on("console", lambda message: self.console.append(message.text))
        page.on("pageerror", lambda error: self.console.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

        def note(dialog: object) -> None:
            self.dialogs.append(dialog.message)  # type: ignore[attr-defined]
            dialog.dismiss()  # type: ignore[attr-defined]

        page.on("dialog", note)

    def open(self, path: Path) -> None:
        self.page.goto(path.as_uri())
        self.requests.remove(path.as_uri())


OpenPage = Callable[..., Watched]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Open an HTML file; options are those of a browser context. It must be quiet and harmless."""
    opened: list[tuple[BrowserContext, Watched, bool]] = []

    def open_(path: Path, *, may_complain: bool = False, **options: object) -> Watched:
        settings = {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light", **options}
        context = browser.new_context(**settings)  # type: ignore[arg-type]
        context.set_default_timeout(20_000)
        watched = Watched(context.new_page())
        opened.append((context, watched, may_complain))
        watched.open(path)
        return watched

    yield open_
    for context, watched, may_complain in opened:
        context.close()
        assert watched.dialogs == []
        assert watched.requests == []
        assert may_complain or watched.console == []


OpenReport = Callable[..., Page]


@pytest.fixture
def open_report(open_page: OpenPage, tmp_path: Path) -> OpenReport:
    """Open the report of traces, given by path."""

    def open_(traces: Path | Sequence[Path], **options: object) -> Page:
        paths = [traces] if isinstance(traces, Path) else traces
        file = tmp_path / "report.html"
        file.write_text(write_html([report_of(path) for path in paths], Rendering()))
        return open_page(file, **options).page

    return open_

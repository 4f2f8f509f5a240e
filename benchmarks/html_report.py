"""How large the HTML report of a trace is, and how long a browser takes to show it.

    python benchmarks/html_report.py TRACE [TRACE...]

Needs Chromium and the package playwright, which the extra ``test`` holds.
"""

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from analyze.cli.check import load_and_check
from analyze.engine.loading import load_rules
from analyze.report.formats import Rendering
from analyze.report.html_report.writer import write_html
from analyze.report.views import with_views

_ROUNDS = 5
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def main(paths: list[str]) -> None:
    """Print a line for each trace."""
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if not paths or found is None:
        sys.exit(__doc__)
    print(f"{'views':>8}  {'page':>8}  {'size':>9}  {'shown':>8}  {'redraw':>8}  trace")
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for path in paths:
            print(_line(browser, path, Path(folder) / "report.html"))
        browser.close()


def _line(browser: Browser, path: str, file: Path) -> str:
    trace, report = load_and_check(path, None, load_rules(tests=False))
    started = time.perf_counter()
    report = with_views(report, trace)
    views = time.perf_counter()
    text = write_html([report], Rendering())
    written = time.perf_counter()
    file.write_text(text)
    opened = statistics.median(_open_ms(browser, file) for _ in range(_ROUNDS))
    times = f"{(views - started) * 1e3:5.0f} ms  {(written - views) * 1e3:5.0f} ms"
    size = f"{len(text.encode()) / 1e3:6.0f} kB"
    return f"{times}  {size}  {opened:5.0f} ms  {_redraw_ms(browser, file):5.1f} ms  {path}"


def _open_ms(browser: Browser, file: Path) -> float:
    """Return the time until the page, its timeline included, has been drawn."""
    page = browser.new_page()
    started = time.perf_counter()
    page.goto(file.as_uri())
    page.evaluate("new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))")
    taken = (time.perf_counter() - started) * 1e3
    page.close()
    return taken


def _redraw_ms(browser: Browser, file: Path) -> float:
    """Return the time of one step of zooming."""
    page = browser.new_page()
    page.goto(file.as_uri())
    script = """() => {
      const timeline = [...timelines.values()][0];
      if (!timeline) return 0;
      const started = performance.now();
      for (let step = 0; step < 20; step++) timeline.zoom(step < 10 ? 0.9 : 1 / 0.9);
      return (performance.now() - started) / 20;
    }"""
    taken: float = page.evaluate(script)
    page.close()
    return taken


if __name__ == "__main__":
    main(sys.argv[1:])

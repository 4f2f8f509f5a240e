"""What a notebook shows of a trace and a report, in a cell styled as JupyterLab styles it."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

import analyze
from tests.browser.conftest import OpenPage
from tests.conftest import MakeTrace, copied_to_a_deep_folder
from tests.report.test_html import hostile_events

THEMES = {"light": ("#ffffff", "#212121", "#f5f5f5"), "dark": ("#111111", "#ffffff", "#212121")}
"""Background, text, and every second row of a table."""

CELL = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>notebook</title><style>
body {{ background: {background}; color: {text}; font-family: sans-serif; font-size: 14px; }}
.output {{ width: 880px; overflow: auto; }}
.output table {{ border-collapse: collapse; font-size: 12px; table-layout: fixed; margin: 0 auto; }}
.output td, .output th {{ text-align: right; vertical-align: middle; padding: 0.5em;
  line-height: normal; white-space: normal; max-width: none; border: none; }}
.output tbody tr:nth-child(even) {{ background: {stripe}; }}
.output p {{ margin: 0 0 1em; }}
</style></head><body><main class="output">{output}</main></body></html>"""


def open_cell(open_page: OpenPage, folder: Path, theme: str, output: str) -> Page:
    background, text, stripe = THEMES[theme]
    file = folder / f"{theme}.html"
    page = CELL.format(background=background, text=text, stripe=stripe, output=output)
    file.write_text(page, encoding="utf-8")
    return open_page(file, color_scheme=theme).page


def assert_readable(page: Page) -> None:
    """Labels stay whole, nothing is wider than the cell, and words stand out from the ground."""
    assert page.evaluate("document.querySelectorAll('td:first-child').length") > 0
    broken = page.evaluate(
        """() => [...document.querySelectorAll("td:first-child")].filter((cell) => {
          const line = document.createRange();
          line.selectNodeContents(cell);
          return line.getClientRects().length > 1;
        }).map((cell) => cell.textContent)"""
    )
    assert broken == []
    assert page.evaluate("(() => { const cell = document.querySelector('.output');"
                         " return cell.scrollWidth <= cell.clientWidth; })()")  # fmt: skip
    found = Axe().run(page, options={"runOnly": ["color-contrast", "list", "aria-valid-attr"]})
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize("theme", THEMES)
def test_a_report_and_its_trace(
    theme: str, open_page: OpenPage, samples: Path, tmp_path: Path
) -> None:
    path = copied_to_a_deep_folder(samples / "synthetic-naive.json.gz", tmp_path)
    trace = analyze.load(path)
    report = analyze.check(trace)
    output = report._repr_html_() + trace._repr_html_()
    page = open_cell(open_page, tmp_path, theme, output)
    assert_readable(page)
    expect(page.get_by_text("Begin with").or_(page.get_by_text("Most to save"))).to_be_visible()
    expect(page.locator("code")).to_contain_text("analyze ")
    evidence = page.locator("details", has_text="seen in").first
    expect(evidence.locator("table")).to_be_hidden()
    evidence.locator("summary").click()
    expect(evidence.locator("table")).to_be_visible()
    assert_readable(page)


@pytest.mark.parametrize("theme", THEMES)
def test_hostile_names_stay_words(
    theme: str, open_page: OpenPage, make_trace: MakeTrace, tmp_path: Path
) -> None:
    trace = analyze.load(make_trace(hostile_events()).name)
    output = analyze.check(trace)._repr_html_() + trace._repr_html_()
    page = open_cell(open_page, tmp_path, theme, output)
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert_readable(page)
    assert page.locator("script, img, iframe, link").count() == 0

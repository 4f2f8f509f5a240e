"""The HTML report as people use it: mouse, keyboard, paper, a phone, without scripts."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from analyze.report.formats import Rendering
from analyze.report.html_report.writer import write_html
from analyze.words import duration, share, size
from tests.browser.conftest import OpenPage, OpenReport
from tests.report.test_html import hostile_events, report_of
from tests.report.test_views import many, steps
from tests.tables.test_attribution import Event, host, kernel, launch, mark, op

NAMES = ("synthetic-naive", "synthetic-sdpa-math", "synthetic-sdpa-flash")


@pytest.fixture
def naive(samples: Path) -> Path:
    return samples / "synthetic-naive.json.gz"


def canvas(page: Page) -> Locator:
    return page.locator("canvas:visible")


def view(page: Page) -> tuple[float, float]:
    """Return the times that the timeline shows, in microseconds from the start of its window."""
    figure = page.locator("figure.timeline:visible")
    start, end = (figure.get_attribute(f"data-view-{edge}") for edge in ("start", "end"))
    return float(str(start)), float(str(end))


def place_of(page: Page, name: str) -> tuple[float, float]:
    """Scroll to the timeline; return where on the page the first GPU slice of a name is drawn."""
    canvas(page).evaluate("(drawn) => drawn.scrollIntoView({ block: 'center' })")
    x, y = page.evaluate(
        """(name) => {
          const timeline = [...timelines.values()].find((each) => each.canvas.clientWidth);
          const lane = timeline.lanes.find((each) => each.kind === "gpu");
          const names = lane.columns.name.map((place) => timeline.data.texts[place]);
          const i = names.findIndex((text) => text.includes(name));
          const box = timeline.drawing.box(timeline.view, lane, i);
          return [box.x + box.width / 2, box.y + box.height / 2];
        }""",
        name,
    )
    box = canvas(page).bounding_box()
    assert box is not None
    return box["x"] + x, box["y"] + y


def details(page: Page) -> Locator:
    return page.locator(".details:visible")


def colours(page: Page) -> int:
    """Return how many different colours the timeline shows."""
    count: int = page.evaluate(
        """() => {
          const drawn = document.querySelector("canvas");
          const { data } = readable(drawn).getImageData(0, 0, drawn.width, drawn.height);
          return new Set(new Uint32Array(data.buffer)).size;
        }""".replace("readable", READABLE)
    )
    return count


READABLE = """((drawn) => {
  const copy = document.createElement("canvas");
  [copy.width, copy.height] = [drawn.width, drawn.height];
  const pen = copy.getContext("2d", { willReadFrequently: true });
  pen.drawImage(drawn, 0, 0);
  return pen;
})"""
"""A script that copies a canvas; reading the drawn one would make the browser complain."""


def column(page: Page, number: int) -> list[str]:
    cells = page.locator(f"table.kernels tbody tr:visible > td:nth-child({number})")
    return [cell.get_attribute("data-value") or "" for cell in cells.all()]


def heading(page: Page, name: str) -> Locator:
    return page.locator("table.kernels thead th").filter(has_text=re.compile(f"^{name}$"))


def test_it_draws_the_forward(open_report: OpenReport, naive: Path) -> None:
    page = open_report(naive)
    expect(page).to_have_title("synthetic-naive - kinetolint")
    expect(page.get_by_text("Device-to-device copy inside the forward").first).to_be_visible()
    assert colours(page) > 20
    start, end = view(page)
    assert start == 0
    assert end > 2000


def test_buttons_wheel_and_dragging_move_the_view(open_report: OpenReport, naive: Path) -> None:
    page = open_report(naive)
    _, whole = view(page)
    page.get_by_role("button", name="zoom in").click()
    start, end = view(page)
    assert end - start == pytest.approx(whole / 2)
    page.get_by_role("button", name="pan right").click()
    assert view(page)[0] == pytest.approx(start + whole / 8)
    page.get_by_role("button", name="all", exact=True).click()
    assert view(page) == (0, whole)

    x, y = place_of(page, "Memcpy")
    page.mouse.move(x, y)
    before = page.evaluate("scrollY")
    page.mouse.wheel(0, -200)
    page.wait_for_function("(before) => scrollY !== before", arg=before)
    assert view(page) == (0, whole)  # it scrolled the page

    x, y = place_of(page, "Memcpy")
    page.mouse.click(x, y)
    page.mouse.wheel(0, -200)
    page.wait_for_function("(whole) => [...timelines.values()][0].view.end < whole", arg=whole)
    start, end = view(page)
    page.mouse.down()
    page.mouse.move(x - 100, y, steps=4)
    page.mouse.up()
    moved_start, moved_end = view(page)
    assert moved_start > start
    assert moved_end - moved_start == pytest.approx(end - start)


def test_only_the_main_button_drags(open_report: OpenReport, naive: Path) -> None:
    page = open_report(naive)
    page.get_by_role("button", name="zoom in").click()
    before = view(page)
    x, y = place_of(page, "Memcpy")
    for button in ("right", "middle"):
        page.mouse.move(x, y)
        page.mouse.down(button=button)
        page.mouse.move(x - 100, y, steps=4)
        page.mouse.up(button=button)
        assert view(page) == before
        expect(details(page)).to_have_count(0)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 100, y, steps=4)
    page.mouse.up()
    assert view(page) != before


def test_a_touch_that_scrolls_the_page_drags_nothing(open_report: OpenReport, naive: Path) -> None:
    page = open_report(naive, viewport={"width": 400, "height": 600}, has_touch=True)
    page.get_by_role("button", name="zoom in").click()
    x, y = place_of(page, "Memcpy")
    before, scrolled = view(page), page.evaluate("scrollY")
    page.evaluate(
        "addEventListener('pointercancel', () => { window.cancelled = true; }, { capture: true })"
    )
    touch = page.context.new_cdp_session(page)
    touch.send("Input.dispatchTouchEvent", touched("touchStart", x, y))
    for up in range(20, 200, 20):
        touch.send("Input.dispatchTouchEvent", touched("touchMove", x, y - up))
    page.wait_for_function("(before) => scrollY > before && window.cancelled", arg=scrolled)
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    x, y = place_of(page, "Memcpy")
    page.mouse.move(x, y)
    page.mouse.move(x - 100, y, steps=4)
    assert view(page) == before


def touched(kind: str, x: float, y: float) -> dict[str, Any]:
    return {"type": kind, "touchPoints": [{"x": x, "y": y}]}


def test_a_slice_says_what_it_is_when_pointed_at_and_clicked(
    open_report: OpenReport, naive: Path
) -> None:
    page = open_report(naive)
    x, y = place_of(page, "Memcpy")
    page.mouse.move(x, y)
    tip = page.locator(".tip:visible")
    expect(tip).to_contain_text("memcpy Memcpy DtoD (Device -> Device)")
    expect(tip).to_contain_text("aten::masked_fill > aten::clone > aten::copy_")
    expect(details(page)).to_have_count(0)
    page.mouse.click(x, y)
    expect(details(page)).to_contain_text("queue delay")
    expect(details(page)).to_contain_text("cudaMemcpyAsync")
    expect(details(page)).to_contain_text("256 MiB, 725 GB/s")
    expect(details(page)).to_contain_text("370 us")


def test_an_idle_time_says_what_the_thread_did_with_shares(
    open_report: OpenReport, samples: Path
) -> None:
    page = open_report(samples / "synthetic-sdpa-cudnn.json.gz")
    words = page.evaluate(
        """() => {
          const { data, lanes, links } = [...timelines.values()][0];
          const lane = lanes.find((lane) => lane.kind === "idle");
          return Kinetolint.describe(data, links, { lane, i: 0 }).pairs;
        }"""
    )
    assert dict(words)["meanwhile"].startswith("the launching thread was ")
    assert re.search(r"was \d+ % outside ops \(Python, or idle\), \d+ % in ops", str(words))
    assert re.fullmatch(r"aten::.*, \d+ %", dict(words)["longest op"])


def test_numbers_are_worded_as_everywhere(open_report: OpenReport, naive: Path) -> None:
    page = open_report(naive)
    shares = [0, 1, 0.005, 0.007, 0.01, 0.015, 0.99, 0.995, 0.9965, 0.9999]
    shares += [number / 7919 for number in range(7919)]
    times = [number / 8 for number in range(20_000)] + [1.017**number for number in range(1000)]
    sizes = [32 * number for number in range(20_000)] + [1.5**number for number in range(70)]
    for name, words, values in (
        ("share", share, shares),
        ("duration", duration, times),
        ("size", size, sizes),
    ):
        worded = page.evaluate(f"(values) => values.map(Kinetolint.{name})", values)
        assert dict(zip(values, worded, strict=True)) == {value: words(value) for value in values}


def test_a_lone_number_does_not_fill_the_page(open_report: OpenReport, samples: Path) -> None:
    page = open_report(samples / "cpu-naive.json.gz")
    [width] = page.evaluate("[...document.querySelectorAll('.tiles li')].map((t) => t.offsetWidth)")
    assert 100 < width < 300


def test_a_finding_leads_to_its_place(open_report: OpenReport, naive: Path) -> None:
    page = open_report(naive)
    finding = page.locator("details.finding").filter(has_text="COPY101")
    finding.get_by_role("button", name=re.compile("in the timeline")).click()
    expect(details(page)).to_contain_text("Memcpy DtoD")
    expect(canvas(page)).to_be_focused()
    start, end = view(page)
    assert end - start < 3000


def test_a_place_is_that_of_its_own_finding_and_device(
    open_report: OpenReport, tmp_path: Path
) -> None:
    copies = [
        {
            **kernel(number, 100 * number, 50, "Memcpy HtoD (Pageable -> Device)", device=device),
            "cat": "gpu_memcpy",
        }
        for number in range(1, 30)
        for device in (0, 1)
    ]
    launches = [launch(number, 10 * number, name="cudaMemcpyAsync") for number in range(1, 30)]
    page = open_report(written(tmp_path, [mark("attn_fwd", 0, 400), *launches, *copies]))
    found = page.evaluate(
        """() => [...document.querySelectorAll("button.jump:not([hidden])")].map((button) => {
          const timeline = [...timelines.values()][0];
          const said = [];
          for (let place = 0; place < Number(button.dataset.places); place++) {
            button.click();
            const { lane, i } = timeline.selected;
            said.push([lane.found.code, lane.start[i], lane.found.events[i]]);
          }
          return [button.closest("details").querySelector(".code").textContent, said];
        })"""
    )
    assert found
    for code, said in found:
        assert {marked for marked, _, _ in said} == {code}
        assert len({(start, event) for _, start, event in said}) == len(said)
    events = {event for _, said in found for _, _, event in said}
    assert {f"Memcpy HtoD, GPU {device} stream 7" for device in (0, 1)} <= events


def test_a_finding_leads_to_its_mark_where_slices_are_drawn_as_one(
    open_report: OpenReport, tmp_path: Path
) -> None:
    page = open_report(written(tmp_path, many(6000)))
    finding = page.locator("details.finding").filter(
        has=page.locator("button.jump", has_text="Show 1 of")
    )
    code = finding.first.locator(".code").inner_text()
    finding.first.get_by_role("button", name=re.compile("in the timeline")).click()
    expect(details(page).locator(".title")).to_have_text(re.compile(f"^{code} "))


def test_of_slices_drawn_as_one_it_says_what_the_trace_has(
    open_report: OpenReport, tmp_path: Path
) -> None:
    events = [*many(6000), op("aten::fill_", 60_016, 400)]
    for event in events:
        if event["name"] == "cudaLaunchKernel" and event["args"]["correlation"] % 3 == 0:
            event["name"] = "cudaLaunchKernelExC"
    events += [
        launch(90_001, 60_200, name="cudaLaunchCooperativeKernel"),
        kernel(90_001, 100_000, 500, "long_kernel"),
    ]
    page = open_report(written(tmp_path, events))
    words, outlined = page.evaluate(DESCRIBED, ["span", "aten::fill_"])
    assert words["launched"].startswith("21 GPU ops, ")
    assert outlined
    words, outlined = page.evaluate(DESCRIBED, ["gpu", "long_kernel"])
    assert words["launch"].startswith("cudaLaunchCooperativeKernel, 60.2 ms after the start of")
    assert "aten::fill_" in outlined
    assert not [name for name in outlined if name.startswith("aten::op_")]


DESCRIBED = """([kind, name]) => {
  const { data, links, lanes } = [...timelines.values()][0];
  const of = ({ lane, i }) => data.texts[lane.columns.name[i]];
  for (const lane of lanes.filter((each) => each.kind === kind)) {
    const i = lane.columns.name.findIndex((place) => data.texts[place] === name);
    if (i < 0) continue;
    const { pairs } = Kinetolint.describe(data, links, { lane, i });
    return [Object.fromEntries(pairs), links.related({ lane, i }).map(of)];
  }
}"""
"""A script that returns what is said of the first slice of a name, and what is outlined for it."""


def test_a_launch_before_the_step_is_said_to_be_before_it(
    open_report: OpenReport, tmp_path: Path
) -> None:
    events = [launch(9, 20), *steps(40), kernel(9, 1005, 5, "late")]
    for event in events[1:-1]:
        event["ts"] += 1000
    page = open_report(written(tmp_path, events))
    words, _ = page.evaluate(DESCRIBED, ["gpu", "late"])
    assert words["launch"] == "cudaLaunchKernel, 980 us before the start of the step, not drawn"
    assert words["on"] == "GPU 0 stream 7"


def written(folder: Path, events: list[Event]) -> Path:
    path = folder / "made.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def test_a_click_takes_the_call_on_top_and_a_second_one_what_is_beneath(
    open_report: OpenReport, tmp_path: Path
) -> None:
    calls = [("cudaOuter", 100, 300), ("cudaInner", 150, 100), ("cudaSame", 150, 100)]
    events = [mark("attn_fwd", 0, 1000), op("aten::mm", 0, 900)]
    events += [host("cuda_runtime", name, start, length) for name, start, length in calls]
    page = open_report(written(tmp_path, events))
    canvas(page).evaluate("(drawn) => drawn.scrollIntoView({ block: 'center' })")
    x, y = page.evaluate(
        """() => {
          const { lanes, drawing, view } = [...timelines.values()][0];
          const lane = lanes.find((each) => each.kind === "call");
          return [drawing.x(view, 200), lane.y + 6];
        }"""
    )
    box = canvas(page).bounding_box()
    assert box is not None
    said = []
    for _ in range(4):
        page.mouse.click(box["x"] + x, box["y"] + y)
        said.append(details(page).locator(".title").inner_text())
    assert said[0] == said[3] != said[1]
    assert set(said[:2]) == {"call cudaInner", "call cudaSame"}
    assert said[2] == "call cudaOuter"
    page.mouse.dblclick(box["x"] + x, box["y"] + y)
    assert view(page) == pytest.approx((50, 350))


def test_next_and_previous_go_by_start_on_every_lane(
    open_report: OpenReport, tmp_path: Path
) -> None:
    page = open_report(written(tmp_path, many(300)))
    orders = page.evaluate(
        """() => {
          const timeline = [...timelines.values()][0];
          return timeline.lanes.map((lane) => {
            timeline.select({ lane, i: lane.byStart[0] });
            const starts = [];
            const seen = new Set();
            while (!seen.has(timeline.selected.i)) {
              seen.add(timeline.selected.i);
              starts.push(lane.start[timeline.selected.i]);
              timeline.figure.querySelector("[data-do=next]").click();
            }
            return [lane.kind, lane.start, starts];
          });
        }"""
    )
    assert any(kind == "finding" and starts != sorted(starts) for kind, starts, _ in orders)
    for kind, starts, stepped in orders:
        assert stepped == sorted(starts), kind


@pytest.mark.parametrize(
    ("kind", "fill", "least", "most"), [("call", 0x58, 0.1, 0.2), ("span", 0xD7, 0.6, 0.9)]
)
def test_host_slices_drawn_as_one_are_as_faint_as_little_was_done(
    kind: str, fill: int, least: float, most: float, open_report: OpenReport, tmp_path: Path
) -> None:
    page = open_report(written(tmp_path, many(6000)))
    green, busy = page.evaluate(
        f"""(kind) => {{
          const timeline = [...timelines.values()][0];
          const lane = timeline.lanes.find((each) => each.kind === kind);
          const i = lane.columns.count.findIndex((one) => one > 1);
          timeline.show(lane.start[i] - 5, lane.start[i] + lane.dur[i] + 5);
          const box = timeline.drawing.box(timeline.view, lane, i);
          const ratio = timeline.canvas.width / timeline.canvas.clientWidth;
          const area = [box.x + 1, box.y, box.width - 2, box.height].map((size) => size * ratio);
          const {{ data }} = {READABLE}(timeline.canvas).getImageData(...area);
          const greens = data.filter((_, at) => at % 4 === 1).sort();
          return [greens[greens.length >> 1], lane.columns.sum_us[i] / lane.dur[i]];
        }}""",
        kind,
    )
    assert least < busy < most
    assert green == pytest.approx(busy * fill + (1 - busy) * 255, abs=4)


def test_names_of_calls_can_be_read_in_both_themes(open_report: OpenReport, naive: Path) -> None:
    page = open_report(naive)
    for _ in range(2):
        inks = page.evaluate(
            """() => {
              const { callColors, colors: { bg } } = [...timelines.values()][0].drawing;
              return Object.entries(callColors).flatMap(([kind, fill]) =>
                [0.1, 0.4, 0.5, 0.6, 1].map((share) =>
                  [kind, share, fill, bg, Kinetolint.inkOn(fill, bg, share)]));
            }"""
        )
        assert {kind for kind, *_ in inks} == {"launch", "sync", "copy", "other"}
        for kind, share_, fill, background, ink in inks:
            assert contrast(mixed(fill, background, share_), channels(ink)) >= 4.5, (kind, share_)
        page.locator("#theme").click()


def channels(colour: str) -> list[float]:
    return [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]


def mixed(over: str, under: str, share: float) -> list[float]:
    pairs = zip(channels(over), channels(under), strict=True)
    return [share * one + (1 - share) * other for one, other in pairs]


def contrast(one: list[float], other: list[float]) -> float:
    """Return the contrast of two colours, https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio"""

    def luminance(colour: list[float]) -> float:
        red, green, blue = (
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("width", [320, 360, 1280])
def test_the_axis_has_labels_that_do_not_touch(
    open_report: OpenReport, naive: Path, width: int
) -> None:
    page = open_report(naive, viewport={"width": width, "height": 800})
    views = page.evaluate(
        """() => {
          const timeline = [...timelines.values()][0];
          const { context } = timeline.drawing;
          const write = context.fillText.bind(context);
          let labels = [];
          context.fillText = (words, x, y) => {
            const half = context.measureText(words).width / 2;
            if (y === 10) labels.push([x - half, x + half]);
            write(words, x, y);
          };
          const views = [];
          for (let length = 0.05; length < timeline.whole.end; length *= 1.7) {
            for (let part = 0; part < 7; part++) {
              labels = [];
              const start = ((timeline.whole.end - length) * part) / 6.5;
              timeline.show(start, start + length);
              views.push(labels);
            }
          }
          return views;
        }"""
    )
    assert len(views) > 100
    for labels in views:
        assert len(labels) >= 2
        assert all(before[1] < after[0] for before, after in pairwise(labels))


def test_the_keyboard_alone_is_enough(open_report: OpenReport, naive: Path) -> None:
    page = open_report(naive)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the findings")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator("#theme")).to_be_focused()
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.tagName"))
        if reached >= {"SUMMARY", "CANVAS"}:
            break
    expect(canvas(page)).to_be_focused()
    _, whole = view(page)
    page.keyboard.press("+")
    start, end = view(page)
    assert end - start == pytest.approx(whole / 2)
    page.keyboard.press("ArrowRight")
    assert view(page)[0] > start
    page.keyboard.press("Home")
    assert view(page) == (0, whole)
    page.keyboard.press("n")
    first = details(page).inner_text()
    page.keyboard.press("n")
    assert details(page).inner_text() not in ("", first)
    page.keyboard.press("Enter")
    start, end = view(page)
    assert end - start < whole
    page.keyboard.press("ArrowUp")
    expect(details(page)).to_contain_text("call cuda")
    page.keyboard.press("Escape")
    expect(details(page)).to_have_count(0)

    heading(page, "calls").get_by_role("button").focus()
    page.keyboard.press("Enter")
    expect(heading(page, "calls")).to_have_attribute("aria-sort", "descending")
    summary = page.locator("table.kernels summary").first
    summary.focus()
    page.keyboard.press("Enter")
    expect(page.locator("table.kernels td.name dl").first).to_be_visible()


def test_kernels_sort_by_any_column(open_report: OpenReport, samples: Path) -> None:
    page = open_report(samples / "synthetic-sdpa-math.json.gz")
    names = column(page, 1)
    for number, (name, first) in enumerate(
        [("kernel", "ascending"), ("total", "descending"), ("reported", "descending")]
    ):
        position = {"kernel": 1, "total": 7, "reported": 10}[name]
        heading(page, name).get_by_role("button").click()
        expect(heading(page, name)).to_have_attribute("aria-sort", first)
        once = column(page, position)
        heading(page, name).get_by_role("button").click()
        twice = column(page, position)
        assert len(set(once)) > 2, number
        if name == "kernel":
            assert once == sorted(once, key=str.lower)
            assert twice == once[::-1]
        else:
            numbers = [float(value) for value in once if value]
            assert numbers == sorted(numbers, reverse=True)
            assert [float(value) for value in twice if value] == numbers[::-1]
            unknown = len(once) - len(numbers)
            assert once[len(numbers) :] == twice[len(numbers) :] == [""] * unknown
    assert sorted(column(page, 1)) == sorted(names)
    assert page.locator("table.kernels th[aria-sort]").count() == 1


def test_kernels_filter_by_text(open_report: OpenReport, samples: Path) -> None:
    page = open_report(samples / "synthetic-sdpa-math.json.gz")
    every = column(page, 1)
    page.get_by_label("Filter by name, family, op").type("SGEMM aten::bmm")
    shown = column(page, 1)
    assert 0 < len(shown) < len(every)
    assert all("sgemm" in name for name in shown)
    expect(page.locator(".filter [role=status]")).to_contain_text(f"{len(shown)} of {len(every)}")
    page.get_by_label("Filter by name, family, op").fill("nothing is called this")
    assert column(page, 1) == []
    expect(page.locator(".filter [role=status]")).to_have_text(f"0 of {len(every)} names")
    page.get_by_label("Filter by name, family, op").fill("launch")
    expect(page.locator("table.kernels dt").filter(has_text="launch").first).to_have_count(1)
    assert column(page, 1) == [], "it is a label of every row"
    page.evaluate("document.querySelectorAll('tr[data-time]').forEach((r) => r.dataset.time = '')")
    page.get_by_label("Filter by name, family, op").fill("sgemm")
    expect(page.locator(".filter [role=status]")).to_contain_text("unknown summed")
    page.get_by_label("Filter by name, family, op").fill("")
    assert column(page, 1) == every


def test_the_theme_follows_the_system_and_the_button(open_report: OpenReport, naive: Path) -> None:
    page = open_report(naive, color_scheme="dark")

    def background() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    def corner() -> list[int]:
        drawn = f"{READABLE}(document.querySelector('canvas')).getImageData(1, 1, 1, 1).data"
        return list(page.evaluate(f"[...{drawn}]"))

    dark, dark_corner = background(), corner()
    page.get_by_role("button", name="Light theme").click()
    assert background() == "rgb(255, 255, 255)" != dark
    assert corner() == [255, 255, 255, 255] != dark_corner
    page.get_by_role("button", name="Dark theme").click()
    assert background() == dark


def test_evidence_opens(open_report: OpenReport, naive: Path) -> None:
    page = open_report(naive)
    evidence = page.locator("details.finding[open] .evidence").first
    expect(evidence).to_be_hidden()
    page.locator("details.finding[open] details summary").first.click()
    expect(evidence).to_be_visible()
    expect(evidence).to_contain_text("Memcpy DtoD")


def test_several_traces_are_tabs(open_report: OpenReport, samples: Path) -> None:
    page = open_report([samples / f"{name}.json.gz" for name in NAMES])
    tabs = page.get_by_role("tab")
    assert tabs.count() == 3
    panels = page.locator("section.trace")
    assert [panel.is_visible() for panel in panels.all()] == [True, False, False]
    tabs.first.focus()
    page.keyboard.press("ArrowRight")
    expect(tabs.nth(1)).to_be_focused()
    expect(tabs.nth(1)).to_have_attribute("aria-selected", "true")
    assert [panel.is_visible() for panel in panels.all()] == [False, True, False]
    x, y = place_of(page, "sgemm")
    page.mouse.click(x, y)
    expect(details(page)).to_contain_text("sgemm")
    page.get_by_role("link", name="synthetic-sdpa-flash").click()
    assert [panel.is_visible() for panel in panels.all()] == [False, False, True]


def test_back_and_a_changed_address_lead_to_their_trace(
    open_report: OpenReport, samples: Path
) -> None:
    page = open_report([samples / f"{name}.json.gz" for name in NAMES])
    sections = page.locator("section.trace")
    links = page.locator("a.to-trace")
    links.nth(2).click()
    expect(sections.nth(2)).to_be_visible()
    links.nth(1).click()
    expect(sections.nth(1)).to_be_visible()
    page.go_back()
    expect(sections.nth(2)).to_be_visible()
    page.go_back()
    expect(sections.nth(0)).to_be_visible()
    page.evaluate("location.hash = '#trace-2'")
    expect(sections.nth(1)).to_be_visible()
    page.evaluate("location.hash = '#content'")
    page.evaluate("() => new Promise((done) => setTimeout(done, 50))")
    expect(sections.nth(1)).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_passes_the_checks_of_axe(open_report: OpenReport, samples: Path, scheme: str) -> None:
    page = open_report(
        [samples / f"{name}.json.gz" for name in (*NAMES, "cpu-naive")], color_scheme=scheme
    )
    page.locator("table.kernels summary").first.click()
    x, y = place_of(page, "Memcpy")
    page.mouse.click(x, y)
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def test_400_pixels_are_enough(open_report: OpenReport, samples: Path) -> None:
    page = open_report(
        [samples / f"{name}.json.gz" for name in NAMES], viewport={"width": 400, "height": 800}
    )
    page.locator("table.kernels summary").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert colours(page) > 20


def test_without_scripts_all_but_the_drawing_is_there(
    open_report: OpenReport, samples: Path
) -> None:
    page = open_report([samples / f"{name}.json.gz" for name in NAMES], java_script_enabled=False)
    expect(page.get_by_text("The drawing needs JavaScript").first).to_be_visible()
    assert page.locator("section.trace:visible").count() == 3
    assert page.locator("button:visible").count() == 0
    expect(page.get_by_text("SDPA ran on the math backend").first).to_be_visible()
    expect(page.locator("table.kernels:visible").first).to_contain_text("masked_fill_kernel")


def test_it_prints_everything_in_light_colours(open_report: OpenReport, samples: Path) -> None:
    page = open_report([samples / f"{name}.json.gz" for name in NAMES], color_scheme="dark")
    page.evaluate(
        """() => addEventListener("beforeprint", () => {
          const open = (selector) => [...document.querySelectorAll(selector)];
          window.atPrint = {
            theme: document.documentElement.dataset.theme,
            panels: open("section.trace").filter((panel) => !panel.hidden).length,
            folded: open("details.finding:not([open])").length,
          };
        })"""
    )
    before = page.locator("details.finding[open]:visible").count()
    assert page.pdf().startswith(b"%PDF")
    assert page.evaluate("atPrint") == {"theme": "light", "panels": 3, "folded": 0}
    assert page.evaluate("document.documentElement.dataset.theme ?? null") is None
    assert page.locator("section.trace:visible").count() == 1
    assert page.locator("details.finding[open]:visible").count() == before


def test_it_prints_kernels_that_a_filter_hides(open_report: OpenReport, naive: Path) -> None:
    page = open_report(naive)
    every = column(page, 1)
    page.get_by_label("Filter by name, family, op").fill("softmax")
    assert 0 < len(column(page, 1)) < len(every)
    page.emulate_media(media="print")
    assert column(page, 1) == every
    page.emulate_media(media="screen")
    assert len(column(page, 1)) < len(every)


def test_it_prints_the_timeline_as_a_sharp_picture(open_report: OpenReport, naive: Path) -> None:
    page = open_report(naive)
    before = colours(page)
    width = canvas(page).evaluate("(drawn) => drawn.clientWidth")
    pictures = [int(found) for found in re.findall(rb"/Width (\d+)", page.pdf())]
    assert max(pictures) == 2 * width
    assert colours(page) == before


def test_a_long_table_prints_its_head_on_every_page(
    open_report: OpenReport, tmp_path: Path
) -> None:
    path = tmp_path / "many.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": many(40)}))
    page = open_report(path)
    page.emulate_media(media="print")
    heads = page.locator(".tall table.kernels thead th")
    assert heads.count() > 5
    # Chromium repeats neither a sticky head nor the buttons in one
    for head in heads.all():
        assert head.evaluate("(head) => getComputedStyle(head).position") == "static"
        button = head.locator("button")
        assert button.evaluate("(button) => getComputedStyle(button).display") == "contents"


def test_names_on_pale_slices_can_be_read(open_report: OpenReport, naive: Path) -> None:
    page = open_report(naive)
    contrast = page.evaluate(
        f"""() => {{
          const {{ canvas, lanes, data, drawing, view }} = [...timelines.values()][0];
          const lane = lanes.find((each) => each.kind === "call");
          const names = lane.columns.name.map((place) => data.texts[place]);
          const box = drawing.box(view, lane, names.indexOf("cudaDeviceSynchronize"));
          const ratio = canvas.width / canvas.clientWidth;
          const area = [box.x, box.y, 130, box.height].map((length) => length * ratio);
          const {{ data: shown }} = {READABLE}(canvas).getImageData(...area);
          const greens = shown.filter((_, at) => at % 4 === 1);
          return Math.max(...greens) - Math.min(...greens);
        }}"""
    )
    assert contrast > 100


def test_hostile_names_do_nothing(open_report: OpenReport, tmp_path: Path) -> None:
    path = tmp_path / "hostile.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": hostile_events()}))
    page = open_report(path)
    canvas(page).focus()
    page.keyboard.press("n")
    for _ in range(12):
        page.keyboard.press("n")
    for _ in range(4):
        page.keyboard.press("ArrowUp")
        page.keyboard.press("p")
    page.mouse.move(*place_of(page, "onerror"))
    expect(page.locator(".tip")).to_contain_text("<img src=x onerror=alert(2)>")
    page.mouse.click(*place_of(page, "onerror"))
    expect(details(page)).to_contain_text("<img src=x onerror=alert(2)>")
    page.get_by_label("Filter by name, family, op").fill("<img")
    assert len(column(page, 1)) == 1
    assert page.locator("img, iframe, object, embed").count() == 0
    assert page.locator("script:not([type])").count() == 5


def test_what_is_injected_does_not_run(open_page: OpenPage, naive: Path, tmp_path: Path) -> None:
    text = write_html([report_of(naive)], Rendering())
    injected = (
        '<script>window.ran = "script"</script><p id="in" style="color: red">in</p>'
        '<svg onload="window.ran = \'handler\'"></svg><a id="link" href="javascript:ran=1">x</a>'
        "<style>#in { color: red }</style>"
    )
    path = tmp_path / "injected.html"
    path.write_text(text.replace("</footer>", f"</footer>{injected}"))
    watched = open_page(path, may_complain=True)
    page = watched.page
    page.locator("#link").click()
    assert page.evaluate("window.ran ?? null") is None
    assert (
        page.evaluate("getComputedStyle(document.querySelector('#in')).color") != "rgb(255, 0, 0)"
    )
    refused = [words for words in watched.console if "Content Security Policy" in words]
    assert len(refused) >= 4
    blocked: Any = page.evaluate(
        """() => {
          try { document.body.innerHTML += "x"; } catch (error) { return error.name; }
          return null;
        }"""
    )
    assert blocked == "TypeError"
    assert colours(page) > 20


def test_the_kernels_fit_beside_a_scroll_bar(open_report: OpenReport, real_traces: Path) -> None:
    (path,) = (real_traces / "par-dlrm-w0").glob("*.json*")
    # as wide as the table is in a window of 1280 pixels whose scroll bars take room
    page = open_report(path, viewport={"width": 1224, "height": 900})
    kernels = page.get_by_role("region", name="Kernels")
    assert kernels.evaluate("(region) => region.scrollWidth <= region.clientWidth")


def test_a_real_trace(open_report: OpenReport, real_traces: Path) -> None:
    (path,) = (real_traces / "kin-r50-w0-v19").glob("*.json*")
    page = open_report(path)
    expect(page.get_by_text("Short neighbours are drawn as one")).to_be_visible()
    page.get_by_role("button", name="GPU work").click()
    page.get_by_role("button", name="next").click()
    expect(details(page)).to_contain_text("duration")
    assert colours(page) > 50

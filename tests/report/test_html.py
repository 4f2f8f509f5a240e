"""The HTML report: valid, self-contained, harmless whatever the names, whole without scripts."""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import html5lib
import pytest

from analyze.cli.check import load_and_check
from analyze.engine.loading import load_rules
from analyze.engine.result import TraceReport, Uncaptured, Unread
from analyze.report.formats import Rendering
from analyze.report.html_report.groups import GROUPS, group_of
from analyze.report.html_report.timeline import script_json
from analyze.report.html_report.writer import write_html
from analyze.report.views import with_views
from analyze.tables.catalogue import FAMILIES
from tests.conftest import RunAnalyze
from tests.report.test_views import many, steps
from tests.tables.test_attribution import Event, kernel, launch, mark, op

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "\"><svg onload='alert(3)'>",
    "{{ 7 * 7 }}{% raw %}",
    "]]><!--",
    "\u202egnp.exe\u2066",
    "\x00\x1b[31mred\x07",
    "\u2028line\u2029",
    "&lt;b&gt; &amp; 100%",
    "name " * 2000,
)
SVG = "{http://www.w3.org/2000/svg}"
SAMPLES = (
    "synthetic-naive",
    "synthetic-sdpa-math",
    "synthetic-sdpa-cudnn",
    "cpu-sdpa-math",
    "cpu-decode-cat",
)

MakeReport = Callable[[list[Event]], TraceReport]


def report_of(path: Path) -> TraceReport:
    trace, report = load_and_check(str(path), None, load_rules(tests=False))
    return with_views(report, trace)


@pytest.fixture
def make_report(tmp_path: Path) -> MakeReport:
    def make(events: list[Event]) -> TraceReport:
        path = tmp_path / "made.json"
        path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
        return report_of(path)

    return make


def parsed(text: str) -> Element:
    """Parse as a browser does, but refuse what a browser would have to mend."""
    tree: Element = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(text)
    return tree


def text_of(element: Element) -> str:
    """Return what a reader without scripts sees, in one line."""
    if element.tag in ("script", "style"):
        return element.tail or ""
    inside = "".join(map(text_of, element))
    return f"{element.text or ''}{inside}{element.tail or ''}"


def data_of(page: Element) -> list[Any]:
    return [
        json.loads(script.text or "")
        for script in page.iter("script")
        if script.get("type") == "application/json"
    ]


def hostile_events() -> list[Event]:
    events: list[Event] = [mark("attn_fwd", 0, 1000)]
    for number, name in enumerate(HOSTILE):
        at = number * 50
        events += [
            op(name, at, 30), launch(number + 1, at + 5, name=f"cudaLaunchKernel{name}"),
            kernel(number + 1, at + 10, 20, name),
        ]  # fmt: skip
    lane = {**op("op", 900, 10), "tid": HOSTILE[0] + HOSTILE[5] + HOSTILE[9]}
    copy = kernel(90, 700, 200, "Memcpy DtoD (Device -> Device)", bytes=1 << 28)
    return [*events, lane, op(HOSTILE[0], 600, 50), launch(90, 610), {**copy, "cat": "gpu_memcpy"}]


@pytest.mark.parametrize("name", SAMPLES)
def test_the_page_is_valid_html(name: str, samples: Path) -> None:
    page = parsed(write_html([report_of(samples / f"{name}.json.gz")], Rendering()))
    ids = [element.get("id") for element in page.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    headings = [element.tag for element in page.iter() if element.tag in ("h1", "h2", "h3")]
    assert headings[0] == "h1"


def test_nothing_is_loaded_and_only_its_own_scripts_may_run(samples: Path) -> None:
    reports = [report_of(samples / f"{name}.json.gz") for name in SAMPLES[:2]]
    page = parsed(write_html(reports, Rendering()))
    policies = [e.get("content") for e in page.iter("meta") if e.get("http-equiv")]
    assert len(policies) == 1
    policy = str(policies[0])
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    inline = [*page.iter("style"), *(s for s in page.iter("script") if not s.get("type"))]
    allowed = {
        f"'sha256-{base64.b64encode(hashlib.sha256((e.text or '').encode()).digest()).decode()}'"
        for e in inline
    }
    assert set(re.findall(r"'sha256-[^']*'", policy)) == allowed
    for element in page.iter():
        for attribute, value in element.attrib.items():
            assert attribute not in ("style", "src", "srcset", "action", "formaction")
            assert not attribute.startswith("on")
            assert attribute not in ("href", "xlink:href") or value.startswith("#")


def test_hostile_names_stay_text(make_report: MakeReport) -> None:
    text = write_html([make_report(hostile_events())], Rendering())
    plain = write_html([make_report([*many(10), mark("attn_fwd", 900, 10)])], Rendering())
    page = parsed(text)

    def scripts(tree: Element) -> int:
        return len(list(tree.iter("script")))

    assert scripts(page) == scripts(parsed(plain))
    assert not list(page.iter("img"))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u2028\u2029\u202a-\u202e\u2066-\u2069]", text)
    seen = text_of(page)
    assert "<img src=x onerror=alert(2)>" in seen
    assert "{{ 7 * 7 }}{% raw %}" in seen
    assert "&lt;b&gt; &amp; 100%" in seen
    assert r"\x202egnp.exe" in seen
    (data,) = data_of(page)
    assert "</script><script>alert(1)</script>" in data["texts"]
    assert max(map(len, data["texts"])) < 1000
    assert len(text) < 400_000


def test_a_hostile_file_name_and_a_hostile_result_stay_text(samples: Path) -> None:
    report = report_of(samples / "synthetic-naive.json.gz")
    assert report.views is not None
    kernels = {**report.views["kernels"]}
    kernels["rows"] = [{**kernels["rows"][0], "limiter": "<script>", "family": "<i>"}]
    changed = {**vars(report), "trace": "<b>/\x1b]0;<u>.json"}
    changed["views"] = {**report.views, "kernels": kernels}
    page = parsed(write_html([TraceReport(**changed)], Rendering()))
    assert not [*page.iter("b"), *page.iter("u"), *page.iter("i")]
    assert r"<b>/\x1b]0;<u>.json" in text_of(page)


def test_what_could_end_a_script_element_is_spelt_out() -> None:
    text = "</script><!--&\u2028\u2029\"'\\ü"
    written = str(script_json({"text": text}))
    assert not re.search("[<>&\u2028\u2029]", written)
    assert json.loads(written) == {"text": text}


def test_without_scripts_findings_and_tables_are_there(samples: Path) -> None:
    report = report_of(samples / "synthetic-naive.json.gz")
    seen = text_of(parsed(write_html([report], Rendering())))
    for finding in report.findings:
        assert finding.code in seen
        assert finding.title in seen
        assert finding.message in seen
        assert finding.guess in seen
    for words in (
        "at most 365 us per forward",
        "softmax_warp_forward",
        "aten::masked_fill > aten::clone > aten::copy_",
        "0 only because 72 KiB of shared memory exceed 48 KiB",
        "NVIDIA A100-SXM4-80GB",
        "100 % linked to a launch",
        "SYNTHETIC",
        "Timeline of forward 0",
        "Forward 0 (one of 3), 2.39 ms: the median by GPU busy time",
    ):
        assert words in seen


def test_a_step_is_called_by_its_own_number(make_report: MakeReport) -> None:
    report = make_report(steps(40, 20, 30))
    page = parsed(write_html([report], Rendering()))
    seen = text_of(page)
    assert "Timeline of step 6" in seen
    assert "Step 6 (one of 3), 900 us: the median by GPU busy time, 30 us" in seen
    [label] = [str(part.get("aria-label")) for part in page.iter("canvas")]
    assert label.startswith("Timeline of step 6: 1 thread of the host")


def test_a_step_whose_number_is_not_stored_has_none(make_report: MakeReport) -> None:
    report = make_report(steps(40, 20, 30))
    assert report.views is not None
    timeline = {key: part for key, part in report.views["timeline"].items() if key != "step"}
    before = replace(report, views={**report.views, "timeline": timeline})
    seen = text_of(parsed(write_html([before], Rendering())))
    assert "Timeline of one step" in seen
    assert "One of 3 steps, 900 us: the median by GPU busy time, 30 us" in seen


def test_of_two_steps_in_the_middle_the_lower_is_drawn_and_said(make_report: MakeReport) -> None:
    seen = text_of(parsed(write_html([make_report(steps(40, 20))], Rendering())))
    assert "Step 5 (one of 2), 900 us: the lower of the two in the middle by GPU busy time" in seen


def test_calls_without_gpu_work_are_in_the_legend(make_report: MakeReport) -> None:
    report = make_report([mark("attn_fwd", 0, 100), op("aten::mm", 5, 50), launch(1, 10)])
    legend = next(
        each for each in parsed(write_html([report], Rendering())).iter("ul")
        if each.get("class") == "legend"
    )  # fmt: skip
    assert "launch call" in text_of(legend)
    assert "GPU idle" not in text_of(legend)


def test_of_a_cpu_only_trace_it_says_that_there_is_no_gpu_work(samples: Path) -> None:
    seen = text_of(parsed(write_html([report_of(samples / "cpu-naive.json.gz")], Rendering())))
    assert "No GPU work was recorded" in seen
    assert "Timeline of forward 2" in seen
    assert "Occupancy, reported" not in seen


def test_a_result_stored_without_views_still_makes_a_page(samples: Path) -> None:
    _, report = load_and_check(
        str(samples / "synthetic-naive.json.gz"), None, load_rules(tests=False)
    )
    page = parsed(write_html([report], Rendering()))
    assert "stored without them" in text_of(page)
    assert data_of(page) == []


def test_several_traces_are_compared_first(samples: Path) -> None:
    names = ["synthetic-naive", "synthetic-sdpa-math", "synthetic-sdpa-flash"]
    page = parsed(
        write_html([report_of(samples / f"{name}.json.gz") for name in names], Rendering())
    )
    table = next(page.iter("table"))
    rows = [[text_of(cell).strip() for cell in row] for row in table.iter("tr")]
    assert [row[0] for row in rows] == ["trace", *names]
    assert "occupancy, reported -> recomputed" in rows[0]
    relative = rows[0].index("relative")
    assert [row[relative] for row in rows[1:]] == ["15.9x", "49.4x", "1x"]
    assert len(data_of(page)) == 3


def test_parts_of_a_bar_of_one_forward_say_no_time_of_the_whole_trace(samples: Path) -> None:
    names = ["synthetic-naive", "synthetic-sdpa-math"]
    page = parsed(
        write_html([report_of(samples / f"{name}.json.gz") for name in names], Rendering())
    )
    bars = [part for part in page.iter(f"{SVG}svg") if part.get("class") == "bar"]

    def words(bar: Element) -> list[str]:
        return [title.text or "" for title in bar.iter(f"{SVG}title")]

    assert all(re.fullmatch(r"[^:]+: <?\d+ %", part) for bar in bars[:2] for part in words(bar))
    assert words(bars[0])
    assert all(re.fullmatch(r"[^:]+: [\d.]+ [mu]s, .*%", part) for part in words(bars[2]))


def with_coverage(report: TraceReport, **changes: Any) -> TraceReport:
    return replace(report, coverage={**report.coverage, **changes})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"device": "NVIDIA H100"}, "devices differ"),
        ({"forward_is": "ProfilerStep"}, "a forward is not the same thing in all"),
    ],
)
def test_times_of_unrelated_traces_are_not_multiples_of_each_other(
    changes: dict[str, str], reason: str, samples: Path
) -> None:
    naive = report_of(samples / "synthetic-naive.json.gz")
    flash = with_coverage(report_of(samples / "synthetic-sdpa-flash.json.gz"), **changes)
    page = parsed(write_html([naive, flash], Rendering()))
    headings = [text_of(cell).strip() for cell in next(page.iter("tr"))]
    assert "GPU busy" in headings
    assert "relative" not in headings
    seen = text_of(page)
    assert f"relative times are left out: {reason}" in seen
    assert seen.index("careful: ") < seen.index("To one scale")


def test_whole_traces_are_not_multiples_of_each_other(samples: Path) -> None:
    reports = [
        with_coverage(report_of(samples / f"synthetic-{name}.json.gz"), forward_is="trace")
        for name in ("naive", "sdpa-flash")
    ]
    seen = text_of(parsed(write_html(reports, Rendering())))
    assert "relative times are left out: whole traces need not hold the same work" in seen


def test_what_matters_little_is_folded_below_why(samples: Path) -> None:
    report = report_of(samples / "synthetic-naive.json.gz")
    first, *_ = report.findings
    waiting = replace(first, code="IDLE101", name="gpu-idle", category="idle")
    grid = replace(first, code="OCC103", category="occupancy", fingerprint="made")
    gpu_time = {**report.coverage["gpu_time"], "idle_share": 0.9}
    bound = replace(with_coverage(report, gpu_time=gpu_time), findings=(grid, waiting))
    page = parsed(write_html([bound], Rendering()))
    cards = [card for card in page.iter("details") if "finding" in card.get("class", "")]
    assert ["IDLE101" in text_of(card) for card in cards] == [True, False]
    assert ["open" in card.attrib for card in cards] == [True, False]
    seen = text_of(page)
    little = "Of little weight while gpu-idle (IDLE101) holds:"
    assert seen.index("IDLE101 ") < seen.index(little) < seen.index("OCC103 ")


def test_kernels_of_one_short_name_are_told_apart(make_report: MakeReport) -> None:
    names = [f"void gemm<{kind}, 4>(int)" for kind in ("float", "double")]
    events = [mark("attn_fwd", 0, 100)]
    for number, name in enumerate(names, 1):
        events += [launch(number, 10 * number), kernel(number, 100 * number, 50, name)]
    page = parsed(write_html([make_report(events)], Rendering()))
    [table] = [part for part in page.iter("table") if "kernels" in part.get("class", "")]
    cells = [cell.get("data-value") for cell in table.iter("td") if cell.get("class") == "name"]
    assert sorted(map(str, cells)) == ["gemm (double)", "gemm (float)"]


@pytest.mark.parametrize(("count", "scrolls"), [(25, False), (26, True)])
def test_only_a_long_table_of_kernels_scrolls(
    count: int, scrolls: bool, make_report: MakeReport
) -> None:
    events = [mark("attn_fwd", 0, 1000)]
    for number in range(1, count + 1):
        events += [launch(number, 10 * number), kernel(number, 100 * number, 50, f"k{number}")]
    page = parsed(write_html([make_report(events)], Rendering()))
    [region] = [part for part in page.iter("div") if part.get("aria-label") == "Kernels"]
    assert ("tall" in region.get("class", "").split()) is scrolls


def test_known_findings_are_folded_below_the_others(samples: Path) -> None:
    report = report_of(samples / "synthetic-naive.json.gz")
    first, *others = report.findings
    known = replace(first, baseline="known", baseline_reason="until the <b>rewrite")
    news = [replace(finding, baseline="new") for finding in others]
    report = replace(report, findings=(known, *news), baseline="base.json")
    page = parsed(write_html([report], Rendering()))
    (fold,) = [each for each in page.iter("details") if each.get("class") == "known"]
    cards = [each for each in page.iter("details") if "finding" in str(each.get("class"))]
    folded = [each for each in fold.iter("details") if "finding" in str(each.get("class"))]
    assert fold.get("open") is None
    assert len(folded) == 1
    assert len(cards) > 1
    assert cards[-1] is folded[0]
    assert "1 known finding, in the baseline base.json" in text_of(fold)
    assert f"{first.code} " in text_of(folded[0])
    assert "accepted because: until the <b>rewrite" in text_of(folded[0])
    assert folded[0].get("open") is None


@pytest.mark.parametrize(
    ("code", "known", "words"),
    [
        ("COPY101", True, "and 120 more known findings"),
        ("COPY101", False, "and 120 more findings"),
        ("GUESS1", False, "and 120 more findings"),
    ],
)
def test_findings_beyond_the_most_are_counted(
    code: str, known: bool, words: str, samples: Path
) -> None:
    report = report_of(samples / "synthetic-naive.json.gz")
    many = replace(report.findings[0], code=code, baseline="known" if known else None)
    report = replace(report, findings=(many,) * 320, baseline="base.json" if known else None)
    page = parsed(write_html([report], Rendering()))
    cards = [each for each in page.iter("details") if "finding" in str(each.get("class"))]
    assert len(cards) == 200
    assert words in [
        text_of(each).strip() for each in page.iter("p") if each.get("class") == "note"
    ]
    (data,) = data_of(page)
    (marked,) = data["findings"]
    assert set(marked["numbers"]) == set(range(200))


def test_the_timeline_marks_findings_in_the_order_of_the_cards(samples: Path) -> None:
    report = report_of(samples / "synthetic-naive.json.gz")
    first, *others = [finding for finding in report.findings if finding.places]
    benign = replace(first, code="FIRST101", state="benign", because="of nothing")
    report = replace(report, findings=(benign, *others))
    page = parsed(write_html([report], Rendering()))
    codes = [text_of(part).strip() for part in page.iter("span") if part.get("class") == "code"]
    (data,) = data_of(page)
    marked = [(number, found["code"]) for found in data["findings"] for number in found["numbers"]]
    assert marked == sorted(marked)
    assert {number: codes[number] for number, _ in marked} == dict(marked)
    assert marked[0][1] != "FIRST101"


def test_a_finding_says_how_many_of_its_places_are_drawn(samples: Path) -> None:
    report = report_of(samples / "synthetic-naive.json.gz")
    first = report.findings[0]
    assert (first.places_total, len(first.places)) == (3, 3)

    def where(**changes: Any) -> str:
        found = replace(report, findings=(replace(first, **changes),))
        page = parsed(write_html([found], Rendering()))
        return next(text_of(each) for each in page.iter("p") if each.get("class") == "where")

    assert where().startswith("3 places, 1 of them in the timeline ")
    elsewhere = tuple(replace(place, start_us=1e9) for place in first.places)
    assert where(places=elsewhere).startswith("3 places, none in the timeline ")
    many = where(places_total=500, source="model.py:3")
    assert many.startswith(
        "500 places, 3 of them listed, 1 of them in the timeline, most time at model.py:3 "
    )
    whole = replace(report, findings=(replace(first, places=(), places_total=1),))
    seen = text_of(parsed(write_html([whole], Rendering())))
    assert "1 place" not in seen
    assert "Not every place" not in seen


def test_it_says_what_to_run_next_and_sets_commands_as_code(samples: Path) -> None:
    report = report_of(samples / "synthetic-naive.json.gz")
    first, *others = report.findings
    fix = "Look at `analyze gaps`, not at `rm x` or a`b."
    odd = replace(report, trace="a b.json", findings=(replace(first, fix=fix), *others))
    page = write_html([odd], Rendering())
    assert "Next: <code>analyze ops &#39;a b.json&#39;</code> shows which ops copy." in page
    assert "Look at <code>analyze gaps</code>, not at `rm x` or a`b." in page


def test_places_that_are_not_marked_are_counted_by_rule(samples: Path) -> None:
    report = report_of(samples / "synthetic-naive.json.gz")
    many = [
        replace(report.findings[0], code=f"TEST10{number}", places_total=1000 + number)
        for number in range(5)
    ]
    page = write_html([replace(report, findings=tuple(many))], Rendering())
    kept = len(many[0].places)
    assert (
        f"Not every place of a finding is marked: {kept} of the 1,000 of TEST100, {kept} of the"
        f" 1,001 of TEST101, {kept} of the 1,002 of TEST102, and 2 more so."
    ) in page


def test_traces_that_could_not_be_read_are_named_first(samples: Path) -> None:
    report = report_of(samples / "synthetic-naive.json.gz")
    entry = Unread("a.json", "a.json: not a trace <b>")
    seen = text_of(parsed(write_html([replace(report, unread=(entry,))], Rendering())))
    assert seen.index("Not checked: 1 trace") < seen.index("a.json: not a trace <b>")
    assert seen.index("a.json: not a trace <b>") < seen.index("What was recorded")


def test_a_page_of_many_traces_is_bounded_and_draws_the_gravest(samples: Path) -> None:
    naive = report_of(samples / "synthetic-naive.json.gz")
    assert naive.views is not None
    timeline = naive.views["timeline"]
    filled = [f"{'made up ' * 100}{number}" for number in range(2500)]
    large = {**naive.views, "timeline": {**timeline, "texts": [*timeline["texts"], *filled]}}
    quiet = replace(naive, findings=(), views=large)
    reports = [replace(quiet, trace=f"{number}.json") for number in range(7)]
    reports.append(replace(naive, views=large, trace="grave.json"))
    text = write_html(reports, Rendering())
    assert len(text.encode()) < 20_000_000
    seen = text_of(parsed(text))
    assert "Timeline and kernels of 4 of 8 traces are left out" in seen
    assert seen.count("Timeline and kernels are left out here") == 4
    assert seen.count("GPU time by family") == 8
    grave = text.index("grave.json</dd>")
    assert 'type="application/json"' in text[grave:]


def test_the_timeline_data_names_findings_in_its_window(samples: Path) -> None:
    page = parsed(write_html([report_of(samples / "synthetic-naive.json.gz")], Rendering()))
    (data,) = data_of(page)
    copies = next(found for found in data["findings"] if found["code"] == "COPY101")
    slices = data["streams"][0]["slices"]
    starts = [
        start
        for start, kind, own in zip(slices["start_us"], slices["kind"], slices["own"], strict=True)
        if kind == "memcpy" and own
    ]
    assert [place[0] for place in copies["places"]] == pytest.approx(starts)


def test_every_family_is_drawn_as_what_it_is() -> None:
    unknown = len(GROUPS) - 1
    assert [family for family in FAMILIES if group_of("kernel", family) == unknown] == []
    assert group_of("kernel", None) == unknown
    assert GROUPS[group_of("memcpy", None)].key == GROUPS[group_of("memset", None)].key == "copy"
    letters = [group.letter for group in GROUPS]
    assert len(letters) == len(set(letters))


def test_a_group_has_the_same_pattern_in_charts_and_timeline(samples: Path) -> None:
    page = parsed(write_html([report_of(samples / "synthetic-naive.json.gz")], Rendering()))
    patterned = {group.key for group in GROUPS if group.pattern}
    style = next(page.iter("style")).text or ""
    assert "copy" in patterned
    defined = {str(part.get("id")) for part in page.iter(f"{SVG}pattern")}
    assert defined == {f"p-{key}" for key in (*patterned, "sync", "idle")}
    assert {key for key in patterned if f".ink-{key} {{" in style} == patterned
    (swatch,) = [part for part in page.iter(f"{SVG}g") if part.get("id") == "s-copy"]
    assert "url(#p-copy)" in [part.get("fill") for part in swatch]
    (data,) = data_of(page)
    assert [group["pattern"] for group in data["groups"]] == [group.pattern for group in GROUPS]


def test_a_trace_of_100_000_kernels_is_under_3_mb(make_report: MakeReport) -> None:
    text = write_html([make_report(many(100_000, names=1000))], Rendering())
    assert len(text.encode()) < 3_000_000
    seen = text_of(parsed(text))
    assert "100,000 GPU ops as" in seen
    assert "100,000 kernels of 1,000 names" in seen
    assert "500 other names" in seen


def test_the_command_writes_it_and_writes_it_again_from_the_result(
    run_analyze: RunAnalyze, samples: Path, tmp_path: Path
) -> None:
    trace = samples / "synthetic-naive.json.gz"
    html, result, again = (tmp_path / name for name in ("a.html", "result.json", "b.htm"))
    done = run_analyze(trace, "-o", html, "--also", result)
    assert (done.returncode, done.stdout) == (1, "")
    named = f"analyze: wrote {html}; open it in a browser\nanalyze: wrote {result}\n"
    assert done.stderr == named, "every file, where one of them is for people"
    alone = run_analyze(trace, "-o", tmp_path / "b.json")
    assert alone.stderr == "", "files for programs alone without a word"
    assert html.read_text().startswith("<!doctype html>")
    done = run_analyze("--from", result, "-o", again)
    assert (done.returncode, done.stdout) == (1, "")
    assert again.read_text() == html.read_text()


def test_a_result_with_other_views_is_one_line_not_a_traceback(
    run_analyze: RunAnalyze, samples: Path, tmp_path: Path
) -> None:
    result, html = tmp_path / "result.json", tmp_path / "a.html"
    run_analyze(samples / "synthetic-naive.json.gz", "-o", result)
    stored = json.loads(result.read_text())
    stored["views"]["timeline"]["streams"] = "<script>"
    result.write_text(json.dumps(stored))
    done = run_analyze("--from", result, "-o", html)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "analyze the trace again" in done.stderr
    assert not html.exists()


def test_guesses_that_did_not_hold_come_first(
    run_analyze: RunAnalyze, samples: Path, tmp_path: Path
) -> None:
    guesses, html = tmp_path / "guess.yaml", tmp_path / "a.html"
    guesses.write_text("version: 1\ngpu_ops: 5\ncopies: none\n")
    run_analyze(samples / "synthetic-naive.json.gz", "--expect", guesses, "-o", html)
    seen = text_of(parsed(html.read_text()))
    assert seen.index("Not as guessed") < seen.index("GUESS001") < seen.index("COPY101 ")


def test_captures_without_a_trace_are_named(samples: Path) -> None:
    entry = Uncaptured("<b>flex", "skipped", "needs a GPU")
    report = replace(report_of(samples / "synthetic-naive.json.gz"), uncaptured=(entry,))
    page = parsed(write_html([report], Rendering()))
    assert "<b>flex: skipped: needs a GPU" in text_of(page)


def test_occupancy_that_depends_on_the_launch_shows_its_range(real_traces: Path) -> None:
    (path,) = (real_traces / "kin-r50-w0-v19").glob("*.json*")
    page = parsed(write_html([report_of(path)], Rendering()))
    assert text_of(next(page.iter("h1"))).strip() == "kin-r50-w0-v19"
    tables = {str(table.get("class")): table for table in page.iter("table")}
    rows = map(text_of, tables["occupancy"].iter("tr"))
    add = next(row for row in rows if "AddFunctor" in row)
    assert "recomputed <1 % to 100 %, depending on the launch" in add
    assert "92.3 %" in add
    details = text_of(tables["sortable kernels"])
    assert "the commonest of 23 configurations" in details


def test_pages_of_real_traces_are_valid(real_traces: Path) -> None:
    for name in ("tl-h100-bert", "tl-vllm-dec", "hta-amd-mi250", "gen-names", "tl-mi210-gpuonly"):
        (path,) = (real_traces / name).glob("*.json*")
        text = write_html([report_of(path)], Rendering())
        parsed(text)
        assert len(text) < 1_000_000

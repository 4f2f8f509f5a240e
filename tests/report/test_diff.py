"""What changed between two traces, and what only seems to have."""

import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from analyze.diff.gates import compile_gate
from analyze.engine.loading import load_rules
from analyze.engine.run import run_rules
from analyze.report.diff import SECTIONS, Side, diff, is_changed
from analyze.report.diff_markdown import diff_markdown
from analyze.report.diff_text import render_diff
from analyze.tables.build import load_trace
from tests.conftest import MakeTrace
from tests.report.test_golden_text import compare
from tests.tables.test_attribution import kernel, launch, mark

RULES = load_rules(tests=False)
REAL_PAIR = ("kin-r50-w0-v181", "kin-r50-w0-v19")

Data = dict[str, Any]


def side(path: Path) -> Side:
    trace = load_trace(path)
    return trace, run_rules(trace, RULES)


@pytest.fixture(scope="module")
def sample(samples: Path) -> Callable[[str], Side]:
    loaded: dict[str, Side] = {}

    def load(name: str) -> Side:
        if name not in loaded:
            loaded[name] = side(samples / f"{name}.json.gz")
        return loaded[name]

    return load


def edited(samples: Path, tmp_path: Path, name: str, edit: Callable[[Data], Data | None]) -> Side:
    """A sample with its events edited; those for which the edit is None are gone."""
    content = json.loads(gzip.decompress((samples / f"{name}.json.gz").read_bytes()))
    events = [edit(event) for event in content["traceEvents"]]
    content["traceEvents"] = [event for event in events if event is not None]
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(content))
    return side(path)


def summary(data: Data) -> dict[str, Data]:
    return {row["name"]: row for row in data["summary"]}


@pytest.mark.parametrize(
    "name", ["synthetic-naive", "synthetic-sdpa-math", "cpu-sdpa-math", "cpu-decode-cat"]
)
def test_nothing_changed_from_a_trace_to_itself(sample: Callable[[str], Side], name: str) -> None:
    data = diff(sample(name), sample(name))
    assert not data["changed"]
    assert not data["warnings"]
    assert {row["state"] for row in data["summary"]} <= {"unchanged", None}
    assert not any(is_changed(row) for section in SECTIONS for row in data[section])
    text = render_diff(data)
    assert "Nothing changed" in text
    assert "slower" not in text


def test_in_place_masking_is_one_copy_per_forward_less(sample: Callable[[str], Side]) -> None:
    data = diff(sample("synthetic-naive"), sample("synthetic-naive-inplace"))
    (copy,) = data["copies"]
    assert copy["state"] == "gone"
    assert copy["after"] is None
    assert copy["before"]["count"] == 1
    assert copy["before"]["names"] == ["Memcpy DtoD (Device -> Device)"]
    assert copy["before"]["op_chains"] == ["aten::masked_fill > aten::clone > aten::copy_"]
    assert not any(is_changed(row) for row in data["kernels"])
    assert [finding["code"] for finding in data["findings"]["gone"]] == ["COPY101"]
    rows = summary(data)
    assert (rows["gpu_ops"]["before"], rows["gpu_ops"]["after"]) == (6, 5)
    assert rows["gpu_time"]["state"] == "faster"
    assert rows["gpu_time"]["change_share"] == pytest.approx(-0.159, abs=0.001)
    assert "gone: 1 Memcpy DtoD (Device -> Device) per forward, 365 us" in render_diff(data)


@pytest.mark.parametrize("after", ["synthetic-naive-inplace", "synthetic-sdpa-math"])
def test_the_text_word_for_word(sample: Callable[[str], Side], samples: Path, after: str) -> None:
    data = diff(sample("synthetic-naive"), sample(after))
    for key in ("before", "after"):
        data[key]["trace"] = Path(data[key]["trace"]).name
    compare(render_diff(data), f"{after}.diff", samples)


def test_backwards_is_the_opposite(sample: Callable[[str], Side]) -> None:
    there = diff(sample("synthetic-naive"), sample("synthetic-sdpa-math"))
    back = diff(sample("synthetic-sdpa-math"), sample("synthetic-naive"))
    opposite = {"new": "gone", "gone": "new", "slower": "faster", "faster": "slower",
                "more": "fewer", "fewer": "more", "longer": "shorter", "shorter": "longer",
                "unchanged": "unchanged", None: None}  # fmt: skip
    for section in ("summary", *SECTIONS):
        states = Counter(opposite[row["state"]] for row in there[section])
        assert states == Counter(row["state"] for row in back[section]), section


def test_a_changed_tile_is_the_same_kernel(
    samples: Path, tmp_path: Path, sample: Callable[[str], Side]
) -> None:
    def other_tile(event: Data) -> Data:
        return {**event, "name": event["name"].replace("128x64", "256x64")}

    data = diff(sample("synthetic-naive"), edited(samples, tmp_path, "synthetic-naive", other_tile))
    changed = [row for row in data["kernels"] if is_changed(row)]
    assert [row["kernel"] for row in changed] == ["other tile"]
    assert changed[0]["matched_by"] == "name"
    assert "other tile, in aten::matmul > aten::bmm" in " ".join(render_diff(data).split())


def test_another_kernel_of_the_same_op_replaces_it(
    samples: Path, tmp_path: Path, sample: Callable[[str], Side]
) -> None:
    def other_gemm(event: Data) -> Data:
        is_gemm = event.get("cat") == "kernel" and "gemm" in event["name"]
        return {**event, "name": "ampere_sgemm_128x64_nn"} if is_gemm else event

    data = diff(sample("synthetic-naive"), edited(samples, tmp_path, "synthetic-naive", other_gemm))
    changed = [row for row in data["kernels"] if is_changed(row)]
    assert [row["kernel"] for row in changed] == ["other kernel"]
    assert changed[0]["after"]["names"] == ["ampere_sgemm_128x64_nn"]
    assert changed[0]["before"]["count"] == changed[0]["after"]["count"] == 2


def test_fewer_steps_compare_by_medians(
    samples: Path, tmp_path: Path, sample: Callable[[str], Side]
) -> None:
    def without_last_step(event: Data) -> Data | None:
        lasts = event.get("name") in ("ProfilerStep#4", "attn_fwd") and event["ts"] > start_of_last
        return None if lasts else event

    content = json.loads(gzip.decompress((samples / "synthetic-naive.json.gz").read_bytes()))
    start_of_last = (
        max(
            event["ts"] for event in content["traceEvents"] if event.get("cat") == "user_annotation"
        )
        - 100
    )
    shorter = edited(samples, tmp_path, "synthetic-naive", without_last_step)
    data = diff(sample("synthetic-naive"), shorter)
    assert (data["before"]["forwards"], data["after"]["forwards"]) == (3, 2)
    states = {name: row["state"] for name, row in summary(data).items()}
    assert states["gpu_time"] == states["gpu_ops"] == states["copies"] == "unchanged"
    assert not any(is_changed(row) for row in data["kernels"])
    assert "of the GPU time was launched in no forward" in " ".join(data["warnings"])


def test_a_change_inside_the_spread_is_none(
    samples: Path, tmp_path: Path, sample: Callable[[str], Side]
) -> None:
    def stretched(factor: float) -> Callable[[Data], Data]:
        def stretch(event: Data) -> Data:
            is_kernel = event.get("cat") == "kernel" and "softmax" in event["name"]
            return {**event, "dur": event["dur"] * factor} if is_kernel else event

        return stretch

    def softmax(factor: float) -> Data:
        after = edited(samples, tmp_path, "synthetic-naive", stretched(factor))
        rows = diff(sample("synthetic-naive"), after)["kernels"]
        return next(row for row in rows if "softmax" in row["before"]["names"][0])

    row = softmax(1.012)
    spreads = row["before"]["spread_us"] ** 2 + row["after"]["spread_us"] ** 2
    assert abs(row["change_us"]) < 2 * spreads**0.5
    assert row["state"] == "unchanged"
    assert softmax(1.1)["state"] == "slower"
    assert softmax(0.9)["state"] == "faster"


def test_differences_that_forbid_a_comparison_are_said(sample: Callable[[str], Side]) -> None:
    data = diff(sample("synthetic-naive"), sample("cpu-naive"))
    said = " ".join(data["warnings"])
    assert "only BEFORE recorded GPU work" in said
    assert "inputs of other shapes" in said
    assert summary(data)["gpu_time"]["after"] is None
    assert "no GPU work was recorded" in summary(data)["gpu_time"]["unknown_after"]
    assert "careful" in render_diff(data)


def test_a_rule_that_one_trace_cannot_answer_is_no_finding_gone(
    sample: Callable[[str], Side],
) -> None:
    data = diff(sample("synthetic-naive"), sample("cpu-sdpa-flash"))
    assert "COPY101" in {finding["code"] for finding in data["findings"]["unanswered"]}
    assert "COPY101" not in {finding["code"] for finding in data["findings"]["gone"]}


@pytest.mark.parametrize(
    ("condition", "state"),
    [
        ("gpu_time > 1.05 * before", "passed"),
        ("gpu_time < 0.95 * before", "failed"),
        ("copies < 1 and before.copies == 1", "failed"),
        ("gpu_time - before.gpu_time > ms(1)", "passed"),
        ("latency > before", "unanswered"),
        ("latency > before.latency or copies == 0", "failed"),
        ("peak_memory > GiB(1)", "unanswered"),
        ("syncs / before > 1.1", "unanswered"),
        ("findings > before", "passed"),
    ],
)
def test_gates(sample: Callable[[str], Side], condition: str, state: str) -> None:
    gates = [compile_gate(condition)]
    data = diff(sample("synthetic-naive"), sample("synthetic-naive-inplace"), gates)
    (gate,) = data["gates"]
    assert gate["state"] == state
    assert state in render_diff(data)
    if "latency" in condition:
        assert gate["unknown"] == ["latency", "before.latency"]


def test_lists_are_bounded_and_say_what_they_leave_out(sample: Callable[[str], Side]) -> None:
    data = diff(sample("synthetic-naive"), sample("synthetic-sdpa-math"))
    changed = sum(is_changed(row) for row in data["kernels"])
    text = render_diff(data, limit=2)
    assert f"and {changed - 2} more changed" in text
    assert "| gone |" not in text
    assert f"and {changed - 2} more changed" in diff_markdown(data, limit=2)


def test_markdown_tables_are_whole(sample: Callable[[str], Side]) -> None:
    data = diff(sample("synthetic-naive"), sample("synthetic-sdpa-math"))
    tables = [line for line in diff_markdown(data, limit=8).splitlines() if line.startswith("|")]
    assert all(line.endswith(" |") for line in tables)
    assert any("aten::_safe_softmax" in line for line in tables)


def test_kernels_of_real_traces_add_up(real_traces: Path) -> None:
    """Counts and times of all rows, per forward, against a count over the raw tables."""
    paths = [next((real_traces / name).glob("*.json*")) for name in REAL_PAIR]
    sides = [side(path) for path in paths]
    data = diff(sides[0], sides[1])
    for key, (trace, _) in zip(("before", "after"), sides, strict=True):
        kernels = trace.table("kernels").drop_nulls("forward")
        per_forward = Counter(kernels["forward"].to_list())
        assert summary(data)["kernels"][key] == median(per_forward.values())
        rows = [row[key] for row in data["kernels"] if row[key]]
        names = set(kernels["short_name"].to_list())
        assert sum(row["count"] for row in rows) == pytest.approx(
            median(per_forward.values()), rel=0.02
        )
        assert {name for row in rows for name in row["names"]} <= names
    relu = next(row for row in data["kernels"] if row["state"] == "new")
    assert relu["after"]["names"] == ["clamp_min_scalar_kernel_impl"]
    named = sides[1][0].table("kernels").filter(short_name="clamp_min_scalar_kernel_impl")
    times: dict[int, float] = {}
    for forward, dur_us in named.select("forward", "dur_us").iter_rows():
        times[forward] = times.get(forward, 0.0) + dur_us
    assert relu["change_us"] == pytest.approx(median(times.values()), abs=0.001)


def test_rare_work_is_never_shown_as_none(
    samples: Path, tmp_path: Path, sample: Callable[[str], Side]
) -> None:
    seen: Counter[str] = Counter()

    def odd_once(event: Data) -> Data | None:
        """Keep the copy of one forward only, and replace one softmax."""
        name = event.get("name", "")
        seen[name] += 1
        if event.get("cat") == "gpu_memcpy" and seen[name] > 1:
            return None
        is_first = event.get("cat") == "kernel" and "softmax" in name and seen[name] == 1
        return {**event, "name": "mystery", "dur": 25.0} if is_first else event

    rare = edited(samples, tmp_path, "synthetic-naive", odd_once)
    gone = diff(rare, sample("synthetic-naive-inplace"))
    text = " ".join(render_diff(gone).split())
    assert "gone: Memcpy DtoD (Device -> Device) in 1 of 3 forwards, 370 us, in" in text
    assert "aten::masked_fill, with 6 op chains inside, in 1 of 3 forwards, 370 us" in text
    new = diff(sample("synthetic-naive"), rare)
    text = " ".join(render_diff(new).split())
    (row,) = [row for row in new["kernels"] if row["state"] == "new"]
    assert (row["after"]["in_forwards"], row["after"]["time_where_it_occurs_us"]) == (1, 25)
    assert "new - - - - mystery, in aten::softmax > aten::_softmax, in 1 of 3 forwards, 25" in text
    assert " 0 us" not in text


def one_forward(make_trace: MakeTrace, dur: float, second: float = 200.0) -> Side:
    """One forward with two kernels; the second starts where it is told."""
    trace = make_trace([
        mark("attn_fwd", 0, 100), launch(1, 5), launch(2, 20),
        kernel(1, 50, dur), kernel(2, second, 100),
    ])  # fmt: skip
    return trace, run_rules(trace, RULES)


def test_without_noise_no_change_is_within_it(make_trace: MakeTrace) -> None:
    before, same = one_forward(make_trace, 100), one_forward(make_trace, 100)
    equal = render_diff(diff(before, same)).splitlines()
    assert [line for line in equal if "hanged" in line and "un" not in line] == ["Nothing changed"]
    text = render_diff(diff(before, one_forward(make_trace, 100.5)))
    assert "within noise" not in text
    assert "less than 1 %  noise unknown" in text
    assert "Nothing changed by 1 % or more: each trace has one forward" in text.replace("\n", " ")
    assert "<1" not in text


def test_almost_all_is_not_all(make_trace: MakeTrace) -> None:
    text = render_diff(diff(one_forward(make_trace, 100, 99_000), one_forward(make_trace, 100)))
    assert "more than 99 %  shorter" in text
    assert "->" not in text.partition("per forward")[2].partition("\n\n")[0]


def test_less_busy_but_more_idle_is_told(make_trace: MakeTrace) -> None:
    rows = summary(diff(one_forward(make_trace, 100), one_forward(make_trace, 50, 400)))
    seen = {name: (rows[name]["before"], rows[name]["after"], rows[name]["state"])
            for name in ("gpu_time", "gpu_idle", "gpu_span")}  # fmt: skip
    assert seen == {
        "gpu_time": (200, 150, "faster"),
        "gpu_idle": (50, 300, "longer"),
        "gpu_span": (250, 450, "slower"),
    }


def test_findings_are_bounded_too(sample: Callable[[str], Side]) -> None:
    data = diff(sample("synthetic-naive"), sample("synthetic-sdpa-math"))
    new = len(data["findings"]["new"])
    assert new > 1
    assert f"and {new - 1} more" in render_diff(data, limit=1).partition("\nFindings\n")[2]

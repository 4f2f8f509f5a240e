"""Rules that are judged per attention call."""

from pathlib import Path
from typing import Any

import pytest

from analyze.engine.data import TraceTables
from analyze.engine.model import Expected, RuleTest
from analyze.engine.run import RuleResult, run_rule
from analyze.engine.written_tables import InvalidTestError, write_tables
from analyze.tables.build import Trace, load_trace
from tests.conftest import MakeTrace
from tests.engine.conftest import CheckRows, LoadText
from tests.tables.test_attribution import kernel, launch, op

SDPA = "aten::scaled_dot_product_attention"

KERNELS = """\
from: kernels
per: call
measure: {n: count(), us: sum(dur_us), share: us / call.gpu_busy_us, backend: first(call.backend)}
expect: n == 1
savings: {us: us}
message: "{n:int} kernels per {unit}, {share:pct} of its GPU busy time"
"""

CALLS = """\
from: calls
measure: {busy: mean(gpu_busy_us), same: mean(call.gpu_busy_us)}
expect: busy < 0
message: "{unit}: {busy:us}"
"""


def calls(*busy: float) -> list[dict[str, Any]]:
    return [{"index": index, "gpu_busy_us": value} for index, value in enumerate(busy)]


def on(trace: Trace, text: str, load_text: LoadText) -> RuleResult:
    return run_rule(load_text(text), TraceTables(trace))


def sample(samples: Path, name: str) -> Trace:
    return load_trace(samples / f"{name}.json.gz")


def test_a_call_without_rows_counts_as_nothing(check: CheckRows) -> None:
    found = check(KERNELS, [{"dur_us": 5.0, "call": 0}], calls=calls(10.0, 20.0))
    finding = found.findings[0]
    assert (finding.state, finding.per) == ("mismatch", "call")
    assert (finding.units_mismatching, finding.units_total, finding.worst_unit) == (1, 2, 1)
    assert finding.measures["n"] == 0


def test_rows_outside_every_call_are_left_out(check: CheckRows) -> None:
    rows = [{"dur_us": 5.0, "call": 0}, {"dur_us": 7.0}, {"dur_us": 7.0, "forward": 0}]
    assert check(KERNELS, rows, calls=calls(10.0)).state == "pass"


def test_columns_of_the_call(check: CheckRows) -> None:
    rule = KERNELS.replace("n == 1", "n == 0")
    units = [{"index": 0, "gpu_busy_us": 10.0, "backend": "flash"}]
    finding = check(rule, [{"dur_us": 5.0, "call": 0}], calls=units).findings[0]
    assert finding.measures == {"n": 1, "us": 5.0, "share": 0.5, "backend": "flash"}
    assert finding.message == "1 kernels per call, 50 % of its GPU busy time"
    assert finding.savings_share == 0.5


def test_calls_are_judged_per_call(check: CheckRows) -> None:
    found = check(CALLS, [{"index": 0, "gpu_busy_us": 4.0}, {"index": 1, "gpu_busy_us": 6.0}])
    finding = found.findings[0]
    assert (finding.per, finding.units_total) == ("call", 2)
    assert finding.measures == {"busy": 5.0, "same": 5.0}


def test_calls_are_judged_per_forward(check: CheckRows) -> None:
    rows = [{"index": index, "gpu_busy_us": 10.0 * index, "forward": 0} for index in range(3)]
    rule = CALLS.replace("call.gpu_busy_us", "gpu_busy_us") + "per: forward\n"
    finding = check(rule, rows, [{"index": 0}]).findings[0]
    assert (finding.per, finding.measures["busy"]) == ("forward", 10.0)


def test_a_row_of_an_unwritten_call_is_a_mistake(load_text: LoadText) -> None:
    rows = [{"dur_us": 5.0, "call": 3}]
    test = RuleTest(name="x", rows=rows, calls=calls(1.0), expect=Expected())
    with pytest.raises(InvalidTestError, match="call 3, which is not among 'calls'"):
        write_tables(load_text(KERNELS).compile(), test)


def test_only_rules_per_call_know_the_call_of_a_row(load_text: LoadText) -> None:
    rule = load_text("from: kernels\nmeasure: {n: count()}")
    test = RuleTest(name="x", rows=[{"call": 0}], expect=Expected())
    with pytest.raises(InvalidTestError, match="unknown column 'call'"):
        write_tables(rule.compile(), test)


def test_on_a_trace(make_trace: MakeTrace, load_text: LoadText) -> None:
    trace = make_trace([
        op(SDPA, 0, 50), launch(1, 10), launch(2, 20), op("aten::add", 60, 10), launch(3, 62),
        op(SDPA, 100, 50),
        kernel(1, 200, 10), kernel(2, 205, 10), kernel(3, 230, 5),
    ])  # fmt: skip
    finding = on(trace, KERNELS, load_text).findings[0]
    assert (finding.units_mismatching, finding.units_total) == (2, 2)
    assert finding.measures["n"] == 1
    assert finding.measures["us"] == 10.0


@pytest.mark.parametrize("table", ["gpu_ops", "kernels", "api_calls", "launches"])
def test_tables_of_a_trace(samples: Path, load_text: LoadText, table: str) -> None:
    rule = f"from: {table}\nper: call\nmeasure: {{n: count()}}\nexpect: n < 0\n"
    finding = on(sample(samples, "synthetic-sdpa-math"), rule, load_text).findings[0]
    assert finding.units_total == 3
    assert finding.measures["n"] == 20


def test_the_mean_of_a_sample(samples: Path, load_text: LoadText) -> None:
    rule = CALLS + "per: trace\n"
    rule = rule.replace(", same: mean(call.gpu_busy_us)", "")
    finding = on(sample(samples, "synthetic-sdpa-flash"), rule, load_text).findings[0]
    assert finding.measures["busy"] == pytest.approx((145.478 + 146.359 + 148.563) / 3)


@pytest.mark.parametrize("rule", [KERNELS, CALLS])
def test_without_a_call_nothing_is_judged(samples: Path, load_text: LoadText, rule: str) -> None:
    found = on(sample(samples, "synthetic-naive"), rule, load_text)
    assert found.state == "not_applicable"
    assert str(found.not_applicable).startswith("no attention call was recorded")


def test_what_a_call_does_not_tell_is_a_reason(samples: Path, load_text: LoadText) -> None:
    rule = "from: calls\nmeasure: {speed: min(tflops)}\nexpect: speed > 1\n"
    assert on(sample(samples, "synthetic-sdpa-math"), rule, load_text).state == "pass"
    found = on(sample(samples, "cpu-sdpa-math"), rule, load_text)
    assert (found.state, found.not_applicable) == (
        "not_applicable",
        "no GPU work was recorded: capture with ProfilerActivity.CUDA on a GPU",
    )

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analyze.engine.data import TraceTables
from analyze.engine.rule import Rule
from analyze.engine.run import RuleResult, run_rule
from analyze.tables.build import load_trace
from analyze.tables.catalogue import Need
from tests.conftest import MakeTrace
from tests.tables.test_attribution import repeated_steps

LoadText = Callable[[str], Rule]
Check = Callable[..., RuleResult]

RULE = """\
from: kernels
where: {WHERE}
measure: {n: count(), reported: median(occupancy_reported)}
expect: n == 0
message: "{n} {reported}"
"""


def row(**more: Any) -> dict[str, Any]:
    return {"family": "gemm", "forward": 0, **more}


def reason(check: Check, text: str, rows: list[dict[str, Any]], **more: Any) -> str | None:
    return check(text, rows, [{"index": 0}], **more).not_applicable


def test_a_column_that_decides_must_be_known_somewhere(check: Check) -> None:
    text = RULE.replace("WHERE", "root_dtype: bf16")
    assert reason(check, text, [row()]) == Need.SHAPES.value
    assert reason(check, text, [row(), row(root_dtype="fp32")]) is None
    assert reason(check, text, []) is None


def test_a_recorded_input_that_is_nowhere_known_is_named(check: Check) -> None:
    text = RULE.replace("WHERE", "root_dtype: bf16")
    why = reason(check, text, [row()], facts={"has_shapes": True})
    assert why == "root_dtype is not known for any row of kernels"


def test_a_column_that_is_only_shown_does_not_block(check: Check) -> None:
    found = check(RULE.replace("WHERE", "family: gemm"), [row()], [{"index": 0}])
    assert found.state == "mismatch"
    assert found.findings[0].message == "1 unknown"


def test_a_measure_behind_the_expectation_decides(check: Check) -> None:
    text = RULE.replace("WHERE", "family: gemm").replace("n == 0", "n == 0 or reported > 50")
    assert reason(check, text, [row()]) == Need.OCCUPANCY.value


def test_a_measure_behind_the_severity_decides(check: Check) -> None:
    ladder = "severity: [{level: error, when: reported > 3}, {level: info}]\n"
    text = RULE.replace("WHERE", "family: gemm") + ladder
    assert reason(check, text, [row()]) == Need.OCCUPANCY.value


@pytest.mark.parametrize(
    "where",
    [
        "any: [{root_dtype: bf16}, {root_dtype: {exists: false}}]",
        "expr: \"coalesce(root_dtype, 'bf16') == 'bf16'\"",
        "expr: is_null(root_dtype)",
    ],
)
def test_asking_whether_a_column_is_known_is_no_need(check: Check, where: str) -> None:
    text = RULE.replace("WHERE", where.replace("{root_dtype: bf16}, ", ""))
    assert check(text, [row()], [{"index": 0}]).state == "mismatch"


def test_a_fact_of_the_trace_that_decides_must_be_known(check: Check) -> None:
    text = RULE.replace("WHERE", "expr: trace.compute_capability >= 8")
    assert reason(check, text, [row()]) == Need.DEVICE_PROPERTIES.value
    assert reason(check, text, [row()], facts={"compute_capability": 9.0}) is None
    text = RULE.replace("WHERE", "expr: trace.vendor == 'amd'")
    assert reason(check, text, [row()]) == "trace.vendor is not known"
    text = RULE.replace("WHERE", "expr: trace.variant == 'math'")
    assert reason(check, text, [row()]) == Need.CAPTURE.value


def test_preconditions_on_the_trace(check: Check) -> None:
    text = RULE.replace("WHERE", "family: gemm") + (
        "requires: [{that: trace.vendor == 'nvidia', else: only on NVIDIA devices}]\n"
    )
    assert reason(check, text, [row()], facts={"vendor": "nvidia"}) is None
    assert reason(check, text, [row()], facts={"vendor": "amd"}) == "only on NVIDIA devices"
    assert reason(check, text, [row()]) == "trace.vendor is not known"


def on_sample(load_text: LoadText, samples: Path, name: str, text: str) -> RuleResult:
    tables = TraceTables(load_trace(samples / f"{name}.json.gz"))
    return run_rule(load_text(text), tables)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("from: kernels\nmeasure: {n: count()}\nexpect: n == 0", Need.GPU.value),
        ("from: syncs\nmeasure: {n: count()}\nexpect: n == 0", Need.GPU.value),
        (
            "from: ops\nper: {region: encoder}\nmeasure: {n: count()}\nexpect: n == 0",
            "the trace has no annotation named encoder",
        ),
        (
            "from: ops\nwhere: {source: {exists: true}, dtype: fp64}\nmeasure: {n: count()}\n"
            "expect: n == 0",
            None,
        ),
        (
            "from: ops\nwhere: {source: {contains: model}}\nmeasure: {n: count()}\nexpect: n == 0",
            Need.STACKS.value,
        ),
    ],
)
def test_what_a_cpu_trace_cannot_answer(
    load_text: LoadText, samples: Path, text: str, why: str | None
) -> None:
    found = on_sample(load_text, samples, "cpu-naive", text)
    assert found.not_applicable == why
    assert found.state == ("pass" if why is None else "not_applicable")


def test_a_trace_without_steps_cannot_answer_per_step(load_text: LoadText, tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
    file = tmp_path / "trace.json"
    file.write_text(json.dumps({"traceEvents": [event]}))
    rule = load_text("from: ops\nper: step\nmeasure: {n: count()}\nexpect: n == 0")
    found = run_rule(rule, TraceTables(load_trace(file)))
    assert found.not_applicable == Need.STEPS.value


def test_a_view_without_rows_is_no_missing_need(load_text: LoadText, samples: Path) -> None:
    text = "from: copies\nmeasure: {n: count()}\nexpect: n == 0"
    assert on_sample(load_text, samples, "synthetic-naive-inplace", text).state == "pass"


def test_a_region_is_a_unit_like_a_forward_of_that_name(load_text: LoadText, samples: Path) -> None:
    text = "from: kernels\nmeasure: {n: count(), us: sum(dur_us)}\nexpect: n == 0\nmessage: '{us}'"
    sample = "synthetic-naive"
    by_forward = on_sample(load_text, samples, sample, text).findings[0]
    region = text + "\nper: {region: attn_fwd}"
    by_region = on_sample(load_text, samples, sample, region).findings[0]
    assert by_region.measures == by_forward.measures
    assert by_region.units_total == by_forward.units_total == 3


@pytest.mark.parametrize(
    ("table", "amount"),
    [
        ("kernels", "count()"),
        ("launches", "count()"),
        ("gaps", "count()"),
        ("steps", "first(gpu_ops)"),
    ],
)
def test_steps_of_one_number_are_judged_one_by_one(
    load_text: LoadText, make_trace: MakeTrace, table: str, amount: str
) -> None:
    tables = TraceTables(make_trace(repeated_steps(second_pid=10)))
    rule = f"from: {table}\nper: step\nmeasure: {{n: {amount}}}\nexpect: n <= 1"
    (finding,) = run_rule(load_text(rule), tables).findings
    assert (finding.units_mismatching, finding.units_total) == (2, 4)
    assert finding.worst_unit == 3
    assert finding.measures["n"] == 2

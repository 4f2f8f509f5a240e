"""What users of real hardware see: findings that are right, silence where it belongs."""

import json
from pathlib import Path
from typing import Any

import pytest

from analyze.cli.check import load_and_check
from analyze.engine.loading import load_rules
from analyze.engine.result import TraceReport
from analyze.errors import AnalyzeError
from analyze.report.verdict import verdict
from tests.conftest import RunAnalyze


def trace_of(real_traces: Path, name: str) -> Path:
    return next(path for path in (real_traces / name).iterdir() if path.is_file())


@pytest.fixture(scope="module")
def reports(real_traces: Path) -> dict[str, TraceReport | AnalyzeError]:
    rules = load_rules()
    found: dict[str, TraceReport | AnalyzeError] = {}
    for folder in sorted(path for path in real_traces.iterdir() if path.is_dir()):
        try:
            path = str(trace_of(real_traces, folder.name))
            _, found[folder.name] = load_and_check(path, None, rules)
        except AnalyzeError as error:
            found[folder.name] = error
    return found


def report_of(reports: dict[str, TraceReport | AnalyzeError], name: str) -> TraceReport:
    report = reports[name]
    assert isinstance(report, TraceReport)
    return report


def findings(report: TraceReport, code: str) -> list[Any]:
    return [finding for finding in report.findings if finding.code == code]


def test_every_file_is_analysed_or_refused_by_name(
    reports: dict[str, TraceReport | AnalyzeError],
) -> None:
    assert len(reports) == 66
    for name, outcome in reports.items():
        if name.endswith("-neg"):
            assert isinstance(outcome, AnalyzeError), name
            assert outcome.exit_code == 3, name
        elif name == "gen-empty":
            assert isinstance(outcome, AnalyzeError)
            assert outcome.exit_code == 2
            assert "capture again" in str(outcome)
        else:
            assert isinstance(outcome, TraceReport), name
            assert not outcome.errors, name
            json.dumps(outcome.to_dict(), allow_nan=False)


def test_all_at_once_on_the_command_line(real_traces: Path, run_analyze: RunAnalyze) -> None:
    small = [
        "gen-names",
        "gen-badmeta",
        "gen-legacy-array",
        "hta-bigint",
        "kin-before",
        "viz-fib-neg",
    ]
    done = run_analyze(*(trace_of(real_traces, name) for name in small))
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert "VizTracer" in done.stderr


def test_damaged_files_say_what_was_lost(real_traces: Path, run_analyze: RunAnalyze) -> None:
    names = run_analyze("summary", trace_of(real_traces, "gen-names"), "--format", "json")
    summary = json.loads(names.stdout)
    assert summary["events"] == 70
    assert summary["quality"]["events_lost"] == 1
    text = run_analyze(trace_of(real_traces, "gen-names")).stdout
    assert "1 event could not be read" in text
    meta = json.loads(
        run_analyze("summary", trace_of(real_traces, "gen-badmeta"), "--format", "json").stdout
    )
    assert meta["events"] == 16
    assert meta["quality"]["metadata_lost"] == ["bad"]


def test_switch_a100_fp32_gemms_and_hidden_copies(
    reports: dict[str, TraceReport | AnalyzeError],
) -> None:
    report = report_of(reports, "switch-a100")
    (gemm,) = findings(report, "PREC102")
    assert gemm.severity == "error"
    assert gemm.measures["n"] == 131
    assert gemm.measures["us"] / 83174 == pytest.approx(0.955, abs=0.01)
    assert not findings(report, "PREC101")
    (copy,) = findings(report, "COPY101")
    assert copy.measures["n"] == 10
    assert copy.measures["largest"] == 4 << 20
    chains = {row["op_chain"] for row in copy.evidence}
    assert chains == {"aten::masked_fill > aten::clone > aten::copy_"}


def test_owl_is_quiet_about_its_50_byte_copies(
    reports: dict[str, TraceReport | AnalyzeError],
) -> None:
    assert not findings(report_of(reports, "tl-h100-owl"), "COPY101")


def test_qwen_on_h100(reports: dict[str, TraceReport | AnalyzeError]) -> None:
    report = report_of(reports, "tl-h100-qwen")
    (flash,) = findings(report, "OCC101")
    assert flash.state == "benign"
    assert flash.group == {"short_name": "pytorch_flash::flash_fwd_kernel"}
    assert flash.measures["reported"] == 13
    assert flash.measures["real"] == pytest.approx(12.5, abs=1)
    (zeros,) = findings(report, "OCC102")
    assert zeros.state == "benign"
    assert zeros.measures["lowest"] > 10
    assert zeros.measures["n"] == 168
    assert "48 KiB" in zeros.because
    assert report.coverage["linked_share"] == pytest.approx(0.70, abs=0.01)
    assert report.coverage["gpu_ops_unlinked"] == 509


def test_no_cuda_core_claim_on_amd(reports: dict[str, TraceReport | AnalyzeError]) -> None:
    for name in ("tl-mi300-qwen", "tl-mi300-triton", "tl-sdpa01", "tl-sgl-decode", "hta-amd-mi250"):
        report = report_of(reports, name)
        assert not findings(report, "PREC101"), name
        assert not findings(report, "PREC102"), name
        reasons = {rule.code: rule.reason for rule in report.not_applicable}
        assert "NVIDIA" in reasons["PREC101"], name


def test_volta_has_no_tf32(reports: dict[str, TraceReport | AnalyzeError]) -> None:
    for name in ("par-dlrm-w0", "kin-r50-w0-v19"):
        report = report_of(reports, name)
        assert not findings(report, "PREC102"), name
        assert "8.0" in {r.code: r.reason for r in report.not_applicable}["PREC102"]


def test_volta_could_multiply_in_half_precision(
    reports: dict[str, TraceReport | AnalyzeError],
) -> None:
    (known,) = findings(report_of(reports, "hta-ns"), "PREC104")
    assert known.severity == "info"
    assert known.measures["share"] == pytest.approx(0.49, abs=0.005)
    assert known.savings_share == pytest.approx(0.43, abs=0.005)
    assert "was not recorded" in known.uncertain[0]
    (no_peak,) = findings(report_of(reports, "kin-r50-w0-v19"), "PREC104")
    assert no_peak.measures["share"] == pytest.approx(0.35, abs=0.005)
    assert no_peak.savings_us is None
    assert not no_peak.uncertain
    for name in ("par-dlrm-w7", "kin-gpumetrics-exp"):  # short products beside other work
        assert "PREC104" in {rule.code for rule in report_of(reports, name).passed}, name
    for name in ("switch-a100", "swin-a4000", "tl-h100-qwen", "tl-mi300-qwen", "kin-r50-w0-v181"):
        report = report_of(reports, name)
        assert "PREC104" in {rule.code for rule in report.not_applicable}, name


def test_unknown_inputs_lower_the_confidence(
    reports: dict[str, TraceReport | AnalyzeError],
) -> None:
    (gemm,) = findings(report_of(reports, "swin-a4000"), "PREC102")
    assert gemm.confidence == "low"
    assert "was not recorded" in gemm.uncertain[0]


def test_no_real_trace_has_a_fat_cpu_bar(reports: dict[str, TraceReport | AnalyzeError]) -> None:
    for name, report in reports.items():
        if isinstance(report, TraceReport):
            assert not findings(report, "LAUNCH101"), name


def test_one_graph_launch_replays_hundreds_of_kernels(
    real_traces: Path, run_analyze: RunAnalyze
) -> None:
    done = run_analyze("summary", trace_of(real_traces, "tl-sgl-decode"), "--format", "json")
    summary = json.loads(done.stdout)
    assert summary["graph_launches"] == 1
    assert summary["coverage"]["linked_share"] == 1


def test_a_launch_bound_model_leaves_the_gpu_idle(
    reports: dict[str, TraceReport | AnalyzeError],
) -> None:
    (idle,) = findings(report_of(reports, "tl-h100-bert"), "IDLE101")
    assert idle.severity == "error"
    assert idle.measures["late"] == 59
    assert idle.measures["share"] == pytest.approx(0.881, abs=0.001)


def test_the_longest_waits_are_the_hosts_where_it_runs_many_ops_in_them(
    reports: dict[str, TraceReport | AnalyzeError],
) -> None:
    (idle,) = findings(report_of(reports, "hta-nccl"), "IDLE101")
    assert [row["op"] for row in idle.evidence][:3] == ["aten::slice"] * 3
    assert all(row["dur_us"] > 15_000 for row in idle.evidence[:3])
    for name in ("hta-cp-alexnet", "hta-cp-evsync-ms", "swin-a4000", "switch-a100"):
        assert findings(report_of(reports, name), "IDLE101") == [], f"{name} loads and compiles"


def test_kernels_are_set_against_their_own_launches(
    reports: dict[str, TraceReport | AnalyzeError],
) -> None:
    (tiny,) = findings(report_of(reports, "tl-b200"), "LAUNCH102")
    assert tiny.measures["launch"] == pytest.approx(3690, abs=5)


def test_a_kernel_with_grids_of_several_sizes(
    reports: dict[str, TraceReport | AnalyzeError],
) -> None:
    (grid,) = findings(report_of(reports, "swin-a4000"), "OCC103")
    assert grid.measures["lost"] == pytest.approx(830, abs=1)
    assert "12, with 1 to 33 blocks on 48 SMs: 18 % of the device" in grid.message


def test_one_forward_without_calls_for_memory_is_told_of_none(
    reports: dict[str, TraceReport | AnalyzeError],
) -> None:
    reasons = {rule.code: rule.reason for rule in report_of(reports, "tl-b200").not_applicable}
    assert reasons["MEM101"].endswith("and only calls for memory after a first one count")


def test_graph_replays_do_not_wait_for_the_host(
    reports: dict[str, TraceReport | AnalyzeError],
) -> None:
    for name in ("tl-vllm-dec", "tl-sgl-decode"):
        report = report_of(reports, name)
        assert {"IDLE101", "LAUNCH102"} <= {rule.code for rule in report.passed}, name


def test_switch_a100_synchronises_in_an_if(
    reports: dict[str, TraceReport | AnalyzeError],
) -> None:
    (sync,) = findings(report_of(reports, "switch-a100"), "SYNC101")
    assert sync.measures["n"] == 20
    assert sync.measures["us"] == 35178
    (row,) = sync.evidence
    assert row["op_chain"] == "aten::is_nonzero > aten::item > aten::_local_scalar_dense"
    assert row["source"].endswith("model.py:143")


def test_item_of_pageable_memory_waits_in_its_copy(
    reports: dict[str, TraceReport | AnalyzeError],
) -> None:
    waits = findings(report_of(reports, "hta-diff-control"), "SYNC101")
    of_items = {wait.group["op_chain"]: wait for wait in waits}
    item = of_items["aten::item > aten::_local_scalar_dense"]
    assert (item.severity, item.measures["n"]) == ("warning", 6)
    assert "the host waited 5.84 ms per step for the GPU, 7 % of its CPU time" in item.message
    assert item.evidence[0]["name"] == "cudaMemcpyAsync"


def test_a_wait_for_what_the_file_does_not_hold_says_so(
    reports: dict[str, TraceReport | AnalyzeError],
) -> None:
    (wait,) = findings(report_of(reports, "tl-sgl-decode"), "SYNC101")
    assert "for 463 ms of the wait no GPU work of the file ran" in wait.message
    assert wait.savings_us == pytest.approx(150.665)


def test_owl_waits_in_its_copies(reports: dict[str, TraceReport | AnalyzeError]) -> None:
    report = report_of(reports, "tl-h100-owl")
    waits = findings(report, "SYNC101")
    assert max(wait.measures["us"] for wait in waits) == pytest.approx(374_046, abs=1)
    copies = {copy.group["copy_kind"]: copy.measures["n"] for copy in findings(report, "COPY102")}
    assert copies == {"DtoH": 55, "HtoD": 25}


def test_communication_that_nothing_hides(
    reports: dict[str, TraceReport | AnalyzeError],
) -> None:
    (gather, scatter) = findings(report_of(reports, "toke-llama0"), "COMM101")
    assert (gather.group, gather.severity) == ({"collective": "AllGather"}, "error")
    assert (scatter.group, scatter.severity) == ({"collective": "ReduceScatter"}, "warning")
    assert gather.measures["share"] == pytest.approx(0.846, abs=0.001)
    recommender = report_of(reports, "hta-diff-control")
    (exchange,) = findings(recommender, "COMM101")
    assert exchange.group == {"collective": "SendRecv"}
    assert exchange.measures["share"] == pytest.approx(0.21, abs=0.005)
    assert "Most to save: exposed-communication (COMM101)" in verdict(recommender)
    alone = report_of(reports, "hta-bigint")  # one collective of 50 us, and nothing else
    for report in (alone, report_of(reports, "kin-r50-w0-v19"), report_of(reports, "tl-h100-qwen")):
        assert "COMM101" in {rule.code for rule in report.passed}


def test_attention_by_hand_is_told_from_other_softmaxes(
    reports: dict[str, TraceReport | AnalyzeError],
) -> None:
    found = {
        name: findings(report, "ATTN103")[0].measures["calls"]
        for name, report in reports.items()
        if isinstance(report, TraceReport) and findings(report, "ATTN103")
    }
    assert found == {
        "gen-cpu-inplace": 1,
        "gen-cpu-naive": 1,
        "switch-a100": 10,
        "tl-h100-owl": 180,
    }


def test_what_a_file_does_not_hold_is_said(
    reports: dict[str, TraceReport | AnalyzeError],
) -> None:
    (qwen,) = findings(report_of(reports, "tl-h100-qwen"), "TRACE102")
    assert qwen.state == "benign"
    assert qwen.measures["unlinked_share"] == pytest.approx(0.30, abs=0.01)
    assert qwen.measures["early"] == qwen.measures["unlinked"] == 509
    (cupti,) = findings(report_of(reports, "hta-cupti"), "TRACE102")
    assert cupti.measures["lost_share"] == 1
    (b200,) = findings(report_of(reports, "tl-b200"), "TRACE103")
    assert b200.measures["n"] == 74


def test_pinned_memory_is_unknown_on_amd(
    reports: dict[str, TraceReport | AnalyzeError],
) -> None:
    for name in ("tl-mi300-qwen", "tl-sgl-decode", "hta-amd-mi250"):
        reasons = {rule.code: rule.reason for rule in report_of(reports, name).not_applicable}
        assert "ROCm" in reasons["COPY102"], name

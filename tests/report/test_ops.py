"""``analyze ops`` equals torch's ``key_averages()``, and an independent count of GPU time."""

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from analyze.errors import AnalyzeError
from analyze.report.ops import COLUMNS, KEYS, TORCH_NAMES, Query, average_ops, check_sort
from analyze.report.ops_rows import host_rows
from analyze.report.ops_text import render_ops
from analyze.tables.build import load_trace
from tests.conftest import ROOT, MakeTrace, RunAnalyze
from tests.report.test_golden_text import compare
from tests.tables.test_attribution import repeated_steps

GOLDEN = ("cpu-sdpa-math", "synthetic-naive", "synthetic-sdpa-math")
TOLERANCE_US = 0.01
"""Per call: torch rounds each duration to a float of microseconds."""

BOOKKEEPING = {
    "profiler::_record_function_enter",
    "profiler::_record_function_enter_new",
    "profiler::_record_function_exit",
    "aten::is_leaf",
    "aten::output_nr",
    "aten::_version",
}
LINKED_TRACES = ("tl-h100-bert", "switch-a100", "hta-ns", "toke-llama0", "tl-b200")
ATTENTION_STEPS = "'attention' in op_chain or not is_null(by_hand)"

SDPA_MATH = load_trace(ROOT / "sample_traces" / "synthetic-sdpa-math.json.gz")

Data = dict[str, Any]


def train() -> Callable[[], None]:
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 10)
    )
    optimizer = torch.optim.Adam(model.parameters())
    sizes = iter(range(32, 64))

    def step() -> None:
        with record_function("forward pass"):
            loss = model(torch.randn(next(sizes), 64)).sum()
        with record_function("backward pass"):
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def attend() -> Callable[[], None]:
    inputs = [torch.randn(2, 4, 64, 16, dtype=torch.bfloat16) for _ in range(3)]
    mask = torch.ones(64, 64, dtype=torch.bool).triu(1)

    def step() -> None:
        q, k, v = inputs
        with torch.no_grad(), record_function("attn_fwd"):
            scores = (q @ k.transpose(-2, -1)).mul(0.25).masked_fill(mask, float("-inf"))
            scores.softmax(-1) @ v
            torch.cat([q, k], dim=2)
            with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
                torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    return step


def recorded(step: Callable[[], None], path: Path, **options: Any) -> Any:
    """Profile two active steps; return the profiler with its events."""
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=2),
        on_trace_ready=lambda profiler: profiler.export_chrome_trace(str(path)),
        **options,
    ) as profiler:
        for _ in range(4):
            step()
            profiler.step()
    return profiler


def assert_equal(group: Data, row: Any) -> None:
    tolerance = TOLERANCE_US * row.count + 0.001
    assert group["calls"] == row.count, row.key
    assert group["kind"] == ("annotation" if row.is_user_annotation else "op"), row.key
    for column, torch_name in (
        ("self_cpu_us", "self_cpu_time_total"),
        ("cpu_us", "cpu_time_total"),
        ("cpu_avg_us", "cpu_time"),
    ):
        expected = getattr(row, torch_name)
        assert group[column] == pytest.approx(expected, abs=tolerance), (row.key, column)


@pytest.mark.parametrize("workload", [train, attend])
def test_by_name_equals_torch(workload: Callable[[], Callable[[], None]], tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    table = recorded(workload(), path, record_shapes=True, profile_memory=True).key_averages()
    data = average_ops(load_trace(path))
    groups = {group["name"]: group for group in data["groups"]}
    assert set(groups) == {row.key for row in table}
    assert "ProfilerStep*" in groups
    for row in table:
        assert_equal(groups[row.key], row)
        share = row.self_cpu_time_total / table.self_cpu_time_total
        assert groups[row.key]["self_cpu_share"] == pytest.approx(share, abs=1e-4)
    assert data["total"]["calls"] == sum(row.count for row in table)
    footer = re.search(r"Self CPU time total: ([\d.]+)(us|ms|s)\b", table.table())
    assert footer is not None
    unit = {"us": 1, "ms": 1e3, "s": 1e6}[footer[2]]
    assert data["total"]["self_cpu_us"] == pytest.approx(float(footer[1]) * unit, abs=1e-3 * unit)


@pytest.mark.parametrize("workload", [train, attend])
def test_by_name_and_shapes_equals_torch(
    workload: Callable[[], Callable[[], None]], tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    profiler = recorded(workload(), path, record_shapes=True)
    expected = list(profiler.key_averages(group_by_input_shape=True))
    data = average_ops(load_trace(path), Query(("name", "shapes")))
    groups: dict[tuple[str, str], list[Data]] = defaultdict(list)
    for group in data["groups"]:
        shapes = json.loads(group["shapes"] or "[]")
        groups[group["name"], str(torch_shapes(shapes))].append(group)
    assert set(groups) == {(row.key, str(row.input_shapes)) for row in expected}
    assert len(expected) > len(profiler.key_averages())
    for row in expected:
        assert_equal(summed(groups[row.key, str(row.input_shapes)]), row)


def torch_shapes(shapes: list[Any]) -> list[Any]:
    """Spell shapes as torch's table does: it does not tell what is in a list of tensors."""
    return [[] if shape and isinstance(shape[0], list) else shape for shape in shapes]


def summed(groups: list[Data]) -> Data:
    """Put the groups together that torch does not tell apart."""
    total = dict(groups[0])
    for group in groups[1:]:
        for column in ("calls", "self_cpu_us", "cpu_us"):
            total[column] += group[column]
    total["cpu_avg_us"] = total["cpu_us"] / total["calls"]
    return total


def test_by_name_and_stack_equals_torch(tmp_path: Path) -> None:
    """The user's line is that of the frame which called the built-in function that is the op."""
    path = tmp_path / "trace.json"
    a, b = torch.randn(8, 8), torch.randn(8, 8)

    def first() -> torch.Tensor:
        return torch.add(a, b)

    def second() -> torch.Tensor:
        return torch.add(torch.mul(a, b), b)

    def step() -> None:
        first()
        second()

    verbose = torch._C._profiler._ExperimentalConfig(verbose=True)
    profiler = recorded(step, path, with_stack=True, experimental_config=verbose)
    expected = {
        (row.key, line_of(row.stack[1])): row
        for row in profiler.key_averages(group_by_stack_n=2)
        if row.key in ("aten::add", "aten::mul")
    }
    assert len(expected) == 3
    data = average_ops(load_trace(path), Query(("name", "stack")))
    groups = {
        (group["name"], group["stack"]): group
        for group in data["groups"]
        if group["name"] in ("aten::add", "aten::mul")
    }
    assert groups.keys() == expected.keys()
    for key, row in expected.items():
        assert_equal(groups[key], row)


def line_of(frame: str) -> str:
    """Turn ``file.py(12): function`` into ``file.py:12``."""
    return frame.partition("): ")[0].replace("(", ":")


def test_by_module(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))

    def step() -> None:
        with torch.no_grad():
            model(torch.randn(4, 8))

    recorded(step, path, with_stack=True)
    data = average_ops(load_trace(path), Query(("module", "name")))
    calls = {(group["module"], group["name"]): group["calls"] for group in data["groups"]}
    assert calls["Linear_0", "aten::linear"] == calls["Linear_1", "aten::linear"] == 2
    assert calls["ReLU_0", "aten::relu"] == 2
    assert calls[None, "aten::randn"] == 2


def test_what_was_not_recorded_is_said(samples: Path) -> None:
    trace = load_trace(samples / "synthetic-naive.json.gz")
    data = average_ops(trace, Query(("module", "stack")))
    assert len(data["groups"]) == 1
    assert [note.partition(":")[0] for note in data["notes"][:2]] == ["module", "stack"]
    assert "no nn.Module calls were recorded" in render_ops(data)


def events_of(path: Path) -> list[Data]:
    raw = path.read_bytes()
    text = gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw
    events: list[Data] = json.loads(text)["traceEvents"]
    return [event for event in events if event.get("ph") == "X"]


def chains_of_launches(events: list[Data]) -> dict[int, list[Data]]:
    """Correlation to the ops and annotations around the call, outermost first.

    Each is told how many of these are directly inside it, as its ``children``.
    """
    lanes: dict[tuple[Any, Any], list[tuple[int, int, int, Data]]] = defaultdict(list)
    for event in events:
        kind = str(event.get("cat")).lower()
        is_host = kind in ("cpu_op", "user_annotation") and event["name"] not in BOOKKEEPING
        if is_host or kind in ("cuda_runtime", "cuda_driver", "runtime"):
            start = round(event["ts"] * 1000)
            end = start + round(event.get("dur", 0) * 1000)
            lanes[event["pid"], event["tid"]].append((start, 0 if is_host else 1, -end, event))
    chains: dict[int, list[Data]] = {}
    for lane in lanes.values():
        open_now: list[tuple[int, Data]] = []
        for start, is_call, negative_end, event in sorted(lane, key=lambda row: row[:3]):
            while open_now and open_now[-1][0] <= start:
                open_now.pop()
            if is_call:
                correlation = event.get("args", {}).get("correlation", 0)
                chains.setdefault(correlation, [around for _, around in open_now])
            else:
                event["children"] = 0
                if open_now:
                    open_now[-1][1]["children"] += 1
                open_now.append((-negative_end, event))
    return chains


def uncollapsed(chain: list[Data]) -> list[Data]:
    """Leave out what torch merges: the only child of an op of its name."""
    return [
        event
        for above, event in zip([{}, *chain], chain, strict=False)
        if not (above.get("name") == event["name"] and above["children"] == 1)
    ]


def independent_device_times(events: list[Data]) -> tuple[dict[str, int], dict[str, int], int]:
    """Return self and total GPU nanoseconds by op name, and those of all GPU work."""
    chains = chains_of_launches(events)
    own: dict[str, int] = defaultdict(int)
    inclusive: dict[str, int] = defaultdict(int)
    total = 0
    for event in events:
        if str(event.get("cat")).lower() not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        duration = round(event["dur"] * 1000)
        total += duration
        chain = chains.get(event["args"].get("correlation", 0), [])
        ops = [op for op in uncollapsed(chain) if op["cat"] == "cpu_op"]
        if ops:
            own[ops[-1]["name"]] += duration
        for op in ops:
            inclusive[op["name"]] += duration
    return own, inclusive, total


@pytest.mark.parametrize("name", LINKED_TRACES)
def test_device_times_equal_an_independent_count(real_traces: Path, name: str) -> None:
    path = next(path for path in (real_traces / name).iterdir() if path.is_file())
    own, inclusive, total = independent_device_times(events_of(path))
    data = average_ops(load_trace(path))
    groups = {group["name"]: group for group in data["groups"] if group["kind"] == "op"}
    for column, expected in (("self_device_us", own), ("device_us", inclusive)):
        found = {op: group[column] for op, group in groups.items() if group[column]}
        times = {op: time / 1000 for op, time in expected.items() if time}
        assert found == pytest.approx(times, abs=0.001)
    assert data["total"]["self_device_us"] == pytest.approx(total / 1000, abs=0.001)


@pytest.mark.parametrize("name", [*LINKED_TRACES, "tl-mi300-qwen", "tl-vllm-dec", "swin-a4000"])
def test_no_gpu_time_is_lost(real_traces: Path, name: str) -> None:
    path = next(path for path in (real_traces / name).iterdir() if path.is_file())
    data = average_ops(load_trace(path))
    by_rows = sum(group["self_device_us"] for group in data["groups"])
    outside = data["launched_by_no_row"]["device_us"]
    assert by_rows + outside == pytest.approx(data["total"]["self_device_us"], abs=0.5)
    by_cpu = sum(group["self_cpu_us"] for group in data["groups"])
    assert by_cpu == pytest.approx(data["total"]["self_cpu_us"], abs=0.5)
    assert all(group["self_cpu_us"] >= 0 for group in data["groups"])


def host(name: str, start: int, dur: int, cat: str = "cpu_op", **args: Any) -> Data:
    times = {"ts": start, "dur": dur}
    return {"ph": "X", "cat": cat, "name": name, "pid": 9, "tid": 9, **times, "args": args}


def kernel(start: int, dur: int, correlation: int) -> Data:
    args = {"device": 0, "stream": 7, "correlation": correlation}
    times = {"ts": start, "dur": dur}
    return {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, **times, "args": args}


def test_runtime_calls_are_rows_and_no_self_time_of_their_op(make_trace: MakeTrace) -> None:
    """As torch does: a runtime call is a child of the op that made it."""
    trace = make_trace(
        [
            host("ProfilerStep#3", 0, 200, "user_annotation"),
            host("region", 5, 100, "user_annotation"),
            host("aten::mm", 10, 50),
            host("cudaLaunchKernel", 20, 10, "cuda_runtime", correlation=1),
            host("cuLaunchKernel", 22, 4, "cuda_driver", correlation=7),
            host("cudaLaunchKernel", 70, 8, "cuda_runtime", correlation=2),
            host("cudaLaunchKernel", 190, 6, "cuda_runtime", correlation=3),
            host("cudaLaunchKernel", 300, 6, "cuda_runtime", correlation=4),
            kernel(300, 40, 1),
            kernel(340, 30, 2),
            kernel(400, 20, 3),
            kernel(500, 10, 4),
            kernel(600, 5, 99),
        ]
    )
    data = average_ops(trace)
    rows = {group["name"]: group for group in data["groups"]}
    cpu = {name: (row["self_cpu_us"], row["cpu_us"], row["calls"]) for name, row in rows.items()}
    assert cpu == {
        "aten::mm": (40, 50, 1),
        "region": (42, 100, 1),
        "ProfilerStep*": (94, 200, 1),
        "cudaLaunchKernel": (26, 30, 4),
        "cuLaunchKernel": (4, 4, 1),
    }
    gpu = {name: (row["self_device_us"], row["device_us"]) for name, row in rows.items()}
    assert gpu == {
        "aten::mm": (40, 40),
        "region": (30, 70),
        "ProfilerStep*": (20, 90),
        "cudaLaunchKernel": (0, 0),
        "cuLaunchKernel": (0, 0),
    }
    assert data["total"] == {"calls": 8, "self_cpu_us": 206, "self_device_us": 105}
    assert data["launched_by_no_row"] == {
        "gpu_ops": 2, "device_us": 15, "unlinked_gpu_ops": 1, "unlinked_device_us": 5,
    }  # fmt: skip
    of_step = average_ops(trace, Query(step=3))
    assert of_step["total"] == {"calls": 7, "self_cpu_us": 200, "self_device_us": 90}


def test_a_call_that_outlasts_its_op_is_not_inside_it(make_trace: MakeTrace) -> None:
    """As in torch the ancestors are tried, and what a child covers too counts once."""
    trace = make_trace(
        [
            host("outer", 0, 100, "user_annotation"),
            host("inner", 10, 40, "user_annotation"),
            host("wait", 20, 60, "cuda_runtime"),
            host("aten::mm", 30, 15),
            host("aten::add", 70, 20),
        ]
    )
    rows = {group["name"]: group["self_cpu_us"] for group in average_ops(trace)["groups"]}
    assert rows == {"outer": 20, "inner": 25, "wait": 60, "aten::mm": 15, "aten::add": 20}


def test_a_call_may_end_a_rounding_after_its_op(make_trace: MakeTrace) -> None:
    call = host("cudaLaunchKernel", 40, 21, "cuda_runtime")
    trace = make_trace([host("aten::mm", 10, 50), call])
    rows = {group["name"]: group["self_cpu_us"] for group in average_ops(trace)["groups"]}
    assert rows == {"aten::mm": 30, "cudaLaunchKernel": 21}


def test_self_time_lies_within_the_time(real_traces: Path) -> None:
    """In hta-mtia-inf annotations lie in calls, two of which outlast what they began in."""
    seen = set()
    for path in sorted(path for path in real_traces.glob("*/*") if path.is_file()):
        try:
            rows = host_rows(load_trace(path))
        except AnalyzeError:
            continue  # a negative sample
        wrong = rows.filter(~pl.col("self_cpu_ns").is_between(0, "cpu_ns"))
        assert wrong.is_empty(), path
        seen.add(path.parent.name)
    assert "hta-mtia-inf" in seen


@pytest.mark.parametrize("sample", ["synthetic-naive", "synthetic-sdpa-math"])
def test_the_gpu_time_of_every_step_of_attention(
    sample: str, samples: Path, run_analyze: RunAnalyze
) -> None:
    """The command that the help names answers what the seed's reader asked."""
    assert ATTENTION_STEPS in run_analyze("ops", "--help").stdout
    path = samples / f"{sample}.json.gz"
    arguments = ("ops", path, "--where", ATTENTION_STEPS, "--format", "json")
    data = json.loads(run_analyze(*arguments).stdout)
    steps = {row["name"]: row["self_device_us"] for row in data["groups"] if row["self_device_us"]}
    everything = load_trace(path).table("gpu_ops")["dur_us"].sum()
    assert sum(steps.values()) == pytest.approx(everything)
    assert {"aten::bmm", "aten::_softmax", "aten::mul", "aten::copy_"} <= steps.keys()
    kernels = load_trace(path).table("gpu_ops").filter(pl.col("op") == "aten::bmm")
    assert steps["aten::bmm"] == pytest.approx(kernels["dur_us"].sum())
    assert data["notes"] == []


@given(st.lists(st.sampled_from(sorted(KEYS)), min_size=1, unique=True))
def test_groups_are_a_partition(keys: list[str]) -> None:
    data = average_ops(SDPA_MATH, Query(tuple(keys)))
    for column, total in data["total"].items():
        if total is not None:
            parts = sum(group[column] for group in data["groups"])
            assert parts == pytest.approx(total, abs=0.001 * len(data["groups"]))
    distinct = {tuple(group.get(key) for key in (*keys, "kind")) for group in data["groups"]}
    assert len(distinct) == data["group_count"]
    assert all((group["cpu_us"] is None) == ("name" not in keys) for group in data["groups"])


@pytest.mark.parametrize("column", [*COLUMNS, *TORCH_NAMES])
def test_every_column_sorts(column: str) -> None:
    data = average_ops(SDPA_MATH, Query(sort=check_sort(column)))
    values = [group[data["sort"]] for group in data["groups"]]
    assert values == sorted(values, reverse=True)
    assert len(set(values)) > 5


def test_limit(samples: Path, run_analyze: RunAnalyze) -> None:
    path = samples / "synthetic-sdpa-math.json.gz"
    text = run_analyze("ops", path, "--limit", "2").stdout
    assert "and 30 more; --limit 32 shows all" in text
    assert "aten::bmm" in text
    assert "aten::tril" not in text
    everything = run_analyze("ops", path, "--format", "json").stdout
    data = json.loads(everything)
    assert data["group_count"] == len(data["groups"]) == 32
    beyond = ("--limit", "99999999999999999999")
    assert run_analyze("ops", path, "--format", "json", *beyond).stdout == everything


MISTAKES = {
    ("--sort", "self_cuda_tim_total"): "did you mean 'self_cuda_time_total'?",
    ("--group-by", "name,shape"): "did you mean 'shapes'?",
    ("--group-by", ""): "known: name, shapes, stack, module, phase, region",
    ("--where", "self_u > 5"): "(at character 1, 'self_u'); did you mean 'self_us'?",
    ("--where", "__import__('os')"): "unknown function",
    ("--where", "self_us"): "must be true or false",
    ("--step", "7"): "it has the steps 2, 3, 4",
}


@pytest.mark.parametrize(("arguments", "message"), MISTAKES.items(), ids=str)
def test_mistakes_are_one_line(
    arguments: tuple[str, str], message: str, samples: Path, run_analyze: RunAnalyze
) -> None:
    done = run_analyze("ops", samples / "synthetic-naive.json.gz", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr


def test_nothing_to_show_and_nothing_to_read(
    real_traces: Path, run_analyze: RunAnalyze, tmp_path: Path
) -> None:
    assert run_analyze("ops", real_traces / "gen-empty" / "empty.json").returncode == 2
    assert run_analyze("ops", tmp_path / "none.json").returncode == 3


def test_several_traces_are_a_list(samples: Path, run_analyze: RunAnalyze, tmp_path: Path) -> None:
    names = ("synthetic-naive.json.gz", "cpu-naive.json.gz")
    output = tmp_path / "ops.json"
    done = run_analyze("ops", *(samples / n for n in names), "--format", "json", "-o", output)
    assert done.returncode == 0
    with_gpu, without = json.loads(output.read_text())
    keys = {
        "schema_version", "trace", "coverage", "quality", "group_by", "sort", "step", "where",
        "total", "launched_by_no_row", "notes", "group_count", "groups",
    }  # fmt: skip
    assert with_gpu.keys() == without.keys() == keys
    assert with_gpu["groups"][0].keys() == {"name", "kind", *COLUMNS}
    assert with_gpu["sort"] == "self_device_us"
    assert without["sort"] == "self_cpu_us"
    assert without["groups"][0]["self_device_us"] is None
    assert without["total"]["self_device_us"] is None


def test_names_are_not_interpreted(make_trace: MakeTrace) -> None:
    name = "[bold]x[/bold] \x1b[2J :smile: " + "n" * 5000
    text = render_ops(average_ops(make_trace([host(name, 0, 10)])), width=80)
    assert "[bold]x[/bold]" in text
    assert ":smile:" in text
    assert "\x1b" not in text
    assert text.count("n") < 300
    assert all(len(line) <= 80 for line in text.splitlines()[1:])


def columns_of(text: str) -> Iterator[str]:
    heading = next(line for line in text.splitlines() if line.startswith("name"))
    yield from heading.split()


def test_narrow_terminals_lose_the_means_only(samples: Path) -> None:
    data = average_ops(load_trace(samples / "synthetic-naive.json.gz"), Query(limit=30))
    narrow, wide = render_ops(data, width=80), render_ops(data, width=120)
    assert all(len(line) <= 80 for line in narrow.splitlines()[1:])
    assert len(list(columns_of(wide))) - len(list(columns_of(narrow))) == 2
    assert "mean" not in narrow
    assert "aten::masked_fill_ " in narrow


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_text(name: str, samples: Path) -> None:
    data = average_ops(load_trace(samples / f"{name}.json.gz"), Query(limit=25))
    compare(render_ops(data), f"{name}.ops", samples)


@pytest.mark.parametrize("known", [False, True])
def test_gpu_time_with_an_unknown_part_is_unknown(make_trace: MakeTrace, known: bool) -> None:
    def launched(number: int, **duration: int) -> list[dict[str, Any]]:
        ids = {"correlation": number, "External id": 7}
        return [
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
             "ts": 10 * number, "dur": 2, "args": ids},
            {"ph": "X", "cat": "kernel", "name": f"k{number}", "pid": 0, "tid": 7,
             "ts": 10 * number + 5, "args": {"device": 0, "stream": 7, **ids}, **duration},
        ]  # fmt: skip

    ops = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": dur,
         "args": {"External id": number}}
        for number, (name, start, dur) in enumerate([("outer", 0, 100), ("inner", 5, 90)], 6)
    ]  # fmt: skip
    trace = make_trace([*ops, *launched(1, dur=3), *launched(2, **({"dur": 4} if known else {}))])
    table = trace.table("ops").sort("start_us")
    assert table["gpu_ops"].to_list() == [2, 2]
    assert table["device_us"].to_list() == ([7.0, 7.0] if known else [None, None])
    assert table["own_device_us"].to_list() == [0.0, 7.0 if known else None]


def test_a_number_that_two_steps_bear_is_said_to_be_of_both(make_trace: MakeTrace) -> None:
    trace = make_trace(repeated_steps(second_pid=10))
    data = average_ops(trace, Query(step=4))
    assert data["total"]["self_device_us"] == 15
    assert "2 steps of the trace have the number 4; this is what they come to" in data["notes"]
    alone = average_ops(SDPA_MATH, Query(step=3))["notes"]
    assert not [note for note in alone if "have the number" in note]

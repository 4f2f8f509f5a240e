"""What capture noted about a trace reaches the tables, whatever state its files are in."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from analyze.errors import TraceError
from analyze.tables.build import Trace, load_trace
from analyze.trace.capture_json import MAX_BYTES, read_capture_json

WORKLOAD = {
    "batch": 8, "heads": 16, "kv_heads": 4, "seq": 1024, "seq_kv": 2048, "head_dim": 64,
    "dtype": "bf16", "causal": True, "phase": "step",
}  # fmt: skip
NOTES = {
    "name": "naive",
    "kind": "variant",
    "workload": WORKLOAD,
    "annotations": ["attn_step", "attn_fwd"],
    "environment": {"torch": "2.13.0"},
}
ENTRY = {
    **NOTES,
    "status": "wrong",
    "reason": "wrong numerics",
    "traces": [{"file": "t.json"}],
    "latency": {"median_us": 146.8},
    "memory": {"peak_bytes": 1 << 30},
    "numerics": {"ok": False},
}


def write(folder: Path, notes: object = None, manifest: object = None) -> Path:
    """Write a trace with its notes, and a capture.json beside it."""
    events = [
        {"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": 9}
        for name, ts in (("attn_step", 0), ("attn_fwd", 1), ("mine", 20))
    ]
    metadata = {} if notes is None else {"kinetolint_capture": notes}
    path = folder / "t.json"
    path.write_bytes(orjson.dumps({"schemaVersion": 1, **metadata, "traceEvents": events}))
    if manifest is not None:
        text = manifest if isinstance(manifest, bytes) else orjson.dumps(manifest)
        (folder / "capture.json").write_bytes(text)
    return path


def row(trace: Trace) -> dict[str, Any]:
    return trace.table("trace").row(0, named=True)


def test_the_traces_own_notes_and_the_measurements_beside_it(tmp_path: Path) -> None:
    path = write(tmp_path, NOTES, {"schema_version": 1, "captures": [ENTRY]})
    found = row(load_trace(path))
    shape = ("batch", "heads", "kv_heads", "seq", "seq_kv", "head_dim")
    assert [found[name] for name in shape] == [8, 16, 4, 1024, 2048, 64]
    assert (found["variant"], found["phase"], found["causal"]) == ("naive", "step", True)
    assert found["torch_version"] == "2.13.0"
    assert found["latency_us"] == 146.8
    assert found["peak_bytes"] == 1 << 30
    assert (found["capture_status"], found["numerics_ok"]) == ("wrong", False)


def test_a_trace_alone_knows_its_variant_but_no_measurement(tmp_path: Path) -> None:
    found = row(load_trace(write(tmp_path, NOTES)))
    assert (found["variant"], found["seq"]) == ("naive", 1024)
    assert found["latency_us"] is None
    assert found["numerics_ok"] is None


def test_the_noted_annotation_is_the_forward_unless_another_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, {**NOTES, "kind": "function", "annotations": ["mine"]})
    trace = load_trace(path)
    assert trace.forward_source == "mine"
    assert row(trace)["variant"] is None
    assert load_trace(path, forward="attn_fwd").forward_source == "attn_fwd"


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (b"{", "is not JSON"),
        (b"[]", "no capture.json of schema_version 1"),
        ({"schema_version": 2, "captures": []}, "no capture.json of schema_version 1"),
        ({"schema_version": 1}, "not as capture writes them"),
        ({"schema_version": 1, "captures": [1]}, "not as capture writes them"),
        ({"schema_version": 1, "captures": [{**ENTRY, "traces": [{"file": "../t.json"}]}]}, "not"),
        ({"schema_version": 1, "captures": [{**ENTRY, "reason": 3}]}, "not as capture writes them"),
    ],
)
def test_an_unusable_capture_json_is_said_and_costs_only_itself(
    tmp_path: Path, manifest: object, message: str
) -> None:
    path = write(tmp_path, NOTES, manifest)
    trace = load_trace(path)
    assert row(trace)["variant"] == "naive"
    assert row(trace)["latency_us"] is None
    assert trace.header.capture_problem is not None
    assert message in trace.header.capture_problem
    with pytest.raises(TraceError, match=r"capture\.json"):
        read_capture_json(tmp_path / "capture.json")


def test_values_of_the_wrong_kind_are_unknown(tmp_path: Path) -> None:
    notes = {
        "name": 3,
        "kind": ["variant"],
        "workload": {"seq": "long", "heads": True, "batch": 1 << 63, "causal": "yes"},
        "annotations": [None],
        "environment": [],
    }
    entry = {**ENTRY, "latency": {"median_us": "fast"}, "memory": 3, "numerics": None}
    path = write(tmp_path, notes, {"schema_version": 1, "captures": [entry]})
    found = row(load_trace(path))
    unknown = ("variant", "seq", "heads", "batch", "causal", "torch_version", "latency_us")
    assert [found[name] for name in (*unknown, "peak_bytes", "numerics_ok")] == [None] * 9


def test_a_huge_capture_json_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "capture.json"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(TraceError, match="too large"):
        read_capture_json(path)


RUN = {
    "schema_version": 1,
    "created": "2026-11-30T12:00:00+00:00",
    "environment": {"torch": "2.13.0", "driver": None, "device": {"type": "cuda", "name": "H200"}},
    "protocol": {"active": 3},
}
TOLD = {
    **NOTES,
    "environment": RUN["environment"],
    "protocol": RUN["protocol"],
    "created": "2026-11-30T12:00:05+00:00",
}


def beside(folder: Path, notes: object, **metadata: Any) -> Trace:
    """Return a trace beside a capture.json that names it."""
    path = write(folder, notes, {**RUN, "captures": [ENTRY]})
    content = orjson.loads(path.read_bytes())
    path.write_bytes(orjson.dumps({**content, **metadata}))
    return load_trace(path)


@pytest.mark.parametrize(
    ("told", "difference"),
    [
        ({"name": "sdpa-math"}, "name here sdpa-math, there naive"),
        ({"kind": "function"}, "kind here function, there variant"),
        ({"annotations": ["attn_fwd"]}, "annotations here attn_fwd, there attn_step, attn_fwd"),
        ({"workload": {**WORKLOAD, "seq": 512}}, "seq here 512, there 1024"),
        ({"workload": {**WORKLOAD, "causal": False}}, "causal here False, there True"),
        ({"protocol": {"active": 9}}, "active here 9, there 3"),
        ({"environment": {"torch": "2.4.0"}}, "torch here 2.4.0, there 2.13.0"),
        ({"environment": {"device": {"name": "A100"}}}, "device here A100, there H200"),
        ({"created": "2026-11-30T11:59:59+00:00"}, "written before that capture began"),
    ],
)
def test_what_was_measured_of_another_trace_of_this_name_is_not_taken_over(
    tmp_path: Path, told: dict[str, Any], difference: str
) -> None:
    trace = beside(tmp_path, {**TOLD, **told})
    found = row(trace)
    measured = ("latency_us", "peak_bytes", "numerics_ok", "capture_status", "capture_reason")
    assert [found[name] for name in measured] == [None] * 5
    assert trace.header.capture_problem == (
        f"not used: capture.json is of another trace ({difference}); put this one beside the"
        " capture.json of its own capture"
    )


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"environment": {"torch": "2.13.0", "driver": "535.1", "device": {"name": 3}}},
        {"protocol": {"active": None, "unheard_of": 1}, "workload": None},
        {"created": "yesterday"},
    ],
    ids=["all the same", "unknown on one side", "unknown here", "no moment"],
)
def test_what_only_one_of_them_says_contradicts_nothing(
    tmp_path: Path, told: dict[str, Any]
) -> None:
    trace = beside(tmp_path, {**TOLD, **told})
    assert row(trace)["latency_us"] == 146.8
    assert trace.header.capture_problem is None


@pytest.mark.parametrize(
    ("metadata", "difference"),
    [
        ({}, None),
        ({"variant": "naive", "deviceProperties": [{"name": "A100"}, {"name": "H200"}]}, None),
        ({"variant": "sdpa-math"}, "variant here sdpa-math, there naive"),
        ({"deviceProperties": [{"name": "A100"}]}, "device here A100, there H200"),
    ],
)
def test_a_trace_that_capture_did_not_write_may_not_contradict_either(
    tmp_path: Path, metadata: dict[str, Any], difference: str | None
) -> None:
    trace = beside(tmp_path, None, **metadata)
    assert row(trace)["latency_us"] == (146.8 if difference is None else None)
    problem = trace.header.capture_problem
    assert problem is None if difference is None else difference in str(problem)


def test_less_than_nothing_is_no_measurement(tmp_path: Path) -> None:
    latency = {"median_us": -12, "p10_us": -13.5, "p90_us": -0.1}
    entry = {**ENTRY, "latency": latency, "memory": {"peak_bytes": -1}}
    trace = load_trace(write(tmp_path, NOTES, {"schema_version": 1, "captures": [entry]}))
    assert (row(trace)["latency_us"], row(trace)["peak_bytes"]) == (None, None)
    captured = trace.header.captured
    assert (captured.latency_p10_ns, captured.latency_p90_ns) == (None, None)

"""``capture`` as a user runs it, on the CPU: from the command line to the file."""

import fcntl
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from capture.schema import schema_text
from tests.capture.conftest import USER_FILE
from tests.capture.problems import Node, annotated, file_names, read_manifest, read_trace

Done = subprocess.CompletedProcess[str]
RunCapture = Callable[..., Done]

RUN_HERE = {
    "naive",
    "naive-inplace",
    "sdpa-auto",
    "sdpa-math",
    "sdpa-flash",
    "flex",
    "compiled-naive",
}
SKIPPED_HERE = {
    "sdpa-efficient": "torch has no such backend for this: ",
    "sdpa-cudnn": "torch has no such backend for this: ",
    "flash-attn": "needs the package flash-attn: ",
    "xformers": "needs the package xformers: ",
}
WORKLOAD = {
    "batch": 2,
    "heads": 4,
    "kv_heads": 4,
    "seq": 128,
    "seq_kv": 128,
    "head_dim": 32,
    "dtype": "bf16",
    "causal": True,
    "layout": "bhsd",
    "phase": "forward",
    "compile": False,
    "seed": 0,
    "device": "cpu",
}
FLASH = "aten::_scaled_dot_product_flash_attention_for_cpu"

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}  # several tests share the processor


def run(*command: str | Path) -> Done:
    words = list(map(str, command))
    return subprocess.run(
        words, capture_output=True, check=False, timeout=300, env=ENVIRONMENT, text=True
    )


def run_capture(*arguments: str | Path) -> Done:
    done = run(Path(sys.executable).parent / "capture", *arguments)
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="session")
def everything(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """One run with default options, which compiles twice; test processes share it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, answer = shared / "everything", shared / "everything.json"
    with (shared / "everything.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not answer.exists():
            done = run_capture("-o", folder)
            answer.write_text(json.dumps([done.args, done.returncode, done.stdout, done.stderr]))
    return folder, subprocess.CompletedProcess(*json.loads(answer.read_text()))


def captures_of(folder: Path) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in read_manifest(folder)["captures"]}


def captured(folder: Path, name: str) -> dict[str, Any]:
    """Return the entry of a variant that must have been captured."""
    entry = captures_of(folder)[name]
    assert entry["status"] == "captured", entry["reason"]
    return entry


def trace_of(folder: Path, name: str) -> dict[str, Any]:
    [trace] = captured(folder, name)["traces"]
    return read_trace(folder / trace["file"])


def forward_of(folder: Path, name: str) -> Node:
    """Return one of three forwards that hold the same operators."""
    forwards = annotated(trace_of(folder, name), "attn_fwd")
    assert len(forwards) == 3
    assert forwards[0] == forwards[1] == forwards[2]
    return forwards[0]


class TestEverything:
    def test_what_runs_here_is_captured_and_the_rest_says_why_not(
        self, everything: tuple[Path, Done]
    ) -> None:
        folder, done = everything
        assert done.returncode == 0
        entries = captures_of(folder)
        assert {name for name, e in entries.items() if e["status"] == "captured"} == RUN_HERE
        skipped = {name: e["reason"] for name, e in entries.items() if e["status"] == "skipped"}
        assert skipped.keys() == SKIPPED_HERE.keys()
        for name, reason in SKIPPED_HERE.items():
            assert skipped[name].startswith(reason)
            assert len(skipped[name]) > len(reason)

    def test_the_manifest_obeys_the_schema_that_the_command_prints(
        self, everything: tuple[Path, Done]
    ) -> None:
        folder, _ = everything
        printed = run_capture("schema")
        assert (printed.returncode, printed.stderr) == (0, "")
        schema = json.loads(printed.stdout)
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.Draft202012Validator(schema).validate(read_manifest(folder))

    def test_nothing_else_is_left(self, everything: tuple[Path, Done]) -> None:
        folder, _ = everything
        traces = [t["file"] for e in captures_of(folder).values() for t in e["traces"]]
        assert len(traces) == len(RUN_HERE)
        assert file_names(folder) == {"capture.json", *traces}

    @pytest.mark.parametrize("name", sorted(RUN_HERE))
    def test_a_trace_holds_three_steps_and_says_what_it_is(
        self, everything: tuple[Path, Done], name: str
    ) -> None:
        folder, _ = everything
        entry, trace = captured(folder, name), trace_of(folder, name)
        names = [event["name"] for event in trace["traceEvents"]]
        steps = [f"ProfilerStep#{number}" for number in (2, 3, 4)]
        assert [each for each in names if each.startswith("ProfilerStep")] == steps
        assert names.count("attn_fwd") == 3
        assert len(annotated(trace, "attn_fwd")) == 3
        own = trace["kinetolint_capture"]
        assert own["variant"] == own["name"] == name
        assert own["workload"] == entry["workload"] == WORKLOAD
        manifest = read_manifest(folder)
        assert own["protocol"] == manifest["protocol"]
        assert own["annotations"] == entry["annotations"] == ["attn_fwd"]
        for key, value in own["environment"].items():
            assert value == manifest["environment"][key]
        assert own["environment"]["torch"].startswith("2.13.")
        [recorded] = entry["traces"]
        assert recorded["verification"]["steps"] == steps
        assert recorded["verification"]["problems"] == []
        assert recorded["verification"]["events"] == len(names)

    @pytest.mark.parametrize("name", sorted(RUN_HERE))
    def test_measurements_agree_with_each_other(
        self, everything: tuple[Path, Done], name: str
    ) -> None:
        folder, _ = everything
        entry = captured(folder, name)
        latency, memory = entry["latency"], entry["memory"]
        assert 0 < latency["min_us"] <= latency["p10_us"] <= latency["median_us"]
        assert latency["median_us"] <= latency["p90_us"]
        assert 20 <= latency["repeats"] <= 1000
        flops = 4 * 2 * 4 * 128**2 * 32 / 2
        assert latency["tflops"] == pytest.approx(flops / latency["median_us"] / 1e6)
        assert memory["before_bytes"] == 3 * 2 * 4 * 128 * 32 * 2
        assert memory["peak_bytes"] >= memory["before_bytes"] + 2 * 4 * 128 * 32 * 2
        assert entry["numerics"]["ok"]
        assert 0 < entry["numerics"]["errors"]["output"]["relative"] < 0.05

    def test_fused_attention_needs_less_memory(self, everything: tuple[Path, Done]) -> None:
        folder, _ = everything
        peak = {name: captured(folder, name)["memory"]["peak_bytes"] for name in RUN_HERE}
        assert peak["sdpa-flash"] < peak["naive"] < peak["sdpa-math"]

    def test_the_table_has_a_row_for_every_variant(self, everything: tuple[Path, Done]) -> None:
        folder, done = everything
        rows = {line.split()[0]: line for line in done.stdout.splitlines()[1:12]}
        assert rows.keys() == RUN_HERE | SKIPPED_HERE.keys()
        for name, entry in captures_of(folder).items():
            assert entry["status"] in rows[name].split()
            assert all(rows[name].endswith(trace["file"]) for trace in entry["traces"])
        assert "  naive: writes NaN for a query whose every key is masked\n" in done.stdout
        assert "  sdpa-cudnn: torch has no such backend for this: " in done.stdout
        assert done.stderr.endswith(f"\nnext: analyze {folder}\n")

    def test_naive_copies_the_scores_to_mask_them(self, everything: tuple[Path, Done]) -> None:
        forward = forward_of(everything[0], "naive")
        assert forward.has_path("aten::masked_fill", "aten::clone", "aten::copy_")
        operators = [child.name for child in forward.children]
        assert operators == [
            f"aten::{name}"
            for name in ("transpose", "matmul", "mul", "masked_fill", "softmax", "matmul")
        ]

    def test_masking_in_place_copies_nothing(self, everything: tuple[Path, Done]) -> None:
        naive, inplace = (forward_of(everything[0], name) for name in ("naive", "naive-inplace"))
        assert "aten::masked_fill_" in inplace.names()
        assert not {"aten::masked_fill", "aten::clone"} & set(inplace.names())
        copies = [Counter(forward.names())["aten::copy_"] for forward in (naive, inplace)]
        assert copies[0] - copies[1] == 1

    def test_math_makes_the_mask_anew_in_every_call(self, everything: tuple[Path, Done]) -> None:
        forward = forward_of(everything[0], "sdpa-math")
        for name in ("ones", "tril", "scalar_tensor", "where", "add_", "_safe_softmax"):
            assert forward.has_path("aten::_scaled_dot_product_attention_math", f"aten::{name}")
        assert "aten::masked_fill" not in forward.names()
        assert FLASH not in forward.names()

    @pytest.mark.parametrize("name", ["sdpa-flash", "sdpa-auto"])
    def test_flash_is_one_operator(self, everything: tuple[Path, Done], name: str) -> None:
        forward = forward_of(everything[0], name)
        assert forward.has_path("aten::scaled_dot_product_attention", FLASH)
        assert not [each for each in forward.names() if "bmm" in each or "softmax" in each]

    @pytest.mark.parametrize("name", ["flex", "compiled-naive"])
    def test_compiled_variants_are_compiled(self, everything: tuple[Path, Done], name: str) -> None:
        names = forward_of(everything[0], name).names()
        assert [each for each in names if each.startswith("## Call CompiledFxGraph")]
        assert not {"aten::masked_fill", "aten::softmax"} & set(names)


ISOLATED = """\
import sys

BLOCKED = {"analyze", "polars", "rich", "rich_click", "orjson", "pydantic"}

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocker())
for name in BLOCKED:
    try:
        __import__(name)
    except ImportError as error:
        assert "is blocked" in str(error)
    else:
        raise AssertionError(f"{name} is not blocked")

from capture.cli import main

main()
"""


def test_a_gpu_box_needs_torch_and_click_alone(tmp_path: Path) -> None:
    arguments = ("-o", tmp_path / "out", "--variant", "naive", "--no-benchmark")
    done = run(sys.executable, "-c", ISOLATED, *arguments)
    assert done.returncode == 0, done.stderr
    assert forward_of(tmp_path / "out", "naive").has_path("aten::masked_fill", "aten::clone")


CAPTURE_ALONE = """\
import sys

sys.modules.update(dict.fromkeys(["polars", "rich_click", "orjson", "pydantic"]))
from analyze.__main__ import main

main()
"""


@pytest.mark.parametrize("words", [["trace.json"], ["--help"], ["rules"], ["rules", "list"]])
def test_analyze_says_there_what_is_missing(words: list[str]) -> None:
    done = run(sys.executable, "-c", CAPTURE_ALONE, *words)
    assert (done.returncode, done.stdout) == (3, "")
    assert re.fullmatch(
        r"analyze: the package \w+ is missing; this installation can only capture\."
        r" Analyse elsewhere, or complete it: pip install kinetolint\n",
        done.stderr,
    )


WITHOUT_TORCH = """\
import sys

sys.modules["torch"] = None
from capture.cli import main

main()
"""


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["--version"], ["schema"]])
def test_help_needs_no_torch(words: list[str]) -> None:
    done = run(sys.executable, "-c", WITHOUT_TORCH, *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_help_tells_calls_before_the_profiler_from_steps_of_its_schedule() -> None:
    told = " ".join(run(sys.executable, "-c", WITHOUT_TORCH, "--help").stdout.split())
    assert "Calls before the profiler exists, of which it knows nothing." in told
    assert "Steps of its schedule, after --wait, that are profiled and thrown away." in told


def test_a_machine_without_torch_is_told_so() -> None:
    done = run(sys.executable, "-c", WITHOUT_TORCH)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("capture: capture needs torch, which cannot be imported here")
    assert "pip install 'kinetolint[capture]' (in a checkout: '.[capture]')" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_sweep_of_training_steps_with_grouped_queries(tmp_path: Path) -> None:
    file, out = tmp_path / "mine.py", tmp_path / "out"
    file.write_text(USER_FILE)
    done = run_capture(
        *("-o", out, "--phase", "step", "--layout", "bshd", "--repeat", "2"),
        *("--heads", "4", "--kv-heads", "2", "--seq", "32", "--seq", "48", "--seq-kv", "64"),
        *("--variant", "naive", "--variant", "sdpa-flash", "--variant", f"{file}:good"),
        *("--no-benchmark", "--dtype", "fp32"),
    )
    assert done.returncode == 0, done.stderr
    entries = read_manifest(out)["captures"]
    assert [(entry["workload"]["seq"], entry["name"]) for entry in entries] == [
        (seq, name) for seq in (32, 48) for name in ("naive", "sdpa-flash", "mine.good")
    ]
    for entry in entries:
        assert entry["status"] == "captured"
        assert entry["numerics"]["ok"]
        assert set(entry["numerics"]["errors"]) == {
            "output",
            "query.grad",
            "key.grad",
            "value.grad",
        }
        start = f"{entry['name']}-step-b2h4kv2s{entry['workload']['seq']}x64d32-fp32-causal-bshd"
        files = [trace["file"] for trace in entry["traces"]]
        assert files == [f"{start}-1.json.gz", f"{start}-2.json.gz"]
        for trace in map(read_trace, (out / file for file in files)):
            for step in annotated(trace, "attn_step"):
                assert [child.name for child in step.children][:2] == ["attn_fwd", "attn_bwd"]
            assert len(annotated(trace, "attn_step")) == 3
            names = Counter(event["name"] for event in trace["traceEvents"])
            assert names["attn_fwd"] == names["attn_bwd"] == 3
            assert names["Optimizer.step#AdamW.step"] == 3
    files = [trace["file"] for entry in entries for trace in entry["traces"]]
    assert len(set(files)) == 12
    assert file_names(out) == {"capture.json", *files}


def test_any_variant_can_be_compiled(tmp_path: Path) -> None:
    quick = ("--no-benchmark", "--no-check")
    done = run_capture("-o", tmp_path, "--variant", "naive", "--compile", *quick)
    assert done.returncode == 0, done.stdout
    [trace] = captured(tmp_path, "naive")["traces"]
    assert trace["file"] == "naive-forward-b2h4s128d32-bf16-causal-compiled.json.gz"
    names = forward_of(tmp_path, "naive").names()
    assert [name for name in names if name.startswith("## Call CompiledFxGraph")]


def test_a_function_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(USER_FILE)
    done = run_capture("run", tmp_path / "mine.py:step", "-o", tmp_path / "out", "--active", "2")
    assert done.returncode == 0
    assert re.fullmatch(r"capture: step: captured; .+ a step; next: analyze \S+\n", done.stderr)
    entry = captured(tmp_path / "out", "step")
    assert (entry["kind"], entry["workload"]) == ("function", None)
    assert entry["latency"]["repeats"] >= 20
    jsonschema.Draft202012Validator(json.loads(schema_text())).validate(
        read_manifest(tmp_path / "out")
    )
    steps = annotated(trace_of(tmp_path / "out", "step"), "step")
    assert [step.names().count("aten::mul") for step in steps] == [1, 1]


TRAINING = """\
import sys

import torch
from capture import record

model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def train(batch):
    model(batch).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()

folder = sys.argv[1]
with record(f"{folder}/loop", name="train") as recording:
    for batch in recording.over(torch.randn(4, 8) for _ in iter(int, 1)):
        train(batch)
with record(f"{folder}/run", name="train", benchmark=False) as recording:
    recording.run(lambda: train(torch.ones(4, 8)))
with record(f"{folder}/short") as recording:
    for batch in recording.over([torch.ones(4, 8)] * 6):
        train(batch)
"""


def test_a_training_script(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    done = run(
        *(sys.executable, "-W", "error", "-W", "ignore:Failed to initialize NumPy:UserWarning"),
        *(tmp_path / "train.py", tmp_path),
    )
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith(
        "CaptureError: step: the batches ended early; a trace takes 8 steps"
    )
    for way in ("loop", "run"):
        assert file_names(tmp_path / way) == {"capture.json", "train.json.gz"}
        steps = annotated(trace_of(tmp_path / way, "train"), "train")
        assert len(steps) == 3
        for step in steps:
            assert {"aten::addmm", "Optimizer.step#SGD.step"} <= set(step.names())
    assert captured(tmp_path / "loop", "train")["latency"]["repeats"] >= 20
    assert file_names(tmp_path / "short") == {"capture.json"}
    assert captures_of(tmp_path / "short")["step"]["status"] == "failed"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--variant", "sdpa-flsh"), 2, "did you mean 'sdpa-flash'?"),
        (("--device", "cuda"), 3, "finds no GPU here"),
    ],
)
def test_a_bad_request(arguments: tuple[str, ...], code: int, said: str) -> None:
    done = run_capture(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("capture: ")
    assert done.stderr.count("\n") == 1
    assert said in done.stderr

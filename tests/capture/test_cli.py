"""The command: what it refuses, in one line; what a bad variant does to the others; the table."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from capture.variants import VARIANTS
from tests.capture.conftest import Command
from tests.capture.problems import file_names, read_manifest, read_trace

QUICK = ("--no-benchmark", "--seq", "16")
NAIVE = ("--variant", "naive", *QUICK)


def statuses(folder: Path) -> dict[str, str]:
    return {entry["name"]: entry["status"] for entry in read_manifest(folder)["captures"]}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("--variant sdpa-flsh", 2, "sdpa-flsh: no such variant; did you mean 'sdpa-flash'?"),
        ("--variant zzz", 2, "zzz: no such variant (capture --list shows all"),
        ("--variant none.py:f", 2, "none.py: no such file"),
        ("--variant no.such.module:f", 2, "no.such.module: cannot be imported: ModuleNotFound"),
        ("--variant :f", 2, "write path/to/file.py:function or module:function"),
        ("--variant mine.py:goof", 2, "has no function 'goof'; did you mean 'good'?"),
        ("--variant mine.py:CONSTANT", 2, "mine.py:CONSTANT: is int, not a function"),
        ("--variant syntax.py:f", 2, "syntax.py: cannot be imported: SyntaxError: "),
        ("--variant exits.py:f", 2, "exits.py: cannot be imported: SystemExit: bye (exits.py:2)"),
        ("--variant raises.py:f", 2, "raises.py: cannot be imported: KeyError: 'k' (raises.py:3)"),
        ("--variant mine.py:good --variant ./mine.py:good", 2, "2 variants are called mine.good"),
        ("--heads 4 --kv-heads 3", 2, "--kv-heads must divide --heads"),
        ("--device tpu", 2, "--device tpu: write auto, cpu, cuda or cuda:N"),
        ("--device cuda", 3, "--device cuda: torch 2."),
        ("--device cuda:1", 3, "finds no GPU here"),
        ("-o mine.py/below", 3, "mine.py/below: cannot be written: Not a directory"),
        ("run mine.py:stepp", 2, "has no function 'stepp'; did you mean 'step'?"),
        ("run mine.py", 2, "write path/to/file.py:function or module:function"),
        ("run mine.py:step --device cuda", 3, "finds no GPU here"),
        ("run mine.py:step --name a/b", 2, "use ASCII letters, digits and . _ + - only"),
        ("run mine.py:step -o mine.py/below", 3, "cannot be written: Not a directory"),
    ],
)
def test_a_bad_request_is_one_line(
    command: Command,
    user_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: str,
    code: int,
    said: str,
) -> None:
    folder = user_file.parent
    monkeypatch.chdir(folder)
    (folder / "syntax.py").write_text("def f(:\n")
    (folder / "exits.py").write_text("import sys\nsys.exit('bye')\n")
    (folder / "raises.py").write_text("\n\n{}['k']\n")
    before = file_names(folder)
    done = command(*arguments.split())
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("capture: ")
    assert done.err.count("\n") == 1
    assert said in done.err
    assert file_names(folder) - before <= {"__pycache__"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--seq 64 run mine.py:step", "--seq is no option of 'run'"),
        ("--variant naive run mine.py:step", "--variant is no option of 'run'"),
        ("--active 2 run mine.py:step", "--active must come after 'run'"),
        ("--seq 64 128", "Got the number 128 by itself"),
        ("--list schema", "--list is no option of 'schema'"),
        ("naive", "No such command 'naive'. A variant is named with --variant"),
        ("--dtype int8", "'int8' is not one of 'bf16', 'fp16', 'fp32', 'fp64'"),
        ("--seq 0", "0 is not in the range x>=1"),
        ("--active 0", "0 is not in the range x>=1"),
        ("-o mine.py", "'mine.py' is a file"),
        ("run", "Missing argument 'MODULE:FUNCTION'"),
    ],
)
def test_a_usage_error(
    command: Command, user_file: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, said: str
) -> None:
    monkeypatch.chdir(user_file.parent)
    done = command(*arguments.split())
    assert (done.code, done.out) == (2, "")
    assert said in done.last_line


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("raises", "failed", "ValueError: not today [31mreally (mine.py:14)"),
        ("exits", "failed", "SystemExit: 7 (mine.py:17)"),
        ("wrong_shape", "failed", "ValueError: the variant returned shape (2, 16, 4, 32), not"),
        ("no_tensor", "failed", "TypeError: the variant returned NoneType, not a tensor"),
        ("out_of_memory", "failed", "out of memory: "),
        ("wrong", "wrong", "wrong numerics: output off by "),
        ("not_here", "skipped", "NotImplementedError: needs a newer GPU (mine.py:32)"),
        ("late", "failed", "RuntimeError: gave up in the profiler (mine.py:37)"),
    ],
)
def test_a_bad_variant_does_not_stop_the_next(
    command: Command, user_file: Path, tmp_path: Path, name: str, status: str, reason: str
) -> None:
    out = tmp_path / "out"
    done = command("-o", out, "--variant", f"{user_file}:{name}", *NAIVE)
    assert done.code == 1
    assert statuses(out) == {f"mine.{name}": status, "naive": "captured"}
    [bad, good] = read_manifest(out)["captures"]
    assert bad["reason"].startswith(reason)
    assert f"  mine.{name}: {bad['reason']}\n" in done.out
    traces = {trace["file"] for entry in (bad, good) for trace in entry["traces"]}
    assert file_names(out) == {"capture.json", *traces}


VANISHING = """\
import shutil
from pathlib import Path
from capture.variants import naive

def attention(*arguments):
    shutil.rmtree(Path(__file__).parent / "out", ignore_errors=True)
    return naive(*arguments)
"""


def test_a_folder_that_vanishes_ends_the_run_in_one_line(command: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(VANISHING)
    out = tmp_path / "out"
    done = command("-o", out, "--variant", f"{tmp_path}/mine.py:attention", *NAIVE)
    assert (done.code, done.out) == (3, "")
    assert done.last_line == (
        f"capture: {out}/capture.json: cannot be written: No such file or directory"
    )
    assert not out.exists()


def test_all_skipped_is_exit_code_two(command: Command, tmp_path: Path) -> None:
    done = command("-o", tmp_path, "--variant", "sdpa-cudnn", "--variant", "flash-attn", *QUICK)
    assert done.code == 2
    assert statuses(tmp_path) == {"sdpa-cudnn": "skipped", "flash-attn": "skipped"}
    reasons = [entry["reason"] for entry in read_manifest(tmp_path)["captures"]]
    assert reasons[0].startswith("torch has no such backend for this: No viable backend")
    assert reasons[1] == "needs the package flash-attn: No module named 'flash_attn'"


def test_a_variant_of_ones_own(command: Command, user_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = command(
        *("-o", out, "--variant", f"{user_file}:good", *QUICK),
        *("--heads", "4", "--kv-heads", "2", "--layout", "bshd", "--phase", "backward"),
    )
    assert (done.code, done.last_line) == (0, f"next: analyze {out}")
    [entry] = read_manifest(out)["captures"]
    assert entry["name"] == "mine.good"
    assert entry["status"] == "captured"
    assert set(entry["numerics"]["errors"]) == {"output", "query.grad", "key.grad", "value.grad"}
    [trace] = entry["traces"]
    assert trace["file"] == "mine.good-backward-b2h4kv2s16d32-bf16-causal-bshd.json.gz"
    assert read_trace(out / trace["file"])["kinetolint_capture"]["workload"] == entry["workload"]


def test_odd_letters_in_the_name_of_a_file(command: Command, user_file: Path) -> None:
    folder = user_file.parent
    odd = folder / "a b\udce9;'é.py"  # one byte of it is no UTF-8
    user_file.rename(odd)
    done = command("-o", folder / "out", "--variant", f"{odd}:good", "--no-check", *QUICK)
    assert done.code == 0
    assert statuses(folder / "out") == {"a_b____.good": "captured"}


@pytest.mark.parametrize("reference", ["{file}:step", "mine:step"])
def test_run(
    command: Command,
    user_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reference: str,
) -> None:
    monkeypatch.chdir(user_file.parent)
    out = tmp_path / "out"
    reference = reference.format(file=user_file)
    done = command("run", reference, "-o", out, "--name", "mul", "--no-benchmark", "--active", "2")
    assert done.code == 0
    assert done.err.endswith(f"; next: analyze {out}\n")
    assert statuses(out) == {"mul": "captured"}
    names = [event["name"] for event in read_trace(out / "mul.json.gz")["traceEvents"]]
    assert names.count("mul") == names.count("aten::mul") == 2


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("failing_step", "RuntimeError: no data (mine.py:44)"),
        ("exiting_step", "SystemExit: 7 (mine.py:47)"),
    ],
)
def test_a_step_that_fails(
    command: Command, user_file: Path, tmp_path: Path, name: str, said: str
) -> None:
    done = command("run", f"{user_file}:{name}", "-o", tmp_path / "out")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"capture: {user_file}:{name}: {said}")
    assert done.err.count("\n") == 1
    assert statuses(tmp_path / "out") == {name: "failed"}
    assert file_names(tmp_path / "out") == {"capture.json"}


HOSTILE_FILES = (
    "../secret.json.gz",
    "/etc/passwd",
    "a\0b.json.gz",
    "\ud800.json.gz",
    "keep.txt",
    "",
)


def test_overwriting_removes_nothing_but_traces_in_the_folder(
    command: Command, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "secret.json.gz").write_text("mine")
    (out / "keep.txt").write_text("mine")
    captures = [{"traces": [{"file": file} for file in HOSTILE_FILES]}]
    (out / "capture.json").write_text(json.dumps({"captures": captures}))
    assert command("-o", out, "--overwrite", *NAIVE).code == 0
    assert (tmp_path / "secret.json.gz").exists()
    assert (out / "keep.txt").exists()


def test_two_files_with_neighbours_of_the_same_name(command: Command, tmp_path: Path) -> None:
    for folder, factor in (("a", "1.0"), ("b", "2.0")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "helper.py").write_text(f"FACTOR = {factor}\n")
        (tmp_path / folder / f"{folder}.py").write_text(SCALED_BY_HELPER)
    variants = [f"--variant={tmp_path}/{folder}/{folder}.py:attention" for folder in "ab"]
    done = command("-o", tmp_path / "out", *variants, *QUICK)
    assert done.code == 1
    assert statuses(tmp_path / "out") == {"a.attention": "captured", "b.attention": "wrong"}


SCALED_BY_HELPER = """
import torch
from helper import FACTOR

def attention(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    if mask.blocked is not None:
        scores = scores.masked_fill(mask.blocked, float("-inf"))
    return torch.softmax(scores, -1) @ value * FACTOR
"""

MISBEHAVING = """
import torch

def naive(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    if mask.blocked is not None:
        scores = scores.masked_fill(mask.blocked, float("-inf"))
    return torch.softmax(scores, -1) @ value

def writes(query, key, value, mask):
    query.mul_(2)
    return naive(query, key, value, mask)

def unmasks(query, key, value, mask):
    if mask.blocked is not None and mask.explicit is None:
        mask.blocked.zero_()
    return naive(query, key, value, mask)

def upcasts(query, key, value, mask):
    return naive(query, key, value, mask).float()

remembered = {}

def remembers(query, key, value, mask):
    if query.shape not in remembered:
        remembered[query.shape] = naive(query, key, value, mask)
    return remembered[query.shape].clone()

class Odd(BaseException):
    pass

def odd(query, key, value, mask):
    raise Odd("odd")

def leaves_grad_off(query, key, value, mask):
    torch.set_grad_enabled(False)
    torch.set_default_dtype(torch.float64)
    return naive(query, key, value, mask)
"""


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        ("writes", "failed", "the variant writes to its query"),
        ("unmasks", "wrong", "wrong numerics: output off by"),
        ("upcasts", "failed", "the variant returned torch.float32 on cpu, not torch.bfloat16"),
        ("remembers", "wrong", "wrong numerics: output off by"),
        ("odd", "failed", "Odd: odd"),
        ("leaves_grad_off", "captured", ""),
    ],
)
def test_a_variant_that_misbehaves_is_found_and_harms_no_other(
    command: Command, tmp_path: Path, name: str, status: str, said: str
) -> None:
    (tmp_path / "mine.py").write_text(MISBEHAVING)
    variants = [f"--variant={tmp_path}/mine.py:{name}", "--variant=naive"]
    command("-o", tmp_path / "out", *variants, *QUICK)
    first, second = read_manifest(tmp_path / "out")["captures"]
    assert first["status"] == status
    assert said in (first["reason"] or "")
    assert second["status"] == "captured"
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("good", "must be callable without arguments: missing a required argument: 'query'"),
        ("coroutine", "calling it runs nothing; name a plain function"),
    ],
)
def test_a_function_that_cannot_be_a_step(
    command: Command, user_file: Path, tmp_path: Path, function: str, said: str
) -> None:
    with user_file.open("a") as file:
        file.write("\n\nasync def coroutine():\n    pass\n")
    done = command("run", f"{user_file}:{function}", "-o", tmp_path / "out")
    assert done.code == 2
    assert done.err == f"capture: {user_file}:{function}: {said}\n"
    assert not (tmp_path / "out").exists()


def test_an_earlier_capture_is_kept(command: Command, tmp_path: Path) -> None:
    assert command("-o", tmp_path, *NAIVE).code == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    done = command("-o", tmp_path, *NAIVE)
    assert done.code == 3
    assert done.err == (
        f"capture: {tmp_path}/capture.json: an earlier capture is there; choose another folder,"
        " or overwrite it (--overwrite, record(..., overwrite=True))\n"
    )
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_overwriting_removes_the_earlier_traces_alone(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert command("-o", out, *NAIVE).code == 0
    [old] = [name for name in file_names(out) if name.endswith(".gz")]
    (out / "my-trace.json.gz").write_text("mine")
    (tmp_path / "outside.json.gz").write_text("mine")
    content = read_manifest(out)
    content["captures"][0]["traces"].append({"file": "../outside.json.gz"})
    (out / "capture.json").write_text(json.dumps(content))
    done = command("-o", out, "--overwrite", *NAIVE, "--dtype", "fp32")
    assert done.code == 0
    new = old.replace("bf16", "fp32")
    assert file_names(out) == {"capture.json", "my-trace.json.gz", new}
    assert (tmp_path / "outside.json.gz").exists()


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"captures": [1]}', '{"captures": null}', "\udcff"]
)
def test_a_manifest_that_is_not_ours_is_never_removed(
    command: Command, tmp_path: Path, content: str
) -> None:
    manifest = tmp_path / "capture.json"
    manifest.write_text(content, errors="surrogateescape")
    done = command("-o", tmp_path, "--overwrite", *NAIVE)
    assert done.code == 3
    assert done.err == (f"capture: {manifest}: is no capture.json of ours; remove it yourself\n")
    assert file_names(tmp_path) == {"capture.json"}


@pytest.mark.parametrize("phase", ["backward", "step"])
@pytest.mark.parametrize("name", ["naive", "naive-inplace", "sdpa-math", "sdpa-flash"])
def test_phases_with_gradients(command: Command, tmp_path: Path, phase: str, name: str) -> None:
    done = command("-o", tmp_path, "--variant", name, "--phase", phase, *QUICK)
    assert done.code == 0, done.out
    [entry] = read_manifest(tmp_path)["captures"]
    assert entry["annotations"] == ["attn_step", "attn_fwd", "attn_bwd"]
    assert entry["numerics"]["ok"]
    assert set(entry["numerics"]["errors"]) == {"output", "query.grad", "key.grad", "value.grad"}


@pytest.mark.parametrize("flag", ["--no-check", "--no-benchmark"])
def test_what_is_switched_off_is_null(command: Command, tmp_path: Path, flag: str) -> None:
    done = command("-o", tmp_path, "--variant", "naive", "--seq", "16", flag)
    assert done.code == 0
    [entry] = read_manifest(tmp_path)["captures"]
    found: dict[str, Any] = {key: entry[key] for key in ("latency", "memory", "numerics")}
    off = {"numerics"} if flag == "--no-check" else {"latency", "memory"}
    assert {key for key, value in found.items() if value is None} == off


def test_a_sweep_has_a_column_for_the_length(command: Command, tmp_path: Path) -> None:
    lengths = ("--seq", "16", "--seq", "24", "--seq", "16")
    done = command("-o", tmp_path, "--variant", "naive", "--no-benchmark", *lengths)
    header, *rows = done.out.splitlines()
    assert header.split()[:3] == ["variant", "seq", "status"]
    assert [row.split()[:3] for row in rows[:2]] == [
        ["naive", "16", "captured"],
        ["naive", "24", "captured"],
    ]
    assert [entry["workload"]["seq"] for entry in read_manifest(tmp_path)["captures"]] == [16, 24]


def test_the_list_tells_what_runs_here(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    eager = tuple(v for v in VARIANTS if not (v.compiled or v.compiles_itself))
    monkeypatch.setattr("capture.availability.VARIANTS", eager)
    monkeypatch.chdir(tmp_path)
    done = command("--list", "--seq", "16")
    assert done.code == 0
    header, *rows = (line.split(maxsplit=2) for line in done.out.splitlines())
    assert header == ["variant", "runs", "here  what it is, or why not"]
    answers = {name: answer for name, answer, _ in rows}
    here = {"naive", "naive-inplace", "sdpa-auto", "sdpa-math", "sdpa-flash"}
    assert {name for name, answer in answers.items() if answer == "yes"} == here
    assert answers["hub-flash-attn"] == "not"  # tried: it would be downloaded
    assert "needs the package xformers: No module named 'xformers'" in done.out
    assert file_names(tmp_path) == set()

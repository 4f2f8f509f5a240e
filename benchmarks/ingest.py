"""Reading speed and memory, side by side with other ways to read a trace.

    python benchmarks/ingest.py TRACE [--megabytes 500] [--rounds 3] [--unique-names]

scales TRACE up, then runs each candidate in a process of its own, in turn, and prints medians. Time
runs from opening the file to the tables in hand (for the others: to their own data frame), imports
not counted; peak memory is the whole process's. Figures of different machines or runs do not
compare; the ratios within one run do. Candidates that are not installed are left out and said so.
"""

import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, process_time
from typing import IO

import click

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

MEGABYTE = 1e6
ON_REQUEST = ("gaps", "memory")
TINY_TRACE = (
    '{"schemaVersion": 1, "distributedInfo": {"rank": 0}, "traceEvents": [{"ph": "X", "cat":'
    ' "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {"External id": 1}}]}'
)


def load_with_kinetolint(path: str) -> int:
    """All tables that findings rest on; idle gaps and memory are made for those who ask."""
    os.environ.setdefault("POLARS_MAX_THREADS", "1")  # as the command does
    from analyze.tables.build import load_trace  # noqa: PLC0415
    from analyze.tables.catalogue import TABLES  # noqa: PLC0415

    trace = load_trace(path)
    return sum(trace.table(name).height for name in TABLES if name not in ON_REQUEST)


def load_with_json(path: str) -> int:
    """json.load and a data frame of the events, args left as dicts."""
    import json  # noqa: PLC0415

    import pandas as pd  # noqa: PLC0415

    with Path(path).open() as file:
        return len(pd.DataFrame(json.load(file)["traceEvents"]))


def load_with_orjson(path: str) -> int:
    """orjson.loads of the whole file; no data frame."""
    import orjson  # noqa: PLC0415

    return len(orjson.loads(Path(path).read_bytes())["traceEvents"])


def load_with_hta(path: str) -> int:
    """HTA's parser."""
    from hta.common.trace import parse_trace_file  # noqa: PLC0415

    return len(parse_trace_file(path)[1])


CANDIDATES: Mapping[str, tuple[Callable[[str], int], str]] = {
    "kinetolint, all tables": (load_with_kinetolint, "polars"),
    "json.load + DataFrame": (load_with_json, "pandas"),
    "orjson.loads, whole file": (load_with_orjson, "orjson"),
    "HTA parse_trace_file": (load_with_hta, "hta"),
}


@dataclass(frozen=True)
class Run:
    """One process: CPU seconds (user and system), wall seconds, peak memory in bytes."""

    cpu: float
    wall: float
    peak: int


def run_candidate(name: str, path: Path) -> Run:
    """Run one candidate in a fresh process, which prints its own CPU and wall seconds."""
    command = [sys.executable, __file__, "--candidate", name, str(path)]
    with tempfile.TemporaryFile("w+") as printed:
        whole = run_command(command, printed)
        printed.seek(0)
        cpu, wall = map(float, printed.read().split())
    return Run(cpu, wall, whole.peak)


def time_candidate(name: str, path: str) -> None:
    """Load the candidate's modules on a tiny trace, then time it on the real one."""
    load, _ = CANDIDATES[name]
    with tempfile.TemporaryDirectory() as folder:
        tiny = Path(folder) / "tiny.json"
        tiny.write_text(TINY_TRACE)
        load(str(tiny))
    cpu, wall = process_time(), monotonic()
    load(path)
    print(process_time() - cpu, monotonic() - wall)


def run_command(command: list[str], output: IO[str] | None = None) -> Run:
    """Run a command to its end and account for it as the system does."""
    started = monotonic()
    process = subprocess.Popen(command, stdout=output or subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise click.ClickException(f"{' '.join(command)}: exit {process.returncode}")
    return Run(usage.ru_utime + usage.ru_stime, monotonic() - started, usage.ru_maxrss * 1024)


def medians(runs: list[Run]) -> Run:
    """Return the median of each figure on its own."""
    return Run(
        statistics.median(run.cpu for run in runs),
        statistics.median(run.wall for run in runs),
        int(statistics.median(run.peak for run in runs)),
    )


def compare(path: Path, rounds: int) -> None:
    """Run all candidates in turn and print a table."""
    text_bytes = path.stat().st_size
    installed = [name for name, (_, needs) in CANDIDATES.items() if importlib.util.find_spec(needs)]
    for name in CANDIDATES.keys() - set(installed):
        print(f"left out, not installed: {name}")
    runs: dict[str, list[Run]] = {name: [] for name in installed}
    for _ in range(rounds):
        for name in installed:
            runs[name].append(run_candidate(name, path))
    print(f"{text_bytes / MEGABYTE:.0f} MB of text, median of {rounds} rounds")
    print(f"{'':26}{'MB / CPU s':>12}{'CPU s':>9}{'wall s':>9}{'peak MB':>9}{'peak / text':>13}")
    for name in installed:
        median = medians(runs[name])
        speed = text_bytes / MEGABYTE / median.cpu
        print(
            f"{name:26}{speed:12.0f}{median.cpu:9.2f}{median.wall:9.2f}"
            f"{median.peak / MEGABYTE:9.0f}{median.peak / text_bytes:13.2f}"
        )


@click.command()
@click.argument("trace", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--megabytes", default=500, show_default=True, help="Text to scale the trace up to.")
@click.option("--rounds", default=3, show_default=True, help="Runs of each candidate.")
@click.option("--unique-names", is_flag=True, help="Give every event a name of its own.")
@click.option("--candidate", hidden=True, type=click.Choice(list(CANDIDATES)))
def main(
    trace: Path,
    megabytes: int,
    rounds: int,
    candidate: str | None,
    *,
    unique_names: bool,
) -> None:
    """Compare ways to read TRACE, scaled up."""
    if candidate:
        time_candidate(candidate, str(trace))
        return
    from benchmarks.scale_trace import scale_trace  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        scaled = Path(folder) / "scaled.json"
        scale_trace(trace, scaled, int(megabytes * MEGABYTE), unique_names=unique_names)
        compare(scaled, rounds)


if __name__ == "__main__":
    main()

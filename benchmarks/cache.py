"""What the cache gains: the whole command on a trace without it, the first and the second time.

    python benchmarks/cache.py TRACE... [--megabytes 500] [--rounds 5]

With --megabytes each TRACE is scaled up first. The runs take turns, each in a process of its own;
printed are medians. Only the ratios within one run compare.
"""

import os
import sys
import tempfile
from pathlib import Path

import click

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.ingest import MEGABYTE, Run, medians, run_command  # noqa: E402
from benchmarks.scale_trace import scale_trace  # noqa: E402

RUNS = {"off": "off", "first": "refresh", "second": "auto"}
"""What is timed, and the value of --cache that does so, in this order."""


def compare(trace: Path, rounds: int) -> None:
    """Run the command without the cache, writing it, and reading it, in turn; print medians."""
    analyze = str(Path(sys.executable).parent / "analyze")
    runs: dict[str, list[Run]] = {name: [] for name in RUNS}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        for _ in range(rounds):
            for name, mode in RUNS.items():
                runs[name].append(run_command([analyze, "summary", str(trace), "--cache", mode]))
        stored = sum(file.stat().st_size for file in Path(folder).rglob("*.events"))
    print(f"{trace.name}: {trace.stat().st_size / MEGABYTE:.1f} MB, cached {stored / MEGABYTE:.1f}")
    for name in RUNS:
        median = medians(runs[name])
        peak = median.peak / MEGABYTE
        print(f"  {name:7}{median.cpu:7.2f} CPU s{median.wall:7.2f} s{peak:7.0f} MB peak")


@click.command()
@click.argument("traces", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--megabytes", type=int, help="Text to scale each trace up to.")
@click.option("--rounds", default=5, show_default=True, help="Runs of each kind.")
def main(traces: tuple[Path, ...], megabytes: int | None, rounds: int) -> None:
    """Compare the first and the second reading of TRACES."""
    for trace in traces:
        if megabytes is None:
            compare(trace, rounds)
            continue
        with tempfile.TemporaryDirectory() as folder:
            scaled = Path(folder) / f"{trace.name.split('.')[0]}-scaled.json"
            scale_trace(trace, scaled, int(megabytes * MEGABYTE), unique_names=False)
            compare(scaled, rounds)


if __name__ == "__main__":
    main()

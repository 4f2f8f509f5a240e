"""What a whole `analyze TRACE` takes, beside what Python needs to import polars alone.

    python benchmarks/command.py TRACE [--megabytes 1 --megabytes 20] [--rounds 15] [--analyze PATH]

With --megabytes TRACE is scaled up to each of the sizes first. --analyze names the command of
another installation (a wheel, an earlier version), and may be given several times. All take turns,
each in a process of its own, without the cache; printed are medians. Seconds of different machines
or hours do not compare; the ratios within one run do.
"""

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.ingest import MEGABYTE, Run, medians, run_command  # noqa: E402
from benchmarks.scale_trace import scale_trace  # noqa: E402

BASE = "import polars"


def compare(trace: Path, commands: Mapping[str, list[str]], rounds: int) -> None:
    """Run the commands on a trace in turn and print a table; the first one is the base."""
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            runs[name].append(run_command(command))
    print(f"{trace.name}: {trace.stat().st_size / MEGABYTE:.1f} MB, median of {rounds} rounds")
    print(f"{'':40}{'wall s':>9}{'CPU s':>9}{'peak MB':>9}{'wall / base':>13}")
    base = medians(runs[BASE]).wall
    for name in commands:
        median = medians(runs[name])
        print(
            f"{name[-38:]:40}{median.wall:9.3f}{median.cpu:9.3f}{median.peak / MEGABYTE:9.0f}"
            f"{median.wall / base:13.2f}"
        )


def commands_on(trace: Path, programs: Sequence[str]) -> dict[str, list[str]]:
    """Return what is run by its name in the table."""
    return {
        BASE: [sys.executable, "-c", BASE],
        **{program: [program, str(trace)] for program in programs},
    }


def in_sizes(trace: Path, megabytes: Sequence[float], folder: Path) -> Iterator[Path]:
    """Yield the trace as it is, or scaled up to each size, as plain JSON."""
    if not megabytes:
        yield trace
    for size in megabytes:
        scaled = folder / f"{trace.name.split('.')[0]}-{size:g}-MB.json"
        scale_trace(trace, scaled, int(size * MEGABYTE), unique_names=False)
        yield scaled


@click.command()
@click.argument("trace", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--megabytes", multiple=True, type=float, help="Text to scale the trace up to.")
@click.option("--rounds", default=15, show_default=True, help="Runs of each command.")
@click.option(
    "--analyze",
    "programs",
    multiple=True,
    default=[str(Path(sys.executable).parent / "analyze")],
    help="The command to time; that of this installation by default.",
)
def main(trace: Path, megabytes: tuple[float, ...], rounds: int, programs: tuple[str, ...]) -> None:
    """Time the whole command on TRACE."""
    os.environ["ANALYZE_CACHE"] = "off"
    with tempfile.TemporaryDirectory() as folder:
        for sized in in_sizes(trace, megabytes, Path(folder)):
            compare(sized, commands_on(sized, programs), rounds)


if __name__ == "__main__":
    main()

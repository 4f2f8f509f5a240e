"""What running all built-in rules costs, as a share of loading the trace, in one run.

    python benchmarks/rules.py TRACE [--kernels 1000000] [--ops 1000000] [--rounds 3]

scales TRACE up until it holds that many kernels and CPU ops, then loads it and runs every rule, in
a process of its own for each round, and prints medians. The cost of each rule is CPU time; the
first rules of a table pay for its distinct names. Figures of different machines do not compare;
ratios do.
"""

import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from time import process_time

import click
import orjson

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.ingest import MEGABYTE  # noqa: E402


@dataclass(frozen=True)
class Round:
    """One run: seconds of CPU for loading and per rule, bytes of memory before and after."""

    load: float
    rules: dict[str, float]
    peak_load: int
    peak_all: int

    @property
    def all_rules(self) -> float:
        """Seconds of CPU for all rules together."""
        return sum(self.rules.values())


def measure(path: str) -> None:
    """Load a trace, run every rule, and print what it cost as JSON."""
    from analyze.engine.data import TraceTables  # noqa: PLC0415
    from analyze.engine.loading import load_rules  # noqa: PLC0415
    from analyze.engine.run import run_rule  # noqa: PLC0415
    from analyze.tables.build import load_trace  # noqa: PLC0415
    from analyze.tables.catalogue import TABLES  # noqa: PLC0415

    loaded_rules = load_rules(tests=False)
    start = process_time()
    trace = load_trace(path)
    for name in TABLES:
        trace.table(name)
    load, peak_load = process_time() - start, _peak()
    tables = TraceTables(trace)
    rules = {}
    for rule in loaded_rules:
        start = process_time()
        result = run_rule(rule, tables)
        rules[rule.code] = process_time() - start
        if result.error:
            raise SystemExit(f"{rule.code} failed: {result.error}")
    print(orjson.dumps(Round(load, rules, peak_load, _peak())).decode())


def _peak() -> int:
    return getrusage(RUSAGE_SELF).ru_maxrss * 1024


def scaled_size(source: Path, kernels: int, ops: int) -> int:
    """Return how many bytes of text TRACE must be scaled to."""
    from benchmarks.scale_trace import read_document, scale_trace  # noqa: PLC0415

    events = read_document(source)["traceEvents"]
    counts = {cat: sum(event.get("cat") == cat for event in events) for cat in ("kernel", "cpu_op")}
    if not all(counts.values()):
        raise click.UsageError("the trace must hold kernels and CPU ops")
    copies = max(-(-kernels // counts["kernel"]), -(-ops // counts["cpu_op"]))
    with tempfile.TemporaryDirectory() as folder:
        one: int = scale_trace(source, Path(folder) / "one.json", 1, unique_names=False)
        two: int = scale_trace(source, Path(folder) / "two.json", one + 1, unique_names=False)
    return int(one + (copies - 1) * (two - one))


def report(rounds: list[Round], text_bytes: int) -> None:
    """Print medians and the ratio."""
    load = statistics.median(run.load for run in rounds)
    rules = statistics.median(run.all_rules for run in rounds)
    first = rounds[0]
    print(f"{text_bytes / MEGABYTE:.0f} MB of text, median of {len(rounds)} rounds")
    print(f"load {load:.2f} CPU s, peak {first.peak_load / MEGABYTE:.0f} MB")
    after = f"peak {first.peak_all / MEGABYTE:.0f} MB"
    print(f"all {len(first.rules)} rules {rules:.2f} CPU s, {after}")
    print(f"rules / load: {rules / load:.2f}")
    for code in sorted(first.rules, key=lambda code: -first.rules[code]):
        cost = statistics.median(run.rules[code] for run in rounds)
        print(f"  {code:12}{cost:8.2f} s")


@click.command()
@click.argument("trace", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--kernels", default=1_000_000, show_default=True)
@click.option("--ops", default=1_000_000, show_default=True)
@click.option("--rounds", default=3, show_default=True)
@click.option("--measure", "measured", is_flag=True, hidden=True)
def main(trace: Path, kernels: int, ops: int, rounds: int, *, measured: bool) -> None:
    """Compare the cost of all rules with that of loading TRACE, scaled up."""
    if measured:
        measure(str(trace))
        return
    from benchmarks.scale_trace import scale_trace  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        scaled = Path(folder) / "scaled.json"
        wanted = scaled_size(trace, kernels, ops)
        text_bytes = scale_trace(trace, scaled, wanted, unique_names=False)
        command = [sys.executable, __file__, str(scaled), "--measure"]
        outputs = [subprocess.check_output(command) for _ in range(rounds)]
        report([Round(**orjson.loads(output)) for output in outputs], text_bytes)


if __name__ == "__main__":
    main()

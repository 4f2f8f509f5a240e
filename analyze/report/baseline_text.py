"""A baseline file as text, and what an update of it changed."""

from collections.abc import Iterable, Sequence

from rich.text import Text

from analyze.baseline.model import Baseline, Entry
from analyze.baseline.updating import Step, Update
from analyze.report.console import buffer_console, print_pairs, rendered
from analyze.words import counted, duration, printable, share

_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}

_DONE = {
    "added": "added",
    "removed": "removed, no longer found",
    "tightened": "tightened, got better",
    "raised": "raised, got worse",
    "left out": "not accepted, new or worse",
    "unproven": "kept, not found and not ruled out",
}


def render_baseline(file: str, baseline: Baseline, *, color: bool = False) -> str:
    """Return the findings of a baseline as text.

    Args:
        file: its path.
        baseline: the baseline.
        color: use terminal colours.
    """
    console = buffer_console(color=color)
    entries = baseline.findings
    scopes = {entry.scope for entry in entries}
    known_in = counted(len(scopes), "capture or trace", "captures or traces")
    where = "" if scopes <= {None} else f" in {known_in}"
    title = f"{printable(file)}: {counted(len(entries), 'known finding')}{where}"
    console.print(Text(title, style="bold"))
    for entry in entries:
        console.print()
        heading = Text(entry.severity, style=_STYLES[entry.severity])
        heading.append(f"  {entry.code} {printable(entry.name)}", style="bold")
        heading.append(f"  {printable(entry.fingerprint)}")
        console.print(heading)
        print_pairs(console, _pairs(entry))
    return rendered(console)


def _pairs(entry: Entry) -> Iterable[tuple[str, str]]:
    yield "observed", printable(entry.message)
    group = ", ".join(
        f"{printable(key)} {printable(str(value))}" for key, value in entry.group.items()
    )
    if group:
        yield "of", group
    if entry.savings_us is not None:
        whole = f", {share(entry.savings_share)}" if entry.savings_share is not None else ""
        yield "saves", f"{duration(entry.savings_us)} per {printable(entry.per)}{whole}"
    mismatching = f"{entry.units_mismatching} of {counted(entry.units_total, entry.per)}"
    yield "seen in", printable(mismatching)
    yield "known in", printable(entry.scope) if entry.scope else "any trace"
    yield "accepted", f"{entry.date}{f': {printable(entry.reason)}' if entry.reason else ''}"


def render_update(file: str, done: Update) -> str:
    """Say what an update changed, a line each, and the tally."""
    checked = printable(done.traces[0]) if len(done.traces) == 1 else f"{len(done.traces)} traces"
    lines = [f"Checked {checked}"]
    lines += [
        f"{words}: {_named(step)}"
        for kind, words in _DONE.items()
        for step in _of_kind(done.steps, kind)
    ]
    tally = counted(len(done.baseline.findings), "known finding")
    lines.append(f"Wrote {printable(file)}: {tally}")
    if _of_kind(done.steps, "unproven") and len(done.traces) < done.baseline.traces:
        lines.append(
            f"It was made from {done.baseline.traces} traces: what is known in any of them is"
            " removed when as many are checked"
        )
    if done.is_of_other_program:
        lines.append(
            "None of what is known in any trace was found, but something else was: what was checked"
            " may be of another program, and nothing is taken as gone"
        )
    anywhere = sum(step.shown.scope is None for step in _of_kind(done.steps, "removed"))
    if anywhere:
        were = counted(anywhere, "of the removed was", "of the removed were")
        lines.append(f"{were} known in any trace: it is new in those that still have it")
    if _of_kind(done.steps, "left out"):
        lines.append("`analyze baseline update --accept` takes in what is new or worse")
    return "\n".join(lines) + "\n"


def _of_kind(steps: Sequence[Step], kind: str) -> list[Step]:
    return [step for step in steps if step.kind == kind]


def _named(step: Step) -> str:
    entry = step.shown
    scope = f" in {printable(entry.scope)}" if entry.scope else ""
    return f"{entry.code} {printable(entry.name)}{scope}: {printable(entry.message)}"

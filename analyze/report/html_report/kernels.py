"""The kernels of a trace as the cells of a table, and their occupancy as a chart."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from analyze.kernels.namesakes import told_apart
from analyze.report.chains import short_chain
from analyze.report.html_report.groups import GROUPS, Group, group_of
from analyze.report.summary import sum_of_known
from analyze.report.views.model import KernelRow, KernelTable
from analyze.tables.host import CHAIN_SEPARATOR
from analyze.words import counted, duration, percentage, share, size, unitless

MOST_OCCUPANCIES = 25
NOT_KNOWN = "\N{EN DASH}"


@dataclass(frozen=True)
class Cell:
    """A cell: what it says and the number or word it is sorted by; empty is sorted last."""

    text: str
    value: str


@dataclass(frozen=True)
class Column:
    """A column: its heading, whether it holds numbers, and what it means."""

    heading: str
    numeric: bool
    meaning: str


COLUMNS = (
    Column("kernel", False, "name without template arguments; the full one is inside"),
    Column("op", False, "innermost op that launched most of it"),
    Column("family", False, "what it does, from its name"),
    Column("precision", False, "type that is multiplied, from the name"),
    Column("tensor cores", False, "from the name, where it tells"),
    Column("calls", True, "how many in the trace"),
    Column("total", True, "durations, summed"),
    Column("mean", True, "mean duration"),
    Column("share", True, "of the GPU busy time of the trace"),
    Column("reported", True, "occupancy as the profiler wrote it, mean weighted by time"),
    Column(
        "recomputed",
        True,
        "occupancy from registers, shared memory, block size and device, mean weighted by time",
    ),
    Column("limited by", False, "what bounds the recomputed occupancy for most of the time"),
    Column("waves", True, "blocks / blocks that the device holds at a time, mean weighted by time"),
)


@dataclass(frozen=True)
class KernelCells:
    """A row of the table.

    Attributes:
        group: how it is drawn.
        short_name: the first cell.
        details: labelled sentences below it.
        total_us: durations, summed; empty where unknown.
        cells: the other columns.
    """

    group: Group
    short_name: str
    details: list[tuple[str, str]]
    total_us: str
    cells: list[Cell]


@dataclass(frozen=True)
class OccupancyCells:
    """A row of the occupancy chart; positions in percent of its width, empty where unknown.

    ``least_x`` and ``most_x`` are the range of the recomputed occupancy, empty where it is one
    value.
    """

    group: Group
    name: str
    reported: str
    recomputed: str
    reported_x: str
    recomputed_x: str
    least_x: str
    most_x: str
    limiter: str
    shared_memory: str
    time: str
    why: str


@dataclass(frozen=True)
class Kernels:
    """The table, the chart, and what they leave out.

    Columns of which nothing is known of any kernel are not in the table.
    """

    summary: str
    columns: list[Column]
    rows: list[KernelCells]
    rest: str
    occupancies: list[OccupancyCells]
    has_ranges: bool
    occupancy_notes: list[str]


def kernels_of(table: KernelTable, unit: str) -> Kernels | None:
    """Return the kernels as cells; None where there are none.

    Args:
        table: the kernels.
        unit: what a forward is in one word.
    """
    if not table.rows:
        return None
    names, kernels = counted(table.names, "name"), counted(table.kernels, "kernel")
    shown = told_apart(dict.fromkeys(row.name for row in table.rows))
    columns, rows = _known_columns([_row(row, shown[row.name], unit) for row in table.rows])
    with_occupancy = _with_occupancy(table.rows)[:MOST_OCCUPANCIES]
    occupancies = [_occupancy(row, shown[row.name]) for row in with_occupancy]
    return Kernels(
        summary=f"{kernels} of {names}, {duration(table.kernel_time_us)} summed",
        columns=columns,
        rows=rows,
        rest=_rest(table),
        occupancies=occupancies,
        has_ranges=any(row.least_x for row in occupancies),
        occupancy_notes=list(_occupancy_notes(table)),
    )


def _known_columns(rows: list[KernelCells]) -> tuple[list[Column], list[KernelCells]]:
    """Leave out the columns, beside the name, in which no row knows anything."""
    first, *others = COLUMNS
    known = [place for place in range(len(others)) if any(row.cells[place].value for row in rows)]
    kept = [replace(row, cells=[row.cells[place] for place in known]) for row in rows]
    return [first, *(others[place] for place in known)], kept


def _rest(table: KernelTable) -> str:
    if not table.rest_names:
        return ""
    kernels = counted(table.rest_count, "kernel")
    names = counted(table.rest_names, "other name")
    return f"and {kernels} of {names}, {duration(table.rest_us)}, not listed"


def _row(row: KernelRow, shown: str, unit: str) -> KernelCells:
    cores = {True: "yes", False: "no", None: NOT_KNOWN}[row.tensor_core]
    total = _number(row.total_us, duration(row.total_us))
    return KernelCells(
        group=GROUPS[group_of("kernel", row.family)],
        short_name=shown,
        details=list(_details(row, unit)),
        total_us=total.value,
        cells=[
            _word(_op(row)),
            _word(row.family),
            _word(row.precision),
            Cell(cores, "" if row.tensor_core is None else cores),
            Cell(f"{row.count:,}", str(row.count)),
            total,
            _number(row.mean_us, duration(row.mean_us)),
            _number(row.share, share(row.share)),
            _number(row.occupancy_reported, percentage(row.occupancy_reported)),
            _number(row.occupancy, percentage(row.occupancy)),
            _word(_limiter(row)),
            _number(row.waves, "" if row.waves is None else unitless(row.waves)),
        ],
    )


def _op(row: KernelRow) -> str | None:
    """Return the innermost op of the commonest chain."""
    return row.op_chains[0].rpartition(CHAIN_SEPARATOR)[2] if row.op_chains else None


def _number(value: float | None, words: str) -> Cell:
    return Cell(NOT_KNOWN, "") if value is None else Cell(words, repr(value))


def _word(value: str | None) -> Cell:
    return Cell(NOT_KNOWN, "") if value is None else Cell(value, value)


def _limiter(row: KernelRow) -> str | None:
    limiter = row.limiter
    return None if limiter is None else limiter.replace("_", " ").replace("|", ", ")


def _details(row: KernelRow, unit: str) -> Iterator[tuple[str, str]]:
    if row.name != row.short_name:
        yield "full name", row.name
    yield "longest", duration(row.max_us)
    if row.per_forward is not None:
        yield f"per {unit}", f"{row.per_forward:g}"
    launch = [
        f"grid {row.grid}" if row.grid else "",
        f"block {row.block}" if row.block else "",
        f"{row.registers} registers" if row.registers is not None else "",
        f"{size(row.shared_memory)} shared memory" if row.shared_memory is not None else "",
    ]
    known = ", ".join(part for part in launch if part)
    if known:
        of = f", the commonest of {row.configurations:,} configurations"
        yield "launched as", f"{known}{of if row.configurations > 1 else ''}"
    if _has_range(row):
        yield "occupancy", _range(row)
    for chain in row.op_chains:
        yield "launched by", short_chain(chain)
    if row.op_chains_distinct > len(row.op_chains):
        others = row.op_chains_distinct - len(row.op_chains)
        yield "launched by", counted(others, "other op chain")
    if row.source:
        yield "at", row.source


def _with_occupancy(rows: Sequence[KernelRow]) -> list[KernelRow]:
    known = [row for row in rows if row.occupancy is not None or row.occupancy_reported is not None]
    return sorted(known, key=lambda row: -(row.total_us or 0.0))


def _occupancy(row: KernelRow, shown: str) -> OccupancyCells:
    return OccupancyCells(
        group=GROUPS[group_of("kernel", row.family)],
        name=shown,
        reported=NOT_KNOWN
        if row.occupancy_reported is None
        else percentage(row.occupancy_reported),
        recomputed=NOT_KNOWN if row.occupancy is None else percentage(row.occupancy),
        reported_x=_x(row.occupancy_reported),
        recomputed_x=_x(row.occupancy),
        least_x=_x(row.occupancy_least) if _has_range(row) else "",
        most_x=_x(row.occupancy_most) if _has_range(row) else "",
        limiter=_limiter(row) or NOT_KNOWN,
        shared_memory=NOT_KNOWN if row.shared_memory is None else size(row.shared_memory),
        time=duration(row.total_us),
        why=_why(row),
    )


def _x(percent: float | None) -> str:
    """Return where a percentage lies in the chart, which leaves room for its marks."""
    return "" if percent is None else f"{3 + 0.94 * min(max(percent, 0.0), 100.0):.2f}%"


def _has_range(row: KernelRow) -> bool:
    return row.occupancy_least != row.occupancy_most


def _range(row: KernelRow) -> str:
    ends = percentage(row.occupancy_least), percentage(row.occupancy_most)
    return f"recomputed {' to '.join(ends)}, depending on the launch"


def _why(row: KernelRow) -> str:
    if row.reported_zero_share == 1:
        return f"0 only because {size(row.shared_memory)} of shared memory exceed 48 KiB"
    if row.reported_zero_share > 0:
        part = share(row.reported_zero_share)
        return f"{part} of its time reported as 0 only because shared memory exceeds 48 KiB"
    if row.occupancy_reported == 0 and row.occupancy is not None and row.occupancy < 1:
        return "0 after rounding: so small a grid fills less than 1 %"
    return _range(row) if _has_range(row) else ""


def _occupancy_notes(table: KernelTable) -> Iterator[str]:
    known = _with_occupancy(table.rows)
    if len(known) > MOST_OCCUPANCIES:
        left = known[MOST_OCCUPANCIES:]
        time = duration(sum_of_known([row.total_us for row in left]))
        yield f"{counted(len(left), 'more name')}, {time}, in the table of kernels"
    misreported = [row for row in known if row.reported_zero_share > 0]
    if misreported:
        yield (
            f"{counted(len(misreported), 'name')} reported as 0 although warps run: Kineto asks the"
            " occupancy calculator with the default limit of 48 KiB of shared memory per block,"
            " and is told 0 for every block above it. The launch API plays no part."
        )
    unknown = [row for row in table.rows if row.occupancy is None]
    if unknown:
        names = counted(len(unknown), "name")
        time = duration(sum_of_known([row.total_us for row in unknown]))
        yield f"not recomputed for {names}, {time}: launch or device unknown"

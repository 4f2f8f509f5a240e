"""``--baseline`` and ``--baseline-tolerance``: findings that are known and gate no more."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from analyze.cli.help_page import BASELINE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analyze.baseline.model import Baseline
    from analyze.engine.result import TraceReport

_DEFAULT_PERCENT = 20


def _as_share(_ctx: click.Context, _parameter: click.Parameter, percent: float) -> float:
    return percent / 100


baseline_option = click.option(
    "--baseline",
    panel=BASELINE,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Findings in this file are known: they do not fail the check unless they got worse."
    " `analyze baseline` writes it. Default: `baseline` of the configuration.",
)
tolerance_option = click.option(
    "--baseline-tolerance",
    "tolerance",
    panel=BASELINE,
    type=click.FloatRange(min=0, max=1e6),
    default=_DEFAULT_PERCENT,
    show_default=True,
    metavar="PERCENT",
    callback=_as_share,
    help="A known finding is worse when it costs this much more than it did.",
)


@dataclass(frozen=True)
class Known:
    """What is known before a check.

    Attributes:
        file: the baseline file; None without one.
        baseline: what it holds.
        tolerance: the relative change of an amount that is none.
    """

    file: Path | None = None
    baseline: "Baseline | None" = None
    tolerance: float = 0.0

    def beside(self, reports: "Sequence[TraceReport]") -> "Sequence[TraceReport]":
        """Return the reports of all traces, compared with the baseline if there is one."""
        if self.baseline is None:
            return reports
        from analyze.baseline.comparing import compared  # noqa: PLC0415

        return compared(reports, self.baseline, str(self.file), self.tolerance)


def read_known(file: Path | None, tolerance: float) -> Known:
    """Return what a baseline file, if there is one, says.

    Raises:
        AnalyzeError: it cannot be read.
    """
    if file is None:
        return Known()
    from analyze.baseline.file import read_baseline  # noqa: PLC0415

    return Known(file, read_baseline(file), tolerance)

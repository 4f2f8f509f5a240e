"""``--baseline`` and ``--baseline-tolerance``: findings that are known and gate no more."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from analyze.cli.help_page import BASELINE, Option
from analyze.cli.traces import INPUTS, refuse_overwriting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analyze.baseline.model import Baseline
    from analyze.config import Config
    from analyze.engine.result import TraceReport

DEFAULT_PERCENT = 20


def _number(_ctx: click.Context, _parameter: click.Parameter, given: float | None) -> float | None:
    """Refuse what is no number: no range holds back ``nan``, and nothing is ever worse by it."""
    if given is not None and math.isnan(given):
        raise click.BadParameter("nan is no number of percent")
    return given


baseline_option = click.option(
    "--baseline",
    cls=Option,
    panel=BASELINE,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Findings in this file are known: they do not fail the check unless they got worse."
    " `analyze baseline` writes it. Default: `baseline` of the configuration.",
)
tolerance_option = click.option(
    "--baseline-tolerance",
    "tolerance",
    cls=Option,
    panel=BASELINE,
    type=click.FloatRange(min=0, max=1e6),
    metavar="PERCENT",
    callback=_number,
    help="A known finding is worse when it costs this much more than it did. Default:"
    f" `baseline-tolerance` of the configuration, else {DEFAULT_PERCENT}.",
)


class Known(NamedTuple):
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


def tolerance_of(given: float | None, config: "Config") -> float:
    """Return the tolerance as a share.

    Args:
        given: by the option, in percent.
        config: what holds where none is given.
    """
    configured = config.baseline_tolerance
    percent = configured if given is None else given
    return (DEFAULT_PERCENT if percent is None else percent) / 100


def read_known(file: Path | None, tolerance: float, *outputs: Path) -> Known:
    """Return what a baseline file, if there is one, says.

    Args:
        file: the baseline.
        tolerance: the relative change of an amount that is none.
        outputs: the files that will be written.

    Raises:
        AnalyzeError: it cannot be read, or is one of the outputs.
    """
    if file is None:
        return Known()
    refuse_overwriting([file], *outputs, what=INPUTS)
    from analyze.baseline.file import read_baseline  # noqa: PLC0415

    return Known(file, read_baseline(file), tolerance)

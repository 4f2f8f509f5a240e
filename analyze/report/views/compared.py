"""What a comparison of traces says of one of them beside what its report has."""

from analyze.diff.comparability import share_outside_forwards
from analyze.diff.same_work import input_shapes
from analyze.report.compare import paths
from analyze.report.views.model import Compared, CostliestKernel, PrecisionPath
from analyze.tables.build import Trace


def compared(trace: Trace) -> Compared:
    """Return how the work of a trace runs."""
    found = paths(trace)
    path, kernel = found["precision_path"], found["occupancy"]
    return Compared(
        vendor=found["vendor"],
        precision_path=None if path is None else PrecisionPath(**path),
        occupancy=None if kernel is None else CostliestKernel(**kernel),
        gpu_time_share_outside_forwards=share_outside_forwards(trace),
        input_shapes=input_shapes(trace),
    )

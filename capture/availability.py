"""Which variants this machine can run, and why not the others."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from capture.devices import Notify
from capture.errors import CaptureError
from capture.suite import forget_compiled, prepared
from capture.table import aligned
from capture.trial import try_variant
from capture.variants import VARIANTS, Variant
from capture.words import one_line
from capture.workload import Inputs, Workload


@dataclass(frozen=True)
class Availability:
    """Whether a variant runs here.

    Attributes:
        variant: its name.
        answer: ``yes``, ``no``, or ``not tried``.
        text: what it is, or why it does not run.
    """

    variant: str
    answer: str
    text: str


def availabilities(workload: Workload, notify: Notify) -> list[Availability]:
    """Run every variant once with a workload."""
    try:
        inputs = workload.inputs()
    except (RuntimeError, MemoryError) as error:
        raise CaptureError(f"the inputs cannot be made here: {one_line(str(error))}") from None
    found = []
    for number, variant in enumerate(VARIANTS, 1):
        notify(f"[{number}/{len(VARIANTS)}] {variant.name}")
        found.append(_availability(variant, workload, inputs))
        forget_compiled()
    return found


def _availability(variant: Variant, workload: Workload, inputs: Inputs) -> Availability:
    if variant.only_by_name:
        return Availability(variant.name, "not tried", f"{variant.description}; name it to try")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refused = try_variant(prepared(variant, workload), workload, inputs)
    if refused is None:
        return Availability(variant.name, "yes", variant.description)
    return Availability(variant.name, "no", refused.reason)


def availability_table(found: Sequence[Availability]) -> str:
    """Return the table that ``capture --list`` prints."""
    rows = [(entry.variant, entry.answer, entry.text) for entry in found]
    return aligned(("variant", "runs here", "what it is, or why not"), rows, right=())

"""Published peaks of devices' matrix units; the figures and their sources are in ``peaks.yaml``."""

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from analyze.kernels.device import DeviceLimits
from analyze.packaged import read_table


class Peak(NamedTuple):
    """Dense peaks of one device.

    Attributes:
        device: the whole name in a trace, as a regular expression.
        sms: SMs (compute units) of the whole device.
        tflops: by input type, in TFLOP/s.
        source: where the figures were published.
    """

    device: str
    sms: int
    tflops: Mapping[str, float]
    source: str


def published_peak(device: DeviceLimits | None) -> Peak | None:
    """Return the peaks of a device; None where none is known, and for a part of a device."""
    if device is None:
        return None
    found = (peak for peak in _peaks() if re.fullmatch(peak.device, device.name, re.IGNORECASE))
    peak = next(found, None)
    return peak if peak is not None and peak.sms == device.sm_count else None


@cache
def _peaks() -> tuple[Peak, ...]:
    data = read_table("kernels/peaks.yaml")
    return tuple(
        Peak(
            entry["device"],
            entry["sms"],
            {dtype: float(tflops) for dtype, tflops in entry["tflops"].items()},
            entry["source"],
        )
        for entry in data["peaks"]
    )

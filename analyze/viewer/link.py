"""The link that makes the Perfetto viewer read a trace from this machine and show a moment of it.

Its parameters are described in Perfetto's docs/visualization/deep-linking-to-perfetto-ui.md:
``url`` is what to read, ``visStart`` and ``visEnd`` are the visible time, and ``ts``, ``dur``,
``pid``, ``tid`` name the slice to select. Times are nanoseconds in the time of the file.
"""

import re
from dataclasses import dataclass
from urllib.parse import quote, urlencode

VIEWER = "https://ui.perfetto.dev"

PORT = 9001
"""The only port of this machine that the viewer's content security policy lets it read from
(``connect-src`` in Perfetto's ui/src/frontend/index.ts)."""

_MARGIN_NS = 500_000
"""Shown on either side of a short slice: about what a small forward takes."""

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_SUFFIXES = re.compile(r"(\.json|\.gz|\.zst|\.trace)+$")
_MAX_NAME = 80


@dataclass(frozen=True)
class Moment:
    """What the viewer is to show; times in nanoseconds.

    Attributes:
        start_ns, dur_ns: of the slice to select.
        first_ns, last_ns: of the trace; nothing outside is shown.
        pid, tid: of the slice, where it is an annotation.
    """

    start_ns: int
    dur_ns: int
    first_ns: int
    last_ns: int
    pid: int | None = None
    tid: int | None = None


def link_to(url: str, moment: Moment | None = None, viewer: str = VIEWER) -> str:
    """Return the link under which the viewer reads ``url`` and shows ``moment``."""
    asked: dict[str, object] = {"url": url}
    if moment is not None:
        start_ns, end_ns = _visible(moment)
        asked |= {"visStart": start_ns, "visEnd": end_ns}
        asked |= {"ts": moment.start_ns, "dur": moment.dur_ns}
        asked |= {k: v for k in ("pid", "tid") if (v := getattr(moment, k)) is not None}
    return f"{viewer}/#!/?{urlencode(asked, safe=':/', quote_via=quote)}"


def _visible(moment: Moment) -> tuple[int, int]:
    """Return the time to show: the slice with twice its length on either side."""
    margin_ns = max(2 * moment.dur_ns, _MARGIN_NS)
    start_ns = max(moment.start_ns - margin_ns, moment.first_ns)
    end_ns = min(moment.start_ns + moment.dur_ns + margin_ns, moment.last_ns)
    return start_ns, max(end_ns, start_ns + 1)


def safe_name(name: str, ending: str | None = None) -> str:
    """Return a file name that needs no quoting in a link.

    Args:
        name: of the trace.
        ending: replaces its suffixes; None keeps them.
    """
    stem = name if ending is None else _SUFFIXES.sub("", name)
    return (_UNSAFE.sub("_", stem)[-_MAX_NAME:] or "trace") + (ending or "")

"""Deterministic findings from PyTorch-profiler traces.

``load`` reads a trace into tables, ``check`` runs rules on it; the command is ``analyze``.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analyze.api import FindingsError, Report, Trace, check, load, read_results
    from analyze.engine.loading import load_rules
    from analyze.engine.result import Finding
    from analyze.engine.rule import Rule
    from analyze.errors import AnalyzeError, NothingToCheckError, RuleError, TraceError

__all__ = [
    "AnalyzeError",
    "Finding",
    "FindingsError",
    "NothingToCheckError",
    "Report",
    "Rule",
    "RuleError",
    "Trace",
    "TraceError",
    "check",
    "load",
    "load_rules",
    "read_results",
]

_MODULES = {
    "AnalyzeError": "analyze.errors",
    "Finding": "analyze.engine.result",
    "NothingToCheckError": "analyze.errors",
    "Rule": "analyze.engine.rule",
    "RuleError": "analyze.errors",
    "TraceError": "analyze.errors",
    "load_rules": "analyze.engine.loading",
}
"""Where the names are that do not come from ``analyze.api``."""

# polars' allocator keeps freed pages by default, which shows as memory that a large trace does not
# need. It reads this when polars is first imported; what the user has set stays.
os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:50,muzzy_decay_ms:0")


if not TYPE_CHECKING:  # a type checker sees the imports above, and misspelt names

    def __getattr__(name: str) -> object:
        """Import what a name stands for when it is first used: ``analyze --help`` needs none."""
        if name in __all__:
            return getattr(import_module(_MODULES.get(name, "analyze.api")), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Name the public API, for completion."""
    return sorted({*globals(), *__all__})

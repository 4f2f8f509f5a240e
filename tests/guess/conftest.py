"""Guess files and traces to guess about."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analyze.guess.loading import load_guesses
from analyze.report.guess import compare_guesses
from analyze.tables.build import Trace, load_trace

Compare = Callable[..., dict[str, Any]]


@pytest.fixture
def compare(tmp_path: Path, samples: Path) -> Compare:
    """Write the guesses to a file and compare a sample, or a trace, with it."""

    def run(trace: str | Trace, text: str) -> dict[str, Any]:
        file = tmp_path / "guess.yaml"
        file.write_text(f"version: 1\n{text}\n")
        (guesses,) = load_guesses([file])
        loaded = load_trace(samples / f"{trace}.json.gz") if isinstance(trace, str) else trace
        return compare_guesses(loaded, guesses.guesses, str(file))

    return run


def by_key(comparison: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The guesses by what they are about."""
    return {row["key"]: row for row in comparison["guesses"]}

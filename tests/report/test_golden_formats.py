"""The formats for programs and for browsers, byte for byte, of one sample.

After a wanted change, rewrite them with ``UPDATE_GOLDEN=1`` and read the difference.
"""

from pathlib import Path

import pytest

from analyze.report.formats import FORMATS, Rendering, render
from tests.report.sample_reports import report_of
from tests.report.test_golden_text import GOLDEN, compare

SAMPLE = "synthetic-sdpa-flash"


@pytest.mark.parametrize("name", ["json", "jsonl", "html"])
def test_formats(name: str, samples: Path) -> None:
    report = report_of(samples / f"{SAMPLE}.json.gz")
    compare(render(name, [report], Rendering()), f"{SAMPLE}.{name}", samples)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_held(name: str) -> None:
    """The text is held as ``report`` and ``verbose``; SARIF by ``test_sarif.py``."""
    kinds = {"text": ("report.txt", "verbose.txt"), "sarif": ("sarif",)}
    for kind in kinds.get(name, (f"{name}.txt",)):
        assert list(GOLDEN.glob(f"*.{kind}"))

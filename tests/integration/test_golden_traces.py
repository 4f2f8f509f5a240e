"""What ``annotate`` and ``trim`` write of a sample, byte for byte.

After a wanted change, rewrite the files with ``UPDATE_GOLDEN=1 pytest
tests/integration/test_golden_traces.py`` and read the difference.
"""

import gzip
import os
from pathlib import Path

import pytest

from tests.conftest import RunAnalyze

GOLDEN = Path(__file__).parent / "golden"
SAMPLE = "synthetic-sdpa-cudnn.json.gz"

GZIP_WITHOUT_NAME = b"\x1f\x8b\x08\x00"
"""Magic, deflate, no flags: nothing of the file's name (RFC 1952, section 2.3)."""
NO_TIME = bytes(4)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("annotated", ("annotate",)),
        ("trimmed", ("trim", "--steps", "3")),
        ("trimmed-anonymous", ("trim", "--steps", "3", "--anonymise")),
    ],
)
def test_written_traces(
    name: str,
    arguments: tuple[str, ...],
    samples: Path,
    run_analyze: RunAnalyze,
    tmp_path: Path,
) -> None:
    command, *options = arguments
    plain, packed = tmp_path / "copy.json", tmp_path / "copy.json.gz"
    for output in (plain, packed):
        done = run_analyze(command, samples / SAMPLE, *options, "-o", output)
        assert done.returncode == 0, done.stderr
    golden = GOLDEN / f"synthetic-sdpa-cudnn.{name}.json"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_bytes(plain.read_bytes())
    assert plain.read_bytes() == golden.read_bytes()
    assert packed.read_bytes().startswith(GZIP_WITHOUT_NAME + NO_TIME)
    assert gzip.decompress(packed.read_bytes()) == golden.read_bytes()

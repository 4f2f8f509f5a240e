"""Read and write baseline files."""

from collections import Counter
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from analyze.baseline.model import FORMAT_VERSION, Baseline
from analyze.engine.validation import key_problems
from analyze.errors import AnalyzeError
from analyze.report.files import write_whole
from analyze.report.json_writer import to_json
from analyze.words import printable

_MAX_BYTES = 64 << 20
"""Some 60,000 findings; what is larger is another file."""


def read_baseline(file: Path) -> Baseline:
    """Return the baseline in a file.

    Raises:
        AnalyzeError: it cannot be read or is no baseline; in one line, with what to do.
    """
    data = _json(file)
    if not isinstance(data, dict) or "version" not in data or "findings" not in data:
        raise AnalyzeError(f"{file}: not a baseline; `analyze baseline create` writes one")
    version = data["version"]
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise AnalyzeError(
            f"{file}: baseline format {version}, but this program reads {FORMAT_VERSION};"
            " upgrade kinetolint"
        )
    try:
        baseline = Baseline.model_validate(data)
    except ValidationError as error:
        problem, *others = key_problems(error, Baseline, data)
        more = f" (and {len(others)} more)" if others else ""
        raise AnalyzeError(f"{file}: {problem.in_one_line()}{more}") from None
    for (_, fingerprint), count in Counter(entry.key for entry in baseline.findings).items():
        if count > 1:
            raise AnalyzeError(
                f"{file}: the finding {printable(fingerprint)} is listed {count} times; keep one"
            )
    return baseline


def write_baseline(baseline: Baseline, file: Path) -> None:
    """Write a baseline, whole or not at all.

    Raises:
        AnalyzeError: the file cannot be written.
    """
    write_whole(file, to_json([baseline.to_dict()]))


def _json(file: Path) -> Any:
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise AnalyzeError(f"{file}: too large for a baseline")
        return orjson.loads(file.read_bytes())
    except FileNotFoundError:
        raise AnalyzeError(
            f"{file}: no such baseline; `analyze baseline create TRACE... -o {file}` writes it"
        ) from None
    except OSError as error:
        raise AnalyzeError(f"{file}: cannot be read: {error.strerror}") from None
    except orjson.JSONDecodeError as error:
        raise AnalyzeError(f"{file}: not JSON: {error}") from None

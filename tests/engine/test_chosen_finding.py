"""Which finding is meant by a word: one numbering and one set of names for every command."""

import dataclasses
import json
from pathlib import Path

import pytest

from analyze.engine.chosen_finding import chosen_number
from analyze.errors import AnalyzeError
from tests.conftest import RunAnalyze
from tests.report.report_factory import finding, report_of

REPORT = report_of(*(
    dataclasses.replace(finding(code=code, name=name), fingerprint=fingerprint, explained_by=cause)
    for code, name, fingerprint, cause in (
        ("COPY101", "hidden-memcpy", "12ab00", None),
        ("ATTN103", "unfused", "12cd00", "COPY101"),
        ("COPY101", "hidden-memcpy", "77ef00", None),
    )
))  # fmt: skip


@pytest.mark.parametrize(
    ("word", "number"),
    [
        ("1", 1),
        ("2", 2),
        ("3", 3),
        ("COPY101", 1),
        ("copy101", 1),
        ("unfused", 2),
        ("12c", 2),
        ("77", 3),
    ],
)
def test_a_finding_is_meant_by_number_code_name_or_fingerprint(word: str, number: int) -> None:
    assert chosen_number(REPORT, word) == number


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("0", "no finding 0: it has 3 findings: COPY101, ATTN103"),
        ("4", "no finding 4: "),
        ("9" * 5000, "no finding 9"),
        ("12", "several fingerprints begin with 12: "),
        ("", "no finding : "),
        ("COPY10", "did you mean COPY101?"),
        ("\x1b[2J", r"no finding \x1b[2J: "),
    ],
)
def test_what_means_no_finding_is_answered_with_those_there_are(word: str, says: str) -> None:
    with pytest.raises(AnalyzeError) as refused:
        chosen_number(REPORT, word)
    assert says in str(refused.value)
    assert len(str(refused.value)) < 1000


def test_without_findings_nothing_can_be_meant() -> None:
    with pytest.raises(AnalyzeError, match="nothing was found in it"):
        chosen_number(report_of(), "1")


def test_the_number_is_that_in_the_json(
    samples: Path, tmp_path: Path, run_analyze: RunAnalyze
) -> None:
    """Also of a finding that another explains, which the text report does not list."""
    path = samples / "synthetic-sdpa-math.json.gz"
    found = json.loads(run_analyze(path, "--format", "json").stdout)["findings"]
    assert any(each["explained_by"] for each in found)
    for number, each in enumerate(found, start=1):
        output = tmp_path / f"{number}.json"
        trimmed = run_analyze("trim", path, "--around", str(number), "-o", output)
        assert f" of {each['code']}" in trimmed.stderr

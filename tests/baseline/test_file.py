"""Baseline files: what is written is read again, and what is no baseline is said in one line."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyze.baseline.file import read_baseline, write_baseline
from analyze.baseline.updating import Acceptance, create
from analyze.errors import AnalyzeError
from tests.baseline.made import finding, report

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=500)
NUMBER = st.floats(allow_nan=False, allow_infinity=False) | st.none()


@given(message=TEXT, text=TEXT, number=NUMBER, count=st.integers(0, 1 << 60))
def test_what_is_written_is_read_again(
    message: str, text: str, number: float | None, count: int, tmp_path_factory: Any
) -> None:
    file = tmp_path_factory.getbasetemp() / "baseline.json"
    hostile = finding(
        message=message, measures={"n": count, "us": number, "why": text}, savings_us=number
    )
    made = create([report(hostile)], Acceptance("2026-01-02", text or None), by_trace=False)
    write_baseline(made, file)
    assert read_baseline(file) == made
    assert len(file.read_text()) < 10_000  # long texts are cut


def test_a_file_has_one_key_a_line_and_is_the_same_every_time(tmp_path: Path) -> None:
    findings = [finding(code=f"MINE10{n}", fingerprint=f"{n:016x}") for n in range(5)]
    texts = []
    for order in (findings, findings[::-1]):
        made = create([report(*order)], Acceptance("2026-01-02"), by_trace=False)
        write_baseline(made, tmp_path / "baseline.json")
        texts.append((tmp_path / "baseline.json").read_text())
    assert texts[0] == texts[1]
    assert '      "code": "MINE100",\n' in texts[0]


GOOD = json.loads(
    json.dumps(create([report(finding())], Acceptance("2026-01-02"), by_trace=False).to_dict())
)


def changed(**keys: Any) -> dict[str, Any]:
    return {**GOOD, "findings": [{**GOOD["findings"][0], **keys}]}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "not JSON"),
        ("[]", "not a baseline; `analyze baseline create` writes one"),
        ('{"traceEvents": []}', "not a baseline"),
        (json.dumps({**GOOD, "version": 2}), "baseline format 2"),
        (json.dumps({**GOOD, "version": "1"}), "version"),
        (json.dumps({**GOOD, "version": True}), "version: must be a whole number"),
        (json.dumps({**GOOD, "version": 0}), "version: must be at least 1"),
        (json.dumps({**GOOD, "finding": []}), "json: unknown key 'finding'"),
        (json.dumps(changed(severity="fatal")), "findings[0].severity"),
        (json.dumps(changed(savings_us="much")), "findings[0].savings_us"),
        (json.dumps(changed(date="yesterday")), "findings[0].date"),
        (json.dumps(changed(date="2026-13-45")), "findings[0].date: must be a day as year-month"),
        (json.dumps(changed(units_total=-1)), "findings[0].units_total"),
        (json.dumps(changed(reasn="typo")), "did you mean"),
        (json.dumps({**GOOD, "findings": GOOD["findings"] * 2}), "is listed 2 times; keep one"),
        (json.dumps({**GOOD, "findings": [{}]}), "(and"),
    ],
)
def test_what_is_no_baseline_is_said_in_one_line(content: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    file.write_text(content)
    with pytest.raises(AnalyzeError) as raised:
        read_baseline(file)
    assert str(raised.value).startswith(f"{file}: ")
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
    assert raised.value.exit_code == 2

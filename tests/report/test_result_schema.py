"""The JSON that is written is the JSON that is documented: no key more, no key less."""

import json
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from analyze.baseline.comparing import compared
from analyze.baseline.model import Baseline, Entry
from analyze.cli.expectations import read_guesses
from analyze.engine import result
from analyze.engine.run import run_rules
from analyze.report.formats import Rendering
from analyze.report.json_writer import json_bytes, to_json, write_json
from analyze.report.jsonl import write_jsonl
from analyze.report.result_schema import result_schema
from analyze.report.views import model as views
from analyze.tables.build import load_trace
from tests.conftest import MakeTrace
from tests.report.sample_reports import report_of, reports_of, rules

SCHEMA = result_schema()
FIRST_KEYS = Path(__file__).with_name("golden") / "result_keys_of_schema_version_1.json"
"""The keys that every result of this ``schema_version`` has, from its first day."""

CLASSES = {
    "result": result.TraceReport,
    "unit": result.UnitCount,
    "finding": result.Finding,
    "place": result.Place,
    "folded": result.Folded,
    "passed": result.Checked,
    "not_applicable": result.NotApplicable,
    "failure": result.RuleFailure,
    "ignored": result.Ignored,
    "vanished": result.Vanished,
    "views": views.Views,
    "timeline": views.Timeline,
    "left_out": views.LeftOut,
    "thread": views.Thread,
    "spans": views.Spans,
    "calls": views.Calls,
    "stream": views.Stream,
    "gpu_slices": views.GpuSlices,
    "device": views.Device,
    "idle_times": views.IdleTimes,
    "family_time": views.FamilyTime,
    "kernel_table": views.KernelTable,
    "kernel_row": views.KernelRow,
}


def strictly(text: str) -> Any:
    """Decode JSON as the standard has it: Python alone would take NaN and Infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def validate(document: Any) -> None:
    problems = list(Draft202012Validator(SCHEMA).iter_errors(document))
    deepest = [inner for problem in problems for inner in problem.context or [problem]]
    assert not problems, [f"{p.json_path}: {p.message[:200]}" for p in deepest]


def subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
    for part in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(part, dict | list):
            yield from subschemas(part)


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_every_key_is_described_and_required() -> None:
    for schema in subschemas(SCHEMA):
        for name, key in schema.get("properties", {}).items():
            assert key.get("description", "").endswith((".", 'kernel".')), name
        if "properties" in schema:
            assert schema["required"] == list(schema["properties"])
            assert schema["additionalProperties"] is False


def keys_of(schema: dict[str, Any]) -> dict[str, list[str]]:
    """The keys of each object, by the name of its definition."""
    return {
        name: sorted(part["properties"])
        for name, part in schema["$defs"].items()
        if "properties" in part
    }


def test_keys_added_later_have_a_default_and_none_is_removed() -> None:
    """Results that are stored stay readable: see "Add a writer" in CONTRIBUTING.md."""
    first = json.loads(FIRST_KEYS.read_text())
    now = keys_of(SCHEMA)
    for name, keys in first.items():
        removed = set(keys) - set(now.get(name, ()))
        assert not removed, f"{name}: removed or renamed, so raise schema_version: {removed}"
        added = set(now[name]) - set(keys)
        required = {
            key for key in added if "default" not in SCHEMA["$defs"][name]["properties"][key]
        }
        assert not required, f"{name}: give what is new a default in the schema: {required}"


def test_a_default_says_unknown_or_empty_and_is_as_documented() -> None:
    found = 0
    for schema in subschemas(SCHEMA):
        if "default" in schema:
            assert schema["default"] in (None, [], {})
            own = {**schema, "$defs": SCHEMA["$defs"]}
            assert Draft202012Validator(own).is_valid(schema["default"])
            found += 1
    assert found


@pytest.mark.parametrize("name", CLASSES)
def test_the_keys_are_those_of_the_result_object(name: str) -> None:
    documented = set(SCHEMA["$defs"][name]["properties"])
    assert documented == {field.name for field in fields(CLASSES[name])}


def test_the_version_is_that_of_the_result_object() -> None:
    version = SCHEMA["$defs"]["result"]["properties"]["schema_version"]
    assert version["const"] == result.SCHEMA_VERSION


def test_results_of_all_samples_are_as_documented(samples: Path) -> None:
    reports = reports_of(samples)
    validate(strictly(write_json(reports, Rendering())))
    for report in reports:
        validate(strictly(write_json([report], Rendering())))
        validate(strictly(write_json([replace(report, views=None)], Rendering())))


@pytest.mark.parametrize("path", [(), ("coverage",), ("findings", 0)], ids=str)
def test_an_undocumented_key_is_noticed(path: tuple[str | int, ...], samples: Path) -> None:
    data = strictly(write_json([report_of(samples / "synthetic-naive.json.gz")], Rendering()))
    part = data
    for key in path:
        part = part[key]
    part["another"] = 1
    with pytest.raises(AssertionError, match="another"):
        validate(data)


def test_guesses_are_as_documented(samples: Path, tmp_path: Path) -> None:
    """Their findings have evidence of its own form."""
    guess = tmp_path / "guess.yaml"
    guess.write_text("version: 1\ngpu_ops: 5\ncopies: none\norder: [gemm, softmax, gemm]\n")
    guesses = read_guesses([guess], [])
    trace = load_trace(samples / "synthetic-naive.json.gz")
    found = [rule for file in guesses.files for rule in file.rules]
    report = guesses.explained(run_rules(trace, found), trace)
    assert any("change" in row for finding in report.findings for row in finding.evidence)
    validate(strictly(write_json([report], Rendering())))


def test_findings_beside_a_baseline_are_as_documented(samples: Path) -> None:
    report = report_of(samples / "synthetic-naive.json.gz")
    better = {finding.code: finding for finding in report.findings}["COPY101"]
    entry = Entry(
        code=better.code,
        name=better.name,
        fingerprint=better.fingerprint,
        severity=better.severity,
        state=better.state,
        message=better.message,
        per=better.per,
        units_mismatching=3,
        units_total=3,
        savings_us=1e6,
        date="2026-01-31",
        reason="for now",
    )
    gone = entry.model_copy(update={"code": report.passed[0].code, "fingerprint": "0" * 16})
    [seen] = compared([report], Baseline(findings=[entry, gone]), "known.json")
    states = {finding.code: finding.baseline for finding in seen.findings}
    assert (states["COPY101"], states["ATTN103"]) == ("better", "new")
    assert [vanished.code for vanished in seen.vanished] == [gone.code]
    validate(strictly(write_json([seen], Rendering())))


def test_json_lines_are_one_result_each(samples: Path) -> None:
    reports = [
        replace(report, trace=f"a\u2028b\x85c\n{report.trace}") for report in reports_of(samples)
    ]
    text = write_jsonl(reports, Rendering())
    assert text.endswith("\n")
    lines = text.splitlines()
    assert len(lines) == len(reports)
    for line, report in zip(lines, reports, strict=True):
        data = strictly(line)
        validate(data)
        assert data["trace"] == report.trace


HOSTILE = (
    "<b>[x](http://y)|`&\"'",
    "\x1b[31mred\x07\r\n\t\x00",
    "\u202egnp.exe\u2066\ufeff\u2028",
    "{0} {{1}} %s",
    "x" * 10_000,
)


def test_hostile_names_stay_json(make_trace: MakeTrace) -> None:
    events = [
        {"ph": "X", "cat": "kernel", "name": name, "ts": 10 * at, "dur": 5, "pid": 0, "tid": 7,
         "args": {"device": 0, "stream": 7, "correlation": at + 1}}
        for at, name in enumerate(HOSTILE)
    ]  # fmt: skip
    report = run_rules(make_trace(events, odd=HOSTILE), rules())
    text = write_json([report], Rendering())
    validate(strictly(text))
    assert not any(ord(char) < 32 and char != "\n" for char in text)


def test_what_json_cannot_hold_is_still_written() -> None:
    data = {"a\udcff": ["\ud800x", float("nan"), float("inf"), 1 << 70, -1], "b": (True, None)}
    written = strictly(json_bytes(data).decode())
    assert written == {"a\\xdcff": ["\\xd800x", None, None, float(1 << 70), -1], "b": [True, None]}


def test_several_results_are_a_list() -> None:
    assert strictly(to_json([{"a": 1}])) == {"a": 1}
    assert strictly(to_json([{"a": 1}, {"a": 2}])) == [{"a": 1}, {"a": 2}]

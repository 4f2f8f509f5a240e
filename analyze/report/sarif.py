"""SARIF 2.1.0, the format of code scanning and of viewers in editors; one run for all traces.

Section numbers are those of the OASIS standard of 2020-03-27.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from analyze.engine.result import TraceReport, unread
from analyze.report.baseline_words import vanished_sentence
from analyze.report.coverage_text import quality_sentences, trimmed_sentences
from analyze.report.finding_words import of_little_weight
from analyze.report.formats import Rendering
from analyze.report.json_writer import to_json
from analyze.report.sarif_locations import SOURCE_ROOT, artifact_location, root_description
from analyze.report.sarif_results import baseline_state, make_result
from analyze.report.sarif_rules import rules_of
from analyze.report.sarif_text import bounded, message
from analyze.report.source_line import source_root
from analyze.report.verdict import order_of
from analyze.words import counted, printable

Data = dict[str, Any]

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

MAX_RESULTS = 5000
"""Code scanning shows no more results of a run, by GitHub's documentation of its limits."""

MAX_NOTIFICATIONS = 1000

_COVERAGE = (
    "device", "gpu_ops", "gpu_ops_linked", "gpu_ops_unlinked", "linked_share",
    "unlinked_gpu_time_us", "gpu_busy_us", "gpu_span_us", "forward_is", "forwards", "recorded",
    "synthetic",
)  # fmt: skip
"""What a trace's artifact says of its coverage; ``analyze schema`` documents the names."""


def write_sarif(reports: Sequence[TraceReport], _: Rendering) -> str:
    """Return reports of findings as a SARIF log; the format ``sarif``."""
    return to_json([{"$schema": _SCHEMA, "version": "2.1.0", "runs": [_run(reports)]}])


def _run(reports: Sequence[TraceReport]) -> Data:
    rules = rules_of(reports)
    indices = {rule["id"]: index for index, rule in enumerate(rules)}
    traces = list(_trace_locations(reports))
    results, left_out = _results(reports, traces, indices)
    notifications = [
        *_left_out(left_out),
        *_unread(reports),
        *_notifications(reports, traces, indices),
        *_ignored(reports, traces, indices),
    ]
    return {
        "tool": {"driver": _driver(rules)},
        "invocations": [
            {
                "executionSuccessful": all(_succeeded(report) for report in reports)
                and not unread(reports),
                "toolExecutionNotifications": _severest(notifications),
            }
        ],
        "originalUriBaseIds": {SOURCE_ROOT: root_description()},
        "artifacts": [_artifact(*pair) for pair in zip(reports, traces, strict=True)],
        "results": results,
        "columnKind": "unicodeCodePoints",
        "language": "en",
        "properties": {
            "traces": len(reports),
            "resultsLeftOut": left_out,
            "notificationsLeftOut": max(len(notifications) - MAX_NOTIFICATIONS, 0),
        },
    }


def _driver(rules: list[Data]) -> Data:
    ours = version("kinetolint")
    return {"name": "kinetolint", "version": ours, "semanticVersion": ours, "rules": rules}


def _trace_locations(reports: Sequence[TraceReport]) -> Iterator[Data]:
    """Yield the location of each trace, with its index among the artifacts."""
    root, folder = source_root(), Path.cwd()
    for index, report in enumerate(reports):
        yield {**artifact_location(report.trace, root, folder), "index": index}


def _artifact(report: TraceReport, location: Data) -> Data:
    coverage = {name: bounded(report.coverage[name]) for name in _COVERAGE}
    return {
        "location": {name: location[name] for name in ("uri", "uriBaseId") if name in location},
        "length": report.quality["file_bytes"],
        "roles": ["analysisTarget"],
        "properties": {"coverage": coverage},
    }


def _results(
    reports: Sequence[TraceReport], traces: Sequence[Data], indices: dict[str, int]
) -> tuple[list[Data], int]:
    """Return the results of all traces and how many there are beyond the limit, the mildest."""
    found = [
        (finding, trace, order.bound_by if finding in order.minor else None)
        for report, trace in zip(reports, traces, strict=True)
        for order in [order_of(report)]
        for finding in report.findings
    ]
    severest_first = sorted(range(len(found)), key=lambda number: found[number][0].rank)
    kept = set(severest_first[:MAX_RESULTS])
    has_baseline = all(report.baseline is not None for report in reports)
    root, seen = source_root(), Counter[str]()
    results = []
    for number, (finding, trace, bound_by) in enumerate(found):
        seen[finding.fingerprint] += 1
        if number not in kept:
            continue
        occurrence = seen[finding.fingerprint]
        result = make_result(finding, occurrence, indices[finding.code], trace, root)
        if bound_by is not None:
            result["properties"]["ofLittleWeight"] = printable(of_little_weight(bound_by))
        if has_baseline:
            result["baselineState"] = baseline_state(finding)
        results.append(result)
    return results, len(found) - len(results)


def _succeeded(report: TraceReport) -> bool:
    return not report.errors and report.why_nothing is None


def _left_out(results: int) -> Iterator[Data]:
    if results:
        words = f"{counted(results, 'result')} left out, the mildest: a run holds {MAX_RESULTS:,}"
        yield {"descriptor": {"id": "results-left-out"}, "level": "warning", **_says(words)}


def _unread(reports: Sequence[TraceReport]) -> Iterator[Data]:
    """Yield what could not be read: that nothing was found in it means nothing."""
    for entry in unread(reports):
        yield {"descriptor": {"id": "trace-unread"}, "level": "error", **_says(entry.message)}


def _notifications(
    reports: Sequence[TraceReport], traces: Sequence[Data], indices: dict[str, int]
) -> Iterator[Data]:
    """Yield what a reader must know beside the results: of rules without a verdict, and traces."""
    for report, trace in zip(reports, traces, strict=True):
        if report.why_nothing is not None:
            yield _about_trace("nothing-checked", "error", report.why_nothing, trace)
        for failure in report.errors:
            rule = _rule(failure.code, indices)
            yield {**_about_trace("rule-failed", "error", failure.message, trace), **rule}
        for sentence in trimmed_sentences(report.coverage):
            yield _about_trace("trimmed", "warning", sentence, trace)
        for sentence in quality_sentences(report.coverage, report.quality):
            yield _about_trace("trace-quality", "warning", sentence, trace)
        for unanswered in report.not_applicable:
            rule = _rule(unanswered.code, indices)
            yield {**_about_trace("not-applicable", "note", unanswered.reason, trace), **rule}
        # Not results that are ``absent``: who knows no baselines takes those for findings.
        for gone in report.vanished:
            yield _about_trace("no-longer-found", "note", vanished_sentence(gone, report), trace)


def _ignored(
    reports: Sequence[TraceReport], traces: Sequence[Data], indices: dict[str, int]
) -> Iterator[Data]:
    for report, trace in zip(reports, traces, strict=True):
        for ignored in report.ignored:
            words = f"{counted(ignored.findings, 'finding')} ignored: {ignored.reason}"
            rule = _rule(ignored.code, indices)
            yield {**_about_trace("rule-ignored", "note", words, trace), **rule}


def _about_trace(descriptor: str, level: str, words: str, trace: Data) -> Data:
    return {
        "descriptor": {"id": descriptor},
        "level": level,
        **_says(words),
        "locations": [{"physicalLocation": {"artifactLocation": trace}}],
    }


def _says(words: str) -> Data:
    return {"message": message(words)}


def _rule(code: str, indices: dict[str, int]) -> Data:
    return {"associatedRule": {"id": code, "index": indices[code]}}


def _severest(notifications: list[Data]) -> list[Data]:
    order = ("error", "warning", "note")
    ranked = sorted(notifications, key=lambda notification: order.index(notification["level"]))
    return ranked[:MAX_NOTIFICATIONS]

"""A stored result renders as the trace did, byte for byte; anything else is refused in one line."""

import copy
import json
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import analyze
from analyze.cli.check import load_and_check
from analyze.engine.result import TraceReport
from analyze.engine.run import run_rules
from analyze.errors import AnalyzeError, TraceError
from analyze.report import stored_result
from analyze.report.formats import FORMATS, Rendering, render
from analyze.report.result_schema import result_schema
from analyze.report.stored_result import read_results
from analyze.report.text import MOST_REPORTS
from analyze.report.views import with_views
from analyze.words import UNPRINTABLE, inert_to_ci, printable
from tests.conftest import MakeTrace
from tests.report.sample_reports import report_of, reports_of, rules
from tests.report.test_result_schema import HOSTILE, strictly, validate
from tests.report.test_sarif import check_log


def stored(reports: list[TraceReport], folder: Path, form: str = "json") -> list[TraceReport]:
    path = folder / f"stored.{form}"
    path.write_bytes(render(form, reports, Rendering()).encode())
    return read_results(str(path))


@pytest.fixture(scope="module", params=["json", "jsonl"])
def again(
    request: pytest.FixtureRequest, samples: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[TraceReport]:
    """The reports of all samples, stored in a form and read back."""
    return stored(reports_of(samples), tmp_path_factory.mktemp("stored"), request.param)


@pytest.mark.parametrize("verbose", [False, True], ids=["brief", "verbose"])
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_the_same_from_a_stored_result(
    name: str, verbose: bool, samples: Path, again: list[TraceReport]
) -> None:
    reports = reports_of(samples)
    rendering = Rendering(verbose)
    assert render(name, again, rendering) == render(name, reports, rendering)
    for report, read in zip(reports, again, strict=True):
        assert render(name, [read], rendering) == render(name, [report], rendering)


def test_a_single_result_is_read_as_it_was(samples: Path, tmp_path: Path) -> None:
    for report in reports_of(samples):
        assert stored([report], tmp_path) == [
            replace(report, views=stored([report], tmp_path)[0].views)
        ]


def test_hostile_names_survive(make_trace: MakeTrace, tmp_path: Path) -> None:
    events: list[dict[str, Any]] = [
        {"ph": "X", "cat": "cpu_op", "name": name, "ts": 100 * at, "dur": 90, "pid": 1, "tid": 1}
        for at, name in enumerate(HOSTILE)
    ]
    events += [
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 100 * at + 1,
         "dur": 3, "pid": 1, "tid": 1, "args": {"correlation": at + 1}}
        for at, _ in enumerate(HOSTILE)
    ]  # fmt: skip
    events += [
        {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoD " + name, "ts": 100 * at + 50,
         "dur": 30, "pid": 0, "tid": 7,
         "args": {"device": 0, "stream": 7, "correlation": at + 1, "bytes": 1 << 30}}
        for at, name in enumerate(HOSTILE)
    ]  # fmt: skip
    trace = make_trace(events)
    report = with_views(run_rules(trace, rules()), trace)
    assert any("red" in str(finding.evidence) for finding in report.findings)
    [again] = stored([report], tmp_path)
    for name in FORMATS:
        assert render(name, [again], Rendering()) == render(name, [report], Rendering())


def test_real_traces(real_traces: Path, tmp_path: Path) -> None:
    """Every format is the same, the JSON as documented, the SARIF valid."""
    count = 0
    for path in sorted(real_traces.glob("*/*")):
        if ".json" not in path.name or path.stat().st_size > 600_000:
            continue
        try:
            trace, report = load_and_check(str(path), None, rules())
        except AnalyzeError:
            continue
        report = with_views(report, trace)
        [again] = stored([report], tmp_path)
        texts = {name: render(name, [report], Rendering()) for name in FORMATS}
        for name in FORMATS:
            assert render(name, [again], Rendering()) == texts[name], (path, name)
        validate(strictly(texts["json"]))
        check_log(strictly(texts["sarif"]))
        count += 1
    assert count > 20


def test_from_python(samples: Path, tmp_path: Path) -> None:
    report = analyze.check(samples / "synthetic-naive.json.gz")
    assert json.loads(report.to_json()) == json.loads(json.dumps(report.to_dict()))
    path = tmp_path / "report.json"
    path.write_text(report.to_json())
    [again] = analyze.read_results(path)
    assert isinstance(again, analyze.Report)
    for name in FORMATS:
        assert again.render(name, verbose=True) == report.render(name, verbose=True)
    assert report.render("text") == report.to_text()
    with pytest.raises(ValueError, match="no format 'pdf': must be one of text, "):
        report.render("pdf")


def first(samples: Path) -> dict[str, Any]:
    return dict(reports_of(samples)[0].to_dict())


def refusal(content: str | bytes, folder: Path) -> str:
    path = folder / "r.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(TraceError) as caught:
        read_results(str(path))
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert len(message) < 1000
    return message.removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "holds no results"),
        ("not json", "this is not JSON"),
        ("[]", "holds no results"),
        ("{}", "is no result of a check"),
        ("3", "is no result of a check"),
        ("[[]]", "is no result of a check"),
        ('{"schema_version": 1, "captures": []}', "is no result of a check"),
        ('{"traceEvents": []}', "this is a trace"),
        ('{"traceEvents": [{', "this is a trace"),
        ('[{"ph": "X", "name": "x"}]', "this is a trace"),
        (b"\x1f\x8b\x08", "is compressed"),
        (b"\x28\xb5\x2f\xfd", "is compressed"),
        ('{"schema_version": 1, "trace"', "is damaged: "),
        ('{"schema_version": 2, "trace": "", "findings": []}', "schema_version 2"),
        ('{"schema_version": "9", "trace": "", "findings": []}', "schema_version 9"),
        ("[" * 300 + "]" * 300, "is damaged: nested too deeply"),
        ("[" * 5000 + "]" * 5000, "is damaged: "),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_no_result_is_named(content: str | bytes, words: str, tmp_path: Path) -> None:
    assert words in refusal(content, tmp_path)


def test_damage_is_located(samples: Path, tmp_path: Path) -> None:
    data = first(samples)
    good = json.dumps(data)
    assert "line 2: is damaged" in refusal(f"{good}\n{good[:-5]}\n", tmp_path)
    assert "result 2: is no result" in refusal(f"[{good}, 3]", tmp_path)

    def damaged(**changes: Any) -> str:
        return refusal(json.dumps({**data, **changes}), tmp_path)

    assert damaged(trace=3) == "is damaged: trace is no string"
    coverage = {**data["coverage"], "gpu_ops": "many" * 1000}
    assert damaged(coverage=coverage) == "is damaged: coverage.gpu_ops is no integer"
    del coverage["gpu_ops"]
    assert damaged(coverage=coverage) == "is damaged: coverage has no gpu_ops"
    findings = [{**data["findings"][0], "severity": "x" * 1000}]
    words = "is damaged: findings[0].severity is none of info or warning or error"
    assert damaged(findings=findings) == words


def test_keys_of_a_later_version_are_passed_over(samples: Path, tmp_path: Path) -> None:
    data = first(samples)
    later = copy.deepcopy(data)
    later["new"] = later["coverage"]["new"] = later["findings"][0]["new"] = {"a": [1]}
    later["findings"][0]["places"][0]["new"] = None
    path = tmp_path / "later.json"
    path.write_text(json.dumps(later))
    [read] = read_results(str(path))
    assert read.findings == reports_of(samples)[0].findings


def test_a_file_of_any_size_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_result, "MAX_BYTES", 1 << 20)
    assert "is larger than 1 MiB" in refusal(" " * (1 << 20) + "[]", tmp_path)


def places_in(data: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place in a document at which something can be put in another's stead."""
    keys = data.keys() if isinstance(data, dict) else range(len(data))
    found = [(*path, key) for key in keys]
    for key in keys:
        if isinstance(data[key], dict | list):
            found += places_in(data[key], (*path, key))
    return found


ESCAPE = "\x1b]0;title\x07\u202e"
DEFINITIONS = result_schema()["$defs"]
FILLING = {"string": "", "object": {}, "array": [None], "boolean": True, "integer": 1, "number": 1}


def full(schema: dict[str, Any], value: Any, *, fill: bool) -> Any:
    """Return a value with an escape in every text and, to fill it, nothing null or empty."""
    if "$ref" in schema:
        return full(DEFINITIONS[schema["$ref"].removeprefix("#/$defs/")], value, fill=fill)
    if "anyOf" in schema:
        return full(schema["anyOf"][0], value, fill=fill)
    if "enum" in schema or "const" in schema:
        return schema["enum"][0] if value is None and fill else value
    if fill and value in (None, [], {}):
        kinds = schema["type"]
        value = FILLING[kinds if isinstance(kinds, str) else kinds[0]]
    if isinstance(value, dict):
        return full_object(schema, value, fill=fill)
    if isinstance(value, list):
        return [full(schema.get("items", {}), item, fill=fill) for item in value]
    return f"{value}{ESCAPE}" if isinstance(value, str) else value


def full_object(schema: dict[str, Any], value: dict[str, Any], *, fill: bool) -> dict[str, Any]:
    """Do the same with an object; views are drawn, so that one part of them fits the others."""
    known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    named = {
        key: full(part, value.get(key), fill=fill and key != "views") for key, part in known.items()
    }
    more = {key: item for key, item in value.items() if key not in known}
    if others and fill and not more:
        more = {"": None}
    any_key = ESCAPE if others else ""
    return named | {f"{key}{any_key}": full(others, item, fill=fill) for key, item in more.items()}


@pytest.mark.parametrize("verbose", [False, True], ids=["brief", "verbose"])
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("sample", ["synthetic-naive", "cpu-naive"])
def test_no_text_of_a_stored_result_reaches_the_terminal_raw(
    sample: str, name: str, verbose: bool, samples: Path, tmp_path: Path
) -> None:
    """Whatever a key holds, and also where a report of ours has nothing in it."""
    report = report_of(samples / f"{sample}.json.gz")
    document = json.loads(json.dumps(report.to_dict()))
    for number, finding in enumerate(document["findings"]):
        finding["baseline"] = ("better", "known", "worse", "new")[number % 4]
    path = tmp_path / "escapes.json"
    path.write_text(json.dumps(full(DEFINITIONS["result"], document, fill=True)))
    [read] = read_results(str(path))
    for reports in ([read], [read] * (MOST_REPORTS + 1)):
        text = render(name, reports, Rendering(verbose))
        found = UNPRINTABLE.search(text.replace("\n", " "))
        assert not found, text[found.start() - 200 : found.end() + 50]


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.sampled_from([[], {}, [None], {"": None}, [[1]], "trace", "x" * 1000, "{0}](<\x1b"]),
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_changed_result_renders_or_is_refused(
    data: st.DataObject, samples: Path, tmp_path: Path
) -> None:
    """Nobody sees a traceback, whatever has become of a file."""
    reports = reports_of(samples)
    report = reports[data.draw(st.integers(0, len(reports) - 1))]
    if data.draw(st.booleans()):
        report = replace(report, views=None)
    document = json.loads(json.dumps(report.to_dict()))
    for _ in range(data.draw(st.integers(1, 3))):
        *above, last = data.draw(st.sampled_from(places_in(document)))
        part = document
        for key in above:
            part = part[key]
        part[last] = data.draw(ODD)
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(document))
    try:
        [read] = read_results(str(path))
        texts = {name: render(name, [read], Rendering(verbose=True)) for name in FORMATS}
    except AnalyzeError:
        return
    assert texts["text"].startswith(inert_to_ci(printable(read.trace)))


def test_reading_ends_at_the_first_thing_that_is_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many follow, no more memory is taken than they take themselves."""
    assert "line 1: is no result of a check" in refusal("1\n{damaged\n", tmp_path)
    items = [1] * 1_000_000
    monkeypatch.setattr(stored_result, "_decoded", lambda _: items)
    monkeypatch.setattr(stored_result, "MAX_BYTES", 1 << 20)  # room that a read sets aside
    tracemalloc.start()
    try:
        assert "result 1: is no result of a check" in refusal("[1, 1]", tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 * len(items)


@pytest.mark.parametrize("name", FORMATS)
def test_a_result_from_before_a_key_was_added_is_shown(
    name: str, samples: Path, tmp_path: Path
) -> None:
    """What it does not say is unknown or empty."""
    report = report_of(samples / "synthetic-naive.json.gz")
    data = json.loads(json.dumps(report.to_dict()))
    defaults = {"unread": data.pop("unread"), "gpu_time": data["coverage"].pop("gpu_time")}
    assert defaults["gpu_time"] is not None
    path = tmp_path / "earlier.json"
    path.write_text(json.dumps(data))
    [read] = read_results(str(path))
    assert (read.unread, read.coverage["gpu_time"]) == ((), None)
    assert render(name, [read], Rendering(verbose=True))
    validate(strictly(render("json", [read], Rendering())))

"""What GitHub's code scanning asks of a SARIF file: an independent reader of its documented rules.

Written from "SARIF support for code scanning" of GitHub's documentation: a value is there for each
required property, limits hold, and what is shown first says something by itself. The one thing it
asks for that is not given is the end of a region: a finding is about a line, whose length is not
known, and without an end SARIF means all of it (SARIF 2.1.0, section 3.30.2).
"""

import gzip
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

Data = dict[str, Any]

MOST_BYTES = 10 * 1000 * 1000
"""Of the file, compressed by gzip."""
MOST_RUNS = 20
MOST_RESULTS_SHOWN = 5000
MOST_RULES = 25_000
MOST_LOCATIONS = 10
MOST_TAGS = 10
"""More than this many are not shown; of more than twice as many the file is refused."""
LONGEST_NAME = 255
LONGEST_DESCRIPTION = 1024

LEVELS = {"none", "note", "warning", "error"}
LEVELS_OF_RULES = {"note", "warning", "error"}
PRECISIONS = {"very-high", "high", "medium", "low"}
SEVERITIES = {"error", "warning", "recommendation"}

_ENDS = (".", "!", "?", "\u2026")
"""How a sentence ends, or what is cut."""

_LABEL = re.compile(r"[a-z ]{1,20}: ")
"""How a line begins that says more about what stands before it."""


def problems(text: str) -> list[str]:
    """Return what code scanning would refuse, leave out or show badly."""
    return [*_of_file(text), *_of_log(json.loads(text))]


def _of_file(text: str) -> Iterator[str]:
    if len(gzip.compress(text.encode())) > MOST_BYTES:
        yield "the file is too large"


def _of_log(log: Data) -> Iterator[str]:
    if log.get("version") != "2.1.0" or not log.get("$schema"):
        yield "neither version nor schema"
    if not 1 <= len(log["runs"]) <= MOST_RUNS:
        yield f"{len(log['runs'])} runs"
    for run in log["runs"]:
        yield from _of_run(run)


def _of_run(run: Data) -> Iterator[str]:
    driver, results = run["tool"]["driver"], run["results"]
    if not driver.get("name"):
        yield "the tool has no name"
    if len(driver["rules"]) > MOST_RULES or len(results) > MOST_RESULTS_SHOWN:
        yield f"{len(driver['rules'])} rules, {len(results)} results"
    for rule in driver["rules"]:
        yield from (f"rule {rule.get('id')}: {problem}" for problem in _of_rule(rule))
    for number, result in enumerate(results):
        yield from (f"result {number}: {problem}" for problem in _of_result(result, driver))
    identities = [
        (result["ruleId"], result["partialFingerprints"]["primaryLocationLineHash"])
        for result in results
    ]
    if len(set(identities)) < len(identities):
        yield "two results would be one alert"
    schemes = {uri.partition(":")[0] for uri in _uris(results) if _is_absolute(uri)}
    if schemes - {"file"}:
        yield f"addresses that begin with {schemes}"


def _of_rule(rule: Data) -> Iterator[str]:
    if not rule.get("id") or len(rule.get("name", "")) > LONGEST_NAME:
        yield "no id, or a long name"
    for key in ("shortDescription", "fullDescription"):
        words = rule.get(key, {}).get("text", "")
        if not words.strip() or len(words) > LONGEST_DESCRIPTION:
            yield f"{key} of {len(words)} characters"
    if not rule.get("help", {}).get("text", "").strip():
        yield "no help"
    if rule.get("defaultConfiguration", {}).get("level", "warning") not in LEVELS_OF_RULES:
        yield f"the level {rule['defaultConfiguration']['level']}"
    properties = rule.get("properties", {})
    if len(properties.get("tags", [])) > MOST_TAGS:
        yield "many tags"
    if properties.get("precision", "high") not in PRECISIONS:
        yield f"the precision {properties['precision']}"
    if properties.get("problem.severity", "error") not in SEVERITIES:
        yield f"the severity {properties['problem.severity']}"
    if "security-severity" in properties:
        yield "it is not about security"


def _of_result(result: Data, driver: Data) -> Iterator[str]:
    if driver["rules"][result["ruleIndex"]]["id"] != result["ruleId"]:
        yield "the rule of another"
    if result["level"] not in LEVELS:
        yield f"the level {result['level']}"
    first, *further = result["message"]["text"].split("\n")
    if not first.strip(" .") or not first.endswith(_ENDS) or _LABEL.match(first):
        yield f"its first sentence: {first[:80]!r}"
    if not all(map(_LABEL.match, further)):
        yield "a line of its message without a label"
    if not result["partialFingerprints"].get("primaryLocationLineHash"):
        yield "no fingerprint"
    if not 1 <= len(result["locations"]) <= MOST_LOCATIONS:
        yield f"{len(result['locations'])} locations"
    place = result["locations"][0]["physicalLocation"]
    if place["region"]["startLine"] < 1:
        yield "no line"
    uri = place["artifactLocation"]["uri"]
    parts = unquote(uri).split("/")
    if not uri or (not _is_absolute(uri) and (parts[0] == "" or ".." in parts)):
        yield f"the place {uri[:80]!r}"


def _uris(results: list[Data]) -> Iterator[str]:
    for result in results:
        for location in result["locations"]:
            yield location["physicalLocation"]["artifactLocation"]["uri"]


def _is_absolute(uri: str) -> bool:
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", uri) is not None

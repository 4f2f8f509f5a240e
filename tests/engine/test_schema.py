"""The JSON Schemas know what the program knows, and only what editors understand."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft7Validator
from jsonschema.exceptions import ValidationError

from analyze.engine import meanings
from analyze.engine.installed import builtin_rules
from analyze.engine.matchers import OPERATORS, WORDS
from analyze.engine.packs import PACK_FILE
from analyze.engine.per import Per, UnitWord, can_be_judged
from analyze.engine.problems import InvalidRulesError
from analyze.engine.schema import pack_schema, rule_schema
from analyze.engine.yaml_file import read_yaml
from analyze.tables.catalogue import TABLES
from tests.conftest import RunAnalyze
from tests.engine.loaded import load_rule

RULE = Draft7Validator(rule_schema())
PACK = Draft7Validator(pack_schema())
BUILT_IN = sorted(builtin_rules().rglob("*.yaml"))

Keys = dict[str, Any]


def rule(**keys: Any) -> Keys:
    """A rule about ``ops``; ``table`` stands for ``from``."""
    table = keys.pop("table", "ops")
    head = {"version": 1, "code": "TEST101", "name": "test-rule", "title": "A test"}
    return {**head, "guess": "it holds", "message": "seen", "from": table, **keys}


def errors(data: Keys) -> list[ValidationError]:
    return list(RULE.iter_errors(data))


def loads(data: Keys, folder: Path) -> bool:
    """Whether the program takes a rule; JSON is YAML too."""
    file = folder / "rule.yaml"
    file.write_text(json.dumps(data))
    try:
        load_rule(file)
    except InvalidRulesError:
        return False
    return True


def schemas_in(node: Any) -> Iterator[Keys]:
    """Every mapping of a schema."""
    for item in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from schemas_in(item)
    if isinstance(node, dict):
        yield node


@pytest.mark.parametrize("schema", [rule_schema(), pack_schema()], ids=["rule", "pack"])
def test_the_schema_is_one_of_draft_7(schema: Keys) -> None:
    Draft7Validator.check_schema(schema)
    for part in schemas_in(schema):
        assert "$defs" not in part
        if "$ref" in part:
            assert list(part) == ["$ref"]
            assert part["$ref"].removeprefix("#/definitions/") in schema["definitions"]


@pytest.mark.parametrize("file", BUILT_IN, ids=lambda file: file.stem)
def test_built_in_rules_are_accepted(file: Path) -> None:
    validator = PACK if file.name == PACK_FILE else RULE
    assert list(validator.iter_errors(read_yaml(file).data)) == []


def test_every_key_of_a_rule_is_described() -> None:
    for part in schemas_in(rule_schema()):
        for key, value in part.get("properties", {}).items():
            is_condition = list(value) == ["enum"]
            assert is_condition or "description" in value, key


ACCEPTED: dict[str, Keys] = {
    "a quantity": rule(where={"self_us": {"gt": "us(10)"}}),
    "a parameter": rule(
        params={"x": 3}, where={"self_us": "params.x", "depth": {"lt": "params.x"}}
    ),
    "a list": rule(where={"phase": ["forward", "backward"], "depth": {"not_in": [1, 2]}}),
    "a list of the pack": rule(where={"phase": "$phases", "name": {"in": "$names"}}),
    "part of a word": rule(where={"phase": {"contains": "ward"}}),
    "unknown values": rule(where={"phase": {"exists": False}}),
    "a tree": rule(where={"any": [{"not": {"depth": 0}}, {"expr": "self_us > 3"}], "use": "slow"}),
    "a region": rule(per={"region": "attn"}),
    "a ladder": rule(
        measure={"n": "count()"},
        expect="n == 0",
        severity=[{"level": "error", "when": "n > 3"}, {"level": "info"}],
    ),
    "verdicts": rule(
        measure={"n": "count()"},
        benign=[{"when": {"depth": 0}, "because": "x"}],
        uncertain=[
            {"when": "n > 3", "because": "x"},
            {"when": {"depth": {"exists": False}}, "because": "y"},
        ],
    ),
    "evidence": rule(
        evidence={
            "columns": ["name"],
            "where": {"self_us": {"gt": 5}},
            "distinct": ["name"],
            "sort": "-self_us",
        }
    ),
    "a view": rule(table="kernels", where={"family": "gemm"}, group_by=["short_name", "stream"]),
    "rows": rule(
        tests=[{"name": "x", "rows": [{"self_us": "ms(1)", "phase": None}], "expect": {}}]
    ),
}


@pytest.mark.parametrize("what", ACCEPTED)
def test_valid_rules_are_accepted(what: str, tmp_path: Path) -> None:
    pack = {
        "version": 1,
        "pack": "test",
        "lists": {"phases": ["forward"], "names": ["aten::mm"]},
        "macros": {"slow": {"self_us": {"gt": 5}}},
    }
    assert list(PACK.iter_errors(pack)) == []
    (tmp_path / PACK_FILE).write_text(json.dumps(pack))
    assert errors(ACCEPTED[what]) == []
    assert loads(ACCEPTED[what], tmp_path)


REFUSED: dict[str, Keys] = {
    "wehre": rule(wehre={}),
    "kernals": rule(table="kernals"),
    "registers_per_thread": rule(where={"registers_per_thread": 255}),
    "self_uss": rule(where={"any": [{"not": {"self_uss": 1}}]}),
    "contians": rule(where={"name": {"contians": "mm"}}),
    "{}": rule(where={"name": {}}),
    "regex": rule(where={"self_us": {"regex": "1"}}),
    "gt": rule(where={"name": {"gt": 3}}),
    "forwards": rule(where={"phase": "forwards"}),
    "backwards": rule(where={"phase": {"in": ["forward", "backwards"]}}),
    "slow": rule(where={"self_us": {"gt": "slow"}}),
    "yes": rule(where={"finished": "yes"}),
    "no": rule(where={"finished": {"exists": "no"}}),
    "[1, 2]": rule(where={"self_us": {"lt": [1, 2]}}),
    "forward": rule(table="regions", per="forward"),
    "stream": rule(group_by=["stream"]),
    "['name', 'name']": rule(group_by=["name", "name"]),
    "family": rule(benign=[{"when": {"family": "gemm"}, "because": "x"}]),
    "blocks": rule(uncertain=[{"when": {"blocks": 3}, "because": "x"}]),
    "bytes": rule(evidence={"columns": ["name", "bytes"]}),
    "-bytes": rule(evidence={"sort": "-bytes"}),
    "grave": rule(severity="grave"),
    "2": rule(quorum=2),
    "my-count": rule(measure={"my-count": "count()"}),
    "test101": rule(code="test101"),
}


@pytest.mark.parametrize("word", REFUSED)
def test_mistakes_are_refused(word: str, tmp_path: Path) -> None:
    found = errors(REFUSED[word])
    assert len(found) == 1
    assert word in f"{found[0].json_path} {found[0].message}"
    assert not loads(REFUSED[word], tmp_path)


@pytest.mark.parametrize("key", ["version", "code", "name", "title", "guess", "message", "from"])
def test_missing_keys_are_refused(key: str) -> None:
    data = rule()
    del data[key]
    assert [error.message for error in errors(data)] == [f"'{key}' is a required property"]


@pytest.mark.parametrize(
    "test",
    [
        {"rows": [{"blocks": 1}]},
        {"rows": [{"phase": "forwards"}]},
        {"rows": [{"self_us": "slow"}]},
        {"forwards": [{"first": True}]},
        {"facts": {"vendour": "nvidia"}},
        {"rows": [], "expect": {"state": "fine"}},
    ],
    ids=str,
)
def test_mistakes_in_tests_are_refused(test: Keys) -> None:
    assert len(errors(rule(tests=[{"name": "x", "expect": {}, **test}]))) == 1


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize(("column", "value"), [("self_us", 1.5), ("name", "x"), ("finished", True)])
def test_operators_fit_the_columns_that_the_program_says(
    operator: str, column: str, value: object, tmp_path: Path
) -> None:
    given: object = value
    if operator == "exists":
        given = True
    elif operator in ("in", "not_in"):
        given = [value]
    data = rule(where={column: {operator: given}})
    assert (not errors(data)) == loads(data, tmp_path)


@pytest.mark.parametrize("word", get_args(UnitWord))
@pytest.mark.parametrize("table", TABLES)
def test_units_are_those_the_table_can_be_judged_per(table: str, word: UnitWord) -> None:
    data = rule(table=table, per={"region": "attn"} if word == "region" else word)
    assert (not errors(data)) == can_be_judged(TABLES[table], Per(word))


def test_macros_may_use_the_columns_of_any_table() -> None:
    pack = {"version": 1, "pack": "x", "macros": {"m": {"family": "gemm", "self_us": {"gt": 1}}}}
    assert list(PACK.iter_errors(pack)) == []
    pack["macros"] = {"m": {"famliy": "gemm"}}
    (error,) = PACK.iter_errors(pack)
    assert "famliy" in error.message


def test_every_word_has_a_meaning() -> None:
    assert tuple(meanings.OPERATORS) == OPERATORS
    assert tuple(meanings.MATCHER_WORDS) == WORDS


def test_the_command_prints_either_schema(run_analyze: RunAnalyze, tmp_path: Path) -> None:
    assert json.loads(run_analyze("rules", "schema").stdout) == rule_schema()
    assert json.loads(run_analyze("rules", "schema", "--pack").stdout) == pack_schema()
    assert run_analyze("rules", "schema", "-o", tmp_path / "schema.json").stdout == ""
    assert json.loads((tmp_path / "schema.json").read_text()) == rule_schema()

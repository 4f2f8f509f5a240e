"""JSON Schemas of rule files and pack files, for editors.

They are made from the models and the catalogue, so that completion, hover and what is underlined
know the same keys and columns as ``analyze`` does. Only constructs of draft 7 occur, which is what
editors understand: ``definitions`` instead of ``$defs``, and nothing beside a ``$ref``.
"""

import ast
import inspect
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import groupby, pairwise
from typing import Any, get_args

import polars as pl
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from analyze.engine import model as rule_format
from analyze.engine.keys import Keys
from analyze.engine.matchers import OPERATORS, TEXT_OPERATORS, kind_needed
from analyze.engine.meanings import MATCHER_WORDS
from analyze.engine.meanings import OPERATORS as OPERATOR_MEANINGS
from analyze.engine.model import PackModel, RuleModel
from analyze.engine.per import Per, UnitWord, can_be_judged, written_table
from analyze.engine.values import Kind, kind_of_dtype
from analyze.tables.catalogue import TABLES, TRACE, Column, Table

Schema = dict[str, Any]

DRAFT = "http://json-schema.org/draft-07/schema#"

_PREFIX = "#/definitions/"
_REFERENCE = r"^(\$|params\.)"
_QUANTITY = r"^\$|params\.|[0-9]"
"""Constants such as ``MiB(1)``, ``params.x * 2`` and ``$list``: what else is text is a mistake."""

_LISTS = ("in", "not_in")
_OPERATORS_OF: Mapping[Kind, tuple[str, ...]] = {
    kind: tuple(name for name in OPERATORS if kind_needed(name) in (None, kind))
    for kind in (Kind.NUMBER, Kind.TEXT, Kind.FLAG)
}


def rule_schema() -> Schema:
    """Return the JSON Schema of a rule file.

    Where a key may hold columns, they depend on ``from``. There is one complete schema per table,
    rather than a common one and additions, because editors offer a key once for each schema.
    """
    plain = model_schema(RuleModel)
    definitions = plain.pop("definitions")
    plain["properties"]["from"]["enum"] = list(TABLES)
    definitions["RuleTest"] = _with_unit_rows(definitions["RuleTest"])
    definitions |= _column_definitions()
    per_table = [_rule_about(tables, plain, definitions) for tables in _tables_alike()]
    other = {"if": {"not": _about(TABLES.values())}, "then": plain}
    schema = {"type": "object", "allOf": [*per_table, other], "definitions": definitions}
    return {"$schema": DRAFT, **_draft_7(schema)}


def pack_schema() -> Schema:
    """Return the JSON Schema of a ``pack.yaml``; its macros may be about any table."""
    schema = model_schema(PackModel)
    columns = [column for table in TABLES.values() for column in table.columns]
    schema["definitions"] |= _test_definitions(columns)
    schema["definitions"]["matcher"] = _matcher("matcher", columns)
    names = schema["properties"]["macros"]["patternProperties"]
    schema["properties"]["macros"]["patternProperties"] = dict.fromkeys(names, _ref("matcher"))
    return {"$schema": DRAFT, **_draft_7(schema)}


def column_in_words(column: Column) -> str:
    """Return what a column means, with its unit and what a trace must hold for it."""
    unit = f", in {column.unit}" if column.unit else ""
    needs = f" Unknown where {column.needs.value}." if column.needs else ""
    return f"{column.meaning}{unit}.{needs}"


def kinds_of_operator(operator: str) -> list[Kind]:
    """Return which kinds of columns an operator of a matcher fits."""
    return [kind for kind, operators in _OPERATORS_OF.items() if operator in operators]


class _Generator(GenerateJsonSchema):
    """Generate what helps in an editor: no titles, and no null or empty defaults to choose."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - it never is
        """Leave out the titles that repeat the key."""
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> Schema:
        """Leave out defaults that only say that the key may be missing."""
        inner = schema["schema"]
        if inner["type"] == "nullable":
            return self.generate_inner(inner["schema"])
        if isinstance(schema.get("default"), str | bool | int | float):
            return super().default_schema(schema)
        return self.generate_inner(inner)

    def dict_schema(self, schema: core_schema.DictSchema) -> Schema:
        """Refuse names that do not look as they must."""
        generated = super().dict_schema(schema)
        if "patternProperties" in generated:
            generated["additionalProperties"] = False
        return generated


def model_schema(model: type[Keys]) -> Schema:
    """Return the schema of a model: its keys, whatever columns they may hold."""
    schema = TypeAdapter(model).json_schema(
        by_alias=True, ref_template=_PREFIX + "{model}", schema_generator=_Generator
    )
    definitions = schema.pop("$defs", {})
    for name, part in {model.__name__: schema, **definitions}.items():
        del part["title"]
        described: type[Keys] = getattr(rule_format, name)
        part["description"] = _in_one_line(described.__doc__ or "")
        _describe_keys(part["properties"], described)
    return {**schema, "definitions": definitions}


def _describe_keys(keys: dict[str, Schema], model: type[Keys]) -> None:
    for name, written in _descriptions()[model.__name__].items():
        key, description = model.key_of(name), _in_one_line(written)
        keys[key] = dict(sorted({**keys[key], "description": description}.items()))


@cache
def _descriptions() -> Mapping[str, Mapping[str, str]]:
    """Return what is written under the attributes of each model."""
    module = ast.parse(inspect.getsource(rule_format))
    classes = (node for node in module.body if isinstance(node, ast.ClassDef))
    return {node.name: dict(_attribute_docstrings(node)) for node in classes}


def _attribute_docstrings(model: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for attribute, below in pairwise(model.body):
        match attribute, below:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                yield name, text


def _in_one_line(description: str) -> str:
    """Return a description, which is wrapped in the source, in one line."""
    return " ".join(description.replace("``", "`").split())


def _tables_alike() -> list[list[Table]]:
    """Return the tables in groups that have the same columns: a table and its views."""
    tables = sorted(TABLES.values(), key=lambda table: table.base or table.name)
    return [list(group) for _, group in groupby(tables, lambda table: table.base or table.name)]


def _about(tables: Iterable[Table]) -> Schema:
    """Return the schema of any rule about one of these tables."""
    names = [table.name for table in tables]
    return {"properties": {"from": {"enum": names}}, "required": ["from"]}


def _rule_about(tables: list[Table], rule: Schema, models: Schema) -> Schema:
    """Return what a rule may say when it is about one of these tables, which are alike."""
    table = tables[0]
    name = table.base or table.name
    matcher = _ref(f"{name}.matcher")
    columns = {**_some_of(_ref(f"{name}.column")), "uniqueItems": True}
    condition = {"if": {"type": "object"}, "then": matcher, "else": {"type": "string"}}
    sort = _ref(f"{name}.sort")
    narrowed = _narrowed(
        rule,
        where=matcher,
        per=_units(table),
        group_by=columns,
        benign=_list_of(_narrowed(models["Benign"], when=matcher)),
        uncertain=_list_of(_narrowed(models["Uncertain"], when=condition)),
        evidence=_narrowed(
            models["Evidence"], columns=columns, where=matcher, distinct=columns, sort=sort
        ),
        tests=_list_of(_narrowed(models["RuleTest"], rows=_list_of(_ref(f"{name}.row")))),
    )
    return {"if": _about(tables), "then": narrowed}


def _narrowed(model: Schema, **keys: Schema) -> Schema:
    """Return the schema of a mapping in which some keys are described more narrowly."""
    known = model["properties"]
    narrower = {
        key: {**more, "description": known[key]["description"]} for key, more in keys.items()
    }
    return {**model, "properties": {**known, **narrower}}


def _list_of(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _some_of(items: Schema) -> Schema:
    return {**_list_of(items), "minItems": 1}


def _units(table: Table) -> Schema:
    judged = [word for word in get_args(UnitWord) if can_be_judged(table, Per(word))]
    words = {"enum": [word for word in judged if word != "region"]}
    return {"anyOf": [words, _ref("RegionUnit")]} if "region" in judged else words


def _with_unit_rows(test: Schema) -> Schema:
    """Return the schema of a test with the rows that are of the same table in every rule."""
    units = [Per(word).table for word in get_args(UnitWord)]
    rows = {
        table.name: _list_of(_ref(f"{table.name}.row"))
        for table in units
        if table is not None and table.name in test["properties"]
    }
    return _narrowed(test, facts=_ref(f"{TRACE.name}.row"), **rows)


def _column_definitions() -> Schema:
    """Return the definitions of matchers, rows and column names of every table."""
    definitions = _test_definitions(column for table in TABLES.values() for column in table.columns)
    for table in (table for table in TABLES.values() if table.base is None):
        names = [column.name for column in table.columns]
        definitions |= {
            f"{table.name}.column": {"enum": names},
            f"{table.name}.sort": {"enum": [*names, *(f"-{name}" for name in names)]},
            f"{table.name}.matcher": _matcher(f"{table.name}.matcher", table.columns),
            f"{table.name}.row": _row(written_table(table, Per("call"))),
        }
    return definitions


def _test_definitions(columns: Iterable[Column]) -> Schema:
    """Return the definitions of what columns can be compared with, one per kind or vocabulary."""
    return {
        _test_name(column): _test(kind_of_dtype(column.dtype), column.values) for column in columns
    }


def _test_name(column: Column) -> str:
    kind = kind_of_dtype(column.dtype).name.lower()
    return ".".join((kind, *column.values))


def _matcher(name: str, columns: Iterable[Column]) -> Schema:
    """Return the schema of a matcher over columns, of which some may have the same name."""
    tests: dict[str, Schema] = {}
    for column in columns:
        test = tests.setdefault(column.name, {"description": column_in_words(column), "anyOf": []})
        if _ref(_test_name(column)) not in test["anyOf"]:
            test["anyOf"].append(_ref(_test_name(column)))
    return {
        "type": "object",
        "properties": {**_matcher_words(name), **tests},
        "additionalProperties": False,
    }


def _matcher_words(name: str) -> Schema:
    branches = _some_of(_ref(name))
    shapes: Mapping[str, Schema] = {
        "all": branches,
        "any": branches,
        "not": _ref(name),
        "use": {"type": ["string", "array"], "items": {"type": "string"}},
        "expr": {"type": ["string", "boolean"]},
    }
    return {word: {"description": MATCHER_WORDS[word], **shape} for word, shape in shapes.items()}


def _test(kind: Kind, words: tuple[str, ...]) -> Schema:
    """Return the schema of the test of a column: a value, a list, or operators."""
    value = _value(kind, words)
    operators = {
        name: {"description": OPERATOR_MEANINGS[name], **_operand(name, value)}
        for name in _OPERATORS_OF[kind]
    }
    # What a mapping may hold stands beside the alternatives: inside them, editors would say of an
    # unknown operator that a mapping is no text.
    return {
        "anyOf": [value, _some_of(value), {"type": "object", "properties": operators}],
        "properties": operators,
        "additionalProperties": False,
        "minProperties": 1,
    }


def _value(kind: Kind, words: tuple[str, ...]) -> Schema:
    """Return the schema of one value, a parameter, or a list of the pack."""
    if words:
        return {"anyOf": [{"enum": list(words)}, {"type": "string", "pattern": _REFERENCE}]}
    if kind is Kind.TEXT:
        return {"type": "string"}
    if kind is Kind.FLAG:
        return {"anyOf": [{"type": "boolean"}, {"type": "string", "pattern": _REFERENCE}]}
    return {"anyOf": [{"type": "number"}, {"type": "string", "pattern": _QUANTITY}]}


def _operand(operator: str, value: Schema) -> Schema:
    if operator == "exists":
        return {"type": "boolean"}
    if operator in TEXT_OPERATORS:
        return {"type": "string"}
    if operator in _LISTS:
        return {"anyOf": [value, _some_of(value)]}
    return value


def _row(table: Table) -> Schema:
    """Return the schema of a row that a test writes."""
    return {
        "type": "object",
        "properties": {
            column.name: {"description": column_in_words(column), **_cell(column)}
            for column in table.columns
        },
        "additionalProperties": False,
    }


def _cell(column: Column) -> Schema:
    if column.values:
        return {"enum": [*column.values, None]}
    kind = kind_of_dtype(column.dtype)
    if kind is not Kind.NUMBER:
        return {"type": ["string" if kind is Kind.TEXT else "boolean", "null"]}
    number = "integer" if column.dtype == pl.Int64 else "number"
    return {"anyOf": [{"type": [number, "null"]}, {"type": "string", "pattern": _QUANTITY}]}


def _ref(name: str) -> Schema:
    return {"$ref": _PREFIX + name}


def _draft_7(schema: Schema) -> Schema:
    """Wrap references that have neighbours: draft 7 ignores everything beside a ``$ref``."""
    parts = {key: _draft_7_part(item) for key, item in schema.items()}
    if "$ref" in parts and len(parts) > 1:
        reference = parts.pop("$ref")
        parts["allOf"] = [{"$ref": reference}]
    return parts


def _draft_7_part(part: Any) -> Any:
    if isinstance(part, list):
        return [_draft_7_part(item) for item in part]
    return _draft_7(part) if isinstance(part, dict) else part

"""The reference of the rule language as Markdown, written from the catalogue and the models."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from analyze.engine import meanings
from analyze.engine.functions import AGGREGATES, SCALARS, UNITS, Function
from analyze.engine.keys import Keys
from analyze.engine.matchers import OPERATORS, WORDS
from analyze.engine.model import PackModel, RuleModel
from analyze.engine.per import Per, UnitWord, can_be_judged
from analyze.engine.result import CONFIDENCES, LEVELS
from analyze.engine.schema import Schema, kinds_of_operator, model_schema
from analyze.engine.templates import FORMATS
from analyze.engine.values import Kind
from analyze.report.columns import type_name
from analyze.report.markdown_words import markdown_table
from analyze.tables.catalogue import TABLES, Need, Table

_HEAD = """\
<!-- Written by `analyze rules docs -o rules/REFERENCE.md`; change what it is written from. -->

# Reference of the rule language

How to write a rule is told in [README.md](README.md); here is everything a rule may say. Times are
microseconds, sizes bytes, shares 0 to 1; null is unknown and never matches.
"""

_WORD_OF_TYPE = {
    "string": "text",
    "boolean": "true or false",
    "integer": "whole number",
    "number": "number",
    "null": "null",
    "object": "mapping",
}
_SCALARS = frozenset({"string", "boolean", "integer", "number"})
_EXPRESSION = "expression"
_SAMPLE = 1234.5
_SAMPLE_SHARE = 0.153


def reference_page() -> str:
    """Return the page; it ends with a newline."""
    sections = [
        _HEAD,
        *_models("Keys of a rule", RuleModel),
        *_models("Keys of `pack.yaml`", PackModel),
        _matchers(),
        _expressions(),
        _units(),
        _templates(),
        _verdicts(),
        *_tables(),
    ]
    return "\n".join(sections)


def _models(title: str, model: type[Keys]) -> list[str]:
    schema = model_schema(model)
    parts = [f"## {title}\n\n{_keys(schema)}"]
    for name, part in schema["definitions"].items():
        parts.append(f"### {_heading(name)}\n\n{_prose(part['description'])}\n\n{_keys(part)}")
    return parts


def _heading(model: str) -> str:
    words = re.sub(r"(?<!^)(?=[A-Z])", " ", model)
    return words.capitalize()


def _keys(schema: Schema) -> str:
    required = schema.get("required", [])
    rows = [
        (_code(key), _type_of(part), _default(key, part, required), _prose(_description(part)))
        for key, part in schema["properties"].items()
    ]
    return markdown_table(("key", "value", "default", "meaning"), rows)


def _description(part: Schema) -> str:
    return str(part.get("description", ""))


def _default(key: str, part: Schema, required: Sequence[str]) -> str:
    if key in required:
        return "required"
    return _code(_constant(part["default"])) if "default" in part else ""


def _constant(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _type_of(part: Schema) -> str:
    """Return what a value may be, in words."""
    if "$ref" in part:
        heading = _heading(part["$ref"].rsplit("/", 1)[-1]).lower()
        return f"[{heading}](#{heading.replace(' ', '-')})"
    if "const" in part or "enum" in part:
        words = part.get("enum") or [part["const"]]
        return ", ".join(_code(_constant(word)) for word in words)
    if "anyOf" in part:
        return _type_of_union(part["anyOf"])
    return _type_of_collection(part) or _WORD_OF_TYPE[part["type"]]


def _type_of_collection(part: Schema) -> str | None:
    if part["type"] == "array":
        items = _type_of(part["items"])
        return f"list of {'values' if items == _EXPRESSION else items}"
    if "patternProperties" in part:
        (values,) = part["patternProperties"].values()
        return f"mapping of names to {_type_of(values)}"
    return None


def _type_of_union(alternatives: Sequence[Schema]) -> str:
    """Return alternatives in words, lists last; what may be any single value is an expression."""
    types = [part.get("type", "") for part in alternatives]
    if set(types) == _SCALARS:
        return _EXPRESSION
    ordered = sorted(alternatives, key=lambda part: part.get("type") == "array")
    if set(types) > _SCALARS:
        others = [part for part in ordered if part.get("type") not in _SCALARS]
        return " or ".join(["value", *map(_type_of, others)])
    return " or ".join(map(_type_of, ordered))


def _matchers() -> str:
    words = [(_code(word), _prose(meanings.MATCHER_WORDS[word])) for word in WORDS]
    operators = [
        (_code(name), _kinds(kinds_of_operator(name)), _prose(meanings.OPERATORS[name]))
        for name in OPERATORS
    ]
    return (
        "## Matchers\n\n"
        "`where`, `when` and macros map columns to what they must be: `column: value`,"
        " `column: [values]`, `column: {operator: value}`; several are joined by and. A value may"
        " also be `params.x`, a quantity such as `MiB(1)`, or `$name`, a list of the pack.\n\n"
        f"{markdown_table(('word', 'meaning'), words)}\n"
        f"{markdown_table(('operator', 'columns that hold', 'meaning'), operators)}"
    )


def _kinds(kinds: Iterable[Kind | None]) -> str:
    return ", ".join(kind.value if kind else "anything" for kind in kinds)


def _expressions() -> str:
    names = [(_code(name), _prose(text)) for name, text in meanings.NAMES.items()]
    syntax = [(_codes(example), _prose(text)) for example, text in meanings.SYNTAX.items()]
    plain = {name: function for name, function in SCALARS.items() if name not in UNITS}
    return (
        "## Expressions\n\n"
        "One Python expression, which is compiled and never run.\n\n"
        f"{markdown_table(('name', 'is'), names)}\n"
        f"{markdown_table(('syntax', 'meaning'), syntax)}\n"
        "### Aggregates\n\n"
        "Over the matched rows of one unit, and group; in `measure` only.\n\n"
        f"{_functions(AGGREGATES)}\n"
        f"### Functions\n\n{_functions(plain)}\n"
        f"### Quantities\n\n{_functions(UNITS)}"
    )


def _codes(examples: str) -> str:
    """Return examples as code, those of a list with its commas inside."""
    return ", ".join(_code(example) for example in re.split(r", (?![^\[]*\])", examples))


def _functions(functions: Mapping[str, Function]) -> str:
    rows = [
        (
            _code(name),
            _arguments(function),
            function.gives.value if function.gives else "what it takes",
            _prose(function.doc),
            _code(function.example),
        )
        for name, function in functions.items()
    ]
    return markdown_table(("function", "arguments", "gives", "meaning", "example"), rows)


def _arguments(function: Function) -> str:
    words = []
    for index, kind in enumerate(function.takes):
        word = kind.value if kind else "anything"
        word = f"{word} (constant)" if index in function.constant else word
        words.append(word if index < function.required else f"optionally {word}")
    return ", ".join(words) + (", ..." if function.variadic else "")


def _units() -> str:
    rows = []
    for word in get_args(UnitWord):
        per = Per(word)
        judged = [table.name for table in TABLES.values() if can_be_judged(table, per)]
        columns = _code(per.table.name) if per.table else ""
        meaning = _prose(meanings.UNITS_OF_REPETITION[word])
        rows.append((_code(word), meaning, columns, ", ".join(map(_code, judged))))
    heading = ("per", "a unit is", "its columns", "tables that can be judged per it")
    return f"## Units of repetition\n\n{markdown_table(heading, rows)}"


def _templates() -> str:
    rows = []
    for name, render in FORMATS.items():
        value = _SAMPLE_SHARE if name == "pct" else _SAMPLE
        rows.append(
            (_code(f"{{x:{name}}}"), meanings.FORMATS[name], _code(f"{value}"), render(value))
        )
    return (
        "## Templates\n\n"
        "`message` and `fix` insert measures, columns of `group_by`, `params.x`, `trace.x` and"
        " columns of the unit with `{name}` or `{name:FORMAT}`, and `{unit}`, the unit in words."
        " `{{` and `}}` are braces; an unknown value is written as `unknown`, and what stands"
        " between `[?` and `?]` is left out where a value in it is unknown. `{x:copy|copies}`"
        " writes the noun that fits the number.\n\n"
        f"{markdown_table(('template', 'writes', 'x', 'result'), rows)}"
    )


def _verdicts() -> str:
    states = [(_code(state), _prose(text)) for state, text in meanings.STATES.items()]
    return (
        "## States, severities, confidences\n\n"
        f"{markdown_table(('state', 'meaning'), states)}\n"
        f"Severities, mildest first: {', '.join(map(_code, LEVELS))}."
        f" Confidences, lowest first: {', '.join(map(_code, CONFIDENCES))}.\n"
    )


def _tables() -> list[str]:
    needs = [(_code(_need(need)), _prose(need.value)) for need in Need]
    return [
        "## Tables\n\n"
        "A column is unknown in every row where the trace does not hold what it needs:\n\n"
        f"{markdown_table(('need', 'what is missing, and how to get it'), needs)}",
        *(_table(table) for table in TABLES.values() if table.base is None),
    ]


def _table(table: Table) -> str:
    views = [view for view in TABLES.values() if view.base == table.name]
    notes = [f"{table.meaning}."]
    notes += [f"View {_code(view.name)}: {view.meaning}." for view in views]
    notes += [f"Needs {_code(_need(table.needs))}."] if table.needs else []
    rows = [
        (
            _code(column.name),
            type_name(column),
            column.unit,
            _prose(column.meaning),
            _code(_need(column.needs)) if column.needs else "",
            ", ".join(map(_code, column.values)),
        )
        for column in table.columns
    ]
    heading = ("column", "type", "unit", "meaning", "needs", "values")
    grid = markdown_table(heading, rows)
    return f"### {_code(table.name)}\n\n{_prose(' '.join(notes))}\n\n{grid}"


def _need(need: Need) -> str:
    return need.name.lower()


def _code(text: str) -> str:
    """Return text as code that can stand in a table."""
    return f"`{_bars(text)}`"


def _prose(text: str) -> str:
    """Return text, in which backticks mark code, so that it can stand in a table."""
    parts = _bars(text).split("`")
    parts[::2] = [part.replace("<", "&lt;") for part in parts[::2]]
    return "`".join(parts)


def _bars(text: str) -> str:
    return text.replace("|", "\\|")

"""What the words of the rule language mean: one text each for the schema and the reference."""

from collections.abc import Mapping

MATCHER_WORDS: Mapping[str, str] = {
    "all": "Every one of these matchers holds.",
    "any": "At least one of these matchers holds.",
    "not": "The matcher does not hold; unknown stays unknown.",
    "use": "A matcher of the pack by name, or a list of names that must all hold.",
    "expr": "An expression over the columns of one row that is true or false.",
}
"""By the words of :data:`analyze.engine.matchers.WORDS`."""

OPERATORS: Mapping[str, str] = {
    "eq": "Equal to the value; the same as `column: value`.",
    "ne": "Known, and not equal to the value.",
    "lt": "Less than the value.",
    "lte": "At most the value.",
    "gt": "Greater than the value.",
    "gte": "At least the value.",
    "in": "One of the values; the same as `column: [values]`.",
    "not_in": "Known, and none of the values.",
    "regex": "The regular expression is found in the text.",
    "contains": "The text holds this part.",
    "startswith": "The text starts with this part.",
    "endswith": "The text ends with this part.",
    "exists": "`true`: the value is known; `false`: it is unknown.",
}
"""By the operators of :data:`analyze.engine.matchers.OPERATORS`."""

NAMES: Mapping[str, str] = {
    "dur_us": "A column of the rule's table: per row, so in `measure` only inside an aggregate.",
    "n": "An earlier measure.",
    "params.x": "A parameter of the rule.",
    "forward.gpu_busy_us": "A column of the unit that the rule is judged per; likewise `step.x`,"
    " `call.x` and `region.x`.",
    "trace.sm_count": "A column of the one row of `trace`.",
}
"""Names in expressions, by an example."""

SYNTAX: Mapping[str, str] = {
    "a + b - a * b": "Arithmetic; also a sign.",
    "a / b, a // b, a % b": "Division, whole division, remainder; unknown where the divisor is 0.",
    "a == b, a != b": "Equal, not equal.",
    "a < b <= 3 > 1 >= 0": "Comparisons of numbers, also chained.",
    "a > 1 and b > 1 or not a > b": "Conditions. `and` is false and `or` is true as soon as one"
    " part decides it, also where another is unknown.",
    "word in ['x', 'y'], a not in [1, 2]": "One of some constants, or of a parameter that is a"
    " list.",
    "'part' in word": "The text holds a part.",
    "1 if a > b else 0": "One of two values; unknown when the condition is.",
    "1.5, 2e3, 'text', true, false, null": "Constants.",
}
"""The syntax of expressions, by examples over the numbers ``a`` and ``b`` and the text ``word``."""

UNITS_OF_REPETITION: Mapping[str, str] = {
    "forward": "The annotation named by `--forward`; else the one that `capture` writes; else the"
    " ProfilerStep; else the whole trace.",
    "step": "A ProfilerStep.",
    "call": "An attention call.",
    "region": "`per: {region: NAME}`: a record_function annotation of that name.",
    "trace": "The whole trace, with the work that belongs to no other unit.",
}
"""By the words of :data:`analyze.engine.per.UnitWord`."""

STATES: Mapping[str, str] = {
    "mismatch": "The expectation fails in at least `quorum` of the units.",
    "benign": "It fails, but `benign` says why that is harmless.",
    "pass": "It holds; a rule that expects nothing found nothing.",
    "intermittent": "It fails, but in fewer units than `quorum` asks for.",
    "informative": "The rule expects nothing and reports what it measured.",
    "not_applicable": "The trace cannot answer; the reason is printed. Never a pass.",
    "error": "The rule could not be evaluated.",
}
"""By the words of :data:`analyze.engine.model.State`."""

FORMATS: Mapping[str, str] = {
    "us": "a time given in microseconds",
    "pct": "a share from 0 to 1, in percent",
    "int": "a whole number",
    "bytes": "a size given in bytes",
    ".1f": "one digit behind the point",
    ".2f": "two digits behind the point",
    ",": "a whole number with commas between the thousands",
}
"""By the formats of :data:`analyze.engine.templates.FORMATS`."""

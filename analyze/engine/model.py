"""The keys of a rule file and of a pack file.

Values that are small languages of their own (matchers, expressions, templates) are kept as written
here and checked where they are compiled. What is written under a key is its description for people;
:mod:`analyze.engine.schema` reads it.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from analyze.engine.keys import Keys, Limits
from analyze.engine.result import Confidence, Level
from analyze.engine.values import Scalar

FORMAT_VERSION = 1

CODE_PATTERN = r"^[A-Z]{2,6}[0-9]{3}$"
NAME_PATTERN = r"^[a-z0-9]+(-[a-z0-9]+)*$"
IDENTIFIER_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"
DAY_PATTERN = r"^\d{4}-\d{2}-\d{2}$"

State = Literal[
    "mismatch", "benign", "pass", "intermittent", "informative", "not_applicable", "error"
]

Text = Annotated[str, Limits(min_length=1)]
Code = Annotated[str, Limits(pattern=CODE_PATTERN)]
Identifier = Annotated[str, Limits(pattern=IDENTIFIER_PATTERN, max_length=60)]
Flag = Annotated[bool, Limits()]
Expression = str | bool | int | float
Matcher = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class RegionUnit(Keys):
    """``per: {region: NAME}``: one unit per annotation of that name."""

    region: Text
    """Name of the record_function annotation; each of its occurrences is a unit."""


@dataclass(frozen=True, kw_only=True)
class Step(Keys):
    """One step of a severity ladder; without ``when`` it always applies."""

    level: Level
    """Severity where `when` holds."""

    when: Expression | None = None
    """Condition over measures; the first step whose condition holds decides. The last step has
    none."""


@dataclass(frozen=True, kw_only=True)
class Benign(Keys):
    """When a mismatch is known to be harmless, and why."""

    when: Matcher
    """Matcher; it must hold for every matched row."""

    because: Text
    """Why the finding is harmless; printed with it."""

    severity: Literal["info", "ignore"] = "info"
    """`info` shows the finding as benign, `ignore` hides it."""


@dataclass(frozen=True, kw_only=True)
class Uncertain(Keys):
    """When a finding rests on something that is not known, and what that is."""

    when: Matcher | str
    """A matcher that must hold for every matched row, or an expression over measures."""

    because: Text
    """What the finding rests on without knowing it; printed with it."""

    confidence: Confidence = "low"
    """The confidence that remains."""


@dataclass(frozen=True, kw_only=True)
class Requirement(Keys):
    """What must be true of the trace for the rule to say anything, and why."""

    SPELT: ClassVar = {"otherwise": "else"}

    that: Expression
    """Condition over `trace.x` and `params.x`."""

    otherwise: Text
    """Why the rule says nothing where the condition does not hold."""


@dataclass(frozen=True, kw_only=True)
class Savings(Keys):
    """What could be saved per unit, in microseconds, of its GPU busy time or its CPU time."""

    us: Expression
    """Expression over measures: microseconds that could be saved in one unit."""

    kind: Literal["upper_bound", "estimate"] = "upper_bound"
    """`upper_bound`: no more than this; `estimate`: about this."""

    of: Literal["gpu", "cpu", "either"] = "gpu"
    """Whose time it is; shown as a share of the unit's GPU busy time, or of its CPU time. `either`:
    the GPU's, or where the units have no GPU work the CPU's."""


@dataclass(frozen=True, kw_only=True)
class Evidence(Keys):
    """Which matched rows are shown."""

    columns: Annotated[list[str], Limits(min_length=1)] | None = None
    """Columns to show; without it name, op chain, source, duration and start, where there are
    any."""

    where: Matcher = field(default_factory=dict)
    """Show only matched rows of which this holds too, e.g. those that a measure counts; viewers
    mark these alone, and the source line of a finding is theirs."""

    distinct: Annotated[list[str], Limits(min_length=1)] | None = None
    """Each combination of these columns is shown once."""

    sort: str | None = None
    """Column to sort by; `-column` for the largest first. Without it the longest come first."""

    limit: Annotated[int, Limits(ge=0, le=1000)] = 5
    """How many rows to show."""


@dataclass(frozen=True, kw_only=True)
class Expected(Keys):
    """What a test asserts; what is not named is not checked."""

    state: State | None = None
    """State of the rule, or of the group that `group` selects."""

    findings: Annotated[int, Limits(ge=0)] | None = None
    """How many findings are reported, benign ones among them."""

    group: dict[str, Scalar | None] = field(default_factory=dict)
    """Columns of `group_by` with their values: look at this group, not at the first finding."""

    severity: Level | None = None
    """Severity of the finding: of the first, unless `group` selects one."""

    measures: dict[str, Scalar | None] = field(default_factory=dict)
    """Measures of the finding by name, within one millionth; null is unknown. Where nothing is
    found, their medians over the units."""

    message_contains: list[str] | str = field(default_factory=list)
    """Text, or texts, that the message of the finding contains."""


@dataclass(frozen=True, kw_only=True)
class RuleTest(Keys):
    """One test of a rule, on exactly one kind of input."""

    name: Text
    """What the test shows, in a few words."""

    trace: Annotated[str, Limits(pattern=NAME_PATTERN)] | None = None
    """Input: a shipped sample trace, by name. A file of your own is none: write what matters of it
    as `rows` or `events`, so that the test runs anywhere."""

    rows: list[dict[str, Any]] | None = None
    """Input: rows of the rule's table; columns that are left out are null."""

    forwards: list[dict[str, Any]] | None = None
    """Beside `rows`: the forwards that they belong to. Without it, one for each that they name."""

    steps: list[dict[str, Any]] | None = None
    """Beside `rows`: the steps that they belong to, for rules that are judged per step."""

    calls: list[dict[str, Any]] | None = None
    """Beside `rows`: the attention calls that they belong to, for rules that are judged per call;
    a row names its own as `call`."""

    facts: dict[str, Any] = field(default_factory=dict)
    """Beside `rows`: columns of the `trace` row."""

    events: list[dict[str, Any]] | None = None
    """Input: raw Chrome trace events, read as a file with them would be."""

    metadata: dict[str, Any] = field(default_factory=dict)
    """Beside `events`: other top-level keys of the file, such as `deviceProperties`."""

    repeat: Annotated[int, Limits(ge=1, le=10_000)] = 1
    """Beside `events`: write them this many times, one after the other."""

    every: Expression | None = None
    """Beside `repeat`: how far apart, in microseconds or as `ms(1)`."""

    params: dict[str, Expression | list[Scalar]] = field(default_factory=dict)
    """Values of the rule's parameters for this test."""

    expect: Expected
    """What must come out."""

    todo: Flag = False
    """A known gap: the test is meant to fail, and is reported once it passes."""


@dataclass(frozen=True, kw_only=True)
class RuleModel(Keys):
    """A rule file."""

    SPELT: ClassVar = {"table": "from"}

    version: Literal[1]
    """Version of the rule format."""

    code: Code
    """Two to six capitals and three digits, such as `COPY101`; stable, never reused."""

    name: Annotated[str, Limits(pattern=NAME_PATTERN, max_length=60)]
    """The failing state in kebab-case, such as `hidden-memcpy`."""

    title: Text
    """The failing state in words for people."""

    guess: Text
    """The hypothesis in one sentence, written as what is expected to be true. Printed first,
    and with every finding."""

    message: Text
    """What was observed: text with `{measure}` or `{measure:FORMAT}`; `{unit}` is the unit in
    words."""

    table: str
    """The table or view whose rows the rule looks at."""

    fix: Text | None = None
    """One action, in words; a template like `message`."""

    status: Literal["preview", "stable", "deprecated"] = "stable"
    """`preview` rules never change the exit code; `deprecated` ones are about to go."""

    confidence: Confidence = "medium"
    """How sure a finding is."""

    tags: list[Text] = field(default_factory=list)
    """Words to select rules by."""

    references: list[Text] | Text = field(default_factory=list)
    """Links to what the rule rests on."""

    known_problems: list[Text] | Text = field(default_factory=list)
    """When the rule is wrong or misleads; printed with its findings."""

    description: Text | None = None
    """Background for readers, in as many lines as it takes."""

    requires: list[Requirement] = field(default_factory=list)
    """What must be true of the trace; where it is not, the rule is not applicable and says why."""

    where: Matcher = field(default_factory=dict)
    """Which rows match: `column: value`, `column: [values]` or `column: {operator: value}`,
    joined by and. Unknown values match nothing; where one of these conditions is unknown for most
    of the rows it decides on, finding nothing is no pass. Without it every row matches."""

    per: Literal["forward", "step", "call", "trace"] | RegionUnit | None = None
    """The unit of repetition; units in which nothing matched count too. Without it the forward
    where the table's rows belong to forwards, the step or call of their own tables, else the whole
    trace."""

    group_by: Annotated[list[str], Limits(min_length=1)] | None = None
    """Judge each combination of these columns for itself: one finding per group."""

    params: dict[Identifier, Expression | list[Scalar]] = field(default_factory=dict)
    """Thresholds by name, used as `params.x`; quantities such as `MiB(1)` are numbers. Say in a
    comment where each comes from."""

    measure: dict[Identifier, Expression] = field(default_factory=dict)
    """Named expressions over the matched rows of one unit, computed in order; later ones may
    use earlier ones."""

    expect: Expression | None = None
    """Condition over measures that must hold in every unit. False is a mismatch, unknown is
    never a pass. Without it the rule is informative."""

    quorum: Annotated[float, Limits(gt=0, le=1)] = 0.5
    """Share of the units, above 0 and up to 1, that must mismatch; fewer is intermittent."""

    severity: Level | Annotated[list[Step], Limits(min_length=1)] | None = None
    """One severity, or a ladder `[{level, when}, {level}]`, judged on the medians of the
    mismatching units. Without it `warning`, or `info` for a rule without `expect`."""

    benign: list[Benign] = field(default_factory=list)
    """When a mismatch is known to be harmless, and why."""

    uncertain: list[Uncertain] = field(default_factory=list)
    """When a finding rests on something unknown: its confidence is lowered and the reason
    printed."""

    explains: list[Code] = field(default_factory=list)
    """Codes of rules whose findings are consequences of this one; they are folded under it, and
    savings counted once."""

    savings: Savings | None = None
    """What could be saved per unit."""

    evidence: Evidence = Evidence()
    """Which of the matched rows are shown."""

    tests: list[RuleTest] = field(default_factory=list)
    """Tests of this rule, each on one kind of input: `trace`, `rows` or `events`."""


@dataclass(frozen=True, kw_only=True)
class Override(Keys):
    """What a pack changes in one rule that it did not write."""

    SPELT: ClassVar = {"set_keys": "set"}

    code: Code
    """Code of the rule."""

    params: dict[Identifier, Expression | list[Scalar]] = field(default_factory=dict)
    """New values of its parameters."""

    set_keys: dict[str, Any] = field(default_factory=dict)
    """Values of keys, whether or not the rule has them."""

    append: dict[str, Any] = field(default_factory=dict)
    """What is added to lists and mappings; a further condition of `where` must hold as well."""

    replace: dict[str, Any] = field(default_factory=dict)
    """Values of keys that the rule has."""


@dataclass(frozen=True, kw_only=True)
class PackModel(Keys):
    """``pack.yaml``."""

    version: Literal[1]
    """Version of the format."""

    pack: Text
    """Name of the pack."""

    params: dict[Identifier, Expression | list[Scalar]] = field(default_factory=dict)
    """Parameters of every rule of the pack; they come before a rule's own values."""

    lists: dict[Identifier, list[Scalar]] = field(default_factory=dict)
    """Lists of values, used as `$name` in matchers."""

    macros: dict[Identifier, Matcher] = field(default_factory=dict)
    """Matchers by name, used with `use: name`."""

    extends: list[Text] = field(default_factory=list)
    """Packs, by name or relative path, whose rules, lists and macros belong to this one too."""

    override: list[Override] = field(default_factory=list)
    """Changes to rules of other packs, in order."""

"""The keys of a rule file and of a pack file.

Values that are small languages of their own (matchers, expressions, templates) are kept as written
here and checked where they are compiled.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from analyze.engine.result import Confidence, Level
from analyze.engine.values import Scalar

FORMAT_VERSION = 1

CODE_PATTERN = r"^[A-Z]{2,6}[0-9]{3}$"
NAME_PATTERN = r"^[a-z0-9]+(-[a-z0-9]+)*$"
IDENTIFIER_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"

State = Literal[
    "mismatch", "benign", "pass", "intermittent", "informative", "not_applicable", "error"
]

Text = Annotated[str, StringConstraints(min_length=1)]
Code = Annotated[str, StringConstraints(pattern=CODE_PATTERN)]
Identifier = Annotated[str, StringConstraints(pattern=IDENTIFIER_PATTERN, max_length=60)]
Expression = str | bool | int | float
Matcher = dict[str, Any]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=False)


class RegionUnit(_Strict):
    """``per: {region: NAME}``: one unit per annotation of that name."""

    region: Text


class Step(_Strict):
    """One step of a severity ladder; without ``when`` it always applies."""

    level: Level
    when: Expression | None = None


class Benign(_Strict):
    """When a mismatch is known to be harmless, and why."""

    when: Matcher
    because: Text
    severity: Literal["info", "ignore"] = "info"


class Uncertain(_Strict):
    """When a finding rests on something that is not known, and what that is."""

    when: Matcher | str
    because: Text
    confidence: Confidence = "low"


class Requirement(_Strict):
    """What must be true of the trace for the rule to say anything, and why."""

    that: Expression
    otherwise: Annotated[Text, Field(alias="else")]


class Savings(_Strict):
    """What could be saved per unit, in microseconds, of its GPU busy time or its CPU time."""

    us: Expression
    kind: Literal["upper_bound", "estimate"] = "upper_bound"
    of: Literal["gpu", "cpu"] = "gpu"


class Evidence(_Strict):
    """Which matched rows are shown."""

    columns: Annotated[list[str], Field(min_length=1)] | None = None
    distinct: Annotated[list[str], Field(min_length=1)] | None = None
    sort: str | None = None
    limit: Annotated[int, Field(ge=0, le=1000)] = 5


class Expected(_Strict):
    """What a test asserts; what is not named is not checked."""

    state: State | None = None
    severity: Level | None = None
    measures: dict[str, Scalar | None] = {}
    message_contains: list[str] | str = []


class RuleTest(_Strict):
    """One test of a rule, on exactly one kind of input."""

    name: Text
    trace: Annotated[str, StringConstraints(pattern=NAME_PATTERN)] | None = None
    rows: list[dict[str, Any]] | None = None
    forwards: list[dict[str, Any]] | None = None
    steps: list[dict[str, Any]] | None = None
    facts: dict[str, Any] = {}
    events: list[dict[str, Any]] | None = None
    metadata: dict[str, Any] = {}
    repeat: Annotated[int, Field(ge=1, le=10_000)] = 1
    every: Expression | None = None
    params: dict[str, Expression | list[Scalar]] = {}
    expect: Expected
    todo: bool = False


class RuleModel(_Strict):
    """A rule file."""

    version: Literal[1]
    code: Code
    name: Annotated[str, StringConstraints(pattern=NAME_PATTERN, max_length=60)]
    title: Text
    guess: Text
    message: Text
    table: Annotated[str, Field(alias="from")]
    fix: Text | None = None
    status: Literal["preview", "stable", "deprecated"] = "stable"
    confidence: Confidence = "medium"
    tags: list[Text] = []
    references: list[Text] | Text = []
    known_problems: list[Text] | Text = []
    description: Text | None = None
    requires: list[Requirement] = []
    where: Matcher = {}
    per: Literal["forward", "step", "call", "trace"] | RegionUnit | None = None
    group_by: Annotated[list[str], Field(min_length=1)] | None = None
    params: dict[Identifier, Expression | list[Scalar]] = {}
    measure: dict[Identifier, Expression] = {}
    expect: Expression | None = None
    quorum: Annotated[float, Field(gt=0, le=1)] = 0.5
    severity: Level | Annotated[list[Step], Field(min_length=1)] | None = None
    benign: list[Benign] = []
    uncertain: list[Uncertain] = []
    explains: list[Code] = []
    savings: Savings | None = None
    evidence: Evidence = Evidence()
    tests: list[RuleTest] = []


class PackModel(_Strict):
    """``pack.yaml``."""

    version: Literal[1]
    pack: Text
    lists: dict[Identifier, list[Scalar]] = {}
    macros: dict[Identifier, Matcher] = {}

"""The baseline file: known findings with their amounts, sorted, one key a line."""

from datetime import date
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticKnownError

from analyze.engine.model import DAY_PATTERN, Code, Text
from analyze.engine.result import FindingState, Level

FORMAT_VERSION: Final = 1

Amount = Annotated[float, Field(allow_inf_nan=False)]
Scalar = str | bool | int | Amount | None
Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _day(text: str) -> str:
    """Check that a day is one of the calendar."""
    try:
        date.fromisoformat(text)
    except ValueError:
        raise PydanticKnownError("string_pattern_mismatch", {"pattern": DAY_PATTERN}) from None
    return text


Day = Annotated[str, StringConstraints(pattern=DAY_PATTERN), AfterValidator(_day)]

Key = tuple[str | None, str]
"""What identifies a finding: its scope and its fingerprint."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Entry(_Strict):
    """One known finding, as it was when it was accepted or last got better.

    Attributes:
        code, name: of the rule.
        scope: the capture, or the trace file, that it is known in; null for any trace.
        fingerprint: of the finding.
        severity, state, message, group: of the finding.
        per: its unit of repetition in words.
        units_mismatching, units_total: how many units mismatch, of those that were judged.
        savings_us, savings_share, measures: medians per mismatching unit.
        date: when it was accepted.
        reason: why; kept when the file is updated.
    """

    code: Code
    name: Text
    scope: Text | None = None
    fingerprint: Text
    severity: Level
    state: FindingState
    message: str
    group: dict[str, Scalar] = {}
    per: Text
    units_mismatching: Annotated[int, Field(ge=0)]
    units_total: Annotated[int, Field(ge=0)]
    savings_us: Amount | None = None
    savings_share: Amount | None = None
    measures: dict[str, Scalar] = {}
    date: Day
    reason: str | None = None

    @property
    def key(self) -> Key:
        """What identifies it."""
        return self.scope, self.fingerprint


class Baseline(_Strict):
    """The findings of a baseline file.

    Attributes:
        version: of the format.
        traces: how many traces it was made from that an entry without a scope may be about.
        by_trace: whether what is found in a trace that ``capture`` did not write is known in trace
            files of that name only.
        findings: sorted by code, scope and fingerprint.
    """

    version: Annotated[int, Field(ge=FORMAT_VERSION, le=FORMAT_VERSION)] = FORMAT_VERSION
    traces: Annotated[int, Field(ge=0)] = 0
    by_trace: bool = False
    findings: list[Entry] = []

    @property
    def by_key(self) -> dict[Key, Entry]:
        """The entries by what identifies them."""
        return {entry.key: entry for entry in self.findings}

    def with_findings(self, entries: list[Entry]) -> "Baseline":
        """Return the baseline with these entries, sorted."""
        ordered = sorted(entries, key=lambda e: (e.code, e.scope or "", e.fingerprint))
        return self.model_copy(update={"findings": ordered})

    def to_dict(self) -> dict[str, Any]:
        """Return the baseline as the plain data of its file."""
        return self.model_dump(mode="json")

"""A loaded rule: the checked file with its parameters, pack and positions."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analyze.engine.matchers import Shared
from analyze.engine.model import RuleModel
from analyze.engine.params import changed_params
from analyze.engine.problems import InvalidRulesError
from analyze.engine.program import Program, compile_rule
from analyze.engine.reporting import Reporter
from analyze.engine.values import Value
from analyze.engine.yaml_file import Document


@dataclass(frozen=True)
class Rule:
    """One rule that can be run.

    Attributes:
        model: the keys of the file.
        params: values of its parameters.
        category: the folder it lies in.
        pack: name of its pack.
        document: the file, for positions.
        shared: lists and macros of its pack.
    """

    model: RuleModel
    params: Mapping[str, Value]
    category: str
    pack: str
    document: Document
    shared: Shared

    @property
    def code(self) -> str:
        """The stable code, e.g. ``COPY101``."""
        return self.model.code

    @property
    def name(self) -> str:
        """The kebab-case name."""
        return self.model.name

    @property
    def file(self) -> str:
        """Path of the file it was read from."""
        return self.document.file

    @property
    def known_problems(self) -> tuple[str, ...]:
        """When a finding of this rule can be wrong."""
        return _texts(self.model.known_problems)

    @property
    def references(self) -> tuple[str, ...]:
        """Where to read more."""
        return _texts(self.model.references)

    def compile(self, facts: Mapping[str, Any] | None = None) -> Program:
        """Compile the rule for a trace.

        Args:
            facts: the row of the table ``trace``; None to check the rule without a trace.

        Raises:
            InvalidRulesError: the rule is invalid.
        """
        reporter = Reporter(self.document)
        program = compile_rule(self.model, self.params, facts, reporter, self.shared)
        if reporter.problems or program is None:
            raise InvalidRulesError(reporter.problems)
        return program

    def with_param(self, name: str, written: str, setting: str) -> "Rule":
        """Return the rule with a parameter set from the command line.

        Raises:
            AnalyzeError: there is no such parameter, or the value is of another kind.
        """
        changed = changed_params(self.params, name, written, setting)
        return dataclasses.replace(self, params=changed)


def _texts(written: list[str] | str) -> tuple[str, ...]:
    if isinstance(written, str):
        return (written,) if written else ()
    return tuple(written)

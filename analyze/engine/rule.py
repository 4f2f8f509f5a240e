"""A loaded rule: the checked file with its parameters, pack and positions."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from analyze.engine.document import Document
from analyze.engine.matchers import Matcher, Shared, compile_matcher
from analyze.engine.model import RuleModel
from analyze.engine.params import changed_params, replaced_param
from analyze.engine.problems import InvalidRulesError
from analyze.engine.program import Program, compile_rule
from analyze.engine.reporting import Reporter
from analyze.engine.values import Value
from analyze.engine.wording import steps
from analyze.errors import AnalyzeError


@dataclass(frozen=True)
class Rule:
    """One rule that can be run.

    Attributes:
        model: the keys of the file.
        params: values of its parameters, and of those its pack shares.
        changed: for each parameter that is not as the rule file has it, who changed it.
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
    changed: Mapping[str, str] = field(default_factory=dict)

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

    def conditions(self, program: Program) -> list[tuple[dict[str, Any], Matcher]]:
        """Return the conditions that ``where`` joins by *and*, as written and compiled.

        Args:
            program: the rule compiled for a trace; their text tests are added to it.
        """
        reporter = Reporter(self.document)
        return [
            (tree, compile_matcher(tree, path, program.scope, reporter, self.shared))
            for path, tree in steps(self.model.where, ("where",))
        ]

    def with_param(self, name: str, written: str, setting: str) -> "Rule":
        """Return the rule with a parameter set from the command line.

        Raises:
            AnalyzeError: there is no such parameter, or the rule cannot be with this value.
        """
        params = changed_params(self.params, name, written, setting)
        changed = {**self.changed, name: "--set"}
        return dataclasses.replace(self, params=params, changed=changed)._checked(setting)

    def with_params(self, values: Mapping[str, Value], who: str) -> "Rule":
        """Return the rule with parameters changed by a configuration.

        Args:
            values: the new values; quantities such as ``MiB(1)`` are text.
            who: what changes them, for people.

        Raises:
            ExpressionError: there is no such parameter, or a value is of another kind.
            AnalyzeError: the rule cannot be with these values.
        """
        params: Mapping[str, Value] = self.params
        for name, value in values.items():
            params = replaced_param(params, name, value)
        changed = {**self.changed, **dict.fromkeys(values, who)}
        return dataclasses.replace(self, params=params, changed=changed)._checked(who)

    def _checked(self, who: str) -> "Rule":
        """Return the rule if it still compiles with its changed parameters."""
        try:
            self.compile()
        except InvalidRulesError as error:
            message = error.problems[0].message
            raise AnalyzeError(f"{who}: does not fit {self.code}: {message}") from None
        return self


def _texts(written: list[str] | str) -> tuple[str, ...]:
    if isinstance(written, str):
        return (written,) if written else ()
    return tuple(written)

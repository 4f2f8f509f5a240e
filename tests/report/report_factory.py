"""Reports made from that of a sample, with whatever a trace or a rule may say in them."""

import dataclasses
from functools import cache
from typing import Any

from analyze.cli.check import load_and_check
from analyze.engine.loading import load_rules
from analyze.engine.result import Finding, Folded, TraceReport
from tests.conftest import ROOT

HOSTILE = (
    "[bold]x[/bold] <script>alert(1)</script> <img src=x onerror=y> ![p](u) [l](u) [r]: u",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J bell\x07 back\x08\x08",
    "a\nb\r\nc\u2028d\u2029e\x0bf\x0cg\x85h",
    "\n::add-mask::secret\n##[add-mask]secret\n::stop-commands::x",
    "::error file=a,line=1::b %0A::set-output name=x::y %25 %3A",
    "\u202egnp.exe \u2066x\u2069 \u200f",
    "\ud800lone \udfff",
    "e\u0301\u0302\u0303" * 30 + "\u200b" * 40,
    "\u6f22\u5b57\U0001f600" * 60,
    "n" * 10_000,
    "a | b || `c` ``d`` \\| \\` ~~e~~ **f** __g__ $h$ @someone #12 :smile: https://x.example/y",
    "```\n# heading\n---\n| a | b |\n<!-- c",
    "*", "`", "|", "\\", " ", "", "-", "1.",
)  # fmt: skip
"""Texts that mean something to a terminal, to Markdown or to a CI runner."""


@cache
def sample_report(name: str = "synthetic-naive") -> TraceReport:
    """What the built-in rules find in a sample; its path is that of the project."""
    path = ROOT / "sample_traces" / f"{name}.json.gz"
    _, report = load_and_check(str(path), None, load_rules(tests=False))
    return dataclasses.replace(report, trace=f"sample_traces/{name}.json.gz")


def finding(**changes: Any) -> Finding:
    """One finding, an error that can be anything else."""
    number = changes.pop("number", 0)
    first = sample_report().findings[0]
    return dataclasses.replace(first, fingerprint=f"made-{number}", **changes)


def report_of(*findings: Finding, **changes: Any) -> TraceReport:
    """A report with these findings only."""
    return dataclasses.replace(sample_report(), findings=findings, **changes)


def hostile_report(text: str) -> TraceReport:
    """A report that says ``text`` wherever a trace, a rule or a file name can."""
    row = {"name": text, "op_chain": text, "dur_us": 1.5, f"of_{text}": [text]}
    folded = (Folded(text, text, text, text),)
    wrong = finding(
        code=text, name=text, per=text, folded=folded, title=text, guess=text, message=text,
        fix=text, because=None, uncertain=(text,),
        group={"short_name": text}, evidence=(row, row), known_problems=(text,),
        references=(text,), source=f"{text}:3",
    )  # fmt: skip
    benign = dataclasses.replace(wrong, state="benign", because=text, fingerprint="benign")
    first = sample_report().not_applicable[0]
    coverage = {**sample_report().coverage, "device": text, "forward_is": text}
    return report_of(
        wrong,
        benign,
        trace=text,
        coverage=coverage,
        not_applicable=(dataclasses.replace(first, reason=text),),
    )

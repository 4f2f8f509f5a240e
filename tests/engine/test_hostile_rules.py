"""Whatever a rule file tries, it is refused or inert: no code, no file, no bomb, no escape."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from analyze.engine.loading import load_rules
from analyze.engine.model import Expected, RuleTest
from analyze.engine.problems import InvalidRulesError
from analyze.engine.run import run_rule
from analyze.engine.written_tables import write_tables
from analyze.report.console import buffer_console, rendered
from analyze.report.text import print_finding

SECRET = "the-secret-of-the-other-file"  # noqa: S105 - a marker, not a password
MAX_OUTPUT = 20_000
"""Characters; a bomb would print millions."""

HEAD = "version: 1\ncode: EVIL101\nname: evil\ntitle: T\nguess: G\nfrom: kernels\n"
TAIL = "measure: {n: count()}\nexpect: n == 0\nmessage: m\n"

CODE = [
    "__import__('os').system('touch MARK')",
    "eval('1')",
    "exec('1')",
    "open('SECRET')",
    "open('SECRET').read()",
    "().__class__.__bases__[0].__subclasses__()",
    "count.__globals__",
    "params.__class__",
    "trace.__dict__",
    "forward.__class__.__mro__",
    "dur_us.map_elements(len)",
    "dur_us.meta.serialize()",
    "(lambda: 1)()",
    "[x for x in (1, 2)]",
    "{1: 2}",
    "{1}",
    "f'{count()}'",
    "sum(*[1])",
    "sum(**{})",
    "sum(values=dur_us)",
    "(x := 3)",
    "await count()",
    "(yield 1)",
    "dur_us[0]",
    "'a' * 999999999",
    "9 ** 9 ** 9",
    "1 << 99",
    "1e999",
    "99999999999999999999",
    "0x" + "f" * 400,
    "b'abc'",
    "...",
    "1j",
    "globals()",
    "getattr(count, 'x')",
    "`id`",
    "count(); import os",
    "count()\nimport os",
    "'" + "a" * 2000 + "'",
    "+".join(["count()"] * 300),
    "(" * 90 + "1" + ")" * 90,
    "not " * 90 + "true",
    "pl.read_csv('SECRET')",
    "sql('SELECT * FROM read_csv(1)')",
]
READ = "read_csv('SECRET')"
READS = [
    f"from: {READ}\n",
    f'from: kernels\nwhere: {{expr: "{READ}"}}\n',
    f'from: kernels\nwhere: {{"{READ}": 1}}\n',
    f'from: kernels\nwhere: {{expr: "name in {READ}"}}\n',
    f"from: kernels\nwhere: {{name: {{in: {READ}}}}}\n",
    f"from: kernels\nwhere: {{use: {READ}}}\n",
    f"from: kernels\nwhere: {{dur_us: {{gt: {READ}}}}}\n",
    f'from: kernels\nwhere: {{name: "(SELECT a FROM {READ})"}}\n',  # noqa: S608
    f"from: kernels\ngroup_by: [{READ}]\n",
    f"from: kernels\nper: {{region: {READ}}}\n",
    f"from: kernels\nparams: {{p: {READ}}}\n",
    f"from: kernels\nsavings: {{us: {READ}}}\n",
    f"from: kernels\nseverity: [{{level: info, when: {READ}}}, {{level: info}}]\n",
    f"from: kernels\nrequires: [{{that: {READ}, else: x}}]\n",
    f"from: kernels\nbenign: [{{when: {{expr: {READ}}}, because: x}}]\n",
    f"from: kernels\nuncertain: [{{when: {READ}, because: x}}]\n",
    f"from: kernels\nevidence: {{columns: [{READ}]}}\n",
    f"from: kernels\nevidence: {{sort: {READ}}}\n",
]
TEMPLATES = [
    "{n:>999999999}",
    "{n.__class__.__mro__}",
    "{n!r}",
    "{0}",
    "{}",
    "{n[0]}",
    "{n:{n}}",
    "{n:int",
    "{{{{{n}",
    "{n:999999999d}",
    "%(n)s %s",
    "{{ n }} {% for x in y %}",
    "x" * 3000,
    "\\x1b[2J\\x1b]0;owned\\x07",
    "[bold red]markup[/bold red] [/nope]",
    "\\u202egnp.exe",
    "<script>alert(1)</script> ::error::x",
]
PATTERNS = ["(a+)+$", "((a{1000}){1000}){1000}", "(?P<n", "\\x00", "(?:a|a)*b" * 50]
BOMB = "\n".join(
    f"{name}: &{name} [{', '.join([f'*{before}' if before else 'x'] * 9)}]"
    for before, name in zip([None, *"abcdefgh"], "abcdefghi", strict=True)
)
DOCUMENTS = [
    f"{HEAD}{TAIL}description: \u202egnp\ntitel: \u202egnp \u2066x\n",
    BOMB,
    f"{HEAD}{TAIL}tests: &a [*a]\n",
    "[" * 5000,
    "{a: " * 5000,
    f"{HEAD}{TAIL}tags: !!python/object/apply:os.system ['touch MARK']\n",
    f"{HEAD}{TAIL}tags: !!python/name:os.system\n",
    f"{HEAD}{TAIL}<<: {{title: other}}\n",
    f"{HEAD}{TAIL}title: again\n",
    f"{HEAD}{TAIL}---\n{HEAD}{TAIL}",
    f"{HEAD}{TAIL}quorum: {'9' * 5000}\n",
    f"{HEAD}{TAIL}description: {'x' * (1 << 20)}\n",
    f"{HEAD}{TAIL}\x00",
    f"{HEAD}{TAIL}\x1b[31m: 1\n",
    f"{HEAD}{TAIL}tests: [{{name: x, trace: ../../SECRET, expect: {{state: pass}}}}]\n",
    f"{HEAD}{TAIL}" + "".join(f"k{index}: 1\n" for index in range(3000)),
    "",
    "- 1\n",
]


def rules() -> Iterator[str]:
    for text in CODE:
        quoted = "'" + text.replace("'", "''").replace("\n", "\n\n") + "'"
        yield f"{HEAD}measure: {{n: count(), x: {quoted}}}\nexpect: n == 0\nmessage: m\n"
        yield f"{HEAD}{TAIL}where: {{expr: {quoted}}}\n"
    for text in READS:
        yield f"{HEAD.replace('from: kernels', '')}{text}{TAIL}"
    for text in TEMPLATES:
        yield f'{HEAD}{TAIL.replace("message: m", "")}message: "{text}"\nfix: "{text}"\n'
    for text in PATTERNS:
        yield f"{HEAD}{TAIL}where: {{name: {{regex: '{text}'}}}}\n"
        yield f"{HEAD}{TAIL}where: {{expr: \"matches(name, '{text}')\"}}\n"
    yield from DOCUMENTS


RULES = list(rules())


def test_there_are_many() -> None:
    assert len(set(RULES)) >= 60


@pytest.mark.parametrize("number", range(len(RULES)))
def test_a_hostile_rule_is_refused_or_inert(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("SECRET").write_text(f"a\n{SECRET}\n")
    file = tmp_path / "evil.yaml"
    file.write_text(RULES[number])
    output = said_by(file)
    assert len(output) < MAX_OUTPUT
    assert SECRET not in output
    assert "\x1b" not in output
    assert "\u202e" not in output
    assert "Traceback" not in output
    assert sorted(path.name for path in Path().iterdir()) == ["SECRET", "evil.yaml"]


def said_by(file: Path) -> str:
    """Return what a user sees of a rule: what is wrong with it, or the findings it makes."""
    try:
        (rule,) = load_rules([file], builtin=False)
    except InvalidRulesError as error:
        return str(error)
    names = ["gemm", "a" * 3000, "\x1b[2Jx\x07", "k[bold]<b>&", "\u202egnp"]
    rows = [{"name": name, "dur_us": 1, "forward": 0} for name in names]
    test = RuleTest(name="x", rows=rows, expect=Expected())
    result = run_rule(rule, write_tables(rule.compile(), test))
    assert result.error is None or "region" in file.read_text()
    console = buffer_console()
    for finding in result.findings:
        print_finding(console, finding, verbose=True)
    return rendered(console)

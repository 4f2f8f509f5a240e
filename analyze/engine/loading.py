"""Find rule files, read them, and check everything that can be checked without a trace."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from analyze.engine.evaluate import evaluate_rows
from analyze.engine.matchers import Shared
from analyze.engine.model import PackModel, RuleModel
from analyze.engine.params import parse_setting, resolve_params
from analyze.engine.problems import InvalidRulesError, Problem, did_you_mean, in_order
from analyze.engine.program import Program, compile_rule
from analyze.engine.reporting import Reporter
from analyze.engine.rule import Rule
from analyze.engine.validation import validate
from analyze.engine.written_tables import WrittenTables
from analyze.engine.yaml_file import Document, read_yaml
from analyze.errors import AnalyzeError, RuleError
from analyze.tables.catalogue import FORWARDS

PACK_FILE = "pack.yaml"
_SUFFIXES = (".yaml", ".yml")
_PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Pack:
    """A folder of rules.

    Attributes:
        root: the folder.
        name: from ``pack.yaml``, else the folder's name.
        shared: lists and macros.
    """

    root: Path
    name: str
    shared: Shared


def builtin_rules() -> Path:
    """Return the folder of the built-in pack: inside the package, or beside it in a checkout."""
    installed = _PACKAGE / "_rules"
    return installed if installed.is_dir() else _PACKAGE.parent / "rules"


def load_rules(
    paths: Sequence[str | Path] = (),
    *,
    builtin: bool = True,
    settings: Sequence[str] = (),
    tests: bool = True,
) -> list[Rule]:
    """Load and check rules.

    Args:
        paths: further rule files and folders, as given with ``--rules``.
        builtin: load the built-in pack as well.
        settings: parameters as given with ``--set``: ``CODE.name=value``.
        tests: read the rules' own tests. Without them, which is for running rules rather than
            working on them, built-in rules are not evaluated on empty tables either.

    Returns:
        The rules, sorted by code.

    Raises:
        InvalidRulesError: with every problem of every file.
        RuleError: a path does not exist.
        AnalyzeError: a setting names no rule or no parameter.
    """
    builtin_root = builtin_rules()
    roots = ([builtin_root] if builtin else []) + [Path(path) for path in paths]
    rules: list[Rule] = []
    problems: list[Problem] = []
    packs: dict[Path, Pack] = {}
    for file in _files(roots):
        try:
            root = _pack_root(file, roots)
            if root not in packs:
                packs[root] = _load_pack(root)
            rules.append(
                load_rule(file, packs[root], tests=tests, dry_run=tests or root != builtin_root)
            )
        except InvalidRulesError as error:
            problems += error.problems
    problems += _duplicates(rules)
    if problems:
        raise InvalidRulesError(dict.fromkeys(problems))
    return apply_settings(sorted(rules, key=lambda rule: rule.code), settings)


def apply_settings(rules: Sequence[Rule], settings: Sequence[str]) -> list[Rule]:
    """Return the rules with parameters set as on the command line, later settings last.

    Raises:
        AnalyzeError: a setting names no rule or no parameter, or its value is of another kind.
    """
    by_code = {rule.code: rule for rule in rules}
    for setting in settings:
        code, name, written = parse_setting(setting)
        if code not in by_code:
            known = did_you_mean(code, by_code)
            raise AnalyzeError(
                f"--set {setting}: no rule '{code}'" + (f"; {known}" if known else "")
            )
        by_code[code] = by_code[code].with_param(name, written, setting)
    return list(by_code.values())


def load_rule(
    file: Path, pack: Pack | None = None, *, tests: bool = True, dry_run: bool = True
) -> Rule:
    """Read and check one rule file.

    Args:
        file: the rule.
        pack: the pack it belongs to; found beside it when not given.
        tests: read its own tests too.
        dry_run: evaluate it on empty tables, which finds type errors that compiling does not.

    Raises:
        InvalidRulesError: with every problem of the file.
    """
    document = read_yaml(file, without=None if tests else "tests")
    reporter = Reporter(document)
    pack = pack or _load_pack(_pack_root(file, ()))
    model = validate(RuleModel, document, reporter)
    if model is None:
        raise InvalidRulesError(in_order(reporter.problems))
    params = resolve_params(model.params, reporter)
    program = compile_rule(model, params, None, reporter, pack.shared)
    reporter.problems += pack.shared.reporter.problems
    pack.shared.reporter.problems.clear()
    if dry_run and not reporter.problems and program is not None:
        _dry_run(program, model, reporter)
    if reporter.problems:
        raise InvalidRulesError(in_order(reporter.problems))
    category = file.parent.name if file.parent != pack.root else ""
    return Rule(model, params, category, pack.name, document, pack.shared)


def _files(roots: Sequence[Path]) -> Iterator[Path]:
    """Yield the rule files of files and folders, each once."""
    seen: set[Path] = set()
    for root in roots:
        for path in _files_of(root):
            if path.name != PACK_FILE and path.resolve() not in seen:
                seen.add(path.resolve())
                yield path


def _files_of(root: Path) -> list[Path]:
    try:
        if root.is_dir():
            return sorted(path for path in root.rglob("*") if path.suffix in _SUFFIXES)
        exists = root.exists()
    except OSError as error:
        raise RuleError(f"{root}: {error.strerror}") from None
    if not exists:
        raise RuleError(f"{root}: no such rule file or folder")
    return [root]


def _pack_root(file: Path, roots: Sequence[Path]) -> Path:
    """Return the folder of the pack a file belongs to."""
    for folder in file.parents[:3]:
        if (folder / PACK_FILE).is_file():
            return folder
    return next((root for root in roots if root in file.parents), file.parent)


def _load_pack(root: Path) -> Pack:
    file = root / PACK_FILE
    if not file.is_file():
        return Pack(root, root.name, Shared(Reporter(Document(str(root)))))
    document = read_yaml(file)
    reporter = Reporter(document)
    model = validate(PackModel, document, reporter)
    if model is None:
        raise InvalidRulesError(reporter.problems)
    return Pack(root, model.pack, Shared(reporter, model.lists, model.macros))


def _duplicates(rules: Sequence[Rule]) -> Iterator[Problem]:
    first: dict[str, Rule] = {}
    for rule in rules:
        other = first.setdefault(rule.code, rule)
        if other is not rule:
            where = rule.document.locate(("code",))
            yield Problem(where, f"the code {rule.code} is already used by {other.file}")


def _dry_run(program: Program, model: RuleModel, reporter: Reporter) -> None:
    """Run a rule on tables without rows and report what polars makes of it."""
    rows = pl.DataFrame(schema=program.table.schema)
    unit_table = program.per.table or FORWARDS
    unit = pl.DataFrame({"index": [0]}, schema_overrides={"index": pl.Int64})
    units = pl.concat([pl.DataFrame(schema=unit_table.schema), unit], how="diagonal")
    tables = WrittenTables(program.table, rows, units=units)
    try:
        evaluate_rows(program, tables, model.quorum)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        reporter.add(("measure",), f"the rule cannot be evaluated: {reason}")

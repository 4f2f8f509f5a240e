"""Find rule files, read them, and check everything that can be checked without a trace."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from analyze.engine.document import Document
from analyze.engine.evaluate import evaluate_all
from analyze.engine.installed import builtin_rules, installed_packs
from analyze.engine.macros import check_macros
from analyze.engine.matchers import Shared
from analyze.engine.model import Override, RuleModel
from analyze.engine.overriding import overridden, overrides_of
from analyze.engine.packs import BUILTIN, PACK_FILE, Pack, PackLoader, pack_root
from analyze.engine.params import parse_setting, replaced_param, resolve_params
from analyze.engine.problems import InvalidRulesError, Problem, did_you_mean, in_order
from analyze.engine.program import Program, compile_rule
from analyze.engine.reporting import Reporter
from analyze.engine.rule import Rule
from analyze.engine.rule_files import read_document
from analyze.engine.rule_folders import yaml_files
from analyze.engine.syntax import ExpressionError
from analyze.engine.validation import mend, validate
from analyze.engine.values import Value
from analyze.engine.written_tables import WrittenTables
from analyze.errors import AnalyzeError, RuleError
from analyze.tables.catalogue import FORWARDS


def load_rules(
    paths: Sequence[str | Path] = (),
    *,
    builtin: bool = True,
    installed: bool = False,
    settings: Sequence[str] = (),
    tests: bool = True,
) -> list[Rule]:
    """Load and check rules.

    Args:
        paths: further rule files and folders, as given with ``--rules``.
        builtin: load the built-in pack as well.
        installed: load the packs of installed packages as well.
        settings: parameters as given with ``--set``: ``CODE.name=value``.
        tests: read all rules' own tests. Without, which is for running rules rather than working
            on them, only those of ``paths`` are read, so that a rule file is refused or run alike
            by every command, and expressions of the packaged rules are not checked again.

    Returns:
        The rules, sorted by code.

    Raises:
        InvalidRulesError: with every problem of every file.
        RuleError: a path does not exist.
        AnalyzeError: a setting names no rule or no parameter.
    """
    rules, invalid = load_sound_rules(paths, builtin=builtin, installed=installed, tests=tests)
    if invalid is not None:
        raise invalid
    return apply_settings(rules, settings)


def load_sound_rules(
    paths: Sequence[str | Path] = (),
    *,
    builtin: bool = True,
    installed: bool = False,
    tests: bool = True,
) -> tuple[list[Rule], InvalidRulesError | None]:
    """Load rules and leave out those with problems, so that they do not stand in the others' way.

    For the arguments see :func:`load_rules`.

    Returns:
        The sound rules, sorted by code, and the problems of the others.

    Raises:
        RuleError: a path does not exist.
    """
    named = {BUILTIN: builtin_rules(), **(installed_packs() if installed else {})}
    roots = [folder for name, folder in named.items() if builtin or name != BUILTIN]
    loading = _Loading(PackLoader(named), named.values(), tests=tests)
    loading.read([*roots, *(Path(path) for path in paths)])
    rules = sorted(loading.rules(), key=lambda rule: rule.code)
    problems = dict.fromkeys(loading.problems)
    return rules, InvalidRulesError(problems) if problems else None


def apply_settings(rules: Sequence[Rule], settings: Sequence[str]) -> list[Rule]:
    """Return the rules with parameters set as on the command line, later settings last.

    Raises:
        AnalyzeError: a setting names no rule or no parameter, or its value is of another kind.
    """
    by_code = {rule.code: rule for rule in rules}
    for setting in settings:
        code, name, written = parse_setting(setting)
        rule = _of_code(code, by_code, f"--set {setting}")
        by_code[code] = rule.with_param(name, written, setting)
    return list(by_code.values())


def configured(
    rules: Sequence[Rule], params: Mapping[str, Mapping[str, Value]], who: str
) -> list[Rule]:
    """Return the rules with parameters set as in a configuration.

    Args:
        rules: all rules.
        params: per code, values by name; quantities such as ``MiB(1)`` are text.
        who: the configuration, for people.

    Raises:
        AnalyzeError: it names no rule or no parameter, or a value is of another kind.
    """
    by_code = {rule.code: rule for rule in rules}
    for code, values in params.items():
        rule = _of_code(code, by_code, f"{who}: params")
        try:
            by_code[code] = rule.with_params(values, who)
        except ExpressionError as error:
            help_text = f" ({error.help})" if error.help else ""
            raise AnalyzeError(f"{who}: params.{code}: {error.message}{help_text}") from None
    return list(by_code.values())


def _of_code(code: str, by_code: Mapping[str, Rule], who: str) -> Rule:
    if code not in by_code:
        known = did_you_mean(code, by_code)
        raise AnalyzeError(f"{who}: no rule '{code}'" + (f"; {known}" if known else ""))
    return by_code[code]


@dataclass
class _Source:
    """A rule file that was read, with its pack, and what its pack and overriding ones share.

    ``place`` is its path without links.
    """

    path: Path
    place: Path
    pack: Pack
    document: Document
    shared: Shared
    overridden_by: list[Pack] = field(default_factory=list)

    @property
    def code(self) -> object:
        """The code as written."""
        data = self.document.data
        return data.get("code") if isinstance(data, dict) else None

    def overrides(self) -> Iterator[tuple[int, Override, Pack]]:
        """Yield what packs override in it, with the position in ``override``, and the pack."""
        for pack in self.overridden_by:
            for index, override in overrides_of(pack, self.code):
                yield index, override, pack

    @property
    def has_sound_packs(self) -> bool:
        """Whether nothing is wrong with the packs that it rests on."""
        packs = [*self.pack.with_extended(), *self.overridden_by]
        return not any(pack.reporter.problems for pack in packs)


class _Loading:
    """One loading of rule files and packs."""

    def __init__(self, packs: PackLoader, packaged: Collection[Path], *, tests: bool) -> None:
        self._packs = packs
        self._packaged = {folder.resolve() for folder in packaged}
        self._tests = tests
        self._sources: list[_Source] = []
        self._loaded: dict[Path, Pack] = {}
        self._whole: set[Path] = set()
        self.problems: list[Problem] = []

    def read(self, roots: Sequence[Path]) -> None:
        """Read the files in the roots, and in the packs that they extend."""
        seen: set[Path] = set()
        for root in roots:
            for folder in self._with_extended(root):
                for file in _files_of(folder):
                    place = file.resolve()
                    if place in seen:
                        continue
                    seen.add(place)
                    if file.name != PACK_FILE:
                        self._read_file(file, place, folder)
                    elif file.parent != folder:
                        self._with_extended(file.parent)

    def rules(self) -> list[Rule]:
        """Apply overrides, then check the rules and return those without problems."""
        for pack in self._loaded.values():
            self._override(pack)
        checked = [(source, self._rule(source)) for source in self._sources]
        for pack in self._loaded.values():
            if self._tests:
                check_macros(pack)
            self.problems += in_order(pack.reporter.problems)
        rules = [rule for source, rule in checked if rule and source.has_sound_packs]
        first, problems = _without_duplicates(rules)
        self.problems += problems
        if self._tests and builtin_rules().resolve() in self._loaded:
            codes = [str(source.code) for source in self._sources]
            self.problems += _unknown_consequences(rules, codes)
        return first

    def _with_extended(self, root: Path) -> list[Path]:
        try:
            if root.name == PACK_FILE:
                root = root.parent
            if not (root / PACK_FILE).is_file():
                return [root]
            packs = list(self._packs.load(root).with_extended())
        except OSError as error:
            raise RuleError(f"{root}: {error.strerror}") from None
        except InvalidRulesError as error:
            self.problems += error.problems
            return []
        for pack in packs:
            self._loaded.setdefault(pack.place, pack)
            self._whole.add(pack.place)
        return [pack.root for pack in packs]

    def _read_file(self, file: Path, place: Path, given: Path) -> None:
        try:
            pack = self._packs.load(pack_root(file, given))
            self._loaded.setdefault(pack.place, pack)
            tests = self._tests or not _is_below(place, self._packaged)
            document = read_document(file, tests=tests, positions=self._tests)
        except InvalidRulesError as error:
            self.problems += error.problems
        else:
            self._sources.append(_Source(file, place, pack, document, pack.shared))

    def _override(self, pack: Pack) -> None:
        for source in self._sources:
            if any(overrides_of(pack, source.code)):
                source.overridden_by.append(pack)
                if source.document.as_built:  # it lacks the positions that problems are shown at
                    source.document = read_document(source.path, tests=self._tests)
                source.document = overridden(source.document, pack)
                source.shared = source.shared.beside(pack.shared)
        codes = [str(source.code) for source in self._sources]
        for index, override in enumerate(pack.model.override if pack.model else ()):
            if override.code not in codes and pack.place in self._whole:
                pack.reporter.unknown(("override", index, "code"), "rule", override.code, codes)

    def _rule(self, source: _Source) -> Rule | None:
        reporter = Reporter(source.document)
        model = validate(RuleModel, source.document, reporter)
        if model is None:
            _check_the_rest(source, reporter)
            self.problems += in_order(reporter.problems)
            return None
        params, changed = self._params(source, model, reporter)
        if not source.document.as_built:
            _check_program(model, params, source, reporter)
        self.problems += in_order(reporter.problems)
        if reporter.problems:
            return None
        pack, parent = source.pack, source.place.parent
        category = parent.name if parent != pack.place else ""
        return Rule(model, params, category, pack.name, source.document, source.shared, changed)

    def _params(
        self, source: _Source, model: RuleModel, reporter: Reporter
    ) -> tuple[dict[str, Value], dict[str, str]]:
        """Return the values of a rule's parameters, and who changed those that differ."""
        pack = source.pack
        own = resolve_params(model.params, reporter)
        params = {**own, **pack.params}
        changed = dict.fromkeys(own.keys() & pack.params.keys(), f"pack {pack.name}")
        for index, override, by in source.overrides():
            for name, value in override.params.items():
                try:
                    params = replaced_param(params, name, value)
                except ExpressionError as error:
                    path = ("override", index, "params", name)
                    by.reporter.add(path, error.message, error.help, key=True)
                changed[name] = by.reporter.document.file
        return params, changed


def _check_the_rest(source: _Source, reporter: Reporter) -> None:
    """Report what else is wrong with a rule whose keys are."""
    mended = mend(RuleModel, source.document)
    if mended is None or mended.removed & {("measure",), ("params",), ("per",)}:
        return
    broken = {str(path[1]) for path in mended.removed if path[0] == "measure"}
    broken |= {f"params.{path[1]}" for path in mended.removed if path[0] == "params"}
    rest = Reporter(mended.document, broken)
    params = {**resolve_params(mended.model.params, rest), **source.pack.params}
    if ("from",) not in mended.removed and "from" in mended.document.data:
        compile_rule(mended.model, params, None, rest, source.shared)
    reporter.problems += rest.problems


def rule_files(paths: Sequence[Path]) -> list[Path]:
    """Return the rule files that paths of files and folders name.

    Raises:
        RuleError: a path does not exist.
    """
    return [file for path in paths for file in _files_of(path)]


def _files_of(root: Path) -> list[Path]:
    try:
        if root.is_dir():
            return sorted(yaml_files(root))
        exists = root.exists()
    except OSError as error:
        raise RuleError(f"{root}: {error.strerror}") from None
    if not exists:
        raise RuleError(f"{root}: no such rule file or folder")
    return [root]


def lies_in(file: str | Path, paths: Collection[Path]) -> bool:
    """Whether a rule file is one of the files, or lies in one of the folders or packs, named.

    Args:
        file: of the rule.
        paths: as given; ``pack.yaml`` names its folder.
    """
    places = {path.resolve() for path in paths}
    places |= {path.parent for path in places if path.name == PACK_FILE}
    return _is_below(Path(file).resolve(), places)


def _is_below(place: Path, places: Collection[Path]) -> bool:
    return any(path in places for path in (place, *place.parents))


def _without_duplicates(rules: Sequence[Rule]) -> tuple[list[Rule], list[Problem]]:
    """Return the rules whose code and name no earlier rule has, and the problems of the others."""
    first: list[Rule] = []
    problems = []
    owners: dict[tuple[str, str], Rule] = {}
    for rule in rules:
        words = [("code", rule.code), ("name", rule.name)]
        taken = [word for word in words if word in owners]
        for key, word in taken:
            message = f"the {key} {word} is already used by {owners[key, word].file}"
            problems.append(Problem(rule.document.locate((key,)), message))
        if not taken:
            first.append(rule)
            owners |= dict.fromkeys(words, rule)
    return first, problems


def _unknown_consequences(rules: Sequence[Rule], codes: Collection[str]) -> Iterator[Problem]:
    for rule in rules:
        for index, code in enumerate(rule.model.explains):
            where = rule.document.locate(("explains", index))
            if code == rule.code:
                yield Problem(where, "a rule does not explain itself")
            elif code not in codes:
                yield Problem(where, f"unknown rule '{code}'", did_you_mean(code, codes))


def _check_program(
    model: RuleModel, params: Mapping[str, Value], source: _Source, reporter: Reporter
) -> None:
    """Compile a rule as no trace has it, run it on nothing, and report what is wrong with it."""
    program = compile_rule(model, params, None, reporter, source.shared)
    if program and not reporter.problems:
        _dry_run(program, model, reporter)


def _dry_run(program: Program, model: RuleModel, reporter: Reporter) -> None:
    """Run a rule on tables without rows and report what polars makes of it."""
    rows = pl.DataFrame(schema=program.table.schema)
    unit_table = program.per.table or FORWARDS
    unit = pl.DataFrame({"index": [0]}, schema_overrides={"index": pl.Int64})
    units = pl.concat([pl.DataFrame(schema=unit_table.schema), unit], how="diagonal")
    tables = WrittenTables(program.table, rows, units=units)
    try:
        evaluate_all(program, tables, model.quorum)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        reporter.add(("measure",), f"the rule cannot be evaluated: {reason}")

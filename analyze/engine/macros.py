"""Check the macros of a pack that no rule may use yet: each must fit at least one table."""

from analyze.engine.matchers import Macro, Shared, compile_matcher
from analyze.engine.packs import Pack
from analyze.engine.problems import Problem
from analyze.engine.reporting import Reporter
from analyze.engine.scope import Scope, column_kinds
from analyze.tables.catalogue import TABLES, Table


def check_macros(pack: Pack) -> None:
    """Report the macros of a pack that fit no table, with the problems of the table they fit best.

    Macros take parameters from the rule that uses them, so that those are not checked here.
    """
    for name, macro in pack.shared.macros.items():
        if macro.reporter is pack.reporter and not _uses_params(macro.tree):
            attempts = (_problems(name, pack, table) for table in TABLES.values())
            pack.reporter.problems += sorted(attempts, key=len)[0]


def _problems(name: str, pack: Pack, table: Table) -> list[Problem]:
    trial = Reporter(pack.reporter.document)
    macros = {
        word: Macro(macro.tree, trial if macro.reporter is pack.reporter else macro.reporter)
        for word, macro in pack.shared.macros.items()
    }
    scope = Scope(table.name, column_kinds(table.name), None, {}, {}, {})
    path = ("macros", name)
    compile_matcher(macros[name].tree, path, scope, trial, Shared(pack.shared.lists, macros))
    return trial.problems


def _uses_params(tree: object) -> bool:
    if isinstance(tree, dict):
        return any(_uses_params(item) for item in tree.values())
    if isinstance(tree, list):
        return any(_uses_params(item) for item in tree)
    return isinstance(tree, str) and "params." in tree

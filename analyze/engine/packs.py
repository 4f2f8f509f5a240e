"""Packs: folders of rules with what their rules share, found by name or by path."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from analyze.engine.document import Document
from analyze.engine.matchers import Macro, Shared
from analyze.engine.model import PackModel
from analyze.engine.params import resolve_params
from analyze.engine.problems import InvalidRulesError, did_you_mean, in_order
from analyze.engine.reporting import Reporter
from analyze.engine.rule_files import read_document
from analyze.engine.validation import validate
from analyze.engine.values import Scalar, Value

PACK_FILE = "pack.yaml"

BUILTIN = "builtin"
"""Name of the pack that comes with this program."""


@dataclass(frozen=True)
class Pack:
    """A folder of rules.

    Attributes:
        root: the folder.
        name: from ``pack.yaml``, else the folder's name.
        reporter: collects problems of ``pack.yaml``.
        shared: lists and macros, its own and those of the packs it extends.
        params: parameters its rules share; they come before a rule's own values.
        extends: packs whose rules are loaded with it, and before it.
        model: the file; None where there is none.
    """

    root: Path
    name: str
    reporter: Reporter
    shared: Shared = field(default_factory=Shared)
    params: Mapping[str, Value] = field(default_factory=dict)
    extends: tuple["Pack", ...] = ()
    model: PackModel | None = None

    @cached_property
    def place(self) -> Path:
        """The folder by the one path that has no links in it."""
        return self.root.resolve()

    def with_extended(self) -> Iterator["Pack"]:
        """Yield the packs it extends, deepest first, then itself."""
        for pack in self.extends:
            yield from pack.with_extended()
        yield self


def pack_root(file: Path, given: Path) -> Path:
    """Return the folder of the pack that a rule file belongs to: the nearest one, going up.

    Args:
        file: the rule file.
        given: the folder, or the file, that was asked for; it is the pack where nothing says so.
    """
    above = () if file.is_absolute() else Path.cwd().parents
    marked = (folder for folder in (*file.parents, *above) if (folder / PACK_FILE).is_file())
    return next(marked, given if given.is_dir() else file.parent)


class PackLoader:
    """Reads packs, each once."""

    def __init__(self, named: Mapping[str, Path]) -> None:
        """Create the loader.

        Args:
            named: folders of the packs that can be extended by name.
        """
        self._named = named
        self._resolved = cache(Path.resolve)
        self._packs: dict[Path, Pack] = {}
        self._loading: list[Path] = []

    def load(self, root: Path) -> Pack:
        """Return the pack in a folder.

        Raises:
            InvalidRulesError: its ``pack.yaml``, or that of a pack it extends, is invalid.
        """
        key = self._resolved(root)
        if key not in self._packs:
            self._loading.append(key)
            self._packs[key] = self._read(root)
            self._loading.pop()
        return self._packs[key]

    def _read(self, root: Path) -> Pack:
        file = root / PACK_FILE
        if not file.is_file():
            return Pack(root, self._resolved(root).name, Reporter(Document(str(root))))
        document = read_document(file, positions=False)
        reporter = Reporter(document)
        model = validate(PackModel, document, reporter)
        if model is None or reporter.problems:
            raise InvalidRulesError(in_order(reporter.problems))
        extends = tuple(self._extended(root, model, reporter))
        pack = Pack(
            root,
            model.pack,
            reporter,
            _shared(model, reporter, extends),
            resolve_params(model.params, reporter),
            extends,
            model,
        )
        if reporter.problems:
            raise InvalidRulesError(in_order(reporter.problems))
        return pack

    def _extended(self, root: Path, model: PackModel, reporter: Reporter) -> Iterator[Pack]:
        for index, name in enumerate(model.extends):
            folder = self._named.get(name, root / name)
            if self._resolved(folder) in self._loading:
                reporter.add(("extends", index), f"the pack '{name}' extends this one")
            elif not folder.is_dir():
                known = did_you_mean(name, self._named)
                help_text = f"{known}; or write the path of a folder beside this file"
                reporter.add(("extends", index), f"no pack '{name}'", help_text)
            else:
                yield self.load(folder)


def _shared(model: PackModel, reporter: Reporter, extends: tuple[Pack, ...]) -> Shared:
    """Return a pack's lists and macros after those of the packs it extends."""
    lists: dict[str, list[Scalar]] = {}
    macros: dict[str, Macro] = {}
    for pack in extends:
        lists.update(pack.shared.lists)
        macros.update(pack.shared.macros)
    own = {name: Macro(tree, reporter) for name, tree in model.macros.items()}
    return Shared({**lists, **model.lists}, {**macros, **own})

"""Which work of one trace is which work of the other."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from analyze.diff.groups import Group, fold_subtrees
from analyze.diff.kernel_names import same_kernel_name
from analyze.tables.host import CHAIN_SEPARATOR

Key = tuple[str, Callable[[Group], Hashable]]
"""What two groups must have in common, in a word, and the value; null is nothing in common."""


@dataclass(frozen=True)
class Pair:
    """The same work in both traces; one side is empty where it is in one trace only.

    Attributes:
        before, after: groups of either trace.
        matched_by: what they have in common; None for work of one trace.
    """

    before: tuple[Group, ...]
    after: tuple[Group, ...]
    matched_by: str | None


def _leaf(group: Group) -> str | None:
    return None if group.chain is None else group.chain.rpartition(CHAIN_SEPARATOR)[2]


def _chain_and_family(group: Group) -> Hashable:
    known = group.chain is not None and group.family is not None
    return (group.chain, group.family) if known else None


def _leaf_and_family(group: Group) -> Hashable:
    known = group.chain is not None and group.family is not None
    return (_leaf(group), group.family) if known else None


def _name_and_leaf(group: Group) -> Hashable:
    leaf = _leaf(group)
    return None if leaf is None else (group.name, leaf)


_KERNEL_KEYS: tuple[Key, ...] = (
    ("name", lambda group: same_kernel_name(group.name)),
    ("op", _chain_and_family),
    ("op", _leaf_and_family),
)
_CALL_KEYS: tuple[Key, ...] = (
    ("name", lambda group: (group.name, group.chain)),
    ("elsewhere", _name_and_leaf),
)


def align_kernels(before: Sequence[Group], after: Sequence[Group]) -> list[Pair]:
    """Align kernels by name without tile sizes, then those of the same op chain and family."""
    return _align(before, after, _KERNEL_KEYS)


def align_calls(before: Sequence[Group], after: Sequence[Group]) -> list[Pair]:
    """Align copies or API calls by name and op chain, then those of an op of the same name."""
    return _align(before, after, _CALL_KEYS)


def align_ops(before: Sequence[Group], after: Sequence[Group]) -> list[Pair]:
    """Align ops by op chain, then whole subtrees that moved to another place.

    What is left is in one trace only; ops inside such an op are counted in it.
    """
    same = _align(before, after, [("name", _chain)])
    gone, new = _left(same, before), _left(same, after)
    moved = _align(gone, new, [("elsewhere", _below_anchor(gone, new))])
    gone, new = _left(moved, gone), _left(moved, new)
    return [
        *(pair for pair in [*same, *moved] if pair.matched_by is not None),
        *(Pair((group,), (), None) for group in fold_subtrees(gone)),
        *(Pair((), (group,), None) for group in fold_subtrees(new)),
    ]


def _chain(group: Group) -> str | None:
    return group.chain


def _left(pairs: Sequence[Pair], groups: Sequence[Group]) -> list[Group]:
    """Return the groups that no pair matched."""
    matched = {
        id(group)
        for pair in pairs
        if pair.matched_by is not None
        for group in (*pair.before, *pair.after)
    }
    return [group for group in groups if id(group) not in matched]


def _below_anchor(gone: Sequence[Group], new: Sequence[Group]) -> Callable[[Group], str | None]:
    """Return the chain of an op from the outermost op that moved.

    An op moved if it is the outermost one left in a trace and is left anywhere in the other.
    """
    anchors = _tops(gone) & {_leaf(group) for group in new}
    anchors |= _tops(new) & {_leaf(group) for group in gone}
    left = {group.chain for group in (*gone, *new)}

    def below(group: Group) -> str | None:
        ops = (group.chain or "").split(CHAIN_SEPARATOR)
        for depth, op in enumerate(ops):
            if op in anchors and CHAIN_SEPARATOR.join(ops[: depth + 1]) in left:
                return CHAIN_SEPARATOR.join(ops[depth:])
        return None

    return below


def _tops(groups: Sequence[Group]) -> set[str | None]:
    """Return the names of the ops that have none of the others around them."""
    return {_leaf(group) for group in fold_subtrees(groups)}


def _align(before: Sequence[Group], after: Sequence[Group], keys: Sequence[Key]) -> list[Pair]:
    """Match by the first key, what is left by the next; the rest is grouped by the first."""
    pairs: list[Pair] = []
    for word, key in keys:
        ours, theirs = _by(before, key), _by(after, key)
        common = [value for value in ours if value in theirs and value is not None]
        pairs += [Pair(tuple(ours[value]), tuple(theirs[value]), word) for value in common]
        before = [group for group in before if key(group) is None or key(group) not in theirs]
        after = [group for group in after if key(group) is None or key(group) not in ours]
    first = keys[0][1]
    pairs += [Pair(tuple(groups), (), None) for groups in _by(before, first).values()]
    pairs += [Pair((), tuple(groups), None) for groups in _by(after, first).values()]
    return pairs


def _by(groups: Sequence[Group], key: Callable[[Group], Hashable]) -> dict[Hashable, list[Group]]:
    found: dict[Hashable, list[Group]] = {}
    for group in groups:
        found.setdefault(key(group), []).append(group)
    return found

"""Op chains as people read them: the innermost ops tell most."""

from analyze.tables.host import CHAIN_SEPARATOR, ELLIPSIS
from analyze.words import printable

_SHOWN_OPS = 3


def short_chain(op_chain: str) -> str:
    """Return the innermost ops of a chain, safe to print; an ellipsis stands for the outer ones."""
    ops = op_chain.split(CHAIN_SEPARATOR)
    shown = ops[-_SHOWN_OPS:] if len(ops) <= _SHOWN_OPS else [ELLIPSIS, *ops[-_SHOWN_OPS:]]
    return CHAIN_SEPARATOR.join(map(printable, shown))

"""The host side: ops and annotations nested into trees, and what each inherits from above.

Times follow torch's ``key_averages()``: the profiler's own bookkeeping ops are left out, and an op
whose only child has its own name absorbs that child (torch 2.13, torch/autograd/profiler_util.py).
"""

from dataclasses import dataclass

import polars as pl

from analyze.tables.dtypes import input_dtypes
from analyze.tables.nesting import Forest, nest

BOOKKEEPING_OPS = (
    "profiler::_record_function_enter",
    "profiler::_record_function_enter_new",
    "profiler::_record_function_exit",
    "aten::is_leaf",
    "aten::output_nr",
    "aten::_version",
)
"""Ops that torch's own tables leave out."""

STEP_PREFIX = "ProfilerStep#"
CHAIN_SEPARATOR = " > "
ELLIPSIS = "\u2026"

MAX_CHAINS = 1 << 17
MAX_CHAIN_LENGTH = 2048
"""Bounds on the distinct op chains that are spelt out, and on the characters of one."""

_BACKWARD_PREFIX = "autograd::engine::evaluate_function"
_OPTIMIZER_PREFIX = "Optimizer."


@dataclass(frozen=True)
class Host:
    """The host intervals of a trace.

    Attributes:
        forest: ops and annotations. Its ``nodes`` hold, beside the event columns: ``is_op``;
            ``op_row`` and ``region_row`` (innermost op and innermost annotation at or above the
            node, as rows of ``nodes``); ``root_row`` (outermost op); ``absorbed`` (the node was
            merged into its parent); ``depth`` (ops above it); ``op_chain``; ``phase``; ``self_ns``;
            ``dtype``; ``root_dtype``.
    """

    forest: Forest

    @property
    def nodes(self) -> pl.DataFrame:
        """The nodes of the forest."""
        return self.forest.nodes


def build_host(ops: pl.DataFrame, annotations: pl.DataFrame) -> Host:
    """Nest ops and annotations.

    Args:
        ops: the ``ops`` family frame with ``lane`` added.
        annotations: the ``annotations`` family frame with ``lane`` added.
    """
    intervals = pl.concat(
        [
            ops.filter(~pl.col("name").is_in(BOOKKEEPING_OPS)).with_columns(
                is_op=pl.lit(value=True)
            ),
            annotations.with_columns(is_op=pl.lit(value=False)),
        ]
    )
    intervals = intervals.with_columns(
        is_op=pl.col("is_op") & ~pl.col("name").str.starts_with(STEP_PREFIX),
        end_ns=pl.col("start_ns") + pl.col("dur_ns"),
        dtype=input_dtypes(intervals["input_types"]),
    ).drop_nulls(["start_ns", "end_ns"])
    forest = nest(intervals)
    inherited = _inherit(forest.nodes)
    return Host(Forest(forest.nodes.with_columns(*inherited)))


def _inherit(nodes: pl.DataFrame) -> list[pl.Series]:
    """Pass facts from parents to children, top down."""
    walk = _TopDown(nodes)
    for row in range(nodes.height):
        walk.visit(row)
    return walk.columns()


class _TopDown:
    """One pass over the nodes, parents first, that fills one list per inherited fact."""

    def __init__(self, nodes: pl.DataFrame) -> None:
        self._names: list[str] = nodes["name"].fill_null("").to_list()
        self._parents: list[int | None] = nodes["parent"].to_list()
        self._is_op: list[bool] = nodes["is_op"].to_list()
        self._dtypes: list[str | None] = nodes["dtype"].to_list()
        self._backward: list[bool] = (nodes["forward_thread"] > 0).fill_null(value=False).to_list()
        self._ends: list[int] = nodes["end_ns"].to_list()
        self._self_ns: list[int] = (nodes["end_ns"] - nodes["start_ns"]).to_list()
        self._durations: list[int] = list(self._self_ns)
        self._children = _count_children(self._parents)
        rows = nodes.height
        self._merged_into: list[int] = list(range(rows))
        self._op_row: list[int | None] = [None] * rows
        self._root_row: list[int | None] = [None] * rows
        self._region_row: list[int | None] = [None] * rows
        self._depth = [0] * rows
        self._chain = [0] * rows
        self._phase = ["other"] * rows
        self._root_dtype: list[str | None] = [None] * rows
        self._chain_codes: dict[tuple[int, str], int] = {}
        self._chain_texts = [""]

    def visit(self, row: int) -> None:
        above = self._parents[row]
        parent = None if above is None else self._merged_into[above]
        self._parents[row] = parent
        if parent is not None:
            self._inherit_from(parent, row)
            if self._is_only_namesake(parent, row):
                self._merge(parent, row)
                return
            self._charge(parent, row)
        if self._is_op[row]:
            self._enter_op(row)
        else:
            self._enter_annotation(row)

    def _inherit_from(self, parent: int, row: int) -> None:
        self._op_row[row] = self._op_row[parent]
        self._root_row[row] = self._root_row[parent]
        self._region_row[row] = self._region_row[parent]
        self._depth[row] = self._depth[parent]
        self._chain[row] = self._chain[parent]
        self._phase[row] = self._phase[parent]
        self._root_dtype[row] = self._root_dtype[parent]

    def _is_only_namesake(self, parent: int, row: int) -> bool:
        return (
            self._children[parent] == 1
            and self._names[parent] == self._names[row]
            and self._is_op[parent] == self._is_op[row]
        )

    def _merge(self, parent: int, row: int) -> None:
        self._merged_into[row] = parent
        self._children[parent] = self._children[row]

    def _charge(self, parent: int, row: int) -> None:
        """Take the child's time out of its parent's self time."""
        overshoot = max(0, self._ends[row] - self._ends[parent])
        self._self_ns[parent] -= self._durations[row] - overshoot

    def _enter_op(self, row: int) -> None:
        name = self._names[row]
        if self._op_row[row] is not None:
            self._depth[row] += 1
        self._op_row[row] = row
        if self._root_row[row] is None:
            self._root_row[row] = row
        self._chain[row] = self._extend_chain(self._chain[row], name)
        if self._root_dtype[row] is None:
            self._root_dtype[row] = self._dtypes[row]
        if self._backward[row] or name.startswith(_BACKWARD_PREFIX):
            self._phase[row] = "backward"
        elif self._phase[row] == "other":
            self._phase[row] = "forward"

    def _enter_annotation(self, row: int) -> None:
        self._region_row[row] = row
        if self._names[row].startswith(_OPTIMIZER_PREFIX):
            self._phase[row] = "optimizer"

    def _extend_chain(self, chain: int, name: str) -> int:
        code = self._chain_codes.get((chain, name))
        if code is not None:
            return code
        if len(self._chain_texts) >= MAX_CHAINS:
            return chain
        above = self._chain_texts[chain]
        text = f"{above}{CHAIN_SEPARATOR}{name}" if above else name
        if len(text) > MAX_CHAIN_LENGTH:
            text = f"{ELLIPSIS}{CHAIN_SEPARATOR}{name}"
        code = self._chain_codes[chain, name] = len(self._chain_texts)
        self._chain_texts.append(text)
        return code

    def columns(self) -> list[pl.Series]:
        merged_into = pl.Series("merged_into", self._merged_into, dtype=pl.UInt32)
        rows = pl.int_range(len(merged_into), dtype=pl.UInt32, eager=True)
        chains = pl.Series(self._chain_texts, dtype=pl.String)
        chain_codes = pl.Series(self._chain, dtype=pl.UInt32)
        return [
            merged_into,
            (merged_into != rows).alias("absorbed"),
            pl.Series("parent", self._parents, dtype=pl.UInt32),
            pl.Series("op_row", self._op_row, dtype=pl.UInt32),
            pl.Series("root_row", self._root_row, dtype=pl.UInt32),
            pl.Series("region_row", self._region_row, dtype=pl.UInt32),
            pl.Series("depth", self._depth, dtype=pl.UInt32),
            chains.gather(chain_codes).replace("", None).alias("op_chain"),
            pl.Series("phase", self._phase, dtype=pl.String),
            pl.Series("self_ns", self._self_ns, dtype=pl.Int64),
            pl.Series("root_dtype", self._root_dtype, dtype=pl.String),
        ]


def _count_children(parents: list[int | None]) -> list[int]:
    counts = [0] * len(parents)
    for parent in parents:
        if parent is not None:
            counts[parent] += 1
    return counts

"""The host side: ops and annotations nested into trees, and what each inherits from above.

Times follow torch's ``key_averages()``: the profiler's own bookkeeping ops are left out, and an op
whose only child has its own name absorbs that child (torch 2.13, torch/autograd/profiler_util.py).
"""

from operator import itemgetter
from typing import NamedTuple

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

IS_ANNOTATION = ~pl.col("is_op") & ~pl.col("absorbed")
"""Of the nodes of :class:`Host`: an annotation, but for one that stands again for the one above."""

_PHASES = ("other", "forward", "backward", "optimizer", "other")
_UNTOLD, _FORWARD, _BACKWARD, _OPTIMIZER, _LOADING = range(len(_PHASES))
_NO_DTYPE = 0

_BACKWARD_PREFIXES = (
    "autograd::engine::evaluate_function",
    # DDP's reducer writes the reduced buckets back when the autograd engine is done with its tasks.
    "torch.distributed.ddp.reducer::copy_bucket_to_grad",
    "torch.distributed.ddp.reducer::mul_out",
    "torch::autograd::",
)
_BACKWARD_NODE = r"^\w+Backward\d*$"
"""A node of the autograd graph: torch 1.8 and 1.9 record it alone, and 1.8 no forward thread."""
_OPTIMIZER_PREFIX = "Optimizer."
_LOADING_PREFIX = "enumerate(DataLoader)"
_NAMED_PHASES = {_OPTIMIZER_PREFIX: _OPTIMIZER, _LOADING_PREFIX: _LOADING}
"""What annotations say by how their names begin; torch 1.8 and 1.9 write them as ops."""


class Host(NamedTuple):
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


def build_host(frames: dict[str, pl.DataFrame]) -> Host:
    """Nest ops and annotations.

    Args:
        frames: the family frames ``ops`` and ``annotations`` with ``lane`` added; both are taken
            out, so that a large trace is not held twice.
    """
    forest = nest(_intervals(frames.pop("ops"), frames.pop("annotations")))
    nodes = forest.nodes.with_columns_seq(*_inherit(forest.nodes))
    return Host(Forest(nodes.with_columns_seq(self_ns=_self_times(nodes))))


def _intervals(ops: pl.DataFrame, annotations: pl.DataFrame) -> pl.DataFrame:
    is_bookkeeping = pl.col("name").is_in(BOOKKEEPING_OPS)
    both = pl.concat(
        [
            ops.drop("call_stack", "extra")
            .filter(~is_bookkeeping)
            .with_columns_seq(is_op=pl.lit(value=True)),
            annotations.drop("call_stack", "extra").with_columns_seq(is_op=pl.lit(value=False)),
        ]
    )
    return (
        both.with_columns_seq(
            is_op=pl.col("is_op") & ~pl.col("name").str.starts_with(STEP_PREFIX),
            end_ns=pl.col("start_ns") + pl.col("dur_ns"),
            dtype=input_dtypes(both["input_types"]),
            shapes=pl.when(pl.col("input_shapes").str.starts_with("[")).then("input_shapes"),
        )
        .drop("input_types", "input_shapes")
        .drop_nulls(["start_ns", "end_ns"])
    )


_Inherited = tuple[int | None, int | None, int | None, int, int, int, int]
"""What a node passes on to the nodes below it, by the names of ``_INHERITED``; texts as codes.

A plain tuple, because there is one for each of millions of nodes.
"""
_INHERITED = ("op_row", "root_row", "region_row", "depth", "chain", "phase", "root_dtype")
_NOTHING: _Inherited = (None, None, None, 0, 0, _UNTOLD, _NO_DTYPE)


def _inherit(nodes: pl.DataFrame) -> list[pl.Series]:
    """Pass facts from parents to children, top down."""
    walk = _TopDown(nodes)
    walk.visit_all()
    return walk.columns()


class _TopDown:
    """One pass over the nodes, parents first, that finds what each inherits.

    Names and dtypes are handled as codes: a trace has few of them, and many nodes.
    """

    def __init__(self, nodes: pl.DataFrame) -> None:
        self._name_texts, self._names = _codes(nodes["name"].fill_null(""))
        self._dtype_texts, self._dtypes = _codes(nodes["dtype"].fill_null(""))
        self._parents: list[int | None] = nodes["parent"].to_list()
        self._is_op: list[bool] = nodes["is_op"].to_list()
        self._is_backward: list[bool] = _are_backward(nodes).to_list()
        self._named_phases = [_phase_of_name(name) for name in self._name_texts]
        self._children = _count_children(self._parents)
        self._merged_into: dict[int, int] = {}
        self._inherited: list[_Inherited] = []
        self._chain_codes: dict[tuple[int, int], int] = {}
        self._chain_texts = [""]

    def visit_all(self) -> None:
        parents, merged_into, inherited = self._parents, self._merged_into, self._inherited
        for row, is_op in enumerate(self._is_op):
            above = parents[row]
            if above is None:
                from_above = _NOTHING
            else:
                parent = parents[row] = merged_into.get(above, above)
                from_above = inherited[parent]
                if self._children[parent] == 1 and self._is_namesake(parent, row):
                    self._merge(parent, row)
                    inherited.append(from_above)
                    continue
            enter = self._enter_op if is_op else self._enter_annotation
            inherited.append(enter(row, from_above))

    def _is_namesake(self, parent: int, row: int) -> bool:
        return self._names[parent] == self._names[row] and self._is_op[parent] == self._is_op[row]

    def _merge(self, parent: int, row: int) -> None:
        self._merged_into[row] = parent
        self._children[parent] = self._children[row]

    def _enter_op(self, row: int, above: _Inherited) -> _Inherited:
        op_row, root_row, region_row, depth, chain, phase, root_dtype = above
        name = self._names[row]
        if op_row is not None:
            depth += 1
        if root_row is None:
            root_row = row
        if root_dtype == _NO_DTYPE:
            root_dtype = self._dtypes[row]
        named = self._named_phases[name]
        if self._is_backward[row]:
            phase = _BACKWARD
        elif named is not None:
            phase = named
        elif phase == _UNTOLD:
            phase = _FORWARD
        chain = self._chain_codes.get((chain, name)) or self._extend_chain(chain, name)
        return row, root_row, region_row, depth, chain, phase, root_dtype

    def _enter_annotation(self, row: int, above: _Inherited) -> _Inherited:
        op_row, root_row, _, depth, chain, phase, root_dtype = above
        named = self._named_phases[self._names[row]]
        if named is not None:
            phase = named
        return op_row, root_row, row, depth, chain, phase, root_dtype

    def _extend_chain(self, chain: int, name: int) -> int:
        if len(self._chain_texts) >= MAX_CHAINS:
            return chain
        above, leaf = self._chain_texts[chain], self._name_texts[name]
        text = f"{above}{CHAIN_SEPARATOR}{leaf}" if above else leaf
        if len(text) > MAX_CHAIN_LENGTH:
            text = f"{ELLIPSIS}{CHAIN_SEPARATOR}{leaf}"
        code = self._chain_codes[chain, name] = len(self._chain_texts)
        self._chain_texts.append(text)
        return code

    def columns(self) -> list[pl.Series]:
        rows = pl.int_range(len(self._inherited), dtype=pl.UInt32, eager=True)
        merged = pl.Series(list(self._merged_into), dtype=pl.UInt32)
        facts = {
            name: pl.Series(name, list(map(itemgetter(place), self._inherited)), dtype=pl.UInt32)
            for place, name in enumerate(_INHERITED)
        }
        return [
            rows.is_in(merged.implode()).alias("absorbed"),
            pl.Series("parent", self._parents, dtype=pl.UInt32),
            *(facts[name] for name in ("op_row", "root_row", "region_row", "depth")),
            _spelt_out("op_chain", self._chain_texts, facts["chain"]),
            _spelt_out("phase", list(_PHASES), facts["phase"]),
            _spelt_out("root_dtype", self._dtype_texts, facts["root_dtype"]),
        ]


def _phase_of_name(name: str) -> int | None:
    """Return the phase that a name tells for itself and what is inside it."""
    phases = (phase for prefix, phase in _NAMED_PHASES.items() if name.startswith(prefix))
    return next(phases, None)


def _are_backward(nodes: pl.DataFrame) -> pl.Series:
    """Return which nodes are backward work whatever they are inside of.

    Beside what says so itself it is all that an autograd thread runs: between its nodes it adds up
    gradients, and runs hooks.
    """
    names = pl.col("name")
    is_named = pl.any_horizontal(names.str.starts_with(prefix) for prefix in _BACKWARD_PREFIXES)
    is_node = pl.col("is_op") & names.str.contains(_BACKWARD_NODE)
    told = nodes.select_seq(
        "lane", "start_ns", "name", "is_op", "forward_thread", "parent",
        is_backward=((pl.col("forward_thread") > 0) | is_named | is_node).fill_null(value=False),
    )  # fmt: skip
    return told["is_backward"] | told["lane"].is_in(_autograd_lanes(told).implode())


def _autograd_lanes(told: pl.DataFrame) -> pl.Series:
    """Return the threads that run nothing but backward work.

    Their first op is a node of the autograd graph, while a thread that calls ``backward()`` makes
    the first gradient before that. A recording may begin later: so they take no step either, and
    record no op that a backward would follow (``Fwd thread id`` 0).
    """
    roots = told.filter(pl.col("parent").is_null())
    first = roots.filter("is_op").sort("start_ns", maintain_order=True).group_by("lane").first()
    takes_steps = pl.any_horizontal(
        pl.col("name").str.starts_with(prefix) for prefix in (STEP_PREFIX, *_NAMED_PHASES)
    )
    others = told.filter(
        takes_steps | (pl.col("parent").is_null() & (pl.col("forward_thread") == 0))
    )
    return first.filter(pl.col("is_backward") & ~pl.col("lane").is_in(others["lane"].implode()))[
        "lane"
    ]


def _self_times(nodes: pl.DataFrame) -> pl.Series:
    """Return each node's duration without its children's, of which an overshoot is cut off."""
    inside = nodes.select_seq("parent", "absorbed", "start_ns", "end_ns").filter(
        pl.col("parent").is_not_null() & ~pl.col("absorbed")
    )
    ends = pl.min_horizontal("end_ns", nodes["end_ns"].gather(inside["parent"]))
    of_children = (
        inside.with_columns_seq(spent_ns=ends - pl.col("start_ns"))
        .group_by("parent")
        .agg(pl.col("spent_ns").sum())
    )
    rows = nodes.select_seq(
        pl.int_range(pl.len(), dtype=pl.UInt32).alias("parent"), "start_ns", "end_ns"
    ).join(of_children, on="parent", how="left", maintain_order="left")
    whole = rows["end_ns"] - rows["start_ns"]
    return whole - rows["spent_ns"].fill_null(0)


def _codes(texts: pl.Series) -> tuple[list[str], list[int]]:
    """Return the distinct texts, the empty one first, and each row's place among them."""
    distinct = pl.concat([pl.Series([""], dtype=pl.String), texts.unique()]).unique(
        maintain_order=True
    )
    return distinct.to_list(), texts.cast(pl.Enum(distinct)).to_physical().to_list()


def _spelt_out(name: str, texts: list[str], codes: pl.Series) -> pl.Series:
    """Turn codes back into texts; the empty text is null."""
    spelt = [text or None for text in texts]
    return pl.Series(name, spelt, dtype=pl.String).gather(codes)


def _count_children(parents: list[int | None]) -> list[int]:
    counts = [0] * len(parents)
    for parent in parents:
        if parent is not None:
            counts[parent] += 1
    return counts

"""Nesting of host intervals, against a plain search for the innermost enclosing interval."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyze.tables.nesting import ROUNDING_NS, Forest, nest, outermost

Interval = tuple[int, int, int]


def forest(rows: list[Interval]) -> Forest:
    frame = pl.DataFrame(
        [(lane, start, end, index) for index, (lane, start, end) in enumerate(rows)],
        schema={
            "lane": pl.UInt32,
            "start_ns": pl.Int64,
            "end_ns": pl.Int64,
            "event_index": pl.Int64,
        },
        orient="row",
    )
    return nest(frame)


@st.composite
def well_nested(draw: st.DrawFn) -> list[Interval]:
    """Draw intervals of which any two on a lane are disjoint or one inside the other."""
    rows: list[Interval] = []

    def fill(lane: int, start: int, end: int, depth: int) -> None:
        at = start
        while depth and at < end and draw(st.booleans()):
            begin = draw(st.integers(at, end - 1))
            stop = draw(st.integers(begin + 1, end))
            rows.append((lane, begin, stop))
            fill(lane, begin, stop, depth - 1)
            at = stop

    for lane in (0, 1):
        fill(lane, 0, 100_000, 4)
    return draw(st.permutations(rows))


@given(well_nested(), st.lists(st.tuples(st.integers(0, 1), st.integers(0, 100_000)), max_size=20))
def test_innermost_is_found(rows: list[Interval], points: list[tuple[int, int]]) -> None:
    tree = forest(rows)
    nodes = tree.nodes
    asked = pl.DataFrame(points, schema={"lane": pl.UInt32, "start_ns": pl.Int64}, orient="row")
    for (lane, time), node in zip(points, tree.innermost_at(asked), strict=True):
        holding = [
            (end - start, -depth_of(nodes, row))
            for row, (own, start, end) in enumerate(
                nodes.select("lane", "start_ns", "end_ns").rows()
            )
            if own == lane and start <= time < end
        ]
        if node is None:
            assert not holding
        else:
            start, end = nodes["start_ns"][node], nodes["end_ns"][node]
            assert start <= time < end
            assert (end - start, -depth_of(nodes, node)) == min(holding)


def depth_of(nodes: pl.DataFrame, row: int) -> int:
    depth, parent = 0, nodes["parent"][row]
    while parent is not None:
        depth, parent = depth + 1, nodes["parent"][parent]
    return depth


def test_parents_come_before_children_and_share_their_lane() -> None:
    nodes = forest([(0, 0, 100), (1, 10, 20), (0, 10, 90), (0, 20, 30), (0, 40, 50)]).nodes
    assert nodes["parent"].to_list() == [None, 0, 1, 1, None]


@pytest.mark.parametrize(
    ("overshoot", "parent"), [(0, 0), (ROUNDING_NS, 0), (ROUNDING_NS + 1, None)]
)
def test_a_child_may_end_a_rounding_later(overshoot: int, parent: int | None) -> None:
    nodes = forest([(0, 0, 10_000), (0, 5_000, 10_000 + overshoot)]).nodes
    assert nodes["parent"].to_list() == [None, parent]


def test_an_overlapping_interval_is_kept_as_a_sibling() -> None:
    nodes = forest([(0, 0, 50_000), (0, 10_000, 30_000), (0, 20_000, 45_000)]).nodes
    assert nodes["parent"].to_list() == [None, 0, 0]


@given(well_nested())
def test_outermost_are_those_without_a_parent(rows: list[Interval]) -> None:
    nodes = forest(rows).nodes
    roots = nodes.filter(pl.col("parent").is_null())
    assert outermost(nodes).sort("lane", "start_ns").equals(roots)


@pytest.mark.parametrize(
    ("overshoot", "is_inside"), [(0, True), (ROUNDING_NS, True), (ROUNDING_NS + 1, False)]
)
def test_what_ends_after_another_is_not_inside_it(overshoot: int, is_inside: bool) -> None:
    rows = [(0, 0, 10_000), (0, 5_000, 10_000 + overshoot), (1, 5_000, 6_000)]
    assert outermost(forest(rows).nodes).height == (2 if is_inside else 3)

"""Unions of intervals count overlapping time once."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from analyze.tables.intervals import covered_ns

INTERVALS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60), st.integers(0, 20)))
SCHEMA = {"device": pl.String, "start_ns": pl.Int64, "dur_ns": pl.Int64}


@given(INTERVALS)
def test_covered_time_equals_the_count_of_covered_nanoseconds(
    rows: list[tuple[str, int, int]],
) -> None:
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    found = {row["device"]: row for row in covered_ns(frame, ["device"]).iter_rows(named=True)}
    for device in {row[0] for row in rows}:
        own = [(start, length) for name, start, length in rows if name == device]
        covered = {ns for start, length in own for ns in range(start, start + length)}
        assert found[device]["busy_ns"] == len(covered)
        assert found[device]["sum_ns"] == sum(length for _, length in own)
        first, last = min(s for s, _ in own), max(s + n for s, n in own)
        assert found[device]["span_ns"] == last - first


def test_unknown_times_are_left_out() -> None:
    rows = [("a", 0, 10), ("a", None, 5), ("a", 20, None)]
    found = covered_ns(pl.DataFrame(rows, schema=SCHEMA, orient="row"), ["device"])
    assert found["busy_ns"].to_list() == [10]

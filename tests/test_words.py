"""Numbers and names as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyze.words import MAX_NAME, counted, duration, percentage, printable, share, size


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "unknown"), (0, "0 %"), (0.001, "<1 %"), (0.5, "50 %"), (0.998, ">99 %"), (1, "100 %")],
)
def test_a_share_never_reads_as_nothing_or_all_unless_it_is(
    value: float | None, expected: str
) -> None:
    assert share(value) == expected


def test_units_suit_the_number() -> None:
    assert duration(0.5) == "0.5 us"
    assert duration(1955.0) == "1.96 ms"
    assert duration(2_500_000) == "2.5 s"
    assert size(50) == "50 B"
    assert size(4 << 20) == "4 MiB"
    assert percentage(12.5) == "12.5 %"
    assert percentage(0.2) == "<1 %"
    assert counted(1, "launch", "launches") == "1 launch"
    assert counted(2000, "launch", "launches") == "2,000 launches"


@given(st.text())
def test_names_come_out_in_one_visible_bounded_line(text: str) -> None:
    shown = printable(text)
    assert len(shown.splitlines()) <= 1
    assert not any(char < " " or "\x7f" <= char < "\xa0" for char in shown)
    assert len(printable("x" * 10_000)) == MAX_NAME

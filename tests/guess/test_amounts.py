"""Amounts as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyze.guess.amounts import OPEN, Unit, parse_amount
from analyze.guess.answers import UnreadableAnswerError

COUNT, TIME, SHARE = Unit.COUNT, Unit.TIME, Unit.SHARE


@pytest.mark.parametrize(
    ("written", "unit", "low", "high"),
    [
        ("5", COUNT, 5, 5),
        ("5 kernels", COUNT, 5, 5),
        ("~5", COUNT, 4, 6),
        ("about 20", COUNT, 16, 24),
        ("3-6", COUNT, 3, 6),
        ("3 to 6", COUNT, 3, 6),
        ("between 3 and 6 copies", COUNT, 3, 6),
        ("3\u20136", COUNT, 3, 6),
        ("<10", COUNT, 0, 9),
        ("<= 10", COUNT, 0, 10),
        ("at most 10", COUNT, 0, 10),
        ("more than 2", COUNT, 3, OPEN),
        ("at least 2", COUNT, 2, OPEN),
        ("none", COUNT, 0, 0),
        ("No copies", COUNT, 0, 0),
        ("no", COUNT, 0, 0),
        ("yes", COUNT, 1, OPEN),
        ("10 +- 2", COUNT, 8, 12),
        ("2 ms", TIME, 1600, 2400),
        ("2ms", TIME, 1600, 2400),
        ("~300 us", TIME, 150, 450),
        ("300 \u00b5s", TIME, 240, 360),
        ("1-3 ms", TIME, 1000, 3000),
        ("500 us to 1 ms", TIME, 500, 1000),
        ("at most 5 ms", TIME, 0, 5000),
        ("2 ms +- 10 %", TIME, 1800, 2200),
        ("2 ms +- 10 percent", TIME, 1800, 2200),
        ("2 ms \u00b1 100 us", TIME, 1900, 2100),
        ("1.5 s", TIME, 1.2e6, 1.8e6),
        ("10 %", SHARE, 0.05, 0.15),
        ("10", SHARE, 0.05, 0.15),
        ("~50%", SHARE, 0.4, 0.6),
        ("5-20 %", SHARE, 0.05, 0.2),
        ("2 %", SHARE, 0, 0.07),
        ("10 % +- 3", SHARE, 0.07, 0.13),
        ("0.5 %", SHARE, 0, 0.055),
        ("none", SHARE, 0, 0),
    ],
)
def test_what_an_amount_means(written: str, unit: Unit, low: float, high: float) -> None:
    amount = parse_amount(written, unit)
    assert [amount.low, amount.high] == pytest.approx([low, high])


@pytest.mark.parametrize(
    ("written", "unit", "problem"),
    [
        ("five", COUNT, "is not a number: 5, ~5, 3-6"),
        ("2.5", COUNT, "not a whole number"),
        ("5 ms", COUNT, "not a whole number"),
        ("6-3", COUNT, "write the smaller number first"),
        ("3-", COUNT, "is not a number"),
        ("1e9", COUNT, "is not a number"),
        ("9" * 40, COUNT, "too large"),
        ("yes", TIME, "is not a time with its unit"),
        ("2", TIME, "write us, ms or s behind it"),
        ("2 minutes", TIME, "write us, ms or s behind it"),
        ("0.3", SHARE, "could be 0.3 % or 30 %"),
        ("1", SHARE, "could be 1 % or 100 %"),
        ("120 %", SHARE, "more than 100 %"),
        ("3 ms", SHARE, "is not a percentage"),
        ("10 % +- 5 us", SHARE, "'5 us' is not a number of percent"),
        ("less than 0", COUNT, "can never be: write 'none'"),
    ],
)
def test_nonsense_is_told_with_what_to_write(written: str, unit: Unit, problem: str) -> None:
    with pytest.raises(UnreadableAnswerError, match=problem):
        parse_amount(written, unit)


@given(
    written=st.text(max_size=30) | st.from_regex(r"[~<> 0-9.%\-a-z+]{1,12}"),
    unit=st.sampled_from(Unit),
)
def test_any_text_is_an_amount_or_refused(written: str, unit: Unit) -> None:
    try:
        amount = parse_amount(written, unit)
    except UnreadableAnswerError:
        return
    assert 0 <= amount.low <= amount.high <= OPEN


@given(low=st.integers(0, 10**6), size=st.integers(0, 10**6), value=st.integers(0, 3 * 10**6))
def test_a_range_holds_exactly_what_lies_in_it(low: int, size: int, value: int) -> None:
    amount = parse_amount(f"{low}-{low + size}", COUNT)
    assert (amount.low <= value <= amount.high) == (value in range(low, low + size + 1))

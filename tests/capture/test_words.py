"""How numbers and foreign texts are worded."""

import pytest

from capture.words import did_you_mean, duration, one_line, size


@pytest.mark.parametrize(
    ("microseconds", "worded"),
    [(0.04, "0.0 us"), (146.84, "146.8 us"), (1_955, "1.96 ms"), (2_500_000, "2.50 s")],
)
def test_durations(microseconds: float, worded: str) -> None:
    assert duration(microseconds) == worded


@pytest.mark.parametrize(
    ("count", "worded"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (3 << 29, "1.5 GiB"),
        (1 << 52, "4096.0 TiB"),
    ],
)
def test_sizes(count: int, worded: str) -> None:
    assert size(count) == worded


def test_a_foreign_text_is_one_harmless_line() -> None:
    assert one_line("a\r\n\tb \x1b[31m\u2028c\udce9") == "a b [31m c"
    assert one_line("x" * 400) == "x" * 299 + "…"


def test_no_guess_where_nothing_is_close() -> None:
    assert did_you_mean("zzz", ["naive"]) == ""

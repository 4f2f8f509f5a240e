"""Numbers and names as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyze.words import (
    MAX_NAME,
    counted,
    duration,
    inert_to_ci,
    percentage,
    printable,
    share,
    size,
    unitless,
    visible,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "unknown"), (0, "0 %"), (0.001, "<1 %"), (0.5, "50 %"), (0.998, ">99 %"), (1, "100 %")],
)
def test_a_share_never_reads_as_nothing_or_all_unless_it_is(
    value: float | None, expected: str
) -> None:
    assert share(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0"),
        (0.00926, "0.00926"),
        (1.5, "1.5"),
        (999.4, "999"),
        (999.6, "1,000"),
        (-999.6, "-1,000"),
        (12345.6, "12,346"),
        (1e300, "1e+300"),
    ],
)
def test_a_number_without_a_unit_has_three_digits_and_no_exponent(
    value: float, expected: str
) -> None:
    assert unitless(value) == expected


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


@pytest.mark.parametrize("value", [1e300, -1e300, 1e13, 5e-324])
def test_a_vast_number_takes_few_characters(value: float) -> None:
    for words in (duration(value), size(value), share(value), percentage(value)):
        assert len(words) < 16, words


@pytest.mark.parametrize(
    ("char", "shown"),
    [
        ("\u061c", "\\x61c"),
        ("\ufeff", "\\xfeff"),
        ("\U000e0041", "\\xe0041"),
        ("\U000e007f", "\\xe007f"),
    ],
)
def test_what_has_no_glyph_is_made_visible(char: str, shown: str) -> None:
    assert visible(f"a{char}b") == f"a{shown}b"


def test_no_line_is_a_command_to_a_ci_runner() -> None:
    text = "::error::x\n  ::group::y\naten::add ::z\n##[error]w, ##[add-mask]v # [u]\n"
    assert inert_to_ci(text) == (
        "\\::error::x\n  \\::group::y\naten::add ::z\n#\\#[error]w, #\\#[add-mask]v # [u]\n"
    )


@given(st.text(st.sampled_from(":#[ \n\ta")))
def test_every_line_is_inert_and_says_the_same(text: str) -> None:
    inert = inert_to_ci(text)
    assert "##[" not in inert
    assert not any(line.lstrip().startswith("::") for line in inert.split("\n"))
    assert inert.replace("\\", "") == text

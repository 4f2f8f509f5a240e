import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyze.engine.syntax import ExpressionError
from analyze.engine.templates import parse_template
from analyze.engine.values import Kind

KINDS = {"n": Kind.NUMBER, "who": Kind.TEXT, "ok": Kind.FLAG, "params.x": Kind.NUMBER}


def render(text: str, **values: Any) -> str:
    return parse_template(text, KINDS).render(values)


@pytest.mark.parametrize(
    ("form", "value", "expected"),
    [
        ("us", 0, "0 us"),
        ("us", 0.25, "0.25 us"),
        ("us", 1.3, "1.3 us"),
        ("us", 12.34, "12.3 us"),
        ("us", 366.4, "366 us"),
        ("us", 999.4, "999 us"),
        ("us", 999.6, "1 ms"),
        ("us", 1955.0, "1.96 ms"),
        ("us", 2_500_000, "2.5 s"),
        ("us", 0.0001, "0.0001 us"),
        ("us", -1500, "-1.5 ms"),
        ("pct", 0, "0 %"),
        ("pct", 0.004, "<1 %"),
        ("pct", 0.01, "1 %"),
        ("pct", 0.155, "16 %"),
        ("pct", 0.996, ">99 %"),
        ("pct", 1, "100 %"),
        ("int", 1.0, "1"),
        ("int", 2.5, "3"),
        ("bytes", 50, "50 B"),
        ("bytes", 268435456, "256 MiB"),
        ("bytes", 1536, "1.5 KiB"),
        ("bytes", 3 * 1024**4, "3 TiB"),
        (".1f", 12.55, "12.6"),
        (".2f", 1, "1.00"),
        (",", 1234567.0, "1,234,567"),
    ],
)
def test_formats(form: str, value: float, expected: str) -> None:
    assert render(f"{{n:{form}}}", n=value) == expected


def test_unknown_values_say_so() -> None:
    assert render("{n:us} {who} {ok}", n=None) == "unknown unknown unknown"
    assert render("{n}", n=float("nan")) == "unknown"


def test_values_without_a_format() -> None:
    text = render(
        "{n} {who} {ok} {params.x} {{n}}", n=0.123456, who="a", ok=True, **{"params.x": 3}
    )
    assert text == "0.1235 a true 3 {n}"


def test_texts_of_a_trace_become_one_printable_line_of_bounded_length() -> None:
    assert render("{who}", who="a\x1b[2J\nb") == "a\\x1b[2J\\x0ab"
    assert len(render("{who}", who="x" * 5000)) == 400
    assert render("{who}", who="{n:>99}") == "{n:>99}"


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("a {zz}", 3, "unknown name 'zz'"),
        ("{n.__class__}", 1, "unknown name"),
        ("{n.__class__.__mro__}", 1, "is not a name"),
        ("{n[0]}", 1, "is not a name"),
        ("{n!r}", 1, "is not a name"),
        ("{}", 1, "is not a name"),
        ("{0}", 1, "is not a name"),
        ("{n:>999999999}", 1, "unknown format"),
        ("{n:.9f}", 1, "unknown format"),
        ("{n:}", 1, "unknown format"),
        ("{who:us}", 1, "needs a number"),
        ("{", 0, "a single '{'"),
        ("a } b", 2, "a single '}'"),
        ("{n:{n}}", 0, "a single '{'"),
        ("x" * 3000, 0, "3000 characters"),
    ],
)
def test_mistakes_have_a_position(text: str, offset: int, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_template(text, KINDS)
    assert message in caught.value.message
    assert caught.value.offset == offset


@given(st.text(st.sampled_from("{}n:who.us[]!>9 %"), max_size=30))
def test_any_text_is_a_template_or_an_error(text: str) -> None:
    offset = 0
    try:
        template = parse_template(text, KINDS)
    except ExpressionError as error:
        offset = error.offset
    else:
        assert len(template.render({})) <= len(text) * 10
    assert 0 <= offset <= len(text)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1, "1 copy"), (0, "0 copies"), (2, "2 copies"), (None, "unknown unknown")],
)
def test_a_noun_fits_its_number(value: float | None, expected: str) -> None:
    assert render("{n:int} {n:copy|copies}", n=value) == expected


def test_a_part_with_an_unknown_value_is_left_out() -> None:
    text = "{who} ran[?, for {n:us} in {who}?]; [?done?]"
    assert render(text, who="a", n=5) == "a ran, for 5 us in a; done"
    assert render(text, who="a", n=None) == "a ran; done"
    assert render(text, who="a", n=float("nan")) == "a ran; done"
    assert parse_template(text, KINDS).names == {"who", "n"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a [? b", "'[?' is not closed"),
        ("a ?] b", "'?]' does not fit here"),
        ("[? a [? b ?] ?]", "'[?' does not fit here"),
        ("{n:a|b|c}", "unknown format"),
        ("{who:copy|copies}", "needs a number"),
    ],
)
def test_brackets_and_nouns_are_checked(text: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=re.escape(message)):
        parse_template(text, KINDS)

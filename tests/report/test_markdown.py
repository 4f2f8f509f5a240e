"""The format ``markdown``, read by a CommonMark parser with the tables of GitHub, and by GitHub's.

``cmarkgfm`` binds the parser that GitHub itself uses, ``cmark-gfm``.
"""

import dataclasses
import re
from xml.etree.ElementTree import Element

import html5lib
import pytest
from cmarkgfm import github_flavored_markdown_to_html
from cmarkgfm.cmark import Options
from markdown_it import MarkdownIt
from markdown_it.token import Token

from analyze.report.formats import Rendering
from analyze.report.markdown import MOST_BYTES, write_markdown
from tests.report.report_factory import HOSTILE, finding, hostile_report, report_of, sample_report

OURS = re.compile(r"<details><summary>[^<>]*</summary>\n?|</details>\n?")
FORBIDDEN = {"html_inline", "link_open", "image", "s_open", "em_open", "fence", "code_block", "hr"}
NO_WIDTH = "\u200b"


def parse(text: str) -> list[Token]:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    return [token for block in parser.parse(text) for token in (block, *(block.children or ()))]


def shown(tokens: list[Token]) -> str:
    """Return the text that a reader sees."""
    parts = [token.content for token in tokens if token.type in ("text", "code_inline")]
    return "".join(parts).replace(NO_WIDTH, "")


def rows(tokens: list[Token]) -> list[int]:
    """Return how many cells each row of each table has."""
    counts: list[int] = []
    for token in tokens:
        if token.type == "tr_open":
            counts.append(0)
        elif token.type in ("td_open", "th_open"):
            counts[-1] += 1
    return counts


def test_a_heading_a_verdict_a_table_and_details() -> None:
    tokens = parse(write_markdown([sample_report()], Rendering()))
    kinds = [token.type for token in tokens]
    assert [token.tag for token in tokens if token.type == "heading_open"] == ["h2"]
    assert kinds.index("heading_open") < kinds.index("strong_open") < kinds.index("table_open")
    assert rows(tokens) == [4, 4, 4]
    text = shown(tokens)
    expected = (
        "Most to save: unfused-attention (ATTN103)",
        "aten::masked_fill > aten::clone > aten::copy_",
        "365 us, 16 % of GPU busy time",
        "2 findings, 1 benign, 2 not applicable",
    )
    for said in expected:
        assert said in text
    titles = [token.content for token in tokens if token.type == "html_block"]
    for title in ("COPY101 hidden-memcpy", "coverage", "not answered", "benign"):
        assert any(title in html for html in titles)


def test_several_traces_stand_side_by_side_first() -> None:
    names = ("synthetic-naive", "synthetic-sdpa-math", "synthetic-sdpa-flash")
    tokens = parse(write_markdown([sample_report(name) for name in names], Rendering()))
    headings = [tokens[n + 1].content for n, t in enumerate(tokens) if t.type == "heading_open"]
    assert headings[0].startswith("Traces side by side")
    assert len(headings) == 4
    assert len(set(rows(tokens)[:4])) == 1
    assert "7.23 ms" in shown(tokens)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("verbose", [False, True], ids=["brief", "verbose"])
def test_what_a_trace_says_has_no_effect(text: str, verbose: bool) -> None:
    report = hostile_report(text)
    written = write_markdown([report, report], Rendering(verbose=verbose))
    tokens = parse(written)
    assert not FORBIDDEN & {token.type for token in tokens}
    for token in tokens:
        if token.type == "html_block":
            assert OURS.fullmatch(token.content)
    side_by_side, findings = rows(tokens)[:3], [r for r in rows(tokens)[3:] if r]
    assert len(set(side_by_side)) == 1
    assert findings == [4, 4, 4, 4]
    assert len([t for t in tokens if t.type == "heading_open"]) == 3
    written.encode()


def test_names_are_shown_as_they_are() -> None:
    name = "a | b <c> &amp; `d` *e* [f](g) #12 @h \\| $i$"
    report = report_of(finding(message=name, evidence=({"name": name},)))
    text = shown(parse(write_markdown([report], Rendering())))
    assert text.count(name) == 3  # in the table, as observed, as evidence


def test_nobody_is_notified_and_nothing_is_linked() -> None:
    report = report_of(finding(message="@someone #12 https://x.example GH-1 :smile: www.x.example"))
    written = write_markdown([report], Rendering())
    assert not re.search(r"@someone|(?<!&)#12|https://|GH-1|:smile:|www\.", written)


def test_a_finding_that_is_known_stands_below_the_others() -> None:
    known = finding(number=1, baseline="known", message="known since long")
    report = report_of(known, baseline="baseline.json")
    text = shown(parse(write_markdown([report], Rendering())))
    assert "known since long" not in text
    assert "1 known finding" in text


def test_it_fits_the_summary_of_a_step_and_says_what_is_cut() -> None:
    row = {f"column_{number}": f"{number}-" + "x" * 380 for number in range(30)}
    findings = [finding(number=n, evidence=(row,) * 5, code=f"MINE{n:03}") for n in range(25)]
    written = write_markdown([report_of(*findings)] * 10, Rendering(verbose=True))
    assert len(written.encode()) <= MOST_BYTES < 1 << 20
    last = written.rstrip().splitlines()[-1]
    assert re.fullmatch(
        r"\*\*Cut here\*\*, to keep below 1,000,000 bytes: \d+ blocks left out\.", last
    )
    assert written.count("<details>") == written.count("</details>")


def test_hundreds_of_findings_are_counted() -> None:
    findings = [finding(number=n, code=f"MINE{n:03}") for n in range(400)]
    written = write_markdown([report_of(*findings)], Rendering())
    assert "and 350 more findings" in written
    assert "Without details: 375 more findings." in written


def test_a_clean_trace_says_so() -> None:
    report = dataclasses.replace(report_of(), not_applicable=())
    text = shown(parse(write_markdown([report], Rendering())))
    assert "nothing found" in text
    assert "0 findings, 0 benign" in text


ELEMENTS = {
    *("h2", "p", "strong", "code", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"),
    *("details", "summary"),
}
"""What reports are made of."""


def elements(text: str) -> list[Element]:
    """Return the elements that GitHub's parser makes of Markdown, HTML of ours included."""
    page = github_flavored_markdown_to_html(text, Options.CMARK_OPT_UNSAFE)
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    return list(parser.parseFragment(page).iter())[1:]


@pytest.mark.parametrize("verbose", [False, True], ids=["brief", "verbose"])
def test_github_makes_the_same_elements_of_any_text(verbose: bool) -> None:
    def made_of(text: str) -> list[tuple[str, dict[str, str]]]:
        report = hostile_report(text)
        written = write_markdown([report, report], Rendering(verbose=verbose))
        found = [(element.tag, element.attrib) for element in elements(written)]
        assert {tag for tag, _ in found} <= ELEMENTS
        return [each for each in found if each[0] not in ("code", "strong")]

    plain = made_of("plain")
    for text in filter(lambda text: text.strip(" -"), HOSTILE):  # else a column would be empty
        assert made_of(text) == plain, text[:80]


def test_github_shows_a_name_as_it_is() -> None:
    name = "a | b <c> &amp; `d` *e* [f](g) #12 @h \\| $i$ ##[add-mask]x"
    report = report_of(finding(message=name, evidence=({"name": name},)))
    written = write_markdown([report], Rendering())
    [body] = html5lib.parse(
        github_flavored_markdown_to_html(written, Options.CMARK_OPT_UNSAFE),
        namespaceHTMLElements=False,
    ).iter("body")
    assert "".join(body.itertext()).replace(NO_WIDTH, "").count(name) == 3

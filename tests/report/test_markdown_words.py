"""Names and sentences in GitHub Markdown: shown as they are, and without effect."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from analyze.report.markdown_words import code, plain
from analyze.words import MAX_NAME, printable, visible
from tests.conftest import RunAnalyze
from tests.tables.test_attribution import kernel, launch, mark, op

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
NO_WIDTH = "\u200b"
HOSTILE = (
    "a|b", "|", "||x|", "`", "``x`", "x`` ` ```", "\\", "a\\|b", "\\`", "  both  ", " `", "- a",
    "1. b", "# h", "---", "<b>&amp;", "*a*_b_~~c~~", "[x](y)", "![x](y)", "$x$", "a\nb\r\x1b[31m",
    "@octocat", "#12 GH-12", ":x: :+1:", "https://evil.example www.evil.example", "a@b.example",
)  # fmt: skip
TEXTS = st.text(st.sampled_from("a`|\\ *_<&@#1:-\n") | st.characters(), max_size=30)
Test = TypeVar("Test", bound=Callable[..., None])
LIVE = re.compile(r"@\w|#\d|GH-\d|:[\w+-]+:|://|www\.", re.IGNORECASE)


def inline(text: str) -> list[Token]:
    """The tokens of the second cell of a table, of which all must be in one row of two cells."""
    tokens = MARKDOWN.parse(f"| a | b |\n| --- | --- |\n| {text} | end |\n")
    cells = [token for token in tokens if token.type == "inline"]
    assert len(cells) == 4
    assert cells[3].content == "end"
    return cells[2].children or []


def shown(tokens: list[Token]) -> str:
    return "".join(token.content for token in tokens)


def every(examples: tuple[str, ...]) -> Callable[[Test], Test]:
    def add(test: Test) -> Test:
        for text in examples:
            test = example(text)(test)
        return test

    return add


@every(HOSTILE)
@given(TEXTS)
def test_a_name_stands_in_code_spans_as_it_is(text: str) -> None:
    for tokens in (inline(code(text)), MARKDOWN.parseInline(code(text))[0].children or []):
        assert {token.type for token in tokens} <= {"code_inline", "text"}
        assert all(set(t.content) == {"|"} for t in tokens if t.type == "text" and t.content)
        assert shown(tokens) == printable(text)


@every(HOSTILE)
@given(TEXTS)
def test_a_sentence_is_shown_as_it_is_and_has_no_effect(text: str) -> None:
    expected = visible(text).replace(NO_WIDTH, "")
    for tokens in (inline(plain(text)), MARKDOWN.parseInline(plain(text))[0].children or []):
        assert {token.type for token in tokens} <= {"text"}
        assert shown(tokens).replace(NO_WIDTH, "").strip() == expected.strip()
        assert not LIVE.search(shown(tokens))


@every(HOSTILE)
@given(TEXTS)
def test_neither_opens_a_block_of_its_own(text: str) -> None:
    for written in (code(text), plain(text)):
        opened = [token.type for token in MARKDOWN.parse(f"- {written}\n")]
        assert opened[:2] == ["bullet_list_open", "list_item_open"]
        assert set(opened[2:-2]) <= {"paragraph_open", "inline", "paragraph_close"}


def test_long_names_are_cut() -> None:
    assert len(code("n" * 10_000)) == MAX_NAME + 2


def cells(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        if token.type == "inline":
            yield from token.children or []


@pytest.mark.parametrize("command", ["diff", "compare"])
def test_names_from_a_trace_have_no_effect(
    command: str, tmp_path: Path, run_analyze: RunAnalyze
) -> None:
    paths = []
    for number, who in enumerate(("octocat", "octodog")):
        name = f"@{who} | #12 :x: https://evil.example/ ```<b>\x1b[31m\u202e" + "y" * 10_000
        events = [mark(f"@fwd #{number}", 0, 100), op(name, 1, 50), launch(1, 2),
                  kernel(1, 10, 5, f"@k|#1 `:x:`{who}" + "z" * 10_000)]  # fmt: skip
        path = tmp_path / f"@me #{number}.json"
        path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
        paths.append(path)
    done = run_analyze(command, *paths, "--format", "markdown")
    assert done.returncode == 0, done.stderr
    assert len(max(done.stdout.splitlines(), key=len)) < 3000
    tokens = list(cells(MARKDOWN.parse(done.stdout)))
    texts = [token.content for token in tokens if token.type != "code_inline"]
    assert not [text for text in texts if LIVE.search(text)]
    assert any("@k" in token.content for token in tokens if token.type == "code_inline")
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout

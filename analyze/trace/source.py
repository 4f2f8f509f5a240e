"""Open a trace and hand out its text in blocks, whatever it is compressed with.

Compression is recognised by the first bytes, never by the file name: profilers write plain JSON
under ``.gz`` names and gzip under ``.json`` names. Layers are peeled off until plain text appears,
because uploads are often compressed a second time.
"""

import codecs
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import BinaryIO, cast

from isal import isal_zlib

from analyze.errors import AnalyzeError, TraceError

BLOCK_BYTES = 1 << 18
"""How much is read, and handed out, at a time: little enough to stay in the processor's cache."""

MAX_LAYERS = 3
"""How many compressions inside one another are undone; real files have at most two."""

STDIN = "-"
STDIN_NAME = "<stdin>"

_GZIP = b"\x1f\x8b"
_ZSTD_SKIPPED = tuple(bytes([first]) + b"\x2a\x4d\x18" for first in range(0x50, 0x60))
"""How frames begin that hold no text; some tools write them before, between or after the others."""

_ZSTD = (b"\x28\xb5\x2f\xfd", *_ZSTD_SKIPPED)
_MAGIC_BYTES = 4
_GZIP_WINDOW = 31
_INFLATE_ERRORS = cast("tuple[type[Exception], ...]", (isal_zlib.error, zlib.error))
_UTF8_BOM = codecs.BOM_UTF8
_UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

Blocks = Iterator[bytes]


@dataclass
class SourceReport:
    """What happened between the file's bytes and its text.

    Attributes:
        name: the path as given, or ``<stdin>``.
        file_bytes: bytes read from the file so far.
        text_bytes: bytes of JSON text handed out so far.
        compression: the layers undone, outermost first, e.g. ``["gzip", "gzip"]``.
        cut_short: a compressed stream ended before its own end mark, or was damaged.
        notes: other things worth telling the user, one sentence each.
    """

    name: str
    file_bytes: int = 0
    text_bytes: int = 0
    compression: list[str] = field(default_factory=list)
    cut_short: bool = False
    notes: list[str] = field(default_factory=list)


@contextmanager
def open_source(path: str | Path) -> Iterator[tuple[Blocks, SourceReport]]:
    """Open ``path`` (``-`` is standard input) and yield its text blocks with a live report.

    Raises:
        TraceError: the path is missing, a directory, or cannot be read.
        AnalyzeError: standard input is closed.
    """
    if str(path) == STDIN:
        if sys.stdin is None:
            raise AnalyzeError(
                f"{STDIN}: standard input is closed; name a trace file, or pipe one in"
            )
        report = SourceReport(name=STDIN_NAME)
        yield _text_blocks(sys.stdin.buffer, report), report
        return
    report = SourceReport(name=str(path))
    with _open_file(Path(path)) as file:
        yield _text_blocks(file, report), report


def _open_file(path: Path) -> BinaryIO:
    if path.is_dir():
        raise TraceError(f"{path}: is a directory; name a trace file inside it")
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise TraceError(f"{path}: no such file") from None
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror or error}") from None


def _text_blocks(file: BinaryIO, report: SourceReport) -> Blocks:
    blocks = _read_blocks(file, report)
    for _ in range(MAX_LAYERS):
        head, blocks = _peek(blocks)
        if head.startswith(_GZIP):
            report.compression.append("gzip")
            blocks = _gunzip(blocks, report)
        elif head.startswith(_ZSTD):
            report.compression.append("zstd")
            blocks = _unzstd(blocks, report)
        else:
            break
    return _count(_as_utf8(blocks, report), report)


def _read_blocks(file: BinaryIO, report: SourceReport) -> Blocks:
    while True:
        try:
            block = file.read(BLOCK_BYTES)
        except OSError as error:
            raise TraceError(f"{report.name}: cannot be read: {error.strerror or error}") from None
        if not block:
            return
        report.file_bytes += len(block)
        yield block


def _peek(blocks: Blocks) -> tuple[bytes, Blocks]:
    """Return at least four bytes of the stream's start (fewer if it is shorter) and the stream."""
    head = b""
    for block in blocks:
        head += block
        if len(head) >= _MAGIC_BYTES:
            break
    return head, chain([head] if head else [], blocks)


def _gunzip(blocks: Blocks, report: SourceReport) -> Blocks:
    """Inflate a gzip stream of any number of members; keep what a damaged one still yields."""
    stream = isal_zlib.decompressobj(wbits=_GZIP_WINDOW)
    for block in blocks:
        pending = block
        while pending:
            if stream.eof:
                if not pending.startswith(_GZIP[: len(pending)]):
                    report.notes.append("bytes after the end of the gzip stream were ignored")
                    return
                stream = isal_zlib.decompressobj(wbits=_GZIP_WINDOW)
            try:
                text = stream.decompress(pending, BLOCK_BYTES)
            except _INFLATE_ERRORS:
                report.cut_short = True
                report.notes.append("the gzip stream is damaged; what came before was kept")
                return
            pending = stream.unused_data if stream.eof else stream.unconsumed_tail
            if text:
                yield text
    if not stream.eof:
        report.cut_short = True


def _unzstd(blocks: Blocks, report: SourceReport) -> Blocks:
    """Inflate a zstd stream of any number of frames; keep what a damaged one still yields."""
    from analyze.trace.zstd import ZstdDecompressor, ZstdError  # noqa: PLC0415 - few are zstd

    stream = ZstdDecompressor()
    for block in blocks:
        pending = block
        while pending or not (stream.needs_input or stream.eof):
            if stream.eof:
                if not any(magic.startswith(pending[:_MAGIC_BYTES]) for magic in _ZSTD):
                    report.notes.append("bytes after the end of the zstd stream were ignored")
                    return
                stream = ZstdDecompressor()
            try:
                text = stream.decompress(pending, BLOCK_BYTES)
            except ZstdError:
                report.cut_short = True
                report.notes.append("the zstd stream is damaged; what came before was kept")
                return
            pending = stream.unused_data
            if text:
                yield text
    if not stream.eof:
        report.cut_short = True


def _as_utf8(blocks: Blocks, report: SourceReport) -> Blocks:
    head, blocks = _peek(blocks)
    if head.startswith(_UTF16_BOMS):
        report.notes.append("converted from UTF-16")
        decoder = codecs.getincrementaldecoder("utf-16")(errors="replace")
        for block in blocks:
            yield decoder.decode(block).encode()
        return
    first = next(blocks, b"")
    yield first.removeprefix(_UTF8_BOM)
    yield from blocks


def _count(blocks: Blocks, report: SourceReport) -> Blocks:
    for block in blocks:
        report.text_bytes += len(block)
        if block:
            yield block

"""Write a trace document event by event, compressed as its name says, whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from gzip import GzipFile
from pathlib import Path
from typing import IO, cast

from analyze.report.files import writing_whole
from analyze.trace.raw import tail_of
from analyze.trace.zstd import ZstdFile

_BLOCK_BYTES = 1 << 18
"""How much is compressed at a time."""

_GZIP_LEVEL = 6
"""Of zlib's, as torch's own files are about. igzip is ten times as fast, and its smallest file of a
trace of 56 MB was 38 % larger: 4.2 MB instead of 3.0."""


class TraceDocument:
    """The text of a trace, growing.

    Attributes:
        events: how many were written.
        tail: the text after the event list's closing bracket; to be set before the block ends,
            where it is not the end of an object without further members.
    """

    def __init__(self, stream: IO[bytes], head: bytes) -> None:
        """Begin with ``head``, which ends with the bracket that opens the event list."""
        self.events = 0
        self.tail = b"" if head == b"[" else tail_of({})
        self._stream = stream
        self._parts = [head]
        self._size = 0

    def write(self, text: bytes) -> None:
        """Add one event by its JSON text."""
        self._parts.append(b",\n" if self.events else b"\n")
        self._parts.append(text)
        self.events += 1
        self._size += len(text)
        if self._size >= _BLOCK_BYTES:
            self._flush()

    def finish(self) -> None:
        """Write what is left, the closing bracket and the tail."""
        self._parts += [b"\n]", self.tail]
        self._flush()

    def _flush(self) -> None:
        self._stream.write(b"".join(self._parts))
        self._parts, self._size = [], 0


@contextmanager
def write_trace(path: Path, head: bytes) -> Iterator[TraceDocument]:
    """Replace ``path`` by the trace that the block writes; see :func:`writing_whole`.

    A name that ends in ``.gz`` is compressed with gzip, ``.zst`` with zstd; the same content always
    gives the same bytes.

    Args:
        path: the file to write.
        head: the text before the first event, e.g. :attr:`analyze.trace.raw.RawTrace.head`.

    Raises:
        AnalyzeError: the file cannot be written.
    """
    with writing_whole(path) as file, _compressing(file, path.name) as stream:
        document = TraceDocument(stream, head)
        yield document
        document.finish()


@contextmanager
def _compressing(file: IO[bytes], name: str) -> Iterator[IO[bytes]]:
    if name.endswith(".gz"):
        with GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0) as stream:
            yield cast("IO[bytes]", stream)
    elif name.endswith(".zst"):
        with ZstdFile(file, "w") as stream:
            yield cast("IO[bytes]", stream)
    else:
        yield file

"""Name the files that are not PyTorch-profiler traces, so that the refusal helps.

People hand over whatever lies beside a trace: the execution trace, the memory timeline, a Git LFS
pointer, another profiler's Chrome trace. Each is recognised by its content.
"""

import re
from collections.abc import Iterable

from analyze.trace.families import LEGACY_CPU_PROCESS, PYTORCH_CATEGORIES

_WANTED = "expected a Chrome trace written by torch.profiler (export_chrome_trace)"

_BY_FIRST_BYTES: tuple[tuple[bytes, str], ...] = (
    (b"version https://git-lfs", "a Git LFS pointer, not the trace itself; run `git lfs pull`"),
    (b"SQLite format 3", "an SQLite database (an Nsight Systems export?)"),
    (b"PK\x03\x04", "a zip archive; unpack it first"),
    (b"\x80", "a pickle (a CUDA memory snapshot?)"),
    (b"\x1f\x8b", "compressed more often than is sensible"),
    (b"<", "an HTML or XML page"),
    (b"BZh", "compressed with bzip2; unpack it first"),
    (b"\xfd7zXZ", "compressed with xz; unpack it first"),
)

_PROTOBUF = re.compile(rb"\x0a[^\t\n\r -~]")
"""A first field of length-delimited type, followed by a byte that no text would hold there."""

_TRACE = re.compile(rb'^\s*\{\s*"schemaVersion"\s*:|"traceEvents"\s*:')
"""A trace: its metadata may hold any key, also those by which other kinds are known."""

_BY_TEXT: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (
        re.compile(rb'^\s*\{(?=.*"schema"\s*:\s*").*"nodes"\s*:\s*\[', re.DOTALL),
        "a PyTorch execution trace (ExecutionTraceObserver)",
    ),
    (
        re.compile(rb'^\s*\[?\s*\{\s*"schema_version"\s*:\s*\d+\s*,\s*"trace"\s*:'),
        "a result of analyze, not a trace; show it with --from",
    ),
    (re.compile(rb'"device_traces"\s*:'), "a CUDA memory snapshot"),
    (re.compile(rb'^\s*\{\s*"segments"\s*:'), "a CUDA memory snapshot"),
    (re.compile(rb"^\s*\[\s*\[\s*-?\d"), "a PyTorch memory timeline (export_memory_timeline)"),
    (re.compile(rb'"rocprofiler-sdk-tool"\s*:'), "a rocprofv3 result"),
    (re.compile(rb'"\$schema"\s*:\s*"[^"]*speedscope'), "a speedscope profile"),
)

_CHROME_TRACES: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (re.compile(rb'"viztracer_metadata"|"cat"\s*:\s*"FEE"'), "a VizTracer trace"),
    (re.compile(rb'"BeginNs"\s*:'), "a rocprof trace"),
    (
        re.compile(
            rb'"cat"\s*:\s*"(?:disabled-by-default-)?(?:devtools|blink|toplevel|cc|v8|loading)'
        ),
        "a browser trace (Chrome DevTools)",
    ),
    (
        re.compile(rb'"stackFrames"\s*:|"cat"\s*:\s*"(?:PERF|DataFlow|Op)"|tensorflow'),
        "a TensorFlow or other Chrome trace",
    ),
)


def other_kind(head: bytes) -> str | None:
    """Say what kind of file starts with ``head``, when it is surely not a Chrome trace.

    Returns:
        A phrase that completes "this is ...", or None when it may be a trace.
    """
    if not head.strip():
        return "empty"
    stripped = head.lstrip()
    if stripped[:1] in (b"{", b"["):
        if _TRACE.search(head):
            return None
        return next((kind for pattern, kind in _BY_TEXT if pattern.search(head)), None)
    if _PROTOBUF.match(head):
        return "a Perfetto protobuf trace"
    named = next((kind for magic, kind in _BY_FIRST_BYTES if head.startswith(magic)), None)
    return named or "not JSON"


def other_chrome_trace(head: bytes) -> str:
    """Say which other program's Chrome trace this is."""
    named = next((kind for pattern, kind in _CHROME_TRACES if pattern.search(head)), None)
    return named or "a Chrome trace of another program: none of its events is PyTorch's"


def is_pytorch(categories: Iterable[str | None], head: bytes) -> bool:
    """Whether events of these categories, in a text that starts with ``head``, are PyTorch's."""
    if any(category and category.lower() in PYTORCH_CATEGORIES for category in categories):
        return True
    return f'"{LEGACY_CPU_PROCESS}"'.encode() in head


def refusal(name: str, kind: str) -> str:
    """Word the one line a user sees."""
    return f"{name}: this is {kind}; {_WANTED}"

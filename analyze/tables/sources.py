"""The user's own source line behind an op or a launch, from the recorded Python frames."""

import re

import polars as pl

from analyze.tables.nesting import nest

_FRAME = re.compile(r"^(?P<file>.+)\((?P<line>\d+)\): (?P<function>.+)$", re.DOTALL)
_LIBRARY_FILE = re.compile(
    r"^<|^torch/|/torch/|/lib/python3|^python3|^lib/python3|/triton/|^triton/"
    r"|^(threading|contextlib|functools|runpy|abc|typing|copy|inspect|weakref|asyncio/.*"
    r"|concurrent/.*|multiprocessing/.*|importlib/.*|logging/.*)(\.py)?$"
)


def user_line(frame_name: str) -> str | None:
    """Return ``file:line`` when a frame is not torch's, the standard library's or a built-in.

    The line is the one the profiler recorded; it may be the function's first.
    """
    found = _FRAME.match(frame_name)
    if found is None or _LIBRARY_FILE.search(found["file"]):
        return None
    return f"{found['file']}:{found['line']}"


def sources_at(points: pl.DataFrame, frames: pl.DataFrame) -> pl.Series:
    """Return the user's source line that was running at each point on its thread.

    Only the user's frames are nested: the innermost of them is what is asked for.

    Args:
        points: columns ``lane`` and ``start_ns``.
        frames: the ``frames`` family frame with ``lane``.

    Returns:
        Strings ``file:line``, null where no user frame was recorded; same order as ``points``.
    """
    if frames.is_empty():
        return pl.repeat(None, points.height, dtype=pl.String, eager=True).alias("source")
    names = frames["name"].drop_nulls().unique()
    lines = pl.Series([user_line(name) for name in names], dtype=pl.String)
    user_names = pl.DataFrame({"name": names, "source": lines}).drop_nulls()
    user_frames = (
        frames.select("lane", "name", "start_ns", "dur_ns", "event_index")
        .join(user_names, on="name", how="inner")
        .with_columns(end_ns=pl.col("start_ns") + pl.col("dur_ns"))
        .drop("name", "dur_ns")
        .drop_nulls(["start_ns", "end_ns"])
    )
    forest = nest(user_frames)
    return forest.nodes["source"].gather(forest.innermost_at(points)).alias("source")

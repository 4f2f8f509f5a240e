"""The user's own source line behind an op or a launch, from the recorded Python frames."""

import re
import sys

import polars as pl

from analyze.tables.nesting import Forest, nest

_FRAME = re.compile(r"^(?P<file>.+)\((?P<line>\d+)\): (?P<function>.+)$", re.DOTALL)
_LIBRARY_FILE = re.compile(
    r"^<|^torch/|/torch/|/lib/python3|^python3|^lib/python3|/triton/|^triton/"
)
_STANDARD_LIBRARY = sys.stdlib_module_names - {"test"}
"""Its own tests run in no profile, and many projects have a folder of that name."""


def user_line(frame_name: str) -> str | None:
    """Return ``file:line`` when a frame is not torch's, the standard library's or a built-in.

    The line is the one the profiler recorded; it may be the function's first. torch writes paths
    without the folder that Python found them in, so a user's own ``types.py`` reads like the
    standard library's, and is taken for it.
    """
    found = _FRAME.match(frame_name)
    if found is None or _is_of_library(found["file"]):
        return None
    return f"{found['file']}:{found['line']}"


def _is_of_library(file: str) -> bool:
    module = file.partition("/")[0].removesuffix(".py")
    return module in _STANDARD_LIBRARY or _LIBRARY_FILE.search(file) is not None


def user_lines(call_stacks: pl.Series) -> pl.Series:
    """Return the user's line of each call stack as torch before 2.0 wrote them.

    Args:
        call_stacks: frames joined by ``;``, innermost first; may hold nulls.
    """
    distinct = call_stacks.drop_nulls().unique()
    lines = [_first_user_line(stack) for stack in distinct]
    return call_stacks.replace_strict(distinct, lines, default=None, return_dtype=pl.String)


def _first_user_line(stack: str) -> str | None:
    lines = (user_line(frame.strip()) for frame in stack.split(";"))
    return next((line for line in lines if line is not None), None)


def nest_user_frames(frames: pl.DataFrame) -> Forest:
    """Nest the Python frames that are the user's own, by their ``source`` line.

    Args:
        frames: the ``frames`` family frame with ``lane``.
    """
    names = frames["name"].drop_nulls().unique()
    lines = pl.Series([user_line(name) for name in names], dtype=pl.String)
    user_names = pl.DataFrame({"name": names, "source": lines}).drop_nulls()
    user_frames = (
        frames.select_seq("lane", "name", "start_ns", "dur_ns", "event_index")
        .join(user_names, on="name", how="inner")
        .with_columns_seq(end_ns=pl.col("start_ns") + pl.col("dur_ns"))
        .drop("name", "dur_ns")
        .drop_nulls(["start_ns", "end_ns"])
    )
    return nest(user_frames)


def sources_at(points: pl.DataFrame, user_frames: Forest) -> pl.Series:
    """Return the user's source line that was running at each point on its thread.

    Args:
        points: columns ``lane`` and ``start_ns``.
        user_frames: the result of :func:`nest_user_frames`; the others need not be searched,
            because the innermost of the user's frames is what is asked for.

    Returns:
        Strings ``file:line``, null where no user frame was recorded; same order as ``points``.
    """
    sources = user_frames.nodes["source"]
    return sources.gather(user_frames.innermost_at(points)).alias("source")

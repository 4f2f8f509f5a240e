"""Asking for steps: by generators that yield where one is to be run.

So that one protocol serves a function that can be called and a loop that the user owns.
"""

from collections.abc import Callable, Generator
from contextlib import closing
from typing import TypeAlias

Steps: TypeAlias = Generator[None, None, None]
"""Yields once for every step that is to be run."""


def drive(steps: Steps, step: Callable[[], object]) -> None:
    """Call a function once for every step that a generator asks for."""
    with closing(steps):  # ends the profiler where a step raises
        for _ in steps:
            step()

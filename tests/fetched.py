"""Programs of others that judge what is written: fetched when a test asks, kept out of ours."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

_PATIENCE = 300


def fetch(what: str, variable: str, *commands: Sequence[str | Path], folder: Path) -> None:
    """Run the installers of a program in a folder.

    Where one cannot, the test is skipped, or fails where ``variable`` says ``required``.
    """
    for command in commands:
        problem = _problem(list(map(str, command)), folder)
        if problem is None:
            continue
        message = f"{what} could not be fetched: {problem}"
        if os.environ.get(variable) == "required":
            pytest.fail(message)
        pytest.skip(message)


def _problem(command: list[str], folder: Path) -> str | None:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=_PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return f"{command[0]}: {done.stderr.strip()[-400:]}" if done.returncode else None

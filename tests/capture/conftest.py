"""The command in this process, and a Python file of a user's own."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from capture.cli import main


@dataclass(frozen=True)
class Outcome:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def last_line(self) -> str:
        return self.err.rstrip("\n").rpartition("\n")[2]


Command = Callable[..., Outcome]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run ``capture`` in this process, which spares importing torch again."""

    def run(*arguments: str | Path) -> Outcome:
        monkeypatch.setenv("KINETO_LOG_LEVEL", "6")  # undoes what the command sets
        monkeypatch.setattr(sys, "path", list(sys.path))
        monkeypatch.setattr(sys, "argv", ["capture", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        written = capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        assert "Traceback" not in written.err
        return Outcome(code, written.out, written.err)

    return run


USER_FILE = '''\
"""Attention of a user's own."""
import torch
from torch.nn.functional import scaled_dot_product_attention

CONSTANT = 3

def good(query, key, value, mask):
    """Attention by the library."""
    return scaled_dot_product_attention(
        query, key, value, is_causal=mask.is_causal, attn_mask=mask.allowed, enable_gqa=True
    )

def raises(query, key, value, mask):
    raise ValueError("not today\\n\\x1b[31mreally")

def exits(query, key, value, mask):
    raise SystemExit(7)

def wrong_shape(query, key, value, mask):
    return good(query, key, value, mask).transpose(1, 2)

def no_tensor(query, key, value, mask):
    return None

def out_of_memory(query, key, value, mask):
    return torch.empty(1 << 50)

def wrong(query, key, value, mask):
    return good(2 * query, key, value, mask)

def not_here(query, key, value, mask):
    raise NotImplementedError("needs a newer GPU")

def late(query, key, value, mask, calls=[]):
    calls.append(1)
    if len(calls) > 4:
        raise RuntimeError("gave up in the profiler")
    return good(query, key, value, mask)

def step():
    torch.ones(8).mul(2)

def failing_step():
    raise RuntimeError("no data")

def exiting_step():
    raise SystemExit(7)
'''


@pytest.fixture
def user_file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(USER_FILE)
    return path

"""Record PyTorch-profiler traces that can be trusted: attention variants, or a model of your own.

``record`` is the public API; the command is ``capture``.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capture.recording import Recording, record

__all__ = ["Recording", "record"]


def __getattr__(name: str) -> object:
    """Import torch only when it is needed: it takes seconds, and ``capture --help`` needs none."""
    if name in __all__:
        from capture import recording  # noqa: PLC0415

        return getattr(recording, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""The part of a kernel's name that stays when only its tile or a generated number changes."""

import re

_TENSILE_TUNING = re.compile(r"_MT\d.*")
"""From the macro tile on, a name of rocBLAS and hipBLASLt lists tuning parameters only."""
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_TILE = re.compile(r"\d+(?:x\d+)+")
_TILES = re.compile(r"\*(?:_\*)+")
_GENERATED = (
    (re.compile(r"(?<=knob_)\d+"), "*"),
    (re.compile(r"(?<=kernel)\d+_\d+$"), "*"),
    (re.compile(r"^(triton_.*)_\d+\w?$"), r"\1_*"),
)
"""Numbers that cuDNN and inductor count up."""


def same_kernel_name(short_name: str) -> str:
    """Return a display name with its tile sizes, addresses and generated numbers as ``*``.

    Two kernels that differ in nothing else are the same kernel with another tile. Template
    arguments are no part of display names, see :func:`analyze.kernels.display.shorten`.
    """
    name = _TENSILE_TUNING.sub("_MT*", short_name)
    name = _TILE.sub("*", _ADDRESS.sub("0x*", name))
    for pattern, replacement in _GENERATED:
        name = pattern.sub(replacement, name)
    return _TILES.sub("*", name)

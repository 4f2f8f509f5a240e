"""Which files of a folder are rules; nothing is read, so that completion is quick."""

from collections.abc import Iterator
from pathlib import Path

_SUFFIXES = (".yaml", ".yml")


def yaml_files(folder: Path) -> Iterator[Path]:
    """Yield the YAML files below a folder, in no order; what is hidden in it is none of them.

    Editors and notebooks keep copies of files in hidden folders.
    """
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        if path.suffix in _SUFFIXES and not any(part.startswith(".") for part in parts):
            yield path

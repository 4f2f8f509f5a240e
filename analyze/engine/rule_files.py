"""Read rule files: those of a wheel as they were when it was built, all others from their YAML."""

from pathlib import Path

from analyze.engine.document import Document
from analyze.engine.installed import PACKAGED
from analyze.packaged import as_built


def read_document(file: Path, *, tests: bool = True, positions: bool = True) -> Document:
    """Read a rule file or ``pack.yaml``.

    Args:
        file: the file.
        tests: read what stands under ``tests`` as well.
        positions: read where everything stands; without, data that was built in will do.

    Raises:
        InvalidRulesError: the file cannot be read, is too large, or is not acceptable YAML.
    """
    built = None if positions else _built(file)
    if built is not None:
        return built
    from analyze.engine.yaml_file import read_yaml  # noqa: PLC0415 - many runs need no YAML

    return read_yaml(file, without=None if tests else "tests")


def _built(file: Path) -> Document | None:
    if not file.is_relative_to(PACKAGED) or not file.is_file():
        return None
    try:
        data = as_built(file.read_bytes())
    except OSError:  # reading the YAML says what is wrong
        return None
    return None if data is None else Document(str(file), data, as_built=True)

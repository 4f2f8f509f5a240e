"""Rules that come with this program, or with installed packages; none of their code is run."""

from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

from analyze.errors import RuleError

ENTRY_POINT_GROUP = "kinetolint.rules"
"""A package declares ``name = "package.folder"`` in this group; the folder holds the pack."""

_PACKAGE = Path(__file__).parents[1]
PACKAGED = _PACKAGE / "_rules"
"""The built-in pack of a wheel."""


def builtin_rules() -> Path:
    """Return the folder of the built-in pack: inside the package, or beside it in a checkout."""
    return PACKAGED if PACKAGED.is_dir() else _PACKAGE.parent / "rules"


def installed_packs() -> dict[str, Path]:
    """Return the folders of installed packs by their entry point's name.

    Raises:
        RuleError: an entry point names a folder that does not exist.
    """
    return {entry.name: _folder(entry) for entry in entry_points(group=ENTRY_POINT_GROUP)}


def _folder(entry: EntryPoint) -> Path:
    package, *folders = entry.value.replace(":", ".").split(".")
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        spec = None
    for location in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(location, *folders)
        if folder.is_dir():
            return folder
    raise RuleError(
        f"the entry point '{entry.name}' of {ENTRY_POINT_GROUP} names '{entry.value}', but no"
        " installed package has such a folder"
    )

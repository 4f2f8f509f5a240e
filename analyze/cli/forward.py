"""Which annotation encloses one forward, and who names it."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analyze.config import ConfigFile
    from analyze.guess.loading import GuessFile


class Forward(NamedTuple):
    """The annotation that encloses one forward.

    Attributes:
        name: of the annotation.
        file: the guess file or configuration that names it; None for ``--forward``.
    """

    name: str
    file: str | None = None

    @property
    def words(self) -> str:
        """What a user finds the name by."""
        from analyze.words import printable  # noqa: PLC0415

        named = f"forward {printable(self.name)}"
        return f"--{named}" if self.file is None else f"{printable(self.file)}: {named}"


def chosen_forward(
    given: str | None, found: "ConfigFile | None" = None, guessed: Forward | None = None
) -> Forward | None:
    """Return what a forward is in every trace of a run; None leaves it to the trace.

    The option comes first, then the guess file, whose guesses are about it, then the project.

    Args:
        given: by ``--forward``.
        found: the configuration; by default the one that holds in this folder.
        guessed: by a guess file.

    Raises:
        AnalyzeError: the configuration is needed and cannot be read, or is wrong.
    """
    if given is not None:
        return Forward(given)
    if guessed is not None:
        return guessed
    if found is None:
        from analyze.config import find_config  # noqa: PLC0415

        found = find_config(Path.cwd())
    name = found.config.forward
    return None if name is None else Forward(name, str(found.file))


def guessed_forward(files: "Sequence[GuessFile]") -> Forward | None:
    """Return the annotation that guess files are about; None where they name none.

    Raises:
        AnalyzeError: they name different ones.
    """
    from analyze.guess.loading import forward_of  # noqa: PLC0415

    name = forward_of(files)
    return next((Forward(name, file.path) for file in files if name and file.forward == name), None)

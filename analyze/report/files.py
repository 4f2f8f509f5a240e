"""Write outputs whole or not at all."""

import os
import tempfile
from pathlib import Path

from analyze.errors import AnalyzeError


def write_whole(path: Path, text: str) -> None:
    """Replace ``path`` by ``text``; a reader sees the old content or the new, never a part.

    A symbolic link keeps pointing where it does; a device or a pipe is written to as it is.

    Raises:
        AnalyzeError: the file cannot be written.
    """
    temporary: str | None = None
    try:
        path = path.resolve()
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
            return
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            temporary = file.name
            file.write(text)
        Path(temporary).chmod(_new_file_mode())
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise AnalyzeError(f"{path}: cannot be written: {error.strerror or error}") from None


def _new_file_mode() -> int:
    """Return the mode a plainly created file would have; temporary files are private."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask

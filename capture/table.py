"""Plain aligned tables for a terminal."""

from collections.abc import Sequence


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str]) -> str:
    """Return rows under a header, columns aligned, without trailing blanks.

    Args:
        header: titles of the columns.
        rows: cells, as many in each row as there are titles.
        right: titles of the columns whose cells stand to the right.
    """
    table = [list(header), *map(list, rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    lines = []
    for row in table:
        cells = [
            cell.rjust(width) if title in right else cell.ljust(width)
            for title, cell, width in zip(header, row, widths, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"

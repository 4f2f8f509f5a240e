"""The catalogue of tables and columns as text and as JSON."""

from collections.abc import Sequence

import orjson
from rich.table import Table as TextTable
from rich.text import Text

from analyze.report.console import buffer_console, rendered
from analyze.tables.catalogue import Column, Table


def columns_as_text(tables: Sequence[Table], *, details: bool) -> str:
    """Return the tables, each with its columns when ``details``."""
    console = buffer_console()
    if not details:
        overview = _grid("table", "columns", "a row is")
        for table in tables:
            overview.add_row(Text(table.name), str(len(table.columns)), Text(table.meaning))
        console.print(overview)
        return rendered(console) + "\n`analyze columns TABLE` prints the columns of a table.\n"
    for table in tables:
        console.print(Text(f"{table.name}: {table.meaning}\n"))
        grid = _grid("column", "type", "unit", "meaning")
        for column in table.columns:
            grid.add_row(
                Text(column.name), type_name(column), Text(column.unit), Text(_meaning(column))
            )
        console.print(grid)
    return rendered(console)


def columns_as_json(tables: Sequence[Table]) -> str:
    """Return the tables with their columns as JSON."""
    data = {
        table.name: {
            "meaning": table.meaning,
            "view_of": table.base,
            "columns": [
                {
                    "name": column.name,
                    "type": type_name(column),
                    "unit": column.unit or None,
                    "meaning": column.meaning,
                    "values": list(column.values) or None,
                    "needs": column.needs.name.lower() if column.needs else None,
                }
                for column in table.columns
            ],
        }
        for table in tables
    }
    return orjson.dumps(data, option=orjson.OPT_INDENT_2).decode() + "\n"


def _grid(*headings: str) -> TextTable:
    grid = TextTable(box=None, pad_edge=False)
    for heading in headings:
        grid.add_column(Text(heading), overflow="fold")
    return grid


def type_name(column: Column) -> str:
    """Return the type of a column's values in a word."""
    names = {"String": "text", "Int64": "integer", "Float64": "number", "Boolean": "true/false"}
    return names[column.dtype.__name__]


def _meaning(column: Column) -> str:
    needed = f" [needs {column.needs.name.lower().replace('_', ' ')}]" if column.needs else ""
    values = f": {', '.join(column.values)}" if column.values else ""
    return column.meaning + values + needed

"""Records on stdout: a table for people, JSON or NDJSON for programs."""

import sys
from collections.abc import AsyncIterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import click
import msgspec
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.cli.words import printable, shown

#: characters of a cell at most
_CELL = 40
#: characters of a value that is never cut, and of what is left at least of one that is
_SHORT, _LEAST = 20, 8
#: members that say most of a record
_TELLING = ("id", "gid", "key", "name", "title", "subject", "status", "email", "text", "priority", "updated_at")
#: records whose members decide on the columns
_SAMPLE = 50


class Format(StrEnum):
    """How records are written."""

    TABLE = "table"
    JSON = "json"
    NDJSON = "ndjson"


output_option = click.option(
    "-o",
    "--output",
    "wanted",
    type=click.Choice(list(Format), case_sensitive=False),
    help="table on a terminal, else json; ndjson is one record a line.",
)


def format_of(wanted: str | None, piped: Format = Format.JSON) -> Format:
    """The format asked for, else a table where people look."""
    if wanted is not None:
        return Format(wanted)
    return Format.TABLE if sys.stdout.isatty() else piped


def write(value: Any, format: Format, columns: Sequence[str] = ()) -> None:  # noqa: A002 - the option's own word
    """A result as a whole: records, one record, or anything else."""
    match format:
        case Format.JSON:
            _line(msgspec.json.format(msgspec.json.encode(value), indent=2))
        case Format.NDJSON:
            for record in value if isinstance(value, list) else [value]:
                _line(msgspec.json.encode(record))
        case Format.TABLE if isinstance(value, list):
            write_table(value, columns)
        case Format.TABLE if isinstance(value, Mapping):
            _print(_facts(value))
        case Format.TABLE:
            _line(printable(str(value)).encode())


async def write_stream(
    records: AsyncIterable[Any],
    format: Format,  # noqa: A002
    columns: Sequence[str] = (),
) -> int:
    """Records as they come, in flat memory where the format allows; how many there were."""
    count = 0
    if format is Format.NDJSON:
        async for record in records:
            _line(msgspec.json.encode(record))
            count += 1
        return count
    found = [record async for record in records]
    write(found, format, columns)
    return len(found)


def write_table(records: Sequence[Any], columns: Sequence[str] = ()) -> None:
    """Records as a table, with as many columns as the terminal has room for."""
    if not records:
        Console(stderr=True).print(Text("no records", style="dim"))
        return
    if not all(isinstance(record, Mapping) for record in records):
        for record in records:
            _line(shown(record, most=1000).encode())
        return
    console = Console()
    names = list(columns) or columns_of(records, console.width)
    most = console.width if columns else _CELL
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in names:
        longest = max(len(shown(member(record, name), most)) for record in records)
        # an id that is cut is of no use, and short values are not worth cutting
        least = longest if name == "id" or longest <= _SHORT else _LEAST
        table.add_column(Text(printable(name)), overflow="ellipsis", no_wrap=True, min_width=least)
    for record in records:
        table.add_row(*(Text(shown(member(record, name), most)) for name in names))
    console.print(table)


def columns_of(records: Sequence[Mapping[str, Any]], width: int) -> list[str]:
    """The members worth a column, as many as the width has room for: plain values that are there and are no links."""
    sample = records[:_SAMPLE]
    names = dict.fromkeys(name for record in sample for name in record)
    cells = {name: [record.get(name) for record in sample] for name in names}
    plain = [name for name in names if any(cells[name]) and not any(map(_is_unfit, cells[name]))]
    chosen: list[str] = []
    left = width
    for name in sorted(plain or names, key=_weight):
        left -= 2 + max(len(name), *(len(shown(value, _CELL)) for value in cells[name]))
        if left < 0 and chosen:
            break
        chosen.append(name)
    return sorted(chosen, key=list(names).index)


def _is_unfit(value: object) -> bool:
    return isinstance(value, dict | list) or (isinstance(value, str) and value.startswith(("http://", "https://")))


def _weight(name: str) -> int:
    """What people look for first comes first; the rest keeps the application's order."""
    return _TELLING.index(name.lower()) if name.lower() in _TELLING else len(_TELLING)


def member(record: Mapping[str, Any], name: str) -> Any:
    """The member of that name, else at that dotted path."""
    if name in record:
        return record[name]
    found: Any = record
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _facts(record: Mapping[str, Any]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in record.items():
        table.add_row(Text(printable(name)), Text(shown(value, most=400)))
    return table


def _print(table: Table) -> None:
    Console().print(table)


def _line(text: bytes) -> None:
    sys.stdout.buffer.write(text + b"\n") if hasattr(sys.stdout, "buffer") else sys.stdout.write(text.decode() + "\n")
    sys.stdout.flush()

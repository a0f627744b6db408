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

#: characters that a column of a table takes at least
_COLUMN = 14
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
    names = list(columns) or columns_of(records, most=max(2, console.width // _COLUMN))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in names:
        table.add_column(Text(printable(name)), overflow="ellipsis", no_wrap=True)
    for record in records:
        table.add_row(*(Text(shown(member(record, name))) for name in names))
    console.print(table)


def columns_of(records: Sequence[Mapping[str, Any]], most: int) -> list[str]:
    """The members worth a column: those that have a plain value somewhere, in the application's own order."""
    sample = records[:_SAMPLE]
    names = dict.fromkeys(name for record in sample for name in record)
    plain = [
        name
        for name in names
        if any(record.get(name) not in (None, "") for record in sample)
        and not any(isinstance(record.get(name), dict | list) for record in sample)
    ]
    return (plain or list(names))[:most]


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
        table.add_row(Text(printable(name)), Text(shown(value, most=2000)))
    return table


def _print(table: Table) -> None:
    Console().print(table)


def _line(text: bytes) -> None:
    sys.stdout.buffer.write(text + b"\n") if hasattr(sys.stdout, "buffer") else sys.stdout.write(text.decode() + "\n")
    sys.stdout.flush()

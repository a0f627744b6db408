"""Prints records on stdout as a table, JSON or NDJSON."""

import sys
import textwrap
from collections.abc import AsyncIterable, Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

import click
import msgspec
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.cli.shell_completion import complete_field
from gateway.cli.words import ago, printable, shown
from gateway.foundation.aio.clock import CLOCK
from gateway.kinds.columns import weight
from gateway.kinds.suggestions import did_you_mean

Command = TypeVar("Command", bound=Callable[..., Any])

#: keys of the values of `--output` and `--fields` in `click.Context.meta`
_FORMAT, _FIELDS = "gateway.format", "gateway.fields"
#: maximum characters of a cell
_CELL = 400
#: values of at most this many characters are never cut
_SHORT = 20
#: minimum characters that are left of a cut value
_MIN_WIDTH = 8
#: characters between two columns
_GAP = 3
#: characters of the left and the right edge of a table
_EDGES = 2
#: maximum characters of a value that count when columns are chosen
_USUAL = 40
#: number of records whose members determine the columns
_SAMPLE = 50


class Format(StrEnum):
    """Formats of printed records."""

    TABLE = "table"
    JSON = "json"
    NDJSON = "ndjson"


def format_option(command: Command) -> Command:
    """`-o table|json|ndjson` and `--json`, for `chosen_format`."""
    command = click.option(
        "--json",
        "output_format",
        flag_value=Format.JSON.value,
        expose_value=False,
        callback=_store_format,
        help="Same as -o json.",
    )(command)
    return click.option(
        "-o",
        "--output",
        "output_format",
        type=click.Choice(list(Format), case_sensitive=False),
        expose_value=False,
        callback=_store_format,
        help="Output format: table on a terminal, else json. ndjson prints one record per line.",
    )(command)


def output_option(command: Command) -> Command:
    """`format_option` and `--fields`, which selects the fields that are printed."""
    return click.option(
        "--fields",
        multiple=True,
        metavar="FIELDS",
        expose_value=False,
        callback=_store_fields,
        shell_complete=complete_field,
        help="Print only these fields, such as id,status.",
    )(format_option(command))


def _store_format(ctx: click.Context, param: click.Parameter, text: str | None) -> None:
    if text is not None:
        ctx.meta[_FORMAT] = Format(text.lower())


def _store_fields(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> None:
    ctx.meta[_FIELDS] = [name for word in words for name in word.split(",") if name]


def _selected_fields() -> list[str]:
    ctx = click.get_current_context(silent=True)
    return [] if ctx is None else ctx.meta.get(_FIELDS, [])


def chosen_format(default: Format | None = None) -> Format:
    """The format that the user chose, else the default: a table on a terminal and JSON elsewhere."""
    found: Format | None = click.get_current_context().meta.get(_FORMAT, default)
    return found or (Format.TABLE if sys.stdout.isatty() else Format.JSON)


def is_table() -> bool:
    return chosen_format() is Format.TABLE


async def show(
    result: Any, columns: Sequence[str], row: Callable[[Any], Any], tail: Callable[[Any], str] | None
) -> None:
    """Print a command's result: a value, or Structs as they arrive.

    `row` makes the row of a table from a Struct. With `tail`, each Struct is printed on one line: in place of a table
    as that text, else as JSON.
    """
    if tail is not None:
        async for each in result:
            click.echo(tail(each) if is_table() else msgspec.json.encode(each).decode())
    elif isinstance(result, AsyncIterable):
        shown = row if is_table() else msgspec.to_builtins
        await write_stream((shown(each) async for each in result), columns)
    else:
        write(msgspec.to_builtins(result), columns)


def write(value: Any, columns: Sequence[str] = (), *, default: Format | None = None) -> None:
    """Print a result: records, one record, or another value."""
    fields = _selected_fields()
    value, columns = _narrowed(value, fields), fields or columns
    match chosen_format(default):
        case Format.JSON:
            _line(msgspec.json.format(msgspec.json.encode(value), indent=2))
        case Format.NDJSON:
            for record in value if isinstance(value, list) else [value]:
                _line(msgspec.json.encode(record))
        case Format.TABLE if isinstance(value, list):
            write_table(value, columns)
        case Format.TABLE if isinstance(value, Mapping):
            Console().print(_facts(value))
        case Format.TABLE:
            _line(printable(str(value)).encode())


def write_request(request: Mapping[str, Any]) -> None:
    """Print a request of a dry run as HTTP text; lines are not cut or wrapped, so that they can be copied."""
    lines = [f"{request['method']} {request['url']}"]
    lines += [f"{name}: {value}" for name, value in (request.get("headers") or {}).items()]
    body = request.get("body")
    if body is not None:
        text = body if isinstance(body, str) else msgspec.json.format(msgspec.json.encode(body), indent=2).decode()
        lines += ["", *text.splitlines()]
    _line("\n".join(map(printable, [*lines, ""])).encode())


def _narrowed(value: Any, fields: Sequence[str]) -> Any:
    """The value with only these fields of each record; raises click.BadParameter for a field that no record has."""
    if not fields:
        return value
    if isinstance(value, Mapping):
        return _only(value, fields)
    if not isinstance(value, list):
        return value
    _require_known(fields, {name: None for record in value if isinstance(record, Mapping) for name in record})
    return [_only(record, fields) for record in value]


def _require_known(fields: Sequence[str], names: Mapping[str, None]) -> None:
    """Raise click.BadParameter for a field that is not among the members of the records, if there are any."""
    for name in fields:
        if names and name not in names and name.partition(".")[0] not in names:
            raise click.BadParameter(f"no record has {name!r}; {did_you_mean(name, names)}", param_hint="--fields")


def _only(record: Any, fields: Sequence[str]) -> Any:
    return {name: member(record, name) for name in fields} if isinstance(record, Mapping) else record


async def write_stream(records: AsyncIterable[Any], columns: Sequence[str] = ()) -> None:
    """Print records as they arrive. A table needs all records in memory.

    Raises click.BadParameter after the last record for a field that none of them has.
    """
    is_json = chosen_format() is Format.JSON
    if is_table():
        write([record async for record in records], columns)
        return
    fields, count = _selected_fields(), 0
    names: dict[str, None] = {}
    async for record in records:
        if fields and isinstance(record, Mapping):
            names.update(dict.fromkeys(record))
        body = msgspec.json.encode(_only(record, fields) if fields else record)
        if is_json:
            body = (b",\n" if count else b"[\n") + textwrap.indent(
                msgspec.json.format(body, indent=2).decode(), "  "
            ).encode()
            _write(body)
        else:
            _line(body)
        count += 1
    if is_json:
        _line(b"\n]" if count else b"[]")
    _require_known(fields, names)


def write_table(records: Sequence[Any], columns: Sequence[str] = ()) -> None:
    """Print records as a table that fits the terminal. A cut value ends with …; a note names the columns left out."""
    if not records:
        Console(stderr=True).print(Text("no records", style="dim"))
        return
    if not all(isinstance(record, Mapping) for record in records):
        for record in records:
            _line(shown(record, max_length=1000).encode())
        return
    console = Console()
    room = console.width - _EDGES
    names = list(columns) or columns_of(records, room)
    now = CLOCK.now() if console.is_terminal else None
    cells = {name: [_cell(member(record, name), now) for record in records] for name in names}
    widths = fitted({name: max(map(cell_len, (name, *texts))) for name, texts in cells.items()}, room)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, width in widths.items():
        table.add_column(Text(printable(name)), overflow="ellipsis", no_wrap=True, width=width)
    for row in zip(*(cells[name] for name in widths), strict=True):
        table.add_row(*map(Text, row))
    console.print(table)
    left_out = [name for name in names if name not in widths]
    if left_out:
        note = f"no room for {', '.join(left_out)}; choose with --fields, or see all with --json"
        Console(stderr=True, soft_wrap=True).print(Text(printable(note), style="dim"))


def _cell(value: Any, now: datetime | None) -> str:
    """The text of a value in a cell; with `now`, times are relative to it."""
    return (ago(value, now) if now is not None else None) or shown(value, _CELL)


def fitted(widths: Mapping[str, int], width: int) -> dict[str, int]:
    """The columns that fit into the width, with the width of each, in the given order.

    Short values and ids are never cut, long values down to a few characters. The least informative columns are left
    out first.
    """
    min_widths = {
        name: size if name == "id" or size <= _SHORT else max(_MIN_WIDTH, len(name)) for name, size in widths.items()
    }
    columns: list[str] = []
    for name in sorted(widths, key=weight):
        if not columns or sum(min_widths[each] for each in (*columns, name)) + _GAP * len(columns) <= width:
            columns.append(name)
    sizes = {name: min(min_widths[name], width) for name in widths if name in columns}
    remaining = width - sum(sizes.values()) - _GAP * (len(sizes) - 1)
    for name in sorted(sizes, key=weight):
        more = min(remaining, widths[name] - sizes[name])
        sizes[name] += more
        remaining -= more
    return sizes


def columns_of(records: Sequence[Mapping[str, Any]], width: int) -> list[str]:
    """The members that become columns, as many as fit: those with plain values that are not links."""
    sample = records[:_SAMPLE]
    names = dict.fromkeys(name for record in sample for name in record)
    cells = {name: [record.get(name) for record in sample] for name in names}
    fitting = [
        name for name in names if any(map(_has_value, cells[name])) and not any(map(_is_nested_or_link, cells[name]))
    ]
    chosen: list[str] = []
    remaining = width
    for name in sorted(fitting or names, key=weight):
        remaining -= _GAP + max(len(name), *(len(shown(value, _USUAL)) for value in cells[name]))
        if remaining < 0 and chosen:
            break
        chosen.append(name)
    return sorted(chosen, key=list(names).index)


def _has_value(value: object) -> bool:
    """Whether a value is worth a cell; zero and false are."""
    return value is not None and value not in ("", [], {})


def _is_nested_or_link(value: object) -> bool:
    return isinstance(value, dict | list) or (isinstance(value, str) and value.startswith(("http://", "https://")))


def member(record: Mapping[str, Any], name: str) -> Any:
    """The member with that name, else the value at that dotted path; None if there is none."""
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
        table.add_row(Text(printable(name)), Text(shown(value, _CELL)))
    return table


def _line(text: bytes) -> None:
    _write(text + b"\n")


def _write(text: bytes) -> None:
    sys.stdout.buffer.write(text) if hasattr(sys.stdout, "buffer") else sys.stdout.write(text.decode())
    sys.stdout.flush()

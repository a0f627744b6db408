"""Records as the lines of a file: NDJSON, and CSV by RFC 4180. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from gateway.contract.exports import FileFormat
from gateway.foundation import payloads
from gateway.kinds.spreadsheets import BYTE_ORDER_MARK, csv_lines, guarded

#: Content-Type by the file's extension
CONTENT_TYPES = {"ndjson": "application/x-ndjson", "csv": "text/csv; charset=utf-8; header=present"}
#: maximum cells and characters of JSON of the rows that are converted at once; a single row may be larger
MAX_CELLS, MAX_CHARACTERS = 10_000, 64 << 10
# A number stays as the application wrote it: 1.10 is not 1.1.
_RECORD = msgspec.json.Decoder(float_hook=lambda text: msgspec.Raw(text.encode()))


def members_of(line: msgspec.Raw) -> Iterable[str]:
    """The names of a record's members, in their order."""
    record = _record(line)
    return record if isinstance(record, dict) else ["value"]


def csv_header(columns: Sequence[str], file: FileFormat = FileFormat.CSV) -> str:
    """The header line (RFC 4180), after the byte order mark if the format has one."""
    mark = BYTE_ORDER_MARK if file is FileFormat.CSV_BOM else ""
    return mark + csv_lines([[guarded(column) for column in columns]])


def chunks_of(lines: str, columns: int) -> Iterator[str]:
    """NDJSON lines in chunks of rows that have at most `MAX_CELLS` cells and `MAX_CHARACTERS` characters together."""
    begin = end = rows = 0
    most = max(1, MAX_CELLS // max(1, columns))
    while end < len(lines):
        following = lines.find("\n", end) + 1 or len(lines)
        if rows and (rows == most or following - begin > MAX_CHARACTERS):
            yield lines[begin:end]
            begin, rows = end, 0
        end, rows = following, rows + 1
    if rows:
        yield lines[begin:]


def csv_rows(lines: str, columns: Sequence[str]) -> str:
    """NDJSON lines as CSV rows; a column is the dotted path of a member."""
    paths = [(column, column.split(".")) for column in columns]
    return csv_lines([_cells(_record(line.encode()), paths) for line in lines.split("\n") if line])


def _record(line: payloads.Text) -> Any:
    try:
        return _RECORD.decode(line)
    except msgspec.MsgspecError:
        return payloads.value(line)


def _cells(record: Any, paths: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    if not isinstance(record, dict):
        record = {"value": record}
    return [cell(record[column] if column in record else _value_at(record, path)) for column, path in paths]


def _value_at(record: Any, path: Sequence[str]) -> Any:
    """The value at a path, which goes through every item of an array; None if it is missing."""
    for depth, name in enumerate(path):
        if isinstance(record, list):
            return [_value_at(item, path[depth:]) for item in record]
        if not isinstance(record, dict):
            return None
        record = record.get(name)
    return record


def cell(value: Any) -> str:
    """A value as the text of a cell: null is empty, objects and arrays are JSON, a formula has `'` before it."""
    if value is None:
        return ""
    if isinstance(value, str):
        return guarded(value)
    text = msgspec.json.encode(value).decode()
    return guarded(text) if isinstance(value, dict | list) else text

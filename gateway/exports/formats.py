"""Records as the lines of a file: NDJSON, and CSV by RFC 4180. Pure."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from gateway import payloads

#: Content-Type by the file's extension
CONTENT_TYPES = {"ndjson": "application/x-ndjson", "csv": "text/csv; charset=utf-8; header=present"}
#: first characters of cells that spreadsheets run as formulas (https://owasp.org/www-community/attacks/CSV_Injection)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
# A number stays as the application wrote it: 1.10 is not 1.1.
_RECORD = msgspec.json.Decoder(float_hook=lambda text: msgspec.Raw(text.encode()))


def columns_of(lines: Iterable[msgspec.Raw], known: Sequence[str]) -> list[str]:
    """The known columns, then further members of these records in their order."""
    columns = dict.fromkeys(known)
    for line in lines:
        record = _record(line)
        columns.update(dict.fromkeys(record if isinstance(record, dict) else ["value"]))
    return list(columns)


def csv_header(columns: Sequence[str]) -> str:
    """The header line (RFC 4180)."""
    return _csv_lines([[_guarded(column) for column in columns]])


def csv_rows(lines: str, columns: Sequence[str]) -> str:
    """NDJSON lines as CSV rows; a column is the dotted path of a member."""
    paths = [(column, column.split(".")) for column in columns]
    return _csv_lines([_cells(_record(line.encode()), paths) for line in lines.split("\n") if line])


def _record(line: payloads.Text) -> Any:
    try:
        return _RECORD.decode(line)
    except msgspec.MsgspecError:
        return payloads.value(line)


def _csv_lines(rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue()


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
    """A value as the text of a cell: null is empty, objects and arrays are JSON, a formula begins with `'`."""
    if value is None:
        return ""
    if isinstance(value, str):
        return _guarded(value)
    return msgspec.json.encode(value).decode()


def _guarded(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text

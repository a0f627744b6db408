"""Tables as CSV files (RFC 4180) without formulas that a spreadsheet would run."""

from collections.abc import Iterable, Sequence

from aiohttp import web

from gateway.kinds.spreadsheets import csv_lines, guarded


def csv_response(name: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> web.Response:
    """The rows as a file that the browser downloads under the name."""
    text = csv_lines([_cell(value) for value in row] for row in (columns, *rows))
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return web.Response(text=text, content_type="text/csv", charset="utf-8", headers=headers)


def _cell(value: object) -> str:
    """The value as text, with a quote before a formula."""
    return "" if value is None else guarded(str(value))

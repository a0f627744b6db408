"""CSV that spreadsheets neither split nor run: RFC 4180, with formulas guarded. Pure."""

import re
from collections.abc import Iterable, Sequence

#: Excel reads a CSV file as UTF-8 only if it begins with this mark
BYTE_ORDER_MARK = "\ufeff"
#: the beginning of a formula (https://owasp.org/www-community/attacks/CSV_Injection) where a spreadsheet may begin a
#: cell: at the cell's own beginning, and after a line end or `;`, which separates cells in many countries. There `- `
#: and `+ ` are items of a list in a text.
_FORMULA = re.compile(
    r"""\A(?=[=+@\t\r\n\uff1d\uff0b\uff0d\uff20-])|([;\r\n]"*)(?=[=@\uff1d\uff0b\uff0d\uff20]|[+-](?! ))"""
)
_QUOTED = re.compile('[,;"\r\n]')


def guarded(text: str) -> str:
    """The text with `'` before each place at which a spreadsheet may read a formula."""
    return _FORMULA.sub(lambda match: f"{match[1] or ''}'", text)


def csv_lines(rows: Iterable[Sequence[str]]) -> str:
    """The rows as lines; their cells are guarded already."""
    return "".join(",".join(map(_quoted, row)) + "\r\n" if row != [""] else '""\r\n' for row in rows)


def _quoted(cell: str) -> str:
    doubled = cell.replace('"', '""')
    return f'"{doubled}"' if _QUOTED.search(cell) else cell

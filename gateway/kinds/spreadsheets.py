"""CSV that spreadsheets neither split nor run: RFC 4180, with formulas guarded. Pure."""

import re
from collections.abc import Iterable, Sequence

#: Excel reads a CSV file as UTF-8 only if it begins with this mark
BYTE_ORDER_MARK = "\ufeff"
#: first characters of cells that spreadsheets run as formulas (https://owasp.org/www-community/attacks/CSV_Injection)
_FORMULA = "=+\\-@\t\r"
# In many countries a spreadsheet takes `;` for the separator, so that the text after it becomes a cell.
_UNSAFE = re.compile(rf'(^|;"*)(?=[{_FORMULA}])')
_QUOTED = re.compile('[,;"\r\n]')


def guarded(text: str) -> str:
    """The text with `'` before each formula that a spreadsheet would find in it."""
    return _UNSAFE.sub(r"\1'", text)


def csv_lines(rows: Iterable[Sequence[str]]) -> str:
    """The rows as lines; their cells are guarded already."""
    return "".join(",".join(map(_quoted, row)) + "\r\n" if row != [""] else '""\r\n' for row in rows)


def _quoted(cell: str) -> str:
    doubled = cell.replace('"', '""')
    return f'"{doubled}"' if _QUOTED.search(cell) else cell

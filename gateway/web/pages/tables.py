"""The rows of tables for narrow screens, on which each row is a card. Pure."""

import re
from collections.abc import Sequence

from markupsafe import Markup, escape

_ROW_OR_CELL = re.compile(r"<(tr|td|th)\b")


def labelled(rows: Markup, columns: Sequence[str]) -> Markup:
    """The rows with the name of its column in `data-label` of each cell. Cells contain no tables."""
    column = 0

    def with_label(found: re.Match[str]) -> str:
        nonlocal column
        if found[1] == "tr":
            column = 0
            return found[0]
        column += 1
        return found[0] if column > len(columns) else f'{found[0]} data-label="{escape(columns[column - 1])}"'

    return Markup(_ROW_OR_CELL.sub(with_label, rows))  # noqa: S704  the rows are escaped, and so are the names

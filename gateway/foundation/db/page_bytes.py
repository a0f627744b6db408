"""Pages of lists end at a number of bytes too, so that wide rows of one organization do not fill the memory."""

from collections.abc import Sequence
from typing import Any

from gateway.foundation.db.pool import Connection

#: bytes of the wide columns of a page; a page has one row at least
PAGE_BYTES = 2 << 20


async def page_of_rows(
    connection: Connection, query: str, arguments: Sequence[object], wide: Sequence[str], limit: int
) -> tuple[Sequence[dict[str, Any]], bool]:
    """The first rows of a query, and whether more follow.

    The query returns one row more than `limit` if there is one. `wide` are its columns whose values may be large.
    """
    rows = [dict(row) for row in await connection.fetch(_within_bytes(query, wide), *arguments)]
    page, found = rows[:limit], 0
    for row in page:
        found = row.pop("page_found")
        del row["page_bytes"]
    return page, found > len(page)


def _within_bytes(query: str, wide: Sequence[str]) -> str:
    """The rows before which less than `PAGE_BYTES` come; `page_found` counts those without this limit."""
    size = " + ".join(f"COALESCE(octet_length({column}), 0)" for column in wide)
    return f"""
        SELECT * FROM (
            SELECT found.*, count(*) OVER () AS page_found,
                   sum({size}) OVER (ROWS UNBOUNDED PRECEDING) - ({size}) AS page_bytes
            FROM ({query}) AS found
        ) AS page
        WHERE page_bytes < {PAGE_BYTES}
    """

"""Each HTTP request to an application, for a day: method, path, status and time; never bodies, queries or secrets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self
from uuid import UUID

from gateway.contract.gateway_state import RequestPage, RequestSelection, RequestView
from gateway.foundation.db.batch_writer import BatchWriter
from gateway.foundation.db.pool import Database
from gateway.foundation.db.pruning import BATCH
from gateway.foundation.db.where import NOT_OF_OTHERS, OF_WORKSPACES, Where
from gateway.upstream.sent_requests import Observe

# The connector's row names the organization; a request of a deleted connector, or of a consent, is dropped.
_INSERT = """
    INSERT INTO request_log (organization_id, connector_id, at, job_id, request_id, operation, method, path, status,
                             duration_ms, attempt, bytes_in, bytes_out, upstream_request_id, error)
    SELECT organization_id, connector_id, to_timestamp(sent.at), job_id, request_id, operation, method, path,
           sent.status, duration_ms, attempt, COALESCE(bytes_in, 0), bytes_out, upstream_request_id, error
    FROM json_to_recordset($1::json) AS sent (connector_id uuid, at float8, job_id uuid, request_id text,
                                              operation text, method text, path text, status smallint,
                                              duration_ms integer, attempt smallint, bytes_in bigint, bytes_out bigint,
                                              upstream_request_id text, error text)
    JOIN connectors ON connectors.id = connector_id
"""
_REQUESTS_WHERE = """
    SELECT id, at, connector_id, job_id, request_id, operation, method, path, status, duration_ms, attempt, bytes_in,
           bytes_out, upstream_request_id, error
    FROM request_log WHERE
"""
_REMOVE = """
    DELETE FROM request_log WHERE id IN (
        SELECT id FROM request_log WHERE organization_id = $1 AND connector_id = $2 LIMIT $3
    )
"""


class RequestLog:
    """The request log of a process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._writer = BatchWriter(database, _INSERT, "request log")
        #: queues a request that has ended for the next batch
        self.note: Observe = self._writer.add

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Self]:
        """Write batches within the block; leaving it writes the last one."""
        async with self._writer.writing():
            yield self

    async def find(
        self, organization_id: UUID, requests: RequestSelection, *, before: int | None = None, limit: int = 100
    ) -> RequestPage:
        """Requests of one organization, newest first; `before` is the id of the last one of the previous page."""
        where = Where()
        where.add("organization_id = {}", organization_id)
        where.require(NOT_OF_OTHERS, requests.person_id)
        where.add("connector_id = {}", requests.connector_id)
        where.add(OF_WORKSPACES, requests.workspaces)
        where.add("job_id = {}", requests.job_id)
        where.add("request_id = {}", requests.request_id)
        if requests.status == "failed":
            where.add("(status IS NULL OR status >= 400)")
        elif requests.status is not None:
            where.add("status BETWEEN {} AND {}", *_statuses(requests.status))
        where.add("at >= {}", requests.since)
        where.add("id < {}", before)
        find = f"{_REQUESTS_WHERE} {where.text} ORDER BY id DESC LIMIT {where.argument(limit + 1)}"
        async with self._database.tenant(organization_id) as connection:
            rows = await connection.fetch(find, *where.arguments)
        next_cursor = str(rows[limit - 1]["id"]) if len(rows) > limit else None
        return RequestPage([_view(row) for row in rows[:limit]], next_cursor)

    async def remove(self, organization_id: UUID, connector_id: UUID) -> None:
        """Delete the requests of a connector, in batches that finish before the timeout of a statement."""
        async with self._database.tenant(organization_id) as connection:
            while await connection.execute(_REMOVE, organization_id, connector_id, BATCH) != "DELETE 0":
                pass


def _statuses(status: str) -> tuple[int, int]:
    """The lowest and the highest status of `404` or `5xx`."""
    return int(status.replace("x", "0")), int(status.replace("x", "9"))


def _view(row: Any) -> RequestView:
    """The request as callers see it."""
    job_id = None if row["job_id"] is None else str(row["job_id"])
    ids = {"id": str(row["id"]), "connector_id": str(row["connector_id"]), "job_id": job_id}
    return RequestView(**{**row, **ids})

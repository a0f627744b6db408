"""Each HTTP request to an application, for a day: method, path, status and time; never bodies, queries or secrets."""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Self
from uuid import UUID

from gateway.db.batch_writer import BatchWriter
from gateway.db.pool import Database
from gateway.db.pruning import BATCH, prune
from gateway.db.where import OF_WORKSPACES, Where
from gateway.upstream.sent_requests import SentRequest

# The connector says whose request it is; a request of a deleted one, or of a consent, is dropped.
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
# $1 rows of a batch. Ids grow with time, so that the oldest rows beyond the bound are those of the lowest ids.
_OLD = """
    WITH old AS (
        SELECT id FROM request_log
        WHERE at < now() - make_interval(secs => {seconds}) OR id <= (SELECT max(id) - {rows} FROM request_log)
        LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM request_log USING old WHERE request_log.id = old.id
"""
_REMOVE = """
    DELETE FROM request_log WHERE id IN (
        SELECT id FROM request_log WHERE organization_id = $1 AND connector_id = $2 LIMIT $3
    )
"""


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """A request as the log keeps it."""

    id: int
    at: datetime
    connector_id: UUID
    job_id: UUID | None
    request_id: str | None
    operation: str | None
    method: str
    path: str
    status: int | None
    duration_ms: int
    attempt: int
    bytes_in: int
    bytes_out: int
    upstream_request_id: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class RequestFilter:
    """Which requests; None lets every value through."""

    connector_id: UUID | None = None
    job_id: UUID | None = None
    request_id: str | None = None
    #: the lowest and the highest status
    status: tuple[int, int] | None = None
    #: only those that failed: without a complete response, or with a status from 400 on
    is_failed: bool = False
    since: datetime | None = None
    #: names of the only workspaces whose connectors count
    workspaces: Collection[str] | None = None


class RequestLog:
    """The request log of a process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._writer = BatchWriter(database, _INSERT, "request log")

    def note(self, sent: SentRequest) -> None:
        """Take down a request that has ended; it reaches PostgreSQL with the next batch."""
        self._writer.add(sent)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Self]:
        """Write batches within the block; leaving it writes the last one."""
        async with self._writer.writing():
            yield self

    async def find(
        self,
        organization_id: UUID,
        requests: RequestFilter,
        *,
        before: int | None = None,
        limit: int = 100,
    ) -> Sequence[LoggedRequest]:
        """Requests of one organization, the newest first; `before` is the id of the last of the page before."""
        where = Where()
        where.add("organization_id = {}", organization_id)
        where.add("connector_id = {}", requests.connector_id)
        where.add(OF_WORKSPACES, requests.workspaces)
        where.add("job_id = {}", requests.job_id)
        where.add("request_id = {}", requests.request_id)
        if requests.status is not None:
            where.add("status BETWEEN {} AND {}", *requests.status)
        if requests.is_failed:
            where.add("(status IS NULL OR status >= 400)")
        where.add("at >= {}", requests.since)
        where.add("id < {}", before)
        find = f"{_REQUESTS_WHERE} {where.text} ORDER BY id DESC LIMIT {where.argument(limit)}"
        async with self._database.tenant(organization_id) as connection:
            rows = await connection.fetch(find, *where.arguments)
        return [LoggedRequest(**row) for row in rows]

    async def remove(self, organization_id: UUID, connector_id: UUID) -> None:
        """Delete the requests of a connector; a part at a time, within a statement's time."""
        async with self._database.tenant(organization_id) as connection:
            while await connection.execute(_REMOVE, organization_id, connector_id, BATCH) != "DELETE 0":
                pass


async def prune_request_log(database: Database, retention: int, rows: int) -> int:
    """Delete requests older than so many seconds, and the oldest beyond so many rows; how many."""
    return await prune(database, _OLD.format(seconds=int(retention), rows=int(rows)))

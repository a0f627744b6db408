"""Signed links with which a person opens one stored file without a token.

A link expires after an hour, or earlier with the job's result. It is refused once the session or the grant has ended in
which it was made, once its client is disabled or has lost the organization or the workspace, and once the key list has
another first key.
"""

import base64
import binascii
import hmac
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from struct import Struct
from typing import Any
from uuid import UUID

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller, Scope
from gateway.access.identity.store import IdentityStore
from gateway.errors import Forbidden, NotFound
from gateway.foundation.aio.clock import CLOCK
from gateway.jobs.access import JobAccess
from gateway.jobs.model import JobSummary
from gateway.jobs.tasks import has_file

#: the route that serves links
PATH = "/files/{job_id}"
#: seconds until a link expires
SECONDS = 3600
#: organization, client, session or grant, and the Unix time at which the link expires
_CLAIMS = Struct(">16s16s16sQ")
#: in place of a session or a grant
_NO_ORIGIN = UUID(int=0)
#: bytes of HMAC-SHA-256
_DIGEST = 32


@dataclass(frozen=True, slots=True)
class FileLink:
    """A link to the file of a job: whoever has it may read the file."""

    #: path and query, without the address of the gateway
    path: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class LinkedFile:
    """The stored file of a link, and the caller for whom the link was made."""

    caller: Caller
    job: JobSummary
    document: Mapping[str, Any]


class FileLinks:
    """Makes links for callers and opens them."""

    def __init__(self, audit: Audit, key: bytes, identity: IdentityStore, jobs: JobAccess) -> None:
        self._audit = audit
        self._key = key
        self._identity = identity
        self._jobs = jobs

    def link(self, caller: Caller, job: JobSummary) -> FileLink:
        """A link to the file of a job that the caller has looked up."""
        ends = int(CLOCK.unix_time()) + SECONDS
        if job.expires_at is not None:
            ends = min(ends, int(job.expires_at.timestamp()))
        origin_id = caller.client.origin_id or _NO_ORIGIN
        claims = _CLAIMS.pack(caller.organization_id.bytes, caller.client_id.bytes, origin_id.bytes, ends)
        signature = base64.urlsafe_b64encode(claims + self._digest(job.id, claims)).decode()
        return FileLink(f"{PATH.format(job_id=job.id)}?signature={signature}", datetime.fromtimestamp(ends, UTC))

    @asynccontextmanager
    async def open(self, job_id: UUID, signature: str) -> AsyncIterator[LinkedFile]:
        """The file for the duration of the block; raises Forbidden, NotFound and ResultExpired.

        The audit log records each use of a link with a correct signature, for the client that the link was made for.
        """
        caller, origin_id = await self._signed_for(job_id, signature)
        with self._audit.record("file_link.open", caller, target=str(job_id)):
            if origin_id != _NO_ORIGIN:
                caller = await self._within(caller, origin_id)
            if caller.client.disabled_at is not None or caller.organization_id not in caller.client.organization_ids:
                raise _invalid()
            caller.require(Scope.READ)
            job = await self._jobs.get(caller, job_id)
            if not has_file(job):
                raise NotFound("the job has no file")
            yield LinkedFile(caller, job, (await self._jobs.result(job, "")).head["result"])

    async def _signed_for(self, job_id: UUID, signature: str) -> tuple[Caller, UUID]:
        """The caller for whom the link was made, and the session or grant; raises Forbidden for a link that is altered
        or has expired.
        """
        try:
            signed = base64.b64decode(signature, altchars=b"-_", validate=True)
        except (binascii.Error, ValueError) as error:
            raise _invalid() from error
        claims, digest = signed[: _CLAIMS.size], signed[_CLAIMS.size :]
        if len(digest) != _DIGEST or not hmac.compare_digest(digest, self._digest(job_id, claims)):
            raise _invalid()
        organization_id, client_id, origin_id, ends = _CLAIMS.unpack(claims)
        if ends < CLOCK.unix_time():
            raise _invalid()
        stored = await self._identity.client(UUID(bytes=client_id))
        if stored is None:
            raise _invalid()
        return Caller(stored.client, UUID(bytes=organization_id)), UUID(bytes=origin_id)

    async def _within(self, caller: Caller, origin_id: UUID) -> Caller:
        """The caller in the session or grant; raises Forbidden if that has ended."""
        client = await self._identity.of_origin(origin_id)
        if client is None or client.id != caller.client_id:
            raise _invalid()
        return Caller(client, caller.organization_id)

    def _digest(self, job_id: UUID, claims: bytes) -> bytes:
        return hmac.digest(self._key, job_id.bytes + claims, "sha256")


def _invalid() -> Forbidden:
    return Forbidden("the link is not valid or has expired; request another one")

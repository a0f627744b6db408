"""Continues the hash chains of the audit log, and exports them.

Entries are committed without a hash, so that calls do not wait for each other; one worker puts them into the chains of
their organizations once no earlier transaction is open. An export first does the same. The transaction that does so
counts the calls among them.
"""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from gateway.access.audit.log import APPROVERS
from gateway.access.audit.metering import COUNT_ENDED, LOCK, WAIT_FOR_LOCK
from gateway.contract.members import moment
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.aio.turns import mapped
from gateway.foundation.db.pool import Connection, Database
from gateway.foundation.proof import FIRST, Signer, hash_of
from gateway.foundation.vault.vault import KeyList, derived_key

#: entries of one statement
_BATCH = 500

_TRY_LOCK = "SELECT pg_try_advisory_xact_lock($1)"
_MEMBERS = """
    audit.id, audit.organization_id, at, actor, connector_id, kind, what, target, changed, outcome, intent, request_id,
    took_ms, entry_kind, call_id, policies, approval_id, effect
"""
# In the order of their transactions: an entry whose transaction is still open comes later, with all after it.
_UNSEALED = f"""
    SELECT {_MEMBERS}, audit.xact::text AS xact, clients.name AS actor_name,
           EXISTS (SELECT FROM people WHERE people.client_id = actor) AS is_person,
           audit.acting_client, acting.name AS acting_name, audit.session_id,
           {APPROVERS} AS approvers
    FROM audit_sealed JOIN audit ON (audit.xact, audit.id) > (audit_sealed.xact, audit_sealed.audit_id)
    LEFT JOIN clients ON clients.id = actor LEFT JOIN clients AS acting ON acting.id = audit.acting_client
    WHERE audit.xact IS NOT NULL AND audit.xact < pg_snapshot_xmin(pg_current_snapshot())
    ORDER BY audit.xact, audit.id LIMIT $1
"""
_HEADS = "SELECT organization_id, seq, hash FROM audit_heads WHERE organization_id = ANY ($1::uuid[])"
_INSERT = """
    INSERT INTO audit_chain (organization_id, seq, audit_id, hash, previous, names)
    SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[])
"""
_SET_HEADS = """
    INSERT INTO audit_heads (organization_id, seq, hash) SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[])
    ON CONFLICT (organization_id) DO UPDATE SET seq = EXCLUDED.seq, hash = EXCLUDED.hash
"""
_ADD_CHECKPOINTS = """
    INSERT INTO audit_checkpoints (organization_id, seq, line)
    SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[]) ON CONFLICT DO NOTHING
"""
_FORMER_KEYS = "SELECT key_id, public_key FROM audit_former_keys WHERE organization_id = $1 ORDER BY key_id"
_SET_SEALED = "UPDATE audit_sealed SET xact = $1::text::xid8, audit_id = $2"
# A range without gaps: from the first entry since a time to the last one before another.
_RANGE = """
    SELECT min(seq) FILTER (WHERE $2::timestamptz IS NULL OR at >= $2) AS first,
           max(seq) FILTER (WHERE $3::timestamptz IS NULL OR at < $3) AS last
    FROM audit_chain JOIN audit ON audit.id = audit_id WHERE audit_chain.organization_id = $1
"""
_ENTRIES = f"""
    SELECT {_MEMBERS}, audit_chain.seq, hash, previous, names, line
    FROM audit_chain JOIN audit ON audit.id = audit_id
    LEFT JOIN audit_checkpoints AS signed
        ON signed.organization_id = audit_chain.organization_id AND signed.seq = audit_chain.seq
    WHERE audit_chain.organization_id = $1 AND audit_chain.seq BETWEEN $2 AND $3
    ORDER BY audit_chain.seq LIMIT {_BATCH}
"""


class AuditChain:
    """The hash chains of organizations."""

    def __init__(self, database: Database, signers: Sequence[Signer], application_of: Callable[[str], str]) -> None:
        self._database = database
        #: the newest key signs
        self._signers = signers
        #: the application of a kind
        self._application_of = application_of

    @property
    def keys(self) -> Sequence[Signer]:
        """The keys with which checkpoints may be signed, the newest first."""
        return self._signers

    async def former_keys(self, organization_id: UUID) -> Mapping[str, str]:
        """Key id → public key of the gateways from which the organization was moved."""
        async with self._database.tenant(organization_id) as connection:
            return dict(await connection.fetch(_FORMER_KEYS, organization_id))

    async def seal(self) -> None:
        """Put the entries that are committed into their chains; does nothing while another process does it."""
        while await self._seal_some(is_waiting=False) == _BATCH:
            pass

    async def _seal_some(self, *, is_waiting: bool) -> int:
        async with self._database.system() as connection, connection.transaction():
            if is_waiting:
                await connection.execute(WAIT_FOR_LOCK, LOCK)
            elif not await connection.fetchval(_TRY_LOCK, LOCK):
                return 0
            rows = await connection.fetch(_UNSEALED, _BATCH)
            if rows:
                await self._continue(connection, rows)
        return len(rows)

    async def _continue(self, connection: Connection, rows: Sequence[Any]) -> None:
        """Continue each chain by its rows, sign their ends, and remember how far it is done."""
        organizations = list({row["organization_id"] for row in rows})
        heads = dict.fromkeys(organizations, (0, FIRST))
        for head in await connection.fetch(_HEADS, organizations):
            heads[head["organization_id"]] = head["seq"], head["hash"]
        sealed: list[tuple[Any, ...]] = []

        def seal(row: Any) -> None:
            organization_id = row["organization_id"]
            (before, previous), names = heads[organization_id], self._names(row)
            document = entry_of(row, names, before + 1, previous)
            heads[organization_id] = before + 1, hash_of(document)
            text = json.dumps(names)
            sealed.append((organization_id, before + 1, row["id"], heads[organization_id][1], previous, text))

        await mapped(seal, rows)
        await connection.execute(_INSERT, *(list(column) for column in zip(*sealed, strict=True)))
        ends = [(organization_id, *heads[organization_id]) for organization_id in organizations]
        await connection.execute(_SET_HEADS, *(list(column) for column in zip(*ends, strict=True)))
        lines = [(organization_id, seq, self._checkpoint(seq, hash_)) for organization_id, seq, hash_ in ends]
        await connection.execute(_ADD_CHECKPOINTS, *(list(column) for column in zip(*lines, strict=True)))
        await connection.execute(COUNT_ENDED, [row["id"] for row in rows])
        await connection.execute(_SET_SEALED, rows[-1]["xact"], rows[-1]["id"])

    def _checkpoint(self, seq: int, hash_: str) -> str:
        at = moment(CLOCK.now()) or ""
        return msgspec.json.encode(self._signers[0].checkpoint(seq, hash_, at)).decode()

    def _names(self, row: Any) -> dict[str, Any]:
        """The names of an entry as they are now."""
        actor = {"person" if row["is_person"] else "client": {"id": str(row["actor"]), "name": row["actor_name"]}}
        if row["session_id"] is not None:
            actor["client"] = {"id": str(row["acting_client"]), "name": row["acting_name"]}
            actor["session"] = {"id": str(row["session_id"])}
        approvers = {} if row["approvers"] is None else {"approved_by": json.loads(row["approvers"])}
        return approvers | {
            "application": None if row["kind"] is None else self._application_of(row["kind"]),
            "actor": None if row["actor"] is None else actor,
        }

    async def export(
        self, organization_id: UUID, since: datetime | None, until: datetime | None
    ) -> AsyncIterator[bytes]:
        """The lines of an organization's chain: entries, with checkpoints between them and at the end."""
        while await self._seal_some(is_waiting=True) == _BATCH:
            pass
        async with self._database.tenant(organization_id) as connection:
            found = await connection.fetchrow(_RANGE, organization_id, since, until)
        following, last = found["first"], found["last"]
        if following is None or last is None:
            return
        while following <= last:
            async with self._database.tenant(organization_id) as connection:
                rows = await connection.fetch(_ENTRIES, organization_id, following, last)
            if not rows:
                return  # pruned meanwhile
            lines = await mapped(lambda row: self._lines(row, is_last=row["seq"] == last), rows)
            yield "".join(lines).encode()
            following = rows[-1]["seq"] + 1

    def _lines(self, row: Any, *, is_last: bool) -> str:
        """An entry and, if there is one or it is the last, its checkpoint."""
        document = entry_of(row, json.loads(row["names"]), row["seq"], row["previous"])
        entry = msgspec.json.encode({**document, "hash": row["hash"]}).decode()
        checkpoint = row["line"] or (self._checkpoint(row["seq"], row["hash"]) if is_last else "")
        return f"{entry}\n{checkpoint}\n" if checkpoint else f"{entry}\n"


def signers_of(keys: KeyList) -> list[Signer]:
    """The keys of checkpoints, the newest first: one that was replaced still verifies what it signed."""
    return [Signer(derived_key(keys[place:], "audit checkpoints")) for place in range(len(keys))]


def entry_of(row: Mapping[str, Any], names: Mapping[str, Any], seq: int, previous: str) -> dict[str, Any]:
    """An entry as it is exported, without its hash; an entry that was moved from another database keeps its id."""
    call_id, connector_id, approval_id = row["call_id"], row["connector_id"], row["approval_id"]
    # Members of later releases are left out if they are empty, so that earlier entries keep their hash.
    decided: dict[str, Any] = {}
    if row["policies"]:
        decided["policies"] = list(row["policies"])
    if row["effect"] is not None:
        decided["effect"] = row["effect"]
    if approval_id is not None:
        decided["approval"] = {"id": str(approval_id), "approved_by": names.get("approved_by", [])}
    return decided | {
        "seq": seq,
        "id": names.get("id") or str(row["id"]),
        "kind": row["entry_kind"],
        "call_id": None if call_id is None else str(call_id),
        "at": moment(row["at"]),
        "actor": names["actor"],
        "connector_id": None if connector_id is None else str(connector_id),
        "application": names["application"],
        "what": row["what"],
        "target": row["target"],
        "changed": list(row["changed"] or ()),
        "outcome": row["outcome"],
        "intent": row["intent"],
        "request_id": row["request_id"],
        "took_ms": row["took_ms"],
        "previous": previous,
    }

"""A file of an organization that a stranger wrote: what it may not bring is refused, and nothing of it is imported."""

import os
import re
import tracemalloc
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import msgspec
import pytest

from gateway.errors import GatewayError, ResultExpired
from gateway.foundation.db.notifications import CHANNEL
from gateway.foundation.vault.sealed_file import MAGIC, Lock, SealedFileError, SealedWriter, sealed_lines
from gateway.jobs.stored_files.model import StoredFile
from gateway.run.moving.arrival import Trust
from gateway.run.moving.document import Contents
from gateway.run.moving.ownership import Ownership
from gateway.run.moving.tables import MOVED
from tests.harness.hostile_kinds import kind_document
from tests.web.test_organization_deletion import busy  # noqa: F401  a fixture
from tests.web.test_organization_move import Moving, arrival_of, departure_of, elsewhere, moving  # noqa: F401  fixtures

NOW = "2026-01-01T00:00:00+00:00"
KIND = "strangers"
ISSUER = "https://login.example"


class Forged:
    """The lines of a file without stored files, which a test changes."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = [msgspec.json.decode(line) for line in lines]
        self.organization_id: str = self._lines[0]["begin"]["organization_id"]

    def first(self, table: str) -> dict[str, Any]:
        """The first row of a table."""
        return next(line["row"] for line in self._lines if line.get("table") == table)

    def change(self, table: str, **members: Any) -> None:
        """Change the first row of a table."""
        self.first(table).update(members)

    def change_line(self, table: str, **members: Any) -> None:
        """Change what stands beside the first row of a table."""
        next(line for line in self._lines if line.get("table") == table).update(members)

    def add(self, table: str, **members: Any) -> None:
        """Add a row in the place of its table."""
        order = [each.name for each in MOVED]
        rows = [line for line in self._lines if "table" in line]
        before = sum(order.index(line["table"]) <= order.index(table) for line in rows)
        self._lines.insert(2 + before, {"table": table, "row": members})
        self._lines[-1]["end"]["rows"][table] += 1

    def lines(self) -> list[bytes]:
        return [msgspec.json.encode(line) for line in self._lines]


@dataclass(frozen=True)
class Victim:
    """Another organization of the gateway to which the file is imported."""

    organization: str
    client: str
    person: str
    connector: str
    job: str
    grant: str
    call: str


async def victim_of(moving: Moving) -> Victim:  # noqa: F811
    organization = await moving.target.organization()
    client, _ = await moving.target.client(organization)
    async with moving.target.api(organization) as api:
        desk = await api.connector()
        job = (await desk.submit("tickets", "list", {"per_page": 2}))["id"]
        person = (await api.post("/api/v1/people", {"email": "a@example.com", "scopes": ["read"]})).document(201)["id"]
    grant, call = uuid4(), uuid4()
    async with moving.target.services.database.system() as connection:
        await connection.execute(
            "INSERT INTO agent_grants (id, organization_id, client_id, host_id, host_name, scopes, resource)"
            " VALUES ($1, $2, $3, 'https://host.example/', 'h', '{read}', 'r')",
            *(grant, organization, UUID(client)),
        )
        await connection.execute(
            "INSERT INTO audit (organization_id, at, what, entry_kind, call_id) VALUES ($1, now(), 'w', 'intent', $2)",
            *(organization, call),
        )
        await connection.execute(
            "INSERT INTO oauth_registrations (organization_id, issuer, client_id, redirect_uri, authentication, key_id,"
            " wrapped_key, sealed, scopes) VALUES ($1, $2, 'c', 'r', 'basic', 'k', '', '', '{}')",
            *(organization, ISSUER),
        )
    return Victim(str(organization), client, person, desk.record["id"], job, str(grant), str(call))


def grant_of(client: str, **members: Any) -> dict[str, Any]:
    own = {"id": str(uuid4()), "host_id": "https://h.example/", "host_name": "h", "scopes": ["read"], "resource": "r"}
    return {**own, "client_id": client, "created_at": NOW, **members}


def session_of(client: str, person: str) -> dict[str, Any]:
    times = {"created_at": NOW, "expires_at": "2096-01-01T00:00:00+00:00"}
    return {"id": str(uuid4()), "client_id": client, "person_id": person, "scopes": ["read"], "limits": {}, **times}


def token_of(client: str, **members: Any) -> dict[str, Any]:
    return {"hash": f"\\x{uuid4().hex}", "client_id": client, "expires_at": "2096-01-01T00:00:00+00:00", **members}


def kind_of(name: str = KIND, **members: Any) -> dict[str, Any]:
    """The row of a version of an imported kind."""
    row = {
        "kind": name,
        "version": 1,
        "source": "a file",
        "document": kind_document(name),
        "report": "",
        "served_at": NOW,
    }
    ids = {"importing_organization": str(uuid4()), "importing_client": str(uuid4())}
    return {**row, **ids, "created_at": NOW, **members}


def with_entity(name: str) -> dict[str, Any]:
    kind = kind_of()
    kind["document"]["entities"][name] = kind["document"]["entities"]["items"]
    return kind


def with_connector(**members: Any) -> dict[str, Any]:
    kind = kind_of()
    kind["document"]["connector"].update(members)
    return kind


def signing_in_at(issuer: str) -> dict[str, Any]:
    """A kind whose authorization server says that it is another one."""
    oauth = {"issuer": issuer, "authorization_url": f"{issuer}/a", "token_url": "https://strangers.example/token"}
    names = ("access_token", "refresh_token", "client_id", "client_secret")
    stored = {name: {"secret": True, "description": name} for name in names}
    method = {"title": "OAuth", "scheme": "bearer", "token": "access_token", "oauth": True, "credentials": stored}
    hosts = ["api.strangers.example.com", "strangers.example"]
    return with_connector(oauth=oauth, authentication={"oauth": method}, hosts=hosts)


def approval_of(job: str) -> dict[str, Any]:
    texts = {"status": "approved", "reason": "r", "rules": "{}", "digest": "d", "document": "{}"}
    times = {"created_at": NOW, "expires_at": NOW}
    return {"id": str(uuid4()), "job_id": job, "account_id": str(uuid4()), "items": 1, **texts, **times}


def member_of(forged: Forged, table: str, column: str) -> str:
    value: str = forged.first(table)[column]
    return value


Change = Callable[[Forged, Victim], None]

#: what is forged: the change, and what the error says
CASES: Mapping[str, tuple[Change, str]] = {
    "a grant of another's client": (
        lambda file, other: file.add("agent_grants", **grant_of(other.client)),
        "agent_grants .*: client_id is",
    ),
    "a refresh token of another's grant": (
        lambda file, other: file.add(
            "agent_refresh_tokens", hash="\\x01", grant_id=other.grant, expires_at="2096-01-01T00:00:00+00:00"
        ),
        "agent_refresh_tokens: a row is not valid",
    ),
    "a session for another's person": (
        lambda file, other: file.add("person_sessions", **session_of(member_of(file, "clients", "id"), other.person)),
        "person_sessions .*: person_id is",
    ),
    "a session of another's client": (
        lambda file, other: file.add(
            "person_sessions", **session_of(other.client, member_of(file, "people", "client_id"))
        ),
        "person_sessions .*: client_id is",
    ),
    "a token of another's client": (
        lambda file, other: file.add("tokens", **token_of(other.client)),
        "tokens .*: client_id is",
    ),
    "a token of another's grant": (
        lambda file, other: file.add("tokens", **token_of(member_of(file, "clients", "id"), grant_id=other.grant)),
        "tokens .*: grant_id is",
    ),
    "another's client as a member": (
        lambda file, other: file.add("client_organizations", client_id=other.client),
        "client_organizations .*: client_id is",
    ),
    "another's client as one of its own": (
        lambda file, other: file.add("clients", **{**file.first("clients"), "id": other.client}),
        "clients .*: the client acts for other organizations of this gateway",
    ),
    "a client of no organization": (
        lambda file, other: file.add("clients", **{**file.first("clients"), "id": str(uuid4())}),
        "clients .*: a client acts for the organization",
    ),
    "another organization": (
        lambda file, other: file.add("organizations", **{**file.first("organizations"), "id": str(uuid4())}),
        "organizations .*: the file is of the organization",
    ),
    "the organization twice": (
        lambda file, other: file.add("organizations", **file.first("organizations")),
        "a row of organizations",
    ),
    "a person whom another organization names": (
        lambda file, other: file.change("people", named_in=other.organization),
        "people .*: named_in is",
    ),
    "a person whom nobody names": (
        lambda file, other: file.change("people", named_in=None, issuer="https://idp.example", subject="s"),
        "people .*: named_in is",
    ),
    "an operator's login": (
        lambda file, other: file.change("people", login="root@example.com"),
        "people .*: a person whom the organization names has no login",
    ),
    "a person of another's product": (
        lambda file, other: file.change("people", namespace_id=other.client, subject="s"),
        "people .*: namespace_id is",
    ),
    "a job at another's connector": (
        lambda file, other: file.change("jobs", connector_id=other.connector),
        "jobs .*: connector_id is",
    ),
    "an approval of another's job": (
        lambda file, other: file.add(
            "approvals",
            **approval_of(other.job),
        ),
        "approvals .*: job_id is",
    ),
    "a schedule that waits for another's job": (
        lambda file, other: file.change("schedules", job_ids=[other.job]),
        "schedules .*: job_ids is",
    ),
    "the end of another's call": (
        lambda file, other: file.first("audit")["entry"].update(
            call_id=other.call, entry_kind="settlement", outcome="succeeded"
        ),
        "audit .*: call_id is",
    ),
    "a data key that is not in the file": (
        lambda file, other: file.change_line("connector_secrets", key=None),
        "connector_secrets .*: the file has its data key",
    ),
    "a data key that is too short": (
        lambda file, other: file.change_line("connector_secrets", key="AAAA"),
        "connector_secrets .*: its data key is not valid",
    ),
    "a data key that is none": (
        lambda file, other: file.change_line("connector_secrets", key="?"),
        "connector_secrets .*: its data key is not valid",
    ),
    "a host that no grant names": (
        lambda file, other: file.add(
            "agent_hosts", id=str(uuid4()), name="h", redirect_uris=["https://h.example/"], created_at=NOW
        ),
        "agent_hosts .*: a grant of the organization names the host",
    ),
    "a host with a script": (
        lambda file, other: file.add(
            "agent_hosts", id=str(uuid4()), name="h", redirect_uris=["javascript:x"], created_at=NOW
        ),
        "agent_hosts .*: redirect_uris may be",
    ),
    "a host without a readable name": (
        lambda file, other: file.add(
            "agent_hosts", id=str(uuid4()), name="a\nb", redirect_uris=["https://h.example/"], created_at=NOW
        ),
        "agent_hosts .*: client_name must be",
    ),
    "a kind that the operator has not accepted": (
        lambda file, other: file.add("imported_kinds", **kind_of()),
        f"imported_kinds: .*{KIND} .*--accept-kind {KIND}",
    ),
    "a kind of this gateway": (
        lambda file, other: file.add("imported_kinds", **kind_of("stripe")),
        "imported_kinds stripe 1: this gateway has the kind already",
    ),
    "a kind under another name": (
        lambda file, other: file.add("imported_kinds", **kind_of(kind="others")),
        "imported_kinds others 1: the document is not that of the kind",
    ),
    "a kind that the linter refuses": (
        lambda file, other: file.add("imported_kinds", **with_connector(server="http://strangers.example")),
        f"imported_kinds {KIND} 1: connector.yaml",
    ),
    "a kind whose entity leads to another folder": (
        lambda file, other: file.add("imported_kinds", **with_entity("../../escaped")),
        f"imported_kinds {KIND} 1: .* is not the name of an entity",
    ),
    "a kind that gets another's OAuth app": (
        lambda file, other: file.add("imported_kinds", **signing_in_at(ISSUER)),
        f"imported_kinds {KIND}: another organization of this gateway has an OAuth app",
    ),
    "a schedule that the loop of all organizations cannot read": (
        lambda file, other: file.change("schedules", cron="never"),
        "schedules .*: .*cron",
    ),
    "a job before Python's years": (
        lambda file, other: file.change("jobs", created_at="0044-03-15 00:00:00+00 BC"),
        "jobs .*: created_at is 0044-03-15 .* BC; a time is",
    ),
    "a schedule after Python's years": (
        lambda file, other: file.change("schedules", next_run_at="12000-01-01T00:00:00+00:00"),
        "schedules .*: next_run_at is 12000-01-01 .*; a time is",
    ),
    "a schedule that is never due": (
        lambda file, other: file.change("schedules", next_run_at="infinity"),
        "schedules .*: next_run_at is infinity; a time is",
    ),
    "a job whose changes cannot be counted": (
        lambda file, other: file.change("jobs", version=2**63 - 1),
        "jobs .*: version is 9223372036854775807; a number is at most 4611686018427387904",
    ),
    "a job whose next event is there already": (
        lambda file, other: file.add(
            "job_events", job_id=member_of(file, "jobs", "id"), number=1000, event="status", data="{}", at=NOW
        ),
        "job_events .*: the job has the number of its last event",
    ),
    "a chain whose next entry is there already": (
        lambda file, other: file.first("audit").update(
            is_waiting=False, chain={"seq": 1000, "hash": "h", "previous": "p", "names": "{}"}
        ),
        "audit_chain .*: the head of the chain has the number",
    ),
    "a feed whose next event is there already": (
        lambda file, other: file.change("events", last_id=1000),
        "events .*: an event has a size, and the feed has the number",
    ),
    "an event that counts backwards": (
        lambda file, other: file.change("events", size=-1),
        "events .*: an event has a size, and the feed has the number",
    ),
    "a row that is none": (
        lambda file, other: file.change("workspaces", created_at="never"),
        "workspaces: a row is not valid",
    ),
}


async def exported_lines(moving: Moving) -> list[bytes]:  # noqa: F811
    departure = departure_of(moving.busy.front)
    return [line async for line in departure.lines(moving.busy.id, Contents(), with_files=False)]


async def imported(moving: Moving, lines: Iterable[bytes], trust: Trust = Trust()) -> None:  # noqa: B008, F811
    await arrival_of(moving.target).read(lines, trust=trust)


async def answer(moving: Moving, forged: Forged, trust: Trust = Trust()) -> str:  # noqa: B008, F811
    """Why the file is refused."""
    try:
        await imported(moving, forged.lines(), trust)
    except GatewayError as error:
        return error.detail
    return "it is imported"


async def test_a_file_brings_nothing_of_others_and_nothing_for_others(moving: Moving):  # noqa: F811
    lines, victim = await exported_lines(moving), await victim_of(moving)
    answers = {}

    for name, (change, _) in CASES.items():
        forged = Forged(lines)
        change(forged, victim)
        answers[name] = await answer(moving, forged)

    wrong = [f"{name}: {said}" for name, said in answers.items() if not re.search(CASES[name][1], said)]
    assert not wrong, "\n".join(wrong)
    assert not await moving.left_there()


async def test_an_accepted_kind_is_the_organizations_and_is_served(moving: Moving):  # noqa: F811
    forged = Forged(await exported_lines(moving))
    forged.add("imported_kinds", **kind_of(served_at="2096-01-01T00:00:00+00:00"))
    query = "SELECT importing_organization, served_at <= now() AS is_past FROM imported_kinds WHERE kind = $1"

    try:
        await imported(moving, forged.lines(), Trust(accepted_kinds=[KIND]))
        async with moving.target.services.database.system() as connection:
            rows = [tuple(row) for row in await connection.fetch(query, KIND)]
    finally:
        async with moving.target.services.database.system() as connection:
            await connection.execute("DELETE FROM imported_kinds WHERE kind = $1", KIND)

    assert rows == [(moving.busy.id, True)]


async def test_a_shared_client_acts_for_both_and_keeps_its_secret_and_rights(moving: Moving):  # noqa: F811
    lines, victim = await exported_lines(moving), await victim_of(moving)
    trust = Trust(shared_clients=[UUID(victim.client)])
    forged = Forged(lines)
    forged.add("clients", **{**forged.first("clients"), "id": victim.client, "secret_hashes": [], "scopes": []})
    forged.add("client_organizations", client_id=victim.client)
    forged.add("tokens", **token_of(victim.client))
    members = Forged(forged.lines())
    members.add("group_members", group_name=members.first("groups")["name"], client_id=victim.client)

    in_group = await answer(moving, members, trust)
    told: list[object] = []
    listening = await asyncpg.connect(moving.target.services.database.url)
    await listening.add_listener(CHANNEL, lambda *notified: told.append(notified[-1]))
    await imported(moving, forged.lines(), trust)
    await listening.execute("SELECT 1")  # notifications of before come first
    await listening.close()

    assert "group_members" in in_group
    assert f"client:{victim.client}" in told
    client = await moving.target.services.identity.client(UUID(victim.client))
    assert client is not None
    assert client.client.organization_ids == {UUID(victim.organization), moving.busy.id}
    assert client.secret_hashes
    assert "admin" in client.client.scopes
    async with moving.target.services.database.system() as connection:
        assert await connection.fetchval("SELECT count(*) FROM tokens WHERE client_id = $1", UUID(victim.client)) == 0


async def test_a_login_is_bound_by_its_first_sign_in_here(moving: Moving):  # noqa: F811
    forged = Forged(await exported_lines(moving))
    login = f"{uuid4().hex}@example.com"
    forged.change("people", named_in=None, login=login, issuer="https://provider.example", subject="another's")

    await imported(moving, forged.lines())

    async with moving.target.services.database.system() as connection:
        row = await connection.fetchrow("SELECT issuer, subject FROM people WHERE login = $1", login)
    assert tuple(row) == (None, None)


async def test_a_job_of_a_file_opens_no_file_of_another_job(moving: Moving):  # noqa: F811
    services = moving.target.services
    other, secret = moving.target.organization, Path(services.settings.data_dir) / "secret"
    secret.write_bytes(b"secret")
    stored = {"size": 6, "sha256": "0", "labels": {"Set-Cookie": "a=b", "Content-Type": "text/plain"}}
    answers = []

    for blob in (str(secret), f"{await other()}/{uuid4()}.1", "../secret"):
        with pytest.raises(ResultExpired):
            async with services.jobs.files.open(moving.busy.id, uuid4(), StoredFile(blob=blob, **stored)):
                answers.append(blob)

    assert answers == []
    assert StoredFile(blob="b", **stored).headers == {"Content-Type": "text/plain", "ETag": '"0"'}


def test_a_line_without_end_is_refused_before_it_fills_the_memory():
    file = BytesIO()
    writer = SealedWriter(file, Lock.by_passphrase("p"))
    block = bytes(1 << 20)
    for _ in range(140):
        writer.write(block)
    writer.close()
    file.seek(0)

    tracemalloc.start()
    with pytest.raises(SealedFileError, match="a line of more than 128 MiB"):
        list(sealed_lines(file, [], "p"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 300 << 20


def test_what_follows_the_end_of_the_lines_is_refused_and_not_gathered():
    lock = Lock.by_passphrase("p")
    content = zlib.compress(b"line\n")
    chunks = [content + os.urandom((64 << 10) - len(content)), *(os.urandom(64 << 10) for _ in range(300))]
    sealed = [
        lock.key.encrypt(number.to_bytes(11) + bytes([number == 300]), chunk, None)
        for number, chunk in enumerate(chunks)
    ]
    file = BytesIO(MAGIC + lock.header + b"".join(sealed))

    tracemalloc.start()
    with pytest.raises(SealedFileError, match="it goes on after its end"):
        list(sealed_lines(file, [], "p"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 4 << 20


#: how a value of a type is written, so that any table gets a row
_VALUES = {
    "uuid": "gen_random_uuid()",
    "text": "gen_random_uuid()::text",
    "boolean": "true",
    "jsonb": "'{}'",
    "timestamp with time zone": "now()",
    "bytea": "decode(md5(random()::text), 'hex')",
    "xid8": "'1'",
}
_COLUMNS = """
    SELECT attname AS name, format_type(atttypid, NULL) AS type FROM pg_attribute
    WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped AND attgenerated = '' AND attidentity = ''
      AND (attnotnull OR atttypid IN ('uuid'::regtype, 'uuid[]'::regtype))
"""
_KEYS = """
    SELECT confrelid::regclass::text AS target,
           ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = conrelid AND attnum = ANY (conkey)) AS columns,
           ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = confrelid AND attnum = ANY (confkey)) AS keys
    FROM pg_constraint WHERE contype = 'f' AND conrelid = to_regclass($1)
"""
_IS_PRIMARY = """
    SELECT attname FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
    WHERE indrelid = to_regclass($1) AND indisprimary AND indnkeyatts = 1
"""
_ENUMERATIONS = """
    SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) FROM pg_constraint
    WHERE contype = 'c' AND conrelid <> 0 AND conparentid = 0 AND connamespace = current_schema()::regnamespace
"""


async def inserted(owner: asyncpg.Connection, table: str, values: Mapping[str, Any]) -> asyncpg.Record:
    """A row of any table, with these values."""
    columns = {row["name"]: row["type"] for row in await owner.fetch(_COLUMNS, table)}
    given = {name: value for name, value in values.items() if name in columns}
    others = {
        name: "'{}'" if type_.endswith("[]") else _VALUES.get(type_, "0")
        for name, type_ in columns.items()
        if name not in given
    }
    names = ", ".join(f'"{name}"' for name in (*given, *others))
    places = ", ".join((*(f"${place}" for place in range(1, len(given) + 1)), *others.values()))
    statement = f'INSERT INTO "{table}" ({names}) VALUES ({places}) RETURNING *'
    return await owner.fetchrow(statement, *given.values())


async def foreign_references(owner: asyncpg.Connection, table: str, foreign: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a table that can refer to another organization, each with a reference to it."""
    keys = await owner.fetch(_KEYS, table)
    references: dict[str, Any] = {}
    for key in keys:
        if "organization_id" not in key["columns"]:
            values = (foreign[key["target"]][name] for name in key["keys"])
            references |= dict(zip(key["columns"], values, strict=True))
    others = {"organization_id", await owner.fetchval(_IS_PRIMARY, table)}.union(*(key["columns"] for key in keys))
    connector = foreign["connectors"]["id"]
    return references | {
        row["name"]: connector if row["type"] == "uuid" else [connector]
        for row in await owner.fetch(_COLUMNS, table)
        if row["type"] in ("uuid", "uuid[]") and row["name"] not in others
    }


async def test_every_column_that_can_name_a_row_of_another_organization_is_checked(database_url: str):
    """The tables and columns are those of the catalog, so that new ones are in this test."""
    own, other, expected = uuid4(), uuid4(), set()
    owner = await asyncpg.connect(database_url)
    try:
        for statement in await owner.fetch(_ENUMERATIONS):
            await owner.execute(statement[0])
        await owner.execute("SET session_replication_role = replica")
        foreign = {each.name: await inserted(owner, each.name, owned(each.name, other)) for each in MOVED}
        transaction = owner.transaction()
        await transaction.start()
        for each in MOVED:
            references = await foreign_references(owner, each.name, foreign)
            await inserted(owner, each.name, {**references, **owned(each.name, own)})
            expected |= {(each.name, name) for name in references}
        ownership = await Ownership.read(owner, [each.name for each in MOVED])
        found = {(fault.table, fault.names) async for fault in ownership.faults(owner, own, [])}
        await transaction.rollback()
    finally:
        await owner.close()

    assert len(expected) > 80
    assert found == expected


_TIMES = """
    SELECT attname AS name FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
    WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped AND attgenerated = '' AND typcategory = 'D'
"""
#: a time of a file, and the columns that may have it
TIMES = {
    "0044-03-15 BC": set(),
    "10000-01-02": set(),
    "infinity": set(),
    "-infinity": {("webhooks", "held_until")},
    "0001-01-02": None,
    "9999-12-30": None,
}


_NUMBERS = """
    SELECT attname AS name, number.typlen AS size, atttypid <> number.oid AS is_list
    FROM pg_attribute JOIN pg_type AS number ON atttypid IN (number.oid, number.typarray)
    WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped AND attgenerated = '' AND attidentity = ''
      AND number.typname IN ('int2', 'int4', 'int8')
"""


async def test_every_number_that_cannot_be_counted_up_is_refused(database_url: str):
    """The tables and columns are those of the catalog, so that new ones are in this test."""
    own, columns = uuid4(), set()
    owner = await asyncpg.connect(database_url)
    try:
        for statement in await owner.fetch(_ENUMERATIONS):
            await owner.execute(statement[0])
        await owner.execute("SET session_replication_role = replica")
        transaction = owner.transaction()
        await transaction.start()
        for each in MOVED:
            await inserted(owner, each.name, owned(each.name, own))
            for number in await owner.fetch(_NUMBERS, each.name):
                most = 2 ** (8 * number["size"] - 1) - 1
                given = f'"{number["name"]}" = {f"ARRAY[0, {most}]" if number["is_list"] else most}'
                await owner.execute(f'UPDATE "{each.name}" SET {given} WHERE xmin = pg_current_xact_id()::xid')
                columns.add((each.name, number["name"]))
        ownership = await Ownership.read(owner, [each.name for each in MOVED])
        found = {(fault.table, fault.names) async for fault in ownership.unfit_values(owner, own)}
        await transaction.rollback()
    finally:
        await owner.close()

    assert len(columns) > 50
    assert found == columns


async def test_every_time_that_python_cannot_read_is_refused(database_url: str):
    """The tables and columns are those of the catalog, so that new ones are in this test."""
    own, columns, found = uuid4(), set(), {}
    owner = await asyncpg.connect(database_url)
    try:
        for statement in await owner.fetch(_ENUMERATIONS):
            await owner.execute(statement[0])
        await owner.execute("SET session_replication_role = replica")
        for time in TIMES:
            transaction = owner.transaction()
            await transaction.start()
            for each in MOVED:
                await inserted(owner, each.name, owned(each.name, own))
                if names := [row["name"] for row in await owner.fetch(_TIMES, each.name)]:
                    columns |= {(each.name, name) for name in names}
                    given = ", ".join(f"\"{name}\" = '{time}'" for name in names)
                    await owner.execute(f'UPDATE "{each.name}" SET {given} WHERE xmin = pg_current_xact_id()::xid')
            ownership = await Ownership.read(owner, [each.name for each in MOVED])
            found[time] = {(fault.table, fault.names) async for fault in ownership.unfit_values(owner, own)}
            await transaction.rollback()
    finally:
        await owner.close()

    assert len(columns) > 50
    assert found == {time: set() if may is None else columns - may for time, may in TIMES.items()}


def owned(table: str, organization_id: UUID) -> dict[str, Any]:
    return {"id" if table == "organizations" else "organization_id": organization_id}

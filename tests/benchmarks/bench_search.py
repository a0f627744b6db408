"""Search and ingestion of the context store, each beside a baseline of the same run.

    python -m tests.benchmarks.bench_search --records 1000000

Prints p50 and p99 as ratios to a primary-key look-up and to SQL by hand over a typed table with the fitting index, and
ingestion as a ratio to plain COPY. The search runs as in the gateway: query parsed, tenant bound, row security on.
"""

import argparse
import asyncio
import io
import os
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import msgspec

from gateway.context_store.entities import StoredEntity, finalize, register
from gateway.context_store.fields import FieldType
from gateway.context_store.layout import chosen
from gateway.context_store.records import upsert
from gateway.context_store.search.parse import parse
from gateway.context_store.search.search import ContextStore
from gateway.context_store.word_index import catch_up
from gateway.embedded.postgres import EmbeddedPostgres
from gateway.foundation.db.migrate import migrate
from tests.benchmarks.report import Figure, Report

SERVER = os.environ.get("GATEWAY_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/{database}")
STORE = ContextStore(b"benchmark".ljust(32))
CONNECTORS = 50
SMALL, LARGE = 3_500, 200_000
PAGE = 50
#: seconds for one figure
PATIENCE = 10.0

STRING, INTEGER, NUMBER, BOOLEAN, ARRAY, OBJECT, _ = FieldType
FIELDS = {
    **dict.fromkeys(["url", "external_id", "subject", "description", "status", "priority", "type"], STRING),
    **dict.fromkeys(["created_at", "updated_at"], STRING),
    **dict.fromkeys(["id", "assignee_id", "requester_id", "group_id"], INTEGER),
    "is_public": BOOLEAN,
    "tags": ARRAY,
    "via": OBJECT,
    "score": NUMBER,
}

BEGINNINGS = (
    "print",
    "net",
    "log",
    "car",
    "tel",
    "doc",
    "sys",
    "mon",
    "ref",
    "ord",
    "inv",
    "mail",
    "pass",
    "scr",
    "key",
)
MIDDLES = ("wor", "in", "go", "ex", "ma", "pa", "lu", "to", "re", "si", "na", "do", "mi", "vu", "ca", "fo")
ENDS = ("er", "k", "ing", "ed", "s", "al", "ion", "ix", "um", "or", "at", "en", "ly", "ive")
VOCABULARY = [first + middle + end for middle in MIDDLES for first in BEGINNINGS for end in ENDS]
#: few words are common, most are rare
CUMULATIVE_WEIGHTS = list(accumulate(1 / (rank + 3) for rank in range(len(VOCABULARY))))

CONNECTOR = """
    INSERT INTO connectors (id, organization_id, workspace_id, kind, name, status)
    VALUES ($1, $2, $3, 'support-desk', 'bench', 'active')
"""
PLAIN = """
    CREATE TABLE plain (entity_id integer, id text COLLATE "C", organization_id uuid, document jsonb,
                        PRIMARY KEY (entity_id, id))
"""
BY_HAND = """
    CREATE TABLE by_hand AS
    SELECT entity_id, id, document, document->>'external_id' COLLATE "C" AS external_id,
        document->>'status' COLLATE "C" AS status, document->>'priority' AS priority,
        document->>'updated_at' COLLATE "C" AS updated_at, document->>'subject' AS subject,
        to_tsvector('simple', document->>'subject') AS words
    FROM plain;
    CREATE INDEX ON by_hand (entity_id, external_id);
    CREATE INDEX ON by_hand (entity_id, status, updated_at, id);
    CREATE INDEX ON by_hand (entity_id, updated_at, id);
    CREATE INDEX ON by_hand USING gin (words);
    GRANT SELECT ON by_hand, plain TO gateway_app;
    VACUUM ANALYZE
"""
LOOK_UP = "SELECT id, document::text FROM context_records WHERE entity_id = $1 AND id = $2"
SELECT = "SELECT id, document::text FROM by_hand WHERE entity_id = $1 AND "
NEWEST = f" ORDER BY updated_at DESC, id DESC LIMIT {PAGE + 1}"


@dataclass(frozen=True)
class Case:
    """One kind of search, and the SQL that one would write for it."""

    name: str
    ask: Callable[[random.Random], dict[str, Any]]
    by_hand: str
    arguments: Callable[[dict[str, Any]], list[Any]]


def newest(filter_: dict[str, Any]) -> dict[str, Any]:
    return {"query": {"filter": filter_, "sort": [{"updated_at": "desc"}]}, "limit": PAGE}


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def external_id(number: int) -> str:
    return f"EXT-{number * 7919 % 10_000_019}"


def record(number: int, chance: random.Random) -> dict[str, Any]:
    text = chance.choices(VOCABULARY, cum_weights=CUMULATIVE_WEIGHTS, k=34)
    created = 1.6e9 + chance.random() * 1e8
    return {
        "id": number,
        "url": f"https://acme.example.com/api/v2/tickets/{number}.json",
        "external_id": external_id(number),
        "subject": " ".join(text[:6]),
        "description": " ".join(text[6:26]),
        "status": chance.choice(["new", "open", "pending", "solved", "closed"]),
        "priority": chance.choice(["low", "normal", "high", "urgent", None]),
        "type": chance.choice(["question", "incident"]),
        "created_at": moment(created),
        "updated_at": moment(created + chance.random() * 1e6),
        "assignee_id": chance.randrange(1_000),
        "requester_id": chance.randrange(100_000),
        "group_id": chance.randrange(20),
        "is_public": chance.random() < 0.5,
        "tags": chance.sample(["vip", "beta", "eu", "us", "sla", "bug"], 2),
        "via": {"channel": chance.choice(["web", "email", "api"])},
        "score": round(chance.random() * 100, 3),
    }


def known_word(chance: random.Random, most_common: int = 60, least_common: int = 1_500) -> str:
    return VOCABULARY[chance.randrange(most_common, least_common)]


def start_of_range(chance: random.Random) -> str:
    return moment(1.6e9 + chance.random() * 0.99e8)


CASES = [
    Case(
        "eq, selective",
        lambda chance: {"query": {"filter": {"eq": {"external_id": external_id(chance.randrange(300))}}}},
        SELECT + "external_id = $2",
        lambda asked: [asked["query"]["filter"]["eq"]["external_id"]],
    ),
    Case(
        "eq, 1 in 5 + sort",
        lambda chance: newest({"eq": {"status": chance.choice(["new", "open", "closed"])}}),
        SELECT + "status = $2" + NEWEST,
        lambda asked: [asked["query"]["filter"]["eq"]["status"]],
    ),
    Case(
        "range + sort",
        lambda chance: newest({"lt": {"updated_at": start_of_range(chance)}}),
        SELECT + "updated_at < $2" + NEWEST,
        lambda asked: [asked["query"]["filter"]["lt"]["updated_at"]],
    ),
    Case("sort", lambda _: newest({}), SELECT + "TRUE" + NEWEST, lambda _: []),
    Case(
        "keyword + sort",
        lambda chance: newest({"keyword": {"subject": known_word(chance)}}),
        SELECT + "words @@ plainto_tsquery('simple', $2)" + NEWEST,
        lambda asked: [asked["query"]["filter"]["keyword"]["subject"]],
    ),
    Case(
        "keyword, common + sort",
        lambda chance: newest({"keyword": {"subject": known_word(chance, 0, 3)}}),
        SELECT + "words @@ plainto_tsquery('simple', $2)" + NEWEST,
        lambda asked: [asked["query"]["filter"]["keyword"]["subject"]],
    ),
    Case(
        "fuzzy, two beginnings + sort",
        lambda chance: newest({"fuzzy": {"subject": known_word(chance)[:6] + " " + known_word(chance, 0, 30)[:6]}}),
        SELECT + "words @@ (replace($2, ' ', ':* & ') || ':*')::tsquery" + NEWEST,
        lambda asked: [asked["query"]["filter"]["fuzzy"]["subject"]],
    ),
    Case(
        "like %word% + sort",
        lambda chance: newest({"like": {"subject": known_word(chance)}}),
        SELECT + "subject ILIKE '%' || $2 || '%'" + NEWEST,
        lambda asked: [asked["query"]["filter"]["like"]["subject"]],
    ),
    Case(
        "and/or/not mix + sort",
        lambda chance: newest({
            "or": [{"eq": {"status": "open"}}, {"eq": {"status": "new"}}],
            "not": {"eq": {"priority": "low"}},
            "lt": {"updated_at": start_of_range(chance)},
        }),
        SELECT + "status IN ('open', 'new') AND priority IS DISTINCT FROM 'low' AND updated_at < $2" + NEWEST,
        lambda asked: [asked["query"]["filter"]["lt"]["updated_at"]],
    ),
]  # fmt: skip


@dataclass(frozen=True)
class Spent:
    """Milliseconds of one thing that was done many times."""

    p50: float
    p99: float


async def in_turns(*acts: Callable[[], Awaitable[Any]], times: int) -> list[Spent]:
    """What each takes when they take turns, so that they share the machine; after some rounds to warm up.

    Fewer rounds where they take long.
    """
    started = time.perf_counter()
    for _ in range(min(20, times)):
        if time.perf_counter() - started < PATIENCE / 4:
            for act in acts:
                await act()
    took: list[list[float]] = [[] for _ in acts]
    while len(took[0]) < times and (len(took[0]) < 5 or time.perf_counter() - started < PATIENCE):
        for act, each in zip(acts, took, strict=True):
            began = time.perf_counter()
            await act()
            each.append((time.perf_counter() - began) * 1000)
    return [Spent(sorted(each)[len(each) // 2], sorted(each)[int(len(each) * 0.99)]) for each in took]


def sizes(total: int) -> list[int]:
    """How many records each connector has: a large one, a small one, the others alike."""
    large, small = min(LARGE, total // 2), min(SMALL, total // 10)
    rest = (total - large - small) // (CONNECTORS - 2)
    return [small, *[rest] * (CONNECTORS - 2), total - small - rest * (CONNECTORS - 2)]


@dataclass(frozen=True)
class Loaded:
    """The small and the large entity, and how fast rows, words and plain COPY were, in rows a second."""

    entities: tuple[StoredEntity, StoredEntity]
    stored: float
    worded: float
    copied: float


@dataclass(frozen=True)
class Row:
    """One kind of search, a primary-key look-up, and SQL by hand, in turns."""

    name: str
    records: int
    search: Spent
    key: Spent
    hand: Spent


async def load(url: str, total: int) -> Loaded:
    """Fill the store through `upsert` and a plain table through COPY."""
    owner = await asyncpg.connect(url)
    application = await asyncpg.connect(url, server_settings={"gateway.tenant": "*"})
    await application.execute("SET ROLE gateway_app")
    await owner.execute(PLAIN)
    organization_id, workspace_id = uuid4(), uuid4()
    await owner.execute("INSERT INTO organizations (id, name) VALUES ($1, 'bench')", organization_id)
    await owner.execute(
        "INSERT INTO workspaces (id, organization_id, name) VALUES ($1, $2, 'w')", workspace_id, organization_id
    )
    entities, stored_in, worded_in, copied_in, number = [], 0.0, 0.0, 0.0, 0
    chance = random.Random(7)
    last: list[tuple[str, bytes]] = []
    for size in sizes(total):
        connector_id = uuid4()
        await owner.execute(CONNECTOR, connector_id, organization_id, workspace_id)
        entity = await register(application, connector_id, organization_id, "tickets", chosen(FIELDS))
        records = [(str(number + offset), msgspec.json.encode(record(offset, chance))) for offset in range(size)]
        number += size
        began = time.perf_counter()
        await upsert(application, entity, records)
        stored_in += time.perf_counter() - began
        began = time.perf_counter()
        await catch_up(application, entity)
        await finalize(application, entity)
        worded_in += time.perf_counter() - began
        lines = io.BytesIO(b"".join(_line(entity, organization_id, id_, document) for id_, document in records))
        began = time.perf_counter()
        await owner.copy_to_table("plain", source=lines)
        copied_in += time.perf_counter() - began
        entities.append(entity)
        last = records
    began = time.perf_counter()
    await upsert(application, entities[-1], last)
    again = len(last) / (time.perf_counter() - began)
    print(f"rows: {total / stored_in:,.0f}/s, COPY {total / copied_in:,.0f}, ratio {copied_in / stored_in:.2f}")
    print(f"with their words: {total / (stored_in + worded_in):,.0f} rows/s")
    print(f"unchanged records again: {again:,.0f} rows/s", flush=True)
    for statement in BY_HAND.split(";"):
        await owner.execute(statement)
    await owner.close()
    await application.close()
    worded = total / (stored_in + worded_in)
    return Loaded((entities[0], entities[-1]), total / stored_in, worded, total / copied_in)


def _line(entity: StoredEntity, organization_id: object, id_: str, document: bytes) -> bytes:
    return f"{entity.id}\t{id_}\t{organization_id}\t".encode() + document.replace(b"\\", b"\\\\") + b"\n"


def cases(wanted: str | None) -> Iterator[Case]:
    return (case for case in CASES if wanted is None or wanted in case.name)


async def compare(url: str, entity: StoredEntity, times: int, wanted: str | None) -> list[Row]:
    """One line per case: milliseconds, and ratios to the look-up and to SQL by hand."""
    connection = await asyncpg.connect(url, server_settings={"gateway.tenant": str(entity.organization_id)})
    await connection.execute("SET ROLE gateway_app")
    ids = await connection.fetch("SELECT id FROM plain WHERE entity_id = $1", entity.id)
    count, chance = len(ids), random.Random(11)
    print(f"\n{count:,} records")
    print(
        f"{'':32}{'p50 ms':>9}{'p99 ms':>9}{'key p50':>9}{'p50/key':>9}{'p99/key':>9}{'hand p50':>10}{'p50/hand':>10}"
    )

    async def look_up() -> Any:
        return await connection.fetchrow(LOOK_UP, entity.id, chance.choice(ids)["id"])

    async def ask(params: dict[str, Any]) -> Any:
        query = parse(params, FIELDS)
        return await STORE.search(connection, entity.connector_id, "tickets", query)

    async def measured(name: str, asked: Callable[[], dict[str, Any]], by_hand: Callable[[], Awaitable[Any]]) -> Row:
        search, key, hand = await in_turns(lambda: ask(asked()), look_up, by_hand, times=times)
        return _printed(Row(name, count, search, key, hand))

    def by_hand(case: Case) -> Awaitable[Any]:
        return connection.fetch(case.by_hand, entity.id, *case.arguments(case.ask(chance)))

    rows = [await measured(case.name, partial(case.ask, chance), partial(by_hand, case)) for case in cases(wanted)]
    next_page = {**newest({}), "cursor": (await ask(newest({}))).cursor}
    newest_by_hand = partial(connection.fetch, SELECT + "TRUE" + NEWEST, entity.id)
    rows.append(await measured("next page", lambda: next_page, newest_by_hand))
    await connection.close()
    return rows


def _printed(row: Row) -> Row:
    search, key, hand = row.search, row.key.p50, row.hand.p50
    ratios = f"{key:9.3f}{search.p50 / key:9.1f}{search.p99 / key:9.1f}{hand:10.3f}{search.p50 / hand:10.2f}"
    print(f"{row.name:32}{search.p50:9.3f}{search.p99:9.3f}{ratios}", flush=True)
    return row


async def run(quick: bool = False) -> Report:
    """The figures of PERFORMANCE for search, on a PostgreSQL of its own."""
    total, times = (100_000, 100) if quick else (1_000_000, 300)
    report = Report("Search")
    with tempfile.TemporaryDirectory(prefix="gw-") as folder:
        server = EmbeddedPostgres(Path(folder) / "postgres")
        url = server.start()
        try:
            await migrate(url)
            loaded = await load(url, total)
            report.figures += [
                Figure("rows ingested, beside plain COPY", loaded.stored, loaded.copied, "rows/s", at_least=0.3),
                Figure("rows and their words, beside plain COPY", loaded.worded, loaded.copied, "rows/s"),
            ]
            for entity in loaded.entities:
                for row in await compare(url, entity, times, None):
                    report.figures += _figures(row)
        finally:
            server.stop()
    report.notes.append(
        f"{total:,} records; the baseline is a primary-key look-up on the same connection, in turns with it"
    )
    return report


def _figures(row: Row) -> list[Figure]:
    """p50 and p99 beside a look-up; words are held to other targets than fields."""
    name = f"{row.name}, {row.records:,} records"
    if row.name.startswith(("eq", "range", "sort", "next")):
        return [
            Figure(f"{name}: p50", row.search.p50, row.key.p50, "ms", at_most=4),
            Figure(f"{name}: p99", row.search.p99, row.key.p50, "ms", at_most=12),
        ]
    is_words = row.name.startswith(("keyword", "fuzzy"))
    most = (60.0 if row.records <= SMALL else 150.0) if is_words else 60.0 if row.name.startswith("like") else None
    return [Figure(f"{name}: p50", row.search.p50, row.key.p50, "ms", at_most=most)]


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=300)
    parser.add_argument("--case")
    parser.add_argument("--keep", metavar="DATABASE", help="load into this database, or use it as it is")
    options = parser.parse_args()
    name = options.keep or f"bench_search_{uuid4().hex[:8]}"
    url = SERVER.format(database=name)
    server = await asyncpg.connect(SERVER.format(database="postgres"))
    try:
        await server.execute(f"CREATE DATABASE {name}")
        await migrate(url)
        loaded = await load(url, options.records)
        for entity in loaded.entities:
            await compare(url, entity, options.times, options.case)
    finally:
        if not options.keep:
            await server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        await server.close()


if __name__ == "__main__":
    asyncio.run(main())

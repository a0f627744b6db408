"""Migrations: each applied once, whoever starts at the same time; a database of another history is refused."""

import asyncio
import re
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from gateway.foundation.db.migrate import (
    Applied,
    Migration,
    SchemaError,
    migrate,
    missing_of,
    pending,
    shipped_migrations,
)
from gateway.run.monitoring.health_checks import CheckStatus, of_postgres
from gateway.settings import Settings
from tests.harness.command_line import invoked, ran, started
from tests.harness.databases import created_database, url_of
from tests.harness.postgres_relay import postgres_relay
from tests.harness.processes import KEYS, bare_environment, free_port

#: what an older version that still runs would stumble over; such a change waits for the release after next. A table may
#: become the partition of another one with its name.
CONTRACTING = re.compile(r"\b(DROP\s+(TABLE|COLUMN)|RENAME\s+(TO|COLUMN)|ALTER\s+COLUMN\s+\w+\s+TYPE)\b", re.IGNORECASE)
BECOMES_PARTITION = re.compile(
    r"ALTER TABLE (?P<name>\w+) RENAME TO (?P<partition>\w+);(?=.*\bCREATE TABLE (?P=name) .*"
    r"\bALTER TABLE (?P=name) ATTACH PARTITION (?P=partition)\b)|ALTER (INDEX|SEQUENCE) \w+ RENAME TO \w+;",
    re.DOTALL,
)

FUNCTION_BODY = re.compile(r"\bAS \$\$.*?\$\$", re.DOTALL)


@pytest.fixture
async def empty_database(postgres_url: str):
    async with created_database(postgres_url, "template1") as name:
        yield url_of(postgres_url, name)


async def applied(url: str) -> list[tuple[int, str]]:
    connection = await asyncpg.connect(url)
    rows = await connection.fetch("SELECT number, name FROM migrations ORDER BY number")
    await connection.close()
    return [tuple(row) for row in rows]


#: number, name and hash of every migration
RECORDED = (Path(__file__).parent / "migrations.txt").read_text("utf-8").splitlines()
ONE, TWO, THREE = (Migration(number, name, name) for number, name in ((1, "one"), (2, "two"), (3, "three")))

#: the table of applied migrations of the first version
FIRST_TABLE = (
    "CREATE TABLE migrations (number integer PRIMARY KEY, name text NOT NULL, "
    "applied_at timestamptz NOT NULL DEFAULT now())"
)
# Everything that migrations create, in words that compare.
SCHEMA = """
    SELECT format('column %s.%s %s %s %s', attrelid::regclass, attname, format_type(atttypid, atttypmod), attnotnull,
                  pg_get_expr(adbin, adrelid))
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE relnamespace = 'public'::regnamespace AND attnum > 0 AND NOT attisdropped
    UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL SELECT format('%s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prokind = 'f'
    UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT format('%s %s %s %s', tablename, policyname, qual, with_check) FROM pg_policies
    UNION ALL SELECT format('%s %s', oid::regclass, relacl) FROM pg_class WHERE relnamespace = 'public'::regnamespace
    ORDER BY 1
"""


async def schema_of(url: str) -> list[str]:
    connection = await asyncpg.connect(url)
    rows = await connection.fetch(SCHEMA)
    await connection.close()
    return [row[0] for row in rows]


async def executed(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    for statement in statements:
        await connection.execute(statement)
    await connection.close()


def test_migrations_are_only_added():
    """Databases exist that have these: none is renumbered, renamed or edited."""
    shipped = [f"{migration} {migration.hash}" for migration in shipped_migrations()]

    assert [line for line in RECORDED if line not in shipped] == []
    assert [line for line in shipped if line not in RECORDED] == [], (
        "add these lines to tests/foundation/db/migrations.txt"
    )


@pytest.mark.parametrize("count", range(1, len(RECORDED)))
async def test_every_earlier_schema_becomes_that_of_a_new_database(empty_database: str, database_url: str, count: int):
    await executed(
        empty_database,
        FIRST_TABLE,
    )
    for migration in shipped_migrations()[:count]:
        record = f"INSERT INTO migrations (number, name) VALUES ({migration.number}, '{migration.name}')"
        await executed(empty_database, migration.sql, record)

    await migrate(empty_database)

    assert await schema_of(empty_database) == await schema_of(database_url)
    assert await recorded(empty_database) == RECORDED


# A shared connector and a personal one, each with a record and its words.
COPIES_WITHOUT_OWNER = """
    INSERT INTO organizations (id, name) VALUES (gen_random_uuid(), 'o');
    INSERT INTO workspaces (id, organization_id, name) SELECT gen_random_uuid(), id, 'w' FROM organizations;
    INSERT INTO connectors (id, organization_id, workspace_id, kind, name, status, owner_id)
    SELECT gen_random_uuid(), organization_id, id, 'support-desk', 'Mail', 'active', owner_id
    FROM workspaces, (VALUES (NULL), (gen_random_uuid())) AS new (owner_id);
    INSERT INTO context_entities (connector_id, organization_id, entity, layout)
    SELECT id, organization_id, 'tickets', '{}' FROM connectors;
    INSERT INTO context_records (entity_id, id, organization_id, document, generation, observed_at)
    SELECT id, 'a', organization_id, '{}', 1, now() FROM context_entities;
    INSERT INTO context_words (entity_id, id, organization_id, digest, terms)
    SELECT id, 'a', organization_id, 1, '' FROM context_entities;
"""
OWNERS = """
    SELECT count(*) FROM connectors AS c
    JOIN context_entities AS e ON e.connector_id = c.id AND e.owner_key = c.owner_key
    JOIN context_records AS r ON r.entity_id = e.id AND r.owner_key = c.owner_key
    JOIN context_words AS w ON w.entity_id = e.id AND w.owner_key = c.owner_key
"""
# An administrator of the database who is no superuser, so that the policies of tables hold for the migrations too.
KEEPER = """
    CREATE ROLE {role};
    GRANT USAGE, CREATE ON SCHEMA public TO {role};
    DO $$
    DECLARE name text;
    BEGIN
        FOR name IN SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' LOOP
            EXECUTE format('ALTER TABLE %I OWNER TO {role}', name);
        END LOOP;
    END
    $$;
    SET ROLE {role}
"""


async def test_copies_of_an_earlier_version_get_the_owners_of_their_connectors(empty_database: str):
    role = f"keeper_{uuid4().hex}"
    await executed(
        empty_database,
        FIRST_TABLE,
        *(each.sql for each in shipped_migrations() if each.number < 103),
        COPIES_WITHOUT_OWNER,
    )
    connection = await asyncpg.connect(empty_database)
    await connection.execute(KEEPER.format(role=role))
    for migration in shipped_migrations():
        if migration.number in (103, 104):
            async with connection.transaction():
                await connection.execute(migration.sql)
    await connection.execute("RESET ROLE")

    with_owners = await connection.fetchval(OWNERS)
    await connection.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")
    await connection.close()

    assert with_owners == 2


async def recorded(url: str) -> list[str]:
    connection = await asyncpg.connect(url)
    rows = await connection.fetch("SELECT number, name, hash FROM migrations ORDER BY number")
    await connection.close()
    return [f"{number:04d} {name} {hash_}" for number, name, hash_ in rows]


@pytest.mark.parametrize(
    ("applied", "missing"),
    [
        ([], [ONE, TWO]),
        ([Applied(1, "one", ONE.hash, "1.4.0")], [TWO]),
        ([Applied(1, "one")], [TWO]),
        ([Applied(2, "two", TWO.hash)], [ONE]),
        ([Applied(1, "one"), Applied(2, "two"), Applied(3, "three", "of a newer minor", "1.9.0")], []),
    ],
)
def test_migrations_that_are_not_applied_are_missing(applied, missing):
    assert missing_of(applied, [ONE, TWO], "1.4.2") == missing


@pytest.mark.parametrize(
    ("applied", "message"),
    [
        (Applied(1, "first"), "its migration 0001 is first, that of version 1.4.2 is one; set GATEWAY_DATABASE_URL"),
        (Applied(1, "one", TWO.hash), "its migration 0001 one had other statements than that of version 1.4.2"),
        (Applied(3, "three"), "version 1.4.2 has no migration 0003 three; set GATEWAY_DATABASE_URL"),
        (Applied(3, "three", None, "2.0.0"), "install version 2.0.0 or later"),
    ],
)
def test_a_schema_of_another_history_is_refused(applied, message):
    with pytest.raises(SchemaError, match=message):
        missing_of([applied], [ONE, TWO], "1.4.2")


OTHER_HISTORIES = {
    "is agents, that of version": "UPDATE migrations SET name = 'agents' WHERE number = 5",
    "had other statements": "UPDATE migrations SET hash = 'of other statements' WHERE number = 5",
    "has no migration 9000 later": "INSERT INTO migrations (number, name) VALUES (9000, 'later')",
    "install version 99.0.0 or later": (
        "INSERT INTO migrations (number, name, version) VALUES (9000, 'later', '99.0.0')"
    ),
    "another application": "ALTER TABLE migrations RENAME COLUMN number TO batch",
}


@pytest.fixture
async def own_database(postgres_url: str, migrated_database: str):
    async with created_database(postgres_url, migrated_database) as name:
        yield url_of(postgres_url, name)


@pytest.mark.parametrize(("words", "statement"), OTHER_HISTORIES.items())
async def test_commands_refuse_a_schema_of_another_history_and_change_nothing(
    own_database: str, tmp_path: Path, words: str, statement: str
):
    await executed(own_database, statement)
    before = await schema_of(own_database)
    environment = {"GATEWAY_DATABASE_URL": own_database}

    ended = [
        await invoked("migrate", *options, environment=environment, directory=tmp_path) for options in ([], ["--check"])
    ]
    checks = {each.what: each async for each in of_postgres(Settings(database_url=own_database))}

    for each in ended:
        assert each.code == 2
        assert words in each.err
        assert each.err.count("\n") == 1
    assert checks["schema"].status is CheckStatus.FAILED
    assert words in checks["schema"].message
    assert await schema_of(own_database) == before


@pytest.mark.processes
@pytest.mark.parametrize("role", ["serve", "worker"])
async def test_processes_refuse_a_schema_that_is_not_theirs(own_database: str, tmp_path: Path, role: str):
    environment = process_environment(own_database)

    await executed(own_database, "DELETE FROM migrations WHERE number = 13")
    older = await ran(role, environment=environment, directory=tmp_path)
    await executed(own_database, OTHER_HISTORIES["is agents, that of version"])
    other = await ran(role, environment=environment, directory=tmp_path)

    assert older.code == other.code == 2
    assert (
        "has an older schema, without the migration 0013 token_resources of this version; run `gateway migrate`"
        in older.err
    )
    assert "its migration 0005 is agents" in other.err


@pytest.mark.processes
async def test_a_process_that_started_without_postgres_stops_at_a_schema_that_is_not_its_own(
    own_database: str, tmp_path: Path
):
    await executed(own_database, OTHER_HISTORIES["is agents, that of version"])
    async with postgres_relay(own_database) as relay:
        relay.is_open = False
        process = await started("serve", environment=process_environment(relay.url), directory=tmp_path)
        assert process.stderr is not None
        while b"listening" not in (line := await process.stderr.readline()):
            assert line
        relay.is_open = True
        _, err = await process.communicate()

    assert process.returncode == 0
    assert b"the process stops: PostgreSQL has a schema of another history" in err


@pytest.mark.processes
async def test_a_process_starts_on_the_schema_of_a_newer_minor_version(own_database: str, tmp_path: Path):
    newer = "INSERT INTO migrations SELECT 9000, 'later', now(), 'hash', version FROM migrations WHERE number = 1"
    await executed(own_database, newer)

    process = await started("serve", environment=process_environment(own_database), directory=tmp_path)
    assert process.stderr is not None
    while b"listening" not in (line := await process.stderr.readline()):
        assert line
    process.terminate()
    await process.communicate()

    assert process.returncode == 0


def process_environment(database_url: str) -> dict[str, str]:
    return {
        **bare_environment(),
        "GATEWAY_DATABASE_URL": database_url,
        "GATEWAY_REDIS_URL": f"redis://127.0.0.1:{free_port()}/0",
        "GATEWAY_ENCRYPTION_KEYS": KEYS,
        "GATEWAY_BIND": f"127.0.0.1:{free_port()}",
    }


@pytest.mark.parametrize("migration", shipped_migrations(), ids=lambda migration: migration.name)
def test_no_migration_takes_away_what_a_running_version_uses(migration):
    statements = re.sub(r"--[^\n]*", "", migration.sql)
    for harmless in (BECOMES_PARTITION, FUNCTION_BODY):
        statements = harmless.sub("", statements)

    assert not CONTRACTING.search(statements)


async def test_an_empty_database_gets_everything_once(empty_database: str):
    missing_before = await pending(empty_database)

    first, second = await migrate(empty_database), await migrate(empty_database)

    assert first == missing_before == shipped_migrations()
    assert second == []
    assert await pending(empty_database) == []
    assert await applied(empty_database) == [(each.number, each.name) for each in shipped_migrations()]


async def test_two_that_start_at_once_apply_each_migration_once(empty_database: str):
    outcomes = await asyncio.gather(*(migrate(empty_database) for _ in range(4)))

    assert sorted(map(len, outcomes)) == [0, 0, 0, len(shipped_migrations())]
    assert await applied(empty_database) == [(each.number, each.name) for each in shipped_migrations()]


async def test_a_migration_that_fails_leaves_nothing_of_itself(empty_database: str):
    connection = await asyncpg.connect(empty_database)
    await connection.execute("CREATE TABLE clients (in_the_way integer)")

    with pytest.raises(
        SchemaError, match='that the migration 0001 identity creates \\(relation "clients" already exists'
    ):
        await migrate(empty_database)

    assert await connection.fetchval("SELECT to_regclass('organizations')") is None
    await connection.execute("DROP TABLE clients")
    await connection.close()
    assert await migrate(empty_database) == shipped_migrations()


async def test_the_command_says_what_is_missing_by_its_exit_code(empty_database: str, tmp_path: Path):
    environment = {"GATEWAY_DATABASE_URL": empty_database}

    async def command(*arguments: str) -> tuple[int, str]:
        ended = await invoked("migrate", *arguments, environment=environment, directory=tmp_path)
        return ended.code, ended.out

    before, done, after = await command("--check"), await command(), await command("--check")

    assert before[0] == 1
    assert "missing: 0001 identity" in before[1]
    assert done[0] == 0
    assert after == (0, "")

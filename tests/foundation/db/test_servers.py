"""URLs with several servers: the primary is found, whichever of them it is and however the others are away."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg
import pytest
from yarl import URL

from gateway.errors import Unavailable
from gateway.foundation.aio.clock import steady
from gateway.foundation.db.migrate import pending
from gateway.foundation.db.pool import Database
from gateway.foundation.db.presence import Backends, Presence
from gateway.foundation.db.servers import DatabaseServers
from gateway.foundation.db.urls import urls_of_hosts
from tests.harness.postgres_relay import PostgresRelay, postgres_relay
from tests.harness.processes import free_port
from tests.harness.waiting import eventually


@contextmanager
def silent_port() -> Iterator[int]:
    """A port whose connections are accepted, and on which nothing is ever said."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
async def relay(database_url: str) -> AsyncIterator[PostgresRelay]:
    async with postgres_relay(database_url) as relay:
        yield relay


def url_of(relay: PostgresRelay, *ports: int) -> str:
    """The URL of the server behind the relay and of others before it."""
    url = URL(relay.url)
    return str(url).replace(f"127.0.0.1:{url.port}", ",".join(f"127.0.0.1:{port}" for port in (*ports, url.port or 0)))


def test_a_url_names_a_server_for_each_of_its_hosts():
    assert urls_of_hosts("postgresql://u:p%2C@a:1,[::1]:2,c/db?target_session_attrs=primary") == [
        f"postgresql://u:p%2C@{host}/db?target_session_attrs=primary" for host in ("a:1", "[::1]:2", "c")
    ]
    for one in ("postgresql:///db", "postgresql://a?host=/tmp/x", "postgresql://u@/db?host=a,b"):
        assert urls_of_hosts(one) == [one]


async def test_a_silent_server_does_not_keep_the_next_one_from_being_asked(relay: PostgresRelay):
    with silent_port() as silent:
        url = url_of(relay, silent)
        async with Database.open(url, size=1) as database, database.system() as connection:
            assert await connection.fetchval("SELECT 1") == 1
        assert await pending(url) == []


async def test_a_server_that_refuses_does_not_keep_the_next_one_from_being_asked(relay: PostgresRelay):
    connection = await DatabaseServers(url_of(relay, free_port(), free_port())).connect()
    connection.terminate()


async def test_why_a_server_cannot_be_reached_is_said_before_that_another_is_not_the_one_wanted(relay: PostgresRelay):
    with pytest.raises(ConnectionRefusedError):
        await DatabaseServers(f"{url_of(relay, free_port())}?target_session_attrs=standby").connect()
    with pytest.raises(asyncpg.exceptions.TargetServerAttributeNotMatched):
        await DatabaseServers(f"{url_of(relay, URL(relay.url).port or 0)}?target_session_attrs=standby").connect()


async def test_a_pool_leaves_a_server_that_has_fallen_silent_with_the_first_use_that_notices(
    relay: PostgresRelay, database_url: str
):
    """Each of its other connections would have cost a use until then."""
    async with postgres_relay(database_url) as other:
        url = url_of(other, URL(relay.url).port or 0)
        async with Database.open(url, size=4) as database:
            sessions = set(await of_all_connections(database, 4, "SELECT pg_backend_pid()"))
            relay.flows.clear()
            await end_sessions(database_url, sessions)
            with pytest.raises(Unavailable):
                async with database.system() as connection:
                    await connection.fetchval("SELECT 1")
            assert await of_all_connections(database, 4, "SELECT 1") == [1] * 4


async def test_a_pool_leaves_a_server_that_has_become_read_only(database_url: str):
    async with Database.open(database_url, size=3) as database:
        await of_all_connections(database, 3, "SELECT set_config('default_transaction_read_only', 'on', false)")
        with pytest.raises(Unavailable, match="read-only"):
            async with database.system() as connection:
                await connection.execute("DELETE FROM workspaces WHERE false")
        is_read_only = "SELECT current_setting('transaction_read_only')"
        assert await of_all_connections(database, 3, is_read_only) == ["off"] * 3


async def of_all_connections(database: Database, size: int, query: str) -> list[Any]:
    """What the query returns on each connection of the pool."""
    everyone = asyncio.Barrier(size)

    async def use() -> Any:
        async with database.system() as connection:
            await everyone.wait()
            return await connection.fetchval(query)

    return await asyncio.gather(*(use() for _ in range(size)))


async def end_sessions(url: str, sessions: set[int]) -> None:
    """End the sessions on the server, whose clients hear nothing of it."""
    server = await asyncpg.connect(url)
    try:
        await server.execute("SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS pid", list(sessions))

        async def are_gone() -> bool:
            return not await server.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY($1)", list(sessions)
            )

        await eventually(are_gone)
    finally:
        await server.close()


@pytest.mark.parametrize(
    ("backend", "since", "is_elsewhere"),
    [(7, 1.0, False), (8, 1.0, True), (8, 2.0, False), (8, 3.0, False)],
    ids=["of this server", "of another", "connected just then", "connected while the server answered"],
)
def test_a_connection_is_of_another_server_if_this_one_lacked_it_when_asked(backend, since, is_elsewhere):
    assert Backends(all=frozenset({7}), asked_at=2.0).lack(backend, since) is is_elsewhere
    assert not Backends(asked_at=2.0).lack(backend, since)


async def test_a_server_is_asked_after_the_connections_that_it_tells(database: Database, database_url: str):
    before = steady()
    async with database.system() as connection:
        found = await Presence(database_url).backends()

        assert found is not None
        assert found.all is not None
        assert connection.get_server_pid() in found.all
    assert before < found.asked_at < steady()

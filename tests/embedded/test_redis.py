"""The local Redis: in memory, without the commands that run code or change the server."""

import os
import signal
import stat

import pytest
import redis.asyncio

from gateway.embedded import StartupError
from gateway.embedded.redis import EmbeddedRedis


@pytest.fixture
def server(place):
    server = EmbeddedRedis(place / "redis")
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def client(server):
    async with redis.asyncio.Redis.from_url(server.url) as client:
        yield client


async def test_it_stores_values_in_memory(client):
    await client.set("key", "value")

    assert await client.get("key") == b"value"


@pytest.mark.parametrize(
    "command",
    [
        ("EVAL", "return 1", 0),
        ("EVALSHA", "0" * 40, 0),
        ("SCRIPT", "FLUSH"),
        ("CONFIG", "GET", "dir"),
        ("DEBUG", "JMAP"),
        ("MODULE", "LIST"),
    ],
)
async def test_commands_that_run_code_or_change_the_server_do_not_exist(client, command):
    with pytest.raises(redis.ResponseError, match="unknown command"):
        await client.execute_command(*command)


async def test_its_data_can_be_deleted(client):
    await client.set("key", "value")

    await client.flushall()

    assert await client.dbsize() == 0


async def test_it_listens_on_a_private_unix_socket_only(server, client):
    assert (await client.info("server"))["tcp_port"] == 0
    assert stat.S_IMODE(server.socket_path.stat().st_mode) == 0o700


async def test_it_writes_nothing_to_disk(server, client):
    await client.set("key", "value")

    server.stop()

    assert list(server.sockets.iterdir()) == []


async def test_it_starts_again_after_a_hard_kill(server):
    os.kill(server.pid, signal.SIGKILL)
    server.stop()

    url = server.start()

    async with redis.asyncio.Redis.from_url(url) as client:
        assert await client.ping()


async def test_a_second_server_on_one_directory_is_refused(server, client):
    with pytest.raises(StartupError, match="in use by process"):
        EmbeddedRedis(server.directory).start()

    assert await client.ping()

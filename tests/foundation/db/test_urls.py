"""URLs of PostgreSQL and Redis: passwords with any character are accepted, or refused without a part of them."""

import asyncpg
import pytest
from redis.asyncio.connection import parse_url
from yarl import URL

from gateway.foundation.db.urls import normalized, postgres_url
from gateway.settings import SettingsError, settings_of
from tests.harness.command_line import invoked

REDIS = ("redis", "rediss", "unix")
PASSWORDS = ["plain", "a#b", "a?b", "a@b", "a@b:c", "50%", "%zz", "a%2Fb", "a#b?c=d@e%f", "p&q=r"]


@pytest.mark.parametrize("password", PASSWORDS)
async def test_postgres_accepts_the_password_as_it_is_written(postgres_url: str, password: str):
    server = URL(postgres_url)
    meant = password.replace("%2F", "/")
    owner = await asyncpg.connect(postgres_url)
    await owner.execute("DROP ROLE IF EXISTS writer")
    await owner.execute(f"CREATE ROLE writer LOGIN PASSWORD '{meant}'")
    rest = f"{server.path}?{server.query_string}"

    url = settings_of(database_url=f"postgresql://writer:{password}@{rest}").database_url

    assert URL(url).password == meant
    async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool:
        assert await pool.fetchval("SELECT current_user") == "writer"
    await owner.close()


@pytest.mark.parametrize("password", PASSWORDS)
def test_redis_accepts_the_password_as_it_is_written(password: str):
    url = settings_of(redis_url=f"redis://:{password}@host:6379/2").redis_url

    assert parse_url(url) == {"password": password.replace("%2F", "/"), "host": "host", "port": 6379, "db": 2}


@pytest.mark.parametrize(
    "url",
    [
        "postgresql:///gateway",
        "postgresql://host/db",
        "postgresql://u@/db?host=/run/postgresql&port=5433",
        "postgresql://u:p@a:1,b:2,[::1]:3/db?target_session_attrs=primary",
        "postgresql://host?application_name=x",
        "postgresql:///db?user=a@b",
        "redis://host:6379?db=1",
        "unix://:p@/run/redis.sock?db=1",
        "rediss://host",
    ],
)
def test_a_valid_url_stays_as_it_is(url: str):
    assert (postgres_url(url) if url.startswith("postgres") else normalized(url, REDIS, "")) == url


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://u:hunter2/x@host/db", "write %2F in its place"),
        ("postgresql://u:hunter2/x@y@host:5432/db?sslmode=require", "write %2F in its place"),
        ("postgresql://u:hun/ter2?x@host/db", "write %2F in its place"),
        ("postgresql://u:hun/ter2#x@host/db", "write %2F in its place"),
        ("postgresql://u:hunter2@host:54x2/db", "must be a URL such as postgresql://user:password"),
        ("mysql://u:hunter2@host/db", "must be a URL such as"),
        ("hunter2", "must be a URL such as"),
        ("postgresql://u:hunter2@host/db#x", "has a # after the host; write %23"),
        ("postgresql://u:hunter2@host/db?sslmode", "must be written as name=value"),
        ("postgresql://u:hunter2@host/db?sslmode=on", "sslmode must be one of disable, allow"),
    ],
)
def test_an_invalid_url_is_refused_without_a_part_of_its_password(url: str, message: str):
    with pytest.raises(SettingsError, match=message) as refused:
        settings_of(database_url=url)

    assert str(refused.value).startswith("GATEWAY_DATABASE_URL: ")
    assert not any(part in str(refused.value) for part in ("hunter2", "hun/", "ter2"))


async def test_a_parameter_that_postgres_does_not_know_is_named(database_url: str, tmp_path):
    url = f"{database_url}{'&' if '?' in database_url else '?'}pgbouncer=true"

    ended = await invoked("migrate", "--check", environment={"GATEWAY_DATABASE_URL": url}, directory=tmp_path)

    assert 'unrecognized configuration parameter "pgbouncer"; correct the parameters' in ended.err
    assert ended.code == 1

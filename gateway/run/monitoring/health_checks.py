"""Checks that find why a gateway does not work; each result says how to fix it."""

import os
import resource
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
from redis.asyncio import Redis
from redis.exceptions import NoPermissionError, RedisError

from gateway.connectors.imports.store import ImportedKindStore
from gateway.connectors.key_rotation.rotation import census
from gateway.connectors.reference_checks import checked_references
from gateway.connectors.secret_values import open_secret_values, require_one_vault
from gateway.context_store.sync.schedule import Intervals
from gateway.errors import GatewayError
from gateway.foundation.db.migrate import SchemaError, pending
from gateway.foundation.db.pool import Database
from gateway.foundation.db.replica import replica_lag
from gateway.foundation.db.servers import DatabaseServers
from gateway.foundation.vault.key_services.opening import require_known_services, unwrapped
from gateway.foundation.vault.key_services.service import KeyServiceAway, KeyServiceError, KeyServiceRefused
from gateway.foundation.vault.vault import KeyListError, Vault, WrappedKey, read_keys
from gateway.kinds.find.vectors import folder as vectors_folder
from gateway.kinds.loading import serving_catalog
from gateway.kinds.suggestions import did_you_mean
from gateway.kinds.sunsets import all_sunsets
from gateway.run.monitoring.statistics import read_statistics
from gateway.run.sealed_tables import SEALED_TABLES
from gateway.settings import Settings, SettingsError, ignored_variables

#: the oldest version that works; the context store needs the collations of 15 and later
OLDEST_POSTGRES = 150000
#: seconds; leases and tokens use the database's clock, logs the machine's
_CLOCK_SKEW = 5.0
#: file descriptors that a front end needs in addition to its connections
_OTHER_FILES = 100
#: free bytes in the data directory below which the check warns
_MIN_FREE_BYTES = 1 << 30
#: seconds that a queued job may wait before the check warns
_QUEUE_WAIT = 60.0
#: names, without `GATEWAY_`, of variables that the client, the command line and the tests read
OTHER_VARIABLES = frozenset(
    {
        *("URL", "CLIENT_ID", "CLIENT_SECRET", "WORKSPACE", "ORGANIZATION_ID", "PROFILE"),
        *("TEST_DATABASE_URL", "TEST_REDIS_URL"),
    }
)
#: variables with proxies, which other programs obey
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
#: variables with the file and the folder of trusted authorities, which OpenSSL reads
_AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


class CheckStatus(StrEnum):
    """The result of a check."""

    PASSED = "passed"
    #: the gateway works, but an operator should act
    WARNING = "warning"
    #: the gateway does not work
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check."""

    status: CheckStatus
    what: str
    message: str


def passed(what: str, message: str) -> CheckResult:
    return CheckResult(CheckStatus.PASSED, what, message)


def warning(what: str, message: str) -> CheckResult:
    return CheckResult(CheckStatus.WARNING, what, message)


def failed(what: str, message: str) -> CheckResult:
    return CheckResult(CheckStatus.FAILED, what, message)


async def check_results(settings: Settings, environ: Mapping[str, str] = os.environ) -> AsyncIterator[CheckResult]:
    """Run every check, the most important first."""
    yield passed("gateway", f"version {version('agent-connector-gateway')}, data in {settings.data_dir.absolute()}")
    for result in (
        *of_environment(environ),
        *of_settings(settings, environ),
        *of_machine(settings),
        of_search(vectors_folder()),
    ):
        yield result
    async for result in of_key_services(settings, environ):
        yield result
    async for result in of_postgres(settings, environ):
        yield result
    if settings.database_read_url is not None:
        yield await of_replica(settings)
    async for result in of_redis(settings.redis_url):
        yield result
    yield await of_front_end(settings)


def of_environment(environ: Mapping[str, str]) -> Iterator[CheckResult]:
    """Variables that are ignored: misspelt settings, proxies, and authorities for TLS that cannot be read."""
    known = {f"GATEWAY_{name.upper()}" for name in (*Settings.model_fields, *OTHER_VARIABLES)}
    for name in sorted(environ):
        if name.startswith("\ufeff"):
            yield warning("environment", f"{name[1:]} is ignored: save its file without a byte order mark")
        if name.upper() in _PROXIES and environ[name]:
            yield warning("environment", f"{name} is ignored: the gateway connects to applications directly")
        if name in _AUTHORITIES and not Path(environ[name]).exists():
            yield failed("environment", f"{name} is {environ[name]}, which does not exist: no certificate is trusted")
        if (
            name.startswith("GATEWAY_")
            and name not in known
            and not name.startswith(("GATEWAY_UPSTREAM_", "GATEWAY_OAUTH_"))
        ):
            yield warning("environment", f"{name} is not a setting; {did_you_mean(name, known)}")


def of_settings(settings: Settings, environ: Mapping[str, str]) -> Iterator[CheckResult]:
    """The encryption keys, the kinds, and the addresses, read as a process does when it starts."""
    try:
        keys = read_keys(settings.encryption_keys, settings.encryption_keys_file)
        require_known_services(keys)
        yield passed("encryption keys", f"the key {keys[0][0]} encrypts; keys that decrypt: {len(keys)}")
    except KeyListError as error:
        yield failed("encryption keys", str(error))
    else:
        try:
            require_one_vault(settings.secret_references, keys, environ)
        except SettingsError as error:
            yield failed("secret references", str(error))
    catalog = serving_catalog(settings.specs)
    yield passed("specs", f"{len(catalog.kinds)} kinds: {', '.join(catalog.kinds)}")
    for missing in catalog.missing:
        yield failed("specs", str(missing))
    for name, refused in catalog.refused.items():
        yield failed("specs", f"{name} is not served, its spec has {refused.summary}")
    try:
        Intervals(settings.sync_every).require_known(catalog)
    except SettingsError as error:
        yield failed("synchronization", str(error))
    try:
        for ignored in ignored_variables({*catalog.kinds, *catalog.refused}, environ):
            yield warning("environment", ignored)
    except SettingsError as error:
        yield failed("upstreams", str(error))
        return
    if settings.public_url is None and settings.address[0] not in ("127.0.0.1", "::1", "localhost"):
        yield warning("public URL", "GATEWAY_PUBLIC_URL is not set, so links and OAuth callbacks name the bind address")


async def of_key_services(settings: Settings, environ: Mapping[str, str]) -> AsyncIterator[CheckResult]:
    """Whether each key service unwraps its keys; nothing for keys that are in the settings, or cannot be read."""
    try:
        keys = read_keys(settings.encryption_keys, settings.encryption_keys_file)
        require_known_services(keys)
    except KeyListError:
        return
    for key_id, key in keys:
        if isinstance(key, WrappedKey):
            try:
                await unwrapped([(key_id, key)], environ)
            except KeyServiceError as error:
                held = f"running processes hold their keys for up to {settings.encryption_keys_seconds:,.0f} s after"
                yield failed("key service", f"{error}; {held} it last unwrapped them; no process can start")
            else:
                yield passed("key service", f"{key.url} unwraps the key {key_id}")


def of_machine(settings: Settings) -> Iterator[CheckResult]:
    """The data directory, the free disk space, and the limit of open files."""
    directory = settings.data_dir.absolute()
    existing = next(path for path in (directory, *directory.parents) if path.exists())
    if not os.access(existing, os.W_OK):
        yield failed("data directory", f"{existing} is not writable; set GATEWAY_DATA_DIR to another folder")
    elif (free := shutil.disk_usage(existing).free) < _MIN_FREE_BYTES:
        yield warning("data directory", f"only {free >> 20} MiB are free in {existing}; stored files may not fit")
    else:
        yield passed("data directory", f"{free >> 30} GiB free")
    allowed, needed = resource.getrlimit(resource.RLIMIT_NOFILE)[1], needed_files(settings)
    if allowed != resource.RLIM_INFINITY and allowed < needed:
        yield warning(
            "open files",
            f"the limit is {allowed:,}, but {needed:,} may be needed; raise the limit (ulimit -Hn, LimitNOFILE=), or "
            "lower GATEWAY_MAX_CONNECTIONS and GATEWAY_MAX_UPSTREAM_CONNECTIONS",
        )


def of_search(vectors: Path | None) -> CheckResult:
    """Whether operations are found by the meaning of words, too; `vectors` is the folder of the optional package."""
    if vectors is None:
        return warning(
            "operation search",
            "compares words, not their meanings: install the extra `semantic` (`agent-connector-gateway[semantic]`)",
        )
    return passed("operation search", "compares words and their meanings")


def needed_files(settings: Settings) -> int:
    """File descriptors of a front end whose limits are all reached."""
    return settings.max_connections + settings.max_upstream_connections + settings.database_pool + _OTHER_FILES


async def of_postgres(settings: Settings, environ: Mapping[str, str] = os.environ) -> AsyncIterator[CheckResult]:
    """Whether PostgreSQL answers, its version, clock and schema, and what `of_contents` checks."""
    try:
        connection = await DatabaseServers(settings.database_url).connect(timeout=5, statement_cache_size=0)
    except (OSError, TimeoutError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        yield failed(
            "PostgreSQL", f"does not answer: {_one_line(error)}. Check GATEWAY_DATABASE_URL, or run `gateway up`"
        )
        return
    try:
        number, moment, max_connections = await connection.fetchrow(_SERVER)
    finally:
        await connection.close()
    if number < OLDEST_POSTGRES:
        yield failed(
            "PostgreSQL", f"is version {number // 10000}; the gateway needs {OLDEST_POSTGRES // 10000} or later"
        )
    else:
        yield passed("PostgreSQL", f"version {number // 10000}, at most {max_connections} connections")
    if abs(time.time() - moment) > _CLOCK_SKEW:
        yield warning(
            "clock", f"differs from PostgreSQL's by {abs(time.time() - moment):.0f} s; synchronize both (NTP)"
        )
    try:
        missing = await pending(settings.session_url or settings.database_url)
    except asyncpg.InsufficientPrivilegeError:
        yield failed("schema", "the role of GATEWAY_DATABASE_URL cannot read its version; run `gateway migrate`")
        return
    except SchemaError as error:
        yield failed("schema", str(error))
        return
    if missing:
        yield failed("schema", f"{len(missing)} migrations are missing; run `gateway migrate`")
        return
    yield passed("schema", "is up to date")
    try:
        async with Database.open(
            settings.database_url, size=1, command_timeout=10, has_pooler=settings.has_pooler
        ) as database:
            async for result in of_contents(database, settings, environ):
                yield result
    except GatewayError as error:
        yield failed(
            "PostgreSQL", f"{error.detail}: the role of GATEWAY_DATABASE_URL must be able to SET ROLE gateway_app"
        )


async def of_replica(settings: Settings) -> CheckResult:
    """Whether the replica is one, and how far it is behind."""
    try:
        async with Database.open(
            settings.database_url, size=1, command_timeout=10, has_pooler=settings.has_pooler
        ) as database:
            return _of_lag(await replica_lag(database, settings.database_read_url or ""), settings.database_read_lag)
    except GatewayError as error:
        return warning("replica", f"is not read: {error.detail}. Check GATEWAY_DATABASE_READ_URL")


def _of_lag(seconds: float, most: float) -> CheckResult:
    if seconds > most:
        return warning("replica", f"is {seconds:.1f} s behind, so that the primary answers (GATEWAY_DATABASE_READ_LAG)")
    return passed("replica", f"answers searches and lists, {seconds:.1f} s behind")


_SERVER = """
    SELECT current_setting('server_version_num')::int, extract(epoch FROM clock_timestamp())::float8,
           current_setting('max_connections')::int
"""


async def of_contents(database: Database, settings: Settings, environ: Mapping[str, str]) -> AsyncIterator[CheckResult]:
    """Workers, the queue, failed synchronizations, unserved connectors, sunsets, the keys of stored credentials, and
    references.
    """
    statistics = await read_statistics(database)
    alive = [worker for worker in statistics.workers if worker.is_alive]
    if alive:
        yield passed("workers", f"{len(alive)} running")
    else:
        yield failed("workers", "none is running; start one: `gateway worker`")
    queued = statistics.jobs["queued"]
    if queued.oldest > _QUEUE_WAIT:
        yield warning("queue", f"{queued.jobs} jobs are queued, the oldest for {queued.oldest:.0f} s; add workers")
    for entity in statistics.synchronization:
        copies = f"of {entity.copies} copies of {entity.kind} {entity.entity}"
        if entity.failed:
            yield warning("context store", f"{entity.failed} {copies} failed")
        if entity.incomplete:
            yield warning("context store", f"{entity.incomplete} {copies} lack records")
        if entity.held_deletions:
            held = f"{entity.held_deletions} deletions wait until the next synchronization confirms them"
            yield warning("context store", f"{entity.kind} {entity.entity}: {held}")
    async for result in of_connectors(database, settings):
        yield result
    try:
        keys = dict(read_keys(settings.encryption_keys, settings.encryption_keys_file))
    except KeyListError:
        return
    rows = await census(database, SEALED_TABLES)
    for key_id, count in rows.items():
        if key_id not in keys:
            yield failed(
                "credentials", f"{count} are wrapped by the key {key_id}, which is not in the key list; add it again"
            )
    stale = rows.total() - rows[next(iter(keys))]
    if stale:
        yield warning("credentials", f"{stale} are wrapped by older keys; run `gateway keys rotate`")
    try:
        vault = Vault(await unwrapped([*keys.items()], environ))
    except KeyServiceError:
        return
    async for result in of_secret_references(database, settings, vault, environ):
        yield result


async def of_secret_references(
    database: Database, settings: Settings, vault: Vault, environ: Mapping[str, str]
) -> AsyncIterator[CheckResult]:
    """Whether Vault accepts the gateway's sign-in, and which references of connectors it cannot read."""
    what, read, refusal = "secret references", 0, None
    async with open_secret_values(settings.secret_references, environ) as values:
        try:
            try:
                await values.require_sign_in()
            except KeyServiceRefused as error:
                refusal = error
            async for each in checked_references(database, vault, values):
                if each.trouble is None:
                    read += 1
                else:
                    whose = f"of the organization {each.organization_id}"
                    yield failed(
                        what, f"{each.credential} of the connector {each.connector_id} {whose}: {each.trouble}"
                    )
        except KeyServiceAway as error:
            yield failed(what, f"{error}; calls with a reference get 503")
            return
    if refusal is not None and not read:
        yield failed(what, f"{refusal}: check the variables VAULT_…")
    elif read or settings.secret_references:
        yield passed(what, f"Vault accepts the sign-in; credentials that it gives: {read}")


_METHODS_IN_USE = """
    SELECT kind, auth_method, count(*) AS connectors FROM connectors WHERE deleted_at IS NULL
    GROUP BY kind, auth_method ORDER BY kind, auth_method
"""


async def of_connectors(database: Database, settings: Settings) -> AsyncIterator[CheckResult]:
    """Connectors whose kind is not served, or that rely on a part of their application that will be switched off."""
    catalog = serving_catalog(settings.specs)
    catalog.serve_imported([each.as_kind() for each in await ImportedKindStore(database).served()])
    async with database.system() as connection:
        rows = await connection.fetch(_METHODS_IN_USE)
    counts: Counter[str] = Counter()
    for row in rows:
        counts[row["kind"]] += row["connectors"]
    for kind, count in counts.items():
        if (reason := catalog.unserved_reason(kind)) is not None:
            yield failed("connectors", f"{count} cannot be used: {reason}")
    for row in rows:
        spec = catalog.kinds[row["kind"]].spec if row["kind"] in catalog.kinds else None
        for method, sunset in all_sunsets(spec) if spec else ():
            if method in (None, row["auth_method"]):
                yield warning("sunsets", f"connectors of {row['kind']} that rely on it: {row['connectors']}; {sunset}")


async def of_redis(url: str) -> AsyncIterator[CheckResult]:
    """Whether Redis answers and does not evict keys; without Redis the gateway works, but starts jobs later."""
    try:
        redis = Redis.from_url(url, socket_timeout=2, socket_connect_timeout=2)
    except ValueError as error:
        yield failed("Redis", f"GATEWAY_REDIS_URL cannot be read: {error}")
        return
    try:
        await redis.ping()
        facts = await _redis_facts(redis)
    except (RedisError, OSError, TimeoutError) as error:
        yield warning(
            "Redis", f"does not answer ({_one_line(error)}); jobs start up to 0.5 s later. Check GATEWAY_REDIS_URL"
        )
        return
    finally:
        await redis.aclose()
    if facts is None:
        yield passed("Redis", "answers; its user may not run INFO, so that the eviction policy is not checked")
        return
    yield passed("Redis", f"version {facts['redis_version']}")
    if str(facts.get("maxmemory_policy", "noeviction")).startswith("allkeys"):
        yield warning(
            "Redis", "evicts keys when it is full; set its maxmemory-policy to noeviction, or use another Redis"
        )


async def _redis_facts(redis: Redis) -> Mapping[str, Any] | None:
    """The server's version and memory policy; None for a user without the command INFO."""
    try:
        return {**await redis.info("server"), **await redis.info("memory")}
    except NoPermissionError:
        return None


async def of_front_end(settings: Settings) -> CheckResult:
    """Whether a front end is ready at the address of the settings."""
    host, port = settings.address
    url = f"http://{'127.0.0.1' if host in ('0.0.0.0', '::') else host}:{port}/readyz"  # noqa: S104  compared only
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session,
            session.get(url) as response,
        ):
            document = await response.json()
    except (TimeoutError, aiohttp.ClientError, ValueError) as error:
        return warning("front end", f"no response at {settings.bind} ({_one_line(error)}); start one: `gateway serve`")
    if response.status == 200:
        return passed("front end", f"ready at {settings.bind}")
    failing = [name for name, value in document.get("checks", {}).items() if value is (name == "draining")]
    return failed("front end", f"at {settings.bind} is not ready: {', '.join(failing)}")


def _one_line(error: BaseException) -> str:
    """The first line of a library's error; its type if the line has a URL, which may contain a password."""
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return text if "://" not in text else type(error).__name__

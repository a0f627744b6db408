"""`gateway up`: starts and stops stores, front ends and workers, applies migrations and creates the first client."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TypeVar

import aiohttp
import click

from gateway.embedded import StartupError, plan
from gateway.embedded.address import Address, free_address, parse_address
from gateway.embedded.banner import announce, environment, write_ready_file
from gateway.embedded.directory import DirectoryLock, private_directory, write_private
from gateway.embedded.first_run import (
    ADDRESS,
    ENVIRONMENT,
    Credentials,
    database_label,
    ensure_keys,
    store_client,
    stored_client,
)
from gateway.embedded.plan import UpOptions
from gateway.embedded.postgres import SERVICE_ROLE, EmbeddedPostgres
from gateway.embedded.redis import EmbeddedRedis
from gateway.embedded.server import LocalServer
from gateway.embedded.spec_watch import changes
from gateway.embedded.supervisor import Supervisor
from gateway.foundation.saving.special_files import is_special

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: seconds until the front ends must be ready
READY_WITHIN = 60.0


@dataclass(frozen=True, slots=True)
class FirstSteps:
    """The steps that prepare the database before front ends and workers use it."""

    #: applies migrations; called with the URL of the database's owner
    migrate: Callable[[str], Awaitable[None]]
    #: creates the role of front ends and workers; called with the URL of the superuser, and the role's name
    service_role: Callable[[str, str], Awaitable[None]]
    #: creates the first organization and client; None if the database has one already
    first_client: Callable[[str], Awaitable[Credentials | None]]


async def up(options: UpOptions, steps: FirstSteps) -> None:
    """Run the whole gateway until SIGINT, SIGTERM or SIGHUP; raises StartupError and SettingsError."""
    with ExitStack() as resources:
        await _Up(options, steps, resources).run()


class _Up:
    """One run of `gateway up`; `resources` releases its locks and removes its files."""

    def __init__(self, options: UpOptions, steps: FirstSteps, resources: ExitStack) -> None:
        self._options = options
        self._steps = steps
        self._resources = resources
        self._data_dir = options.data_dir.expanduser().absolute()
        self._supervisor = Supervisor(_forward, self._refresh_ready_file)
        self._client: Credentials | None = None
        self._is_ready = False
        self._sandbox_url: str | None = None

    async def run(self) -> None:
        """Lock the data directory, start all programs, and wait for a signal."""
        address = parse_address(self._options.bind)
        try:
            self._lock_directory()
            self._claim_ready_file()
        except OSError as error:
            raise StartupError(
                f"{error}. The gateway needs a data directory that it may write to; choose one with --data-dir."
            ) from error
        self._address = free_address(address, or_another=self._options.takes_another_port)
        await self._supervisor.run(self._start_all())

    def _lock_directory(self) -> None:
        private_directory(self._data_dir)
        lock = DirectoryLock(self._data_dir)
        lock.acquire()
        self._resources.callback(lock.release)
        has_data = self._options.database_url is None and (self._data_dir / "postgres").exists()
        self._keys = None if self._options.has_external_keys else ensure_keys(self._data_dir, data_exists=has_data)

    def _claim_ready_file(self) -> None:
        """Remove the ready file of an earlier run, and register the removal of this run's file."""
        if self._options.ready_file is None:
            return
        if not self._options.ready_file.parent.is_dir():
            raise StartupError(f"--ready-file {self._options.ready_file}: create its directory first.")
        if is_special(self._options.ready_file):
            raise StartupError(f"--ready-file {self._options.ready_file} is no regular file; choose another path.")
        self._options.ready_file.unlink(missing_ok=True)
        self._resources.callback(self._options.ready_file.unlink, missing_ok=True)

    async def _start_all(self) -> None:
        options = self._options
        database_url, is_first_run = await self._open_database()
        redis_url = options.redis_url or await self._serve(EmbeddedRedis(self._data_dir / "redis"))
        sandbox = await self._start_sandbox() if options.sandbox else None
        environment = plan.child_environment(
            options, self._address, database_url=database_url, redis_url=redis_url, keys=self._keys, sandbox=sandbox
        )
        await self._supervisor.start(*plan.front_ends(options, environment), *plan.workers(options, environment))
        await _answering(self._address.base_url, self._supervisor)
        self._is_ready = True
        self._sandbox_url = sandbox.base_url if sandbox else None
        self._write_address()
        announce(
            self._address.base_url,
            self._data_dir,
            self._client,
            first_run=is_first_run,
            sandbox_url=self._sandbox_url,
        )
        self._refresh_ready_file()
        if options.reload:
            await self._follow_specs(environment, sandbox)

    async def _follow_specs(self, environment: dict[str, str], sandbox: Address | None) -> None:
        """Restart front ends, workers and sandbox after each change of the operator's specs; runs until cancelled."""
        async for catalog in changes(self._options.specs):
            refused = catalog.refused.items()
            for name, error in refused:
                click.echo(f"{name} is not served, its spec has errors:\n{error}", err=True)
            click.echo(f"specs changed: {len(catalog.kinds)} kinds, {len(refused)} refused; restarting", err=True)
            if sandbox is not None:
                # The programs share this mapping, so that their next start sends requests of a new kind to the sandbox.
                environment |= plan.sandbox_settings(catalog.kinds, sandbox) | self._options.environment_of_upstreams
            self._supervisor.restart("sandbox", "gateway", "worker")

    def _write_address(self) -> None:
        """Write the files with the gateway's address; they are removed when it stops."""
        files = {ADDRESS: f"{self._address.base_url}\n"}
        if self._client is not None:
            files[ENVIRONMENT] = environment(self._address.base_url, self._client, self._sandbox_url)
        for name, text in files.items():
            write_private(self._data_dir / name, text)
            self._resources.callback((self._data_dir / name).unlink, missing_ok=True)

    async def _open_database(self) -> tuple[str, bool]:
        """The URL for front ends and workers, and whether this run created the first client."""
        if self._options.database_url is not None:
            await self._reach(self._steps.migrate(self._options.database_url))
            return self._options.database_url, await self._ensure_first_client(self._options.database_url)
        postgres = EmbeddedPostgres(self._data_dir / "postgres")
        owner_url = await self._serve(postgres)
        await self._reach(self._steps.migrate(owner_url))
        await self._reach(self._steps.service_role(owner_url, SERVICE_ROLE))
        return postgres.service_url, await self._ensure_first_client(postgres.service_url)

    async def _serve(self, server: LocalServer) -> str:
        self._resources.callback(server.close)
        await asyncio.to_thread(server.open)
        await self._supervisor.start(server.program())
        return server.url

    async def _start_sandbox(self) -> Address:
        sandbox = free_address(Address("127.0.0.1", 0))
        await self._supervisor.start(plan.sandbox_program(self._options, sandbox))
        return sandbox

    async def _reach(self, step: Awaitable[T]) -> T:
        """The result of a step on the database; raises StartupError if the database does not respond."""
        try:
            return await step
        except OSError as error:
            raise StartupError(f"The database does not answer: {error}. Check GATEWAY_DATABASE_URL.") from error

    async def _ensure_first_client(self, database_url: str) -> bool:
        """Create the first client if there is none; returns whether it was created."""
        created = await self._reach(self._steps.first_client(database_url))
        label = database_label(self._options.database_url)
        if created:
            store_client(self._data_dir, label, created)
        self._client = created or stored_client(self._data_dir, label)
        return created is not None

    def _refresh_ready_file(self) -> None:
        """Write the ready file with the current process ids, once the gateway is ready."""
        if not self._is_ready or self._options.ready_file is None:
            return
        try:
            write_ready_file(
                self._options.ready_file, self._address.base_url, self._client, self._pids(), self._sandbox_url
            )
        except OSError as error:
            logger.warning("the ready file could not be written: %s", error)

    def _pids(self) -> Mapping[str, Sequence[int] | int | None]:
        """The process ids in the ready file; None for a store that this gateway does not run."""
        pids = self._supervisor.pids
        return {
            "gateway": pids("gateway"),
            "workers": pids("worker"),
            "redis": next(iter(pids("redis")), None),
            "postgres": next(iter(pids("postgres")), None),
            **({"sandbox": pids("sandbox")} if self._options.sandbox else {}),
        }


async def _answering(base_url: str, supervisor: Supervisor) -> None:
    """Wait until `/readyz` answers with 200; raises StartupError and SettingsError."""
    deadline = time.monotonic() + READY_WITHIN
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5.0)) as session:
        while (answer := await _ask(session, f"{base_url}/readyz")) != "200":
            supervisor.ensure_no_crash_loop()
            if time.monotonic() > deadline:
                raise StartupError(f"{base_url}/readyz does not become 200; the last answer: {answer}.")
            await asyncio.sleep(0.05)


async def _ask(session: aiohttp.ClientSession, url: str) -> str:
    try:
        async with session.get(url) as response:
            return str(response.status)
    except (aiohttp.ClientError, TimeoutError) as error:
        return str(error) or type(error).__name__


def _forward(_name: str, line: str) -> None:
    """Print lines of front ends and workers unchanged: each is one event with its own fields."""
    click.echo(line, err=True)

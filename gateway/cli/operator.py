"""Commands for operators, which run the gateway or one of its processes."""

import asyncio
import contextlib
import logging
import os
import resource
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import click

from gateway.cli.local_settings import local_settings
from gateway.foundation.db.urls import ignored_parameters
from gateway.foundation.telemetry.logs import configure_logs, log_format_of
from gateway.kinds.catalog import Catalog
from gateway.kinds.loading import serving_catalog
from gateway.settings import Settings, settings_of, upstream_overrides

T = TypeVar("T")

log = logging.getLogger(__name__)

_BIND = click.option("--bind", metavar="HOST:PORT", help="Address to listen on.  [default: 127.0.0.1:8080]")


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine on uvloop if it is installed."""
    try:
        try:
            import uvloop
        except ImportError:
            return asyncio.run(main())
        return uvloop.run(main())
    except KeyboardInterrupt:
        sys.exit(130)


def _raise_file_limit() -> None:
    """Raise the limit of open files to the system's maximum: each connection takes one, and shells allow few."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # some systems refuse their own hard limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    log.debug("the limit of open files", extra={"was": soft, "is": resource.getrlimit(resource.RLIMIT_NOFILE)[0]})


def settings_for(**overrides: Any) -> Settings:
    """The settings, after logs are configured by them."""
    settings = settings_of(**overrides)
    configure_logs(settings.log_format, settings.log_level)
    return settings


@click.command()
@click.option("--data-dir", type=click.Path(path_type=Path), help="Data directory.  [default: .gateway]")
@_BIND
@click.option(
    "--ready-file", type=click.Path(path_type=Path), help="File to write, with mode 0600, when everything is ready."
)
@click.option(
    "--front-ends",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of front-end processes on the same port.",
)
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Number of worker processes.")
@click.option("--sandbox", is_flag=True, help="Also start a stand-in for all applications.")
@click.option("--reload", is_flag=True, help="Restart when a file below the folders of GATEWAY_SPECS changes.")
def up(
    data_dir: Path | None,
    bind: str | None,
    ready_file: Path | None,
    front_ends: int,
    workers: int,
    sandbox: bool,
    reload: bool,
) -> None:
    """Run the whole gateway, with its own PostgreSQL and Redis.

    The data directory contains all data; the next start uses it again. Set GATEWAY_DATABASE_URL and GATEWAY_REDIS_URL
    to use your own servers. Ctrl-C stops everything cleanly. With --sandbox and without --bind it takes a free port if
    8080 is in use.
    """
    from gateway.embedded import StartupError
    from gateway.embedded.plan import UpOptions, require_metrics_ports
    from gateway.embedded.up import FirstSteps
    from gateway.embedded.up import up as start
    from gateway.foundation.db.service_role import ensure_service_role

    settings = settings_for(bind=bind, data_dir=data_dir)
    catalog = serving_catalog(settings.specs)
    _raise_file_limit()
    given = settings.model_fields_set
    options = UpOptions(
        data_dir=settings.data_dir,
        bind=settings.bind,
        takes_another_port=sandbox and "bind" not in given,
        database_url=settings.database_url if "database_url" in given else None,
        redis_url=settings.redis_url if "redis_url" in given else None,
        public_url=settings.public_url,
        ready_file=ready_file,
        front_ends=front_ends,
        workers=workers,
        sandbox=sandbox,
        log_format=log_format_of(settings.log_format),
        specs=settings.specs,
        reload=reload and bool(settings.specs),
        kinds=_served_kinds(catalog),
    )
    _require_usable(settings, catalog, has_external_keys=options.has_external_keys)
    try:
        require_metrics_ports(settings.metrics_bind, front_ends + workers)
        run(lambda: start(options, FirstSteps(_migrate, ensure_service_role, _first_client)))
    except StartupError as error:
        raise click.ClickException(str(error)) from error


def _require_usable(settings: Settings, catalog: Catalog, *, has_external_keys: bool) -> None:
    """Check the settings that front ends and workers check, before any store is started; raises their errors."""
    from gateway.connectors.secret_values import require_one_vault
    from gateway.context_store.sync.schedule import Intervals
    from gateway.foundation.vault.key_services.opening import require_known_services
    from gateway.foundation.vault.vault import read_keys

    upstream_overrides()
    # Front ends and workers get the URL without these parameters.
    for ignored in ignored_parameters(os.environ.get("GATEWAY_DATABASE_URL", "")):
        log.warning("GATEWAY_DATABASE_URL: %s", ignored)
    Intervals(settings.sync_every).require_known(catalog)
    keys = read_keys(settings.encryption_keys, settings.encryption_keys_file) if has_external_keys else []
    require_known_services(keys)
    require_one_vault(settings.secret_references, keys)


def _served_kinds(catalog: Catalog) -> tuple[str, ...]:
    """The names of the kinds that are served; prints every spec error of the other kinds, and missing folders."""
    for missing in catalog.missing:
        click.echo(str(missing), err=True)
    for name, refused in catalog.refused.items():
        click.echo(f"{name} is not served, its spec has {refused.count}:\n{refused}", err=True)
    return tuple(catalog.kinds)


async def _migrate(database_url: str) -> None:
    from gateway.foundation.db.migrate import migrate

    await migrate(database_url)


async def _first_client(database_url: str) -> Any:
    """Create the first organization and client; None if there is an organization already."""
    from gateway.access.identity.store import IdentityStore
    from gateway.access.identity.tokens import hashed, new_secret
    from gateway.embedded.first_run import Credentials
    from gateway.foundation.db.pool import Database

    async with Database.open(database_url, size=1) as database:
        store = IdentityStore(database)
        if await store.organizations():
            return None
        organization = await store.create_organization("default")
        secret = new_secret()
        client_id = await store.create_client("default", [organization.id], hashed(secret), ["read", "write", "admin"])
        return Credentials(str(client_id), secret, str(organization.id))


@click.command()
@_BIND
@click.option("--reuse-port", is_flag=True, help="Share the port with other front ends.")
def serve(bind: str | None, reuse_port: bool) -> None:
    """Run one front end."""
    from gateway.web.app import create_app
    from gateway.web.server.serve import serve as start

    settings = settings_for(bind=bind)
    _raise_file_limit()
    run(lambda: start(settings, create_app, reuse_port=reuse_port))


@click.command()
def worker() -> None:
    """Run one worker."""
    from workers.main import work

    settings = settings_for()
    _raise_file_limit()
    run(lambda: work(settings))


async def stopped() -> None:
    """Wait for SIGTERM or SIGINT."""
    import signal

    stopping = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stopping.set)
    await stopping.wait()


@click.command()
@click.option("--check", is_flag=True, help="Change nothing. The exit code is 1 if migrations are missing.")
def migrate(check: bool) -> None:
    """Apply the database migrations of this version."""
    from gateway.foundation.db import migrate as migrations

    settings = local_settings()
    if check:
        missing = run(lambda: migrations.pending(settings.session_url or settings.database_url))
        for migration in missing:
            click.echo(f"missing: {migration.number:04d} {migration.name}")
        sys.exit(1 if missing else 0)
    url = settings.session_url
    if url is None:
        raise click.ClickException("migrations need a connection without a pooler: set GATEWAY_DATABASE_DIRECT_URL")
    for migration in run(lambda: migrations.migrate(url)):
        click.echo(f"applied {migration.number:04d} {migration.name}")

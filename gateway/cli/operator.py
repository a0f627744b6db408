"""Commands for operators: run the gateway or its parts, and administer it."""

import asyncio
import contextlib
import logging
import resource
import sys
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import click
import msgspec

from gateway.cli.local_settings import local_settings
from gateway.kinds.loading import load_catalog
from gateway.settings import Settings, require_port, settings_of
from gateway.telemetry.logs import configure_logs, log_format_of

T = TypeVar("T")

log = logging.getLogger(__name__)

_BIND = click.option("--bind", metavar="HOST:PORT", help="Address to listen on.  [default: 127.0.0.1:8080]")


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run to the end on the fastest loop there is; what goes wrong becomes one line in `failures.ending`."""
    try:
        try:
            import uvloop
        except ImportError:
            return asyncio.run(main())
        return uvloop.run(main())
    except KeyboardInterrupt:
        sys.exit(130)


def _raise_file_limit() -> None:
    """As many open files as the system allows: each connection takes one, and shells allow few unasked."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # some systems allow less than they say
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    log.debug("the limit of open files", extra={"was": soft, "is": resource.getrlimit(resource.RLIMIT_NOFILE)[0]})


def _settings(**overrides: Any) -> Settings:
    settings = settings_of(**overrides)
    configure_logs(settings.log_format, settings.log_level)
    return settings


@click.command()
@click.option("--data-dir", type=click.Path(path_type=Path), help="Data directory.  [default: .gateway]")
@_BIND
@click.option(
    "--ready-file", type=click.Path(path_type=Path), help="File to write, with mode 0600, when everything is ready."
)
@click.option("--front-ends", default=1, show_default=True, help="Number of front-end processes on the same port.")
@click.option("--workers", default=1, show_default=True, help="Number of worker processes.")
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

    Everything lives in the data directory; a second start goes on where the first one ended. Set
    GATEWAY_DATABASE_URL and GATEWAY_REDIS_URL to use servers of yours. Ctrl-C stops everything cleanly.
    """
    from gateway.db.service_role import ensure_service_role
    from gateway.embedded import StartupError
    from gateway.embedded.plan import UpOptions
    from gateway.embedded.up import FirstSteps
    from gateway.embedded.up import up as start

    settings = _settings(bind=bind, data_dir=data_dir)
    _raise_file_limit()
    given = settings.model_fields_set
    options = UpOptions(
        data_dir=settings.data_dir,
        bind=settings.bind,
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
        kinds=_served_kinds(settings),
    )
    try:
        run(lambda: start(options, FirstSteps(_migrated, ensure_service_role, _first_client)))
    except StartupError as error:
        raise click.ClickException(str(error)) from error


def _served_kinds(settings: Settings) -> tuple[str, ...]:
    """The kinds that are served; those that are not are named with every error of their specs."""
    catalog = load_catalog(settings.specs)
    for name, refused in catalog.refused.items():
        click.echo(f"{name} is not served, its spec has {len(refused.errors)} errors:\n{refused}", err=True)
    return tuple(catalog.kinds)


async def _migrated(database_url: str) -> None:
    from gateway.db.migrate import migrate

    await migrate(database_url)


async def _first_client(database_url: str) -> Any:
    """The first organization and client, or None when there is one already."""
    from gateway.db.pool import Database
    from gateway.embedded.first_run import Credentials
    from gateway.identity.store import IdentityStore
    from gateway.identity.tokens import hashed, new_secret

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
    from gateway.http.server.serve import serve as start

    settings = _settings(bind=bind)
    _raise_file_limit()
    run(lambda: start(settings, reuse_port=reuse_port))


@click.command()
def worker() -> None:
    """Run one worker."""
    from workers.main import work

    settings = _settings()
    _raise_file_limit()
    run(lambda: work(settings))


@click.command()
@click.option("--bind", metavar="HOST:PORT", default="127.0.0.1:9001", show_default=True)
def sandbox(bind: str) -> None:
    """Run a stand-in for all applications, so that no account is needed."""
    from gateway.sandbox.app import create_sandbox

    try:
        require_port(bind)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--bind") from error
    settings = _settings()
    run(lambda: _serve_sandbox(create_sandbox(load_catalog(settings.specs)), bind))


async def _serve_sandbox(app: Any, bind: str) -> None:
    from aiohttp import web

    host, _, port = bind.rpartition(":")
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, int(port)).start()
        await stopped()
    finally:
        await runner.cleanup()


async def stopped() -> None:
    """Returns on SIGTERM or SIGINT."""
    import signal

    stopping = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stopping.set)
    await stopping.wait()


@click.command()
@click.option("--check", is_flag=True, help="Change nothing; exit code 1 if migrations are missing.")
def migrate(check: bool) -> None:
    """Apply the database migrations of this version."""
    from gateway.db import migrate as migrations

    settings = local_settings()
    if check:
        missing = run(lambda: migrations.pending(settings.session_url or settings.database_url))
        for migration in missing:
            click.echo(f"missing: {migration.number:04d} {migration.name}")
        sys.exit(1 if missing else 0)
    url = settings.session_url
    if url is None:
        raise click.ClickException("migrations do not go through a pooler: set GATEWAY_DATABASE_DIRECT_URL")
    for migration in run(lambda: migrations.migrate(url)):
        click.echo(f"applied {migration.number:04d} {migration.name}")


@click.group()
def admin() -> None:
    """Manage organizations, clients and people.

    Works on the database of GATEWAY_DATABASE_URL, else of the `gateway up` in the folder. Prints JSON, one object a
    line.
    """


@admin.group()
def organization() -> None:
    """Organizations: the tenants of the gateway."""


@admin.group()
def client() -> None:
    """Clients: programs that may call the gateway."""


@admin.group()
def person() -> None:
    """People who may sign in through the provider of GATEWAY_OIDC_ISSUER."""


def _with_database(use: Callable[[Any], Awaitable[T]]) -> T:
    from gateway.db.pool import Database

    settings = local_settings()

    async def main() -> T:
        async with Database.open(settings.database_url, size=1, has_pooler=settings.has_pooler) as database:
            return await use(database)

    return run(main)


def _with_store(use: Callable[[Any], Awaitable[T]]) -> T:
    from gateway.identity.store import IdentityStore

    return _with_database(lambda database: use(IdentityStore(database)))


def _with_people(use: Callable[[Any], Awaitable[T]]) -> T:
    from gateway.identity.people import People
    from gateway.identity.store import IdentityStore

    return _with_database(lambda database: use(People(database, IdentityStore(database))))


def _print(*documents: dict[str, Any]) -> None:
    for document in documents:
        click.echo(msgspec.json.encode(document).decode())


@organization.command("create")
@click.argument("name")
def create_organization(name: str) -> None:
    """Create an organization."""
    created = _with_store(lambda store: store.create_organization(name))
    _print({"organization_id": str(created.id), "name": created.name})


@organization.command("list")
def list_organizations() -> None:
    """List all organizations."""
    listed = _with_store(lambda store: store.organizations())
    _print(
        *({"organization_id": str(each.id), "name": each.name, "disabled": bool(each.disabled_at)} for each in listed)
    )


@organization.command("disable")
@click.argument("organization_id", type=click.UUID)
def disable_organization(organization_id: UUID) -> None:
    """Disable an organization: all its clients are refused."""
    _with_store(lambda store: store.disable_organization(organization_id))
    _print({"organization_id": str(organization_id), "disabled": True})


@client.command("create")
@click.argument("name")
@click.option("--organization", "organization_ids", type=click.UUID, multiple=True, required=True)
@click.option(
    "--scope", "scopes", type=click.Choice(["read", "write", "admin"]), multiple=True, default=("read", "write")
)
@click.option(
    "--redirect-url", "redirect_urls", multiple=True, help="Allowed redirect URL after OAuth consent; repeatable."
)
@click.option(
    "--workspace", "workspaces", multiple=True, help="The only workspaces that the client may see; repeatable."
)
def create_client(
    name: str,
    organization_ids: tuple[UUID, ...],
    scopes: tuple[str, ...],
    redirect_urls: tuple[str, ...],
    workspaces: tuple[str, ...],
) -> None:
    """Create a client. Its secret is printed once."""
    from gateway.identity.tokens import hashed, new_secret

    secret = new_secret()
    client_id = _with_store(
        lambda store: store.create_client(
            name, organization_ids, hashed(secret), scopes, redirect_urls, list(workspaces) or None
        )
    )
    limits = {"workspaces": list(workspaces)} if workspaces else {}
    _print({"client_id": str(client_id), "client_secret": secret, "name": name, "scopes": list(scopes), **limits})


@client.command("update")
@click.argument("client_id", type=click.UUID)
@click.option(
    "--redirect-url",
    "redirect_urls",
    multiple=True,
    required=True,
    help="Allowed redirect URL; replaces the current ones; repeatable.",
)
def update_client(client_id: UUID, redirect_urls: tuple[str, ...]) -> None:
    """Replace the allowed redirect URLs of a client."""
    _with_store(lambda store: store.change_redirect_urls(client_id, redirect_urls))
    _print({"client_id": str(client_id), "redirect_urls": list(redirect_urls)})


@client.command("list")
def list_clients() -> None:
    """List all clients."""
    listed = _with_store(lambda store: store.all_clients())
    _print(
        *(
            {
                "client_id": str(each.id),
                "name": each.name,
                "organizations": sorted(str(organization_id) for organization_id in each.organization_ids),
                "scopes": sorted(each.scopes),
                "redirect_urls": list(each.redirect_urls),
                "disabled": bool(each.disabled_at),
            }
            for each in listed
        )
    )


@client.command("rotate")
@click.argument("client_id", type=click.UUID)
@click.option("--finish", is_flag=True, help="Create no new secret; revoke all but the newest.")
def rotate_secret(client_id: UUID, finish: bool) -> None:
    """Create a new secret for a client; the previous one works until --finish.

    Hand out the new secret, wait until every program uses it, then finish. Finishing ends the client's console
    sessions; tokens already given out stay valid.
    """
    from gateway.identity.tokens import hashed, new_secret

    secret = None if finish else new_secret()

    async def rotated(store: Any) -> int:
        return int(await store.rotate_secret(client_id, None if secret is None else hashed(secret)))

    live = _with_store(rotated)
    _print({"client_id": str(client_id), **({"client_secret": secret} if secret else {}), "live_secrets": live})


@client.command("disable")
@click.argument("client_id", type=click.UUID)
def disable_client(client_id: UUID) -> None:
    """Disable a client. Every process refuses its tokens within a second."""
    _with_store(lambda store: store.disable_client(client_id))
    _print({"client_id": str(client_id), "disabled": True})


@person.command("add")
@click.argument("login")
@click.option("--organization", "organization_ids", type=click.UUID, multiple=True, required=True)
@click.option(
    "--scope", "scopes", type=click.Choice(["read", "write", "admin"]), multiple=True, default=("read",),
    show_default=True,
)  # fmt: skip
def add_person(login: str, organization_ids: tuple[UUID, ...], scopes: tuple[str, ...]) -> None:
    """Let a person sign in. LOGIN is their value of GATEWAY_OIDC_CLAIM at the provider, by default the email address.

    The first who signs in with it has it from then on, whomever the provider gives it to later.
    """
    login = _login(login)
    added = _with_people(lambda people: people.add(login, organization_ids, scopes))
    _print({"client_id": str(added.client_id), "login": added.login, "scopes": list(scopes)})


@person.command("list")
def list_people() -> None:
    """List people; `subject` is the provider's identifier after the first sign-in."""
    listed = _with_people(lambda people: people.all())
    _print(
        *(
            {"client_id": str(each.client_id), "login": each.login, "issuer": each.issuer, "subject": each.subject}
            for each in listed
        )
    )


@person.command("remove")
@click.argument("login")
def remove_person(login: str) -> None:
    """Remove a person: end their sessions and the access of agents' hosts at once, and refuse further sign-ins."""
    login = _login(login)
    client_id = _with_people(lambda people: people.remove(login))
    _print({"client_id": str(client_id), "login": login, "removed": True})


def _login(text: str) -> str:
    from gateway.sign_in.model import login_of

    return login_of(local_settings().oidc_claim, text)

"""`gateway admin`: organizations, clients and people."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from uuid import UUID

import click
import msgspec

from gateway.cli.local_settings import local_settings
from gateway.cli.operator import run
from gateway.errors import InvalidParams

T = TypeVar("T")

_ORGANIZATION = click.option(
    "--organization",
    "organization_ids",
    type=click.UUID,
    multiple=True,
    required=True,
    help="Id of an organization to give access to; repeatable.",
)


def _checked_name(ctx: click.Context, param: click.Parameter, name: str) -> str:
    from gateway.access.identity.clients import require_name

    require_name(name)
    return name


def _checked_urls(ctx: click.Context, param: click.Parameter, urls: tuple[str, ...]) -> tuple[str, ...]:
    """The redirect URLs; raises InvalidParams. Loopback addresses are accepted: a `gateway up` allows them."""
    from gateway.access.identity.redirect_urls import redirect_errors

    if faults := redirect_errors(urls, is_embedded=True):
        raise InvalidParams(faults=faults)
    return urls


@click.group()
def admin() -> None:
    """Manage organizations, clients and people.

    The commands use the database of GATEWAY_DATABASE_URL, else that of the `gateway up` in the current folder. They
    print one JSON object per line.
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
    from gateway.foundation.db.pool import Database

    settings = local_settings()

    async def main() -> T:
        async with Database.open(settings.database_url, size=1, has_pooler=settings.has_pooler) as database:
            return await use(database)

    return run(main)


def _with_store(use: Callable[[Any], Awaitable[T]]) -> T:
    from gateway.access.identity.store import IdentityStore

    return _with_database(lambda database: use(IdentityStore(database)))


def _with_people(use: Callable[[Any], Awaitable[T]]) -> T:
    from gateway.access.identity.people import People
    from gateway.access.identity.store import IdentityStore

    return _with_database(lambda database: use(People(database, IdentityStore(database))))


def _print(*documents: dict[str, Any]) -> None:
    for document in documents:
        click.echo(msgspec.json.encode(document).decode())


@organization.command("create")
@click.argument("name", callback=_checked_name)
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


@organization.command("resume")
@click.argument("organization_id", type=click.UUID)
def resume_organization(organization_id: UUID) -> None:
    """Serve the writes of an exported organization again, because it is not moved after all."""
    from gateway.run.moving.freeze import Freeze

    _with_database(lambda database: Freeze(database, organization_id).end())
    _print({"organization_id": str(organization_id), "moving": False})


@client.command("create")
@click.argument("name", callback=_checked_name)
@_ORGANIZATION
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(["read", "write", "admin", "approve", "delegate"]),
    multiple=True,
    default=("read", "write"),
    show_default=True,
    help="Scope that the client may use; repeatable.",
)
@click.option(
    "--redirect-url",
    "redirect_urls",
    multiple=True,
    callback=_checked_urls,
    help="Allowed redirect URL after OAuth consent; repeatable.",
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
    from gateway.access.identity.tokens import hashed, new_secret

    secret = new_secret()
    client_id = _with_store(
        lambda store: store.create_client(
            name,
            organization_ids,
            secret_hash=hashed(secret),
            scopes=scopes,
            redirect_urls=redirect_urls,
            workspaces=list(workspaces) or None,
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
    callback=_checked_urls,
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
    """Create a new secret for a client. The previous one works until --finish.

    Give the new secret to every program, then run the command again with --finish. That ends the client's console
    sessions; tokens that were already issued stay valid until they expire.
    """
    from gateway.access.identity.tokens import hashed, new_secret

    secret = None if finish else new_secret()
    live = _with_store(lambda store: store.rotate_secret(client_id, None if secret is None else hashed(secret)))
    _print({"client_id": str(client_id), **({"client_secret": secret} if secret else {}), "live_secrets": live})


@client.command("disable")
@click.argument("client_id", type=click.UUID)
def disable_client(client_id: UUID) -> None:
    """Disable a client. Every process refuses its tokens within a second."""
    _with_store(lambda store: store.disable_client(client_id))
    _print({"client_id": str(client_id), "disabled": True})


@person.command("add")
@click.argument("login")
@_ORGANIZATION
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(["read", "write", "admin", "approve", "delegate"]),
    multiple=True,
    default=("read",),
    show_default=True,
    help="Scope that the person may use; repeatable.",
)
def add_person(login: str, organization_ids: tuple[UUID, ...], scopes: tuple[str, ...]) -> None:
    """Let a person sign in. LOGIN is their value of GATEWAY_OIDC_CLAIM at the provider, by default the email address.

    The first sign-in binds LOGIN to that account, even if the provider gives it to another person later.
    """
    login = _login(login)
    added = _with_people(lambda people: people.add(login, organization_ids, scopes))
    _print({"client_id": str(added.id), "login": added.login, "scopes": list(scopes)})


@person.command("list")
def list_people() -> None:
    """List people. `subject` is the provider's identifier after the first sign-in."""
    listed = _with_people(lambda people: people.all())
    _print(
        *(
            {"client_id": str(each.id), "login": each.login, "issuer": each.issuer, "subject": each.subject}
            for each in listed
        )
    )


@person.command("remove")
@click.argument("login")
def remove_person(login: str) -> None:
    """Remove a person. Their sessions and the access of their agents' hosts end at once."""
    login = _login(login)
    client_id = _with_people(lambda people: people.remove(login))
    _print({"client_id": str(client_id), "login": login, "removed": True})


def _login(text: str) -> str:
    from gateway.access.identity.people import login_of

    return login_of(local_settings().oidc_claim, text)

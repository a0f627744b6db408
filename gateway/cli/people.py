"""`gateway people`: the people and groups of the organization, and the tokens of identity providers."""

from typing import Any

import click
import msgspec

from gateway.cli.client_session import calls_gateway, interruptible, shows
from gateway.cli.failures import EXIT_CODES, note
from gateway.cli.output import output_option, write
from gateway.cli.progress import follow
from gateway.cli.words import printable
from gateway.client import Gateway
from gateway.contract.people import PersonStatus
from gateway.contract.scim import SubjectAttribute

_PERSON = ("id", "name", "email", "status", "groups", "scopes", "last_seen_at")
_GROUP = ("name", "scopes", "workspaces")
_TOKEN = ("id", "name", "issuer", "subject", "created_at")
_scopes = click.option("--scope", "scopes", multiple=True, metavar="NAME", help="A scope; repeatable.")
_workspaces = click.option(
    "--in-workspace", "workspaces", multiple=True, metavar="NAME", help="A workspace; repeatable."
)
_everywhere = click.option("--everywhere", is_flag=True, help="All workspaces.")


@click.group(epilog=EXIT_CODES)
def people() -> None:
    """People and groups of the organization; needs the scope `admin`."""


@people.command("list")
@click.option("--status", type=click.Choice([each.value for each in PersonStatus]), help="Only this status.")
@click.option("--group", metavar="NAME", help="Only members of this group.")
@shows(*_PERSON)
async def list_people(gateway: Gateway, status: str | None, group: str | None) -> Any:
    """List the people, the oldest first."""
    return await gateway.people.list(status=status, group=group)


@people.command()
@click.argument("person_id")
@output_option
@calls_gateway
async def show(gateway: Gateway, person_id: str) -> None:
    """Show a person."""
    write(msgspec.to_builtins(await gateway.people.get(person_id)))


@people.command()
@click.option("--name", metavar="TEXT", help="The name.")
@click.option("--email", metavar="ADDRESS", help="The email address; it never identifies the person.")
@click.option("--issuer", metavar="URL", help="The OpenID provider that signs the person in.")
@click.option("--subject", metavar="TEXT", help="The person's id at the provider, or in the client's namespace.")
@click.option("--client", "client_id", metavar="ID", help="The client in whose namespace the subject is.")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="A group; repeatable.")
@_scopes
@_workspaces
@_everywhere
@shows(*_PERSON)
async def add(
    gateway: Gateway, /, groups: tuple[str, ...], workspaces: tuple[str, ...], everywhere: bool, **members: Any
) -> Any:
    """Add a person, who may do what the groups and the options allow."""
    return await gateway.people.add(groups=groups, workspaces=None if everywhere else workspaces, **members)


@people.command()
@click.argument("person_id")
@shows(*_PERSON)
async def suspend(gateway: Gateway, person_id: str) -> Any:
    """End everything that acts for a person, within a second."""
    return await gateway.people.suspend(person_id)


@people.command()
@click.argument("person_id")
@shows(*_PERSON)
async def activate(gateway: Gateway, person_id: str) -> Any:
    """Let a suspended person sign in again."""
    return await gateway.people.activate(person_id)


@people.command()
@click.argument("person_id")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@calls_gateway
async def remove(gateway: Gateway, person_id: str, yes: bool) -> None:
    """Delete a person and the person's own connectors."""
    found = await gateway.people.get(person_id)
    if not yes:
        with interruptible():
            shown = printable(found.name or found.email or found.subject or found.id)
            click.confirm(f"Delete {shown} ({found.id}) and their own connectors?", abort=True, err=True)
    await follow(await gateway.people.remove(found.id))
    note(f"{found.id} is deleted")


@people.command()
@shows(*_GROUP, "members")
async def groups(gateway: Gateway) -> Any:
    """List the groups with the rights of their members."""
    return await gateway.people.groups()


@people.command()
@click.argument("name")
@_scopes
@_workspaces
@_everywhere
@shows(*_GROUP)
async def group(
    gateway: Gateway, name: str, scopes: tuple[str, ...], workspaces: tuple[str, ...], everywhere: bool
) -> Any:
    """Create the group NAME, or replace the rights of its members."""
    return await gateway.people.put_group(name, scopes=scopes, workspaces=None if everywhere else workspaces)


@people.command()
@shows(*_TOKEN)
async def tokens(gateway: Gateway) -> Any:
    """List the tokens of identity providers (SCIM)."""
    return await gateway.people.scim_tokens()


@people.command()
@click.argument("name")
@click.option(
    "--issuer", metavar="URL", help="The OpenID provider that signs its people in; the operator's by default."
)
@click.option(
    "--subject",
    type=click.Choice([each.value for each in SubjectAttribute]),
    help="The attribute that is `sub` there; externalId by default.",
)
@shows("id", "name", "issuer", "token", "url")
async def create_token(gateway: Gateway, name: str, issuer: str | None, subject: str | None) -> Any:
    """Create a token for an identity provider (SCIM); it is shown once."""
    return await gateway.people.create_scim_token(name, issuer=issuer, subject=subject)


@people.command()
@click.argument("token_id")
@calls_gateway
async def revoke_token(gateway: Gateway, token_id: str) -> None:
    """Revoke a token of an identity provider; the people and groups stay."""
    await gateway.people.revoke_scim_token(token_id)
    note(f"{token_id} is revoked")

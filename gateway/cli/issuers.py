"""`gateway issuers`: trust providers whose tokens clients exchange for tokens of people."""

from typing import Any

import click

from gateway.cli.client_session import calls_gateway, shows
from gateway.cli.failures import EXIT_CODES, note
from gateway.client import Gateway
from gateway.contract.issuers import SUBJECT_CLAIM

_COLUMNS = ("id", "issuer", "audience", "groups_claim", "create_people")


@click.group(epilog=EXIT_CODES)
def issuers() -> None:
    """Issuers: providers whose tokens clients exchange for tokens of people."""


@issuers.command()
@click.argument("issuer")
@click.option("--audience", required=True, metavar="TEXT", help="`aud` of its ID tokens.")
@click.option("--client", "clients", multiple=True, metavar="ID", help="The only clients; repeatable.")
@click.option("--groups-claim", metavar="NAME", help="The claim with the names of the person's groups.")
@click.option("--subject-claim", metavar="NAME", help="The claim that identifies the person; oid for Microsoft Entra.")
@click.option("--create-people", is_flag=True, help="Add people who are not known, with their groups alone.")
@shows(*_COLUMNS)
async def add(
    gateway: Gateway,
    issuer: str,
    audience: str,
    clients: tuple[str, ...],
    groups_claim: str | None,
    subject_claim: str | None,
    create_people: bool,
) -> Any:
    """Trust an issuer."""
    return await gateway.issuers.add(
        issuer,
        audience=audience,
        client_ids=clients or None,
        groups_claim=groups_claim,
        subject_claim=subject_claim or SUBJECT_CLAIM,
        create_people=create_people,
    )


@issuers.command("list")
@shows(*_COLUMNS)
async def list_issuers(gateway: Gateway) -> Any:
    """List the issuers."""
    return await gateway.issuers.list()


@issuers.command()
@click.argument("issuer_id")
@calls_gateway
async def delete(gateway: Gateway, issuer_id: str) -> None:
    """End the trust in an issuer, and the sessions that came from it."""
    await gateway.issuers.delete(issuer_id)
    note(f"{issuer_id} is no longer trusted")

"""`gateway organization`: delete the organization."""

import click

from gateway.cli.client_session import calls_gateway, interruptible
from gateway.cli.failures import EXIT_CODES
from gateway.cli.output import write
from gateway.cli.progress import follow
from gateway.client import Gateway


@click.group(epilog=EXIT_CODES)
def organization() -> None:
    """The organization of your client."""


@organization.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@calls_gateway
async def delete(gateway: Gateway, name: str, yes: bool) -> None:
    """Delete the organization NAME with all its data, and print a signed certificate.

    All its clients are refused at once. Yours keeps the scope `read` until the job's result expires.
    """
    if not yes:
        with interruptible():
            click.confirm(f"Delete the organization {name} and everything in it?", abort=True, err=True)
    job = await gateway.delete_organization(name)
    write((await (await follow(job)).result()).result)

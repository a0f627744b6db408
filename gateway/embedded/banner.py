"""What people and programs are told once everything answers: the screen and the ready file."""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from gateway.embedded.directory import write_private
from gateway.embedded.first_run import FIRST_CLIENT, Credentials

TOKEN_PATH = "/api/v1/account/applications/token"


def write_ready_file(
    path: Path, base_url: str, client: Credentials | None, pids: Mapping[str, Sequence[int] | int | None]
) -> None:
    """Replace the ready file as a whole, mode 0600."""
    known = {
        "client_id": client and client.client_id,
        "client_secret": client and client.client_secret,
        "organization_id": client and client.organization_id,
    }
    write_private(path, json.dumps({"base_url": base_url, **known, "pids": pids}) + "\n")


def token_request(base_url: str, client: Credentials) -> str:
    """A curl line that gets a token, ready to paste into a shell."""
    body = json.dumps({"client_id": client.client_id, "client_secret": client.client_secret})
    return shlex.join(("curl", "-sS", f"{base_url}{TOKEN_PATH}", "-H", "Content-Type: application/json", "-d", body))


def announce(base_url: str, data_dir: Path, client: Credentials | None, *, first_run: bool) -> None:
    """Say where the gateway answers; the client's secret is shown on the first run only, and on a terminal only.

    What is no terminal is often a log, where secrets have no place.
    """
    click.secho("The gateway is ready.", fg="green", bold=True)
    _fact("base URL", base_url)
    _fact("data", str(data_dir))
    if client is None:
        click.echo("  Make a client with: gateway admin client create")
    elif not (first_run and sys.stdout.isatty()):
        _fact("client", f"{client.client_id} (its secret is in {data_dir / FIRST_CLIENT})")
    else:
        _fact("organization", client.organization_id)
        _fact("client id", client.client_id)
        _fact("client secret", f"{client.client_secret}  (shown this once; kept in {data_dir / FIRST_CLIENT})")
        click.echo(f"\nGet a token:\n  {token_request(base_url, client)}\n")
    click.echo("Stop it with Ctrl-C.")


def _fact(name: str, value: str) -> None:
    click.echo(f"  {click.style(f'{name:14}', bold=True)} {value}")

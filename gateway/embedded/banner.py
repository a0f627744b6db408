"""The output of a `gateway up` that is ready: text on stdout, the ready file, the environment for a shell."""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from gateway.embedded.directory import write_private
from gateway.embedded.first_run import ENVIRONMENT, FIRST_CLIENT, Credentials


def write_ready_file(
    path: Path,
    base_url: str,
    client: Credentials | None,
    pids: Mapping[str, Sequence[int] | int | None],
    sandbox_url: str | None = None,
) -> None:
    """Replace the ready file atomically, mode 0600."""
    first_client = {
        "client_id": client and client.client_id,
        "client_secret": client and client.client_secret,
        "organization_id": client and client.organization_id,
    }
    sandbox = {"sandbox_url": sandbox_url} if sandbox_url else {}
    write_private(path, json.dumps({"base_url": base_url, **first_client, **sandbox, "pids": pids}) + "\n")


def environment(base_url: str, client: Credentials, sandbox_url: str | None = None) -> str:
    """A script for `source` in a shell: exports the settings of callers, and adds this installation to the PATH."""
    variables = {
        "GATEWAY_URL": base_url,
        "GATEWAY_CLIENT_ID": client.client_id,
        "GATEWAY_CLIENT_SECRET": client.client_secret,
        **({"SANDBOX_URL": sandbox_url} if sandbox_url else {}),
    }
    path = f'export PATH={shlex.quote(str(Path(sys.executable).parent))}:"$PATH"\n'
    return path + "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())


def announce(
    base_url: str, data_dir: Path, client: Credentials | None, *, first_run: bool, sandbox_url: str | None = None
) -> None:
    """Print the gateway's URL and its first client, and on the first run, if stdout is a terminal, the client's secret.

    Other output is often a log, which must not contain secrets.
    """
    click.secho("The gateway is ready.", fg="green", bold=True)
    _fact("base URL", base_url)
    _fact("console", f"{base_url}/console  (sign in with the client's id and secret)")
    _fact("documents", f"{base_url}/docs")
    _fact("data", str(data_dir))
    if sandbox_url is not None:
        _fact("sandbox", f"{sandbox_url}  (simulates every application)")
    if client is None:
        click.echo("  Create a client with: gateway admin client create NAME --organization ID")
    else:
        _print_client(client, data_dir, show_secret=first_run and sys.stdout.isatty())
        click.echo(f"\nTo call it from another shell:\n\n  source {shlex.quote(_short(data_dir / ENVIRONMENT))}\n")
    click.echo("Stop it with Ctrl-C.")


def _short(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _print_client(client: Credentials, data_dir: Path, *, show_secret: bool) -> None:
    if not show_secret:
        _fact("client", f"{client.client_id} (its secret is in {data_dir / FIRST_CLIENT})")
        return
    _fact("organization", client.organization_id)
    _fact("client id", client.client_id)
    _fact("client secret", f"{client.client_secret}  (shown only now; stored in {data_dir / FIRST_CLIENT})")


def _fact(name: str, value: str) -> None:
    click.echo(f"  {click.style(f'{name:14}', bold=True)} {value}")

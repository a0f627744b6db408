"""`gateway api`, `token`, `workspaces` and `grants`: requests to the gateway's own API."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click
import msgspec

from gateway.cli.arguments import read_pairs
from gateway.cli.client_session import chosen_gateway, gateway_options, run
from gateway.cli.failures import EXIT_CODES, note
from gateway.cli.output import Format, output_option, write
from gateway.client.paths import segment
from gateway.client.retries import RetryPolicy
from gateway.client.session import ApiRequest, Session
from gateway.client.settings import client_settings
from gateway.foundation import payloads

_PREFIX = "/api/v1/"
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


def _session() -> Session:
    return Session(client_settings(**chosen_gateway()), RetryPolicy())


@click.command(epilog=EXIT_CODES)
@click.argument("method", type=click.Choice(_METHODS, case_sensitive=False))
@click.argument("path")
@click.option("-q", "--query", "query", multiple=True, metavar="NAME=VALUE", help="Query parameter; repeatable.")
@click.option("-H", "--header", "headers", multiple=True, metavar="NAME=VALUE", help="Request header; repeatable.")
@click.option("-d", "--data", metavar="JSON", help="JSON body of the request.")
@output_option
@gateway_options
def api(
    method: str,
    path: str,
    query: tuple[str, ...],
    headers: tuple[str, ...],
    data: str | None,
) -> None:
    """Send one authenticated request to the gateway and print the response.

    \b
    gateway api GET jobs -q status=failed
    gateway api POST /api/v1/connect/sessions -d '{"workspace_name": "acme"}'
    """
    call = ApiRequest(
        method=method.upper(),
        path=path if path.startswith("/") else f"{_PREFIX}{path}",
        query=read_pairs(query, "--query"),
        body=None if data is None else _object(data),
        headers=read_pairs(headers, "--header"),
    )

    async def work() -> None:
        async with _session() as session:
            answer = await session.fetch(call)
        if not answer.body:
            return
        if "json" in answer.headers.get("Content-Type", ""):
            write(payloads.typed(answer.body, Any), default=Format.JSON)
        else:
            sys.stdout.buffer.write(answer.body)

    run(work())


def _object(text: str) -> Mapping[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise click.BadParameter(f"{text[:60]!r} is not a JSON object ({error})", param_hint="--data") from error


@click.command(epilog=EXIT_CODES)
@gateway_options
def token() -> None:
    """Print a fresh bearer token, for curl: -H "Authorization: Bearer $(gateway token)"."""

    async def work() -> None:
        async with _session() as session:
            click.echo(await session.token())

    run(work())


@click.command(epilog=EXIT_CODES)
@output_option
@gateway_options
def workspaces() -> None:
    """List the workspaces of the organization."""
    _print_data("/api/v1/workspaces", ("name", "connectors", "created_at", "id"))


@click.group(epilog=EXIT_CODES)
def grants() -> None:
    """Grants: the scopes and workspaces that people gave to agents' hosts. Needs the scope admin."""


@grants.command("list")
@output_option
@gateway_options
def list_grants() -> None:
    """List grants, newest first."""
    _print_data("/api/v1/grants")


@grants.command("revoke")
@click.argument("grant_id", metavar="ID")
@gateway_options
def revoke_grant(grant_id: str) -> None:
    """Revoke a grant and all its tokens."""

    async def work() -> None:
        async with _session() as session:
            await session.fetch(ApiRequest(method="DELETE", path=f"/api/v1/grants/{segment(grant_id)}"))
        note(f"{grant_id} is revoked")

    run(work())


def _print_data(path: str, columns: Sequence[str] = ()) -> None:
    async def work() -> None:
        async with _session() as session:
            found = (await session.fetch(ApiRequest(method="GET", path=path))).into(dict[str, Any])
        write(found["data"], columns)

    run(work())

"""`gateway mcp`: the tools for an MCP host that starts its servers and uses their stdin and stdout."""

import os
from contextlib import AsyncExitStack
from typing import Any

import click

from gateway.cli.client_session import chosen_gateway, gateway_options, run
from gateway.cli.failures import EXIT_CODES
from gateway.cli.shell_completion import complete_kind


@click.command(epilog=EXIT_CODES)
@click.option("--kind", metavar="KIND", shell_complete=complete_kind, help="One tool for each operation of this kind.")
@click.option("--tools", metavar="PATTERNS", help="One tool for each matching operation, such as team-chat.messages.*")
@click.option(
    "--in-process",
    metavar="KIND",
    shell_complete=complete_kind,
    help="Call one application directly, without a gateway.",
)
@click.option("--upstream", metavar="URL", help="With --in-process: URL in place of the application's, for tests.")
@gateway_options
def mcp(**options: Any) -> None:
    """Serve the Model Context Protocol over stdio, for hosts such as editors and assistants.

    The command forwards messages to a gateway. With --in-process it calls the application itself, with credentials
    from the environment: SUPPORT_DESK_SUBDOMAIN, SUPPORT_DESK_EMAIL and SUPPORT_DESK_API_TOKEN for support-desk.
    """
    run(_serve(**options))


async def _serve(
    kind: str | None,
    tools: str | None,
    in_process: str | None,
    upstream: str | None,
) -> None:
    from gateway.agents.mcp import stdio  # loaded when the command runs, as its other imports

    async with AsyncExitStack() as stack:
        if in_process is None:
            answer = await _bridge(stack, kind, tools)
        else:
            answer = await _local(stack, in_process, upstream)
        try:
            reader, writer = await stack.enter_async_context(stdio.standard_streams())
        except stdio.NoPipes as error:
            raise click.UsageError(str(error)) from error
        await stdio.serve(reader, writer, answer)


async def _bridge(stack: AsyncExitStack, kind: str | None, tools: str | None) -> Any:
    """A function that forwards messages to the gateway; with a workspace, only its connectors can be used."""
    from gateway.client.mcp import StdioBridge
    from gateway.client.paths import segment
    from gateway.client.retries import RetryPolicy
    from gateway.client.session import ApiRequest, Session
    from gateway.client.settings import client_settings

    chosen = chosen_gateway()
    workspace = chosen.pop("workspace_name", None) or os.environ.get("GATEWAY_WORKSPACE")
    settings = client_settings(**chosen)
    session = await stack.enter_async_context(Session(settings, RetryPolicy()))
    if kind is not None:  # a wrong name fails here, where the user sees the error
        await session.fetch(ApiRequest(method="GET", path=f"/api/v1/integrations/connector-types/{segment(kind)}"))
    query = {"tools": tools, "workspace": workspace}
    return StdioBridge(
        session,
        "/mcp" if kind is None else f"/mcp/{kind}",
        {name: value for name, value in query.items() if value},
    ).answer


async def _local(stack: AsyncExitStack, kind: str, upstream: str | None) -> Any:
    from gateway import connect
    from gateway.agents.mcp.stdio import StdioServer
    from gateway.agents.tools.local import LocalBackend, environment_credentials, variables_of
    from gateway.agents.tools.server import Servers
    from gateway.errors import InvalidCredentials
    from gateway.kinds.loading import load_catalog, own_folders

    catalog = load_catalog(own_folders())
    try:
        connector = await stack.enter_async_context(
            connect(kind, environment_credentials(kind, catalog, os.environ), upstream=upstream)
        )
    except InvalidCredentials as error:
        names = ", ".join(variables_of(kind, catalog).values())
        raise click.UsageError(f"{error.detail}; credentials are read from {names}") from error
    return StdioServer(Servers(LocalBackend(connector)).general).answer

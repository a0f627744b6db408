"""Shared by commands that call the gateway: the options that select it, and the client."""

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import click

from gateway.cli.shell_completion import complete_connector
from gateway.client import Connector, Gateway, RetryPolicy

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])

_PROFILE = "gateway.profile"
#: few retries with short pauses: if the gateway does not answer, the user soon gets an error
_RETRIES = RetryPolicy(retries=3, first_pause=0.1)


def gateway_options(command: Command) -> Command:
    """`--url`, `--workspace`, `--organization` and `--profile`; they override the environment."""
    for option in (
        click.option(
            "--profile",
            metavar="NAME",
            expose_value=False,
            callback=_store_profile,
            help="Profile, created by `gateway login`.  [env: GATEWAY_PROFILE]",
        ),
        click.option("--organization", metavar="ID", help="Organization id.  [env: GATEWAY_ORGANIZATION_ID]"),
        click.option(
            "-w", "--workspace", metavar="NAME", help="Workspace.  [env: GATEWAY_WORKSPACE; default: default]"
        ),
        click.option(
            "--url", metavar="URL", help="URL of the gateway.  [env: GATEWAY_URL; default: http://127.0.0.1:8080]"
        ),
    ):
        command = option(command)
    return command


def _store_profile(ctx: click.Context, param: click.Parameter, name: str | None) -> None:
    ctx.meta[_PROFILE] = name


def chosen_profile() -> str | None:
    """The value of `--profile` of the running command."""
    ctx = click.get_current_context(silent=True)
    return None if ctx is None else ctx.meta.get(_PROFILE)


def connector_option(help_text: str = "Connector to use, if the kind has several.") -> Callable[[Command], Command]:
    """`-c`, `--connector`: a name or an id, with shell completion."""
    return click.option("-c", "--connector", metavar="NAME|ID", shell_complete=complete_connector, help=help_text)


@asynccontextmanager
async def open_gateway(url: str | None, workspace: str | None, organization: str | None) -> AsyncIterator[Gateway]:
    """A client of the gateway that the options select."""
    async with Gateway(
        url,
        workspace_name=workspace,
        organization_id=organization,
        profile=chosen_profile(),
        retry_policy=_RETRIES,
    ) as gateway:
        yield gateway


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine; Ctrl-C cancels it."""
    return asyncio.run(work)


async def find(gateway: Gateway, kind: str, connector: str | None) -> Connector:
    """The connector that KIND and --connector select; raises NotFound and UsageError."""
    found = await gateway.connectors.resolve(connector or kind)
    if connector is not None and found.kind != kind and found.kind != (await gateway.type(kind))["kind"]:
        raise click.UsageError(f"the connector {connector!r} is of the kind {found.kind}, not {kind}")
    return found


async def facts_of(gateway: Gateway, kind: str, entity: str, action: str) -> dict[str, Any]:
    """The description of an operation, as in `gateway types`; {} if it is unknown: the call itself then fails."""
    facts: dict[str, Any] = (await gateway.type(kind))["entities"].get(entity, {}).get("actions", {}).get(action, {})
    return facts


async def schema_of(gateway: Gateway, kind: str, entity: str, action: str) -> dict[str, Any]:
    """JSON Schema of an operation's params; {} for an operation that is unknown."""
    schema: dict[str, Any] = (await facts_of(gateway, kind, entity, action)).get("params") or {}
    return schema


def names(words: tuple[str, ...]) -> list[str] | None:
    """The names in a repeatable option with comma-separated values: `--select id,subject --select status`."""
    return [name for word in words for name in word.split(",") if name] or None


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C interrupts the block at once; asyncio's own handler would wait for the event loop."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals reach the main thread only
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

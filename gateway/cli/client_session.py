"""Shared by commands that call the gateway: the options that select it, and the client."""

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import click
import msgspec

from gateway.cli.failures import note
from gateway.cli.output import output_option, show
from gateway.cli.shell_completion import GATEWAY, complete_connector
from gateway.client import Connector, Gateway, RetryPolicy
from gateway.errors import Unauthorized, Unavailable

P = ParamSpec("P")
T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])
#: the coroutine of a command that calls the gateway
Work = Callable[Concatenate[Gateway, P], Coroutine[Any, Any, T]]

#: few retries with short pauses: if the gateway does not answer, the user soon gets an error
_RETRIES = RetryPolicy(retries=3, first_pause=0.1)


def gateway_options(command: Command) -> Command:
    """`--url`, `--workspace`, `--organization` and `--profile`, for `chosen_gateway`."""
    for declarations, name, metavar, help_text in (
        (("--profile",), "profile", "NAME", "Profile, created by `gateway login`.  [env: GATEWAY_PROFILE]"),
        (("--organization",), "organization_id", "ID", "Organization id.  [env: GATEWAY_ORGANIZATION_ID]"),
        (("-w", "--workspace"), "workspace_name", "NAME", "Workspace.  [env: GATEWAY_WORKSPACE; default: default]"),
        (("--url",), "base_url", "URL", "URL of the gateway.  [env: GATEWAY_URL; default: http://127.0.0.1:8080]"),
    ):
        command = click.option(
            *declarations, name, metavar=metavar, expose_value=False, callback=_store, help=help_text
        )(command)
    return command


def _store(ctx: click.Context, param: click.Parameter, text: str | None) -> None:
    ctx.meta.setdefault(GATEWAY, {})[param.name] = text


def chosen_gateway() -> dict[str, Any]:
    """The arguments of `Gateway` that the options of the running command set; they override the environment."""
    return dict(click.get_current_context().meta.get(GATEWAY, {}))


def calls_gateway(work: Work[P, T]) -> Callable[P, T]:
    """A command that runs the coroutine with a client of the gateway that its options select."""

    @wraps(work)
    def command(*args: P.args, **options: P.kwargs) -> T:
        async def call() -> T:
            async with open_gateway() as gateway:
                return await work(gateway, *args, **options)

        return run(call())

    return gateway_options(command)


def shows(
    *columns: str, row: Callable[[Any], Any] = msgspec.to_builtins, tail: Callable[[Any], str] | None = None
) -> Callable[[Work[P, Any]], Callable[P, None]]:
    """A command that calls the gateway and prints the coroutine's result: a Struct, or Structs as a list or a stream.

    `columns` are those of a table, `row` makes its row from a Struct, and `tail` a line with `--follow`.
    """

    def decorated(work: Work[P, Any]) -> Callable[P, None]:
        @wraps(work)
        async def shown(gateway: Gateway, /, *args: P.args, **options: P.kwargs) -> None:
            result = await work(gateway, *args, **options)
            await show(result, columns, row, tail if options.get("follow") else None)

        return output_option(calls_gateway(shown))

    return decorated


def connector_option(help_text: str = "Connector to use, if the kind has several.") -> Callable[[Command], Command]:
    """`-c`, `--connector`: a name or an id, with shell completion."""
    return click.option("-c", "--connector", metavar="NAME|ID", shell_complete=complete_connector, help=help_text)


@asynccontextmanager
async def open_gateway() -> AsyncIterator[Gateway]:
    """A client of the gateway that the options select."""
    async with Gateway(**chosen_gateway(), retry_policy=_RETRIES) as gateway:
        yield gateway


def from_gateway_or_specs(
    work: Callable[[Gateway], Awaitable[T]],
    from_specs: Callable[[], T],
    *,
    is_offline: bool,
    instead: str = "showing",
    needs_gateway: bool = False,
) -> T:
    """The result of `work`; with --offline, or if the gateway cannot be reached, that of the shipped specs."""

    async def ask() -> T:
        try:
            async with open_gateway() as gateway:
                return await work(gateway)
        except (Unauthorized, Unavailable) as error:
            if needs_gateway:
                raise
            note(f"{error.detail}; {instead} the shipped specs instead")
            return from_specs()

    return from_specs() if is_offline else run(ask())


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

"""`gateway sandbox` runs a stand-in for all applications; `gateway sandbox rude` makes a running one rude."""

from typing import Any

import click

from gateway.cli.operator import run, settings_for
from gateway.settings import require_port

_URL = click.option(
    "--url",
    envvar="SANDBOX_URL",
    default="http://127.0.0.1:9001",
    show_default=True,
    help="Address of the sandbox; or SANDBOX_URL.",
)


@click.group(invoke_without_command=True)
@click.option("--bind", metavar="HOST:PORT", default="127.0.0.1:9001", show_default=True, help="Address to listen on.")
@click.pass_context
def sandbox(context: click.Context, bind: str) -> None:
    """Run a stand-in for all applications, for tests without accounts."""
    if context.invoked_subcommand is not None:
        return
    from gateway.kinds.loading import serving_catalog
    from gateway.sandbox.app import create_sandbox

    try:
        require_port(bind)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--bind") from error
    settings = settings_for()
    run(lambda: _serve(create_sandbox(serving_catalog(settings.specs)), bind))


async def _serve(app: Any, bind: str) -> None:
    from aiohttp import web

    from gateway.cli.operator import stopped

    host, _, port = bind.rpartition(":")
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, int(port)).start()
        await stopped()
    finally:
        await runner.cleanup()


@sandbox.group()
def rude() -> None:
    """Make the lists of a running sandbox rude, as those of real applications are."""


@rude.command()
@click.option("--kind", "kinds", multiple=True, help="A kind that becomes rude; repeat it for several.  [default: all]")
@click.option("--behaviour", "behaviours", multiple=True, help="What it does; repeat it for several.  [default: all]")
@_URL
def on(kinds: tuple[str, ...], behaviours: tuple[str, ...], url: str) -> None:
    """Make kinds rude."""
    wanted = {"kinds": list(kinds)} | ({"behaviours": list(behaviours)} if behaviours else {})
    click.echo(run(lambda: _asked("POST", url, wanted)))


@rude.command()
@_URL
def off(url: str) -> None:
    """Make all kinds polite again."""
    run(lambda: _asked("DELETE", url, None))


async def _asked(method: str, url: str, wanted: dict[str, Any] | None) -> str:
    """The sandbox's answer to a request about its manners."""
    import aiohttp

    address = f"{url.rstrip('/')}/_sandbox/rude"
    try:
        async with aiohttp.ClientSession() as http, http.request(method, address, json=wanted) as response:
            text = await response.text()
    except aiohttp.ClientError as error:
        raise click.ClickException(f"there is no sandbox at {url}: {error}") from error
    if response.status >= 400:
        raise click.ClickException(text)
    return text

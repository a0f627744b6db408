"""`gateway sandbox` runs a stand-in for all applications; its subcommands break a running one and show its requests."""

import json
from datetime import UTC, datetime
from typing import Any

import click

from gateway.cli.operator import run, settings_for
from gateway.cli.sandbox_control import ask
from gateway.cli.words import printable
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
    click.echo(json.dumps(run(lambda: ask(url, "POST", "rude", wanted))))


@rude.command()
@_URL
def off(url: str) -> None:
    """Make all kinds polite again."""
    run(lambda: ask(url, "DELETE", "rude"))


@sandbox.group()
def fault() -> None:
    """Make a running sandbox delay, refuse, cut or lose its answers."""


@fault.command("add")
@click.option("--kind", help="Only calls of this kind.")
@click.option("--entity", help="Only calls of operations of this entity.")
@click.option("--method", help="Only requests with this method, such as POST.")
@click.option("--path-prefix", metavar="PATH", help="Only requests whose path begins so.")
@click.option("--times", type=click.IntRange(min=1), help="Number of calls; without it all, until `fault clear`.")
@click.option("--latency-ms", type=click.IntRange(min=0), help="Delay before the answer, in milliseconds.")
@click.option("--status", type=click.IntRange(200, 599), help="Answer with this status; nothing is done.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="Add a header; repeat it for several.")
@click.option("--reset", is_flag=True, help="Do what was asked, and close the connection without an answer.")
@click.option("--truncate-after-bytes", type=click.IntRange(min=0), help="Cut the body after as many bytes.")
@click.option("--stall-after-bytes", type=click.IntRange(min=0), help="Stop sending after as many bytes.")
@click.option("--ignore-range", is_flag=True, help="Answer a range request with the complete file.")
@_URL
def add_fault(url: str, headers: tuple[str, ...], **given: Any) -> None:
    """Add a fault: the next calls that match it have the effects that you name.

    \b
    Two requests for tickets are refused:
      gateway sandbox fault add --kind support-desk --entity tickets --status 503 --times 2
    A ticket is created, and its answer is lost:
      gateway sandbox fault add --kind support-desk --method POST --reset --times 1
    """
    wanted = {name: value for name, value in given.items() if value is not None and value is not False}
    if headers:
        wanted["headers"] = dict(_header(each) for each in headers)
    click.echo(json.dumps(run(lambda: ask(url, "POST", "faults", wanted))))


def _header(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--header")
    return name, value


@fault.command("list")
@_URL
def list_faults(url: str) -> None:
    """List the active faults, one JSON document a line; `times` is the number of calls that are left."""
    for each in run(lambda: ask(url, "GET", "faults"))["faults"]:
        click.echo(json.dumps(each))


@fault.command("clear")
@_URL
def clear_faults(url: str) -> None:
    """Remove all faults."""
    run(lambda: ask(url, "DELETE", "faults"))


@sandbox.command("requests")
@click.option("--kind", help="Only requests to this kind.")
@click.option("--path-prefix", metavar="PATH", help="Only requests whose path begins so.")
@click.option("--limit", type=click.IntRange(min=1), default=25, show_default=True, help="Maximum number of requests.")
@_URL
def list_requests(kind: str | None, path_prefix: str | None, limit: int, url: str) -> None:
    """List the latest requests that a running sandbox received, oldest first; status 0 means no answer."""
    query = {name: value for name, value in (("kind", kind), ("path_prefix", path_prefix)) if value}
    for each in run(lambda: ask(url, "GET", "requests", query=query))["requests"][-limit:]:
        at = datetime.fromtimestamp(each["at"], UTC).isoformat(timespec="milliseconds")
        click.echo(printable(f"{at} {each['status']:3} {each['method']:6} {each['kind'] or '-'} {each['path']}"))


@sandbox.command("reset")
@_URL
def reset(url: str) -> None:
    """Restore the records of a running sandbox, and end its faults and rude behaviours."""
    run(lambda: ask(url, "DELETE", "state"))

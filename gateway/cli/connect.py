"""`gateway connect`: create a connector, by credentials or by OAuth consent."""

import os
import sys
from contextlib import AsyncExitStack
from typing import Any, get_args, get_type_hints

import click
import msgspec

from gateway.cli.arguments import read_pairs, value_or_file
from gateway.cli.callback_page import callback_page
from gateway.cli.client_session import find, interruptible, shows
from gateway.cli.failures import EXIT_CODES, note
from gateway.cli.shell_completion import complete_connector, complete_kind
from gateway.client import Connector, Gateway
from gateway.client.connectors import IfExists
from gateway.contract.connectors import MCP, SECRET, TOKEN_REQUIRED, ConnectorSettings
from gateway.errors import Conflict, InvalidParams
from gateway.kinds.command_line import is_key_file
from gateway.kinds.suggestions import did_you_mean


@click.command(epilog=EXIT_CODES)
@click.argument("kind", required=False, shell_complete=complete_kind)
@click.option("--mcp", "mcp_url", metavar="URL", help="Connect an MCP server; KIND is then the name of its own kind.")
@click.option("--header", metavar="NAME", help="With --mcp: the header of the access token, if it is no bearer token.")
@click.option("--query", metavar="NAME", help="With --mcp: the member of the URL's query that is the access token.")
@click.option(
    "--credential", "credentials", multiple=True, metavar="NAME=VALUE", help="A credential, or NAME=@FILE; repeatable."
)
@click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="NAME=URL",
    help="A credential whose value the gateway reads at use: vault://HOST/MOUNT/PATH#FIELD; repeatable.",
)
@click.option(
    "--env", "environment", multiple=True, metavar="NAME=VALUE", help="A variable such as the subdomain; repeatable."
)
@click.option("--name", metavar="NAME", help="Name of the connector.")
@click.option(
    "--if-exists",
    type=click.Choice(get_args(IfExists)),
    default="fail",
    show_default=True,
    help="If the workspace has a connector of that name: create another, fail, or authorize it again.",
)
@click.option(
    "--renew",
    metavar="CONNECTOR",
    shell_complete=complete_connector,
    help="Authorize this connector again; it keeps its id.",
)
@click.option("--method", metavar="METHOD", help="Authentication method, if the kind has several.")
@click.option(
    "--redirect-url", metavar="URL", help="URL that the browser opens after consent; by default a local page."
)
@click.option("--no-browser", is_flag=True, help="Print the consent URL instead of opening a browser.")
@click.option("--no-check", is_flag=True, help="Store the credentials without checking them at the application.")
@shows()
async def connect(gateway: Gateway, /, **options: Any) -> Connector:
    """Create a connector of a KIND in the workspace.

    If the kind supports OAuth, a browser opens for consent; otherwise the command reads credentials. On a terminal it
    prompts for missing values and does not echo secrets.

    \b
    gateway connect team-chat
    gateway connect support-desk --env subdomain=acme --credential email=me@acme.example --credential api_token=@token
    gateway connect github --secret token=vault://vault.example.com/secret/acme/github#token
    gateway connect tracker --mcp https://mcp.tracker.example/mcp
    gateway connect tracker --mcp https://mcp.tracker.example/mcp --credential access_token=@token
    """
    mcp_url, header, query = (options.pop(name) for name in ("mcp_url", "header", "query"))
    given = {name: options.pop(name) for name in get_type_hints(ConnectorSettings)}
    settings = {name: value for name, value in given.items() if value is not None}
    named = msgspec.convert(settings, ConnectorSettings)
    if mcp_url is not None:
        server = {"url": mcp_url, "kind": options["kind"], "header": header, "query": query}
        server = {name: value for name, value in server.items() if value is not None}
        return await _connect_server(gateway, named, server, **options)
    if options["kind"] is None:
        raise click.UsageError("name the KIND, or a server by --mcp URL; gateway specs list shows the kinds")
    return await _connect(gateway, named, **options)


async def _connect(
    gateway: Gateway,
    settings: ConnectorSettings,
    kind: str,
    credentials: tuple[str, ...],
    secrets: tuple[str, ...],
    environment: tuple[str, ...],
    if_exists: IfExists,
    renew: str | None,
    method: str | None,
    redirect_url: str | None,
    no_browser: bool,
    no_check: bool,
) -> Connector:
    given: dict[str, Any] = {**read_pairs(credentials, "--credential"), **_references(secrets)}
    name = settings.get("name")
    facts = await gateway.type(kind)
    renewed = None if renew is None else await find(gateway, facts["kind"], renew)
    existing = renewed.id if renewed else await _existing(gateway, name or facts["title"], if_exists)
    variables = read_pairs(environment, "--env")
    if renewed is None:
        variables = _completed(variables, _needed(facts["environment"]), "--env", facts)
    if not given and _is_by_consent(facts, method):
        return await _ask_consent(
            gateway,
            kind,
            redirect_url=redirect_url,
            no_browser=no_browser,
            name=name,
            variables=variables,
            existing=existing,
        )
    _require_known(given, facts)
    fields = _method(facts, method, given)["fields"]
    given = _completed(given, _needed(fields), "--credential", facts)
    if renewed is not None:
        return await gateway.connectors.update(renewed.id, credentials=given, **settings)
    return await gateway.connectors.create(
        kind, given, environment=variables, validate=not no_check, if_exists=if_exists, **settings
    )


async def _connect_server(
    gateway: Gateway,
    settings: ConnectorSettings,
    server: dict[str, str],
    *,
    credentials: tuple[str, ...],
    secrets: tuple[str, ...],
    if_exists: IfExists,
    redirect_url: str | None,
    no_browser: bool,
    no_check: bool,
    **_: Any,
) -> Connector:
    """A connector to an MCP server, whose tools are accepted by that; a person signs in if the server asks for it."""
    if secrets:
        raise click.UsageError("--secret is not for --mcp: give the token of an MCP server with --credential")
    given = read_pairs(credentials, "--credential")
    app = {name: value for name, value in given.items() if name in ("client_id", "client_secret")}
    if not app:
        try:
            return await gateway.connectors.create(
                MCP, given, validate=not no_check, if_exists=if_exists, mcp_server=server, **settings
            )
        except InvalidParams as refused:
            if TOKEN_REQUIRED not in (fault.code for fault in refused.faults):
                raise
    name = settings.get("name")
    existing = None if name is None else await _existing(gateway, name, if_exists)
    return await _ask_consent(
        gateway,
        MCP if existing is None else (await gateway.connectors.get(existing)).kind,
        redirect_url=redirect_url,
        no_browser=no_browser,
        name=name,
        variables={},
        existing=existing,
        mcp_server={**server, **app} if existing is None else None,
    )


async def _existing(gateway: Gateway, name: str, if_exists: IfExists) -> str | None:
    """The id of the connector with that name, to authorize it again; raises Conflict before the user is prompted."""
    if if_exists == "create":
        return None
    ids = [each.id for each in await gateway.connectors.list() if each.name == name]
    if ids and (if_exists == "fail" or len(ids) > 1):
        raise Conflict(
            f"the workspace has a connector {name!r} already: {', '.join(ids)}; --if-exists update authorizes it "
            "again, --name NAME creates another"
        )
    return ids[0] if ids else None


async def _ask_consent(
    gateway: Gateway,
    kind: str,
    redirect_url: str | None,
    no_browser: bool,
    name: str | None,
    variables: dict[str, str],
    existing: str | None,
    mcp_server: dict[str, str] | None = None,
) -> Connector:
    """The connector, after a person has given consent in a browser."""
    async with AsyncExitStack() as exit_stack:
        callback = redirect_url if redirect_url else await exit_stack.enter_async_context(callback_page())
        consent = await gateway.connectors.connect(
            kind, callback, name=name, environment=variables, connector=existing, mcp_server=mcp_server
        )
        note("open this URL and give consent; waiting (Ctrl-C stops)")
        click.echo(consent.url, err=True)
        if not no_browser and has_browser():
            click.launch(consent.url)
        return await consent.wait()


def has_browser() -> bool:
    """Whether a person at this terminal would see a browser open."""
    return sys.stderr.isatty() and (sys.platform in ("darwin", "win32") or "DISPLAY" in os.environ)


def _is_by_consent(facts: dict[str, Any], method: str | None) -> bool:
    return bool(facts["oauth"]) and method in (None, *(each["id"] for each in facts["auth_methods"] if each["oauth"]))


def _references(words: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """The references of `--secret NAME=URL` by name; raises click.BadParameter."""
    pairs = (word.partition("=") for word in words)
    if any(not equals or "://" in name for name, equals, _ in pairs):
        raise click.BadParameter("write --secret NAME=vault://HOST/MOUNT/PATH#FIELD")
    return {name: {SECRET: url} for name, _, url in (word.partition("=") for word in words)}


def _require_known(credentials: dict[str, Any], facts: dict[str, Any]) -> None:
    """Raises click.BadParameter for a credential that no method has; `_method` would choose the wrong method."""
    fields = {name for each in facts["auth_methods"] for name in each["fields"]}
    for name in credentials:
        if name not in fields and name not in facts["environment"]:
            hint = did_you_mean(name, fields)
            raise click.BadParameter(f"{facts['kind']} has no credential {name!r}; {hint}", param_hint="--credential")


def _method(facts: dict[str, Any], method_id: str | None, credentials: dict[str, Any]) -> dict[str, Any]:
    """The method with this id, else the first with fields for all given credentials, else the first without OAuth."""
    methods: list[dict[str, Any]] = facts["auth_methods"]
    for each in methods:
        if each["id"] == method_id or (
            method_id is None and credentials and credentials.keys() <= each["fields"].keys()
        ):
            return each
    if method_id is not None:
        raise click.BadParameter(
            f"{facts['kind']} has no {method_id!r}; it has {', '.join(each['id'] for each in methods)}"
        )
    return next((each for each in methods if not each["oauth"]), methods[0])


def _needed(fields: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: field for name, field in fields.items() if field.get("required") and field.get("default") is None}


def _completed(
    values: dict[str, Any], needed: dict[str, dict[str, Any]], option: str, facts: dict[str, Any]
) -> dict[str, Any]:
    """The given values, and prompts for the rest; without a terminal a usage error names all missing ones."""
    missing = {name: field for name, field in needed.items() if name not in values}
    if missing and not sys.stdin.isatty():
        missing_options = "; ".join(
            f"{option} {name}={'@FILE' if is_key_file(field) else '…'} ({field['description']})"
            for name, field in missing.items()
        )
        raise click.UsageError(f"{facts['kind']} needs {missing_options}")
    for name, field in missing.items():
        with interruptible():
            values[name] = _asked(name, field)
    return values


def _asked(name: str, field: dict[str, Any]) -> str:
    """The value that the user enters; of a file, which has line breaks, its path."""
    prompt = f"{name} ({field['description']})"
    if is_key_file(field):
        path = click.prompt(f"path of the file with {prompt}", type=click.Path(exists=True, dir_okay=False), err=True)
        return value_or_file(f"@{os.fsdecode(path)}")
    value: str = click.prompt(prompt, hide_input=bool(field.get("secret")), err=True)
    return value

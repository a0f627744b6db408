"""`gateway login`, `logout` and `profiles`: gateways that this user signs in to, each under a name."""

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp
import click
import msgspec
from yarl import URL

from gateway.cli.arguments import value_or_file
from gateway.cli.callback_page import callback_page
from gateway.cli.client_session import run
from gateway.cli.connect import has_browser
from gateway.cli.failures import EXIT_CODES, note
from gateway.cli.output import output_option, write
from gateway.client.browser_sign_in import SignInRequest, with_tokens
from gateway.client.profiles import Profile, Profiles
from gateway.client.retries import RetryPolicy
from gateway.client.session import ApiRequest, Session
from gateway.client.settings import ClientSettings, client_settings
from gateway.contract.oauth import COMMAND_LINE, REVOKE, SERVER_METADATA, TOKEN
from gateway.errors import GatewayError, NotFound, Unauthorized

#: seconds that a person has to sign in
_SIGN_IN_TIMEOUT = 600
#: the default name of a profile
_DEFAULT = "default"
_COLUMNS = ("name", "current", "base_url", "signed_in_as", "workspace_name")


@click.command(epilog=EXIT_CODES)
@click.argument("url")
@click.option("--profile", "name", metavar="NAME", default=_DEFAULT, show_default=True, help="Name of the profile.")
@click.option("--client-id", metavar="ID", help="Sign in as this client instead of with a browser.")
@click.option(
    "--client-secret", metavar="@FILE", help="File with the client's secret, @- for stdin; prompted for if omitted."
)
@click.option("-w", "--workspace", metavar="NAME", help="Workspace that the profile's commands use.")
@click.option("--organization", metavar="ID", help="Organization id, if the client can access several.")
@click.option("--no-browser", is_flag=True, help="Print the URL of the sign-in page instead of opening a browser.")
def login(
    url: str,
    name: str,
    client_id: str | None,
    client_secret: str | None,
    workspace: str | None,
    organization: str | None,
    no_browser: bool,
) -> None:
    """Sign in to the gateway at URL and store it as a profile for later commands.

    A person signs in with a browser, a program with --client-id. The profile is stored in the user's configuration
    folder, readable by this user only.

    \b
    gateway login https://gateway.example.com
    gateway login https://staging.example.com --profile staging --client-id 6f1d… --client-secret @secret
    gateway connectors list --profile staging
    """
    if client_secret is not None and not client_secret.startswith("@"):
        raise click.UsageError("--client-secret must be @FILE or @-: other users can read command lines")

    async def work() -> None:
        if client_id is None:
            profile = await _by_browser(url, no_browser=no_browser)
        else:
            profile = await _as_client(url, client_id, client_secret)
        profile = msgspec.structs.replace(profile, workspace_name=workspace, organization_id=organization)
        profiles = Profiles()
        profiles.save(name, profile)
        note(f"signed in to {profile.base_url}; commands use the profile {name!r}, stored in {profiles.path}")

    run(work())


async def _as_client(url: str, client_id: str, secret_file: str | None) -> Profile:
    secret = value_or_file(secret_file) if secret_file else click.prompt("Client secret", hide_input=True, err=True)
    settings = client_settings(url, client_id, secret, environ={})
    async with Session(settings, RetryPolicy()) as session:
        await session.token()  # raises Unauthorized for a wrong secret
    return Profile(base_url=str(settings.base_url), client_id=client_id, client_secret=secret)


async def _by_browser(url: str, *, no_browser: bool) -> Profile:
    settings = client_settings(url, COMMAND_LINE, "-", environ={})
    async with Session(settings, RetryPolicy()) as session:
        metadata = await _metadata(session)
        answered: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
        async with callback_page(answered) as redirect_uri:
            request = SignInRequest(
                issuer=metadata["issuer"],
                authorization_endpoint=metadata["authorization_endpoint"],
                redirect_uri=redirect_uri,
            )
            note("sign in on this page; waiting (Ctrl-C stops)")
            click.echo(request.url, err=True)
            if not no_browser and has_browser():
                click.launch(request.url)
            try:
                answer = await asyncio.wait_for(answered, _SIGN_IN_TIMEOUT)
            except TimeoutError as error:
                raise Unauthorized(f"the browser did not return within {_SIGN_IN_TIMEOUT // 60} minutes") from error
        issued = await session.issued(ApiRequest(method="POST", path=TOKEN, form=request.code_form(answer)))
    return with_tokens(Profile(base_url=str(settings.base_url), client_id=COMMAND_LINE), issued)


async def _metadata(session: Session) -> dict[str, Any]:
    """The metadata of the authorization server (RFC 8414); raises NotFound if the URL is not a gateway's."""
    try:
        metadata = await session.issued(ApiRequest(method="GET", path=SERVER_METADATA))
    except (msgspec.DecodeError, NotFound) as error:
        raise NotFound(f"{session.settings.base_url} does not answer as a gateway; check the URL") from error
    if not _is_same_site(metadata["issuer"], session.settings.base_url):
        raise Unauthorized(
            f"the gateway's URL is {metadata['issuer']} (GATEWAY_PUBLIC_URL); sign in with it, or as a client with "
            "--client-id"
        )
    return metadata


def _is_same_site(issuer: str, base_url: URL) -> bool:
    """Whether issuer and gateway have the same origin: code and tokens are sent to the issuer (RFC 8414 §3.3)."""
    return URL(issuer).origin() == base_url.origin()


@click.command(epilog=EXIT_CODES)
@click.argument("name", required=False)
def logout(name: str | None) -> None:
    """Delete a profile, by default the current one. A person's sign-in also ends at the gateway."""

    async def work() -> None:
        profiles = Profiles()
        chosen = name or profiles.current()
        if chosen is None:
            raise NotFound("there is no current profile; `gateway profiles` lists all")
        profile = profiles.get(chosen)
        profiles.remove(chosen)
        if profile.refresh_token is not None and not await _revoke(profile):
            note(f"{profile.base_url} did not answer; the sign-in ends when its token expires")
        note(f"deleted the profile {chosen!r}")

    run(work())


async def _revoke(profile: Profile) -> bool:
    form = {"token": profile.refresh_token or "", "client_id": profile.client_id}
    settings = ClientSettings(base_url=URL(profile.base_url), client_id=profile.client_id, client_secret="")
    async with Session(settings, RetryPolicy()) as session:
        try:
            async with await session.send(ApiRequest(method="POST", path=REVOKE, form=form)) as response:
                return response.status == 200
        except (GatewayError, aiohttp.ClientError):
            return False


@click.group(invoke_without_command=True, epilog=EXIT_CODES)
@output_option
@click.pass_context
def profiles(ctx: click.Context) -> None:
    """List the profiles. Commands use the current profile unless an option or the environment names another."""
    if ctx.invoked_subcommand is not None:
        return
    stored = Profiles()
    current = stored.current()
    rows = [
        {
            "name": name,
            "current": name == current,
            "base_url": profile.base_url,
            "signed_in_as": "a person, by browser" if profile.client_secret is None else profile.client_id,
            "workspace_name": profile.workspace_name,
        }
        for name, profile in stored.all().items()
    ]
    if not rows:
        note("there are no profiles; `gateway login URL` creates one")
    write(rows, _COLUMNS)


@profiles.command()
@click.argument("name")
def use(name: str) -> None:
    """Make a profile the current one."""
    Profiles().use(name)
    note(f"commands use the profile {name!r}")

"""The client's settings: from arguments, a profile, the environment, or the data directory of `gateway up`."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from yarl import URL

from gateway.client.profiles import Profile, Profiles
from gateway.errors import MalformedRequest, Unauthorized
from gateway.foundation.hosts import is_loopback

#: the default address of `gateway up`
DEFAULT_URL = "http://127.0.0.1:8080"
DEFAULT_WORKSPACE = "default"
#: written by the first `gateway up` in a data directory, readable by its owner alone
_FIRST_CLIENT = "first-client.json"
#: holds the URL of the `gateway up` that runs in a data directory
_ADDRESS = "address"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """The gateway's URL, the client's credentials, and the workspace and organization of its calls."""

    base_url: URL
    client_id: str
    client_secret: str = field(repr=False)
    workspace_name: str = DEFAULT_WORKSPACE
    organization_id: str | None = None
    #: the profile with the tokens, if a person signed in with a browser
    tokens_of: str | None = None
    #: the token to use as it is, such as that of a session for a person
    token: str | None = field(default=None, repr=False)


def client_settings(
    base_url: str | None = None,
    client_id: str | None = None,
    client_secret: str | None = None,
    workspace_name: str | None = None,
    organization_id: str | None = None,
    environ: Mapping[str, str] = os.environ,
    profile: str | None = None,
    token: str | None = None,
) -> ClientSettings:
    """The client's settings; raises RequestError. With a token no client and no profile is needed.

    They come from the arguments, a profile that is named, `GATEWAY_…` variables, a local `gateway up` and the current
    profile, in this order.
    """
    if token is not None:
        return _of_token(token, base_url, workspace_name, organization_id, environ)
    name = profile or environ.get("GATEWAY_PROFILE") or None
    if name is None and not (base_url or client_id or _is_configured(environ)):
        name = Profiles(environ).current()
    if name is not None:
        return _of_profile(
            name,
            Profiles(environ).get(name),
            base_url=base_url,
            workspace_name=workspace_name,
            organization_id=organization_id,
            environ=environ,
        )
    data_dir = Path(environ.get("GATEWAY_DATA_DIR") or ".gateway")
    url = _gateway_url(base_url or environ.get("GATEWAY_URL") or _local_address(data_dir) or DEFAULT_URL)
    client_id = client_id or environ.get("GATEWAY_CLIENT_ID")
    client_secret = client_secret or environ.get("GATEWAY_CLIENT_SECRET")
    if client_id is None and client_secret is None and is_loopback(url.host or ""):
        client_id, client_secret = _first_client(data_dir)
    if not client_id or not client_secret:
        missing = "client_secret (GATEWAY_CLIENT_SECRET)" if client_id else "client_id (GATEWAY_CLIENT_ID)"
        raise Unauthorized(
            f"{missing} is not set; `gateway login URL` signs in, `gateway up` prints its first client, "
            "`gateway admin` creates clients"
        )
    return ClientSettings(
        base_url=url,
        client_id=client_id,
        client_secret=client_secret,
        workspace_name=workspace_name or environ.get("GATEWAY_WORKSPACE") or DEFAULT_WORKSPACE,
        organization_id=organization_id or environ.get("GATEWAY_ORGANIZATION_ID") or None,
    )


def _of_token(
    token: str,
    base_url: str | None,
    workspace_name: str | None,
    organization_id: str | None,
    environ: Mapping[str, str],
) -> ClientSettings:
    """The settings of a token, which alone says who calls: no organization of the environment is sent with it."""
    data_dir = Path(environ.get("GATEWAY_DATA_DIR") or ".gateway")
    return ClientSettings(
        base_url=_gateway_url(base_url or environ.get("GATEWAY_URL") or _local_address(data_dir) or DEFAULT_URL),
        client_id="",
        client_secret="",
        workspace_name=workspace_name or environ.get("GATEWAY_WORKSPACE") or DEFAULT_WORKSPACE,
        organization_id=organization_id,
        token=token,
    )


def _is_configured(environ: Mapping[str, str]) -> bool:
    """Whether the environment, or a `gateway up` in this folder, has a gateway's URL or a client."""
    names = ("GATEWAY_URL", "GATEWAY_CLIENT_ID", "GATEWAY_CLIENT_SECRET")
    data_dir = Path(environ.get("GATEWAY_DATA_DIR") or ".gateway")
    return any(environ.get(name) for name in names) or _local_address(data_dir) is not None


def _of_profile(
    name: str,
    profile: Profile,
    base_url: str | None,
    workspace_name: str | None,
    organization_id: str | None,
    environ: Mapping[str, str],
) -> ClientSettings:
    """The settings of a profile; its secrets are sent only to the profile's URL."""
    url = _gateway_url(profile.base_url)
    if base_url is not None and _gateway_url(base_url) != url:
        raise MalformedRequest(f"the profile {name!r} is for {url}, not for {base_url}; leave out --url or the profile")
    return ClientSettings(
        base_url=url,
        client_id=profile.client_id,
        client_secret=profile.client_secret or "",
        workspace_name=workspace_name
        or profile.workspace_name
        or environ.get("GATEWAY_WORKSPACE")
        or DEFAULT_WORKSPACE,
        organization_id=organization_id or profile.organization_id or environ.get("GATEWAY_ORGANIZATION_ID") or None,
        tokens_of=None if profile.client_secret else name,
    )


def _gateway_url(text: str) -> URL:
    try:
        url = URL(text.rstrip("/"))
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise MalformedRequest(f"the gateway's URL is {text!r}; it looks like https://gateway.example.com")
    return url


def _local_address(data_dir: Path) -> str | None:
    """The URL of the `gateway up` of this data directory; None if it does not run."""
    try:
        return (data_dir / _ADDRESS).read_text("utf-8").strip()
    except (OSError, ValueError):
        return None


def _first_client(data_dir: Path) -> tuple[str | None, str | None]:
    try:
        client = json.loads((data_dir / _FIRST_CLIENT).read_text("utf-8"))
    except (OSError, ValueError):
        return None, None
    return client.get("client_id"), client.get("client_secret")

"""Requests to the endpoints under `/_sandbox` of a running sandbox."""

import json
from collections.abc import Mapping
from typing import Any

import click

#: seconds
_TIMEOUT = 10


async def ask(url: str, method: str, path: str, document: object = None, query: Mapping[str, str] | None = None) -> Any:
    """The sandbox's JSON response to a request for `/_sandbox/{path}`, or None if it has no body.

    Raises click.ClickException if no sandbox answers at the URL, or if it refuses the request.
    """
    import aiohttp

    address = f"{url.rstrip('/')}/_sandbox/{path}"
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_TIMEOUT)) as http,
            http.request(method, address, json=document, params=query) as response,
        ):
            text = await response.text()
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise click.ClickException(f"there is no sandbox at {url}: {error or type(error).__name__}") from error
    try:
        answer = json.loads(text) if text else None
    except ValueError as error:
        raise click.ClickException(f"{url} is not a sandbox: its response is not JSON") from error
    if response.status >= 400:
        raise click.ClickException(answer["error"] if isinstance(answer, dict) and "error" in answer else text)
    return answer

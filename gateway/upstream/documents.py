"""Fetches OpenAPI documents for the import, from public addresses only."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import urljoin

import aiohttp
from yarl import URL

from gateway.errors import UpstreamInvalidResponse
from gateway.foundation.aio.bodies import read_body
from gateway.kinds.importing.model import ImportFailed
from gateway.kinds.importing.sources import MAX_BYTES, Fetch
from gateway.upstream.egress import EgressConnector, EgressPolicy, checked_url

#: seconds for one document; maximum redirects
_TIMEOUT, _MAX_REDIRECTS = 60, 5


@asynccontextmanager
async def fetching(policy: EgressPolicy | None = None, override: URL | None = None) -> AsyncIterator[Fetch]:
    """Fetches documents within the block; `policy` and `override` are those of calls to applications."""
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT)
    connector = EgressConnector(policy or EgressPolicy())
    async with aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), timeout=timeout
    ) as session:
        yield partial(_fetched, session, override)


async def _fetched(session: aiohttp.ClientSession, override: URL | None, url: str, host: str) -> bytes:
    for _ in range(_MAX_REDIRECTS):
        try:
            checked = checked_url(url, hosts=[host], override=override)
            async with session.get(checked, allow_redirects=False) as response:
                if response.status in (301, 302, 303, 307, 308):
                    url = urljoin(url, response.headers.get("Location", ""))
                    continue
                content = await read_body(response.content, MAX_BYTES)
        except UpstreamInvalidResponse as error:
            raise ImportFailed(f"{url}: {error}; only https URLs of {host} are allowed") from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ImportFailed(f"{url} cannot be fetched: {error or type(error).__name__}") from error
        if response.status != 200:
            raise ImportFailed(f"{url} returned status {response.status}")
        if len(content) > MAX_BYTES:
            raise ImportFailed(f"{url} is larger than {MAX_BYTES >> 20} MiB")
        return content
    raise ImportFailed(f"{url} redirects more than {_MAX_REDIRECTS} times")

"""A browser of the console, over HTTP without scripts."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from tests.harness.caller import Answer
from tests.harness.in_process import FrontEnd

#: the name of its column at each cell of a table, which narrow screens show
_LABEL = re.compile(rb' data-label="[^"]*"')


async def _answer(response: aiohttp.ClientResponse) -> Answer:
    """The answer without the labels of cells, which repeat the heads of tables."""
    return Answer(response.status, response.headers, _LABEL.sub(b"", await response.read()))


class ConsoleBrowser:
    """A browser with cookies, which follows no redirect."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def get(self, path: str, **options: object) -> Answer:
        async with self.session.get(path, allow_redirects=False, **options) as response:
            return await _answer(response)

    async def send(self, path: str, **fields: str) -> Answer:
        """Submit a form."""
        async with self.session.post(path, data=fields, allow_redirects=False) as response:
            return await _answer(response)

    async def upload(self, path: str, file: bytes | None = None, **fields: str) -> Answer:
        """Submit a form that may have a file, which is its last field."""
        form = aiohttp.FormData(default_to_multipart=True)
        for name, value in fields.items():
            form.add_field(name, value)
        form.add_field("file", file or b"", filename="lines.ndjson" if file is not None else "")
        async with self.session.post(path, data=form, allow_redirects=False) as response:
            return await _answer(response)

    async def csrf(self) -> str:
        """The CSRF token of this session's forms."""
        found = re.search(rb'name="csrf" value="(\w+)"', (await self.get("/console/connectors")).body)
        assert found is not None
        return found[1].decode()


@asynccontextmanager
async def new_browser(front: FrontEnd) -> AsyncIterator[ConsoleBrowser]:
    """A browser without cookies."""
    async with aiohttp.ClientSession(front.base_url, cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        yield ConsoleBrowser(session)


@asynccontextmanager
async def signed_in(front: FrontEnd, client_id: str, secret: str) -> AsyncIterator[ConsoleBrowser]:
    """A browser in which this client is signed in."""
    async with new_browser(front) as opened:
        answer = await opened.send("/console/sign-in", client_id=client_id, client_secret=secret)
        assert (answer.status, answer.headers["Location"]) == (303, "/console")
        yield opened

"""Fakes applications at the HTTP boundary: aioresponses answers the requests that aiohttp would send."""

from types import SimpleNamespace
from typing import Any

from aiohttp import ClientResponse
from aioresponses import aioresponses
from yarl import URL


class Response(ClientResponse):
    """The response of aioresponses, with the writer that aiohttp 3.14 requires."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"stream_writer": SimpleNamespace(output_size=0), **options})


class Applications(aioresponses):
    """`with Applications() as web: web.get(url, payload=…)`; `sent` has the requests."""

    def add(self, url: Any, *arguments: Any, **options: Any) -> None:
        super().add(url, *arguments, **{"response_class": Response, **options})

    def sent(self, method: str, url: str) -> list[dict[str, Any]]:
        """The arguments of each request to a URL, in order."""
        return [dict(call.kwargs) for call in self.requests.get((method, URL(url)), [])]

"""Applications faked at the HTTP boundary: what aiohttp would send stops there, and answers are ready-made."""

from types import SimpleNamespace
from typing import Any

from aiohttp import ClientResponse
from aioresponses import aioresponses
from yarl import URL


class Response(ClientResponse):
    """What aioresponses makes of an answer; it does not give the writer that aiohttp 3.14 asks for."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"stream_writer": SimpleNamespace(output_size=0), **options})


class Applications(aioresponses):
    """`with Applications() as web: web.get(url, payload=…)`; what was asked is in `sent`."""

    def add(self, url: Any, *arguments: Any, **options: Any) -> None:
        super().add(url, *arguments, **{"response_class": Response, **options})

    def sent(self, method: str, url: str) -> list[dict[str, Any]]:
        """What each request to an address was sent with, in order."""
        return [dict(call.kwargs) for call in self.requests.get((method, URL(url)), [])]

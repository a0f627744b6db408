"""A page of the site, stored and sent compressed."""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from aiohttp import web

from gateway.upstream.http_ranges.headers import is_not_modified
from gateway.web.weights import weights_of


@dataclass(frozen=True, slots=True)
class PackedPage:
    """The HTML as gzip, and the hash of the HTML."""

    compressed: bytes
    digest: str

    @classmethod
    def of(cls, html: str) -> "PackedPage":
        """The page of this HTML."""
        content = html.encode()
        return cls(gzip.compress(content, compresslevel=6, mtime=0), sha256(content).hexdigest()[:16])


def page_response(
    request: web.Request, page: PackedPage, headers: Mapping[str, str], status: int = 200
) -> web.Response:
    """The page; as gzip if the client accepts it, with an entity tag of its own (RFC 9110 §8.8.3)."""
    is_compressed = weights_of(request.headers.get("Accept-Encoding", "")).get("gzip", 0.0) > 0
    tag = f'"{page.digest}{"-gzip" if is_compressed else ""}"'
    sent = {**headers, "ETag": tag, "Vary": "Accept-Encoding"}
    if status == 200 and is_not_modified(request.headers.get("If-None-Match"), tag):
        return web.Response(status=304, headers=sent)
    sent["Content-Type"] = "text/html; charset=utf-8"
    if is_compressed:
        return web.Response(body=page.compressed, status=status, headers={**sent, "Content-Encoding": "gzip"})
    return web.Response(body=gzip.decompress(page.compressed), status=status, headers=sent)

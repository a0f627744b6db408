"""Examples from the served OpenAPI document, and checks of the stub's responses against it."""

from typing import Any

from aiohttp import web

from tests.harness.contract import document, untold

#: a member of a later version, which the client must accept
LATER = "something_new"


def example(schema: str) -> dict[str, Any]:
    """The document's example of a schema."""
    instance: dict[str, Any] = document()["components"]["schemas"][schema]["examples"][0]
    return instance


def breaches(request: web.Request, response: web.StreamResponse) -> list[str]:
    """The differences between a response and the document; the body of a streamed response is not checked."""
    body = response.body if isinstance(response, web.Response) and isinstance(response.body, bytes) else b""
    faults = untold(
        request.method,
        str(request.rel_url),
        sent={},
        body=None,
        status=response.status,
        headers=response.headers,
        answer=body,
    )
    return [fault for fault in faults if LATER not in fault]

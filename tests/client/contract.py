"""What the served OpenAPI document says of the stub's answers."""

from typing import Any

from aiohttp import web

from tests.harness.contract import document, untold

#: a member of some later version, which the client must take
LATER = "something_new"


def example(schema: str) -> dict[str, Any]:
    """What the document shows as an instance of a schema."""
    instance: dict[str, Any] = document()["components"]["schemas"][schema]["examples"][0]
    return instance


def breaches(request: web.Request, response: web.StreamResponse) -> list[str]:
    """What the document does not allow of an answer; of one that is streamed, the body is not looked at."""
    body = response.body if isinstance(response, web.Response) and isinstance(response.body, bytes) else b""
    faults = untold(request.method, str(request.rel_url), {}, None, response.status, response.headers, body)
    return [fault for fault in faults if LATER not in fault]

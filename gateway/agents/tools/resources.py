"""Resources: stored answers and files, read in parts; and a document for each kind."""

import base64
from textwrap import shorten
from typing import Any

from yarl import URL

from gateway.agents.mcp.context import Context
from gateway.agents.mcp.features import ListPage
from gateway.agents.mcp.messages import RpcError
from gateway.agents.mcp.results import Result, page
from gateway.agents.tools.addresses import ResultAddress, resource_uri
from gateway.agents.tools.backend import Backend, Part
from gateway.agents.tools.skills import SCHEME, KindSkills
from gateway.errors import InvalidParams, NotFound
from gateway.foundation.aio.turns import in_thread
from gateway.kinds.agent_docs import markdown_of, skill_docs

#: maximum characters of a text of a kind in the list of all kinds, which every agent reads
_MAX_TEXT = 500
#: milliseconds for which clients may cache a part; stored results do not change
_TTL = 3_600_000


class ResultResources:
    """`gateway://results/{id}{?offset,limit}`, `gateway://kinds/{kind}` and `skill://{kind}/SKILL.md`."""

    def __init__(self, backend: Backend, skills: KindSkills) -> None:
        self._backend = backend
        self._skills = skills

    async def listed(self, context: Context) -> ListPage:
        """The documents of the kinds; links to results are in answers."""
        documents = [
            {
                "uri": f"gateway://kinds/{kind.name}",
                "name": kind.name,
                "title": kind.spec.application,
                "description": shorten(kind.spec.description, _MAX_TEXT),
                "mimeType": "text/markdown",
            }
            for kind in self._backend.catalog
        ]
        return ListPage(documents, scope="public")

    async def templates(self, context: Context) -> ListPage:
        result = {
            "uriTemplate": "gateway://results/{id}{?offset,limit}",
            "name": "result",
            "description": "A stored answer or file; offset and limit count the records of a list, else bytes",
        }
        return ListPage([result], scope="public")

    async def read(self, context: Context, uri: str) -> Result:
        """The content at the URI; raises RpcError if it does not exist."""
        try:
            if uri.startswith(SCHEME):
                return _markdown(uri, await self._skills.text(uri))
            url = URL(uri)
            if (url.scheme, url.host) == ("gateway", "kinds"):
                return await self._kind(uri, url.path.strip("/"))
            at = ResultAddress.of(uri)
            part = await self._backend.part(context.caller, at.id, at.offset, at.limit)
        except (NotFound, InvalidParams, ValueError) as error:
            raise _missing(uri, str(error)) from error
        return _contents(uri, at.id, part)

    async def _kind(self, uri: str, name: str) -> Result:
        # In a thread, because a kind may have thousands of operations.
        document = await in_thread(skill_docs, self._backend.catalog.kind(name))
        return _markdown(uri, markdown_of(document["content"]))


def _markdown(uri: str, text: str) -> Result:
    content = {"uri": uri, "mimeType": "text/markdown", "text": text}
    return page("contents", [content], ttl_ms=_TTL, scope="public")


def _contents(uri: str, result_id: str, part: Part) -> Result:
    """The part, with the URI of the next part."""
    content: dict[str, Any] = {"uri": uri, "mimeType": part.media_type}
    if isinstance(part.data, str):
        content["text"] = part.data
    else:
        content["blob"] = base64.b64encode(part.data).decode()
    about: dict[str, Any] = {"offset": part.offset, "count": part.count}
    if part.total is not None:
        about["total"] = part.total
    if not part.is_last:
        about["next"] = resource_uri(result_id, part.offset + part.count, part.count)
    return page("contents", [{**content, "_meta": {"gateway/range": about}}], ttl_ms=_TTL, scope="private")


def _missing(uri: str, reason: str) -> RpcError:
    return RpcError(-32602, f"{uri}: {reason}", {"uri": uri})

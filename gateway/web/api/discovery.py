"""Discovery: kinds, their operations and the skill docs, all generated from the specs."""

from functools import partial
from typing import ClassVar

import msgspec
from aiohttp import web
from pydantic import Field

from gateway.contract.kinds import KindPage, KindSummaryView, KindView, SkillDocsView
from gateway.foundation.aio.turns import in_thread
from gateway.kinds.agent_docs import skill_docs
from gateway.kinds.describe import kind_summary, kind_view
from gateway.web.bodies import QueryString, read_query
from gateway.web.keys import SERVICES
from gateway.web.route import Route


class DocsQuery(QueryString):
    """A document, and a section of it."""

    EXAMPLE: ClassVar = {"id": "support-desk", "section": "tickets"}

    id: str = Field(description="the kind, such as support-desk")
    section: str | None = Field(None, description="an entity, or `overview`; the whole document when left out")


async def list_connector_types(request: web.Request) -> KindPage:
    """A summary of all kinds: authentication methods, entities and actions."""
    catalog = request.app[SERVICES].catalog
    return KindPage([msgspec.convert(kind_summary(kind), KindSummaryView) for kind in catalog])


async def get_connector_type(request: web.Request) -> KindView:
    """One kind: for each action the JSON Schema of its params, its effect (`read`, `idempotent`, `write`), its paging,
    and an example.
    """
    kind = request.app[SERVICES].catalog.kind(request.match_info["kind"])
    # In a thread, because a kind may have thousands of operations.
    return msgspec.convert(await in_thread(kind_view, kind), KindView)


async def read_skill_docs(request: web.Request) -> SkillDocsView:
    """A kind's document for agents, or one section of it: params with their meanings, and examples."""
    query = read_query(request, DocsQuery)
    kind = request.app[SERVICES].catalog.kind(query.id)
    document = await in_thread(partial(skill_docs, section=query.section), kind)
    return msgspec.convert(document, SkillDocsView)


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/api/v1/integrations/connector-types",
        list_connector_types,
        "List the kinds of connectors",
        "Discovery",
        response=KindPage,
        command="gateway types",
        python="print(await gateway.types())",
        in_session=True,
    ),
    Route(
        "GET",
        "/api/v1/integrations/connector-types/{kind}",
        get_connector_type,
        "Get a kind with its operations",
        "Discovery",
        response=KindView,
        command="gateway types support-desk",
        python='print(await gateway.type("support-desk"))',
        in_session=True,
    ),
    Route(
        "GET",
        "/api/v1/skills/docs",
        read_skill_docs,
        "Read a kind's document for agents",
        "Discovery",
        query=DocsQuery,
        response=SkillDocsView,
        in_session=True,
    ),
)

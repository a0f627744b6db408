"""What there is to call: kinds, their operations and the skill docs, all generated from the specs."""

from aiohttp import web
from pydantic import Field

from gateway.http.bodies import QueryString, read_query
from gateway.http.keys import SERVICES
from gateway.http.responses import json_response
from gateway.kinds.agent_docs import skill_docs
from gateway.kinds.describe import kind_summary, kind_view


class DocsQuery(QueryString):
    """Which document, and which part of it."""

    id: str = Field(description="the kind, such as support-desk")
    section: str | None = Field(None, description="an entity, or `overview`; the whole document when left out")


async def list_connector_types(request: web.Request) -> web.Response:
    """GET …/connector-types: every kind in brief."""
    catalog = request.app[SERVICES].catalog
    return json_response({"data": [kind_summary(kind) for kind in catalog], "next_cursor": None})


async def get_connector_type(request: web.Request) -> web.Response:
    """GET …/connector-types/{kind}: one kind whole."""
    return json_response(kind_view(request.app[SERVICES].catalog.kind(request.match_info["kind"])))


async def read_skill_docs(request: web.Request) -> web.Response:
    """GET /api/v1/skills/docs: a kind's document for agents, whole or one section of it."""
    query = read_query(request, DocsQuery)
    return json_response(skill_docs(request.app[SERVICES].catalog.kind(query.id), query.section))

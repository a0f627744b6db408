"""`context_store_search`: filters and sorts over the synchronized copy."""

from aiohttp import web

from gateway.errors import UnknownAction
from gateway.execution import Call
from gateway.http.keys import CALLER, SERVICES


async def search(request: web.Request, call: Call) -> web.Response:
    """Search one entity of a connector."""
    services = request.app[SERVICES]
    opened = await services.connectors.get(request[CALLER].organization_id, call.connector_id)
    entity = opened.connector.kind.entity(call.entity)
    raise UnknownAction(f"{call.entity}: {entity.description} cannot be searched yet")

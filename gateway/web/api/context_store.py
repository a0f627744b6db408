"""The synchronized copies of a connector: their state, and a synchronization on request."""

from typing import Annotated, ClassVar

from aiohttp import web
from pydantic import Field, StringConstraints

from gateway.access.identity.model import Scope
from gateway.contract.connectors import ContextStoreView
from gateway.contract.jobs import AcceptedJobView
from gateway.web.api.jobs import accepted_response
from gateway.web.bodies import Body, path_id, read_body
from gateway.web.keys import CALLER, SERVICES
from gateway.web.route import ACCEPTED_HEADERS, CONNECTOR, Route

EntityName = Annotated[str, StringConstraints(max_length=100)]


class SynchronizeBody(Body):
    """The entities to synchronize."""

    EXAMPLES: ClassVar = {"tickets": {"entities": ["tickets"]}, "everything": {"full": True}}

    entities: list[EntityName] | None = Field(None, min_length=1, max_length=100, description="all when left out")
    full: bool = Field(False, description="read all records, not only changed ones; detects deleted records")


async def context_store_status(request: web.Request) -> ContextStoreView:
    """The state of each entity's copy: number of records, last and next synchronization, last error."""
    caller, services = request[CALLER], request.app[SERVICES]
    record = await services.connectors.access.get(caller, path_id(request, "connector_id"))
    services.catalog.served(record.kind)
    copies = await services.copy.synchronization.freshness(caller, record.id, record.kind)
    return ContextStoreView(copies)


async def synchronize(request: web.Request) -> web.Response:
    """Starts a job that synchronizes all copies, or those of `entities`. With `full` the job reads every record and so
    also finds deleted ones.
    """
    caller, services = request[CALLER], request.app[SERVICES]
    body = await read_body(request, SynchronizeBody) if request.can_read_body else SynchronizeBody()
    opened = await services.connectors.resolver.get_for(caller, path_id(request, "connector_id"))
    opened.require_active()
    job = await services.copy.synchronization.request(opened.record, body.entities, caller, is_full=body.full)
    return accepted_response(request, job)


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        CONNECTOR + "/context-store",
        context_store_status,
        "Get the state of the synchronized copies",
        "Context store",
        response=ContextStoreView,
        answers={200: "The state of each entity's copy"},
        errors=(409,),
        scope=Scope.READ,
        python='print(await gateway.connectors.copies("support-desk"))',
        in_session=True,
    ),
    Route(
        "POST",
        CONNECTOR + "/context-store/sync",
        synchronize,
        "Synchronize the copies now",
        "Context store",
        body=SynchronizeBody,
        has_optional_body=True,
        response=AcceptedJobView,
        answers={202: "The job"},
        sends={202: ACCEPTED_HEADERS},
        scope=Scope.READ,
        audit="context_store.synchronize",
        command="gateway connectors sync $CONNECTOR",
        python='job = await gateway.connectors.sync("support-desk", ["tickets"])\nawait job.wait()',
    ),
)

"""The 404 for a name in place of an id: with the nearest names that the caller may list, and how to list them."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from aiohttp import web

from gateway.access.identity.model import Caller, Scope
from gateway.contract.people import PersonSelection
from gateway.errors import NotFound
from gateway.jobs.model import JobFilter
from gateway.kinds.suggestions import nearest
from gateway.web.bodies import UnknownId
from gateway.web.keys import ACCESS, CALLER, ROUTE_OF, SERVICES

#: maximum names that are compared; a thousand take up to 25 ms
_COMPARED = 1000
#: maximum resources in a suggestion
_NAMED = 3
#: minimum characters of the beginning of a job's id
_SHORT_ID = 4


@dataclass(frozen=True, slots=True)
class _Named:
    """A resource of the organization, with the names that a caller may use for it."""

    id: UUID | str
    names: Sequence[str]


async def _connectors(app: web.Application, caller: Caller, _: str) -> Iterable[_Named]:
    found = await app[SERVICES].connectors.access.find(caller, limit=_COMPARED)
    applications = {kind.name: kind.spec.application for kind in app[SERVICES].catalog}
    return (_Named(each.id, (each.name, each.kind, applications.get(each.kind, each.kind))) for each in found)


async def _workspaces(app: web.Application, caller: Caller, _: str) -> Iterable[_Named]:
    return (
        _Named(each.id, (each.name,))
        for each in await app[SERVICES].connectors.access.workspaces(caller, limit=_COMPARED)
    )


async def _jobs(app: web.Application, caller: Caller, text: str) -> Iterable[_Named]:
    """The newest jobs whose ids begin with the text, because jobs have no names."""
    jobs = await app[SERVICES].jobs.access.latest(caller, JobFilter(), _COMPARED) if len(text) >= _SHORT_ID else ()
    return (_Named(each.id, (text,)) for each in jobs if str(each.id).startswith(text.lower()))


async def _schedules(app: web.Application, caller: Caller, _: str) -> Iterable[_Named]:
    return (
        _Named(each.id, (each.name,))
        for each in (await app[SERVICES].operations.schedules.find(caller, None, _COMPARED)).data
    )


async def _webhooks(app: web.Application, caller: Caller, _: str) -> Iterable[_Named]:
    found = (await app[SERVICES].events.webhooks.find(caller, None, _COMPARED)).data
    return (_Named(each.id, (each.description, each.url) if each.description else (each.url,)) for each in found)


async def _clients(app: web.Application, caller: Caller, _: str) -> Iterable[_Named]:
    return (_Named(each.id, (each.name,)) for each in await app[ACCESS].clients.all(caller))


async def _people(app: web.Application, caller: Caller, _: str) -> Iterable[_Named]:
    people = await app[ACCESS].directory.find(caller, PersonSelection(), limit=_COMPARED)
    names = ((each, [name for name in (each.name, each.email, each.subject) if name]) for each in people.data)
    return (_Named(each.id, known) for each, known in names if known)


async def _grants(app: web.Application, caller: Caller, _: str) -> Iterable[_Named]:
    grants = await app[ACCESS].authorization.grants(caller, None, _COMPARED)
    return (_Named(each.id, (each.host_name,)) for each in grants.data)


@dataclass(frozen=True, slots=True)
class _Resource:
    """A type of resource: the path, function and scope to list it."""

    #: the path that lists it
    path: str
    find: Callable[[web.Application, Caller, str], Awaitable[Iterable[_Named]]]
    scope: Scope = Scope.READ


_RESOURCES = {
    "connector_id": _Resource("/api/v1/integrations/connectors", _connectors),
    "workspace_id": _Resource("/api/v1/workspaces", _workspaces),
    "job_id": _Resource("/api/v1/jobs", _jobs),
    "schedule_id": _Resource("/api/v1/schedules", _schedules),
    "webhook_id": _Resource("/api/v1/webhooks", _webhooks),
    "client_id": _Resource("/api/v1/clients", _clients, Scope.ADMIN),
    "person_id": _Resource("/api/v1/people", _people, Scope.ADMIN),
    "grant_id": _Resource("/api/v1/grants", _grants, Scope.ADMIN),
}


async def explained(request: web.Request, error: UnknownId) -> NotFound:
    """The error with the nearest names."""
    resource, caller, route = _RESOURCES.get(error.name), request.get(CALLER), request.app[ROUTE_OF]
    matched = route.get(request.match_info.route)
    if resource is None or caller is None or resource.scope not in caller.client.scopes:
        return error
    found = await resource.find(request.app, caller, error.text)
    suggestion = _suggestion(error.text, found)
    if matched is not None and matched.is_page:
        return NotFound(f"{error.detail}{suggestion and f'; {suggestion}'}")
    listed = f"GET {resource.path} lists {resource.path.rpartition('/')[2]} with their ids"
    return NotFound(f"{error.detail}; {suggestion and f'{suggestion} '}{listed}")


def _suggestion(text: str, found: Iterable[_Named]) -> str:
    """A question with the resources of the nearest name; empty if no name is near."""
    by_name: dict[str, list[_Named]] = {}
    for each in found:
        for name in dict.fromkeys(each.names):
            by_name.setdefault(name, []).append(each)
    closest = nearest(text, by_name)
    if closest is None:
        return ""
    return f"did you mean {' or '.join(f'{each.names[0]} ({each.id})' for each in by_name[closest][:_NAMED])}?"

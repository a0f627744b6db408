"""Policies in the console, each with what it would have decided of the calls of the last day."""

import contextlib
from collections.abc import Mapping, Sequence

from aiohttp import web

from gateway.contract.policies import PolicyEffectView, PolicyMode, PolicyView
from gateway.errors import Conflict, FieldError, GatewayError, InvalidParams, PreconditionFailed
from gateway.web.api.policies import MAX_DESCRIPTION
from gateway.web.console.page import console_page, is_found, see_other
from gateway.web.console.session import read_console_form
from gateway.web.keys import ACCESS, CALLER, SERVICES

PAGE = "/console/policies"
#: policies of a page, and versions of a policy
_LIMIT, _VERSIONS = 25, 10
#: errors that are shown at the form
_REFUSED = (InvalidParams, Conflict, PreconditionFailed)


async def list_policies(request: web.Request) -> web.Response:
    """GET /console/policies: the policies by name, with their effect, and the form for another one."""
    return await _listed(request)


async def create_policy(request: web.Request) -> web.Response:
    """POST /console/policies: store a policy under a new name, and redirect to its page."""
    fields = await read_console_form(request)
    name = fields.get("name", "").strip()
    try:
        if await is_found(request.app[SERVICES].policy.change.get(request[CALLER], name)):
            raise Conflict(f"there is a policy {name!r} already; change it on its page")
        await _put(request, name, fields, None)
    except _REFUSED as error:
        return await _listed(request, problem=error, fields=fields)
    return see_other(f"{PAGE}/{name}")


async def show_policy(request: web.Request) -> web.Response:
    """GET /console/policies/{name}: the text, its effect by client, and the latest versions."""
    return await _shown(request)


async def change_policy(request: web.Request) -> web.Response:
    """POST /console/policies/{name}: store another version, unless somebody else did so after the page was shown."""
    fields, name = await read_console_form(request), request.match_info["name"]
    try:
        await _put(request, name, fields, f'"{fields.get("version", "")}"')
    except _REFUSED as error:
        return await _shown(request, problem=error, fields=fields)
    return see_other(f"{PAGE}/{name}")


async def delete_policy(request: web.Request) -> web.Response:
    """POST /console/policies/{name}/delete: from now on it decides nothing."""
    await read_console_form(request)
    await request.app[SERVICES].policy.change.delete(request[CALLER], request.match_info["name"], None)
    return see_other(PAGE)


async def _put(request: web.Request, name: str, fields: Mapping[str, str], if_match: str | None) -> None:
    description = fields.get("description", "").strip()
    if len(description) > MAX_DESCRIPTION:
        message = f"description: it has more than {MAX_DESCRIPTION} characters"
        raise InvalidParams(faults=[FieldError("/description", "description", "too_long", message)])
    await request.app[SERVICES].policy.change.put(
        request[CALLER],
        name,
        # Browsers send line breaks of fields as CR LF.
        cedar=fields.get("cedar", "").replace("\r\n", "\n"),
        mode=PolicyMode.ENFORCE if fields.get("mode") == PolicyMode.ENFORCE else PolicyMode.SHADOW,
        description=description or None,
        if_match=if_match,
    )


async def _effects(request: web.Request, policies: Sequence[PolicyView]) -> Mapping[str, PolicyEffectView]:
    """The effects that can be computed now, by the names of the policies."""
    trials = request.app[SERVICES].operations.policy_trials
    with contextlib.suppress(GatewayError):  # the policies are shown without them
        return await trials.effects_of(request[CALLER], [each.name for each in policies])
    return {}


async def _listed(
    request: web.Request, *, problem: GatewayError | None = None, fields: Mapping[str, str] | None = None
) -> web.Response:
    after = request.query.get("after", "")
    found = [
        each for each in (await request.app[SERVICES].policy.change.all(request[CALLER])).data if each.name > after
    ]
    page = sorted(found, key=lambda each: each.name)[: _LIMIT + 1]
    shown = page[:_LIMIT]
    return console_page(
        request,
        "policies.html",
        active="policies",
        status=422 if problem else 200,
        policies=shown,
        effects=await _effects(request, shown),
        names=await request.app[ACCESS].clients.names(request[CALLER], (each.created_by for each in shown)),
        is_first=not after,
        more=f"after={shown[-1].name}" if len(page) > _LIMIT else None,
        fields=fields or {},
        problem=problem,
    )


async def _shown(
    request: web.Request, *, problem: GatewayError | None = None, fields: Mapping[str, str] | None = None
) -> web.Response:
    policies, name = request.app[SERVICES].policy.change, request.match_info["name"]
    policy = await policies.get(request[CALLER], name)
    versions = (await policies.versions(request[CALLER], name)).data
    stored = {"cedar": policy.cedar, "mode": policy.mode.value, "description": policy.description or ""}
    return console_page(
        request,
        "policy.html",
        active="policies",
        status=422 if problem else 200,
        policy=policy,
        effect=(await _effects(request, [policy])).get(name),
        versions=versions[:_VERSIONS],
        names=await request.app[ACCESS].clients.names(request[CALLER], (each.created_by for each in versions)),
        fields=fields or stored,
        problem=problem,
    )

"""The organization's policies in Cedar, for administrators."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, ClassVar

from aiohttp import web
from msgspec import ValidationError, convert
from msgspec.structs import asdict
from pydantic import Field

from gateway.access.identity.model import Scope
from gateway.contract.jobs import AcceptedJobView
from gateway.contract.policies import (
    CheckedCases,
    NewPolicy,
    PolicyCase,
    PolicyList,
    PolicyMode,
    PolicyView,
    StoredPolicyView,
)
from gateway.errors import FieldError, GatewayError, InvalidParams
from gateway.web.api.jobs import accepted_response
from gateway.web.bodies import Body, Moment, QueryString, json_response, read_body, read_query
from gateway.web.keys import AUDIT, CALLER, REQUEST_ID, SERVICES
from gateway.web.route import ACCEPTED_HEADERS, Route

_PATH = "/api/v1/policies"
_NAMED = _PATH + "/{name}"
#: maximum characters of a policy; the language's own limit gives the better error
_MAX_TEXT = 100_000
#: maximum characters of a description
MAX_DESCRIPTION = 2000
#: PostgreSQL stores no NUL
_NO_NUL = r"^[^\x00]*$"
#: maximum cases of a request, and policies that it gives
_MAX_CASES, _MAX_TRIED = 500, 50


class PutPolicy(Body):
    """A new version of a policy."""

    EXAMPLES: ClassVar = {
        "read": {"cedar": 'permit(principal, action in Action::"read", resource);', "mode": "enforce"},
        "shadow": {
            "cedar": '@advice("Ask an administrator.")\nforbid(principal, action in Action::"write", resource);',
            "mode": "shadow",
            "description": "What would be refused if agents could only read?",
        },
    }

    cedar: str = Field(max_length=_MAX_TEXT, pattern=_NO_NUL, description="the statements in Cedar")
    mode: PolicyMode = Field(strict=False, description="`enforce` decides; `shadow` only counts and logs")
    description: Annotated[str, Field(max_length=MAX_DESCRIPTION, pattern=_NO_NUL)] | None = Field(
        None, description="what it is for"
    )


class TrialPolicy(Body):
    """A policy that is tried without being stored."""

    name: str = Field(max_length=100, description="its name in decisions")
    cedar: str = Field(max_length=_MAX_TEXT, pattern=_NO_NUL, description="the statements in Cedar")
    mode: PolicyMode = Field(PolicyMode.ENFORCE, strict=False, description="`shadow` decides nothing")


class CheckPolicies(Body):
    """Cases to decide."""

    EXAMPLES: ClassVar = {
        "stored": {"cases": [{"operation": "support-desk.tickets.get", "params": {"ticket_id": 1}}]},
        "given": {
            "cases": [{"operation": "support-desk.tickets.list", "surface": "mcp", "explain": True}],
            "policies": [{"name": "reading", "cedar": 'permit(principal, action in Action::"read", resource);'}],
        },
    }

    cases: list[dict[str, Any]] = Field(
        min_length=1,
        max_length=_MAX_CASES,
        description="`{operation, client?, person?, connector_id?, params?, surface?, explain?}`; `operation` is "
        "`kind.entity.action`, and `client` by default the caller",
    )
    policies: list[TrialPolicy] | None = Field(
        None, max_length=_MAX_TRIED, description="decide instead of the stored policies"
    )


class ReplayPolicies(Body):
    """The calls to decide again."""

    EXAMPLES: ClassVar = {
        "stored": {"since": "2026-01-31T09:00:00Z"},
        "given": {
            "since": "2026-01-31T09:00:00Z",
            "policies": [{"name": "reading", "cedar": 'permit(principal, action in Action::"read", resource);'}],
        },
    }

    since: Moment = Field(
        strict=False, description="the calls after this time; at most as long as the audit log is kept"
    )
    policies: list[TrialPolicy] | None = Field(
        None, max_length=_MAX_TRIED, description="decide instead of all stored policies, whatever their mode is"
    )


class SchemaQuery(QueryString):
    """The format of the schema."""

    format: str = Field("json", pattern="^(json|cedar)$", description="`json` or `cedar`")


async def list_policies(request: web.Request) -> PolicyList:
    """The current version of every policy, by name. Without an enforced policy, scopes alone decide what clients may
    do; with one, a call needs a permit as well.
    """
    return await request.app[SERVICES].policy.change.all(request[CALLER])


async def get_policy(request: web.Request) -> web.Response:
    """The current version of a policy."""
    return _tagged(await request.app[SERVICES].policy.change.get(request[CALLER], request.match_info["name"]))


async def list_policy_versions(request: web.Request) -> PolicyList:
    """The versions of a policy, the newest first, also after the policy was deleted. The newest 100 are kept."""
    return await request.app[SERVICES].policy.change.versions(request[CALLER], request.match_info["name"])


async def put_policy(request: web.Request) -> web.Response:
    """Stores a policy under a name, or a new version of it, which every process obeys within a second. The policy is
    checked against the schema: a fault is 422 `invalid_policy` with its line, its column and the nearest name. With
    `If-Match` only the named version is replaced.

    A permit or forbid may have the annotations `@id` (unique in the organization), `@advice`, `@approval` (or
    `@requireApproval`) with `@approvers`, `@expires` and `@reason`. A call that needs an approval waits as a
    job. `would_have` says what would have happened to the calls of the last day.
    """
    body = await read_body(request, PutPolicy)
    stored = await request.app[SERVICES].policy.change.put(
        request[CALLER],
        request.match_info["name"],
        cedar=body.cedar,
        mode=body.mode,
        description=body.description,
        if_match=request.headers.get("If-Match"),
    )
    would_have = None
    with suppress(GatewayError):  # the policy is stored
        would_have = await request.app[SERVICES].operations.policy_trials.effect_of(request[CALLER], stored.name)
    return _tagged(StoredPolicyView(**asdict(stored), would_have=would_have))


async def check_policies(request: web.Request) -> CheckedCases:
    """Decides cases by `policies`, else by the stored ones; nothing is sent. `policies` are checked as a PUT checks
    them. A faulty case is 422 and named by its index.
    """
    body = await read_body(request, CheckPolicies)
    request[AUDIT].what = None  # nothing is changed and nothing is sent
    cases = [_case(index, each) for index, each in enumerate(body.cases)]
    given = _given(body.policies)
    trials = request.app[SERVICES].operations.policy_trials
    return CheckedCases(await trials.check(request[CALLER], cases, given))


async def replay_policies(request: web.Request) -> web.Response:
    """Starts a job that decides the calls of the audit log since then by `policies`, else by all stored ones as if they
    were enforced. Its result counts the calls that would have been refused, asked about or redacted, also by client.
    The log has no params: calls whose decision depends on them are `undecided`. Only administrators read the result.
    """
    body, trials = await read_body(request, ReplayPolicies), request.app[SERVICES].operations.policy_trials
    job = await trials.replay(request[CALLER], body.since, _given(body.policies), request[REQUEST_ID])
    return accepted_response(request, job)


def _given(policies: Sequence[TrialPolicy] | None) -> Sequence[NewPolicy] | None:
    if policies is None:
        return None
    return [NewPolicy(name=each.name, mode=each.mode, cedar=each.cedar) for each in policies]


def _case(index: int, document: Any) -> PolicyCase:
    try:
        return convert(document, PolicyCase)
    except ValidationError as error:
        message = f"case {index}: {error}"
        raise InvalidParams(faults=[FieldError(f"/cases/{index}", f"cases[{index}]", "invalid", message)]) from error


async def delete_policy(request: web.Request) -> web.Response:
    """Deletes a policy; its versions can still be read. With `If-Match` only if that version is the current one."""
    name, if_match = request.match_info["name"], request.headers.get("If-Match")
    await request.app[SERVICES].policy.change.delete(request[CALLER], name, if_match)
    return web.Response(status=204)


async def get_policy_schema(request: web.Request) -> web.Response:
    """The schema of policies, generated from the catalog: an action for each operation, with the types of its params.
    `format=cedar` gives it as text.
    """
    policies = request.app[SERVICES].policy.change
    if read_query(request, SchemaQuery).format == "cedar":
        return web.Response(text=await policies.schema_text(request[CALLER]))
    return json_response(await policies.schema(request[CALLER]))


def _tagged(view: PolicyView) -> web.Response:
    return json_response(view, headers={"ETag": f'"{view.version}"'})


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        _PATH,
        list_policies,
        "List the organization's policies",
        "Policies",
        response=PolicyList,
        scope=Scope.ADMIN,
        command="gateway policy list",
        python="print(await gateway.policies.list())",
    ),
    Route(
        "GET",
        _PATH + "/schema",
        get_policy_schema,
        "Get the schema of policies",
        "Policies",
        query=SchemaQuery,
        media={200: ("application/json", "text/plain")},
        scope=Scope.ADMIN,
    ),
    Route(
        "GET",
        _NAMED,
        get_policy,
        "Get a policy",
        "Policies",
        response=PolicyView,
        errors=(404,),
        sends={200: ("ETag",)},
        scope=Scope.ADMIN,
    ),
    Route(
        "PUT",
        _NAMED,
        put_policy,
        "Store a policy, or a new version of it",
        "Policies",
        body=PutPolicy,
        response=StoredPolicyView,
        errors=(409, 412),
        reads=("If-Match",),
        sends={200: ("ETag",)},
        scope=Scope.ADMIN,
        audit="policy.put",
        command="gateway policy apply agents-read.cedar",
        python=(
            "cedar = 'permit(principal, action in Action::\"read\", resource);'\n"
            'print((await gateway.policies.put("agents-read", cedar, mode="shadow")).would_have)'
        ),
    ),
    Route(
        "POST",
        _PATH + "/check",
        check_policies,
        "Decide cases by policies, without sending anything",
        "Policies",
        body=CheckPolicies,
        response=CheckedCases,
        scope=Scope.ADMIN,
        audit="policy.check",
        command="gateway policy test cases.yaml",
        python='print(await gateway.policies.check([{"operation": "support-desk.tickets.list"}]))',
    ),
    Route(
        "POST",
        _PATH + "/replay",
        replay_policies,
        "Decide earlier calls by policies, without sending anything",
        "Policies",
        body=ReplayPolicies,
        response=AcceptedJobView,
        answers={202: "The job"},
        sends={202: ACCEPTED_HEADERS},
        scope=Scope.ADMIN,
        audit="policy.replay",
        command="gateway policy replay agents-read.cedar --since 7d",
        python="job = await gateway.policies.replay(week_ago)\nprint((await job.wait()).status)",
    ),
    Route(
        "DELETE",
        _NAMED,
        delete_policy,
        "Delete a policy",
        "Policies",
        answers={204: "The policy is deleted"},
        errors=(404, 412),
        reads=("If-Match",),
        scope=Scope.ADMIN,
        audit="policy.delete",
        command="gateway policy delete agents-read",
        python='await gateway.policies.delete("agents-read")',
    ),
    Route(
        "GET",
        _NAMED + "/versions",
        list_policy_versions,
        "List the versions of a policy",
        "Policies",
        response=PolicyList,
        errors=(404,),
        scope=Scope.ADMIN,
    ),
)

"""The organization itself, for its administrators."""

from typing import ClassVar

from aiohttp import web
from pydantic import Field

from gateway.access.identity.model import Scope
from gateway.contract.jobs import AcceptedJobView
from gateway.web.api.jobs import accepted_response
from gateway.web.bodies import Body, QueryString, read_body, read_query
from gateway.web.keys import CALLER, REQUEST_ID, SERVICES
from gateway.web.route import ACCEPTED_HEADERS, Route


class DeletionQuery(QueryString):
    """The confirmation."""

    EXAMPLE: ClassVar = {"confirm": "acme"}

    confirm: str = Field(description="the organization's name", max_length=500)


async def delete_organization(request: web.Request) -> web.Response:
    """Deletes everything of the organization: connectors (their OAuth tokens are revoked), copies, jobs, files,
    clients, people, policies and logs. Other clients are refused at once, and the caller keeps the scope `read` until
    the job's result expires. The result is a certificate: how many rows of each table were deleted, signed with a key
    of `GET /api/v1/audit/keys`.
    """
    query = read_query(request, DeletionQuery)
    deletion = request.app[SERVICES].operations.organization_deletion
    return accepted_response(request, await deletion.delete(request[CALLER], query.confirm, request[REQUEST_ID]))


class ExportBody(Body):
    """For whom the file is sealed."""

    EXAMPLES: ClassVar = {"export": {"recipient_key": "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="}}

    recipient_key: str = Field(
        description="the public key of the gateway that imports the file: `gateway keys recipient` prints it there",
        max_length=100,
    )
    without_files: bool = Field(False, description="leave out the stored files of jobs: results that are files")


async def export_organization(request: web.Request) -> web.Response:
    """Exports everything of the organization, for another gateway: the job's result is a file that only that gateway
    opens. Stored files of jobs are copied first. From then on, everything but `GET` answers 503 with `Retry-After`,
    until the operator says otherwise (`gateway admin organization resume`) or the organization is deleted. Queued jobs
    move with it; jobs that run get 40 s to finish, else the job fails and writes are served again. The operator of the
    other gateway runs `gateway import-organization FILE`.
    """
    body = await read_body(request, ExportBody)
    export = request.app[SERVICES].organization_export
    job = await export.start(
        request[CALLER], body.recipient_key, request[REQUEST_ID], with_files=not body.without_files
    )
    return accepted_response(request, job)


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/api/v1/organization/export",
        export_organization,
        "Export the organization for another gateway",
        "Organization",
        body=ExportBody,
        response=AcceptedJobView,
        answers={202: "The job"},
        sends={202: ACCEPTED_HEADERS},
        scope=Scope.ADMIN,
        audit="organization.export",
        python=(
            'job = await gateway.export_organization("hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=")\n'
            'print(await job.download("acme.sealed"))'
        ),
    ),
    Route(
        "DELETE",
        "/api/v1/organization",
        delete_organization,
        "Delete the organization and all its data",
        "Organization",
        query=DeletionQuery,
        response=AcceptedJobView,
        answers={202: "The job"},
        sends={202: ACCEPTED_HEADERS},
        errors=(409,),
        scope=Scope.ADMIN,
        audit="organization.delete",
        while_moving=True,
        command="gateway organization delete acme",
        python='job = await gateway.delete_organization("acme")\nprint((await job.wait()).status)',
    ),
)

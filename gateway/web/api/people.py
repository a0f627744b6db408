"""The organization's people and groups, for administrators."""

from typing import Annotated, Any, ClassVar
from uuid import UUID

from aiohttp import web
from pydantic import Field

from gateway.access.identity.model import Scope
from gateway.contract.jobs import DeletionView
from gateway.contract.members import ID
from gateway.contract.people import (
    MAX_GROUPS,
    MAX_WORKSPACES,
    GroupPage,
    GroupView,
    NewPerson,
    PeoplePage,
    PersonChange,
    PersonSelection,
    PersonStatus,
    PersonView,
)
from gateway.errors import NotFound
from gateway.web.bodies import Body, Name, QueryString, json_response, path_id, read_body, read_query
from gateway.web.keys import ACCESS, CALLER, REQUEST_ID, SERVICES
from gateway.web.route import Route

PEOPLE, PERSON = "/api/v1/people", "/api/v1/people/{person_id}"
GROUPS, GROUP = "/api/v1/groups", "/api/v1/groups/{name}"

_SCOPES = "scopes beside those of the groups"
_WORKSPACES = "names of the workspaces beside those of the groups; null for all"
#: of a body
Groups = Annotated[list[Name], Field(max_length=MAX_GROUPS)]
Workspaces = Annotated[list[Name], Field(max_length=MAX_WORKSPACES)]


class PersonQuery(QueryString):
    """A filter of people, and the page."""

    status: PersonStatus | None = Field(None, description="`active` or `suspended`")
    group: str | None = Field(None, description="the name of a group: its members")
    issuer: str | None = Field(None, description="the OpenID provider")
    subject: str | None = Field(None, description="the id at the issuer or in the client's namespace")
    client_id: UUID | None = Field(None, description="the client in whose namespace `subject` is")
    limit: int = Field(100, ge=1, le=1000, description="maximum people of a page")
    cursor: str | None = Field(None, description="`next_cursor` of the page before")


class AddPerson(Body):
    """A person to add. Without groups, scopes and workspaces the person may do nothing."""

    EXAMPLES: ClassVar = {
        "employee": {
            "email": "ada@example.com",
            "name": "Ada",
            "issuer": "https://login.example.com",
            "subject": "u-4711",
            "scopes": ["read", "write"],
            "workspaces": ["acme"],
        },
        "user of a client's product": {"client_id": ID, "subject": "user-7", "scopes": ["read"], "workspaces": None},
    }

    email: str | None = Field(None, description="the email address; it never identifies the person")
    name: str | None = Field(None, description="the person's name")
    issuer: str | None = Field(None, description="the OpenID provider that signs the person in: an https URL")
    subject: str | None = Field(None, description="the person's id at the issuer, or in the client's namespace")
    client_id: Annotated[UUID | None, Field(strict=False)] = Field(
        None, description="the client in whose namespace `subject` is, for users of its product"
    )
    groups: Groups = Field([], description="names of the person's groups")
    workspaces: Workspaces | None = Field([], description=_WORKSPACES)
    scopes: list[Annotated[Scope, Field(strict=False)]] = Field([], max_length=len(Scope), description=_SCOPES)


class ChangePerson(Body):
    """Members of a person to change; the others stay."""

    EXAMPLES: ClassVar = {"suspension": {"status": "suspended"}, "groups": {"groups": ["support"]}}

    email: str | None = Field(None, description="the email address; it never identifies the person")
    name: str | None = Field(None, description="the person's name")
    groups: Groups = Field([], description="names of the person's groups, which replace the current ones")
    workspaces: Workspaces | None = Field([], description=_WORKSPACES)
    scopes: list[Annotated[Scope, Field(strict=False)]] = Field([], max_length=len(Scope), description=_SCOPES)
    status: Annotated[PersonStatus, Field(strict=False)] = Field(
        PersonStatus.ACTIVE,
        description="`suspended` ends the person's tokens, sessions and grants at once; `active` brings none back",
    )


class GroupQuery(QueryString):
    """A filter of groups, and the page."""

    name_contains: str | None = Field(None, description="a part of the group's name")
    limit: int = Field(100, ge=1, le=1000, description="maximum groups of a page")
    cursor: str | None = Field(None, description="`next_cursor` of the page before")


class PutGroup(Body):
    """The rights of a group's members."""

    EXAMPLES: ClassVar = {"group": {"workspaces": ["acme"], "scopes": ["read", "write"]}}

    workspaces: Workspaces | None = Field(description="names of the workspaces that members may see; null for all")
    scopes: list[Annotated[Scope, Field(strict=False)]] = Field(
        max_length=len(Scope), description="scopes that members have"
    )


def _given(body: Body) -> dict[str, Any]:
    return {name: getattr(body, name) for name in body.model_fields_set}


async def list_people(request: web.Request) -> PeoplePage:
    """People of the organization, the oldest first."""
    query = read_query(request, PersonQuery)
    selection = PersonSelection(
        status=query.status,
        group=query.group,
        issuer=query.issuer,
        subject=query.subject,
        client_id=query.client_id,
    )
    return await request.app[ACCESS].directory.find(request[CALLER], selection, query.cursor, query.limit)


async def add_person(request: web.Request) -> web.Response:
    """Adds a person, who may do what `scopes` and the groups allow, in `workspaces` and those of the groups. The person
    is identified by `issuer` and `subject`, or by `client_id` and `subject`; never by the email address.
    """
    body = await read_body(request, AddPerson)
    person = await request.app[ACCESS].directory.create(request[CALLER], NewPerson(**_given(body)))
    return json_response(person, 201, {"Location": f"{PEOPLE}/{person.id}"})


async def get_person(request: web.Request) -> PersonView:
    """The person, with the rights that the person has beside those of the groups."""
    return await request.app[ACCESS].directory.get(request[CALLER], path_id(request, "person_id"))


async def change_person(request: web.Request) -> PersonView:
    """Changes a person, in every process within a second. A suspended person's tokens, console sessions and grants to
    agents' hosts end, and so do the schedules, webhooks and unfinished jobs that the person created.
    """
    body = await read_body(request, ChangePerson)
    change = PersonChange(**_given(body))
    return await request.app[ACCESS].directory.change(request[CALLER], path_id(request, "person_id"), change)


async def delete_person(request: web.Request) -> web.Response:
    """Ends what a suspension ends, and starts a job that deletes the person's own connectors with their synchronized
    copies. The person's name stays in the audit log.
    """
    job = await request.app[SERVICES].operations.deletion.delete_person(
        request[CALLER], path_id(request, "person_id"), request[REQUEST_ID]
    )
    return json_response(DeletionView(str(job.id)), 202, {"Location": f"/api/v1/jobs/{job.id}"})


def _group_name(request: web.Request) -> str:
    """The name in the path; raises NotFound for one that no group can have."""
    name = request.match_info["name"]
    if not name.isprintable():
        raise NotFound("there is no such group")
    return name


async def list_groups(request: web.Request) -> GroupPage:
    """The organization's groups by name, each with the rights of its members and their number."""
    query = read_query(request, GroupQuery)
    return await request.app[ACCESS].directory.groups(
        request[CALLER], containing=query.name_contains, cursor=query.cursor, limit=query.limit
    )


async def get_group(request: web.Request) -> GroupView:
    """The rights of a group's members."""
    return await request.app[ACCESS].directory.group(request[CALLER], _group_name(request))


async def put_group(request: web.Request) -> GroupView:
    """Creates a group, or replaces the rights of its members, in every process within a second. The rights of several
    groups add up: a member has the scopes of all groups in the workspaces of all of them.
    """
    body = await read_body(request, PutGroup)
    group = GroupView(_group_name(request), body.workspaces, list(body.scopes))
    return await request.app[ACCESS].directory.put_group(request[CALLER], group)


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        PEOPLE,
        list_people,
        "List people",
        "People",
        query=PersonQuery,
        response=PeoplePage,
        scope=Scope.ADMIN,
        command="gateway people list",
        python="print(await gateway.people.list())",
    ),
    Route(
        "POST",
        PEOPLE,
        add_person,
        "Add a person",
        "People",
        body=AddPerson,
        response=PersonView,
        answers={201: "The person"},
        sends={201: ("Location",)},
        errors=(409,),
        scope=Scope.ADMIN,
        audit="person.create",
        command="gateway people add --name Ada --issuer https://login.example.com --subject u-4711",
        python='print(await gateway.people.add(name="Ada", issuer="https://login.example.com", subject="u-4711"))',
    ),
    Route(
        "GET",
        PERSON,
        get_person,
        "Get a person",
        "People",
        response=PersonView,
        scope=Scope.ADMIN,
        command="gateway people show PERSON",
        python="print(await gateway.people.get(person_id))",
    ),
    Route(
        "PATCH",
        PERSON,
        change_person,
        "Change, suspend or reactivate a person",
        "People",
        body=ChangePerson,
        response=PersonView,
        errors=(409,),
        scope=Scope.ADMIN,
        audit="person.update",
        command="gateway people suspend PERSON",
        python="print(await gateway.people.suspend(person_id))",
    ),
    Route(
        "DELETE",
        PERSON,
        delete_person,
        "Delete a person",
        "People",
        response=DeletionView,
        answers={202: "The job that deletes the person's connectors"},
        sends={202: ("Location",)},
        errors=(409,),
        scope=Scope.ADMIN,
        audit="person.delete",
        command="gateway people remove PERSON",
        python="await (await gateway.people.remove(person_id)).result()",
    ),
    Route(
        "GET",
        GROUPS,
        list_groups,
        "List groups",
        "People",
        query=GroupQuery,
        response=GroupPage,
        scope=Scope.ADMIN,
        command="gateway people groups",
        python="print(await gateway.people.groups())",
    ),
    Route(
        "GET",
        GROUP,
        get_group,
        "Get a group",
        "People",
        response=GroupView,
        scope=Scope.ADMIN,
        python='print(await gateway.people.group("support"))',
    ),
    Route(
        "PUT",
        GROUP,
        put_group,
        "Create a group, or replace its rights",
        "People",
        body=PutGroup,
        response=GroupView,
        errors=(409,),
        scope=Scope.ADMIN,
        audit="group.update",
        command="gateway people group support --scope read --in-workspace acme",
        python='print(await gateway.people.put_group("support", scopes=["read"], workspaces=["acme"]))',
    ),
)

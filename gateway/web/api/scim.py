"""SCIM 2.0 (RFC 7643, 7644): the users and groups of identity providers."""

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
from aiohttp import web
from pydantic import ConfigDict, Field

from gateway.access.identity.model import Caller, Scope
from gateway.contract.scim import (
    MAX_FILTER,
    MAX_PAGE,
    MEDIA_TYPE,
    SCIM,
    ScimGroupList,
    ScimGroupView,
    ScimPatch,
    ScimQuery,
    ScimUserList,
    ScimUserView,
)
from gateway.web.bodies import QueryString, path_id, read_json, read_query
from gateway.web.keys import ACCESS, CALLER, REQUEST_ID, SERVICES
from gateway.web.route import Route
from gateway.web.server.authentication import by_token

_USERS, _GROUPS = SCIM + "/Users", SCIM + "/Groups"
_USER, _GROUP = _USERS + "/{user_id}", _GROUPS + "/{group_id}"
#: maximum bytes of the document of a user
_MAX_USER = 64 << 10
#: the highest number of a resource in a list
_LAST = 10**9


class ScimShown(QueryString):
    """The attributes of the response; other members are ignored, because providers send some."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    attributes: str | None = Field(
        None, max_length=MAX_FILTER, description="the only attributes of the response, separated by commas"
    )
    excludedAttributes: str | None = Field(  # noqa: N815  the name of RFC 7644
        None, max_length=MAX_FILTER, description="attributes that the response does not have, separated by commas"
    )


class ScimList(ScimShown):
    """A filter and a page."""

    EXAMPLE: ClassVar = {"filter": 'userName eq "ada@example.com"', "count": 100}

    filter: str | None = Field(
        None,
        description='such as `userName eq "ada@example.com"`, `emails[type eq "work"].value eq "ada@example.com"` or '
        '`members.value eq "…"`; by the attributes of the resource, with `eq`, `ne`, `co`, `sw`, `ew`, `pr`, `and`, '
        "`or` and `not`",
    )
    startIndex: int = Field(1, description="the number of the first resource, from 1")  # noqa: N815  as above
    count: int = Field(MAX_PAGE, description=f"maximum resources of the page, at most {MAX_PAGE}")


async def by_provider(request: web.Request) -> Caller:
    """The caller by its token: a provider, or an administrator."""
    return request.app[ACCESS].scim_tokens.provider(await by_token(request))


def _shown(request: web.Request) -> ScimQuery:
    query = read_query(request, ScimShown)
    return ScimQuery(attributes=query.attributes, excluded_attributes=query.excludedAttributes)


def _listed(request: web.Request) -> ScimQuery:
    query = read_query(request, ScimList)
    return ScimQuery(
        filter=query.filter or None,
        start_index=min(max(query.startIndex, 1), _LAST),
        count=min(max(query.count, 0), MAX_PAGE),
        attributes=query.attributes,
        excluded_attributes=query.excludedAttributes,
    )


def _answer(document: Mapping[str, Any], status: int = 200) -> web.Response:
    headers = {"Location": document["meta"]["location"]} if status == 201 and "meta" in document else None
    body = msgspec.json.encode(document)
    return web.Response(body=body, status=status, content_type=MEDIA_TYPE, headers=headers)


async def list_scim_users(request: web.Request) -> web.Response:
    """The people of the organization, the oldest first, without those of clients' products and those of several
    organizations.
    """
    return _answer(await (await request.app[ACCESS].provisioning()).users(request[CALLER], _listed(request)))


async def create_scim_user(request: web.Request) -> web.Response:
    """Adds a person, who has the rights of the groups alone. If the token has an issuer, a person whom it names already
    is taken over.
    """
    document, provisioning = await read_json(request, _MAX_USER), await request.app[ACCESS].provisioning()
    return _answer(await provisioning.create_user(request[CALLER], document, _shown(request)), 201)


async def get_scim_user(request: web.Request) -> web.Response:
    """The person as a provider sees it."""
    provisioning = await request.app[ACCESS].provisioning()
    return _answer(await provisioning.user(request[CALLER], path_id(request, "user_id"), _shown(request)))


async def replace_scim_user(request: web.Request) -> web.Response:
    """Replaces what a provider says of a person; without `active` the person stays active or suspended."""
    document, provisioning = await read_json(request, _MAX_USER), await request.app[ACCESS].provisioning()
    user_id = path_id(request, "user_id")
    return _answer(await provisioning.replace_user(request[CALLER], user_id, document, _shown(request)))


async def patch_scim_user(request: web.Request) -> web.Response:
    """Changes a person. With `active` false everything that acts for the person ends within a second in every process,
    as for `status` `suspended` of `PATCH /api/v1/people/{id}`.
    """
    document, provisioning = await read_json(request, _MAX_USER), await request.app[ACCESS].provisioning()
    user_id = path_id(request, "user_id")
    return _answer(await provisioning.patch_user(request[CALLER], user_id, document, _shown(request)))


async def delete_scim_user(request: web.Request) -> web.Response:
    """Deletes a person as `DELETE /api/v1/people/{id}` does: everything that acts for the person ends, and a job
    deletes the person's own connectors.
    """
    caller, user_id = request[CALLER], path_id(request, "user_id")
    await (await request.app[ACCESS].provisioning()).require_user(caller, user_id)
    await request.app[SERVICES].operations.deletion.delete_person(caller, user_id, request[REQUEST_ID])
    return web.Response(status=204)


async def list_scim_groups(request: web.Request) -> web.Response:
    """The groups of the organization, by name. A page has fewer groups than `count` if they have many members."""
    return _answer(await (await request.app[ACCESS].provisioning()).groups(request[CALLER], _listed(request)))


async def create_scim_group(request: web.Request) -> web.Response:
    """Adds a group. Its members have rights when an administrator gives them to the group by its name:
    `PUT /api/v1/groups/{name}`.
    """
    document, provisioning = await read_json(request), await request.app[ACCESS].provisioning()
    return _answer(await provisioning.create_group(request[CALLER], document, _shown(request)), 201)


async def get_scim_group(request: web.Request) -> web.Response:
    """The group with its members."""
    provisioning = await request.app[ACCESS].provisioning()
    return _answer(await provisioning.group(request[CALLER], path_id(request, "group_id"), _shown(request)))


async def replace_scim_group(request: web.Request) -> web.Response:
    """Replaces the name of a group and, if the body has members, its members."""
    document, provisioning = await read_json(request), await request.app[ACCESS].provisioning()
    group_id = path_id(request, "group_id")
    return _answer(await provisioning.replace_group(request[CALLER], group_id, document, _shown(request)))


async def patch_scim_group(request: web.Request) -> web.Response:
    """Adds members, removes them by `members[value eq "…"]`, replaces them, or renames the group. A group that policies
    name keeps its name (409).
    """
    document, provisioning = await read_json(request), await request.app[ACCESS].provisioning()
    group_id = path_id(request, "group_id")
    return _answer(await provisioning.patch_group(request[CALLER], group_id, document, _shown(request)))


async def delete_scim_group(request: web.Request) -> web.Response:
    """Deletes a group; its members lose its rights, and clients no longer act for them."""
    await (await request.app[ACCESS].provisioning()).delete_group(request[CALLER], path_id(request, "group_id"))
    return web.Response(status=204)


async def get_scim_config(request: web.Request) -> web.Response:
    """What the endpoints support (RFC 7643 §5)."""
    return _answer((await request.app[ACCESS].provisioning()).provider_config())


async def list_scim_schemas(request: web.Request) -> web.Response:
    """The schemas of users and groups (RFC 7643 §7)."""
    return _answer((await request.app[ACCESS].provisioning()).schemas())


async def get_scim_schema(request: web.Request) -> web.Response:
    """One of the schemas."""
    return _answer((await request.app[ACCESS].provisioning()).schema(request.match_info["schema"]))


async def list_scim_resource_types(request: web.Request) -> web.Response:
    """The types of resources (RFC 7643 §6)."""
    return _answer((await request.app[ACCESS].provisioning()).resource_types())


async def get_scim_resource_type(request: web.Request) -> web.Response:
    """One of the types."""
    return _answer((await request.app[ACCESS].provisioning()).resource_type(request.match_info["name"]))


def _route(method: str, path: str, handler: Any, summary: str, **members: Any) -> Route:
    """A route for providers and administrators."""
    return Route(
        method, path, handler, summary, "SCIM", scope=Scope.ADMIN, authenticate=by_provider, is_scim=True, **members
    )


def _discovery(path: str, handler: Any, summary: str) -> Route:
    return _route("GET", SCIM + path, handler, summary, media={200: (MEDIA_TYPE,)})


_CREATED: dict[str, Any] = {"sends": {201: ("Location",)}, "errors": (409,)}
_DELETED: dict[str, Any] = {"errors": (409,)}

#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    _route("GET", _USERS, list_scim_users, "List users", query=ScimList, response=ScimUserList),
    _route(
        "POST",
        _USERS,
        create_scim_user,
        "Add a user",
        body=ScimUserView,
        query=ScimShown,
        response=ScimUserView,
        answers={201: "The user"},
        audit="person.create",
        **_CREATED,
    ),
    _route("GET", _USER, get_scim_user, "Get a user", query=ScimShown, response=ScimUserView),
    _route(
        "PUT",
        _USER,
        replace_scim_user,
        "Replace a user",
        body=ScimUserView,
        query=ScimShown,
        response=ScimUserView,
        audit="person.update",
    ),
    _route(
        "PATCH",
        _USER,
        patch_scim_user,
        "Change or suspend a user",
        body=ScimPatch,
        query=ScimShown,
        response=ScimUserView,
        audit="person.update",
    ),
    _route(
        "DELETE",
        _USER,
        delete_scim_user,
        "Delete a user",
        answers={204: "The user is deleted"},
        audit="person.delete",
        **_DELETED,
    ),
    _route("GET", _GROUPS, list_scim_groups, "List groups", query=ScimList, response=ScimGroupList),
    _route(
        "POST",
        _GROUPS,
        create_scim_group,
        "Add a group",
        body=ScimGroupView,
        query=ScimShown,
        response=ScimGroupView,
        answers={201: "The group"},
        audit="group.create",
        **_CREATED,
    ),
    _route("GET", _GROUP, get_scim_group, "Get a group", query=ScimShown, response=ScimGroupView),
    _route(
        "PUT",
        _GROUP,
        replace_scim_group,
        "Replace a group",
        body=ScimGroupView,
        query=ScimShown,
        response=ScimGroupView,
        audit="group.update",
    ),
    _route(
        "PATCH",
        _GROUP,
        patch_scim_group,
        "Change the members or the name of a group",
        body=ScimPatch,
        query=ScimShown,
        response=ScimGroupView,
        audit="group.update",
    ),
    _route(
        "DELETE",
        _GROUP,
        delete_scim_group,
        "Delete a group",
        answers={204: "The group is deleted"},
        audit="group.delete",
    ),
    _discovery("/ServiceProviderConfig", get_scim_config, "Get what SCIM supports"),
    _discovery("/Schemas", list_scim_schemas, "List the schemas of SCIM"),
    _discovery("/Schemas/{schema}", get_scim_schema, "Get a schema of SCIM"),
    _discovery("/ResourceTypes", list_scim_resource_types, "List the resource types of SCIM"),
    _discovery("/ResourceTypes/{name}", get_scim_resource_type, "Get a resource type of SCIM"),
)

"""Documents of users and groups, read and written with `scim2-models`.

Other attributes than those of the models below are ignored and not stored.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar
from uuid import UUID

import msgspec
from pydantic import Field, ValidationError
from scim2_models import (
    URN,
    AuthenticationScheme,
    Bulk,
    CaseExact,
    ChangePassword,
    ComplexAttribute,
    Context,
    Error,
    ETag,
    Filter,
    Group,
    Meta,
    Mutability,
    Patch,
    PatchOp,
    Reference,
    Required,
    Resource,
    ResourceType,
    ResponseParameters,
    Returned,
    SCIMException,
    ScimFilter,
    ScimPolicy,
    ServiceProviderConfig,
    Sort,
    Uniqueness,
    User,
)
from scim2_models.path import CompareOperator, Comparison, LogicalExpr, LogicalOperator, ValuePath
from scim2_models.path.expressions import FilterNode

from gateway.access.identity.model import id_of
from gateway.access.provisioning.model import StoredGroup, StoredUser, shown_name
from gateway.access.provisioning.refusals import refused
from gateway.contract.scim import (
    GROUP_SCHEMA,
    MAX_FILTER,
    MAX_MEMBERS,
    MAX_OPERATIONS,
    MAX_PAGE,
    SCIM,
    USER_SCHEMA,
    GroupChange,
    MembersChange,
    ScimQuery,
    UserState,
)
from gateway.errors import GatewayError

T = TypeVar("T")
R = TypeVar("R", bound=Resource[Any])

#: maximum email addresses of a user, and characters of one text
_MAX_EMAILS, _MAX_TEXT = 20, 1000
#: maximum operations of a patch of a user, each of which is compared with all addresses, and values in their lists
_MAX_USER_OPERATIONS, _MAX_USER_VALUES = 100, 200
#: what providers send that RFC 7644 does not have: unknown attributes, `value` of a removal, filters without a match
_TOLERANT = ScimPolicy(
    unknown=ScimPolicy.Unknown.ignore,
    remove_value_as_filter=ScimPolicy.RemoveValue.apply,
    unmatched_path_filter=ScimPolicy.UnmatchedPathFilter.create,
)
#: attributes with one value, for which Entra may send a list: `[{"$ref": null, "value": "…"}]`
_SINGULAR = frozenset({"active", "displayname", "externalid", "username"})
#: maximum items of the other lists of a document, of which pydantic would make an error for each, and its attributes
_MAX_ITEMS, _MAX_ATTRIBUTES = 20, 1_000
_LISTS = frozenset({"schemas", "emails"})
_ONE_MEMBER = re.compile(r'members\[\s*value\s+eq\s+"([^"\\]+)"\s*\]', re.IGNORECASE)


class Name(ComplexAttribute):
    formatted: str | None = None
    """The whole name."""

    family_name: str | None = None
    """The family name."""

    given_name: str | None = None
    """The given name."""


class Email(ComplexAttribute):
    value: str | None = None
    """The address."""

    type: str | None = Field(None, examples=["work", "home", "other"])
    """Its function."""

    display: str | None = None
    """How it is shown."""

    primary: bool | None = None
    """Whether it is the person's email address."""


class Membership(ComplexAttribute):
    value: Annotated[str | None, Mutability.read_only, CaseExact.true] = None
    """The id of the group."""

    ref: Annotated[Reference[Group] | None, Mutability.read_only] = Field(
        None, serialization_alias="$ref", validation_alias="$ref"
    )
    """The URL of the group."""

    display: Annotated[str | None, Mutability.read_only] = None
    """The name of the group."""

    type: Annotated[str | None, Mutability.read_only] = None
    """`direct`."""


class ScimUser(Resource[Any]):
    """A person; other attributes of RFC 7643 are ignored and not stored."""

    __schema__ = URN(USER_SCHEMA)

    user_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    """The unique name, in any case."""

    display_name: str | None = None
    """The name that is shown."""

    name: Name | None = None
    """The parts of the name."""

    emails: list[Email] | None = None
    """The email addresses."""

    active: bool | None = None
    """False for a suspended person."""

    groups: Annotated[list[Membership] | None, Mutability.read_only] = None
    """The groups, which the members of groups say."""


class GroupMember(ComplexAttribute):
    value: Annotated[str | None, Mutability.immutable, CaseExact.true] = None
    """The id of the user."""

    ref: Annotated[Reference[User] | None, Mutability.immutable] = Field(  # type: ignore[type-arg]
        None, serialization_alias="$ref", validation_alias="$ref"
    )
    """The URL of the user."""

    type: Annotated[str | None, Mutability.immutable] = Field(None, examples=["User"])
    """`User`."""

    display: Annotated[str | None, Mutability.read_only] = None
    """The name of the user."""


class ScimGroup(Resource[Any]):
    """A group, whose rights an administrator sets by its name."""

    __schema__ = URN(GROUP_SCHEMA)

    display_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    """The group's name."""

    members: Annotated[list[GroupMember] | None, Returned.default] = None
    """The people in the group."""


def read_user(document: Mapping[str, Any]) -> UserState:
    """The state of the user in the body of POST or PUT."""
    return _state(_translated(_validated, ScimUser, document))


def patched_user(user: StoredUser, document: Mapping[str, Any]) -> UserState:
    """The state of the user after the operations of a patch."""
    operations = [_with_one_value(part) for each in _operations(document) for part in _with_paths(each)]
    if len(operations) > _MAX_USER_OPERATIONS or sum(map(_values_in, operations)) > _MAX_USER_VALUES:
        most = f"{_MAX_USER_OPERATIONS} operations with {_MAX_USER_VALUES} values"
        raise refused("tooMany", f"a patch of a user may have {most}; send several")
    model = _model_of(user)
    # An administrator may have changed the name since; what the provider did not send is made from its parts.
    attributes = msgspec.json.decode(user.attributes)
    if shown_name(attributes) == user.name:
        model.display_name = attributes.get("displayName")

    def patch(document: Mapping[str, Any]) -> None:
        read = PatchOp[ScimUser].model_validate(
            document, scim_ctx=Context.RESOURCE_PATCH_REQUEST, scim_policy=_TOLERANT
        )
        read.patch(model, scim_policy=_TOLERANT)

    _translated(patch, {"schemas": [str(PatchOp.__schema__)], "Operations": operations})
    return _state(model)


def read_group(document: Mapping[str, Any]) -> GroupChange:
    """The state of the group in the body of POST or PUT; its members are UNSET if the body has none."""
    members = _named(document, "members")
    others = {name: value for name, value in document.items() if name.lower() != "members"}
    group = _translated(_validated, ScimGroup, others)
    _require_text("displayName", group.display_name)
    _require_text("externalId", group.external_id)
    changes = () if members is None else (MembersChange(remove=None, add=_member_ids(members)),)
    return GroupChange(name=group.display_name or "", external_id=group.external_id, members=changes)


def group_change(document: Mapping[str, Any]) -> GroupChange:
    """What the operations of a patch change of a group."""
    name: Any = msgspec.UNSET
    external_id: Any = msgspec.UNSET
    members: list[MembersChange] = []
    for operation in map(_with_one_value, _operations(document)):
        for op, path, value in _parts(operation):
            match path.lower().removeprefix(f"{GROUP_SCHEMA.lower()}:"):
                case "displayname":
                    name = _text_of("displayName", value) if op != "remove" else ""
                    if not name:
                        raise refused("mutability", "displayName is required")
                case "externalid":
                    external_id = None if op == "remove" or value is None else _text_of("externalId", value)
                case "members":
                    members.append(_members_change(op, value))
                case text if text.startswith("members["):
                    members.append(MembersChange(remove=_selected(op, path)))
                case "id" | "meta" | "schemas" if op != "remove":
                    pass  # Okta sends the id with each new name
                case text if not re.fullmatch(r"[\w$.:\[\]\" -]{1,300}", text):
                    raise refused("invalidPath", "the path of an operation is not a path")
                case _:
                    pass  # an attribute that the gateway does not have
    if sum(len(each.add) + len(each.remove or ()) for each in members) > MAX_MEMBERS:
        raise refused("tooMany", f"a request may name {MAX_MEMBERS:,} members; send several")
    return GroupChange(name=name, external_id=external_id, members=members)


def response_parameters(resource: type[R], query: ScimQuery) -> "ResponseParameters[R]":
    """The attributes that the response has."""
    given = {"attributes": query.attributes, "excludedAttributes": query.excluded_attributes}
    named: dict[str, Any] = {name: text.split(",") for name, text in given.items() if text and text.strip(" ,")}
    if len(named) == 2:
        raise refused("invalidValue", "send attributes or excludedAttributes, not both")
    for name, texts in named.items():
        named[name] = [each.strip() for each in texts if each.strip()]
        if len(named[name]) > len(ScimUser.model_fields) * 4:
            raise refused("invalidValue", f"{name} has too many names")
    # Without a schema of the resource, a path names an attribute that the gateway does not have: it selects nothing.
    model: Any = ResponseParameters.__class_getitem__(resource)
    read: ResponseParameters[R] = _translated(model.model_validate, named)
    return read


def state_of(user: StoredUser) -> UserState:
    """The state that the user has."""
    return _state(_model_of(user))


def user_document(user: StoredUser, base_url: str, parameters: "ResponseParameters[ScimUser] | None") -> dict[str, Any]:
    """The user for the response."""
    model = _model_of(user)
    model.groups = [
        Membership(
            value=each["value"], display=each["display"], type="direct", ref=f"{base_url}/Groups/{each['value']}"
        )
        for each in msgspec.json.decode(user.groups)
    ]
    model.meta = Meta(
        resource_type="User",
        created=user.created_at,
        last_modified=user.updated_at,
        location=f"{base_url}/Users/{user.id}",
    )
    return model.model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE, response_parameters=parameters)


def group_document(
    group: StoredGroup, members: bytes, base_url: str, parameters: "ResponseParameters[ScimGroup] | None"
) -> dict[str, Any]:
    """The group for the response; `members` is their JSON, which PostgreSQL has made."""
    model = ScimGroup(
        id=str(group.id),
        external_id=group.external_id,
        display_name=group.name,
        members=[GroupMember(value="a member")],  # whether the response has members is up to the parameters
        meta=Meta(
            resource_type="Group",
            created=group.created_at,
            last_modified=group.updated_at,
            location=f"{base_url}/Groups/{group.id}",
        ),
    )
    document = model.model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE, response_parameters=parameters)
    if "members" in document:
        document["members"] = msgspec.Raw(members)
    return document


def has_members(parameters: "ResponseParameters[ScimGroup] | None") -> bool:
    """Whether responses have the members of groups."""
    shown = ScimGroup(display_name="a name", members=[GroupMember(value="a member")])
    return "members" in shown.model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE, response_parameters=parameters)


def parsed_filter(resource: type[Resource[Any]], text: str) -> FilterNode:
    """The parsed filter, whose operators and values fit the attributes."""
    if len(text) > MAX_FILTER:
        raise refused("invalidFilter", f"the filter has more than {MAX_FILTER:,} characters")
    parsed: ScimFilter[Any] = _translated(ScimFilter.__class_getitem__(resource), text)
    return parsed.ast


def provider_config(base_url: str) -> dict[str, Any]:
    """What the endpoints support."""
    return ServiceProviderConfig(
        documentation_uri=f"{base_url.removesuffix(SCIM)}/docs/how-to/scim",
        patch=Patch(supported=True),
        bulk=Bulk(supported=False, max_operations=0, max_payload_size=0),
        filter=Filter(supported=True, max_results=MAX_PAGE),
        change_password=ChangePassword(supported=False),
        sort=Sort(supported=False),
        etag=ETag(supported=False),
        authentication_schemes=[
            AuthenticationScheme(
                type=AuthenticationScheme.Type.oauthbearertoken,
                name="Bearer token",
                description="A token of POST /api/v1/scim/tokens.",
                primary=True,
            )
        ],
        meta=Meta(resource_type="ServiceProviderConfig", location=f"{base_url}/ServiceProviderConfig"),
    ).model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE)


def schemas(base_url: str) -> Sequence[dict[str, Any]]:
    """The schemas of users and groups."""
    found = []
    for resource in (ScimUser, ScimGroup):
        schema = resource.to_schema()
        schema.name, schema.description = resource.__name__.removeprefix("Scim"), (resource.__doc__ or "").strip()
        schema.meta = Meta(resource_type="Schema", location=f"{base_url}/Schemas/{schema.id}")
        found.append(schema.model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE))
    return found


def resource_types(base_url: str) -> Sequence[dict[str, Any]]:
    """The types of resources."""
    return [
        ResourceType(
            id=name,
            name=name,
            endpoint=f"/{name}s",
            schema_=schema,
            meta=Meta(resource_type="ResourceType", location=f"{base_url}/ResourceTypes/{name}"),
        ).model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE)
        for name, schema in (("User", USER_SCHEMA), ("Group", GROUP_SCHEMA))
    ]


def _validated(resource: type[R], document: Mapping[str, Any]) -> R:
    # PUT has the same members as POST; the attributes that only the gateway sets are ignored in both.
    if len(document) > _MAX_ATTRIBUTES:
        raise refused("invalidValue", f"the document has more than {_MAX_ATTRIBUTES:,} attributes")
    document = {name: value for name, value in document.items() if _attribute(name) != "groups"}
    for name, value in document.items():
        if _attribute(name) in _LISTS and isinstance(value, list) and len(value) > _MAX_ITEMS:
            raise refused("invalidValue", f"{_attribute(name)} has more than {_MAX_ITEMS} values")
    return resource.model_validate(document, scim_ctx=Context.RESOURCE_CREATION_REQUEST, scim_policy=_TOLERANT)


def _attribute(name: str) -> str:
    """The name of an attribute in lower case, without its schema."""
    return name.rpartition(":")[2].lower()


def _translated(read: Callable[..., T], *arguments: Any) -> T:
    """The result of the library, or its error as ours."""
    try:
        return read(*arguments)
    except ValidationError as error:
        raise _refusal(Error.from_validation_error(error.errors(include_url=False)[0])) from error
    except SCIMException as error:
        raise _refusal(error.to_error()) from error
    except RecursionError as error:
        raise refused("invalidSyntax", "the document is nested too deeply") from error


def _refusal(error: Error) -> GatewayError:
    return refused(error.scim_type or "invalidValue", (error.detail or "").partition("\n")[0])


def _model_of(user: StoredUser) -> ScimUser:
    attributes = msgspec.json.decode(user.attributes)
    return ScimUser(
        id=str(user.id),
        external_id=user.external_id,
        user_name=user.user_name,
        display_name=user.name,
        name=Name(**{_python_name(name): text for name, text in (attributes.get("name") or {}).items()}),
        emails=[Email(**each) for each in msgspec.json.decode(user.emails)],
        active=user.disabled_at is None,
    )


def _python_name(name: str) -> str:
    return {"familyName": "family_name", "givenName": "given_name"}.get(name, name)


def _state(user: ScimUser) -> UserState:
    """The state that the model says; refuses texts that cannot be stored."""
    emails = [each.model_dump(scim_ctx=Context.DEFAULT) for each in user.emails or () if each.value]
    name: dict[str, str] = {} if user.name is None else user.name.model_dump(scim_ctx=Context.DEFAULT)
    if len(emails) > _MAX_EMAILS:
        raise refused("invalidValue", f"emails has more than {_MAX_EMAILS} addresses")
    texts = {"userName": user.user_name, "externalId": user.external_id, "displayName": user.display_name}
    texts |= {f"name.{part}": text for part, text in name.items()}
    texts |= {f"emails[{place}].{part}": text for place, each in enumerate(emails) for part, text in each.items()}
    for path, text in texts.items():
        _require_text(path, text)
    return UserState(
        user_name=user.user_name or "",
        external_id=user.external_id,
        display_name=user.display_name or None,
        name={part: text for part, text in name.items() if text},
        emails=emails,
        active=user.active,
    )


def _require_text(path: str, text: object) -> None:
    if isinstance(text, str) and not (len(text) <= _MAX_TEXT and text.isprintable()):
        raise refused("invalidValue", f"{path} must be at most {_MAX_TEXT:,} printable characters")


def _text_of(path: str, value: object) -> str:
    if not isinstance(value, str):
        raise refused("invalidValue", f"{path} must be a text")
    _require_text(path, value)
    return value


def _named(document: Mapping[str, Any], wanted: str) -> Any:
    """The member of this name in any case; None without it."""
    return next((value for name, value in document.items() if name.lower() == wanted), None)


def _operations(document: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The operations of a patch."""
    operations = _named(document, "operations")
    if not isinstance(operations, list) or not operations:
        raise refused("invalidSyntax", "Operations must be a list of one or more operations")
    if len(operations) > MAX_OPERATIONS:
        raise refused("tooMany", f"a patch may have {MAX_OPERATIONS} operations; send several")
    if not all(isinstance(each, dict) for each in operations):
        raise refused("invalidSyntax", "each of Operations must be an object")
    return operations


def _values_in(operation: Mapping[str, Any]) -> int:
    """The number of values in the lists of an operation."""
    value = operation.get("value")
    lists = value.values() if isinstance(value, dict) else [value]
    return sum(len(each) for each in lists if isinstance(each, list))


def _with_paths(operation: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The operation; of one without a path, the members with a filter, such as Entra's `emails[type eq "work"].value`,
    are operations of their own.
    """
    value = operation.get("value")
    if operation.get("path") or not isinstance(value, dict) or not any("[" in name for name in value):
        return [operation]
    others = {name: each for name, each in value.items() if "[" not in name}
    filtered = [{**operation, "path": name, "value": each} for name, each in value.items() if "[" in name]
    return [*([{**operation, "value": others}] if others else []), *filtered]


def _with_one_value(operation: Mapping[str, Any]) -> Mapping[str, Any]:
    """The operation with the value instead of Entra's list of one value, if its attribute has one."""
    path, value = operation.get("path"), operation.get("value")
    if not isinstance(path, str) or path.lower() not in _SINGULAR or not isinstance(value, list) or len(value) != 1:
        return operation
    one = value[0]
    return {**operation, "value": one["value"]} if isinstance(one, dict) and "value" in one else operation


def _parts(operation: Mapping[str, Any]) -> Sequence[tuple[str, str, Any]]:
    """`(op, path, value)` of an operation of a group; one without a path has one for each member of its value."""
    op, path, value = operation.get("op"), operation.get("path"), operation.get("value")
    if not isinstance(op, str) or op.lower() not in ("add", "replace", "remove"):
        raise refused("invalidValue", "op must be add, replace or remove")
    if isinstance(path, str) and path:
        return [(op.lower(), path, value)]
    if path not in (None, ""):
        raise refused("invalidPath", "the path of an operation must be a text")
    if op.lower() == "remove":
        raise refused("noTarget", "a removal needs a path")
    if not isinstance(value, dict):
        raise refused("invalidValue", "an operation without a path needs an object as value")
    return [(op.lower(), name, each) for name, each in value.items()]


def _members_change(op: str, value: Any) -> MembersChange:
    match op:
        case "add":
            return MembersChange(add=_member_ids(value))
        case "replace":
            return MembersChange(remove=None, add=_member_ids([] if value is None else value))
        case _:  # Entra names the members to remove by value
            return MembersChange(remove=None if value is None else _member_ids(value))


def _member_ids(value: Any) -> Sequence[UUID]:
    """The ids in a list of members, or in one member."""
    members = value if isinstance(value, list) else [value]
    if len(members) > MAX_MEMBERS:
        raise refused("tooMany", f"a request may name {MAX_MEMBERS:,} members; send several")
    texts = [_named(each, "value") if isinstance(each, dict) else each for each in members]
    return list(dict.fromkeys(map(_member_id, texts)))


def _member_id(text: object) -> UUID:
    if not isinstance(text, str):
        raise refused("invalidValue", "each of members must have the id of a user as value")
    found = id_of(text)
    if found is None:
        raise refused("invalidValue", f"members: there is no user {text[:60]!r}")
    return found


def _selected(op: str, path: str) -> Sequence[UUID]:
    """The members that a path such as `members[value eq "…"]` selects for removal; unknown ids select nobody."""
    if op != "remove":
        raise refused("invalidPath", "members are added and replaced by the path members; a filter is for removals")
    one = _ONE_MEMBER.fullmatch(path)
    node = None if one else parsed_filter(ScimGroup, path)
    texts = [one[1]] if one else _values(node.val_filter if isinstance(node, ValuePath) else node)
    return [found for found in map(id_of, texts) if found is not None]


def _values(node: FilterNode | None) -> Sequence[str]:
    """The values of comparisons `value eq "…"` that `or` connects."""
    if isinstance(node, LogicalExpr) and node.op is LogicalOperator.or_:
        return [text for term in node.terms for text in _values(term)]
    if (
        isinstance(node, Comparison)
        and node.op is CompareOperator.eq
        and str(node.attr_path).lower() == "value"
        and isinstance(node.value, str)
    ):
        return [node.value]
    raise refused("invalidFilter", 'members are removed by members[value eq "id"]')

"""Filters of SCIM as conditions of SQL."""

from collections.abc import Mapping
from dataclasses import dataclass

from scim2_models.path import (
    AttrPath,
    CompareOperator,
    Comparison,
    FilterNode,
    FilterVisitor,
    LogicalExpr,
    LogicalOperator,
    Not,
    Present,
    ValuePath,
)

from gateway.access.identity.model import id_of
from gateway.access.provisioning.model import user_key
from gateway.access.provisioning.refusals import refused
from gateway.access.provisioning.store import EMAILS, NAMED, USER_NAME
from gateway.contract.scim import GROUP_SCHEMA, USER_SCHEMA
from gateway.foundation import payloads
from gateway.foundation.db.where import Where

_SCHEMAS = (USER_SCHEMA.lower(), GROUP_SCHEMA.lower())


@dataclass(frozen=True, slots=True)
class Attribute:
    """The expression of an attribute."""

    sql: str
    #: whether upper and lower case differ
    is_exact: bool = False
    is_id: bool = False
    is_boolean: bool = False


@dataclass(frozen=True, slots=True)
class Values:
    """An attribute with several values: the rows of them, and the expressions of their parts."""

    rows: str
    parts: Mapping[str, Attribute]


_EMAIL_PARTS = {
    **{name: Attribute(f"document->>'{name}'") for name in ("value", "type", "display")},
    "primary": Attribute("(document->>'primary')::boolean", is_boolean=True),
}
_GROUP_ROWS = """
    FROM group_members JOIN groups
      ON groups.organization_id = group_members.organization_id AND groups.name = group_members.group_name
    WHERE group_members.organization_id = $1 AND group_members.client_id = people.client_id
"""
_MEMBER_ROWS = """
    FROM group_members WHERE group_members.organization_id = $1 AND group_members.group_name = groups.name
"""
USERS: Mapping[str, Attribute | Values] = {
    "id": Attribute("people.client_id", is_id=True),
    "username": Attribute(USER_NAME),
    "externalid": Attribute("provisioned.external_id", is_exact=True),
    "displayname": Attribute("people.name"),
    "name.formatted": Attribute("provisioned.attributes->'name'->>'formatted'"),
    "name.givenname": Attribute("provisioned.attributes->'name'->>'givenName'"),
    "name.familyname": Attribute("provisioned.attributes->'name'->>'familyName'"),
    "active": Attribute("(clients.disabled_at IS NULL)", is_boolean=True),
    "emails": Values(f"FROM jsonb_array_elements({EMAILS}) AS email (document) WHERE true", _EMAIL_PARTS),
    "groups": Values(_GROUP_ROWS, {"value": Attribute("groups.id", is_id=True), "display": Attribute("groups.name")}),
}
GROUPS: Mapping[str, Attribute | Values] = {
    "id": Attribute("groups.id", is_id=True),
    "externalid": Attribute("groups.external_id", is_exact=True),
    "displayname": Attribute("groups.name"),
    "members": Values(_MEMBER_ROWS, {"value": Attribute("group_members.client_id", is_id=True)}),
}


def condition(node: FilterNode, attributes: Mapping[str, Attribute | Values], where: Where) -> str:
    """The condition of a filter, whose values are arguments of `where`; the organization is `$1`."""
    return _Conditions(attributes, where).visit(node)


class _Conditions(FilterVisitor[str]):
    def __init__(self, attributes: Mapping[str, Attribute | Values], where: Where) -> None:
        self._attributes = attributes
        self._where = where

    def visit_not(self, node: Not) -> str:
        return f"(NOT coalesce({self.visit(node.expr)}, false))"

    def visit_logical_expr(self, node: LogicalExpr) -> str:
        joined = " AND " if node.op is LogicalOperator.and_ else " OR "
        return f"({joined.join(self.visit(each) for each in node.terms)})"

    def visit_present(self, node: Present) -> str:
        found, part = self._found(node.attr_path)
        if isinstance(found, Attribute):
            return f"({found.sql} IS NOT NULL)"
        return _exists(found, f"{self._part(found, part or 'value', node.attr_path).sql} IS NOT NULL")

    def visit_comparison(self, node: Comparison) -> str:
        found, part = self._found(node.attr_path)
        if isinstance(found, Attribute):
            return self._compared(found, node)
        one = self._part(found, part or "value", node.attr_path)
        if node.op is CompareOperator.ne:  # no value equals the operand
            equal = Comparison(node.attr_path, CompareOperator.eq, node.value)
            return f"(NOT {_exists(found, self._compared(one, equal))})"
        return _exists(found, self._compared(one, node))

    def visit_value_path(self, node: ValuePath) -> str:
        found, _ = self._found(node.attr_path)
        if isinstance(found, Attribute):
            raise _unsupported(node.attr_path)
        return _exists(found, _Conditions(found.parts, self._where).visit(node.val_filter))

    def _found(self, path: AttrPath) -> tuple[Attribute | Values, str | None]:
        if path.uri is not None and path.uri.lower() not in _SCHEMAS:
            raise _unsupported(path)
        name, part = path.attr.lower(), path.sub_attr and path.sub_attr.lower()
        found = self._attributes.get(name if part is None else f"{name}.{part}") or self._attributes.get(name)
        if found is None or (
            isinstance(found, Attribute) and part is not None and f"{name}.{part}" not in self._attributes
        ):
            raise _unsupported(path)
        return found, part

    def _part(self, values: Values, part: str, path: AttrPath) -> Attribute:
        if part not in values.parts:
            raise _unsupported(path)
        return values.parts[part]

    def _compared(self, attribute: Attribute, node: Comparison) -> str:
        value = node.value
        if value is None:
            return f"({attribute.sql} IS {'NOT ' if node.op is CompareOperator.ne else ''}NULL)"
        text = _storable(str(value))
        if attribute.is_boolean:
            if text.lower() not in ("true", "false"):  # some providers send texts
                raise refused("invalidFilter", f"{node.attr_path} is compared with true and false")
            return f"({attribute.sql} {_operator(node)} {self._where.argument(text.lower() == 'true')}::boolean)"
        if attribute.is_id:
            named = id_of(text)
            if node.op not in (CompareOperator.eq, CompareOperator.ne):
                raise refused("invalidFilter", f"{node.attr_path} is compared by eq and ne only")
            known = "NULL" if named is None else self._where.argument(named)
            return f"({attribute.sql} {_operator(node)} {known}::uuid)"
        if attribute.sql == USER_NAME and node.op is CompareOperator.eq:
            return NAMED.format(name=f"{self._where.argument(user_key(text))}::text")
        own = attribute.sql if attribute.is_exact else f"lower({attribute.sql})"
        argument = f"{self._where.argument(text)}::text"
        given = argument if attribute.is_exact else f"lower({argument})"
        match node.op:
            case CompareOperator.eq | CompareOperator.ne:
                return f"({own} {_operator(node)} {given})"
            case CompareOperator.co:
                return f"(strpos({own}, {given}) > 0)"
            case CompareOperator.sw:
                return f"starts_with({own}, {given})"
            case CompareOperator.ew:
                return f"(right({own}, length({given})) = {given})"
            case _:
                raise refused("invalidFilter", f"the operator {node.op} is not supported")


def _exists(values: Values, inner: str) -> str:
    return f"EXISTS (SELECT {values.rows} AND {inner})"


def _operator(node: Comparison) -> str:
    return "IS DISTINCT FROM" if node.op is CompareOperator.ne else "="


def _storable(text: str) -> str:
    """The text, which PostgreSQL can take."""
    if payloads.storable(text) != text:
        raise refused("invalidFilter", "the filter contains characters that no value has")
    return text


def _unsupported(path: AttrPath) -> Exception:
    return refused("invalidFilter", f"there is no filter by {str(path)[:60]!r}")

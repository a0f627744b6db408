"""The fields of forms that give rights: scopes, workspaces, and names one per line."""

from collections.abc import Mapping

from gateway.access.identity.model import Scope

#: the prefix of the boxes of scopes
_SCOPE = "scope:"


def scopes_in(fields: Mapping[str, str]) -> list[str]:
    """The checked scopes."""
    return [scope.value for scope in Scope if f"{_SCOPE}{scope.value}" in fields]


def lines_in(fields: Mapping[str, str], name: str) -> list[str]:
    """The names in a field that has one per line."""
    return [text for line in fields.get(name, "").splitlines() if (text := line.strip())]


def workspaces_in(fields: Mapping[str, str]) -> list[str] | None:
    """The names of the workspaces; None for all."""
    return None if "all_workspaces" in fields else lines_in(fields, "workspaces")


def rights_fields(
    scopes: list[str], workspaces: list[str] | None, groups: list[str] | None = None
) -> Mapping[str, str]:
    """The fields of a form that has these rights, as a browser would send them."""
    return {
        **{f"{_SCOPE}{scope}": "on" for scope in scopes},
        **({"all_workspaces": "on"} if workspaces is None else {"workspaces": "\n".join(workspaces)}),
        "groups": "\n".join(groups or ()),
    }

"""A request to begin a consent flow, validated against the kind and the client. Pure."""

import re
from collections.abc import Sequence

from yarl import URL

from gateway.contract.oauth import ConsentRequest
from gateway.errors import FieldError, InvalidCredentials, InvalidParams
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream.requests import checked_environment

#: RFC 6749 §3.3, without the comma, with which some applications separate scopes
_SCOPE = re.compile(r"[!#-+\--\[\]-~]{1,200}")


def require_oauth(spec: ConnectorSpec) -> None:
    """Raise InvalidParams for a kind without OAuth, with the credentials that it needs instead."""
    if spec.oauth is None or spec.oauth_method is None:
        fields = ", ".join(name for method in spec.authentication.values() for name in method.required)
        message = (
            f"{spec.kind} has no OAuth: create the connector with its credentials ({fields}), "
            "POST /api/v1/integrations/connectors"
        )
        raise InvalidParams(message, faults=[FieldError("/connector_type", "connector_type", "no_oauth", message)])


def checked(
    spec: ConnectorSpec,
    requested: ConsentRequest,
    redirect_error: FieldError | None,
    override: URL | None,
) -> tuple[dict[str, str], tuple[str, ...]]:
    """The variables and scopes of a request; raises InvalidParams with all faults, `redirect_error` included."""
    faults = [redirect_error] if redirect_error else []
    faults += _scope_errors(spec, requested.scopes or ())
    environment: dict[str, str] = {}
    try:
        environment = checked_environment(spec, requested.environment, override)
    except InvalidCredentials as error:
        faults += error.faults
    if faults:
        raise InvalidParams(faults=faults)
    scopes = requested.scopes if requested.scopes is not None else spec.oauth_endpoints.scopes
    return environment, tuple(scopes)


def _scope_errors(spec: ConnectorSpec, scopes: Sequence[str]) -> list[FieldError]:
    if scopes and not spec.oauth_endpoints.scopes and spec.mcp is None:
        message = f"scopes: {spec.kind} has no scopes; permissions are set where its app is registered"
        return [FieldError("/scopes", "scopes", "unsupported", message)]
    return [
        FieldError(
            f"/scopes/{number}",
            "scopes",
            "pattern",
            f"scopes: {scope!r} is not one scope; send each scope as its own entry",
        )
        for number, scope in enumerate(scopes)
        if not _SCOPE.fullmatch(scope)
    ]

"""The use cases of the authorization server: a code for a consent, tokens for a code, refreshed tokens."""

import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller
from gateway.access.identity.tokens import Tokens, hashed
from gateway.access.oauth_server import metadata
from gateway.access.oauth_server.hosts import Hosts, redirect_uris_of, registered_name
from gateway.access.oauth_server.model import Grant
from gateway.access.oauth_server.requests import is_verified, redirect_of, request_of, resource_of
from gateway.access.oauth_server.store import AuthorizationStore
from gateway.contract.cursors import page_of, read_time_cursor
from gateway.contract.oauth import (
    API_RESOURCE,
    COMMAND_LINE,
    AuthorizationRequest,
    GrantedTokenView,
    GrantPage,
    GrantView,
    NewGrant,
    RegisteredHostView,
    ResourceMetadataView,
    ServerMetadataView,
)
from gateway.errors import NotFound, OAuthError
from gateway.kinds.catalog import Catalog

#: seconds for which a code is valid
_CODE_SECONDS = 60
#: seconds for which an unused refresh token is valid
_REFRESH_SECONDS = 30 * 86400
#: seconds after a consent when its refresh tokens expire, even if they are used; then the person must consent again
_GRANT_SECONDS = 180 * 86400


class AuthorizationServer:
    """Issues codes and tokens to hosts; each is random and stored as a hash."""

    def __init__(
        self,
        audit: Audit,
        catalog: Catalog,
        store: AuthorizationStore,
        hosts: Hosts,
        tokens: Tokens,
        issuer: str,
        token_seconds: int,
    ) -> None:
        self._audit = audit
        self._catalog = catalog
        self.store = store
        self.hosts = hosts
        self.issuer = issuer
        self._tokens = tokens
        self._token_seconds = token_seconds

    def server_metadata(self) -> ServerMetadataView:
        """The metadata of this server."""
        return metadata.server_metadata(self.issuer)

    def resource_metadata(self, path: str) -> ResourceMetadataView:
        """The metadata of the resource at a path such as `/mcp`."""
        return metadata.resource_metadata(self.issuer, path)

    def challenge(self, path: str) -> str:
        """`WWW-Authenticate` of a resource at a path, for callers without a token."""
        return metadata.challenge(self.issuer, path)

    async def register(self, document: Mapping[str, Any]) -> RegisteredHostView:
        """Register a host by its own metadata (RFC 7591 §3.1); raises OAuthError."""
        host = await self.store.register(registered_name(document), redirect_uris_of(document))
        return RegisteredHostView(
            client_id=host.id,
            client_name=host.name,
            redirect_uris=list(host.redirect_uris),
            token_endpoint_auth_method="none",
            grant_types=["authorization_code", "refresh_token"],
            response_types=["code"],
        )

    async def requested(self, query: Mapping[str, str], address: str) -> AuthorizationRequest:
        """A host's request for access, validated; raises OAuthError, and RateLimited by the browser's address."""
        host = await self.hosts.host(query.get("client_id", ""), address)
        redirect_uri = redirect_of(query, host)
        # The six tools' resource is first. The command line alone calls the API; agents' hosts get tools.
        paths = ([API_RESOURCE] if host.id == COMMAND_LINE else []) + self._tools()
        try:
            return request_of(query, host, redirect_uri, [self.issuer + path for path in paths])
        except OAuthError as error:
            back = self._refused(redirect_uri, query.get("state"), error)
            raise OAuthError(error.code, error.description, back=back, host_name=host.name) from error

    def _tools(self) -> list[str]:
        """The paths of the resources that have tools."""
        return ["/mcp", *(f"/mcp/{kind.name}" for kind in self._catalog)]

    def resource_of_client(self, resource: str) -> str:
        """The resource for which a client requests its token: the gateway, its API or tools. Raises OAuthError."""
        return resource_of({"resource": resource}, [self.issuer + path for path in ("", API_RESOURCE, *self._tools())])

    def denied(self, request: AuthorizationRequest) -> str:
        """The redirect URL for a person who refuses access."""
        error = OAuthError("access_denied", "the person denied access")
        return self._refused(request.redirect_uri, request.state, error)

    async def granted(self, request: AuthorizationRequest, caller: Caller, new: NewGrant) -> str:
        """The redirect URL with the code of the consent that the caller has given."""
        code = secrets.token_urlsafe(32)
        with self._audit.record("agent.grant", caller, target=request.host_id, changed=("scopes", "workspaces")):
            await self.store.grant(request, caller, new, hashed(code), _CODE_SECONDS)
        return self._redirect(request.redirect_uri, request.state, {"code": code})

    def _refused(self, redirect_uri: str, state: str | None, error: OAuthError) -> str:
        """The redirect URL with an error."""
        return self._redirect(redirect_uri, state, {"error": error.code, "error_description": error.description})

    def _redirect(self, redirect_uri: str, state: str | None, members: Mapping[str, str]) -> str:
        """The redirect URI as it was written, with the members, the state and the issuer (RFC 9207) in its query."""
        joint = "&" if "?" in redirect_uri else "?"
        params = {**members, **({} if state is None else {"state": state}), "iss": self.issuer}
        return f"{redirect_uri}{joint}{urlencode(params)}"

    async def grants(self, caller: Caller, cursor: str | None, limit: int, person_id: UUID | None = None) -> GrantPage:
        """The grants of people, or of this person, to hosts, within the caller's workspaces; raises InvalidParams for a
        foreign cursor.
        """
        before, own = read_time_cursor(cursor), caller.client.workspaces
        found = await self.store.grants(caller.organization_id, before, limit + 1, own, person_id)
        page, next_cursor = page_of(found, limit)
        return GrantPage(list(page), next_cursor)

    async def revoke(self, caller: Caller, grant_id: UUID) -> None:
        """Revoke a grant with all its tokens, in every process at once; raises NotFound."""
        await self._revoke(caller, grant_id, caller.client.workspaces, None)

    async def own_grants(self, caller: Caller, limit: int) -> Sequence[GrantView]:
        """The latest grants that the caller gave to hosts."""
        return await self.store.grants(caller.organization_id, None, limit, client_id=caller.client_id)

    async def revoke_own(self, caller: Caller, grant_id: UUID) -> None:
        """Revoke a grant that the caller gave; raises NotFound."""
        await self._revoke(caller, grant_id, None, caller.client_id)

    async def _revoke(
        self, caller: Caller, grant_id: UUID, workspaces: Collection[str] | None, person_id: UUID | None
    ) -> None:
        with self._audit.record("agent.revoke", caller, target=str(grant_id)):
            client_id = await self.store.revoke(caller.organization_id, grant_id, workspaces, person_id)
            if client_id is None:
                raise NotFound("there is no such grant")
        # This process forgets the token before it responds; the others receive a notification.
        self._tokens.on_notify(str(client_id))

    async def revoke_token(self, host_id: str, token: str) -> None:
        """End a host's own token (RFC 7009 §2.1): with a refresh token its grant ends. Ignores unknown tokens."""
        grant = await self.store.grant_of_refresh_token(hashed(token), host_id)
        if grant is None:
            client_id = await self.store.end_token(hashed(token), host_id)
        else:
            client_id = await self.store.revoke(*grant)
        if client_id is not None:
            self._tokens.on_notify(str(client_id))

    async def _end(self, grant: Grant) -> None:
        await self.store.revoke(grant.organization_id, grant.id)

    async def exchange(self, form: Mapping[str, str]) -> GrantedTokenView:
        """Tokens for a code or a refresh token; raises OAuthError."""
        if form.get("grant_type") == "authorization_code":
            grant = await self._of_code(form)
        else:
            grant = await self._of_refresh_token(form)
        resource = form.get("resource")
        if resource and resource.rstrip("/") != grant.resource:
            raise OAuthError("invalid_target", "the grant is for another resource (RFC 8707)")
        access, refresh = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        if not await self.store.save_tokens(
            grant,
            hashed(access),
            access_seconds=self._token_seconds,
            refresh_hash=hashed(refresh),
            refresh_seconds=_REFRESH_SECONDS,
            grant_seconds=_GRANT_SECONDS,
        ):
            raise _invalid_grant()
        return GrantedTokenView(
            access_token=access,
            token_type="bearer",
            expires_in=self._token_seconds,
            scope=" ".join(grant.scopes),
            refresh_token=refresh,
        )

    async def _of_code(self, form: Mapping[str, str]) -> Grant:
        row = await self.store.use_code(hashed(form.get("code", "")))
        if row is None:
            raise _invalid_grant()
        if not row.is_good:
            await self._end(row.grant)  # a code that is used twice may have been stolen
            raise _invalid_grant()
        is_valid = (
            row.grant.host_id == form.get("client_id")
            and row.redirect_uri == form.get("redirect_uri", row.redirect_uri)
            and is_verified(form.get("code_verifier", ""), row.challenge)
        )
        if not is_valid:
            await self._end(row.grant)
            raise _invalid_grant()
        return row.grant

    async def _of_refresh_token(self, form: Mapping[str, str]) -> Grant:
        use = await self.store.use_refresh_token(hashed(form.get("refresh_token", "")))
        if use is None or use[0].host_id != form.get("client_id"):
            raise _invalid_grant()
        grant, is_good = use
        if not is_good:
            await self._end(grant)  # a replaced token that is used again may have been stolen
            raise _invalid_grant()
        return grant


def _invalid_grant() -> OAuthError:
    return OAuthError("invalid_grant", "the code or token is unknown, used, expired, or another client's")

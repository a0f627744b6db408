"""The use case of clients: exchange the token of a trusted issuer for a token of the person whom it names."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller, Client, PersonSession, Scope
from gateway.access.identity.people import People, Person, SignInRefused
from gateway.access.identity.sessions import SessionStore
from gateway.access.identity.store import IdentityStore, both
from gateway.access.identity.tokens import Tokens, hashed, new_secret
from gateway.access.sign_in.issuer_store import IssuerStore
from gateway.access.sign_in.model import provider_of
from gateway.contract.issuers import ACCESS_TOKEN_TYPE, ExchangeRequest, TrustedIssuer
from gateway.contract.oauth import GrantedTokenView
from gateway.contract.people import MAX_GROUPS, NewPerson, PersonChange, PersonSelection, PersonStatus
from gateway.errors import Conflict, OAuthError
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.db.pool import Database
from gateway.foundation.least_used import LeastUsed

if TYPE_CHECKING:
    from gateway.access.sign_in.provider import Provider

#: the scopes that a token may have, and seconds for which it is valid at most
_SCOPES, _MAX_SECONDS = frozenset({Scope.READ, Scope.WRITE}), 3600
#: providers whose keys a process caches
_MAX_PROVIDERS = 100
#: seconds for which a used assertion is remembered after its end, by which clocks may differ
_AFTERWARDS = 120
#: maximum characters of a name or an email address that a token brings
_MAX_TEXT = 200


class TokenExchange:
    """Exchanges tokens; each method raises OAuthError, and ProviderUnavailable if the issuer does not respond."""

    def __init__(
        self,
        audit: Audit,
        database: Database,
        *,
        identity: IdentityStore,
        people: People,
        sessions: SessionStore,
        issuers: IssuerStore,
        tokens: Tokens,
        resource_of: Callable[[str], str],
        base_url: str,
        seconds: int,
        is_private: bool,
    ) -> None:
        self._audit = audit
        self._database = database
        self._identity = identity
        self._people = people
        self._sessions = sessions
        self._issuers = issuers
        self._tokens = tokens
        #: the resource of this gateway that a URL names; raises OAuthError
        self._resource_of = resource_of
        self._base_url = base_url
        self._seconds = min(seconds, _MAX_SECONDS)
        self._is_private = is_private
        self._providers: dict[str, Provider] = {}
        self._used: LeastUsed[str] = LeastUsed(_MAX_PROVIDERS)

    async def exchange(self, request: ExchangeRequest) -> GrantedTokenView:
        """The token of a session in which the client acts for the person; raises the errors of `authenticated` too."""
        client = await self._tokens.authenticated(request.client_id, request.client_secret, request.address)
        if Scope.DELEGATE not in client.scopes:
            raise OAuthError("unauthorized_client", "the client does not have the scope delegate")
        issuer = await self._trusted(client, request.token)
        caller = Caller(client, issuer.organization_id)
        with self._audit.record("session.open", caller) as entry:
            try:
                entry.target, view = await self._exchanged(caller, issuer, request)
            except OAuthError as error:
                entry.outcome = error.code
                raise
        return view

    async def _trusted(self, client: Client, token: str) -> TrustedIssuer:
        """The issuer that the token names, if exactly one organization of the client trusts it for the client."""
        from gateway.access.sign_in.assertions import issuer_in  # loads the library for signed tokens

        try:
            named = issuer_in(token)
        except SignInRefused as error:
            raise _invalid(error.detail) from error
        found = await self._issuers.trusted(client.organization_ids, named)
        if len(found) != 1:
            raise _invalid("the issuer is not trusted (iss)" if not found else "several organizations trust the issuer")
        if found[0].client_ids is not None and client.id not in found[0].client_ids:
            raise OAuthError("unauthorized_client", "the issuer's tokens are for other clients")
        return found[0]

    async def _exchanged(
        self, caller: Caller, issuer: TrustedIssuer, request: ExchangeRequest
    ) -> tuple[str, GrantedTokenView]:
        claims = await self._claims(issuer, caller.client, request)
        resource = self._resource(claims, request)
        jti = hashlib.sha256(claims["jti"].encode()).digest() if request.is_assertion else None
        # Checked before the token changes the person, and again when it is used.
        if jti is not None and await self._issuers.is_used(issuer.issuer, jti):
            raise _used()
        person = await self._person(caller, issuer, claims, _subject(issuer, claims))
        scopes = self._granted(person, caller.client, claims, request)
        session = PersonSession(id=uuid4(), client_id=caller.client_id, issuer_id=issuer.id)
        workspaces, token = both(person.workspaces, caller.client.workspaces), new_secret()
        async with self._database.tenant(issuer.organization_id) as connection, connection.transaction():
            if not await self._issuers.lock(connection, issuer):
                raise _invalid("the issuer is not trusted (iss)")
            if jti is not None and not await self._issuers.use(
                connection, issuer.issuer, jti, claims["exp"] + _AFTERWARDS
            ):
                raise _used()
            if await self._sessions.is_full(connection, issuer.organization_id):
                raise Conflict("the organization has too many sessions; end some")
            opened = await self._sessions.insert(
                connection,
                issuer.organization_id,
                session,
                person_id=person.id,
                parent_id=None,
                scopes=sorted(scopes),
                workspaces=None if workspaces is None else sorted(workspaces),
                link_id=None,
                token_hash=hashed(token),
                resource=resource,
                seconds=self._seconds,
            )
            if opened is None:
                raise _invalid("the client or the person has been disabled")
        return str(session.id), GrantedTokenView(
            access_token=token,
            token_type="bearer",
            expires_in=self._seconds,
            scope=" ".join(sorted(scopes)),
            issued_token_type=None if request.is_assertion else ACCESS_TOKEN_TYPE,
        )

    async def _claims(self, issuer: TrustedIssuer, client: Client, request: ExchangeRequest) -> Mapping[str, Any]:
        """The claims of the token, verified with the keys of this issuer alone."""
        from gateway.access.sign_in.assertions import ExpectedAssertion, verified_assertion
        from gateway.access.sign_in.id_token import UnknownKey

        expected = ExpectedAssertion(
            issuer=issuer.issuer,
            audience=self._base_url if request.is_assertion else issuer.audience,
            client_id=str(client.id) if request.is_assertion else None,
        )
        provider, now = self._provider(issuer), CLOCK.unix_time()
        try:
            try:
                return verified_assertion(request.token, await provider.keys(), expected, now)
            except UnknownKey:  # the issuer may have a new signing key
                return verified_assertion(request.token, await provider.keys(are_new=True), expected, now)
        except SignInRefused as error:
            raise _invalid(error.detail) from error

    def _provider(self, issuer: TrustedIssuer) -> "Provider":
        """The issuer's metadata and keys, which are fetched from public addresses only, unless the operator allows
        others.
        """
        from gateway.access.sign_in.provider import Provider

        name = issuer.issuer
        provider = self._providers.get(name)
        if provider is not None:
            self._used.use(name)
            return provider
        provider = self._providers[name] = Provider(provider_of(name, is_private=self._is_private))
        for dropped in self._used.add(name, issuer.organization_id):
            del self._providers[dropped]
        return provider

    def _resource(self, claims: Mapping[str, Any], request: ExchangeRequest) -> str | None:
        """The only URL that accepts the token: that of the assertion, else the requested one."""
        if not request.is_assertion:
            return None if request.resource is None else self._resource_of(request.resource)
        named = claims.get("resource")
        if not isinstance(named, str):
            raise OAuthError("invalid_target", "the assertion must name its resource")
        resource = self._resource_of(named)
        if request.resource is not None and self._resource_of(request.resource) != resource:
            raise OAuthError("invalid_target", "the assertion is for another resource (RFC 8707)")
        return resource

    def _granted(
        self, person: Client, client: Client, claims: Mapping[str, Any], request: ExchangeRequest
    ) -> frozenset[str]:
        """The scopes that person and client both have, as far as the assertion and the request name them."""
        scopes = person.scopes & client.scopes & _SCOPES
        named = claims.get("scope") if request.is_assertion else None
        if named is not None:
            scopes &= frozenset(named.split()) if isinstance(named, str) else frozenset()
        if not scopes or not request.scopes <= scopes:
            raise OAuthError("invalid_scope", f"scope may contain {', '.join(sorted(scopes)) or 'nothing here'}")
        return request.scopes or scopes

    async def _person(self, caller: Caller, issuer: TrustedIssuer, claims: Mapping[str, Any], subject: str) -> Client:
        """The person whom the token names, with the groups of the token; added if the issuer may add people."""
        groups = await self._groups(issuer, claims)
        person = await self._named(issuer, subject)
        if person is None and issuer.create_people:
            person = await self._added(caller, issuer, claims, subject, groups or ())
        if person is None or person.status is not PersonStatus.ACTIVE:
            raise _invalid(f"the person is not known here, or suspended ({issuer.subject_claim})")
        if (
            groups is not None
            and sorted(person.groups) != sorted(groups)
            and await self._is_of_one(person, issuer.organization_id)
        ):
            change = PersonChange(groups=groups)
            with self._audit.record("person.update", caller, target=str(person.id), changed=["groups"]):
                await self._people.change(issuer.organization_id, person.id, change, _anything)
        found = await self._identity.caller(person.id, issuer.organization_id)
        if found is None:
            raise _invalid(f"the person is not known here, or suspended ({issuer.subject_claim})")
        return found.client

    async def _is_of_one(self, person: Person, organization_id: UUID) -> bool:
        """Whether the person is of this organization alone: the scopes of a group hold in all of a person's."""
        stored = await self._identity.client(person.id)
        return stored is not None and stored.client.organization_ids == {organization_id}

    async def _named(self, issuer: TrustedIssuer, subject: str) -> Person | None:
        selection = PersonSelection(issuer=issuer.issuer, subject=subject)
        return next(iter(await self._people.find(issuer.organization_id, selection, 1)), None)

    async def _added(
        self, caller: Caller, issuer: TrustedIssuer, claims: Mapping[str, Any], subject: str, groups: Sequence[str]
    ) -> Person | None:
        new = NewPerson(
            issuer=issuer.issuer,
            subject=subject,
            email=_text(claims.get("email")),
            name=_text(claims.get("name")),
            groups=groups,
        )
        try:
            with self._audit.record("person.create", caller, changed=["issuer", "subject"]) as entry:
                person = await self._people.create(issuer.organization_id, new, _anything)
                entry.target = str(person.id)
        except Conflict:  # a concurrent request has added the person
            return await self._named(issuer, subject)
        return person

    async def _groups(self, issuer: TrustedIssuer, claims: Mapping[str, Any]) -> Sequence[str] | None:
        """The groups that the token names and the organization has; None if the token says nothing of groups."""
        named = None if issuer.groups_claim is None else claims.get(issuer.groups_claim)
        if not isinstance(named, list):
            return None
        names = [each for each in named if isinstance(each, str) and _text(each) is not None]
        return (await self._people.known_groups(issuer.organization_id, names))[:MAX_GROUPS]


def _subject(issuer: TrustedIssuer, claims: Mapping[str, Any]) -> str:
    from gateway.access.sign_in.assertions import subject_in

    try:
        return subject_in(claims, issuer.issuer, issuer.subject_claim)
    except SignInRefused as error:
        raise _invalid(error.detail) from error


def _invalid(description: str) -> OAuthError:
    return OAuthError("invalid_grant", description)


def _used() -> OAuthError:
    return _invalid("the assertion was used already (jti)")


def _text(value: Any) -> str | None:
    """A text that can be stored and shown."""
    return value if isinstance(value, str) and 0 < len(value) <= _MAX_TEXT and value.isprintable() else None


def _anything(client: Client) -> None:
    """The rights of groups are not limited by the client that brings a person."""

"""The sign-in through a provider: from a page of the gateway to the provider and back, to the person's client."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.access.identity.model import Client
from gateway.access.identity.people import People, SignInRefused
from gateway.access.identity.tokens import hashed
from gateway.access.sign_in.id_token import ExpectedToken, UnknownKey, login_in, verified_claims
from gateway.access.sign_in.provider import Provider, error_text
from gateway.access.sign_in.store import SignInStore
from gateway.contract.oauth import SIGN_IN_CALLBACK
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.vault.sealed_text import NotOurs, SealedText
from gateway.upstream.oauth_tokens.messages import Code, ConsentParams, Query, single


@dataclass(frozen=True, slots=True)
class PendingSignIn:
    """A sign-in that has returned to the browser that began it."""

    #: the state of the page that began it
    purpose: Mapping[str, Any]
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)


class ProviderSignIn:
    """Signs in the people that an administrator has added, and refuses all others."""

    def __init__(
        self, provider: Provider, store: SignInStore, people: People, seals: SealedText, base_url: str
    ) -> None:
        self._provider = provider
        self.store = store
        self._people = people
        self._seals = seals
        self._callback = base_url + SIGN_IN_CALLBACK

    async def begin(self, browser: str, purpose: Mapping[str, Any]) -> str:
        """Begin a sign-in; returns the URL of the provider's page for this browser. Raises ProviderUnavailable."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        consent = ConsentParams(self._callback, self._provider.settings.scopes, state, verifier)
        address = await self._provider.address(consent, nonce)
        document = {"purpose": dict(purpose), "nonce": nonce, "verifier": verifier}
        await self.store.add(hashed(state), self._seals.sealed(document, hashed(browser)))
        return address

    async def resume(self, query: Query, browser: str) -> PendingSignIn | None:
        """The pending sign-in of the response; None if its state is unknown, used, expired or another browser's."""
        state = single(query, "state")
        sealed = await self.store.take(hashed(state)) if state else None
        try:
            return None if sealed is None else PendingSignIn(**self._seals.opened(sealed, hashed(browser)))
        except NotOurs:
            return None

    async def clients(self, pending: PendingSignIn, query: Query) -> Sequence[Client]:
        """The person's clients: one, or one for each organization that has added the person on its own.

        Raises SignInRefused and ProviderUnavailable.
        """
        claims = await self._claims(pending, await self._code(query))
        settings = self._provider.settings
        login = login_in(claims, settings.claim)
        # An address may be given to another person: it never is the subject of somebody whom others have added.
        named = None if settings.claim == "email" else login
        clients = await self._people.signed_in(settings.issuer, claims["sub"], login, named)
        if not clients:
            raise SignInRefused(
                f"{login} is not known here. Ask an administrator of the gateway: gateway admin person add {login} …"
            )
        return clients

    async def _code(self, query: Query) -> str:
        """The code of the authorization response (RFC 6749 §4.1.2), after the check of `iss` (RFC 9207 §2.4)."""
        metadata = await self._provider.metadata()
        issuers = [value for name, value in query if name == "iss"]
        is_named = issuers == [metadata.issuer]
        if not is_named and (issuers or metadata.authorization_response_iss_parameter_supported):
            raise SignInRefused("the response is from another provider (iss)")
        if error := single(query, "error"):
            raise SignInRefused(
                f"the provider refused the sign-in: {error_text(error, single(query, 'error_description') or '')}"
            )
        code = single(query, "code")
        if code is None:
            raise SignInRefused("the provider sent no code")
        return code

    async def _claims(self, pending: PendingSignIn, code: str) -> Mapping[str, Any]:
        token, access_token = await self._provider.redeem(Code(code, self._callback, pending.verifier))
        settings, metadata = self._provider.settings, await self._provider.metadata()
        expected = ExpectedToken(
            issuer=settings.issuer,
            client_id=settings.client_id,
            nonce=pending.nonce,
            algorithms=metadata.id_token_signing_alg_values_supported,
            access_token=access_token,
        )
        now = int(CLOCK.unix_time())
        try:
            return verified_claims(token, await self._provider.keys(), expected, now)
        except UnknownKey:  # the provider may have a new signing key
            return verified_claims(token, await self._provider.keys(are_new=True), expected, now)

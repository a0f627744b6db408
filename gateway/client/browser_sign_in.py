"""Sign-in with a browser: the authorization code grant with PKCE (RFC 8252), and the refresh of its tokens."""

import asyncio
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

import msgspec

from gateway.client.profiles import Profile, Profiles
from gateway.contract.oauth import API_RESOURCE, COMMAND_LINE
from gateway.errors import Unauthorized
from gateway.foundation.aio.clock import CLOCK

#: minimum remaining lifetime, in seconds, of a stored access token that is used
_SKEW = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInRequest:
    """An authorization request, with the state and code verifier that bind the response to it."""

    issuer: str
    authorization_endpoint: str
    redirect_uri: str
    state: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))

    @property
    def url(self) -> str:
        """The URL of the page on which the person signs in."""
        digest = sha256(self.verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": COMMAND_LINE,
            "redirect_uri": self.redirect_uri,
            "code_challenge": urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
            "resource": self.issuer + API_RESOURCE,
            "state": self.state,
        }
        return f"{self.authorization_endpoint}?{urlencode(query)}"

    def code_form(self, answer: Mapping[str, str]) -> dict[str, str]:
        """The form of the token request; raises Unauthorized if `answer` is an error or of another sign-in."""
        if not secrets.compare_digest(answer.get("state", ""), self.state) or answer.get("iss") != self.issuer:
            raise Unauthorized("the browser returned the response to another sign-in; run `gateway login` again")
        if "code" not in answer:
            raise Unauthorized(f"the sign-in was refused: {answer.get('error_description') or answer.get('error')}")
        return {
            "grant_type": "authorization_code",
            "client_id": COMMAND_LINE,
            "code": answer["code"],
            "redirect_uri": self.redirect_uri,
            "code_verifier": self.verifier,
        }


def with_tokens(profile: Profile, issued: Mapping[str, Any]) -> Profile:
    """The profile with the tokens of a response of the token endpoint."""
    return msgspec.structs.replace(
        profile,
        access_token=issued["access_token"],
        refresh_token=issued.get("refresh_token", profile.refresh_token),
        access_token_ends_at=CLOCK.now() + timedelta(seconds=issued.get("expires_in", 900)),
    )


class StoredTokens:
    """Reads and stores the tokens of a profile, under a lock, because the user's processes share them."""

    def __init__(self, profiles: Profiles, name: str) -> None:
        self._profiles = profiles
        self._name = name
        self._lock = ExitStack()

    async def __aenter__(self) -> Profile:
        """The current profile; no other process renews its tokens until the block ends."""
        await asyncio.to_thread(self._lock.enter_context, self._profiles.locked())
        try:
            return self._profiles.get(self._name)
        except BaseException:
            self._lock.close()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._lock.close()

    def store(self, profile: Profile) -> None:
        """Store the profile with new tokens; call it within the block."""
        self._profiles.replace(self._name, profile)


def is_usable(profile: Profile, refused: str | None) -> bool:
    """Whether the stored access token has not expired and is not the refused token."""
    ends_at = profile.access_token_ends_at
    return (
        profile.access_token not in (None, refused)
        and ends_at is not None
        and ends_at > CLOCK.now() + timedelta(seconds=_SKEW)
    )


def refresh_form(profile: Profile) -> dict[str, str]:
    """The form of the token request with the refresh token, which can be used once."""
    return {"grant_type": "refresh_token", "client_id": profile.client_id, "refresh_token": profile.refresh_token or ""}

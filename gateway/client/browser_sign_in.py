"""Tokens of a person who signed in by a browser: the authorization code grant with PKCE, and its refresh (RFC 8252)."""

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

from gateway.aio.clock import CLOCK
from gateway.client.profiles import Profile, Profiles
from gateway.contract.oauth import API_RESOURCE, COMMAND_LINE
from gateway.errors import Unauthorized

#: seconds that a stored access token must still be valid for
_SKEW = 30


@dataclass(frozen=True, slots=True)
class SignInRequest:
    """The authorization request: its URL, and the values that bind the response to it."""

    issuer: str
    authorization_endpoint: str
    redirect_uri: str
    state: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))

    @property
    def url(self) -> str:
        """The page on which the person signs in."""
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
        """The token request for the browser's answer; raises Unauthorized for a refusal and for another's answer."""
        if not secrets.compare_digest(answer.get("state", ""), self.state) or answer.get("iss") != self.issuer:
            raise Unauthorized("the browser came back with the answer to another sign-in; run `gateway login` again")
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
    """The profile with what the token endpoint answered."""
    return msgspec.structs.replace(
        profile,
        access_token=issued["access_token"],
        refresh_token=issued.get("refresh_token", profile.refresh_token),
        access_token_ends_at=CLOCK.now() + timedelta(seconds=issued.get("expires_in", 900)),
    )


class StoredTokens:
    """The tokens of a profile, which all processes of the user share through its file."""

    def __init__(self, profiles: Profiles, name: str) -> None:
        self._profiles = profiles
        self._name = name
        self._held = ExitStack()

    async def __aenter__(self) -> Profile:
        """The profile as it is now; no other process renews it until the block ends."""
        await asyncio.to_thread(self._held.enter_context, self._profiles.locked())
        try:
            return self._profiles.get(self._name)
        except BaseException:
            self._held.close()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._held.close()

    def store(self, profile: Profile) -> None:
        """Keep new tokens, within the block."""
        self._profiles.replace(self._name, profile)


def is_good(profile: Profile, refused: str | None) -> bool:
    """Whether the stored access token can be used: it lasts, and is not the one that was refused."""
    ends_at = profile.access_token_ends_at
    return (
        profile.access_token not in (None, refused)
        and ends_at is not None
        and ends_at > CLOCK.now() + timedelta(seconds=_SKEW)
    )


def refresh_form(profile: Profile) -> dict[str, str]:
    """The token request with a refresh token, which is valid once."""
    return {"grant_type": "refresh_token", "client_id": profile.client_id, "refresh_token": profile.refresh_token or ""}

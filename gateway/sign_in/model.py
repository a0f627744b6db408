"""An OpenID Connect provider as the operator names it, and how it may fail a person."""

import string
from dataclasses import dataclass, field

from pydantic import SecretStr

from gateway.errors import Forbidden, Unavailable

#: where the provider sends browsers back to
CALLBACK_PATH = "/sign-in/callback"

#: seconds that a person may take to sign in
LIFETIME = 600


#: ASCII letters alone
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class SignInRefused(Forbidden):
    code, title = "sign_in_refused", "You are not signed in"


class ProviderUnavailable(Unavailable):
    code, title = "provider_unavailable", "The sign-in provider is away"


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """The provider, and the gateway's own registration there."""

    #: what its documents and tokens call it (OpenID Connect Core §2)
    issuer: str
    client_id: str
    #: empty for a public client
    client_secret: SecretStr = field(repr=False)
    scopes: tuple[str, ...]
    #: the claim by which administrators know people
    claim: str
    #: whether its own host may be a private address, and speak plain HTTP
    is_private: bool = False


def login_of(claim: str, value: str) -> str:
    """A login as it is kept and compared: the case of ASCII letters does not matter in an email address.

    No other letters are folded: the Kelvin sign (U+212A) becomes a `k` in Unicode, and would sign in as another person.
    """
    return value.strip(" ").translate(_LOWER) if claim == "email" else value.strip(" ")

"""The settings of an OpenID Connect provider."""

from dataclasses import dataclass, field

from pydantic import SecretStr


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """The provider, and the gateway's registration at it."""

    #: `iss` in its metadata and tokens (OpenID Connect Core §2)
    issuer: str
    client_id: str
    #: empty for a public client
    client_secret: SecretStr = field(repr=False)
    scopes: tuple[str, ...]
    #: the claim that identifies people to administrators
    claim: str
    #: whether its host may be a private address, without TLS
    is_private: bool = False


def provider_of(issuer: str, *, is_private: bool) -> ProviderSettings:
    """An issuer of which only the keys are needed, because the gateway is no client of it."""
    return ProviderSettings(
        issuer=issuer, client_id="", client_secret=SecretStr(""), scopes=(), claim="sub", is_private=is_private
    )

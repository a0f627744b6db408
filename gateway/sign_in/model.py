"""An OpenID Connect provider as the operator names it."""

from dataclasses import dataclass, field

from pydantic import SecretStr


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """The provider, and the gateway's own registration there."""

    #: its name in its documents and tokens (OpenID Connect Core §2)
    issuer: str
    client_id: str
    #: empty for a public client
    client_secret: SecretStr = field(repr=False)
    scopes: tuple[str, ...]
    #: the claim that identifies people to administrators
    claim: str
    #: whether its own host may be a private address, and speak plain HTTP
    is_private: bool = False

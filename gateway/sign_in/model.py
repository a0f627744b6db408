"""An OpenID Connect provider as the operator names it."""

from dataclasses import dataclass, field

from pydantic import SecretStr


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

"""`gateway.issuers`: providers whose tokens clients exchange for tokens of people; for administrators."""

from collections.abc import Sequence

from gateway.client.paths import segment
from gateway.client.session import ApiRequest, Session
from gateway.contract.issuers import SUBJECT_CLAIM, IssuerList, IssuerView

_PATH = "/api/v1/issuers"


class TrustedIssuers:
    """The issuers that the organization trusts."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(
        self,
        issuer: str,
        *,
        audience: str,
        client_ids: Sequence[str] | None = None,
        groups_claim: str | None = None,
        subject_claim: str = SUBJECT_CLAIM,
        create_people: bool = False,
    ) -> IssuerView:
        """Trust an issuer; raises InvalidParams with all faults, and Conflict for one that is trusted already."""
        body = {
            "issuer": issuer,
            "audience": audience,
            "client_ids": client_ids,
            "groups_claim": groups_claim,
            "subject_claim": subject_claim,
            "create_people": create_people,
        }
        return (await self._session.fetch(ApiRequest(method="POST", path=_PATH, body=body))).into(IssuerView)

    async def list(self) -> list[IssuerView]:
        """The issuers, by their URLs."""
        return (await self._session.fetch(ApiRequest(method="GET", path=_PATH))).into(IssuerList).data

    async def delete(self, issuer_id: str) -> None:
        """End the trust in an issuer, and the sessions that came from it; raises NotFound."""
        await self._session.fetch(ApiRequest(method="DELETE", path=f"{_PATH}/{segment(issuer_id)}"))

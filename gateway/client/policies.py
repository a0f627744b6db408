"""`gateway.policies`: what clients may do beyond their scopes, in Cedar; for administrators."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from gateway.client.jobs import Job, accepted
from gateway.client.paths import segment
from gateway.client.session import ApiRequest, Session
from gateway.contract.policies import CheckedCases, CheckedCaseView, PolicyList, PolicyView, StoredPolicyView

_PATH = "/api/v1/policies"


class Policies:
    """The policies of the organization."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def put(
        self,
        name: str,
        cedar: str,
        *,
        mode: str = "enforce",
        description: str | None = None,
        version: int | None = None,
    ) -> StoredPolicyView:
        """Store a policy, or a new version; with `version` only if that one is current.

        Raises InvalidPolicy with the place of every fault, and PreconditionFailed.
        """
        body = {"cedar": cedar, "mode": mode, "description": description}
        call = ApiRequest(method="PUT", path=f"{_PATH}/{segment(name)}", body=body, headers=_match(version))
        return (await self._session.fetch(call)).into(StoredPolicyView)

    async def list(self) -> list[PolicyView]:
        """The current versions, by name."""
        return (await self._session.fetch(ApiRequest(method="GET", path=_PATH))).into(PolicyList).data

    async def get(self, name: str) -> PolicyView:
        """The current version; raises NotFound."""
        return (await self._session.fetch(ApiRequest(method="GET", path=f"{_PATH}/{segment(name)}"))).into(PolicyView)

    async def delete(self, name: str, *, version: int | None = None) -> None:
        """Delete a policy; with `version` only if that one is current. Raises NotFound and PreconditionFailed."""
        await self._session.fetch(ApiRequest(method="DELETE", path=f"{_PATH}/{segment(name)}", headers=_match(version)))

    async def check(
        self, cases: Sequence[Mapping[str, Any]], policies: Sequence[Mapping[str, Any]] | None = None
    ) -> Sequence[CheckedCaseView]:
        """The decision of each case by these policies, else by the stored ones; nothing is sent.

        A case: `operation`, and if needed `client`, `connector_id`, `params`, `surface`, `explain`. A policy: `name`,
        `cedar`, and if needed `mode`.
        """
        body = {"cases": [*cases], **({} if policies is None else {"policies": [*policies]})}
        call = ApiRequest(method="POST", path=f"{_PATH}/check", body=body, is_read=True)
        return (await self._session.fetch(call)).into(CheckedCases).data

    async def replay(self, since: datetime, policies: Sequence[Mapping[str, Any]] | None = None) -> Job:
        """Decide the calls since then by these policies, else by all stored ones; the result is a PolicyEffectView."""
        body = {"since": since.isoformat(), **({} if policies is None else {"policies": [*policies]})}
        return accepted(
            self._session, await self._session.fetch(ApiRequest(method="POST", path=f"{_PATH}/replay", body=body))
        )


def _match(version: int | None) -> Mapping[str, str]:
    return {} if version is None else {"If-Match": f'"{version}"'}

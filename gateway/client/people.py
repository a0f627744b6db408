"""`gateway.people`: people, groups, and the tokens of identity providers; for administrators."""

from collections.abc import Sequence
from typing import Any

from gateway.client.jobs import Job
from gateway.client.paths import segment
from gateway.client.session import ApiRequest, Session
from gateway.contract.jobs import DeletionView, JobStatus, JobView
from gateway.contract.people import GroupPage, GroupView, ListedGroupView, PeoplePage, PersonView
from gateway.contract.scim import NewScimTokenView, ScimTokenList, ScimTokenView

_PEOPLE, _GROUPS, _TOKENS = "/api/v1/people", "/api/v1/groups", "/api/v1/scim/tokens"
#: items of one page
_PAGE = 1000


class PeopleAndGroups:
    """People, groups, and the tokens with which identity providers manage both by SCIM."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def list(self, *, status: str | None = None, group: str | None = None) -> Sequence[PersonView]:
        """All people, the oldest first; `status`: active or suspended, `group`: only its members."""
        query: dict[str, Any] = {"status": status, "group": group, "limit": _PAGE}
        found: list[PersonView] = []
        while True:
            given = {name: value for name, value in query.items() if value is not None}
            call = ApiRequest(method="GET", path=_PEOPLE, query=given)
            page = (await self._session.fetch(call)).into(PeoplePage)
            found += page.data
            if page.next_cursor is None:
                return found
            query["cursor"] = page.next_cursor

    async def get(self, person_id: str) -> PersonView:
        """A person; raises NotFound."""
        return (await self._session.fetch(ApiRequest(method="GET", path=f"{_PEOPLE}/{segment(person_id)}"))).into(
            PersonView
        )

    async def add(
        self,
        *,
        name: str | None = None,
        email: str | None = None,
        issuer: str | None = None,
        subject: str | None = None,
        client_id: str | None = None,
        groups: Sequence[str] = (),
        scopes: Sequence[str] = (),
        workspaces: Sequence[str] | None = (),
    ) -> PersonView:
        """Add a person, who is identified by `issuer` and `subject`, or by `client_id` and `subject`.

        `workspaces` None is all of them. Raises InvalidParams with all faults, and Conflict for a known subject.
        """
        members = {"name": name, "email": email, "issuer": issuer, "subject": subject, "client_id": client_id}
        body = {member: value for member, value in members.items() if value is not None}
        rights = {"groups": groups, "scopes": scopes, "workspaces": workspaces}
        call = ApiRequest(method="POST", path=_PEOPLE, body={**body, **rights})
        return (await self._session.fetch(call)).into(PersonView)

    async def change(self, person_id: str, **members: Any) -> PersonView:
        """Change `name`, `email`, `groups`, `scopes`, `workspaces` or `status` of a person; raises NotFound and
        InvalidParams.
        """
        call = ApiRequest(method="PATCH", path=f"{_PEOPLE}/{segment(person_id)}", body=members)
        return (await self._session.fetch(call)).into(PersonView)

    async def suspend(self, person_id: str) -> PersonView:
        """End everything that acts for a person, within a second; raises NotFound."""
        return await self.change(person_id, status="suspended")

    async def activate(self, person_id: str) -> PersonView:
        """Let a suspended person sign in again; nothing that has ended comes back. Raises NotFound."""
        return await self.change(person_id, status="active")

    async def remove(self, person_id: str) -> Job:
        """End everything that acts for a person and delete the person; the job deletes the person's own connectors.
        Raises NotFound.
        """
        call = ApiRequest(method="DELETE", path=f"{_PEOPLE}/{segment(person_id)}")
        deleted = (await self._session.fetch(call)).into(DeletionView)
        return Job(self._session, JobView(id=deleted.job_id, status=JobStatus.QUEUED))

    async def groups(self) -> Sequence[ListedGroupView]:
        """All groups by name, with the rights of their members and their number."""
        query: dict[str, Any] = {"limit": _PAGE}
        found: list[ListedGroupView] = []
        while True:
            call = ApiRequest(method="GET", path=_GROUPS, query=query)
            page = (await self._session.fetch(call)).into(GroupPage)
            found += page.data
            if page.next_cursor is None:
                return found
            query = {**query, "cursor": page.next_cursor}

    async def group(self, name: str) -> GroupView:
        """A group; raises NotFound."""
        call = ApiRequest(method="GET", path=f"{_GROUPS}/{segment(name)}")
        return (await self._session.fetch(call)).into(GroupView)

    async def put_group(self, name: str, *, scopes: Sequence[str], workspaces: Sequence[str] | None) -> GroupView:
        """Create a group or replace the rights of its members; `workspaces` None is all of them."""
        body = {"scopes": scopes, "workspaces": workspaces}
        call = ApiRequest(method="PUT", path=f"{_GROUPS}/{segment(name)}", body=body)
        return (await self._session.fetch(call)).into(GroupView)

    async def scim_tokens(self) -> Sequence[ScimTokenView]:
        """The tokens of identity providers, the oldest first."""
        return (await self._session.fetch(ApiRequest(method="GET", path=_TOKENS))).into(ScimTokenList).data

    async def create_scim_token(
        self, name: str, *, issuer: str | None = None, subject: str | None = None
    ) -> NewScimTokenView:
        """Create a token for an identity provider; it is shown once.

        `issuer` is the OpenID provider at which its people sign in, by default the operator's; `subject` the attribute
        that is `sub` there: externalId or userName. Raises InvalidParams.
        """
        members = {"name": name, "issuer": issuer, "subject": subject}
        body = {member: value for member, value in members.items() if value is not None}
        call = ApiRequest(method="POST", path=_TOKENS, body=body)
        return (await self._session.fetch(call)).into(NewScimTokenView)

    async def revoke_scim_token(self, token_id: str) -> None:
        """End a token in every process; the people and groups stay. Raises NotFound."""
        await self._session.fetch(ApiRequest(method="DELETE", path=f"{_TOKENS}/{segment(token_id)}"))

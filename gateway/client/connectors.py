"""Connectors: create them with credentials or consent, and read, change and delete them."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Unpack
from uuid import UUID

from gateway.client.jobs import Job, accepted
from gateway.client.paths import segment
from gateway.client.session import ApiRequest, Session
from gateway.contract.connectors import (
    ConnectLinkView,
    Connector,
    ConnectorPage,
    ConnectorSettings,
    ConnectSessionView,
    ContextStoreView,
    FreshnessView,
    Health,
    InspectionView,
)
from gateway.contract.jobs import DeletionView, JobStatus, JobView
from gateway.contract.oauth import FlowView, StartedConsentView
from gateway.errors import Conflict, GatewayError, NotFound, ReauthorizationRequired
from gateway.kinds.suggestions import canonical, nearest

_PATH = "/api/v1/integrations/connectors"
#: similarity from which a connector is suggested for a name
_LIKENESS = 0.7
_LINKS = "/api/v1/connect/sessions"

#: what happens if the workspace has a connector of the same name
IfExists = Literal["create", "fail", "update"]


class Consent:
    """A consent that a person has to give at `url`."""

    def __init__(self, connectors: "Connectors", session: Session, started: StartedConsentView) -> None:
        self._connectors = connectors
        self._session = session
        self.url: str = started.consent_url
        self.flow_id: str = started.flow_id
        self.expires_at: datetime = started.expires_at

    async def state(self) -> FlowView:
        """The state of the consent."""
        return (
            await self._session.fetch(ApiRequest(method="GET", path=f"{_PATH}/oauth/flows/{segment(self.flow_id)}"))
        ).into(FlowView)

    async def wait(self, every: float = 1.0) -> Connector:
        """Wait for the consent, reading its state every `every` seconds; returns the connector.

        Raises ReauthorizationRequired if the consent is refused or expires.
        """
        while True:
            flow = await self.state()
            match flow.status:
                case "completed" if flow.connector_id is not None:
                    return await self._connectors.get(flow.connector_id)
                case "pending":
                    await asyncio.sleep(every)
                case _:
                    raise ReauthorizationRequired(f"the consent has {_outcome_of(flow)}; start again")


def _outcome_of(flow: FlowView) -> str:
    reason = flow.error_description or flow.error
    return flow.status if reason is None else f"{flow.status}: {reason}"


class Connectors:
    """The connectors of the workspace."""

    def __init__(self, session: Session) -> None:
        self._session = session
        #: connectors by the names, kinds and ids that callers have used
        self._resolved: dict[str, Connector] = {}

    async def create(
        self,
        kind: str,
        credentials: Mapping[str, Any],
        *,
        environment: Mapping[str, Any] | None = None,
        validate: bool = True,
        if_exists: IfExists | None = None,
        owner: str | None = None,
        mcp_server: Mapping[str, str] | None = None,
        **settings: Unpack[ConnectorSettings],
    ) -> Connector:
        """Create a connector; its `name` is the kind's title unless given.

        It is a person's own with `owner`: `me`, or the person's id. With the kind `mcp` and `mcp_server` (`url`, and
        optionally `kind`, `header` and `query`), the tools of an MCP server become the operations of a kind of its own.

        With `validate`, raises InvalidCredentials if the application refuses the credentials. If the workspace has a
        connector with that name, `if_exists` decides: `create` creates another (the default), `fail` raises Conflict
        with the connector's id (`extra["connector_id"]`), `update` updates that connector.
        """
        members = {"environment": environment, "if_exists": if_exists, "owner": owner, "mcp_server": mcp_server}
        body = {
            "workspace_name": self._session.settings.workspace_name,
            "connector_type": kind,
            "credentials": credentials,
            "validate": validate,
            **settings,
            **_without_none(members),
        }
        return (await self._session.fetch(ApiRequest(method="POST", path=_PATH, body=body))).into(Connector)

    async def connect(
        self,
        kind: str,
        redirect_url: str,
        *,
        name: str | None = None,
        environment: Mapping[str, Any] | None = None,
        scopes: Sequence[str] | None = None,
        connector: str | Connector | None = None,
        owner: str | None = None,
        mcp_server: Mapping[str, str] | None = None,
    ) -> Consent:
        """Begin a person's OAuth consent. With `connector`, that connector is authorized again and keeps its id.

        A new connector is a person's own with `owner`: `me`, or the person's id. With the kind `mcp` and `mcp_server`
        (`url`, and optionally `kind`, `client_id` and `client_secret`), the person signs in to an MCP server, whose
        tools become the operations of a kind of its own.
        """
        renewed = None if connector is None else (await self.resolve(connector)).id
        members = {"name": name, "environment": environment, "scopes": scopes, "connector_id": renewed}
        members |= {"owner": owner, "mcp_server": mcp_server}
        body = {
            "workspace_name": self._session.settings.workspace_name,
            "connector_type": kind,
            "redirect_url": redirect_url,
            **_without_none(members),
        }
        reply = await self._session.fetch(ApiRequest(method="POST", path=f"{_PATH}/oauth/initiate", body=body))
        return Consent(self, self._session, reply.into(StartedConsentView))

    async def create_link(
        self,
        kinds: Sequence[str] | None = None,
        *,
        connector: str | Connector | None = None,
        redirect_url: str | None = None,
        expires_in: int | None = None,
        owner: str | None = None,
        name: str | None = None,
    ) -> ConnectLinkView:
        """A link for a person to connect one of the kinds, or `connector` again: once, within `expires_in` seconds.

        A new connector is a person's own with `owner`: `me`, or the person's id. `name` is its display name.
        """
        renewed = None if connector is None else (await self.resolve(connector)).id
        members: dict[str, Any] = {"connector_types": kinds, "connector_id": renewed}
        members |= {"redirect_url": redirect_url, "expires_in": expires_in, "owner": owner, "name": name}
        body = {"workspace_name": self._session.settings.workspace_name, **_without_none(members)}
        return (await self._session.fetch(ApiRequest(method="POST", path=_LINKS, body=body))).into(ConnectLinkView)

    async def link_state(self, link_id: str) -> ConnectSessionView:
        """The state of a link: pending, completed (with the connector's id) or expired; raises NotFound."""
        return (await self._session.fetch(ApiRequest(method="GET", path=f"{_LINKS}/{segment(link_id)}"))).into(
            ConnectSessionView
        )

    async def list(
        self, kind: str | None = None, *, status: str | None = None, in_every_workspace: bool = False
    ) -> list[Connector]:
        """The connectors of the workspace or of all workspaces, optionally of one kind or status."""
        query = {
            "workspace_name": None if in_every_workspace else self._session.settings.workspace_name,
            "connector_type": kind,
            "status": status,
        }
        return (await self._session.fetch(ApiRequest(method="GET", path=_PATH, query=query))).into(ConnectorPage).data

    async def _usable(self) -> Sequence[Connector]:
        """The connectors of the workspace that this client can call. An administrator's list has more."""
        found = await self.list()
        if all(each.owner is None for each in found):
            return found
        query = {"workspace_name": self._session.settings.workspace_name, "usable": True}
        return (await self._session.fetch(ApiRequest(method="GET", path=_PATH, query=query))).into(ConnectorPage).data

    async def get(self, connector_id: str) -> Connector:
        """One connector by its id; raises NotFound."""
        return (await self._session.fetch(ApiRequest(method="GET", path=f"{_PATH}/{segment(connector_id)}"))).into(
            Connector
        )

    async def resolve(self, connector: str | Connector) -> Connector:
        """The connector with this id or name, or the only one of this kind; raises NotFound and Conflict."""
        if isinstance(connector, Connector):
            return connector
        if connector not in self._resolved:
            found = (
                await self.get(connector)
                if _is_id(connector)
                else choose(connector, await self._usable(), self._session.settings.workspace_name)
            )
            self._resolved[connector] = found
        return self._resolved[connector]

    def forget(self, connector: Connector) -> None:
        """Remove the connector from the cache of names; the next call looks it up again."""
        self._resolved = {name: each for name, each in self._resolved.items() if each.id != connector.id}

    async def check(self, connector: str | Connector) -> Health:
        """Ask the application now whether it accepts the connector's credentials."""
        return (await self._session.fetch(await self._call("POST", connector, "/check"))).into(Health)

    async def inspect(self, connector: str | Connector) -> InspectionView:
        """The connector's status, its operations and the freshness of its searchable copy, for an agent."""
        return (await self._session.fetch(await self._call("GET", connector, "/inspect"))).into(InspectionView)

    async def update(
        self,
        connector: str | Connector,
        *,
        credentials: Mapping[str, Any] | None = None,
        status: str | None = None,
        **settings: Unpack[ConnectorSettings],
    ) -> Connector:
        """Change the settings, such as `name`, the credentials or the status (`disabled`, `active`); the id stays."""
        body = {**settings, **_without_none({"credentials": credentials, "status": status})}
        old = await self.resolve(connector)
        self.forget(old)
        return (
            await self._session.fetch(ApiRequest(method="PATCH", path=f"{_PATH}/{segment(old.id)}", body=body))
        ).into(Connector)

    async def delete(self, connector: str | Connector) -> Job:
        """Delete the connector and revoke its OAuth tokens; the job deletes its copy, results and credentials."""
        old = await self.resolve(connector)
        self.forget(old)
        deleted = (await self._session.fetch(ApiRequest(method="DELETE", path=f"{_PATH}/{segment(old.id)}"))).into(
            DeletionView
        )
        return Job(self._session, JobView(id=deleted.job_id, status=JobStatus.QUEUED, connector_id=old.id))

    async def sync(
        self, connector: str | Connector, entities: Sequence[str] | None = None, *, full: bool = False
    ) -> Job:
        """Synchronize the searchable copy now; `full` discards the copy and loads everything again."""
        found = await self.resolve(connector)
        body = _without_none({"entities": entities, "full": full or None})
        reply = await self._session.fetch(
            ApiRequest(method="POST", path=f"{_PATH}/{segment(found.id)}/context-store/sync", body=body)
        )
        return accepted(self._session, reply)

    async def copies(self, connector: str | Connector) -> dict[str, FreshnessView]:
        """The searchable copy of each entity: its number of records and its age."""
        reply = await self._session.fetch(await self._call("GET", connector, "/context-store"))
        return reply.into(ContextStoreView).entities

    async def _call(self, method: str, connector: str | Connector, part: str) -> ApiRequest:
        return ApiRequest(
            method=method, path=f"{_PATH}/{segment((await self.resolve(connector)).id)}{part}", is_read=True
        )


def choose(name: str, connectors: Sequence[Connector], workspace_name: str) -> Connector:
    """The connector with that name, else of that kind or application; the caller's own before shared ones. NotFound and
    Conflict list the candidates.
    """
    kind = canonical(name)
    ready = [each for each in connectors if each.status != "pending"]
    matches = [each for each in ready if each.name == name] or [
        each for each in ready if kind in (each.kind, canonical(each.application))
    ]
    if len(matches) > 1:
        matches = [each for each in matches if each.status == "active"] or matches
        matches = [each for each in matches if each.owner is not None] or matches
    if len(matches) == 1:
        return matches[0]
    raise _not_one(name, matches, ready, workspace_name)


def _not_one(name: str, matches: Sequence[Connector], ready: Sequence[Connector], workspace_name: str) -> GatewayError:
    if matches:
        ids = ", ".join(f"{each.name} ({each.id})" for each in matches)
        return Conflict(f"{name!r} is {len(matches)} connectors: {ids}; use an id or another name")
    existing = ", ".join(f"{each.name} ({each.application}, {each.kind})" for each in ready)
    meant = nearest(name, [known for each in ready for known in (each.kind, each.name, each.application)], _LIKENESS)
    hint = f"did you mean {meant}? " if meant else ""
    return NotFound(
        f"the workspace {workspace_name!r} has no connector {name!r}; {hint}it has {existing or 'none'}. Create one "
        "with `gateway connect KIND`, or set GATEWAY_WORKSPACE to another workspace (`gateway workspaces` lists them)"
    )


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def _without_none(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}

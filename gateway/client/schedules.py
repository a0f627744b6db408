"""Schedules: operations that run as jobs at the times of a cron expression."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from gateway.client.connectors import Connectors
from gateway.client.jobs import Job, accepted
from gateway.client.paths import segment
from gateway.client.session import ApiRequest, Session
from gateway.contract.connectors import Connector
from gateway.contract.schedules import SchedulePage, ScheduleView

_PATH = "/api/v1/schedules"
#: schedules of one page
_PAGE = 100


class Schedules:
    """The schedules of the organization."""

    def __init__(self, session: Session, connectors: Connectors) -> None:
        self._session = session
        self._connectors = connectors

    async def create(
        self,
        name: str,
        cron: str,
        connector: str | Connector,
        entity: str,
        action: str,
        params: Mapping[str, Any] | None = None,
        *,
        timezone: str = "UTC",
        file: str | None = None,
        select: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        overlap: str = "skip",
        catch_up: str = "one",
        labels: Mapping[str, str] | None = None,
        enabled: bool = True,
    ) -> ScheduleView:
        """Create a schedule. With `file` (`ndjson` or `csv`) each run collects a list or search into a file."""
        body = {
            "name": name,
            "connector_id": (await self._connectors.resolve(connector)).id,
            "entity": entity,
            "action": action,
            "params": dict(params or {}),
            "select_fields": select,
            "exclude_fields": exclude,
            "output": None if file is None else {"file": file},
            "cron": cron,
            "timezone": timezone,
            "enabled": enabled,
            "overlap": overlap,
            "catch_up": catch_up,
            "labels": dict(labels or {}),
        }
        return (await self._session.fetch(ApiRequest(method="POST", path=_PATH, body=body))).into(ScheduleView)

    async def list(
        self, connector: str | Connector | None = None, *, limit: int | None = None
    ) -> AsyncGenerator[ScheduleView, None]:
        """Schedules, oldest first, at most `limit`; fetches page after page."""
        query: dict[str, Any] = {"limit": min(limit or _PAGE, _PAGE)}
        if connector is not None:
            query["connector_id"] = (await self._connectors.resolve(connector)).id
        async for schedule in self._session.views(_PATH, query, SchedulePage, limit):
            yield schedule

    async def get(self, schedule_id: str) -> ScheduleView:
        """One schedule by its id; raises NotFound."""
        return (await self._session.fetch(ApiRequest(method="GET", path=f"{_PATH}/{segment(schedule_id)}"))).into(
            ScheduleView
        )

    async def update(self, schedule_id: str, **members: Any) -> ScheduleView:
        """Change members of a schedule, with the API's names: `cron="0 7 * * *"`, `enabled=False`."""
        call = ApiRequest(method="PATCH", path=f"{_PATH}/{segment(schedule_id)}", body=members)
        return (await self._session.fetch(call)).into(ScheduleView)

    async def delete(self, schedule_id: str) -> None:
        """Delete a schedule; a run that has begun continues."""
        await self._session.fetch(ApiRequest(method="DELETE", path=f"{_PATH}/{segment(schedule_id)}"))

    async def run(self, schedule_id: str) -> Job:
        """Run the schedule's operation now; returns the job."""
        return accepted(
            self._session,
            await self._session.fetch(ApiRequest(method="POST", path=f"{_PATH}/{segment(schedule_id)}/run")),
        )

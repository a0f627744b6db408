"""Events and filters."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from gateway.contract.events import EventType, EventView
from gateway.errors import FieldError, InvalidParams


class Event(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One event; ids grow within an organization."""

    id: int
    type: EventType
    at: datetime
    data: dict[str, Any] = msgspec.field(default_factory=dict)
    connector_id: UUID | None = None

    @property
    def subject(self) -> str:
        """The subject whose events keep their order: a job, a record, or the connector."""
        job_id, record_id = self.data.get("job_id"), self.data.get("record_id")
        if job_id is not None:
            return f"job:{job_id}"
        if record_id is not None:
            return f"record:{self.connector_id}:{self.data['entity']}:{record_id}"
        return f"{self.type.partition('.')[0]}:{self.connector_id}"

    @property
    def view(self) -> EventView:
        """The event as callers see it."""
        connector_id = None if self.connector_id is None else str(self.connector_id)
        return EventView(id=self.id, type=self.type, at=self.at, data=self.data, connector_id=connector_id)


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects events of a feed; None selects all."""

    types: Sequence[EventType] | None = None
    connector_id: UUID | None = None
    entity: str | None = None
    #: names of the workspaces that the caller may see
    workspaces: Collection[str] | None = None
    #: the caller's person; events of other people's connectors are left out
    person_id: UUID | None = None
    #: only the final events of jobs with this callback
    callback: UUID | None = None


def event_types(names: Iterable[str], *, pointer: str = "/types") -> list[EventType]:
    """The types with these names; `job.*` is all types of a group. Raises InvalidParams."""
    types: list[EventType] = []
    faults = []
    for name in names:
        group = name.removesuffix("*") if name.endswith(".*") else None
        matching = [each for each in EventType if each == name or (group and each.startswith(group))]
        types += matching
        if not matching:
            message = f"types names {name[:100]!r}; allowed: {', '.join(EventType)}, and a group such as record.*"
            faults.append(FieldError(pointer, "types", "enum", message))
    if faults:
        raise InvalidParams(faults=faults)
    return list(dict.fromkeys(types))

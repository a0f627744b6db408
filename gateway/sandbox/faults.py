"""Trouble on request: which calls are answered late, wrongly, in part or not at all."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gateway.sandbox.calls import Reply


class Fault(BaseModel):
    """What happens to the calls that it matches, all of them or the next `times`."""

    model_config = ConfigDict(extra="forbid")

    #: which calls: of a kind, below a path, of an entity, by a method; what is left out matches all
    kind: str | None = None
    path_prefix: str | None = None
    entity: str | None = None
    method: str | None = None
    #: how many calls; None is every one until the faults are removed
    times: int | None = Field(default=None, ge=1)

    #: waits before anything else happens
    latency_ms: int = Field(default=0, ge=0)
    #: answers with this status, in the kind's own error shape unless there is a `body`
    status: int | None = Field(default=None, ge=200, le=599)
    body: Any = None
    headers: dict[str, str] = Field(default_factory=dict)
    #: closes the connection without an answer
    reset: bool = False
    #: announces the whole answer and closes the connection after this many bytes of it
    truncate_after_bytes: int | None = Field(default=None, ge=0)
    #: announces the whole answer and falls silent after this many bytes of it
    stall_after_bytes: int | None = Field(default=None, ge=0)
    #: answers a range with the whole file
    ignore_range: bool = False

    @model_validator(mode="after")
    def _does_something(self) -> "Fault":
        effects = {"latency_ms", "status", "body", "headers", "reset", "truncate_after_bytes", "stall_after_bytes"}
        if not self.model_fields_set & {*effects, "ignore_range"}:
            raise ValueError(f"a fault needs one of {', '.join(sorted({*effects, 'ignore_range'}))}")
        return self

    @property
    def replaces_answer(self) -> bool:
        return self.status is not None or self.body is not None

    def reply(self) -> Reply:
        """The answer given in place of the application's own."""
        content_type = "text/plain" if isinstance(self.body, str) else "application/json"
        return Reply(self.body, self.status or 200, self.headers, content_type)


@dataclass(slots=True)
class _Armed:
    fault: Fault
    left: int | None


class Faults:
    """The faults in force, oldest first; the first that matches a call takes it."""

    def __init__(self) -> None:
        self._armed: list[_Armed] = []

    def __len__(self) -> int:
        return len(self._armed)

    def add(self, fault: Fault) -> None:
        self._armed.append(_Armed(fault, fault.times))

    def clear(self) -> None:
        self._armed.clear()

    def take(self, kind: str | None, path: str, entities: Collection[str], method: str) -> Fault | None:
        """The fault for this call, counted down."""
        for armed in self._armed:
            if _matches(armed.fault, kind, path, entities, method):
                if armed.left is not None:
                    armed.left -= 1
                    if armed.left == 0:
                        self._armed.remove(armed)
                return armed.fault
        return None


def _matches(fault: Fault, kind: str | None, path: str, entities: Collection[str], method: str) -> bool:
    return (
        fault.kind in (None, kind)
        and (fault.path_prefix is None or path.startswith(fault.path_prefix))
        and (fault.entity is None or fault.entity in entities)
        and (fault.method is None or fault.method.upper() == method)
    )

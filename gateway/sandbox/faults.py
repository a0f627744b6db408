"""Fault injection: calls that are delayed, or answered with an error, in part or not at all."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gateway.sandbox.calls import Reply


class Fault(BaseModel):
    """A fault of all calls that it matches, or of the next `times` of them."""

    model_config = ConfigDict(extra="forbid")

    # A condition that is left out matches all calls.
    kind: str | None = None
    path_prefix: str | None = None
    entity: str | None = None
    method: str | None = None
    #: the number of calls; None for all until the faults are removed
    times: int | None = Field(default=None, ge=1)

    #: the delay before the response
    latency_ms: int = Field(default=0, ge=0)
    #: answers with this status, in the kind's error format unless there is a `body`
    status: int | None = Field(default=None, ge=200, le=599)
    body: Any = None
    headers: dict[str, str] = Field(default_factory=dict)
    #: closes the connection without a response
    reset: bool = False
    #: sends the headers of the complete response, but closes the connection after this many bytes of the body
    truncate_after_bytes: int | None = Field(default=None, ge=0)
    #: sends the headers of the complete response, but stops sending after this many bytes of the body
    stall_after_bytes: int | None = Field(default=None, ge=0)
    #: answers a range request with the complete file
    ignore_range: bool = False

    @model_validator(mode="after")
    def _does_something(self) -> "Fault":
        effects = type(self).model_fields.keys() - {"kind", "path_prefix", "entity", "method", "times"}
        if not self.model_fields_set & effects:
            raise ValueError(f"a fault needs one of {', '.join(sorted(effects))}")
        return self

    @property
    def replaces_answer(self) -> bool:
        return self.status is not None or self.body is not None

    def reply(self) -> Reply:
        """The response that replaces the application's."""
        content_type = "text/plain" if isinstance(self.body, str) else "application/json"
        return Reply(self.body, self.status or 200, self.headers, content_type)


@dataclass(slots=True)
class _Armed:
    fault: Fault
    left: int | None


class Faults:
    """The active faults, oldest first; the first one that matches a call is applied."""

    def __init__(self) -> None:
        self._armed: list[_Armed] = []

    def __len__(self) -> int:
        return len(self._armed)

    def documents(self) -> list[dict[str, Any]]:
        """The active faults with the members that were given; `times` is the number of calls that are left."""
        return [
            each.fault.model_dump(exclude_unset=True) | ({} if each.left is None else {"times": each.left})
            for each in self._armed
        ]

    def add(self, fault: Fault) -> None:
        self._armed.append(_Armed(fault, fault.times))

    def clear(self) -> None:
        self._armed.clear()

    def take(self, kind: str | None, path: str, entities: Collection[str], method: str) -> Fault | None:
        """The fault for this call, or None; its remaining number of calls is reduced by one."""
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

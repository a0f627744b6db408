"""Records every operation that this process runs, for calls, files and jobs: audit entries and metrics.

An audit entry has names of members only, never their values.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

import msgspec

from gateway.access.audit.entry import Entry
from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller
from gateway.connectors.resolver import ResolvedConnector
from gateway.contract.kinds import Effect
from gateway.errors import GatewayError
from gateway.foundation.telemetry.metrics import EXECUTE_SECONDS, EXECUTES
from gateway.kinds.catalog import Operation
from gateway.kinds.sunsets import explain_refusal
from gateway.operations.call import OperationCall
from gateway.upstream.prepared import PreparedCall
from gateway.upstream.responses import created_id

#: maximum names of one entry
_MAX_MEMBERS = 100
#: maximum characters of a name and of a target: callers name the members of free-form objects
_MAX_LENGTH = 200


def recorded(audit: Audit, caller: Caller, call: OperationCall) -> AbstractContextManager[Entry]:
    """The audit entry of a call, for the duration of the block."""
    what = f"{call.entity}.{call.action}"
    return audit.record(what, caller, connector_id=call.connector_id, intent=call.intent)


def describe(entry: Entry, resolved: ResolvedConnector, call: PreparedCall) -> None:
    """Set the audit entry's kind, effect, target record, and the names of the members that a write changes."""
    entry.kind, entry.target = resolved.record.kind, target_of(call.operation, call.params)
    entry.effect = call.effect
    if call.effect is not Effect.READ:
        entry.changed = changed_members(call.operation, call.params) or None


def describe_created(entry: Entry, result: msgspec.Raw) -> None:
    """Set the audit entry's target to the record that the write made, unless its params name one."""
    entry.target = entry.target or created_id(result)


def target_of(operation: Operation, params: Mapping[str, Any]) -> str | None:
    """The record that a call names in its path, `42`, or `42/7` if it names several; None for a list or a create."""
    if not operation.path_params:
        return None
    named = [str(params[name]) for name in operation.path_params if params.get(name) is not None]
    return "/".join(named)[:_MAX_LENGTH] or None


def changed_members(operation: Operation, params: Mapping[str, Any]) -> list[str]:
    """The dotted names of what a call writes, one level into objects: `ticket.status`, `ticket.priority`."""
    in_path = operation.path_params
    names = sorted({name[:_MAX_LENGTH] for name in _names(params) if name.partition(".")[0] not in in_path})
    return names[:_MAX_MEMBERS]


def _names(params: Mapping[str, Any]) -> Iterator[str]:
    for name, value in params.items():
        if isinstance(value, Mapping) and value:
            yield from (f"{name}.{member}" for member in value)
        else:
            yield name


class Accounted(msgspec.Struct, kw_only=True):
    """A block that runs one operation: counts it by its outcome and its seconds, and explains refused credentials.

    The outcome is the code of the GatewayError that leaves the block, `interrupted` for any other exception, and
    otherwise `outcome`, which the block may change.
    """

    resolved: ResolvedConnector
    operation: Operation
    #: by the monotonic clock; earlier than the block if the operation began before it
    started: float = msgspec.field(default_factory=time.monotonic)
    outcome: str = "succeeded"
    #: false if the operation has not ended, so that another block counts it
    is_counted: bool = True

    def __enter__(self) -> "Accounted":
        return self

    def __exit__(
        self, type_: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, GatewayError):
            self.outcome = error.code
            explain_refusal(error, self.operation.spec, self.resolved.record.auth_method)
        elif error is not None:
            self.outcome = "interrupted"
        if not self.is_counted:
            return
        operation, kind = self.operation, self.operation.spec.kind
        EXECUTES.add(kind, operation.entity_id, operation.action_id, self.outcome)
        EXECUTE_SECONDS.observe(time.monotonic() - self.started, kind)

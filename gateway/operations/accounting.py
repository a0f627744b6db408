"""Every operation that this process runs is counted and its refusals are explained here: calls, files and jobs."""

import time
from types import TracebackType

from gateway.connectors.resolver import ResolvedConnector
from gateway.errors import GatewayError
from gateway.kinds.catalog import Operation
from gateway.kinds.sunsets import explain_refusal
from gateway.telemetry.metrics import EXECUTE_SECONDS, EXECUTES


class Accounted:
    """A block that runs one operation: counts it by its outcome and its seconds, and explains refused credentials.

    The outcome is the code of the GatewayError that leaves the block, `interrupted` for any other exception, and
    otherwise `outcome`, which the block may change.
    """

    __slots__ = ("_operation", "_resolved", "_started", "outcome")

    def __init__(self, resolved: ResolvedConnector, operation: Operation) -> None:
        self._resolved = resolved
        self._operation = operation
        self.outcome = "succeeded"

    def __enter__(self) -> "Accounted":
        self._started = time.monotonic()
        return self

    def __exit__(
        self, type_: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, GatewayError):
            self.outcome = error.code
            explain_refusal(error, self._operation.spec, self._resolved.record.auth_method)
        elif error is not None:
            self.outcome = "interrupted"
        operation, kind = self._operation, self._operation.spec.kind
        EXECUTES.add(kind, operation.entity_id, operation.action_id, self.outcome)
        EXECUTE_SECONDS.observe(time.monotonic() - self._started, kind)

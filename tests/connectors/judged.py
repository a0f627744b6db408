"""A response judged and read as a session does it, without sending anything."""

from gateway.connectors import responses
from gateway.connectors.responses import OperationResult, UpstreamResponse
from gateway.kinds.catalog import Operation


def read(operation: Operation, response: UpstreamResponse) -> OperationResult:
    """The answer of a success; raises what a failure means."""
    error = responses.failure(operation.spec.failure, response)
    if error is not None:
        raise error
    return responses.read(operation, response)

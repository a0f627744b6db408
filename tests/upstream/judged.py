"""A response judged and read as a session does it, without sending anything."""

from gateway.kinds.catalog import Operation
from gateway.upstream import failures, responses
from gateway.upstream.responses import OperationResult, UpstreamResponse


def read(operation: Operation, response: UpstreamResponse) -> OperationResult:
    """The answer of a success; raises what a failure means."""
    spec = operation.spec
    error = failures.failure(spec.failure, response, limits=spec.rate_limit.allowances)
    if error is not None:
        raise error
    return responses.read(operation, response)

"""Reports that the application runs asynchronously, polled until they end."""

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.errors import UpstreamError, UpstreamInvalidResponse, UpstreamNotFound, UpstreamRejected
from gateway.upstream.operation_run import OperationRun
from gateway.upstream.requests import UpstreamRequest, upstream_segment
from gateway.upstream.responses import OperationResult

Params = Mapping[str, Any]


async def run_report(run: OperationRun) -> OperationResult:
    """Run a report as an asynchronous instance and poll it; synchronously if the application offers no instances."""
    instance = run.run_context.state.get("instance")
    if instance is None:
        try:
            instance = (await run.ask("POST", _instances(run.call.params))).decoded().get("id")
        except (UpstreamRejected, UpstreamNotFound):
            return await run.session.call(run.call, run.run_context)
        if not instance:
            raise UpstreamInvalidResponse(
                f"{run.call.operation}: the application started the report without naming its run"
            )
        instance = upstream_segment(run.call.operation, instance)
        await run.run_context.checkpoint({"instance": instance})
    report: dict[str, Any] = {}
    path = _instances({"id": run.call.params["id"]}, f"/{instance}")
    async for report in run.poll(path, ("attributes", "status"), ("New", "Running"), ("Success", "Error")):
        await run.run_context.progress(0, None, f"report run: {report['attributes']['status']}")
    if report["attributes"]["status"] == "Error":
        raise UpstreamError(f"{run.call.operation}: the application could not run the report")
    return OperationResult(msgspec.Raw(msgspec.json.encode(report)))


def _instances(params: Params, below: str = "") -> str:
    details = "" if below else f"?includeDetails={'true' if params.get('includeDetails', True) else 'false'}"
    return f"/analytics/reports/{params['id']}/instances{below}{details}"


def preview_report(run: OperationRun) -> list[UpstreamRequest]:
    return [run.request("POST", _instances(run.call.params))]

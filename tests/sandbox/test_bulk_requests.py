"""Bulk requests of the sandbox: each call has the same result as in a request of its own."""

from typing import Any

import pytest

from gateway.errors import UpstreamNotFound
from gateway.kinds.loading import load_kind, shipped_specs
from gateway.upstream.bulk import bulk_call, group_of, outcomes
from gateway.upstream.prepared import PreparedCall

#: params for all calls of an operation, in place of those of its example
_SHARED: dict[str, dict[str, Any]] = {"objects.get": {"properties": "name,color"}}


def bulk_operations() -> list[tuple[str, str]]:
    folders = sorted(folder.name for folder in shipped_specs().iterdir() if (folder / "connector.yaml").exists())
    return [
        (kind, str(operation))
        for kind in folders
        for operation in load_kind(shipped_specs() / kind).operations.values()
        if operation.bulk is not None
    ]


@pytest.mark.parametrize(("kind", "name"), bulk_operations())
async def test_a_bulk_request_returns_for_each_call_what_the_operation_returns(connect, kind, name):
    connector = connect(kind)
    operation = connector.kind.operation(*name.split("."))
    [id_param] = operation.action.bulk.match
    given = {**operation.action.example, **_SHARED.get(name, {})}
    listing = connector.kind.operation(operation.entity_id, "list")
    params = {each: given[each] for each in listing.action.required}
    records = (await connector.run_to_end(PreparedCall.of(listing, params))).decoded()[:3]
    missing = "999999999"
    calls = [PreparedCall.of(operation, {**given, id_param: each}) for each in [*(r["id"] for r in records), missing]]

    assert len({group_of(call) for call in calls}) == 1
    if operation.action.effect == "read":
        together = outcomes(calls, await connector.run_to_end(bulk_call(calls)))
        assert together.pop() is None
    else:
        with pytest.raises(UpstreamNotFound):
            await connector.run_to_end(bulk_call(calls))
        together = outcomes(calls[:-1], await connector.run_to_end(bulk_call(calls[:-1])))
    alone = [await connector.run_to_end(call) for call in calls[:-1]]

    assert len(records) == 3
    assert [each.decoded() for each in together] == [each.decoded() for each in alone]

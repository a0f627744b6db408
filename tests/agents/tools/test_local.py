"""The tools' backend in this process."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from gateway.agents.tools.backend import AgentCall
from gateway.agents.tools.calls import Calls
from gateway.agents.tools.local import LocalBackend
from gateway.kinds.find.entries import entry_of
from gateway.upstream.responses import OperationResult
from tests.harness.blocked_loop import divided
from tests.harness.catalog import shipped_catalog


@pytest.fixture
def backend() -> LocalBackend:
    connector: Any = SimpleNamespace(kind=shipped_catalog().kind("support-desk"))
    return LocalBackend(connector)


async def test_a_record_that_the_application_wrote_on_several_lines_is_one_record(backend: LocalBackend):
    call: Any = None
    answer = OperationResult(result=msgspec.Raw(b'[{\n  "id": 1\n},\n{\n  "id": 2\n}]'))

    part = await backend.part(None, await backend.save(None, call, answer), 1, 1)

    assert (part.data, part.count, part.is_last) == ('{"id":2}', 1, True)


async def test_the_preview_of_a_long_answer_is_made_in_a_thread(backend: LocalBackend):
    answer = OperationResult(result=msgspec.Raw(msgspec.json.encode([{"id": id_, "a": "b"} for id_ in range(200_000)])))

    async def executed(*_: Any) -> Any:
        return SimpleNamespace(answer=answer)

    backend._connector.execute = executed
    entry = entry_of(shipped_catalog(), "support-desk.tickets.list")
    context: Any = SimpleNamespace(caller=None)
    call = AgentCall(entry=entry, connector=(await backend.connectors(None))[0])

    result = await divided(Calls(backend, None).run(context, call))

    assert msgspec.json.decode(result["structuredContent"])["records"] == 200_000

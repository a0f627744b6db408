"""The tools' backend in this process."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from gateway.agents.tools.local import LocalBackend
from gateway.upstream.responses import OperationResult
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

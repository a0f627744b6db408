"""Lists of every kind stay true when the application is rude: what is missing is said."""

import pytest

from gateway.sandbox.rude import Behaviour
from tests.harness.catalog import shipped_catalog
from tests.harness.rude import list_faults, lists_of, played, read

KINDS = {kind.name: kind for kind in shipped_catalog()}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
async def test_a_rude_list_is_whole_or_says_what_is_missing(subtests, kind):
    async with played(kind, 0.2) as application:
        for operation in lists_of(kind):
            await application.reset()
            polite = await read(application.connector(), operation)
            assert polite.error is None
            for behaviour in Behaviour:
                with subtests.test(f"{operation} {behaviour.value}"):
                    assert not await list_faults(application, operation, polite.records, behaviour)

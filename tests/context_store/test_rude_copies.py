"""Copies of every entity stay true when the application is rude; `make faults` plays every behaviour for every kind."""

import pytest

from gateway.context_store.sync import sources
from gateway.sandbox.rude import Behaviour
from tests.harness.catalog import shipped_catalog
from tests.harness.rude import played
from tests.harness.rude_copies import Copying, copy_faults

KINDS = {kind.name: kind for kind in shipped_catalog() if sources.synchronized(kind)}
#: the number of behaviours that each kind is tested with beside moving records; kinds take turns
_BEHAVIOURS = 1
_ALL = tuple(Behaviour) * 2


@pytest.fixture
def copying(database, make_tenant):
    """The copies of a new connector to an application: `await copying(application)`."""

    async def copying(application) -> Copying:
        tenant = await make_tenant()
        return Copying(
            database=database,
            organization_id=tenant.organization_id,
            connector_id=tenant.connector_id,
            application=application,
        )

    return copying


@pytest.mark.parametrize(("turn", "kind"), list(enumerate(KINDS.values())), ids=KINDS)
async def test_a_copy_of_a_rude_application_is_whole_or_says_what_is_missing(subtests, copying, turn, kind):
    begin = turn * _BEHAVIOURS % len(Behaviour)
    async with played(kind, 0.1) as application:
        truth = await (await copying(application)).full(sources.synchronized(kind))
        assert [copy.fault or copy.said for copy in truth.values() if copy.fault or copy.said] == []
        for behaviour in {Behaviour.MOVING_RECORDS, *_ALL[begin : begin + _BEHAVIOURS]}:
            with subtests.test(behaviour.value):
                assert not await copy_faults(await copying(application), truth, behaviour)

"""Which unseen records a complete sweep deletes, which it reads by their ids, and which wait."""

from datetime import UTC, datetime, timedelta

import pytest

from gateway.context_store.entities import begin, register
from gateway.context_store.layout import Layout
from gateway.context_store.records import upsert
from gateway.context_store.sweeps import Sweep, Unseen
from gateway.context_store.sync.removal import Proof, Removal, Step, removal

LIST, GET, NEITHER = Proof(is_list_proof=True), Proof(False, has_get=True), Proof(False)
BOTH = Proof(True, has_get=True)
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("proof", "unseen", "expected"),
    [
        (LIST, Unseen(0, 0, 100), Removal(Step.DELETE, Step.DELETE)),
        (LIST, Unseen(20, 0, 20), Removal(Step.DELETE, Step.DELETE)),
        (LIST, Unseen(100, 0, 1_000), Removal(Step.DELETE, Step.DELETE)),
        (LIST, Unseen(101, 0, 1_000), Removal(Step.WAIT, Step.DELETE, held=101)),
        (LIST, Unseen(21, 0, 21), Removal(Step.WAIT, Step.DELETE, held=21)),
        (LIST, Unseen(0, 900, 1_000), Removal(Step.DELETE, Step.DELETE)),
        (LIST, Unseen(5, 900, 1_000), Removal(Step.DELETE, Step.DELETE)),
        (GET, Unseen(3, 2, 1_000), Removal(Step.CONFIRM, Step.CONFIRM)),
        (GET, Unseen(200, 2, 1_000), Removal(Step.CONFIRM, Step.CONFIRM)),
        (NEITHER, Unseen(3, 2, 1_000), Removal(Step.WAIT, Step.DELETE)),
        (NEITHER, Unseen(200, 2, 1_000), Removal(Step.WAIT, Step.DELETE, held=200)),
        (BOTH, Unseen(3, 2, 1_000), Removal(Step.DELETE, Step.DELETE)),
    ],
)
def test_a_record_is_removed_only_with_proof(proof, unseen, expected):
    assert removal(unseen, proof) == expected


@pytest.fixture
async def entity(connection, tenant):
    return await register(connection, tenant.connector_id, tenant.organization_id, "things", Layout())


@pytest.fixture
def sweep(connection, entity):
    """A complete sweep of an hour of 2026 that has seen these ids: `await sweep(1, "a")`."""

    async def sweep(hour: int, *ids: str) -> Sweep:
        generation = await begin(connection, entity, full=True)
        found = [(id_, b"{}") for id_ in ids]
        at = BEGAN + timedelta(hours=hour)
        await upsert(connection, entity, found, generation=generation, observed_at=at)
        return Sweep(entity, generation, at)

    return sweep


async def test_a_record_is_unseen_again_only_if_two_sweeps_in_a_row_have_not_seen_it(connection, sweep):
    await (await sweep(1, "a", "b", "c")).end(connection)
    second = await sweep(2, "a")
    first_count = await second.count(connection)
    await second.mark_absent(connection)
    third = await sweep(3, "a", "c")

    second_count = await third.count(connection)
    await third.mark_absent(connection)
    fourth = await sweep(4, "a", "b")

    assert (first_count, second_count) == (Unseen(2, 0, 3), Unseen(0, 1, 3))
    assert await fourth.count(connection) == Unseen(1, 0, 3)
    assert await fourth.unseen(connection, 10, again=False) == ["c"]


async def test_a_sweep_that_ends_twice_after_a_crash_counts_once(connection, sweep):
    await (await sweep(1, "a", "b")).end(connection)
    second = await sweep(2, "a")
    await second.mark_absent(connection)

    assert await second.count(connection) == Unseen(1, 0, 2)
    assert await second.delete(connection, again=True) == 0


async def test_a_record_that_was_read_since_is_not_unseen(connection, entity, sweep):
    await (await sweep(1, "a", "b")).end(connection)
    await (await sweep(2, "a")).mark_absent(connection)
    await upsert(connection, entity, [("b", b"{}")], observed_at=BEGAN + timedelta(hours=2))

    third = await sweep(3, "a")

    assert await third.count(connection) == Unseen(1, 0, 2)
